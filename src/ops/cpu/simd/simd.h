/* simd.h - basis of the loops that are compiled once per instruction set.
 *
 * Loops are plain C over f32 with `#pragma omp simd`.  Operations whose tensors may be bf16 work on
 * short runs of elements: row_in() widens a run into a buffer that stays in L1 (or returns the
 * memory itself when it is f32), row_to() and row_done() do the same for results.  So each loop is
 * written once. */
#ifndef CGS_OPS_CPU_SIMD_SIMD_H
#define CGS_OPS_CPU_SIMD_SIMD_H

#include <math.h>
#if defined __AVX512F__
#include <immintrin.h>
#endif

#include "core/cpu.h"
#include "core/rng.h"
#include "core/team.h"
#include "ops/cpu/cpu.h"

/* functions of the table have one signature, and not every one needs the device */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define CGS_JOIN_(a, b) a##_##b
#define CGS_JOIN(a, b) CGS_JOIN_(a, b)
/* the name of a function in this copy */
#define CGS_FN(name) CGS_JOIN(cgs_cpu_##name, CGS_ISA)

#define X(name, reads_in, reads_out)                                                               \
    void CGS_FN(name##_forward)(cgs_device * d, const cgs_record *r);                              \
    void CGS_FN(name##_backward)(cgs_device * d, const cgs_record *r);
CGS_OPS(X)
#undef X

void CGS_FN(linear_tangent)(cgs_device *d, const cgs_record *r, size_t row, size_t first,
                            size_t count);
void CGS_FN(sum_squares)(const float *x, size_t n, double part[CGS_CPU_ROW_BLOCKS]);
void CGS_FN(adamw)(const cgs_adamw *a, float *p, const float *g, float *m, float *v, uint16_t *bf16,
                   size_t n);
void CGS_FN(round_bf16)(uint16_t *to, const float *from, size_t n);
void CGS_FN(muon)(const cgs_muon *a, const cgs_matrix *list, int count, float *p, const float *g,
                  float *m, uint16_t *bf16, float *work);
void CGS_FN(product)(cgs_device *d, const cgs_product *p, void *C, const void *A, const void *B,
                     const float *bias);
size_t CGS_FN(product_scratch)(void);
void CGS_FN(mixed_product)(float *C, const float *A, const uint16_t *B, size_t M, size_t N,
                           size_t K);
size_t CGS_FN(tiles_words)(const cgs_product *p);
void CGS_FN(tiles_pack)(cgs_device *d, const cgs_product *p, uint32_t *to, const void *B);
void CGS_FN(tiles_product)(cgs_device *d, const cgs_product *p, void *C, const void *A,
                           const uint32_t *packed, const float *bias);
size_t CGS_FN(tiles_scratch)(const cgs_product *p);
void CGS_FN(tiles_sum)(cgs_device *d, const cgs_product *p, float *C, const void *A, const void *B,
                       uint32_t *woven);
size_t CGS_FN(linear_pairs_words)(size_t pieces, size_t k, size_t m);
size_t CGS_FN(linear_pairs_thread_words)(size_t run, size_t k, size_t m);
size_t CGS_FN(attention_scratch)(const cgs_record *r);
void CGS_FN(math)(int which, float *y, const float *x, size_t n);

/* ---- threads ------------------------------------------------------------------------ */

/* Every operation is run by all members of a team (core/team.h), like a kernel by the threads of a
 * block: loops are shared, and cgs_meet() is the barrier before reading what others wrote. */

/* n elements from `at` on, in shared chunks */
#define SHARE_CHUNKS(at, n)                                                                        \
    for (cgs_piece at##_piece = cgs_pieces(((n) + CHUNK - 1) / CHUNK);                             \
         cgs_next_piece(&at##_piece);)                                                             \
        for (size_t at = at##_piece.first * CHUNK; at < min_size(n, at##_piece.end * CHUNK);       \
             at += CHUNK)

static inline float *thread_scratch(const cgs_device *d) { return cgs_cpu_thread(d, cgs_member()); }

static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* rows in each of the runs that sums over rows are made of */
static inline size_t row_block(size_t n) {
    size_t run = (n + CGS_CPU_ROW_BLOCKS - 1) / CGS_CPU_ROW_BLOCKS;
    return run < 16 ? 16 : run;
}

/* ---- runs of elements ----------------------------------------------------------------- */

#define CHUNK 1024 /* elements per run of an elementwise operation */

static inline void widen(float *to, const uint16_t *from, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) to[i] = cgs_bf16_to_f32(from[i]);
}

#if defined __AVX512F__
/* the instruction for it, which differs from cgs_f32_to_bf16 on denormals only (0 here) */
__attribute__((target("avx512bf16"))) static inline size_t
narrow_vectors(uint16_t *to, const float *from, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + i)));
    return i;
}
#endif

