/* tokens.cu - from pixels to tokens: patches, the class token, positions. */
#include "ops/cuda/elementwise.cuh"

namespace {

struct pixels {
    float mean[3], std[3];
    bool strip, table; /* what fits into shared memory: a row's bytes, where elements come from */
};

/* where element e of a patch comes from: byte from its corner, and channel in bits 30 and 31 */
__device__ __forceinline__ uint32_t origin(unsigned e, unsigned S, unsigned p) {
    unsigned c = e / (p * p), y = e / p % p, x = e % p;
    return (y * S + x) * 3 + c + (c << 30);
}

/* frames u8 (F,S,S,3) -> (F*P, 3*p*p): a block makes one row of patches of one frame, a warp
 * one patch at a time.  A byte has 256 values per channel, so they are normalised once per block,
 * and where the elements of a patch come from is computed once per block too. */
template <int V, class T>
__global__ void __launch_bounds__(256)
    patches(T *out, const uint8_t *frames, int S, int p, pixels q) {
    __shared__ float value[3 * 256];
    extern __shared__ __align__(16) uint8_t shared[]; /* (p, S, 3), (3*p*p) words */
    int side = S / p, width = 3 * p * p;
    size_t frame = blockIdx.x / side, row = blockIdx.x % side;
    size_t bytes = (size_t)p * S * 3, reserved = q.strip ? (bytes + 15) / 16 * 16 : 0;
    const uint8_t *from = frames + (frame * S + row * p) * S * 3;
    uint32_t *origins = (uint32_t *)(shared + reserved);
    out += (frame * side + row) * side * width;
    for (int c = 0; c < 3; c++)
        value[256 * c + threadIdx.x] = ((float)threadIdx.x / 255.0f - q.mean[c]) / q.std[c];
    for (int e = threadIdx.x; q.table && e < width; e += 256) origins[e] = origin(e, S, p);
    if (q.strip) {
        size_t whole = (size_t)from % 16 == 0 ? bytes / 16 : 0;
        for (size_t i = threadIdx.x; i < whole; i += 256)
            reinterpret_cast<uint4 *>(shared)[i] = reinterpret_cast<const uint4 *>(from)[i];
        for (size_t i = 16 * whole + threadIdx.x; i < bytes; i += 256) shared[i] = from[i];
        from = shared;
    }
    __syncthreads();
    for (int col = threadIdx.x / 32; col < side; col += 8)
        for (int e = threadIdx.x % 32 * V; e < width; e += 32 * V) {
            float v[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                uint32_t at = q.table ? origins[e + k] : origin(e + k, S, p);
                v[k] = value[256 * (at >> 30) + from[3 * col * p + (at & 0x3fffffffu)]];
            }
            store<V>(out + (size_t)col * width + e, v);
        }
}

/* the same weights as cgs_resize_weight and cgs_resize_first */
__device__ __forceinline__ int tap(int S, int R, int i, int j) {
    int width = 2 * (S > R ? S : R), apart = (2 * j + 1) * R - (2 * i + 1) * S;
    apart = apart < 0 ? -apart : apart;
    return apart < width ? width - apart : 0;
}
__device__ __forceinline__ int first_tap(int S, int R, int i) {
    int before = (2 * i + 1) * S - 2 * (S > R ? S : R) - R;
    return before < 0 ? 0 : before / (2 * R) + 1;
}

/* frames u8 (F,S,S,3), resized to (R,R), as patches; sums are whole numbers, so exact */
template <class T> struct resized_patches {
    int S, R, p;
    pixels q;
    const uint8_t *frames;
    T *out;
    template <int V> __device__ void at(size_t i) const {
        int width = 3 * p * p, side = R / p, e = (int)(i % width), c = e / (p * p);
        size_t row = i / width, frame = row / ((size_t)side * side);
        int y = (int)(row / side % side) * p + e / p % p, x = (int)(row % side) * p + e % p, wy, wx;
        const uint8_t *from = frames + frame * S * S * 3 + c;
        int x0 = first_tap(S, R, x);
        long long sum = 0, weight = 0;
        for (int a = first_tap(S, R, y); a < S && (wy = tap(S, R, y, a)) != 0; a++)
            for (int b = x0; b < S && (wx = tap(S, R, x, b)) != 0; b++) {
                long long w = (long long)wy * wx;
                sum += w * from[((size_t)a * S + b) * 3];
                weight += w;
            }
        double v = (double)sum / (255.0 * (double)weight);
        out[i] = narrow<T>((float)((v - q.mean[c]) / q.std[c]));
    }
};

/* x (F*P,D), cls (D), pos (P+1,D) -> (F,P+1,D) */
template <class T> struct place {
    size_t D, N; /* N = P + 1 */
    const T *x;
    const float *cls, *pos;
    float *out;
    template <int V> __device__ void at(size_t i) const {
        size_t d = i % D, t = i / D % N, f = i / D / N;
        float v[V], p[V];
        if (t == 0)
            load<V>(v, cls + d);
        else
            load<V>(v, x + (f * (N - 1) + t - 1) * D + d);
        load<V>(p, pos + t * D + d);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] += p[k];
        store<V>(out + i, v);
    }
};

