/* bench_ops.c - speed of operations at the sizes of the published model, and the time of a training
 * update by operation.
 *
 * The reference is the rate of a large square matrix product on the same device in the same run
 * (cgs_bench_gemm_peak): fractions of it can be compared between machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/rng.h"
#include "core/threads.h"
#include "loss/objective.h"
#include "ops/check/check.h"
#include "ops/cpu/gemm.h"

enum { RUNS = 5, WARM_UP = 3, PROJECTIONS = 1024 };

static const char *type_name(cgs_dtype t) { return t == CGS_BF16 ? "bf16" : "f32"; }

cgs_status cgs_bench_gemm(cgs_device *d, cgs_bench_fn fn, void *user) {
    for (int i = 0; i < 2; i++) {
        cgs_dtype type = i ? CGS_BF16 : CGS_F32;
        double rates[RUNS];
        char name[64];
        for (int run = 0; run < RUNS; run++) CGS_TRY(cgs_bench_gemm_peak(d, type, &rates[run]));
        snprintf(name, sizeof name, "matrix product %d^3 %s", cgs_bench_gemm_side(d),
                 type_name(type));
        fn(user, name, cgs_measured_times(cgs_measured_median(rates, RUNS), 1e-9), "GFLOP/s");
    }
    return CGS_OK;
}

/* ---- single operations ------------------------------------------------------------------ */

/* 32 frames of 257 tokens in the encoder, 128 windows of 3 in the predictor.  The sizes are
 * parameters of the operation's case in the registry. */
static const struct {
    cgs_opcode op;
    int n[CGS_CASE_SIZES];
} paper[] = {
    {CGS_OP_patchify, {32, 224, 14}},
    {CGS_OP_linear, {8192, 588, 192, 1}},
    {CGS_OP_linear, {8224, 192, 576, 1}},
    {CGS_OP_linear, {8224, 192, 192, 1}},
    {CGS_OP_linear, {8224, 192, 768, 1}},
    {CGS_OP_linear, {8224, 768, 192, 1}},
    {CGS_OP_linear, {384, 192, 3072, 0}},
    {CGS_OP_linear, {384, 1024, 192, 1}},
    {CGS_OP_linear, {384, 192, 2048, 1}},
    {CGS_OP_linear, {384, 2048, 192, 1}},
    {CGS_OP_tokens, {32, 256, 192}},
    {CGS_OP_add, {8224, 192, 1}},
    {CGS_OP_layernorm, {8224, 192, 1, 1, 12}},
    {CGS_OP_attention, {32, 257, 3, 64, 0, 1}},
    {CGS_OP_attention, {128, 3, 16, 64, 1, 1, 10}},
    {CGS_OP_attend_first, {32, 257, 3, 64, 1, 2, 0}},
    {CGS_OP_activation, {8224, 768, CGS_GELU, 4}},
    {CGS_OP_batchnorm, {512, 2048, 1}},
    {CGS_OP_directions, {1024, 192}},
    {CGS_OP_sigreg, {128, 4, 192, 1024}},
};

static void report(const char *name, const char *pass, const cgs_timing *t, double peak,
                   cgs_bench_fn fn, void *user) {
    char text[128];
    if (t->seconds.runs == 0) return;
    snprintf(text, sizeof text, "%s %s", name, pass);
    fn(user, text, cgs_measured_times(t->seconds, 1e3), "ms");
    /* a product does many operations per byte; the others are memory-bound */
    if (t->cost.flops > 16 * t->cost.bytes) {
        fn(user, text, cgs_measured_rate(1e-9 * t->cost.flops, t->seconds), "GFLOP/s");
        fn(user, text, cgs_measured_rate(100 * t->cost.flops / peak, t->seconds),
           "% of matrix product");
    } else {
        fn(user, text, cgs_measured_rate(1e-9 * t->cost.bytes, t->seconds), "GB/s");
    }
}

