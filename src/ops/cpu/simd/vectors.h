/* vectors.h - functions of 16 numbers whose results are rounded to bf16, 4e-3 relative: as exact as
 * that needs and no more, or as f32 where a gradient follows. */
#ifndef CGS_OPS_CPU_SIMD_VECTORS_H
#define CGS_OPS_CPU_SIMD_VECTORS_H

#if defined __AVX512F__

#include <immintrin.h>

/* 2^x, to 3e-6 relative for x in [-125, 128); below, about the value at -125 */
static inline __m512 exp2_vector(__m512 x) {
    const __m512 magic = _mm512_set1_ps(0x1.8p23f); /* rounds to a whole number, in low bits */
    x = _mm512_max_ps(x, _mm512_set1_ps(-125.0f));
    __m512 t = _mm512_add_ps(x, magic), q = _mm512_sub_ps(x, _mm512_sub_ps(t, magic));
    __m512 p = _mm512_set1_ps(9.570101908e-03f);
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(5.591786032e-02f));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.402474483e-01f));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(6.931218147e-01f));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(9.999992614e-01f));
    __m512i power = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
}

/* 1 / x to 1e-7 relative, for x of normal size */
static inline __m512 reciprocal(__m512 x) {
    __m512 t = _mm512_rcp14_ps(x); /* and one step of Newton's */
    return _mm512_fmadd_ps(t, _mm512_fnmadd_ps(x, t, _mm512_set1_ps(1.0f)), t);
}

/* GELU, to 1.5e-5 relative down to x = -13, where it is 1e-37: below zero the normal distribution
 * function is its density times a polynomial in t = 1 / (1 + 0.3 |x|), as in normal_cdf. */
static inline __m512 gelu_vector(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 square = _mm512_mul_ps(x, x);
    __m512 e = exp2_vector(_mm512_mul_ps(square, _mm512_set1_ps(-0.721347520f)));
    __m512 size = _mm512_min_ps(_mm512_abs_ps(x), _mm512_set1_ps(1e4f)); /* and infinity is, too */
    __m512 t = reciprocal(_mm512_fmadd_ps(size, _mm512_set1_ps(0.3f), one));
    __m512 p = _mm512_set1_ps(-7.709808087e-02f);
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(2.160370642e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.694580996e-02f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.441939238e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.137428552e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.200741197e-01f));
    __m512 tail = _mm512_mul_ps(_mm512_mul_ps(p, t), e);
    __mmask16 upper = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_mul_ps(x, _mm512_mask_sub_ps(tail, upper, one, tail));
}

/* GELU to 4e-7 relative, with the polynomial of normal_cdf, and `scale` times its slope, `shift`
 * added: the derivative shares the exponential. */
static inline __m512 gelu_and_slope(__m512 x, float scale, float shift, __m512 *slope) {
    const __m512 one = _mm512_set1_ps(1.0f), magic = _mm512_set1_ps(0x1.8p23f);
    const __m512 per_square = _mm512_set1_ps(-0.721347520f); /* base 2 */
    __m512 square = _mm512_min_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(174.0f));
    __m512 power = _mm512_fmadd_ps(square, per_square, magic);
    __m512 q = _mm512_fmsub_ps(square, per_square, _mm512_sub_ps(power, magic));
    __m512 e = _mm512_set1_ps(1.327647198e-03f); /* 2^q, to 8e-8 */
    e = _mm512_fmadd_ps(e, q, _mm512_set1_ps(9.675541334e-03f));
    e = _mm512_fmadd_ps(e, q, _mm512_set1_ps(5.550713274e-02f));
    e = _mm512_fmadd_ps(e, q, _mm512_set1_ps(2.402211972e-01f));
    e = _mm512_fmadd_ps(e, q, _mm512_set1_ps(6.931469671e-01f));
    e = _mm512_fmadd_ps(e, q, _mm512_set1_ps(1.000000072e+00f));
    __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(power), 23);
    e = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(e), exponent));
    __m512 size = _mm512_min_ps(_mm512_abs_ps(x), _mm512_set1_ps(1e4f)); /* and infinity is, too */
    __m512 t = reciprocal(_mm512_fmadd_ps(size, _mm512_set1_ps(0.3f), one));
    __m512 p = _mm512_set1_ps(-2.061282886e-02f);
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.123757741e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-2.280675004e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.915816718e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-7.924731657e-02f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(9.605781462e-02f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(7.842558552e-02f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.102273225e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.195728414e-01f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.196866341e-01f));
    __m512 tail = _mm512_mul_ps(_mm512_mul_ps(p, t), e);
    __mmask16 upper = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    __m512 cdf = _mm512_mask_sub_ps(tail, upper, one, tail);
    __m512 flat = _mm512_fmadd_ps(cdf, _mm512_set1_ps(scale), _mm512_set1_ps(shift));
    *slope = _mm512_fmadd_ps(_mm512_mul_ps(x, e), _mm512_set1_ps(0.398942280f * scale), flat);
    return _mm512_mul_ps(x, cdf);
}

#endif

#endif /* CGS_OPS_CPU_SIMD_VECTORS_H */
