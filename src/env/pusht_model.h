/* pusht_model.h - PushT's physics as a plain struct, for planning inside the simulator.
 *
 * A Chipmunk space cannot be copied; this can, with one assignment.  It computes the same
 * substep, except that shapes touching the block at once are visited in a fixed order and
 * walls are infinite lines.  Runs without such pinches agree with Chipmunk to rounding. */
#ifndef CGS_ENV_PUSHT_MODEL_H
#define CGS_ENV_PUSHT_MODEL_H

/* what is remembered of one pair of shapes */
typedef struct cgs_pusht_impulses {
    int idle;       /* substeps since they touched; 0 now, 4 forgotten */
    int count;      /* contacts */
    int key[2];     /* which feature touches, to recognise it in the next substep */
    double push[2]; /* accumulated impulse */
} cgs_pusht_impulses;

typedef struct cgs_pusht_model {
    double agent[2], agent_v[2];
    double block[2], angle;            /* centre of gravity */
    double v[2], w;                    /* block velocity */
    double bias_v[2], bias_w;          /* velocity that only mends overlaps */
    double sine, cosine;               /* of angle */
    cgs_pusht_impulses impulses[2][5]; /* (part, agent or wall) */
    int contacts;                      /* contact points of the last action's substeps */
} cgs_pusht_model;

/* state: the seven numbers of the environment; at rest, without contact memory */
void cgs_pusht_model_set(cgs_pusht_model *m, const double *state);
void cgs_pusht_model_get(const cgs_pusht_model *m, double *state);
void cgs_pusht_model_substep(cgs_pusht_model *m);
/* One environment step: ten substeps under PD control toward agent + 100 action. */
void cgs_pusht_model_step(cgs_pusht_model *m, const double *action);

#endif /* CGS_ENV_PUSHT_MODEL_H */
