/* probe_fit.c - see probe_fit.h. */
#include "train/probe_fit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/statistics.h"
#include "core/team.h"
#include "data/windows.h"
#include "model/params.h"
#include "ops/tape.h"
#include "train/optimiser.h"

enum { LAYERS = 3 };

static const uint64_t seeds[CGS_PROBE_SEEDS] = {7, 17, 27};

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_probe_config, kind, name, initial, low, high, key, doc)
static const cgs_field fields[] = {CGS_PROBE_CONFIG(ROW)};
#undef ROW

cgs_section cgs_probe_section(cgs_probe_config *c) {
    return (cgs_section){fields, (int)(sizeof fields / sizeof fields[0]), c};
}

/* one net of an ensemble while it is fitted */
typedef struct net {
    const cgs_probe_config *c;
    const cgs_parts *p;
    int size[LAYERS + 1];
    cgs_device device;
    cgs_params params;
    cgs_tensor w[LAYERS], b[LAYERS];
    cgs_tape *fit, *run; /* with gradients, and forward alone; both over `batch` rows */
    cgs_tensor *fit_in, *fit_target, *run_in, *run_out;
    int batch;
    const float *x, *y; /* (rows, k), (rows, m) standardised */
    float *batch_x, *batch_y;
    float *best; /* (trainable) */
    int64_t *order;
} net;

static void declare(net *n) {
    for (int i = 0; i < LAYERS; i++) {
        float bound = 1.0f / sqrtf((float)n->size[i]);
        const int w[2] = {n->size[i + 1], n->size[i]}, b[1] = {n->size[i + 1]};
        cgs_param_declare(&n->params, &n->w[i], CGS_INIT_UNIFORM, bound, 2, w, "layers.%d.weight",
                          i);
        cgs_param_declare(&n->params, &n->b[i], CGS_INIT_UNIFORM, bound, 1, b, "layers.%d.bias", i);
    }
}

static cgs_tensor *forward(cgs_tape *t, net *n, cgs_tensor *x) {
    for (int i = 0; i < LAYERS; i++) {
        x = cgs_linear_f32(t, x, &n->w[i], &n->b[i]);
        if (i + 1 < LAYERS) x = cgs_activate_f32(t, x, CGS_GELU);
    }
    return x;
}

static void net_free(net *n) {
    cgs_tape_destroy(n->fit);
    cgs_tape_destroy(n->run);
    cgs_params_free(&n->params);
    cgs_device_close(&n->device);
    free(n->batch_x);
    free(n->best);
    free(n->order);
}

static cgs_status net_build(net *n) {
    const int in[2] = {n->batch, n->size[0]}, out[2] = {n->batch, n->size[LAYERS]};
    CGS_TRY(cgs_device_open(&n->device, "cpu", 1));
    declare(n);
    CGS_TRY(cgs_params_bind(&n->params, &n->device, true));
    declare(n);
    n->batch_x = malloc((size_t)n->batch * (size_t)(in[1] + out[1]) * sizeof *n->batch_x);
    n->best = malloc(n->params.trainable * sizeof *n->best);
    n->order = malloc((size_t)n->p->fit * sizeof *n->order);
    if (!n->batch_x || !n->best || !n->order) return cgs_fail(CGS_ENOMEM, "probe: no memory");
    n->batch_y = n->batch_x + (size_t)n->batch * (size_t)in[1];

    CGS_TRY(cgs_tape_create(&n->fit, &n->device, CGS_F32));
    n->fit_in = cgs_input(n->fit, "x", CGS_F32, 2, in);
    n->fit_target = cgs_input(n->fit, "y", CGS_F32, 2, out);
    CGS_TRY(cgs_tape_finish(n->fit, cgs_mse(n->fit, forward(n->fit, n, n->fit_in), n->fit_target)));
    CGS_TRY(cgs_tape_create(&n->run, &n->device, CGS_F32));
    cgs_tape_freeze_parameters(n->run);
    n->run_in = cgs_input(n->run, "x", CGS_F32, 2, in);
    n->run_out = cgs_keep(forward(n->run, n, n->run_in));
    return cgs_tape_finish(n->run, NULL);
}

