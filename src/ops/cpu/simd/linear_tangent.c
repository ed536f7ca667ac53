/* linear_tangent.c - tangents of a linear layer: dy = W dx for a row and some of its directions. */
#include "ops/cpu/simd/simd.h"

enum { LANES = 16, OUTPUTS = 4 };

/* the directions of every value side by side, those that are missing as zeros */
static void pack(float *to, const cgs_record *r, size_t row, size_t first, size_t count) {
    size_t k = (size_t)cgs_cols(r->in[0]), all = (size_t)r->directions;
    const float *from = r->in[0]->tangent + row * k * all + first;
    for (size_t i = 0; i < k; i++) {
        for (size_t p = 0; p < count; p++) to[i * LANES + p] = from[i * all + p];
        for (size_t p = count; p < LANES; p++) to[i * LANES + p] = 0;
    }
}

static void some_outputs(float sum[OUTPUTS][LANES], const float *W, size_t k, const float *x) {
    for (int o = 0; o < OUTPUTS; o++)
        for (int p = 0; p < LANES; p++) sum[o][p] = 0;
    for (size_t i = 0; i < k; i++) {
        for (int o = 0; o < OUTPUTS; o++) {
            float w = W[(size_t)o * k + i];
#pragma omp simd
            for (int p = 0; p < LANES; p++) sum[o][p] += w * x[i * LANES + (size_t)p];
        }
    }
}

/* as many outputs as are left, fewer than OUTPUTS */
static void last_outputs(float sum[OUTPUTS][LANES], const float *W, size_t k, const float *x,
                         size_t outputs) {
    for (size_t o = 0; o < outputs; o++) {
        for (int p = 0; p < LANES; p++) sum[o][p] = 0;
        for (size_t i = 0; i < k; i++) {
#pragma omp simd
            for (int p = 0; p < LANES; p++) sum[o][p] += W[o * k + i] * x[i * LANES + (size_t)p];
        }
    }
}

void CGS_FN(linear_tangent)(cgs_device *d, const cgs_record *r, size_t row, size_t first,
                            size_t count) {
    size_t k = (size_t)cgs_cols(r->in[0]), m = (size_t)cgs_cols(r->out);
    size_t all = (size_t)r->directions;
    float *to = r->out->tangent + row * m * all + first, *x = thread_scratch(d);
    float sum[OUTPUTS][LANES] = {{0}};
    if (r->in[0]->tangent) pack(x, r, row, first, count);
    for (size_t j = 0; j < m; j += OUTPUTS) {
        size_t outputs = min_size(OUTPUTS, m - j);
        const float *W = (const float *)r->in[1]->data + j * k;
        if (r->in[0]->tangent && outputs == OUTPUTS)
            some_outputs(sum, W, k, x);
        else if (r->in[0]->tangent)
            last_outputs(sum, W, k, x, outputs);
        for (size_t o = 0; o < outputs; o++)
            memcpy(to + (j + o) * all, sum[o], count * sizeof(float));
    }
}