cgs_status cgs_bench_ops(cgs_device *d, cgs_dtype act, double seconds, cgs_bench_fn fn,
                         void *user) {
    double peak;
    CGS_TRY(cgs_bench_gemm_peak(d, act, &peak));
    for (size_t i = 0; i < sizeof paper / sizeof paper[0]; i++) {
        cgs_timing forward, backward;
        const cgs_op_case *like = cgs_op_cases;
        while (like->op != paper[i].op) like++; /* every operation has a case */
        cgs_op_case c = *like;
        memcpy(c.n, paper[i].n, sizeof c.n);
        CGS_TRY(cgs_measure(&c, (cgs_setup){d, act}, seconds, &forward, &backward));
        char name[96];
        snprintf(name, sizeof name, "%s %dx%dx%d %s", cgs_op_name(c.op), c.n[0], c.n[1], c.n[2],
                 type_name(act));
        report(name, "forward", &forward, peak, fn, user);
        report(name, "backward", &backward, peak, fn, user);
    }
    return CGS_OK;
}

void cgs_bench_choices(const cgs_device *d, void (*fn)(void *user, const cgs_bench_choice *c),
                       void *user) {
    cgs_gemm_choice c;
    if (strcmp(d->ops->name, "cpu") != 0) return;
    for (int i = 0; cgs_gemm_choice_at(d, i, &c); i++) {
        const cgs_product *p = &c.p;
        const char *form = p->a_transposed ? "A^T B" : p->b_transposed ? "A B^T" : "A B";
        cgs_bench_choice said = {.code = c.code, .why = c.why};
        if (p->accumulate || p->M * p->N <= 1) continue;
        snprintf(said.product, sizeof said.product, "%zux%zux%zu %s to %s %s%s%s", p->M, p->K, p->N,
                 type_name(p->in), type_name(p->out), form, p->bias ? " + bias" : "",
                 p->batch_invariant ? ", batch-invariant" : "");
        fn(user, &said);
    }
}

/* ---- a whole update -------------------------------------------------------------------------- */

typedef struct update {
    cgs_lewm *model;
    cgs_tape *tape;
    double *seconds; /* (RUNS, 2 records) of each record: forward, then backward in reverse */
    double flops;
} update;

/* the training objective on `windows` windows of noise */
static cgs_status update_make(update *u, cgs_device *d, const cgs_lewm_config *c, cgs_dtype act,
                              int windows) {
    const float weights[CGS_TERMS] = {
        [CGS_TERM_PRED] = 1, [CGS_TERM_SIGREG] = 0.09f, [CGS_TERM_CGS] = 0.5f};
    cgs_objective o;
    CGS_TRY(cgs_lewm_create(&u->model, c, d, true));
    CGS_TRY(cgs_params_init(&u->model->params, 1));
    CGS_TRY(cgs_tape_create(&u->tape, d, act));
    CGS_TRY(cgs_objective_build(&o, u->tape, u->model, windows, cgs_lewm_action_block(c),
                                PROJECTIONS, false, 1, true));
    CGS_TRY(cgs_tensor_write(u->tape, o.weights, weights));

    size_t n = cgs_numel(o.frames);
    uint8_t *noise = malloc(n);
    if (!noise) return cgs_fail(CGS_ENOMEM, "no memory for %zu bytes of pixels", n);
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++) noise[i] = (uint8_t)cgs_rng_u64(&r);
    cgs_status rc = d->ops->upload(d, o.frames->data, noise, n);
    free(noise);
    return rc;
}

/* the i-th call of an update: records forward, then backward in reverse */
static const cgs_record *called(const update *u, int i, bool *back) {
    int n = cgs_tape_records(u->tape);
    *back = i >= n;
    return cgs_tape_record(u->tape, *back ? 2 * n - 1 - i : i);
}

/* Times every record of one update separately.  A device with a clock is not synchronised between
 * them, so that short operations do not measure the synchronisation; others run whole segments. */