static inline void narrow(uint16_t *to, const float *from, size_t n) {
    size_t done = 0;
#if defined __AVX512F__
    if (cgs_cpu_ask()->bf16) done = narrow_vectors(to, from, n);
#endif
#pragma omp simd
    for (size_t i = done; i < n; i++) to[i] = cgs_f32_to_bf16(from[i]);
}

/* n elements from `at` on, as f32 */
static inline const float *row_in(const void *p, cgs_dtype type, size_t at, size_t n, float *buf) {
    if (type == CGS_F32) return (const float *)p + at;
    widen(buf, (const uint16_t *)p + at, n);
    return buf;
}
static inline const float *data_in(const cgs_tensor *x, size_t at, size_t n, float *buf) {
    return row_in(x->data, x->dtype, at, n, buf);
}
static inline const float *grad_in(const cgs_record *r, size_t at, size_t n, float *buf) {
    return row_in(r->out->grad, r->out->dtype, at, n, buf);
}

/* where to compute n results, and how to store them afterwards */
static inline float *row_to(void *p, cgs_dtype type, size_t at, float *buf) {
    return type == CGS_F32 ? (float *)p + at : buf;
}
static inline void row_done(void *p, cgs_dtype type, size_t at, size_t n, const float *v) {
    if (type != CGS_F32)
        narrow((uint16_t *)p + at, v, n);
    else if (v != (float *)p + at)
        memcpy((float *)p + at, v, n * sizeof *v);
}

/* n elements that the next row will read, from a matrix too large for the caches that rows come
 * from in pieces */
static inline void fetch(const cgs_tensor *x, size_t at, size_t n) {
    size_t size = cgs_dtype_size(x->dtype);
    const char *p = (const char *)x->data + at * size;
    for (size_t i = 0; i < n * size; i += 64) __builtin_prefetch(p + i);
}

/* the same for the gradient of input k, accumulating where the record says so */
static inline float *give_to(const cgs_record *r, int k, size_t at, float *buf) {
    return r->accumulate[k] ? buf : row_to(r->in[k]->grad, r->in[k]->dtype, at, buf);
}
static inline void add_to(void *p, cgs_dtype type, size_t at, size_t n, const float *v) {
    if (type == CGS_F32) {
        float *to = (float *)p + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++) to[i] += v[i];
    } else {
        uint16_t *to = (uint16_t *)p + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++) to[i] = cgs_f32_to_bf16(cgs_bf16_to_f32(to[i]) + v[i]);
    }
}
static inline void give_done(const cgs_record *r, int k, size_t at, size_t n, const float *v) {
    const cgs_tensor *x = r->in[k];
    if (r->accumulate[k])
        add_to(x->grad, x->dtype, at, n, v);
    else
        row_done(x->grad, x->dtype, at, n, v);
}
/* clears a gradient that will be added to only in places */
static inline void give_zero(const cgs_record *r, int k) {
    enum { BLOCK = 1 << 16 };
    if (!cgs_wants(r, k) || r->accumulate[k]) return;
    size_t bytes = cgs_bytes(r->in[k]);
    CGS_SHARE (i, (bytes + BLOCK - 1) / BLOCK)
        memset((char *)r->in[k]->grad + i * BLOCK, 0, min_size(BLOCK, bytes - i * BLOCK));
    cgs_meet();
}

/* Adds up `parts` rows of n sums in order and gives the total to input k, whose
 * gradient has n elements. */