template <class T> struct place_back {
    size_t D, N;
    bool add;
    const float *g;
    T *dx;
    template <int V> __device__ void at(size_t i) const { /* of dx */
        size_t PD = (N - 1) * D;
        float v[V];
        load<V>(v, g + i / PD * N * D + D + i % PD);
        give<V>(dx + i, v, add);
    }
};

/* x (B,T,D) + pos (>=T,D) */
template <class T> struct add_positions {
    size_t TD;
    const T *x;
    const float *pos;
    float *out;
    template <int V> __device__ void at(size_t i) const {
        float v[V], p[V];
        load<V>(v, x + i);
        load<V>(p, pos + i % TD);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] += p[k];
        store<V>(out + i, v);
    }
};

} // namespace

extern "C" {

void cgs_cuda_patchify_forward(cgs_device *d, const cgs_record *r) {
    int S = r->arg.patchify.size, p = r->arg.patchify.patch;
    size_t most = 40 * 1024, strip = ((size_t)p * S * 3 + 15) / 16 * 16;
    size_t table = 3 * (size_t)p * p * sizeof(uint32_t);
    pixels q;
    q.table = table <= most;
    q.strip = q.table && table + strip <= most;
    for (int c = 0; c < 3; c++) {
        q.mean[c] = r->arg.patchify.mean[c];
        q.std[c] = r->arg.patchify.std[c];
    }
    if (r->in[0]->dim[1] != S) {
        WITH_TYPE(
            T, r->out->dtype,
            launch_each(d, cgs_numel(r->out), false, "patchify",
                        resized_patches<T>{r->in[0]->dim[1], S, p, q,
                                           (const uint8_t *)r->in[0]->data, (T *)r->out->data}));
        return;
    }
    size_t shared = (q.table ? table : 0) + (q.strip ? strip : 0);
    unsigned blocks = (unsigned)r->in[0]->dim[0] * (unsigned)(S / p);
    const uint8_t *frames = (const uint8_t *)r->in[0]->data;
    if (p % 2 == 0)
        WITH_TYPE(T, r->out->dtype,
                  patches<2>
                  <<<blocks, 256, shared, stream_of(d)>>>((T *)r->out->data, frames, S, p, q));
    else
        WITH_TYPE(T, r->out->dtype,
                  patches<1>
                  <<<blocks, 256, shared, stream_of(d)>>>((T *)r->out->data, frames, S, p, q));
    LAUNCHED(d, "patchify");
}

/* bytes have no gradient */
void cgs_cuda_patchify_backward(cgs_device *, const cgs_record *) {}

void cgs_cuda_tokens_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *cls = r->in[1], *pos = r->in[2];
    size_t D = (size_t)cgs_cols(x), N = cgs_numel(pos) / D;
    WITH_TYPE(T, x->dtype,
              launch_each(d, cgs_numel(r->out), D % 8 == 0, "tokens",
                          place<T>{D, N, (const T *)x->data, (const float *)cls->data,
                                   (const float *)pos->data, (float *)r->out->data}));
}

void cgs_cuda_tokens_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *cls = r->in[1], *pos = r->in[2], *y = r->out;
    size_t D = (size_t)cgs_cols(x), N = cgs_numel(pos) / D, F = cgs_rows(y) / N;
    if (cgs_wants(r, 0))
        WITH_TYPE(T, x->dtype,
                  launch_each(
                      d, cgs_numel(x), D % 8 == 0, "tokens backward",
                      place_back<T>{D, N, r->accumulate[0], (const float *)y->grad, (T *)x->grad}));
    if (!cgs_wants(r, 1) && !cgs_wants(r, 2)) return;
    /* sums over frames: all of them for positions, the first row of them for the class token */
    float *sums = (float *)cgs_cuda_of(d)->scratch, *parts = sums + N * D;
    cgs_cuda_column_sums(d, sums, false, y->grad, CGS_F32, F, N * D, parts);
    if (cgs_wants(r, 1))
        launch_convert(d, cls->grad, CGS_F32, sums, CGS_F32, D, r->accumulate[1],
                       "tokens backward");
    if (cgs_wants(r, 2))
        launch_convert(d, pos->grad, CGS_F32, sums, CGS_F32, N * D, r->accumulate[2],
                       "tokens backward");
}

void cgs_cuda_add_pos_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    size_t TD = (size_t)x->dim[1] * (size_t)x->dim[2];
    WITH_TYPE(T, x->dtype,
              launch_each(d, cgs_numel(x), TD % 8 == 0, "add_pos",
                          add_positions<T>{TD, (const T *)x->data, (const float *)r->in[1]->data,
                                           (float *)r->out->data}));
}

void cgs_cuda_add_pos_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *pos = r->in[1];
    size_t TD = (size_t)x->dim[1] * (size_t)x->dim[2];
    pass_gradient(d, r, 0, "add_pos backward");
    if (!cgs_wants(r, 1)) return;
    cgs_cuda_clear_grad(d, r, 1); /* rows beyond T */
    cgs_cuda_column_sums(d, (float *)pos->grad, r->accumulate[1], r->out->grad, CGS_F32,
                         (size_t)x->dim[0], TD, (float *)cgs_cuda_of(d)->scratch);
}

} /* extern "C" */
