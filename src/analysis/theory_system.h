/* theory_system.h - every quantity of the theory for one system. */
#ifndef CGS_ANALYSIS_THEORY_SYSTEM_H
#define CGS_ANALYSIS_THEORY_SYSTEM_H

#include "analysis/theory.h"

typedef struct cgs_quantity {
    const char *name;
    double value;
    const char *outside; /* the hypothesis that fails, then value means nothing; else NULL */
} cgs_quantity;

#define CGS_QUANTITIES_MAX 64

/* Fills out[] and returns how many. */
int cgs_system_quantities(const cgs_facts *f, cgs_work *w, uint64_t seed,
                          cgs_quantity out[CGS_QUANTITIES_MAX]);

#endif /* CGS_ANALYSIS_THEORY_SYSTEM_H */
