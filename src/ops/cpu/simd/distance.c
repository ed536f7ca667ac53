/* distance.c - mse, sqdist and weighted_sum: differences squared and added up. */
#include "ops/cpu/simd/simd.h"

static double square_difference(const float *a, const float *b, size_t n) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) s += (a[i] - b[i]) * (a[i] - b[i]);
    return s;
}

static void scaled_difference(float *to, float factor, const float *a, const float *b, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) to[i] = factor * (a[i] - b[i]);
}

static float out_grad(const cgs_record *r, size_t i) {
    float v;
    return *grad_in(r, i, 1, &v);
}
static void set_out(const cgs_record *r, size_t i, double v) {
    float value = (float)v;
    row_done(r->out->data, r->out->dtype, i, 1, &value);
}

/* ---- mse: mean of (a - b)^2 ------------------------------------------------------------------ */

void CGS_FN(mse_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    size_t n = cgs_numel(a), run = round_up((n + CGS_CPU_ROW_BLOCKS - 1) / CGS_CPU_ROW_BLOCKS, 64);
    double *part = (double *)cgs_cpu_of(d)->shared, sum = 0; /* (CGS_CPU_ROW_BLOCKS) */
    CGS_SHARE (p, CGS_CPU_ROW_BLOCKS) {
        float ab[CHUNK], bb[CHUNK];
        size_t end = min_size(n, (p + 1) * run);
        part[p] = 0;
        for (size_t at = p * run; at < end; at += CHUNK) {
            size_t len = min_size(CHUNK, end - at);
            part[p] += square_difference(data_in(a, at, len, ab), data_in(b, at, len, bb), len);
        }
    }
    cgs_meet();
    if (cgs_member() != 0) return;
    for (int p = 0; p < CGS_CPU_ROW_BLOCKS; p++) sum += part[p];
    set_out(r, 0, sum / (double)n);
}

void CGS_FN(mse_backward)(cgs_device *d, const cgs_record *r) {
    size_t n = cgs_numel(r->in[0]);
    float factor = (float)(2.0 * out_grad(r, 0) / (double)n);
    for (int k = 0; k < 2; k++) {
        if (!cgs_wants(r, k)) continue;
        SHARE_CHUNKS (at, n) {
            float ab[CHUNK], bb[CHUNK], ob[CHUNK];
            size_t len = min_size(CHUNK, n - at);
            const float *pa = data_in(r->in[0], at, len, ab), *pb = data_in(r->in[1], at, len, bb);
            float *po = give_to(r, k, at, ob);
            scaled_difference(po, k == 0 ? factor : -factor, pa, pb, len);
            give_done(r, k, at, len, po);
        }
        cgs_meet(); /* both may be the same tensor */
    }
}

/* ---- sqdist: a (E*K,D), b (E,D) -> |a - b|^2 (E*K) ---------------------------------------------
 */

void CGS_FN(sqdist_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    size_t n = cgs_rows(a), D = (size_t)cgs_cols(a), K = (size_t)r->arg.sqdist.K;
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 2 of (D) */
        const float *pa = data_in(a, row * D, D, buf), *pb = data_in(b, row / K * D, D, buf + D);
        set_out(r, row, square_difference(pa, pb, D));
    }
}

void CGS_FN(sqdist_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    size_t n = cgs_rows(a), D = (size_t)cgs_cols(a), K = (size_t)r->arg.sqdist.K;
    bool want_a = cgs_wants(r, 0), want_b = cgs_wants(r, 1);
    CGS_SHARE (e, n / K) {
        float *buf = thread_scratch(d), *sum = buf + 3 * D; /* 4 of (D) */
        const float *pb = data_in(b, e * D, D, buf + D);
        memset(sum, 0, D * sizeof *sum);
        for (size_t row = e * K; row < (e + 1) * K; row++) {
            const float *pa = data_in(a, row * D, D, buf);
            float *po = want_a ? give_to(r, 0, row * D, buf + 2 * D) : buf + 2 * D;
            scaled_difference(po, 2.0f * out_grad(r, row), pa, pb, D);
#pragma omp simd
            for (size_t i = 0; i < D; i++) sum[i] -= po[i];
            if (want_a) give_done(r, 0, row * D, D, po);
        }
        if (want_b) give_done(r, 1, e * D, D, sum);
    }
}

/* ---- weighted_sum: w (n), s_1 .. s_n -> sum w_i s_i
 * ---------------------------------------------- */

void CGS_FN(weighted_sum_forward)(cgs_device *d, const cgs_record *r) {
    double sum = 0;
    if (cgs_member() != 0) return;
    for (int i = 0; i < r->arg.weighted_sum.terms; i++) {
        float w, s;
        sum += (double)*data_in(r->in[0], (size_t)i, 1, &w) * *data_in(r->in[i + 1], 0, 1, &s);
    }
    set_out(r, 0, sum);
}

/* the weights are settings and get no gradient */
void CGS_FN(weighted_sum_backward)(cgs_device *d, const cgs_record *r) {
    give_zero(r, 0);
    if (cgs_member() != 0) return;
    for (int i = 0; i < r->arg.weighted_sum.terms; i++) {
        float w;
        if (!cgs_wants(r, i + 1)) continue;
        float v = *data_in(r->in[0], (size_t)i, 1, &w) * out_grad(r, 0);
        give_done(r, i + 1, 0, 1, &v);
    }
}