static cgs_status update_parts(update *u, cgs_device *d, int run) {
    const cgs_backend *ops = d->ops;
    int records = cgs_tape_records(u->tape), calls = 2 * records;
    double *seconds = u->seconds + run * calls;
    bool back;
    cgs_tape_set_step(u->tape, 1);
    u->flops = 0;
    if (!ops->mark) cgs_tape_forward_timed(u->tape, seconds);
    for (int i = 0; i < calls; i++) {
        const cgs_record *r = called(u, i, &back);
        double begin = cgs_now();
        if (ops->mark) ops->mark(d, i);
        if (back && !r->out->grad) continue;
        u->flops += (back ? cgs_backward_cost(r) : cgs_forward_cost(r)).flops;
        if (back || ops->mark) (back ? ops->backward : ops->forward)[r->op](d, r);
        if (ops->mark || !back) continue;
        CGS_TRY(ops->sync(d));
        seconds[i] = cgs_now() - begin;
    }
    if (!ops->mark) return CGS_OK;
    ops->mark(d, calls);
    CGS_TRY(ops->sync(d));
    for (int i = 0; i < calls; i++) seconds[i] = ops->between(d, i, i + 1);
    return CGS_OK;
}

/* one update as in training */
static cgs_status update_run(update *u, cgs_device *d, uint64_t step, double *seconds) {
    const cgs_backend *ops = d->ops;
    cgs_params *p = &u->model->params;
    double start = cgs_now();
    cgs_tape_set_step(u->tape, step);
    cgs_tape_forward(u->tape);
    cgs_tape_backward(u->tape);
    cgs_adamw adam = {.lr = 5e-5f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .eps = 1e-8f,
                      .weight_decay = 1e-3f,
                      .clip_scale = ops->sum_squares(d, p->grads, p->trainable) > 1 ? 0.5f : 1.0f,
                      .step = step};
    ops->adamw(d, &adam, p->values, p->grads, p->moment1, p->moment2, p->bf16, p->trainable);
    CGS_TRY(ops->sync(d));
    *seconds = cgs_now() - start;
    return CGS_OK;
}

static void report_by_operation(const update *u, const char *preset, cgs_dtype act, double whole,
                                cgs_bench_fn fn, void *user) {
    double sum[2][CGS_OP_COUNT][RUNS] = {{{0}}};
    int calls = 2 * cgs_tape_records(u->tape);
    bool back;
    char name[96];
    for (int i = 0; i < calls; i++) {
        const cgs_record *r = called(u, i, &back);
        for (int run = 0; run < RUNS; run++) sum[back][r->op][run] += u->seconds[run * calls + i];
    }
    for (int op = 0; op < CGS_OP_COUNT; op++)
        for (int pass = 0; pass < 2; pass++) {
            cgs_measured took = cgs_measured_median(sum[pass][op], RUNS);
            if (took.value < 1e-3 * whole) continue;
            snprintf(name, sizeof name, "update %s %s: %s %s", preset, type_name(act),
                     cgs_op_name((cgs_opcode)op), pass ? "backward" : "forward");
            fn(user, name, cgs_measured_times(took, 1e3), "ms");
        }
}

/* Records of the same operation and shape together: how often, how long, and how many bytes and
 * operations a second that is.  A fused record counts where it runs. */