static inline void give_sum(const cgs_record *r, int k, const float *part, size_t parts, size_t n) {
    SHARE_CHUNKS (at, n) {
        float buf[CHUNK] = {0};
        size_t len = min_size(CHUNK, n - at);
        for (size_t p = 0; p < parts; p++) {
            const float *row = part + p * n + at;
#pragma omp simd
            for (size_t i = 0; i < len; i++) buf[i] += row[i];
        }
        give_done(r, k, at, len, buf);
    }
}

/* ---- functions ------------------------------------------------------------------------- */
/* Straight-line polynomials that compilers turn into vector code when inlined in a loop.
 * The coefficients are minimax fits of this project; tests bound the errors. */

static inline float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t to_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* e^x, to 1e-7 relative for x in [-87, 88]; below, the value at -87 */
static inline float fast_exp_below_88(float x) {
    x = x < -87.0f ? -87.0f : x;
    /* adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits */
    float t = x * 1.44269504f + 0x1.8p23f, n = t - 0x1.8p23f;
    float q = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.389381053e-03f;
    p = p * q + 8.363185385e-03f;
    p = p * q + 4.166694426e-02f;
    p = p * q + 1.666657709e-01f;
    p = p * q + 4.999999941e-01f;
    p = p * (q * q) + q + 1.0f;
    return p * from_bits((to_bits(t) << 23) + 0x3f800000u);
}

/* ... and above, the value at 88 */
static inline float fast_exp(float x) { return fast_exp_below_88(x > 88.0f ? 88.0f : x); }

/* log x to 1e-7 for normal x > 0: x = m 2^e with m near 1, log m = 2 atanh((m-1)/(m+1)) */
static inline float fast_log(float x) {
    uint32_t u = to_bits(x) - 0x3f3504f3u; /* sqrt(1/2): m lies in [sqrt(1/2), sqrt(2)) */
    float e = (float)((int32_t)u >> 23), m = from_bits((u & 0x7fffffu) + 0x3f3504f3u);
    float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    float p = 2.0f / 9.0f;
    p = p * s2 + 2.0f / 7.0f;
    p = p * s2 + 2.0f / 5.0f;
    p = p * s2 + 2.0f / 3.0f;
    return e * 0.693147181f + (p * s2 * s + 2.0f * s);
}

/* The normal distribution function and density from one exponential: below zero the
 * former is the latter times a smooth function of x (its Mills ratio), here a
 * polynomial in 1 / (1 + 0.3 |x|). */
static inline float normal_cdf(float x, float *density) {
    float e = fast_exp_below_88(-0.5f * x * x), t = 1.0f / (1.0f + 0.3f * fabsf(x));
    float p = -2.061282886e-02f;
    p = p * t + 1.123757741e-01f;
    p = p * t - 2.280675004e-01f;
    p = p * t + 1.915816718e-01f;
    p = p * t - 7.924731657e-02f;
    p = p * t + 9.605781462e-02f;
    p = p * t + 7.842558552e-02f;
    p = p * t + 1.102273225e-01f;
    p = p * t + 1.195728414e-01f;
    p = p * t + 1.196866341e-01f;
    float tail = p * t * e;
    *density = 0.398942280f * e;
    return x > 0 ? 1.0f - tail : tail;
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/* sine and cosine to 1e-7 for |x| below some thousands */
static inline void fast_sincos(float x, float *sine, float *cosine) {
    float t = x * 0.636619772f + 0x1.8p23f, n = t - 0x1.8p23f;
    uint32_t quadrant = to_bits(t);
    float q = ((x - n * 1.5703125f) - n * 4.837512970e-04f) - n * 7.549789949e-08f, q2 = q * q;
    float s = -1.958717504e-04f;
    s = s * q2 + 8.332744338e-03f;
    s = s * q2 - 1.666666464e-01f;
    s = s * q2 * q + q;
    float c = 2.477905537e-05f;
    c = c * q2 - 1.388979627e-03f;
    c = c * q2 + 4.166667802e-02f;
    c = c * (q2 * q2) - 0.5f * q2 + 1.0f;
    bool odd = quadrant & 1;
    float a = odd ? c : s, b = odd ? s : c;
    *sine = from_bits(to_bits(a) ^ (quadrant & 2) << 30);
    *cosine = from_bits(to_bits(b) ^ ((quadrant + 1) & 2) << 30);
}

#endif /* CGS_OPS_CPU_SIMD_SIMD_H */