static cgs_status update(net *n, const int64_t *order, uint64_t number) {
    size_t k = (size_t)n->size[0], m = (size_t)n->size[LAYERS];
    for (size_t i = 0; i < (size_t)n->batch; i++) {
        memcpy(n->batch_x + i * k, n->x + (size_t)order[i] * k, k * sizeof *n->x);
        memcpy(n->batch_y + i * m, n->y + (size_t)order[i] * m, m * sizeof *n->y);
    }
    CGS_TRY(cgs_tensor_write(n->fit, n->fit_in, n->batch_x));
    CGS_TRY(cgs_tensor_write(n->fit, n->fit_target, n->batch_y));
    cgs_tape_forward(n->fit);
    const cgs_adamw a = cgs_adamw_usual(n->c->lr, 0, number);
    return cgs_descend(n->fit, &n->params, &a);
}

/* rows first .. first+count-1 -> out (count, m), standardised */
static cgs_status predict(net *n, int first, int count, float *out) {
    size_t k = (size_t)n->size[0], m = (size_t)n->size[LAYERS];
    for (int at = 0; at < count; at += n->batch) {
        size_t rows = (size_t)(count - at < n->batch ? count - at : n->batch);
        memcpy(n->batch_x, n->x + (size_t)(first + at) * k, rows * k * sizeof *n->x);
        CGS_TRY(cgs_tensor_write(n->run, n->run_in, n->batch_x));
        cgs_tape_forward(n->run);
        CGS_TRY(cgs_tensor_read(n->run, n->run_out, n->batch_y));
        memcpy(out + (size_t)at * m, n->batch_y, rows * m * sizeof *out);
    }
    return CGS_OK;
}

static cgs_status validate(net *n, float *out, double *error) {
    size_t m = (size_t)n->size[LAYERS], values = (size_t)n->p->validation * m;
    const float *want = n->y + (size_t)n->p->fit * m;
    CGS_TRY(predict(n, n->p->fit, n->p->validation, out));
    *error = 0;
    for (size_t i = 0; i < values; i++)
        *error += ((double)out[i] - want[i]) * ((double)out[i] - want[i]) / (double)values;
    if (!isfinite(*error))
        return cgs_fail(CGS_ENUMERIC, "probe: the validation error is %g", *error);
    return CGS_OK;
}

/* out: (rows, m) standardised predictions of the best epoch */
static cgs_status net_fit(net *n, uint64_t seed, float *out, int *best_epoch, double *best) {
    int batches = n->p->fit / n->batch;
    uint64_t updates = 0;
    CGS_TRY(cgs_params_init(&n->params, seed));
    *best = INFINITY;
    *best_epoch = 0;
    for (int e = 0; e < n->c->epochs && e - *best_epoch < n->c->patience; e++) {
        double error;
        cgs_epoch_order(cgs_rng_stream(seed, CGS_STREAM_DATA, 0).key, (uint64_t)e, n->p->fit,
                        n->order);
        for (int b = 0; b < batches; b++)
            CGS_TRY(update(n, n->order + (size_t)b * (size_t)n->batch, ++updates));
        CGS_TRY(validate(n, out, &error));
        if (error < *best) {
            *best = error;
            *best_epoch = e + 1;
            CGS_TRY(cgs_params_keep(&n->params, n->best));
        }
    }
    CGS_TRY(cgs_params_restore(&n->params, n->best));
    return predict(n, 0, cgs_parts_rows(n->p), out);
}

/* ---- many of them ------------------------------------------------------------------ */

/* what the three nets of a task share */
typedef struct ensemble {
    float *x, *y, *out; /* (rows, k), (rows, m), (seeds, rows, m) */
    double *mean, *sd;  /* of y (m) */
} ensemble;

static void to_float(const double *from, int rows, int cols, const double *mean, const double *sd,
                     float *to) {
    for (size_t i = 0; i < (size_t)rows * (size_t)cols; i++)
        to[i] = (float)((from[i] - mean[i % (size_t)cols]) / sd[i % (size_t)cols]);
}

static void ensemble_free(ensemble *e) {
    free(e->x);
    free(e->mean);
}