static void report_by_shape(const update *u, cgs_bench_fn fn, void *user) {
    int calls = 2 * cgs_tape_records(u->tape);
    bool back, other;
    for (int i = 0; i < calls; i++) {
        const cgs_record *r = called(u, i, &back);
        const cgs_tensor *x = r->in[0] ? r->in[0] : r->out;
        double seconds[RUNS] = {0};
        cgs_cost cost = {0, 0};
        int count = 0;
        bool seen = false;
        for (int k = 0; k < calls && !seen; k++) {
            const cgs_record *s = called(u, k, &other);
            const cgs_tensor *y = s->in[0] ? s->in[0] : s->out;
            if (s->op != r->op || other != back || cgs_rows(x) != cgs_rows(y) ||
                cgs_cols(x) != cgs_cols(y) || cgs_numel(r->out) != cgs_numel(s->out) ||
                !r->next != !s->next || !r->before != !s->before)
                continue;
            seen = k < i;
            cgs_cost c = back ? cgs_backward_cost(s) : cgs_forward_cost(s);
            cost.flops += c.flops;
            cost.bytes += c.bytes;
            for (int run = 0; run < RUNS; run++) seconds[run] += u->seconds[run * calls + k];
            count++;
        }
        cgs_measured took = cgs_measured_median(seconds, RUNS);
        if (seen || took.value < 10e-6) continue;
        char name[128];
        snprintf(name, sizeof name, "%s%s%s %zux%d to %d, %d times%s", cgs_op_name(r->op),
                 r->before ? " fused with its predecessor" : "",
                 r->next ? " fused with its successor" : "", cgs_rows(x), cgs_cols(x),
                 cgs_cols(r->out), count, back ? ", backward" : "");
        fn(user, name, cgs_measured_times(took, 1e3), "ms");
        fn(user, name, cgs_measured_rate(1e-9 * cost.bytes, took), "GB/s");
        if (cost.flops > 16 * cost.bytes)
            fn(user, name, cgs_measured_rate(1e-9 * cost.flops, took), "GFLOP/s");
    }
}

static cgs_status update_report(update *u, cgs_device *d, const char *preset, cgs_dtype act,
                                int frames, bool profile, cgs_bench_fn fn, void *user) {
    double seconds[RUNS], peak;
    char name[96];
    CGS_TRY(cgs_bench_gemm_peak(d, act, &peak));
    u->seconds = calloc(RUNS * 2 * (size_t)cgs_tape_records(u->tape), sizeof *u->seconds);
    if (!u->seconds) return cgs_fail(CGS_ENOMEM, "no memory for times");
    for (int i = 0; i < WARM_UP; i++) CGS_TRY(update_run(u, d, 1 + (uint64_t)i, seconds));
    for (int i = 0; i < RUNS; i++)
        CGS_TRY(update_run(u, d, 1 + WARM_UP + (uint64_t)i, &seconds[i]));
    for (int i = 0; i < RUNS; i++) CGS_TRY(update_parts(u, d, i));
    cgs_measured took = cgs_measured_median(seconds, RUNS);
    snprintf(name, sizeof name, "update %s %s%s, %d frames", preset, type_name(act),
             u->model->config.class_bits == 32 ? " with class token in f32" : "", frames);
    fn(user, name, cgs_measured_times(took, 1e3), "ms");
    fn(user, name, cgs_measured_rate(frames, took), "frames/s");
    fn(user, name, cgs_measured_rate(1e-9 * u->flops, took), "GFLOP/s");
    fn(user, name, cgs_measured_rate(100 * u->flops / peak, took), "% of matrix product");
    fn(user, name, cgs_measured_count((double)cgs_tape_memory(u->tape) / (1 << 20)),
       "MiB of activations");
    report_by_operation(u, preset, act, took.value, fn, user);
    if (profile) report_by_shape(u, fn, user);
    return CGS_OK;
}

cgs_status cgs_bench_update(cgs_device *d, const char *preset, cgs_dtype act, int class_bits,
                            int windows, bool profile, cgs_bench_fn fn, void *user) {
    cgs_lewm_config c;
    update u = {0};
    CGS_TRY(cgs_lewm_preset(&c, preset));
    c.class_bits = class_bits;
    CGS_TRY(cgs_lewm_check(&c));
    cgs_status rc = update_make(&u, d, &c, act, windows);
    if (rc == CGS_OK)
        rc = update_report(&u, d, preset, act, windows * (c.history + 1), profile, fn, user);
    free(u.seconds);
    cgs_tape_destroy(u.tape);
    cgs_lewm_destroy(u.model);
    return rc;
}
