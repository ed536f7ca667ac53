/* check.c - comparing, differentiating and timing the cases of the registry. */
#include "ops/check/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rng.h"
#include "core/threads.h"

/* ---- numbers that can be compared ------------------------------------------------ */

static double rms(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return n ? sqrt(sum / (double)n) : 0;
}

/* keeps the larger error; NaN counts as the largest */
static void note(cgs_mismatch *worst, const char *where, const char *name, size_t index, double got,
                 double want, double scale) {
    double difference = fabs(got - want);
    double error = difference == 0 ? 0 : difference / (fabs(want) + scale);
    if (!isfinite(got) || !isfinite(want) || isnan(error)) error = INFINITY;
    if (error <= worst->error) return;
    worst->error = error;
    worst->index = index;
    worst->got = got;
    worst->want = want;
    snprintf(worst->where, sizeof worst->where, "%s%s", where, name);
}

/* before: the size of the numbers that `want` was added to */
static void compare(cgs_mismatch *worst, const char *where, const char *name, const float *got,
                    const float *want, size_t n, double before) {
    double scale = rms(want, n) + before;
    for (size_t i = 0; i < n; i++) note(worst, where, name, i, got[i], want[i], scale);
}

/* ---- a backend against the reference --------------------------------------------------- */

/* Everything a run produces, in one array: out, then gradients and state of leaves. */
static size_t result_count(const cgs_op_trial *t) {
    size_t n = cgs_numel(t->out);
    for (int i = 0; i < t->leaves; i++) n += cgs_numel(t->leaf[i].x);
    return n;
}

static cgs_status read_results(cgs_op_trial *t, float *to) {
    CGS_TRY(cgs_tensor_read(t->tape, t->out, to));
    to += cgs_numel(t->out);
    for (int i = 0; i < t->leaves; i++) {
        const cgs_op_leaf *l = &t->leaf[i];
        if (l->state) CGS_TRY(cgs_tensor_read(t->tape, l->x, to));
        if (l->x->wants_grad && t->gradient) CGS_TRY(cgs_tensor_read_grad(t->tape, l->x, to));
        to += cgs_numel(l->x);
    }
    return CGS_OK;
}

static void compare_results(cgs_mismatch *worst, const cgs_op_trial *t, const float *got,
                            const float *want, bool twice, bool state) {
    size_t n = cgs_numel(t->out);
    compare(worst, "out", "", got, want, n, 0);
    for (int i = 0; i < t->leaves; i++) {
        const cgs_op_leaf *l = &t->leaf[i];
        got += n;
        want += n;
        n = cgs_numel(l->x);
        bool gradient = l->x->wants_grad && t->gradient;
        if (gradient || (l->state && state))
            compare(worst, gradient ? "d " : "", l->x->name, got, want, n,
                    gradient && twice ? CGS_PROBE_SIZE : 0);
    }
}

cgs_status cgs_check_eval(const cgs_op_case *c, cgs_setup judge, cgs_setup other, bool twice,
                          cgs_mismatch *worst) {
    cgs_setup setup[2] = {judge, other};
    cgs_op_trial trial[2] = {{0}, {0}};
    float *result[3] = {NULL, NULL, NULL};
    cgs_status rc = CGS_OK;

    *worst = (cgs_mismatch){.error = 0, .where = "nowhere"};
    for (int i = 0; i < 2 && rc == CGS_OK; i++)
        rc = cgs_op_trial_create(&trial[i], c, setup[i].device, setup[i].act, twice,
                                 judge.act != other.act);
    for (int i = 0; i < 3 && rc == CGS_OK; i++) {
        result[i] = calloc(result_count(&trial[0]), sizeof(float));
        if (!result[i]) rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its results", c->name);
    }
    for (int i = 0; i < 2 && rc == CGS_OK; i++) {
        rc = cgs_op_trial_poison(&trial[i]);
        if (rc == CGS_OK) rc = cgs_op_trial_run(&trial[i]);
        if (rc == CGS_OK) rc = read_results(&trial[i], result[i]);
    }
    if (rc == CGS_OK) compare_results(worst, &trial[1], result[1], result[0], twice, true);

    /* again on the same tape: the same bits, except for accumulating state */
    if (rc == CGS_OK) rc = cgs_op_trial_run(&trial[1]);
    if (rc == CGS_OK) rc = read_results(&trial[1], result[2]);
    if (rc == CGS_OK) {
        cgs_mismatch again = {.error = 0};
        compare_results(&again, &trial[1], result[2], result[1], twice, false);
        if (again.error > 0) {
            *worst = again;
            worst->error = INFINITY;
        }
    }
    for (int i = 0; i < 3; i++) free(result[i]);
    for (int i = 0; i < 2; i++)
        if (trial[i].tape) cgs_op_trial_destroy(&trial[i]);
    return rc;
}

