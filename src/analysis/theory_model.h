/* theory_model.h - the quantities of the theory on a trained model.
 *
 * At an anchor (a recorded frame and the actions after it) the model is a linear system, A = dF/dz
 * and B = dF/da.  Its scale c is not known to the model: the one that fits best, tr(B^T B) / d_a,
 * is used, so that what is measured is shape. */
#ifndef CGS_ANALYSIS_THEORY_MODEL_H
#define CGS_ANALYSIS_THEORY_MODEL_H

#include "rollout/loaded_model.h"

typedef struct cgs_model_theory {
    int anchors, H, D, block;
    /* each (anchors) */
    double *drift;    /* |D| */
    double *mixed;    /* |D^T B| / sqrt(c) */
    double *control;  /* |B^T B - cI| / c */
    double *isotropy; /* smallest over largest eigenvalue of B^T B */
    double *moves;    /* ... where all primitive actions of a block are the same */
    double *eps;      /* the least of the three bounds */
    double *gap;      /* |G_H/(cH) - P_H| of the local system */
    double *xi;       /* xi_H(eps); NaN where eps >= 1 */
    int eps_below_one, xi_below_one;
    double rho, rho_bar; /* of the second moment of [z; a] over `frames` rows */
    int frames;
    double difference; /* largest relative error of a derivative against differences */
    char holds[400];   /* a sentence on how far the assumptions hold */
} cgs_model_theory;

typedef bool (*cgs_model_theory_watch)(void *user, const char *dir, double done, double total);

/* Anchors are drawn from the recorded steps of all episodes.  Free also after a failure. */
cgs_status cgs_model_theory_measure(cgs_model_theory *out, cgs_loaded_model *s, cgs_dataset *data,
                                    int anchors, int horizon, uint64_t seed,
                                    cgs_model_theory_watch watch, void *user);
void cgs_model_theory_free(cgs_model_theory *m);

#endif /* CGS_ANALYSIS_THEORY_MODEL_H */
