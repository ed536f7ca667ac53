/* elementwise.cu - operations on one element at a time: add, activations, dropout, and the
 * gradient that passes through unchanged.  A dropout before a gate runs with that (modulate.cu). */
#include "ops/cuda/elementwise.cuh"

namespace {

template <class TX, class TY> struct add_values {
    const TX *x;
    const TY *y;
    TX *out;
    template <int V> __device__ void at(size_t i) const {
        float a[V], b[V];
        load<V>(a, x + i);
        load<V>(b, y + i);
#pragma unroll
        for (int k = 0; k < V; k++) a[k] += b[k];
        store<V>(out + i, a);
    }
};

__device__ __forceinline__ float act_value(int kind, float x) {
    if (kind == CGS_GELU) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    if (kind == CGS_SILU) return x / (1.0f + expf(-x));
    return x > 0.0f ? x : 0.0f;
}

__device__ __forceinline__ float act_slope(int kind, float x) {
    if (kind == CGS_GELU)
        return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) +
               x * 0.39894228040143268f * expf(-0.5f * x * x);
    if (kind == CGS_SILU) {
        float s = 1.0f / (1.0f + expf(-x));
        return s * (1.0f + x * (1.0f - s));
    }
    return x > 0.0f ? 1.0f : 0.0f;
}

template <class TX, class TY> struct activate {
    int kind;
    const TX *x;
    TY *y;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
        load<V>(v, x + i);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = act_value(kind, v[k]);
        store<V>(y + i, v);
    }
};

template <class TX, class TY> struct activate_back {
    int kind;
    bool add;
    const TX *x;
    const TY *dy;
    TX *dx;
    template <int V> __device__ void at(size_t i) const {
        float v[V], g[V];
        load<V>(v, x + i);
        load<V>(g, dy + i);
#pragma unroll
        for (int k = 0; k < V; k++) g[k] *= act_slope(kind, v[k]);
        give<V>(dx + i, g, add);
    }
};

template <class T> struct drop {
    dropout_mask mask;
    bool add;
    const T *x;
    T *y;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
        load<V>(v, x + i);
        mask.apply(v, i);
        give<V>(y + i, v, add);
    }
};

template <class T>
void run_dropout(cgs_device *d, const cgs_record *r, const void *x, void *y, bool add) {
    launch_each(d, cgs_numel(r->out), true, "dropout",
                drop<T>{mask_of(d, r), add, (const T *)x, (T *)y});
}

} // namespace

extern "C" {

void cgs_cuda_add_forward(cgs_device *d, const cgs_record *r) {
    if (cgs_cuda_is(r->next, CGS_OP_layernorm)) return; /* the norm does it */
    const cgs_tensor *x = r->in[0], *y = r->in[1];
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        launch_each(d, cgs_numel(x), true, "add",
                                    add_values<TX, TY>{(const TX *)x->data, (const TY *)y->data,
                                                       (TX *)r->out->data})));
}

void cgs_cuda_add_backward(cgs_device *d, const cgs_record *r) {
    pass_gradient(d, r, 0, "add backward");
    if (!cgs_cuda_norm_gives_added(r)) pass_gradient(d, r, 1, "add backward");
}

void cgs_cuda_activation_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    int kind = r->arg.activation.kind;
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        launch_each(d, cgs_numel(x), true, "activation",
                                    activate<TX, TY>{kind, (const TX *)x->data, (TY *)y->data})));
}

void cgs_cuda_activation_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    int kind = r->arg.activation.kind;
    bool add = r->accumulate[0];
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        launch_each(d, cgs_numel(x), true, "activation backward",
                                    activate_back<TX, TY>{kind, add, (const TX *)x->data,
                                                          (const TY *)y->grad, (TX *)x->grad})));
}

void cgs_cuda_dropout_forward(cgs_device *d, const cgs_record *r) {
    if (r->next) return; /* the gate does it */
    WITH_TYPE(T, r->out->dtype, run_dropout<T>(d, r, r->in[0]->data, r->out->data, false));
}

void cgs_cuda_dropout_backward(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0) || r->next) return;
    WITH_TYPE(T, r->out->dtype,
              run_dropout<T>(d, r, r->out->grad, r->in[0]->grad, r->accumulate[0]));
}

} /* extern "C" */
