/* elementwise.cuh - a gradient that passes through an operation unchanged. */
#ifndef CGS_OPS_CUDA_ELEMENTWISE_CUH
#define CGS_OPS_CUDA_ELEMENTWISE_CUH

#include "ops/cuda/kernels.cuh"

/* to = or += from, converting; both may be the same memory */
template <class TF, class TT> struct convert {
    const TF *from;
    TT *to;
    bool add;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
        load<V>(v, from + i);
        give<V>(to + i, v, add);
    }
};

static inline void launch_convert(cgs_device *d, void *to, cgs_dtype to_type, const void *from,
                                  cgs_dtype from_type, size_t n, bool add, const char *what) {
    WITH_TYPE(
        TF, from_type,
        WITH_TYPE(TT, to_type,
                  launch_each(d, n, true, what, convert<TF, TT>{(const TF *)from, (TT *)to, add})));
}

/* Gives d loss / d out to input k.  The tape lets input 0 share the buffer: nothing to do. */
static inline void pass_gradient(cgs_device *d, const cgs_record *r, int k, const char *what) {
    const cgs_tensor *x = r->in[k];
    if (!cgs_wants(r, k) || (x->grad == r->out->grad && !r->accumulate[k])) return;
    launch_convert(d, x->grad, x->dtype, r->out->grad, r->out->dtype, cgs_numel(x),
                   r->accumulate[k], what);
}

/* Dropout of elements by the record that draws, or none: NULL. */
struct dropout_mask {
    uint64_t key;
    const uint64_t *step;
    float p, scale;
    /* v, elements i .. i+V-1 of the record's result, times what is kept of them */
    template <int V> __device__ __forceinline__ void apply(float (&v)[V], size_t i) const {
        if (p <= 0) return;
        uint64_t k64 = update_key(key, step);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] *= keep_factor(k64, i + k, p, scale);
    }
};

static inline dropout_mask mask_of(cgs_device *d, const cgs_record *r) {
    if (!r) return {};
    return {r->arg.dropout.key, cgs_cuda_step(d, r), r->arg.dropout.p,
            keep_scale(r->arg.dropout.p)};
}

/* the neighbour, if it is a dropout that runs with this record */
static inline const cgs_record *joined_dropout(const cgs_record *neighbour) {
    return cgs_cuda_is(neighbour, CGS_OP_dropout) ? neighbour : NULL;
}

#endif /* CGS_OPS_CUDA_ELEMENTWISE_CUH */
