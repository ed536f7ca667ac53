/* learning_check.h - whether a model in training learns to predict.
 *
 * Its prediction error is compared with those of two trivial predictors (loss/trivial.h) as the
 * run goes on.  Training has two ways to come to nothing: it stays on a plateau, where predictions
 * are as good as the mean of all latents; or it collapses, where latents hardly differ and there is
 * nothing to predict. */
#ifndef CGS_TRAIN_LEARNING_CHECK_H
#define CGS_TRAIN_LEARNING_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "loss/trivial.h"

/* Updates from one comparison to the next. */
enum { CGS_LEARNING_EVERY = 10 };

typedef enum cgs_learning {
    CGS_LEARNING_UNKNOWN,   /* too early to say, or nothing compared    */
    CGS_LEARNING_GOES_ON,   /* better than both trivial predictors      */
    CGS_LEARNING_PLATEAU,   /* no better than the mean                  */
    CGS_LEARNING_COPIES,    /* better than the mean, not than a copy    */
    CGS_LEARNING_COLLAPSED, /* the latents hardly differ                */
} cgs_learning;

/* Zero it before the first comparison. */
typedef struct cgs_learning_check {
    cgs_learning state;
    uint64_t step;
    int count;
    double predicted, copy, mean; /* running means of the three errors */
    double most;                  /* the largest `mean` so far */
} cgs_learning_check;

/* After an update of a run of `total`; true when the state has changed. */
bool cgs_learning_check_add(cgs_learning_check *c, uint64_t step, uint64_t total, double predicted,
                            cgs_trivial trivial);

enum { CGS_LEARNING_SENTENCE = 320 };
/* What is wrong and what to try, in plain words; "" when nothing is. */
void cgs_learning_sentence(const cgs_learning_check *c, char *out, size_t size);

/* Takes a line of metrics.jsonl, parsed; lines without a comparison change nothing. */
struct cJSON;
void cgs_learning_line(cgs_learning_check *c, const struct cJSON *line);
/* Reads the metrics.jsonl of a run directory; none leaves the check at CGS_LEARNING_UNKNOWN. */
cgs_status cgs_learning_read(cgs_learning_check *c, const char *dir);

#endif /* CGS_TRAIN_LEARNING_CHECK_H */
