/* learned.h - whether a model has learned what a planner needs, on data alone: no environment.
 *
 *   prediction  the mean squared error of latents one action block and some blocks ahead, beside
 *               the errors of two predictors that know nothing: the latent stays as it is (copy),
 *               and it is the mean of all latents
 *   columns     R2 of every column of numbers from the latent of the same moment, linear (ridge)
 *               and nonlinear (small nets)
 *   movement    how far one action block moves: the pixels that change; the change of the picture
 *               and of the latent, over that between two episodes
 *
 * Everything is scored on episodes that the model was not trained on, where they are known; the
 * probes are fitted to others.  Results go to learned.json in the model's directory, where cgs info
 * and cgs report find them. */
#ifndef CGS_ANALYSIS_LEARNED_H
#define CGS_ANALYSIS_LEARNED_H

#include <cJSON.h>

#include "analysis/columns.h"
#include "core/status.h"
#include "ops/ops.h"

#define CGS_LEARNED_FILE "learned.json"
#define CGS_LEARNED_FORMAT "cgs-learned"
enum { CGS_LEARNED_ADVICE = 6, CGS_LEARNED_SENTENCE = 320 };

typedef struct cgs_learned_errors {
    int blocks; /* ahead */
    double model, copy, mean;
} cgs_learned_errors;

typedef struct cgs_learned_column {
    char name[CGS_COLUMN_NAME];
    double linear, nonlinear; /* NAN where the column never changes, or is not finite */
} cgs_learned_column;

typedef struct cgs_learned {
    bool held_out;        /* scored on episodes that were not trained on */
    int episodes, frames; /* scored */
    cgs_learned_errors ahead[2];
    int columns, left_out;
    cgs_learned_column column[CGS_NUMERIC_COLUMNS];
    double pixels, picture, latent; /* NAN where nothing can be compared */
    uint64_t weights;               /* of the model, as results know it */
    int advices;                    /* filled by cgs_learned_advise */
    char advice[CGS_LEARNED_ADVICE][CGS_LEARNED_SENTENCE];
} cgs_learned;

typedef struct cgs_learned_options {
    const char *model, *data;
    cgs_device *device;
    /* frames done of all; false stops with CGS_ESTOPPED.  May be NULL. */
    bool (*progress)(void *user, const char *what, double done, double total);
    void *user;
} cgs_learned_options;

/* LeWM alone.  Data with too few episodes or blocks are CGS_EARG. */
cgs_status cgs_learned_measure(cgs_learned *r, const cgs_learned_options *o);

/* What the numbers mean and what to try, in plain words; at least one sentence. */
void cgs_learned_advise(cgs_learned *r);

/* learned.json; the caller deletes *doc.  command may be NULL. */
cgs_status cgs_learned_document(cJSON **doc, const cgs_learned *r, const char *command);
/* The file of a model directory, *doc NULL where there is none. */
cgs_status cgs_learned_read(cJSON **doc, const char *dir);

#endif /* CGS_ANALYSIS_LEARNED_H */
