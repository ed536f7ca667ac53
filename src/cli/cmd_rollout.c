/* cmd_rollout.c - cgs rollout: latents that a model predicts for candidate action sequences. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model_run.h"
#include "cli/plain.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "ops/tape.h"

#define BATCH 64
#define STEPS_MAX 256
#define FILE_LIMIT ((size_t)256 << 20)
#define DIM(...) ((const int[]){__VA_ARGS__})

/* candidates of a file, each H blocks of `block` values */
typedef struct plans {
    float *values; /* (count, H, block) */
    int count, H, block;
} plans;

static cgs_status parse_plan(plans *p, const char *line, const char *what, double *numbers) {
    int n, capacity = STEPS_MAX * p->block;
    CGS_TRY(cgs_parse_numbers(line, what, capacity, numbers, &n));
    if (n % p->block || n > capacity)
        return cgs_fail(
            CGS_EARG, "%s: %d numbers, expected a multiple of the action block %d, up to %d steps",
            what, n, p->block, STEPS_MAX);
    if (p->H && n != p->H * p->block)
        return cgs_fail(CGS_EARG, "%s: %d numbers, the candidates before have %d", what, n,
                        p->H * p->block);
    p->H = n / p->block;
    float *more = realloc(p->values, ((size_t)p->count + 1) * (size_t)n * sizeof *more);
    if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for candidates", what);
    p->values = more;
    for (int i = 0; i < n; i++) more[(size_t)p->count * (size_t)n + (size_t)i] = (float)numbers[i];
    p->count++;
    return CGS_OK;
}

/* Empty lines and comments are skipped. */
static cgs_status read_plans(plans *p, const char *path) {
    char *text;
    size_t bytes;
    CGS_TRY(cgs_read_file(path, FILE_LIMIT, &text, &bytes));
    double *numbers = malloc((size_t)STEPS_MAX * (size_t)p->block * sizeof *numbers);
    cgs_status rc = numbers ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory for a line", path);
    int number = 0;
    for (char *line = text; rc == CGS_OK && line;) {
        char *end = strchr(line, '\n'), what[4200];
        if (end) *end = '\0';
        snprintf(what, sizeof what, "%s:%d", path, ++number);
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t\r")] != '\0') rc = parse_plan(p, line, what, numbers);
        line = end ? end + 1 : NULL;
    }
    if (rc == CGS_OK && !p->count) rc = cgs_fail(CGS_EARG, "%s: contains no candidate", path);
    free(numbers);
    free(text);
    return rc == CGS_EARG ? CGS_EFORMAT : rc; /* a bad file is not a usage error */
}

static void show(int candidate, const float *terminal, int D, float cost, bool json) {
    if (!json) {
        printf("%6d  cost %.6g\n", candidate, (double)cost);
        return;
    }
    printf("{\"candidate\":%d,\"terminal\":[", candidate);
    for (int i = 0; i < D; i++) printf("%s%.9g", i ? "," : "", (double)terminal[i]);
    printf("],\"cost\":%.9g}\n", (double)cost);
}

/* frames (2, S, S, 3): start, goal */
static cgs_status imagine(cgs_model_run *r, const uint8_t *frames, const plans *p, bool json) {
    int S = r->model->config.image_size, D = r->model->config.width;
    int K = p->count < BATCH ? p->count : BATCH;
    size_t plan = (size_t)p->H * (size_t)p->block;
    cgs_device *d = &r->device;
    cgs_tape *t;
    cgs_tensor *ahead[STEPS_MAX];
    CGS_TRY(cgs_tape_create(&t, d, r->act));
    cgs_tensor *pixels = cgs_input(t, "frames", CGS_U8, 4, DIM(2, S, S, 3));
    cgs_tensor *actions = cgs_input(t, "actions", CGS_F32, 3, DIM(K, p->H, p->block));
    cgs_tensor *z = cgs_reshape(t, cgs_lewm_encode(t, r->model, pixels, false), 3, DIM(1, 2, D));
    cgs_tensor *start = cgs_repeat(t, cgs_take(t, z, 0, 1), K);
    cgs_tensor *goal = cgs_reshape(t, cgs_take(t, z, 1, 1), 2, DIM(1, D));
    cgs_lewm_rollout(t, r->model, start, actions, ahead, p->H);
    cgs_tensor *terminal = cgs_keep(cgs_reshape(t, ahead[p->H - 1], 2, DIM(K, D)));
    cgs_tensor *cost = cgs_keep(cgs_sqdist(t, terminal, goal));
    cgs_status rc = cgs_tape_finish(t, NULL);

    float *batch = calloc((size_t)K * plan, sizeof *batch);                 /* (K, H, block) */
    float *end = malloc((size_t)K * (size_t)D * sizeof *end), costs[BATCH]; /* (K, D), (K)   */
    if (rc == CGS_OK && (!batch || !end)) rc = cgs_fail(CGS_ENOMEM, "no memory for candidates");
    if (rc == CGS_OK) rc = d->ops->upload(d, pixels->data, frames, 2 * (size_t)S * (size_t)S * 3);
    for (int i = 0; rc == CGS_OK && i < p->count; i += K) {
        int n = p->count - i < K ? p->count - i : K;
        memcpy(batch, p->values + (size_t)i * plan, (size_t)n * plan * sizeof *batch);
        rc = cgs_tensor_write(t, actions, batch);
        if (rc != CGS_OK) break;
        cgs_tape_forward(t);
        rc = cgs_tensor_read(t, terminal, end);
        if (rc == CGS_OK) rc = cgs_tensor_read(t, cost, costs);
        for (int k = 0; rc == CGS_OK && k < n; k++)
            show(i + k, end + (size_t)k * (size_t)D, D, costs[k], json);
    }
    free(batch);
    free(end);
    cgs_tape_destroy(t);
    return rc;
}

static cgs_status rollout(cgs_model_run *r, const char *start, const char *goal,
                          const char *actions, bool json) {
    CGS_TRY(cgs_model_run_open(r));
    int S = r->model->config.image_size;
    size_t frame = (size_t)S * (size_t)S * 3;
    plans p = {.block = cgs_lewm_action_block(&r->model->config)};
    uint8_t *frames = malloc(2 * frame);
    cgs_status rc = frames ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for images");
    if (rc == CGS_OK) rc = cgs_read_frame(start, S, frames);
    if (rc == CGS_OK) rc = cgs_read_frame(goal, S, frames + frame);
    if (rc == CGS_OK) rc = read_plans(&p, actions);
    if (rc == CGS_OK) rc = imagine(r, frames, &p, json);
    free(p.values);
    free(frames);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_model_run r = CGS_MODEL_RUN_DEFAULTS;
    const char *start = NULL, *goal = NULL, *actions = NULL;
    bool json = false;
    const cgs_opt opts[] = {
        CGS_MODEL_RUN_OPTIONS(r),
        {"start", "PNG", "frame that the plan starts from", OPT_STR, &start, true},
        {"goal", "PNG", "goal frame", OPT_STR, &goal, true},
        {"actions", "FILE", "candidates, one per line", OPT_STR, &actions, true},
        {"json", NULL, "one JSON object per line", OPT_FLAG, &json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = rollout(&r, start, goal, actions, json);
    cgs_model_run_close(&r);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_rollout = {
    "rollout", "--model DIR --start a.png --goal b.png --actions FILE [--json]",
    "predicts where action sequences lead, and how far from the goal they end",
    "Each line of FILE is one candidate: H action blocks of standardised values, separated by\n"
    "commas; H follows from their count.  Prints the terminal latent of each and its squared\n"
    "distance to the goal's latent.",
    run};
