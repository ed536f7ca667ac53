/* pairs.c - three variants of bf16 pair products: vectors, AMX tiles, and these tiles emulated in
 * C, so that the code around them can be tested on any processor. */
#include "ops/cpu/simd/pairs.h"

#if defined __AVX512F__

#include <immintrin.h>

static void nothing(void) {}

/* ---- vectors: vdpbf16ps ---------------------------------------------------------------- */

enum { VECTOR_ROWS = 12 }; /* with 2 vectors of sums each, as many as fit in registers */

/* c (rows, 16 wide) = or += a b; `rows` and `wide` are constants wherever this is called */
__attribute__((target("avx512bf16"), always_inline)) static inline void
vector_block(int rows, int wide, float *c, size_t ldc, const uint32_t *a, size_t lda,
             const uint32_t *b, size_t ldb, size_t K, bool add) {
    __m512 s[VECTOR_ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        s[i][0] = add ? _mm512_loadu_ps(c + (size_t)i * ldc) : _mm512_setzero_ps();
        s[i][1] = add && wide > 1 ? _mm512_loadu_ps(c + (size_t)i * ldc + 16) : _mm512_setzero_ps();
    }
    for (size_t k = 0; k < K; k++, b += ldb) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        __m512bh b1 = wide > 1 ? (__m512bh)_mm512_loadu_si512(b + 16) : b0;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[(size_t)i * lda + k]);
            s[i][0] = _mm512_dpbf16_ps(s[i][0], x, b0);
            if (wide > 1) s[i][1] = _mm512_dpbf16_ps(s[i][1], x, b1);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_ps(c + (size_t)i * ldc, s[i][0]);
        if (wide > 1) _mm512_storeu_ps(c + (size_t)i * ldc + 16, s[i][1]);
    }
}

__attribute__((target("avx512bf16"))) static void
multiply_vectors(float *c, size_t ldc, const uint32_t *a, size_t lda, const uint32_t *b, size_t ldb,
                 size_t M, size_t N, size_t K, bool add) {
    size_t j = 0, i;
    for (; j + 32 <= N; j += 32) {
        /* of 4 rows there are too few sums to hide the latency: 16 are two blocks of 8 */
        for (i = 0; i + 12 <= M && M - i != 16; i += 12)
            vector_block(12, 2, c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, K, add);
        for (; i + 8 <= M; i += 8)
            vector_block(8, 2, c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, K, add);
        if (i < M) vector_block(4, 2, c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, K, add);
    }
    if (j == N) return;
    for (i = 0; i + 12 <= M; i += 12)
        vector_block(12, 1, c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, K, add);
    for (; i < M; i += 4)
        vector_block(4, 1, c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, K, add);
}

/* ---- tiles: 16 rows of 64 bytes ---------------------------------------------------------- */

/* c (M,N) in blocks of 32 x 32 sums, tiles 0 to 3; 4 and 5 hold the left factor, 6 and 7 the right
 * one.  Written once for the instructions and for their emulation. */
#define DEFINE_MULTIPLY(name, STATE, ZERO, LOAD, DOT, STORE)                                       \
    static void name(float *c, size_t ldc, const uint32_t *a, size_t lda, const uint32_t *b,       \
                     size_t ldb, size_t M, size_t N, size_t K, bool add) {                         \
        STATE                                                                                      \
        for (size_t j = 0; j < N; j += 32)                                                         \
            for (size_t i = 0; i < M; i += 32) {                                                   \
                float *c0 = c + i * ldc + j, *c1 = c0 + 16 * ldc;                                  \
                const uint32_t *a0 = a + i * lda, *a1 = a0 + 16 * lda, *b0 = b + j;                \
                if (add) {                                                                         \
                    LOAD(0, c0, ldc);                                                              \
                    LOAD(1, c0 + 16, ldc);                                                         \
                    LOAD(2, c1, ldc);                                                              \
                    LOAD(3, c1 + 16, ldc);                                                         \
                } else {                                                                           \
                    ZERO(0);                                                                       \
                    ZERO(1);                                                                       \
                    ZERO(2);                                                                       \
                    ZERO(3);                                                                       \
                }                                                                                  \
                for (size_t k = 0; k < K; k += 16) {                                               \
                    LOAD(4, a0 + k, lda);                                                          \
                    LOAD(6, b0 + k * ldb, ldb);                                                    \
                    LOAD(5, a1 + k, lda);                                                          \
                    LOAD(7, b0 + k * ldb + 16, ldb);                                               \
                    DOT(0, 4, 6);                                                                  \
                    DOT(2, 5, 6);                                                                  \
                    DOT(1, 4, 7);                                                                  \
                    DOT(3, 5, 7);                                                                  \
                }                                                                                  \
                STORE(0, c0, ldc);                                                                 \
                STORE(1, c0 + 16, ldc);                                                            \
                STORE(2, c1, ldc);                                                                 \
                STORE(3, c1 + 16, ldc);                                                            \
            }                                                                                      \
    }