/* ---- the gradient against differences ---------------------------------------------- */

typedef struct gradient_test {
    cgs_op_trial *t;
    cgs_op_leaf *l;
    float *moved;     /* (numel of leaf) */
    float *out;       /* (numel of out)  */
    const float *dir; /* (numel of leaf) */
} gradient_test;

/* sum out*weight with the leaf moved by h along dir, in double */
static cgs_status value_at(const gradient_test *s, double h, double *value) {
    size_t n = cgs_numel(s->l->x);
    for (size_t i = 0; i < n; i++) s->moved[i] = (float)(s->l->value[i] + h * s->dir[i]);
    CGS_TRY(cgs_tensor_write(s->t->tape, s->l->x, s->moved));
    cgs_tape_forward(s->t->tape);
    CGS_TRY(cgs_tensor_read(s->t->tape, s->t->out, s->out));
    *value = 0;
    for (size_t i = 0; i < cgs_numel(s->t->out); i++)
        *value += (double)s->out[i] * s->t->probe[0].value[i];
    return CGS_OK;
}

/* the directional derivative along dir from four points: its error falls with the fourth power of h
 */
static cgs_status difference(const gradient_test *s, double h, double *d) {
    double f[4];
    CGS_TRY(value_at(s, h, &f[0]));
    CGS_TRY(value_at(s, -h, &f[1]));
    CGS_TRY(value_at(s, 2 * h, &f[2]));
    CGS_TRY(value_at(s, -2 * h, &f[3]));
    *d = (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * h);
    return cgs_tensor_write(s->t->tape, s->l->x, s->l->value);
}

enum { ELEMENTS = 12, MANY = 4096 };

/* grad (n), dir (n): dir is scratch */
static cgs_status check_leaf(gradient_test *s, const float *grad, float *dir, double h,
                             cgs_mismatch *worst) {
    size_t n = cgs_numel(s->l->x);
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    double scale = rms(grad, n);
    /* one element of very many hardly moves the result: its difference would be all rounding */
    bool small = n <= MANY && cgs_numel(s->t->out) <= MANY;
    s->dir = dir;
    for (int k = 0; k < (small ? 3 : 1); k++) {
        double along = 0, d;
        for (size_t i = 0; i < n; i++) {
            dir[i] = cgs_rng_u64(&r) & 1 ? 1.0f : -1.0f;
            along += (double)dir[i] * grad[i];
        }
        CGS_TRY(difference(s, h, &d));
        note(worst, "along d ", s->l->x->name, (size_t)k, along, d, scale * sqrt((double)n));
    }
    for (size_t k = 0; small && k < (n < ELEMENTS ? n : ELEMENTS); k++) {
        size_t i = n <= ELEMENTS ? k : (size_t)cgs_rng_below(&r, n);
        double d;
        memset(dir, 0, n * sizeof *dir);
        dir[i] = 1;
        CGS_TRY(difference(s, h, &d));
        note(worst, "d ", s->l->x->name, i, grad[i], d, scale);
    }
    return CGS_OK;
}

cgs_status cgs_check_grad(const cgs_op_case *c, cgs_device *d, cgs_mismatch *worst) {
    cgs_op_trial t;
    *worst = (cgs_mismatch){.error = 0, .where = "nowhere"};
    CGS_TRY(cgs_op_trial_create(&t, c, d, CGS_F32, false, false));
    cgs_status rc = CGS_OK;
    for (int i = 0; i < t.leaves && rc == CGS_OK && t.gradient; i++) {
        if (!t.leaf[i].x->wants_grad) continue;
        size_t n = cgs_numel(t.leaf[i].x);
        float *grad = malloc(n * sizeof *grad), *dir = malloc(n * sizeof *dir);
        gradient_test s = {&t, &t.leaf[i], malloc(n * sizeof(float)),
                           malloc(cgs_numel(t.out) * sizeof(float)), dir};
        if (!grad || !dir || !s.moved || !s.out)
            rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its differences", c->name);
        /* a full run for each leaf: forward runs may reuse the memory of gradients */
        if (rc == CGS_OK) rc = cgs_op_trial_run(&t);
        if (rc == CGS_OK) rc = cgs_tensor_read_grad(t.tape, t.leaf[i].x, grad);
        if (rc == CGS_OK) rc = check_leaf(&s, grad, dir, c->step, worst);
        free(grad);
        free(dir);
        free(s.moved);
        free(s.out);
    }
    cgs_op_trial_destroy(&t);
    return rc;
}

