/* modulate.cu - what a conditioning matrix does to tokens: x (1 + scale) + shift, and
 * x + gate y.  Scale, shift and gate are D columns of the row of m (rows,C) that a token uses;
 * a row belongs to one token only, so gradients of m need no sums. */
#include "ops/cuda/elementwise.cuh"

namespace {

/* where token i finds its row of m, and where its column d is */
struct conditioning {
    cgs_rowmap map;
    int D, C;
    __device__ size_t row(size_t i) const {
        size_t token = i / D;
        return (token / map.T * map.Tm + map.t0 + token % map.T) * C;
    }
    __device__ int col(size_t i) const { return (int)(i % D); }
};

template <class TX, class TM> struct modulate {
    conditioning at_;
    int shift, scale;
    const TX *x;
    const TM *m;
    TX *out;
    template <int V> __device__ void at(size_t i) const {
        const TM *row = m + at_.row(i) + at_.col(i);
        float v[V], a[V], b[V];
        load<V>(v, x + i);
        load<V>(a, row + scale);
        load<V>(b, row + shift);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = v[k] * (1.0f + a[k]) + b[k];
        store<V>(out + i, v);
    }
};

/* dx, dm: NULL where nobody wants them */
template <class TX, class TM> struct modulate_back {
    conditioning at_;
    int shift, scale;
    bool add_x, add_m;
    const TX *x, *g;
    const TM *m;
    TX *dx;
    TM *dm;
    template <int V> __device__ void at(size_t i) const {
        size_t where = at_.row(i) + at_.col(i);
        float v[V], dy[V], a[V];
        load<V>(dy, g + i);
        if (dx) {
            load<V>(a, m + where + scale);
#pragma unroll
            for (int k = 0; k < V; k++) a[k] = dy[k] * (1.0f + a[k]);
            give<V>(dx + i, a, add_x);
        }
        if (dm) {
            load<V>(v, x + i);
#pragma unroll
            for (int k = 0; k < V; k++) v[k] *= dy[k];
            give<V>(dm + where + scale, v, add_m);
            give<V>(dm + where + shift, dy, add_m);
        }
    }
};

template <class TX, class TY, class TM> struct gate {
    conditioning at_;
    int gate_;
    const TX *x;
    const TY *y;
    const TM *m;
    TX *out;
    template <int V> __device__ void at(size_t i) const {
        float a[V], b[V], c[V];
        load<V>(a, x + i);
        load<V>(b, y + i);
        load<V>(c, m + at_.row(i) + at_.col(i) + gate_);
#pragma unroll
        for (int k = 0; k < V; k++) a[k] += c[k] * b[k];
        store<V>(out + i, a);
    }
};

template <class TX, class TY, class TM> struct gate_back {
    conditioning at_;
    int gate_;
    bool add_y, add_m;
    const TX *g;
    const TY *y;
    const TM *m;
    TY *dy;
    TM *dm;
    template <int V> __device__ void at(size_t i) const {
        size_t where = at_.row(i) + at_.col(i) + gate_;
        float v[V], a[V];
        load<V>(v, g + i);
        if (dm) {
            load<V>(a, y + i);
#pragma unroll
            for (int k = 0; k < V; k++) a[k] *= v[k];
            give<V>(dm + where, a, add_m);
        }
        if (dy) {
            load<V>(a, m + where);
#pragma unroll
            for (int k = 0; k < V; k++) a[k] *= v[k];
            give<V>(dy + i, a, add_y);
        }
    }
};

bool eights(int a, int b, int c, int d) { return (a | b | c | d) % 8 == 0; }

/* gate_add has three types; x's and m's, y's are named here */
template <class TX, class TY> void gate_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2];
    conditioning c = {r->arg.gate_add.rows, cgs_cols(x), cgs_cols(m)};
    int g = r->arg.gate_add.gate;
    WITH_TYPE(TM, m->dtype,
              launch_each(d, cgs_numel(x), eights(c.D, c.C, g, 0), "gate_add",
                          gate<TX, TY, TM>{c, g, (const TX *)x->data, (const TY *)y->data,
                                           (const TM *)m->data, (TX *)r->out->data}));
}

template <class TX, class TY> void gate_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *y = r->in[1], *m = r->in[2];
    conditioning c = {r->arg.gate_add.rows, cgs_cols(y), cgs_cols(m)};
    int g = r->arg.gate_add.gate;
    bool want_y = cgs_wants(r, 1), want_m = cgs_wants(r, 2);
    WITH_TYPE(TM, m->dtype,
              launch_each(d, cgs_numel(y), eights(c.D, c.C, g, 0), "gate_add backward",
                          gate_back<TX, TY, TM>{c, g, r->accumulate[1], r->accumulate[2],
                                                (const TX *)r->out->grad, (const TY *)y->data,
                                                (const TM *)m->data, want_y ? (TY *)y->grad : NULL,
                                                want_m ? (TM *)m->grad : NULL}));
}

} // namespace

extern "C" {

void cgs_cuda_modulate_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    conditioning c = {r->arg.modulate.rows, cgs_cols(x), cgs_cols(m)};
    int shift = r->arg.modulate.shift, scale = r->arg.modulate.scale;
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TM, m->dtype,
                        launch_each(d, cgs_numel(x), eights(c.D, c.C, shift, scale), "modulate",
                                    modulate<TX, TM>{c, shift, scale, (const TX *)x->data,
                                                     (const TM *)m->data, (TX *)r->out->data})));
}

void cgs_cuda_modulate_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    conditioning c = {r->arg.modulate.rows, cgs_cols(x), cgs_cols(m)};
    int shift = r->arg.modulate.shift, scale = r->arg.modulate.scale;
    bool want_x = cgs_wants(r, 0), want_m = cgs_wants(r, 1);
    cgs_cuda_clear_grad(d, r, 1); /* most of m belongs to other records */
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TM, m->dtype,
                        launch_each(
                            d, cgs_numel(x), eights(c.D, c.C, shift, scale), "modulate backward",
                            modulate_back<TX, TM>{
                                c, shift, scale, r->accumulate[0], r->accumulate[1],
                                (const TX *)x->data, (const TX *)r->out->grad, (const TM *)m->data,
                                want_x ? (TX *)x->grad : NULL, want_m ? (TM *)m->grad : NULL})));
}

void cgs_cuda_gate_add_forward(cgs_device *d, const cgs_record *r) {
    WITH_TYPE(TX, r->in[0]->dtype, WITH_TYPE(TY, r->in[1]->dtype, gate_forward<TX, TY>(d, r)));
}

void cgs_cuda_gate_add_backward(cgs_device *d, const cgs_record *r) {
    pass_gradient(d, r, 0, "gate_add backward");
    cgs_cuda_clear_grad(d, r, 2); /* most of m belongs to other records */
    if (cgs_wants(r, 1) || cgs_wants(r, 2))
        WITH_TYPE(TX, r->in[0]->dtype, WITH_TYPE(TY, r->in[1]->dtype, gate_backward<TX, TY>(d, r)));
}

} /* extern "C" */
