/* linear.c - y = x W^T + b and its three gradients, as matrix products.
 *
 * Forward runs in the type of x.  Backward runs in bf16 when both x and y are bf16 and in
 * f32 otherwise: where y is f32 (latents and losses) its gradient is not rounded. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/simd/linear_pairs.h"

static void convert(void *to, cgs_dtype to_type, const void *from, cgs_dtype from_type, size_t n) {
    SHARE_CHUNKS (at, n) {
        float buf[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        row_done(to, to_type, at, len, row_in(from, from_type, at, len, buf));
    }
}

/* the same elements in another type, complete after a barrier; if needed, a copy in *scratch, which
 * advances */
static const void *as_type(cgs_dtype to, const void *from, cgs_dtype from_type, size_t n,
                           float **scratch) {
    if (to == from_type) return from;
    void *copy = *scratch;
    *scratch += n;
    convert(copy, to, from, from_type, n);
    cgs_meet();
    return copy;
}

/* W as used by forward: rounded when x is bf16 */
static const void *weights(const cgs_record *r, cgs_dtype type, float **scratch) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    if (x->dtype == CGS_F32) return W->data;
    const void *rounded =
        W->bf16 ? W->bf16 : as_type(CGS_BF16, W->data, CGS_F32, cgs_numel(W), scratch);
    return as_type(type, rounded, CGS_BF16, cgs_numel(W), scratch);
}

void CGS_FN(linear_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_cpu_linear *l = r->impl;
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *b = r->in[2] ? r->in[2]->data : NULL;
    float *scratch = (float *)cgs_cpu_of(d)->shared, *wide = scratch; /* (n,m) */
    bool direct = x->dtype == CGS_BF16 || y->dtype == CGS_F32;
    if (!direct) scratch += cgs_numel(y);
    const void *W = weights(r, x->dtype, &scratch);
    cgs_gemm_part part = {cgs_rows(x), (size_t)r->arg.linear.tokens, (size_t)r->arg.linear.unread,
                          (size_t)r->arg.linear.columns};
    cgs_gemm_run_part(d, l->forward, &part, direct ? y->data : wide, x->data, W, b, l->W_forward);
    if (!direct) convert(y->data, y->dtype, wide, CGS_F32, cgs_numel(y));
}

/* sum += four rows of bf16, one load and store of the sum for all */
static void add_rows(float *sum, const uint16_t *g, size_t rows, size_t m) {
    size_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        const uint16_t *a = g + row * m, *b = a + m, *c = b + m, *e = c + m;
#pragma omp simd
        for (size_t i = 0; i < m; i++)
            sum[i] += (cgs_bf16_to_f32(a[i]) + cgs_bf16_to_f32(b[i])) +
                      (cgs_bf16_to_f32(c[i]) + cgs_bf16_to_f32(e[i]));
    }
    for (; row < rows; row++)
        for (size_t i = 0; i < m; i++) sum[i] += cgs_bf16_to_f32(g[row * m + i]);
}

/* db = or += the sum of rows first .. first + n of dy */
static void bias_back(const cgs_record *r, size_t first, size_t n, float *part) {
    const cgs_tensor *y = r->out;
    size_t m = (size_t)cgs_cols(y), run = row_block(n), parts = (n + run - 1) / run;
    CGS_SHARE (p, parts) {
        float *sum = part + p * m;
        size_t rows = min_size(run, n - p * run), at = (first + p * run) * m;
        memset(sum, 0, m * sizeof *sum);
        if (y->dtype == CGS_BF16) {
            add_rows(sum, (const uint16_t *)y->grad + at, rows, m);
            continue;
        }
        const float *g = (const float *)y->grad + at;
        for (size_t row = 0; row < rows; row++) {
#pragma omp simd
            for (size_t i = 0; i < m; i++) sum[i] += g[row * m + i];
        }
    }
    cgs_meet();
    cgs_record add = *r;
    add.accumulate[2] |= first > 0;
    give_sum(&add, 2, part, parts, m);
    cgs_meet(); /* the partial sums are reused */
}

static void *row_at(const void *p, cgs_dtype type, size_t at) {
    return (char *)(uintptr_t)p + at * cgs_dtype_size(type);
}

/* x and y have the same type: runs of rows, each of which all three gradients read */
static void backward_same(cgs_device *d, const cgs_record *r) {
    const cgs_cpu_linear *l = r->impl;
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    float *scratch = (float *)cgs_cpu_of(d)->shared, *part = scratch;
    scratch += CGS_CPU_ROW_BLOCKS * m;
    const void *Wt = cgs_wants(r, 0) ? weights(r, x->dtype, &scratch) : NULL;
    if (l->pieces.pieces) {
        CGS_FN(linear_pairs_backward)(d, r, &l->pieces, Wt, (uint32_t *)scratch);
        return;
    }
    for (size_t first = 0; first < n; first += l->run) {
        size_t rows = min_size(l->run, n - first);
        int tail = rows<l->run, added = first> 0 || r->accumulate[1];
        const void *dy = row_at(y->grad, y->dtype, first * m);
        if (cgs_wants(r, 2)) bias_back(r, first, rows, part);
        if (cgs_wants(r, 0))
            cgs_gemm_run(d, l->back[tail].dx[r->accumulate[0]],
                         row_at(x->grad, x->dtype, first * k), dy, Wt, NULL, l->W_dx);
        if (cgs_wants(r, 1))
            cgs_gemm_run(d, l->back[tail].dW[added], W->grad, dy,
                         row_at(x->data, x->dtype, first * k), NULL, NULL);
    }
}

/* one of them is f32, the other bf16: products in f32 */
static void backward_mixed(cgs_device *d, const cgs_record *r) {
    const cgs_cpu_linear *l = r->impl;
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    float *scratch = (float *)cgs_cpu_of(d)->shared;
    if (cgs_wants(r, 2)) bias_back(r, 0, cgs_rows(x), scratch);
    const float *dy = as_type(CGS_F32, y->grad, y->dtype, cgs_numel(y), &scratch);
    if (cgs_wants(r, 1)) {
        const float *xt = as_type(CGS_F32, x->data, x->dtype, cgs_numel(x), &scratch);
        cgs_gemm_run(d, l->back[0].dW[r->accumulate[1]], W->grad, dy, xt, NULL, NULL);
    }
    if (!cgs_wants(r, 0)) return;
    size_t n = cgs_numel(x);
    if (l->mixed_dx) {
        CGS_FN(mixed_product)
        (scratch, dy, W->bf16, cgs_rows(x), (size_t)cgs_cols(x), (size_t)cgs_cols(y));
        SHARE_CHUNKS (at, n) give_done(r, 0, at, min_size(CHUNK, n - at), scratch + at);
        return;
    }
    const float *Wt = weights(r, CGS_F32, &scratch);
    if (x->dtype == CGS_F32) {
        cgs_gemm_run(d, l->back[0].dx[r->accumulate[0]], x->grad, dy, Wt, NULL, l->W_dx);
        return;
    }
    cgs_gemm_run(d, l->back[0].dx[0], scratch, dy, Wt, NULL, NULL);
    SHARE_CHUNKS (at, n) give_done(r, 0, at, min_size(CHUNK, n - at), scratch + at);
}

void CGS_FN(linear_backward)(cgs_device *d, const cgs_record *r) {
    if (r->in[0]->dtype == r->out->dtype)
        backward_same(d, r);
    else
        backward_mixed(d, r);
}
