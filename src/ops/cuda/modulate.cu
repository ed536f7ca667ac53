/* modulate.cu - what a conditioning matrix does to tokens: x (1 + scale) + shift, and
 * x + gate y.  Scale, shift and gate are D columns of the row of m (rows,C) that a token uses;
 * a row belongs to one token only, so gradients of m need no sums.
 *
 * Where y comes from a dropout, the gate does that on the way, in both directions; y itself is
 * written, since backward reads it. */
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/modulate.cuh"

namespace {

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
    dropout_mask drop;
    const TX *x;
    const TY *y;
    TY *dropped; /* where y goes after its dropout, or NULL */
    const TM *m;
    TX *out;
    template <int V> __device__ void at(size_t i) const {
        float a[V], b[V], c[V];
        load<V>(a, x + i);
        load<V>(b, y + i);
        if (dropped) {
            drop.apply(b, i);
            store<V>(dropped + i, b);
            load<V>(b, dropped + i); /* rounded, if it is */
        }
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
    dropout_mask drop; /* of what dy goes to */
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
            drop.apply(a, i);
            give<V>(dy + i, a, add_y);
        }
    }
};

bool eights(int a, int b, int c, int d) { return (a | b | c | d) % 8 == 0; }

/* gate_add has three types; x's and m's, y's are named here */
template <class TX, class TY> void gate_forward(cgs_device *d, const cgs_record *r) {
    const cgs_record *dropout = joined_dropout(r->before);
    const cgs_tensor *x = r->in[0], *y = dropout ? dropout->in[0] : r->in[1], *m = r->in[2];
    conditioning c = {r->arg.gate_add.rows, cgs_cols(x), cgs_cols(m)};
    int g = r->arg.gate_add.gate;
    dropout_mask mask = mask_of(d, dropout);
    TY *dropped = dropout ? (TY *)r->in[1]->data : NULL;
    WITH_TYPE(TM, m->dtype,
              launch_each(d, cgs_numel(x), eights(c.D, c.C, g, 0), "gate_add",
                          gate<TX, TY, TM>{c, g, mask, (const TX *)x->data, (const TY *)y->data,
                                           dropped, (const TM *)m->data, (TX *)r->out->data}));
}

template <class TX, class TY> void gate_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *y = r->in[1], *m = r->in[2];
    conditioning c = {r->arg.gate_add.rows, cgs_cols(y), cgs_cols(m)};
    int g = r->arg.gate_add.gate;
    const cgs_record *dropout = joined_dropout(r->before), *giver = dropout ? dropout : r;
    const int to = dropout ? 0 : 1; /* the input of it that dy goes to */
    bool want_y = cgs_wants(giver, to), want_m = cgs_wants(r, 2);
    dropout_mask mask = mask_of(d, dropout);
    WITH_TYPE(TM, m->dtype,
              launch_each(d, cgs_numel(y), eights(c.D, c.C, g, 0), "gate_add backward",
                          gate_back<TX, TY, TM>{c, g, giver->accumulate[to], r->accumulate[2], mask,
                                                (const TX *)r->out->grad, (const TY *)y->data,
                                                (const TM *)m->data,
                                                want_y ? (TY *)giver->in[to]->grad : NULL,
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

bool cgs_cuda_dropout_gate_fits(const cgs_device *, const cgs_record *, const cgs_record *dropout,
                                const cgs_record *gate) {
    return gate->in[1] == dropout->out && gate->in[0] != dropout->out;
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
