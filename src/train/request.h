/* request.h - what somebody asks of a training, on the command line or through the public API, and
 * the settings that follow from it, the data and the run that is already there. */
#ifndef CGS_TRAIN_REQUEST_H
#define CGS_TRAIN_REQUEST_H

#include "train/train.h"

/* NULL: not said. */
typedef struct cgs_train_request {
    const char *data, *out, *config, *size, *method, *precision, *backbone, *init;
    const char *const *settings; /* (setting_count) key=value; later ones win */
    int setting_count;
    bool resume;
} cgs_train_request;

/* Those of the run in q->out where it is resumed, which the request must not contradict; else of
 * the size, the method and the model to begin with; then the settings one by one. */
cgs_status cgs_train_settle(cgs_run_config *c, const cgs_train_request *q);

#endif /* CGS_TRAIN_REQUEST_H */
