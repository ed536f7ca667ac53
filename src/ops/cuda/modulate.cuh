/* modulate.cuh - where a token finds its row of a conditioning matrix. */
#ifndef CGS_OPS_CUDA_MODULATE_CUH
#define CGS_OPS_CUDA_MODULATE_CUH

#include "ops/ops.h"

struct conditioning {
    cgs_rowmap map;
    int D, C; /* columns of a token, and of the matrix */
    __device__ size_t row_of(size_t token) const {
        return (token / map.T * map.Tm + map.t0 + token % map.T) * C;
    }
    /* of element i of the tokens: its row and its column */
    __device__ size_t row(size_t i) const { return row_of(i / D); }
    __device__ int col(size_t i) const { return (int)(i % D); }
};

#endif /* CGS_OPS_CUDA_MODULATE_CUH */