/* ---- tangents against gradients, differences and each other ------------------------------ */

enum { DIRECTIONS = 19 }; /* more than are pushed together, and not a multiple */

/* the result with all inputs moved by h along direction p */
static cgs_status result_at(cgs_op_trial *t, int p, double h, float *moved, float *out) {
    for (int i = 0; i < t->leaves; i++) {
        const cgs_op_leaf *l = &t->leaf[i];
        for (size_t k = 0; l->tangent && k < cgs_numel(l->x); k++)
            moved[k] = (float)(l->value[k] + h * l->tangent[k * DIRECTIONS + (size_t)p]);
        if (l->tangent) CGS_TRY(cgs_tensor_write(t->tape, l->x, moved));
    }
    cgs_tape_forward(t->tape);
    return cgs_tensor_read(t->tape, t->out, out);
}

/* memory for a check of tangents, of n values in a result and at most most in a leaf */
typedef struct tangent_test {
    float *tangent, *moved, *grad; /* (n, DIRECTIONS), (most), (most) */
    float *out[4];                 /* (n) */
    double along[DIRECTIONS];      /* the gradient's projections */
} tangent_test;

static cgs_status tangent_memory(tangent_test *s, const cgs_op_trial *t) {
    size_t n = cgs_numel(t->out), most = 1;
    for (int i = 0; i < t->leaves; i++)
        if (cgs_numel(t->leaf[i].x) > most) most = cgs_numel(t->leaf[i].x);
    *s = (tangent_test){.tangent = malloc((n * (DIRECTIONS + 4) + 2 * most) * sizeof(float))};
    if (!s->tangent) return cgs_fail(CGS_ENOMEM, "tangents: no memory");
    s->moved = s->tangent + n * DIRECTIONS;
    s->grad = s->moved + most;
    for (size_t i = 0; i < 4; i++) s->out[i] = s->grad + most + i * n;
    return CGS_OK;
}

/* <u, J v> = <J' u, v> */
static cgs_status against_gradient(tangent_test *s, cgs_op_trial *t, cgs_mismatch *worst) {
    double size = 0;
    for (int i = 0; i < t->leaves; i++) {
        const cgs_op_leaf *l = &t->leaf[i];
        if (!l->tangent) continue;
        CGS_TRY(cgs_tensor_read_grad(t->tape, l->x, s->grad));
        for (size_t k = 0; k < cgs_numel(l->x); k++) {
            size += (double)s->grad[k] * s->grad[k];
            for (int p = 0; p < DIRECTIONS; p++)
                s->along[p] += (double)s->grad[k] * l->tangent[k * DIRECTIONS + (size_t)p];
        }
    }
    for (int p = 0; p < DIRECTIONS; p++) {
        double sum = 0;
        for (size_t i = 0; i < cgs_numel(t->out); i++)
            sum += (double)s->tangent[i * DIRECTIONS + (size_t)p] * t->probe[0].value[i];
        note(worst, "projected ", "tangent", (size_t)p, sum, s->along[p], sqrt(size));
    }
    return CGS_OK;
}

static cgs_status against_differences(tangent_test *s, cgs_op_trial *t, double h, int p,
                                      cgs_mismatch *worst) {
    static const double steps[] = {1, -1, 2, -2};
    size_t n = cgs_numel(t->out);
    double scale = 0;
    for (int i = 0; i < 4; i++) CGS_TRY(result_at(t, p, steps[i] * h, s->moved, s->out[i]));
    for (size_t i = 0; i < n; i++) {
        double v = s->tangent[i * DIRECTIONS + (size_t)p];
        scale += v * v / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double d = (8 * ((double)s->out[0][i] - s->out[1][i]) - s->out[2][i] + s->out[3][i]);
        double got = s->tangent[i * DIRECTIONS + (size_t)p], want = d / (12 * h);
        /* eighteen halves of a last digit, at most, are the results' rounding */
        double rounding = 18 * 0x1p-24 * fabs((double)s->out[0][i]) / (12 * h);
        if (fabs(got - want) > rounding) note(worst, "tangent", "", i, got, want, sqrt(scale));
    }
    return CGS_OK;
}

