/* model_run.h - shared by verbs that run a model: options, and images for it. */
#ifndef CGS_CLI_MODEL_RUN_H
#define CGS_CLI_MODEL_RUN_H

#include "cli/options.h"
#include "model/store.h"

typedef struct cgs_model_run {
    const char *dir, *device_name, *precision; /* options */
    int threads;
    cgs_device device;
    cgs_dtype act;
    cgs_lewm *model;
} cgs_model_run;

#define CGS_MODEL_RUN_DEFAULTS                                                                     \
    { .device_name = "auto", .precision = "f32" }

/* rows of an option table */
#define CGS_MODEL_RUN_OPTIONS(r)                                                                   \
    {"model", "DIR", "model directory", OPT_STR, &(r).dir, true},                                  \
        {"device", "NAME",           "cuda, cpu or ref (a GPU if there is one)",                   \
         OPT_STR,  &(r).device_name, false},                                                       \
        {"precision", "P", "f32 or bf16 (f32)", OPT_STR, &(r).precision, false}, {                 \
        "threads", "N", "threads (one per core)", OPT_THREADS, &(r).threads, false                 \
    }

/* Opens the device and loads the model; close after a failure too. */
cgs_status cgs_model_run_open(cgs_model_run *r);
void cgs_model_run_close(cgs_model_run *r);

/* Reads a PNG of exactly the model's size: out (side, side, 3). */
cgs_status cgs_read_frame(const char *path, int side, uint8_t *out);

#endif /* CGS_CLI_MODEL_RUN_H */
