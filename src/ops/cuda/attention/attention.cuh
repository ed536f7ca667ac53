/* attention.cuh - what the kernels of attention share: where a head's matrices are, which
 * tokens see which, and dropout of probabilities. */
#ifndef CGS_OPS_CUDA_ATTENTION_ATTENTION_CUH
#define CGS_OPS_CUDA_ATTENTION_ATTENTION_CUH

#include "ops/cuda/kernels.cuh"

struct attention_shape {
    int T, heads, width, block;
    int first, end; /* tokens whose results are made, and all that `out` has of them */
    bool causal;
    float scale;         /* 1 / sqrt(width) */
    float dropout, keep; /* probability, and 1 / (1 - dropout) */
    uint64_t key;
    const uint64_t *step;

    /* Token i sees the tokens below this. */
    __device__ __forceinline__ int limit(int i) const {
        if (!causal) return T;
        int end = (i / block + 1) * block;
        return end < T ? end : T;
    }
    /* elements from one token to the next, in qkv and in out */
    __device__ __forceinline__ int in_row() const { return 3 * heads * width; }
    __device__ __forceinline__ int out_row() const { return heads * width; }
    /* first elements of head h of batch element b; k and v follow q at these distances */
    __device__ __forceinline__ size_t q(int b, int h) const {
        return (size_t)b * T * in_row() + h * width;
    }
    /* of token 0, also where the first that exists is a later one */
    __device__ __forceinline__ long long out(int b, int h) const {
        return ((long long)b * (end - first) - first) * out_row() + h * width;
    }
    __device__ __forceinline__ int part() const { return heads * width; }
    __device__ __forceinline__ uint64_t draw_key() const {
        return dropout > 0 ? update_key(key, step) : 0;
    }
    /* factor of the probability that token i of (b, h) gives to token j */
    __device__ __forceinline__ float kept(uint64_t drawn, int b, int h, int i, int j) const {
        if (dropout <= 0) return 1;
        return keep_factor(drawn, (((uint64_t)b * heads + h) * T + i) * T + j, dropout, keep);
    }
};

static inline attention_shape attention_of(cgs_device *d, const cgs_record *r) {
    attention_shape s;
    s.T = r->in[0]->dim[1];
    s.first = 0;
    s.end = s.T;
    if (cgs_cuda_is(r->next, CGS_OP_take)) {
        s.first = r->next->arg.take.t0;
        s.end = s.first + r->next->out->dim[1];
    }
    s.heads = r->arg.attention.heads;
    s.width = r->arg.attention.width;
    s.block = r->arg.attention.block > 0 ? r->arg.attention.block : 1;
    s.causal = r->arg.attention.causal;
    s.scale = 1.0f / sqrtf((float)s.width);
    s.dropout = r->arg.attention.dropout;
    s.keep = keep_scale(s.dropout);
    s.key = r->arg.attention.key;
    s.step = s.dropout > 0 ? cgs_cuda_step(d, r) : NULL;
    return s;
}

/* Where the result goes: what takes some of its rows joins in and has them at once. */
static inline void *attention_result(const cgs_record *r) {
    return cgs_cuda_is(r->next, CGS_OP_take) ? r->next->out->data : r->out->data;
}

/* ... and its bf16 rounding residual, where a gradient is wanted. */
static inline bf16 *attention_residual(const cgs_record *r) {
    return r->saved[1] ? (bf16 *)r->saved[1]->data : NULL;
}

#endif /* CGS_OPS_CUDA_ATTENTION_ATTENTION_CUH */
