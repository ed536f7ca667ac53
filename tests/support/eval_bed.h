/* eval_bed.h - shared by the tests of the closed loop and of evaluations: a folder with a small
 * dataset of TwoRooms and two models with random weights, and all of them opened.
 *
 * The models plan badly, but a history and a result file do not care. */
#ifndef CGS_TESTS_EVAL_BED_H
#define CGS_TESTS_EVAL_BED_H

#include "eval/start_states.h"
#include "rollout/loaded_model.h"

enum { BED_SIDE = 64, BED_EPISODES = 24 };

/* paths; they exist between bed_setup and bed_teardown, which cmocka calls once a program */
extern char bed_data[128], bed_model_a[128], bed_model_b[128];
int bed_setup(void **state);
int bed_teardown(void **state);

/* A path in the folder; the last eight results stay valid. */
const char *bed_path(const char *name);

typedef struct bed { /* the dataset, model a and starts */
    cgs_device d;
    cgs_dataset *data;
    cgs_loaded_model s;
    const cgs_env_class *env;
    cgs_starts starts;
    cgs_start_states cases;
} bed;

/* Fails the running test where it cannot.  count starts, contexts of `context` frames. */
void bed_open(bed *b, int threads, int count, int context);
void bed_close(bed *b);

#endif /* CGS_TESTS_EVAL_BED_H */
