/* rows.cu - moving whole rows: take, join, repeat.  A batch element is one run of elements. */
#include "ops/cuda/kernels.cuh"

namespace {

/* y = or += elements first .. first + part of every `whole` elements of x */
template <class T> struct cut {
    size_t whole, part, first;
    bool add;
    const T *x;
    T *y;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
        load<V>(v, x + i / part * whole + first + i % part);
        give<V>(y + i, v, add);
    }
};

/* in reverse: element i of the whole gets what was cut from it, or nothing */
template <class T> struct uncut {
    size_t whole, part, first;
    bool add;
    const T *g;
    T *dx;
    template <int V> __device__ void at(size_t i) const {
        size_t in = i % whole;
        bool inside = in >= first && in < first + part;
        float v[V] = {0};
        if (!inside && add) return;
        if (inside) load<V>(v, g + i / whole * part + in - first);
        give<V>(dx + i, v, add);
    }
};

template <class T> struct paste {
    size_t first, second; /* elements of x and of y in a batch element */
    const T *x, *y;
    T *out;
    template <int V> __device__ void at(size_t i) const {
        size_t b = i / (first + second), in = i % (first + second);
        float v[V];
        load<V>(v, in < first ? x + b * first + in : y + b * second + in - first);
        store<V>(out + i, v);
    }
};

/* out[b*times + k] = x[b] */
template <class T> struct copies {
    size_t n, times;
    const T *x;
    T *out;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
        load<V>(v, x + i / n / times * n + i % n);
        store<V>(out + i, v);
    }
};

template <class T> struct copies_back {
    size_t n, times;
    bool add;
    const T *g;
    T *dx;
    template <int V> __device__ void at(size_t i) const {
        const T *from = g + i / n * n * times + i % n;
        float sum[V] = {0};
        for (size_t k = 0; k < times; k++) {
            float v[V];
            load<V>(v, from + k * n);
#pragma unroll
            for (int e = 0; e < V; e++) sum[e] += v[e];
        }
        give<V>(dx + i, sum, add);
    }
};

bool eights(size_t a, size_t b, size_t c) { return (a | b | c) % 8 == 0; }

struct part {
    size_t whole, taken, first;
};
part taken_part(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], whole = cgs_numel(r->in[0]) / B;
    return {whole, cgs_numel(r->out) / B,
            (size_t)r->arg.take.t0 * (whole / (size_t)r->in[0]->dim[1])};
}

/* block (x, y): piece x of block y; pieces of 16 bytes where those divide a block */
template <class T>
__global__ void __launch_bounds__(256)
    blocks_at(T *to, const T *from, const int64_t *which, size_t each) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < each) to[blockIdx.y * each + i] = from[which[blockIdx.y] * each + i];
}

} // namespace

extern "C" {

void cgs_cuda_gather_blocks(cgs_device *d, void *to, const void *from, const int64_t *which,
                            size_t count, size_t bytes) {
    const size_t most = 65535; /* the grid's y is short */
    for (size_t at = 0; at < count; at += most) {
        unsigned n = (unsigned)(count - at < most ? count - at : most);
        char *here = (char *)to + at * bytes;
        if (bytes % sizeof(uint4) == 0)
            blocks_at<<<dim3(blocks_for(bytes / sizeof(uint4), 256), n), 256, 0, stream_of(d)>>>(
                (uint4 *)here, (const uint4 *)from, which + at, bytes / sizeof(uint4));
        else
            blocks_at<<<dim3(blocks_for(bytes, 256), n), 256, 0, stream_of(d)>>>(
                here, (const char *)from, which + at, bytes);
        LAUNCHED(d, "gathering frames");
    }
}

void cgs_cuda_take_forward(cgs_device *d, const cgs_record *r) {
    if (cgs_cuda_is(r->before, CGS_OP_attention)) return; /* it has put the rows here */
    part p = taken_part(r);
    WITH_TYPE(T, r->out->dtype,
              launch_each(d, cgs_numel(r->out), eights(p.whole, p.taken, p.first), "take",
                          cut<T>{p.whole, p.taken, p.first, false, (const T *)r->in[0]->data,
                                 (T *)r->out->data}));
}

void cgs_cuda_take_backward(cgs_device *d, const cgs_record *r) {
    part p = taken_part(r);
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(T, r->out->dtype,
              launch_each(d, cgs_numel(r->in[0]), eights(p.whole, p.taken, p.first),
                          "take backward",
                          uncut<T>{p.whole, p.taken, p.first, r->accumulate[0],
                                   (const T *)r->out->grad, (T *)r->in[0]->grad}));
}

void cgs_cuda_join_forward(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0], a = cgs_numel(r->in[0]) / B, b = cgs_numel(r->in[1]) / B;
    WITH_TYPE(T, r->out->dtype,
              launch_each(d, cgs_numel(r->out), eights(a, b, 0), "join",
                          paste<T>{a, b, (const T *)r->in[0]->data, (const T *)r->in[1]->data,
                                   (T *)r->out->data}));
}

void cgs_cuda_join_backward(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0], whole = cgs_numel(r->out) / B, first = 0;
    for (int k = 0; k < 2; k++) {
        size_t n = cgs_numel(r->in[k]) / B;
        if (cgs_wants(r, k))
            WITH_TYPE(T, r->out->dtype,
                      launch_each(d, cgs_numel(r->in[k]), eights(whole, n, first), "join backward",
                                  cut<T>{whole, n, first, r->accumulate[k], (const T *)r->out->grad,
                                         (T *)r->in[k]->grad}));
        first += n;
    }
}

void cgs_cuda_repeat_forward(cgs_device *d, const cgs_record *r) {
    size_t n = cgs_numel(r->in[0]) / (size_t)r->in[0]->dim[0], times = (size_t)r->arg.repeat.times;
    WITH_TYPE(T, r->out->dtype,
              launch_each(d, cgs_numel(r->out), n % 8 == 0, "repeat",
                          copies<T>{n, times, (const T *)r->in[0]->data, (T *)r->out->data}));
}

void cgs_cuda_repeat_backward(cgs_device *d, const cgs_record *r) {
    size_t n = cgs_numel(r->in[0]) / (size_t)r->in[0]->dim[0], times = (size_t)r->arg.repeat.times;
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(T, r->out->dtype,
              launch_each(d, cgs_numel(r->in[0]), n % 8 == 0, "repeat backward",
                          copies_back<T>{n, times, r->accumulate[0], (const T *)r->out->grad,
                                         (T *)r->in[0]->grad}));
}

} /* extern "C" */