/* palette 1; all eight tiles have 16 rows of 64 bytes */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config = {.palette = 1,
                 .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                 .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
_Static_assert(sizeof tile_config == 64, "ldtilecfg reads 64 bytes");

__attribute__((target("amx-tile"))) static void begin_amx(void) { _tile_loadconfig(&tile_config); }
/* the next user of tiles, such as oneDNN, loads its own configuration */
__attribute__((target("amx-tile"))) static void end_amx(void) { _tile_release(); }

/* gcc's tile loads do not say that they read memory */
#define AMX_STATE __asm__ volatile("" ::: "memory");
#define AMX_LOAD(t, p, ld) _tile_loadd(t, p, (ld)*4)
#define AMX_STORE(t, p, ld) _tile_stored(t, p, (ld)*4)
__attribute__((target("amx-tile,amx-bf16")))
DEFINE_MULTIPLY(multiply_amx, AMX_STATE, _tile_zero, AMX_LOAD, _tile_dpbf16ps, AMX_STORE)

    static void plain_load(uint32_t *tile, const void *p, size_t ld) {
    for (size_t i = 0; i < 16; i++) memcpy(tile + 16 * i, (const uint32_t *)p + i * ld, 64);
}
static void plain_store(const uint32_t *tile, float *p, size_t ld) {
    for (size_t i = 0; i < 16; i++) memcpy(p + i * ld, tile + 16 * i, 64);
}
/* even and odd products are summed apart, and both sums are added to c at the end */
static void plain_dot(uint32_t *c, const uint32_t *a, const uint32_t *b) {
    for (int i = 0; i < 16; i++) {
        float even[16] = {0}, odd[16] = {0};
        for (int k = 0; k < 16; k++) {
            float low = from_bits(a[16 * i + k] << 16), high = from_bits(a[16 * i + k] & ~0xffffu);
            for (int j = 0; j < 16; j++) {
                even[j] += low * from_bits(b[16 * k + j] << 16);
                odd[j] += high * from_bits(b[16 * k + j] & ~0xffffu);
            }
        }
        for (int j = 0; j < 16; j++)
            c[16 * i + j] = to_bits(from_bits(c[16 * i + j]) + (even[j] + odd[j]));
    }
}

#define PLAIN_STATE uint32_t tile[8][256];
#define PLAIN_ZERO(t) memset(tile[t], 0, sizeof tile[t])
#define PLAIN_LOAD(t, p, ld) plain_load(tile[t], p, ld)
#define PLAIN_DOT(c, a, b) plain_dot(tile[c], tile[a], tile[b])
#define PLAIN_STORE(t, p, ld) plain_store(tile[t], p, ld)
DEFINE_MULTIPLY(multiply_plain, PLAIN_STATE, PLAIN_ZERO, PLAIN_LOAD, PLAIN_DOT, PLAIN_STORE)

/* ---- the choice -------------------------------------------------------------------------- */

static const pairs_variant vectors = {nothing, nothing, multiply_vectors, 4, 16, 1, 24, true};
static const pairs_variant amx = {begin_amx, end_amx, multiply_amx, 32, 32, 16, 32, false};
static const pairs_variant plain = {nothing, nothing, multiply_plain, 32, 32, 16, 32, false};

const pairs_variant *CGS_FN(pairs_variant)(const cgs_device *d) {
    if (!cgs_cpu_ask()->bf16) return NULL;
    switch (cgs_cpu_of(d)->tiles) {
    case CGS_TILES_AMX: return &amx;
    case CGS_TILES_PLAIN: return &plain;
    default: return &vectors;
    }
}

/* ---- transposition ----------------------------------------------------------------------- */

/* 16 x 16 words: interleave pairs of rows, fours of rows, then quarters of vectors */
static void turn_block(uint32_t *to, size_t ld_to, const uint32_t *from, size_t ld_from) {
    __m512i r[16], t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(from + (size_t)i * ld_from);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* quarter l of r[4g + i] is column 4l + i of rows 4g to 4g + 3 */
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        __m512i upper_even = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        __m512i upper_odd = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        __m512i lower_even = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        __m512i lower_odd = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
        uint32_t *row = to + (size_t)i * ld_to;
        _mm512_storeu_si512(row, _mm512_shuffle_i32x4(upper_even, lower_even, 0x88));
        _mm512_storeu_si512(row + 4 * ld_to, _mm512_shuffle_i32x4(upper_odd, lower_odd, 0x88));
        _mm512_storeu_si512(row + 8 * ld_to, _mm512_shuffle_i32x4(upper_even, lower_even, 0xdd));
        _mm512_storeu_si512(row + 12 * ld_to, _mm512_shuffle_i32x4(upper_odd, lower_odd, 0xdd));
    }
}

void CGS_FN(turn)(uint32_t *to, size_t ld_to, const uint32_t *from, size_t ld_from, size_t rows,
                  size_t cols) {
    for (size_t i = 0; i < rows; i += 16)
        for (size_t j = 0; j < cols; j += 16)
            turn_block(to + j * ld_to + i, ld_to, from + i * ld_from + j, ld_from);
}

#else

const pairs_variant *CGS_FN(pairs_variant)(const cgs_device *d) {
    (void)d;
    return NULL;
}

#endif