static cgs_status ensemble_make(ensemble *e, const cgs_parts *p, const cgs_mlp_task *t) {
    int rows = cgs_parts_rows(p);
    size_t n = (size_t)rows, k = (size_t)t->k, m = (size_t)t->m;
    e->x = malloc(n * (k + m * (1 + CGS_PROBE_SEEDS)) * sizeof *e->x);
    e->mean = malloc((2 * m + 2 * k) * sizeof *e->mean);
    if (!e->x || !e->mean) return cgs_fail(CGS_ENOMEM, "probe: no memory for %d rows", rows);
    e->y = e->x + n * k;
    e->out = e->y + n * m;
    e->sd = e->mean + m;
    double *x_mean = e->sd + m, *x_sd = x_mean + k;
    cgs_column_moments(t->x, p->fit, t->k, x_mean, x_sd);
    cgs_column_moments(t->y, p->fit, t->m, e->mean, e->sd);
    to_float(t->x, rows, t->k, x_mean, x_sd, e->x);
    to_float(t->y, rows, t->m, e->mean, e->sd, e->y);
    return CGS_OK;
}

static void average(const ensemble *e, int rows, cgs_mlp_task *t) {
    size_t n = (size_t)rows * (size_t)t->m;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t s = 0; s < CGS_PROBE_SEEDS; s++) sum += (double)e->out[s * n + i];
        size_t j = i % (size_t)t->m;
        t->out[i] = e->mean[j] + e->sd[j] * sum / CGS_PROBE_SEEDS;
    }
}

static cgs_status fit_one(const cgs_parts *p, const cgs_probe_config *c, cgs_mlp_task *t,
                          const ensemble *e, int s) {
    net n = {.c = c,
             .p = p,
             .size = {t->k, c->hidden, c->hidden, t->m},
             .batch = c->batch < p->fit ? c->batch : p->fit,
             .x = e->x,
             .y = e->y};
    size_t values = (size_t)cgs_parts_rows(p) * (size_t)t->m;
    cgs_status rc = net_build(&n);
    if (rc == CGS_OK)
        rc = net_fit(&n, seeds[s], e->out + (size_t)s * values, &t->best_epoch[s],
                     &t->validation[s]);
    net_free(&n);
    return rc;
}

/* what the threads share */
typedef struct fitting {
    const cgs_parts *p;
    const cgs_probe_config *c;
    cgs_mlp_task *tasks;
    ensemble *e;
    int total, done;
    cgs_probe_fit_observer watch;
    void *user;
    pthread_mutex_t lock; /* of done and watch */
    cgs_failure failure;
} fitting;

static void fit_all(void *context) {
    fitting *f = context;
    CGS_QUEUE (i, (size_t)f->total) {
        size_t task = i / CGS_PROBE_SEEDS;
        if (cgs_failure_any(&f->failure)) continue;
        cgs_status rc =
            fit_one(f->p, f->c, &f->tasks[task], &f->e[task], (int)(i % CGS_PROBE_SEEDS));
        pthread_mutex_lock(&f->lock);
        f->done++;
        if (rc == CGS_OK && f->watch && !f->watch(f->user, f->done, f->total))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
        pthread_mutex_unlock(&f->lock);
        cgs_failure_note(&f->failure, rc);
    }
}

cgs_status cgs_probe_fit(const cgs_parts *p, const cgs_probe_config *c, cgs_mlp_task *tasks,
                         int count, cgs_probe_fit_observer watch, void *user) {
    if (p->fit < 1 || p->validation < 1)
        return cgs_fail(CGS_EARG, "probe: %d rows to fit and %d to validate; both need one", p->fit,
                        p->validation);
    ensemble *e = calloc((size_t)count + 1, sizeof *e);
    if (!e) return cgs_fail(CGS_ENOMEM, "probe: no memory for %d probes", count);
    cgs_status rc = CGS_OK;
    for (int i = 0; i < count && rc == CGS_OK; i++) rc = ensemble_make(&e[i], p, &tasks[i]);
    if (rc == CGS_OK) {
        fitting f = {.p = p,
                     .c = c,
                     .tasks = tasks,
                     .e = e,
                     .total = count * CGS_PROBE_SEEDS,
                     .watch = watch,
                     .user = user,
                     .lock = PTHREAD_MUTEX_INITIALIZER};
        cgs_together(0, fit_all, &f);
        rc = cgs_failure_report(&f.failure);
    }
    for (int i = 0; i < count; i++) {
        if (rc == CGS_OK) average(&e[i], cgs_parts_rows(p), &tasks[i]);
        ensemble_free(&e[i]);
    }
    free(e);
    return rc;
}
