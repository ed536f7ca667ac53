/* evaluate_internal.h - a running evaluation, for the files that share it: evaluate.c opens
 * everything and lists the runs, evaluate_starts.c chooses starts, evaluate_runs.c plans. */
#ifndef CGS_EVAL_EVALUATE_INTERNAL_H
#define CGS_EVAL_EVALUATE_INTERNAL_H

#include "eval/evaluate.h"
#include "model/prior.h"
#include "rollout/loaded_model.h"

typedef struct cgs_eval_session {
    const cgs_eval_options *o;
    cgs_evaluation *e;
    cgs_device device;
    cgs_dataset *data;
    const cgs_source *source;
    cgs_judge judge;
    cgs_loaded_model *loaded; /* (models) */
    double *curvature;        /* (models) for CGS_TAU_MEASURED; 0: not measured yet */
    uint64_t *prior;          /* (models, kinds) checksums of the priors that runs start from */
    int64_t *ep_len;          /* (episodes) */
    uint8_t *use;             /* (episodes) or NULL */
    cgs_starts *starts;       /* (seeds) */
    cgs_env_batch envs;       /* reused from setting to setting; count 0: none yet */
    cgs_eval_file file;
    double done, total; /* episodes */
} cgs_eval_session;

/* the prior that a run starts from; false: none */
bool cgs_eval_run_prior(const cgs_eval_run *r, cgs_prior_kind *kind);
/* the checksums of all of them */
cgs_status cgs_eval_session_priors(cgs_eval_session *b);
/* the starts of every seed */
cgs_status cgs_eval_session_starts(cgs_eval_session *b);
/* marks the runs whose results the file already has; the others are counted in total */
cgs_status cgs_eval_session_find_done(cgs_eval_session *b);
/* runs every setting of one model that is not done yet */
cgs_status cgs_eval_session_run(cgs_eval_session *b, int model);

#endif /* CGS_EVAL_EVALUATE_INTERNAL_H */
