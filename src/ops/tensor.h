/* tensor.h - the one tensor type: shape, element type, memory, gradient.
 *
 * Everything is row-major and contiguous.  A tensor never owns its memory: a parameter points into
 * the model's flat buffers, everything else into its tape's planned memory. */
#ifndef CGS_OPS_TENSOR_H
#define CGS_OPS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum cgs_dtype { CGS_F32, CGS_BF16, CGS_U8 } cgs_dtype;

#define CGS_MAX_RANK 4

typedef struct cgs_tensor {
    const char *name; /* for messages and files, may be NULL             */
    int rank;
    int dim[CGS_MAX_RANK]; /* outermost first                                 */
    cgs_dtype dtype;       /* of data; gradients have the same type           */
    bool wants_grad;       /* depends on a parameter or marked input    */
    bool keep;             /* memory is not reused by later tensors           */
    bool outside;          /* memory owned elsewhere (parameters)    */
    void *data;
    void *grad;                 /* NULL unless wants_grad                          */
    struct cgs_tensor *view_of; /* reshaped: shares memory and gradient */
    uint16_t *bf16;             /* parameters: rounded copy of f32 data, or NULL   */
    float *tangent;             /* (numel, directions) derivatives along the directions of a tape
                                 * that pushes them; NULL: zeros */
} cgs_tensor;

static inline size_t cgs_numel(const cgs_tensor *t) {
    size_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= (size_t)t->dim[i];
    return n;
}
/* the last dimension, and how many rows of it there are */
static inline int cgs_cols(const cgs_tensor *t) { return t->rank ? t->dim[t->rank - 1] : 1; }
static inline size_t cgs_rows(const cgs_tensor *t) {
    int c = cgs_cols(t);
    return c ? cgs_numel(t) / (size_t)c : 0;
}
static inline size_t cgs_dtype_size(cgs_dtype d) {
    return d == CGS_F32 ? 4 : d == CGS_BF16 ? 2 : 1;
}
static inline size_t cgs_bytes(const cgs_tensor *t) {
    return cgs_numel(t) * cgs_dtype_size(t->dtype);
}

/* bf16 is the upper half of an f32; conversion rounds to nearest even, NaN stays NaN */
static inline float cgs_bf16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint16_t cgs_f32_to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

#endif /* CGS_OPS_TENSOR_H */