cgs_status cgs_check_tangent(const cgs_op_case *c, cgs_device *d, cgs_mismatch *worst) {
    cgs_op_trial t;
    tangent_test s = {0};
    *worst = (cgs_mismatch){.error = 0, .where = "nowhere"};
    CGS_TRY(cgs_op_trial_create_pushing(&t, c, d, CGS_F32, DIRECTIONS));
    cgs_status rc = CGS_OK;
    if (t.out->tangent) rc = tangent_memory(&s, &t);
    if (s.tangent && rc == CGS_OK) {
        cgs_tape_push(t.tape);
        rc = cgs_tensor_read_tangent(t.tape, t.out, s.tangent);
        if (rc == CGS_OK) rc = cgs_op_trial_run(&t);
        if (rc == CGS_OK) rc = against_gradient(&s, &t, worst);
        for (int p = 0; p < DIRECTIONS && rc == CGS_OK; p += DIRECTIONS - 1)
            rc = against_differences(&s, &t, c->step, p, worst);
    }
    free(s.tangent);
    cgs_op_trial_destroy(&t);
    return rc;
}

static cgs_status push(const cgs_op_case *c, cgs_setup s, cgs_op_trial *t, float **tangent) {
    CGS_TRY(cgs_op_trial_create_pushing(t, c, s.device, s.act, DIRECTIONS));
    *tangent = calloc(cgs_numel(t->out) * DIRECTIONS, sizeof **tangent);
    if (!*tangent) return cgs_fail(CGS_ENOMEM, "tangents: no memory");
    if (!t->out->tangent) return CGS_OK;
    CGS_TRY(cgs_op_trial_poison(t));
    cgs_tape_push(t->tape);
    return cgs_tensor_read_tangent(t->tape, t->out, *tangent);
}

cgs_status cgs_check_push(const cgs_op_case *c, cgs_setup judge, cgs_setup other,
                          cgs_mismatch *worst) {
    cgs_op_trial t[2] = {{0}, {0}};
    float *tangent[2] = {NULL, NULL};
    *worst = (cgs_mismatch){.error = 0, .where = "nowhere"};
    cgs_status rc = push(c, judge, &t[0], &tangent[0]);
    if (rc == CGS_OK) rc = push(c, other, &t[1], &tangent[1]);
    if (rc == CGS_OK)
        compare(worst, "tangent", "", tangent[1], tangent[0], cgs_numel(t[0].out) * DIRECTIONS, 0);
    for (int i = 0; i < 2; i++) {
        free(tangent[i]);
        if (t[i].tape) cgs_op_trial_destroy(&t[i]);
    }
    return rc;
}

/* ---- speed ---------------------------------------------------------------------------- */

enum { MIN_RUNS = 5, MAX_RUNS = 1000 };

static cgs_status time_one(cgs_op_trial *t, cgs_op_fn fn, double min_seconds, cgs_timing *out) {
    double seconds[MAX_RUNS], total = 0;
    int runs;
    fn(t->device, t->record); /* warm up */
    CGS_TRY(t->device->ops->sync(t->device));
    for (runs = 0; runs < MAX_RUNS && (runs < MIN_RUNS || total < min_seconds); runs++) {
        double start = cgs_now();
        fn(t->device, t->record);
        CGS_TRY(t->device->ops->sync(t->device));
        total += seconds[runs] = cgs_now() - start;
    }
    out->seconds = cgs_measured_median(seconds, runs);
    return CGS_OK;
}

cgs_status cgs_measure(const cgs_op_case *c, cgs_setup s, double min_seconds, cgs_timing *forward,
                       cgs_timing *backward) {
    cgs_op_trial t;
    *forward = *backward = (cgs_timing){0};
    CGS_TRY(cgs_op_trial_create(&t, c, s.device, s.act, false, false));
    forward->cost = cgs_forward_cost(t.record);
    backward->cost = cgs_backward_cost(t.record);
    const cgs_backend *ops = s.device->ops;
    cgs_status rc = cgs_op_trial_run(&t); /* gives `out` a gradient */
    if (rc == CGS_OK) rc = time_one(&t, ops->forward[c->op], min_seconds, forward);
    if (rc == CGS_OK && t.gradient) rc = time_one(&t, ops->backward[c->op], min_seconds, backward);
    cgs_op_trial_destroy(&t);
    return rc;
}
