/* attention.h - shared by both paths of long attention: one head and its rows. */
#ifndef CGS_OPS_CPU_SIMD_ATTENTION_H
#define CGS_OPS_CPU_SIMD_ATTENTION_H

#include "ops/cpu/simd/pairs.h"
#include "ops/cpu/simd/simd.h"
#include "ops/cpu/simd/tile.h"

enum { QUERIES = 4 * TILE_M }; /* rows of scores that exist at a time */

/* One head.  Padded sizes: Tr rows of a left factor, Tc and Wc columns of a right one. */
typedef struct head {
    size_t T, W, Tr, Tc, Wc;
    size_t in, in_row, all; /* first element of q, row length, heads*width */
    size_t out;             /* first element of the result                 */
    size_t index;           /* of its row 0 in lse                         */
    float scale;
} head;

static inline head head_of(const cgs_record *r, size_t b, size_t h) {
    size_t T = (size_t)r->in[0]->dim[1], heads = (size_t)r->arg.attention.heads;
    size_t W = (size_t)r->arg.attention.width, all = heads * W;
    return (head){.T = T,
                  .W = W,
                  .Tr = round_up(T, TILE_M),
                  .Tc = round_up(T, TILE_N),
                  .Wc = round_up(W, TILE_N),
                  .in = b * T * 3 * all + h * W,
                  .in_row = 3 * all,
                  .all = all,
                  .out = b * T * all + h * W,
                  .index = (b * heads + h) * T,
                  .scale = (float)(1 / sqrt((double)W))};
}

/* how many leading tokens token i sees */
static inline size_t visible(const cgs_record *r, size_t T, size_t i) {
    if (!r->arg.attention.causal) return T;
    size_t block = r->arg.attention.block > 0 ? (size_t)r->arg.attention.block : 1;
    return min_size(T, (i / block + 1) * block);
}

/* multiplies the probabilities of row i by their dropout factors */
static inline void drop_row(const cgs_record *r, const head *h, size_t i, float *p, size_t n) {
    float rate = r->arg.attention.dropout, scale = 1.0f / (1.0f - rate);
    uint64_t key = CGS_DROPOUT_KEY(r->arg.attention.key, *r->step), at = (h->index + i) * h->T;
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        float keep = cgs_to_f32(cgs_rng_at(key, at + j)) >= rate ? scale : 0.0f;
        p[j] *= keep;
    }
}

/* the largest of n >= 1 numbers, a vector of candidates at a time */
static inline float row_max(const float *p, size_t n) {
    float top[16], max = p[0];
    size_t whole = n / 16 * 16;
    for (int l = 0; l < 16; l++) top[l] = p[0];
    for (size_t j = 0; j < whole; j += 16) {
#pragma omp simd
        for (int l = 0; l < 16; l++) top[l] = p[j + (size_t)l] > top[l] ? p[j + (size_t)l] : top[l];
    }
    for (int l = 0; l < 16; l++) max = top[l] > max ? top[l] : max;
    for (size_t j = whole; j < n; j++) max = p[j] > max ? p[j] : max;
    return max;
}

/* The path for bf16 on processors with dot products of bf16 pairs (attention_bf16.c). */
size_t CGS_FN(attention_pairs_scratch)(const cgs_record *r);
void CGS_FN(attention_pairs_forward)(cgs_device *d, const cgs_record *r,
                                     const pairs_variant *variant, size_t b, size_t hd);
void CGS_FN(attention_pairs_backward)(cgs_device *d, const cgs_record *r,
                                      const pairs_variant *variant, size_t b, size_t hd);

#endif /* CGS_OPS_CPU_SIMD_ATTENTION_H */
