/* growth.h - notices that the gradient of a training grows: clipping hides it from the weights'
 * steps, and the loss shows it thousands of updates later. */
#ifndef CGS_TRAIN_GROWTH_H
#define CGS_TRAIN_GROWTH_H

#include <stdbool.h>

/* Moving means of the logarithm of the norm, over some 50 and some 1,000 updates, and the least
 * that the latter has been. */
typedef struct cgs_growth {
    double fast, slow, usual;
    long count;
    bool told;
} cgs_growth;

/* True once, when the norm has become ten times what was usual. */
bool cgs_growth_add(cgs_growth *g, double norm);

#endif /* CGS_TRAIN_GROWTH_H */
