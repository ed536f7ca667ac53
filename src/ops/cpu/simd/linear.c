/* linear.c - y = x W^T + b and its three gradients, as matrix products.
 *
 * Products run in the type of x.  Where the result's type differs (latents and losses
 * stay f32 while activations are bf16) its gradient is converted first. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/simd/simd.h"

static void convert(cgs_device *d, void *to, cgs_dtype to_type, const void *from,
                    cgs_dtype from_type, size_t n) {
    PARALLEL(d, n)
    for (size_t at = 0; at < n; at += CHUNK) {
        float buf[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        row_done(to, to_type, at, len, row_in(from, from_type, at, len, buf));
    }
}

/* the weights in the type of x; a copy in scratch only if nobody rounded them before */
static const void *weights(cgs_device *d, const cgs_record *r, void *scratch) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    if (x->dtype == CGS_F32) return W->data;
    if (!W->bf16) convert(d, scratch, CGS_BF16, W->data, CGS_F32, cgs_numel(W));
    return W->bf16 ? W->bf16 : scratch;
}

void CGS_FN(linear_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_cpu_linear *l = r->impl;
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *b = r->in[2] ? r->in[2]->data : NULL;
    size_t n = cgs_numel(y);
    float *wide = (float *)cgs_cpu_of(d)->shared; /* (n,m) */
    const void *W = weights(d, r, wide + n);
    bool direct = x->dtype == CGS_BF16 || y->dtype == CGS_F32;
    cgs_gemm_run(d, l->forward, direct ? y->data : wide, x->data, W, b);
    if (!direct) convert(d, y->data, y->dtype, wide, CGS_F32, n);
}

/* db = sum of the rows of dy */
static void bias_back(cgs_device *d, const cgs_record *r, float *part) {
    size_t n = cgs_rows(r->out), m = (size_t)cgs_cols(r->out), run = row_block(n);
    size_t parts = (n + run - 1) / run;
    PARALLEL(d, n * m)
    for (size_t p = 0; p < parts; p++) {
        float *sum = part + p * m, *buf = thread_scratch(d); /* (m) */
        memset(sum, 0, m * sizeof *sum);
        for (size_t row = p * run; row < min_size(n, (p + 1) * run); row++) {
            const float *pg = grad_in(r, row * m, m, buf);
#pragma omp simd
            for (size_t i = 0; i < m; i++) sum[i] += pg[i];
        }
    }
    float buf[CHUNK];
    give_sum(r, 2, part, parts, m, buf);
}

void CGS_FN(linear_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_cpu_linear *l = r->impl;
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    size_t n = cgs_numel(y);
    float *scratch = (float *)cgs_cpu_of(d)->shared;
    if (wants(r, 2)) bias_back(d, r, scratch);
    const void *dy = y->grad;
    if (y->dtype != x->dtype) {
        convert(d, scratch, x->dtype, dy, y->dtype, n);
        dy = scratch;
    }
    if (wants(r, 0))
        cgs_gemm_run(d, l->dx[r->accumulate[0]], x->grad, dy, weights(d, r, scratch + n), NULL);
    if (wants(r, 1)) cgs_gemm_run(d, l->dW[r->accumulate[1]], W->grad, dy, x->data, NULL);
}
