/* variants.h - the table of optional faster forms of operations on a GPU, one row per variant.
 *
 * Everything that concerns a variant follows from its row: dispatch (variants.c), the names that
 * CGS_VARIANTS_OFF takes, the list that test_gpu tests without each, what `cgs bench variants`
 * measures, and docs/cuda-variants.md.  Without a row its operations run in their generic form.
 *
 * A row stands for an operation, or for neighbouring records that run together: `before`, the
 * operation, `after`, where `none` is no neighbour.  Of the rows that fit a record the first one
 * wins.  The columns:
 *
 *   id        the name; its functions are cgs_cuda_ID_fits, _prepare, _forward, _backward
 *   before, operation, after
 *   between   whether what passes from record to record may have other readers: alone or shared
 *   runs      forward, backward or both: its functions do that for all records of the pattern;
 *             joined: the operations' own functions see their neighbour and do more or less;
 *             device: no records, code asks cgs_cuda_variant_on
 *   timed by  what shows its worth: update (training), patches (planning), frames (a batch's)
 *   when it fits, what it is worth: for the documents
 *
 * This header is plain C and needs nothing of CUDA: it can be read on any machine. */
#ifndef CGS_OPS_CUDA_VARIANTS_H
#define CGS_OPS_CUDA_VARIANTS_H

/* clang-format off */
#define CGS_CUDA_VARIANTS(X)                                                                       \
    X(graph, none, none, none, shared, device, update,                                             \
      "a pass of a tape from its second run on",                                                   \
      "one launch per pass instead of hundreds")                                                   \
    X(cached_frames, none, none, none, shared, device, frames,                                     \
      "the dataset leaves a tenth of the GPU's memory free",                                       \
      "no copy from the host per batch")                                                           \
    X(add_norm, add, layernorm, none, shared, joined, update,                                      \
      "f32 residual stream of at most 1,024 columns",                                              \
      "404 -> 302 MB per pair forward, 556 -> 404 backward (131,584 rows)")                        \
    X(norm_bias, linear, add, none, alone, joined, update,                                         \
      "the linear layer's result is what is added",                                                \
      "the bias gradient comes from the norm's backward: 50 MB per layer less")                    \
    X(norm_modulate_norm, layernorm, modulate, layernorm, alone, both, update,                     \
      "f32 rows of at most 512 columns, the first norm without weights",                           \
      "24 launches less each way; an update 0.05 ms less")                                         \
    X(dropout_gate, none, dropout, gate_add, alone, joined, update,                                \
      "what a gate adds comes from a dropout",                                                     \
      "twelve launches less each way; an update 0.06 ms less")                                     \
    X(attention_bias, linear, attention, none, alone, joined, update,                              \
      "bf16 heads of width 64 or 32, 16 tokens or more",                                           \
      "the bias gradient of qkv comes from attention's backward: 152 MB per layer less")           \
    X(attention_rows, none, attention, take, alone, joined, patches,                               \
      "no gradient",                                                                               \
      "rows that nobody takes are not computed")                                                   \
    X(attention_narrow, linear, attention, none, alone, forward, patches,                          \
      "tokens of at most 32 columns, bf16 heads of width 64, no bias, dropout or gradient",        \
      "qkv, 110 times as wide as the tokens, is never made")                                       \
    X(attention_wgmma, none, attention, none, alone, forward, update,                              \
      "compute capability 9.0, bf16 heads of width 64, 256 to 264 tokens, no mask or dropout",     \
      "0.115 ms per layer instead of 0.18; an update 0.75 ms less")                                \
    X(attention_wgmma_gradient, none, attention, none, alone, backward, update,                    \
      "as attention_wgmma",                                                                        \
      "0.336 ms per layer instead of 0.50; an update 1.9 ms less")                                 \
    X(attention_stream, none, attention, none, alone, both, patches,                               \
      "bf16 heads of width 64, more than 400 tokens, or 16 or more with dropout",                  \
      "any number of tokens on tensor cores")                                                      \
    X(attention_mma, none, attention, none, alone, both, update,                                   \
      "bf16 heads of width 64 or 32, 16 tokens to what shared memory holds, no dropout",           \
      "0.18 ms per layer forward, 0.50 backward (512 images of 257 tokens)")                       \
    X(attention_short, none, attention, none, alone, both, update,                                 \
      "at most 8 tokens, heads of at most 128 columns",                                            \
      "a head stays in the registers of a warp")                                                   \
    X(mlp_narrow, linear, activation, linear, alone, forward, patches,                             \
      "GELU, 32 columns at most in and out, hidden units in 128s, bf16, no gradient",              \
      "hidden rows, 73 times as wide as the tokens, are never made")                               \
    X(gelu_wgmma, none, linear, activation, alone, forward, update,                                \
      "compute capability 9.0, GELU, from 192 columns to a multiple of 128, 1,024 rows, bf16",     \
      "0.141 ms per layer instead of 0.227; an update 0.8 ms less")                                \
    X(gelu_wgmma_gradient, activation, linear, none, alone, backward, update,                      \
      "as gelu_wgmma, for the linear layer that reads GELU's result",                              \
      "0.246 ms per layer with dW instead of 0.37; an update 1.35 ms less")
/* clang-format on */

#endif /* CGS_OPS_CUDA_VARIANTS_H */
