/* table.c - the functions of this instruction set, in one table. */
#include "ops/cpu/simd/simd.h"

const cgs_cpu_table CGS_FN(table) = {
    .forward =
        {
#define X(name, reads_in, reads_out) [CGS_OP_##name] = CGS_FN(name##_forward),
            CGS_OPS(X)
#undef X
        },
    .backward =
        {
#define X(name, reads_in, reads_out) [CGS_OP_##name] = CGS_FN(name##_backward),
            CGS_OPS(X)
#undef X
        },
    .linear_tangent = CGS_FN(linear_tangent),
    .sum_squares = CGS_FN(sum_squares),
    .adamw = CGS_FN(adamw),
    .round_bf16 = CGS_FN(round_bf16),
    .muon = CGS_FN(muon),
    .product = CGS_FN(product),
    .product_scratch = CGS_FN(product_scratch),
    .mixed_product = CGS_FN(mixed_product),
    .tiles_words = CGS_FN(tiles_words),
    .tiles_pack = CGS_FN(tiles_pack),
    .tiles_product = CGS_FN(tiles_product),
    .tiles_scratch = CGS_FN(tiles_scratch),
    .tiles_sum = CGS_FN(tiles_sum),
    .linear_pairs_words = CGS_FN(linear_pairs_words),
    .linear_pairs_thread_words = CGS_FN(linear_pairs_thread_words),
    .attention_scratch = CGS_FN(attention_scratch),
    .math = CGS_FN(math),
};

/* the vector functions on arrays, so that a test can compare them with libm */
void CGS_FN(math)(int which, float *y, const float *x, size_t n) {
    float unused;
#pragma omp simd private(unused)
    for (size_t i = 0; i < n; i++) {
        switch (which) {
        case CGS_MATH_EXP: y[i] = fast_exp(x[i]); break;
        case CGS_MATH_LOG: y[i] = fast_log(x[i]); break;
        case CGS_MATH_NORMAL_CDF: y[i] = normal_cdf(x[i], &unused); break;
        case CGS_MATH_SIN: fast_sincos(x[i], &y[i], &unused); break;
        default: fast_sincos(x[i], &unused, &y[i]); break;
        }
    }
}
