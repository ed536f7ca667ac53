/* probe_run.h - the probing experiment on a dataset and some models, and its result file. */
#ifndef CGS_ANALYSIS_PROBE_RUN_H
#define CGS_ANALYSIS_PROBE_RUN_H

#include <cJSON.h>

#include "analysis/probe.h"

enum { CGS_ANALYSIS_MODELS = 16 };

typedef struct cgs_probe_options {
    const char *const *models; /* directories; none: the environment alone is probed */
    int model_count;
    const char *data;
    const char *env; /* NULL: the dataset's */
    const char *const *targets;
    int target_count; /* 0: all */
    int episodes;
    const char *device, *precision;
    int threads;
    const char *cache; /* folder of latents; NULL: each model's own directory; "": none */
    cgs_probe_config config;
    /* called with the present activity; returning false stops with CGS_ESTOPPED.  May be NULL. */
    bool (*progress)(void *user, const char *what, double done, double total);
    void *user;
} cgs_probe_options;

cgs_probe_options cgs_probe_defaults(void);

typedef struct cgs_probe_result {
    cgs_motion motion;
    bool requested[CGS_MAX_TARGETS];
    cgs_physical_row physical[CGS_MAX_TARGETS];
    int models;
    char name[CGS_ANALYSIS_MODELS][128], method[CGS_ANALYSIS_MODELS][64];
    cgs_latent_row *latent; /* (models, CGS_MAX_TARGETS) */
    int cached;             /* models whose latents were found in a file */
    double seconds;
} cgs_probe_result;

/* Free with cgs_probe_result_free, also after a failure. */
cgs_status cgs_probe_run(cgs_probe_result *r, const cgs_probe_options *o);
void cgs_probe_result_free(cgs_probe_result *r);

/* probe.json; the caller deletes *doc. */
cgs_status cgs_probe_document(cJSON **doc, const cgs_probe_result *r, const char *command);

/* A model's name in tables: its method, and its directory where another model of the method came
 * before. */
void cgs_model_names(int models, const char *const *dirs, char method[][64], char name[][128]);

#endif /* CGS_ANALYSIS_PROBE_RUN_H */
