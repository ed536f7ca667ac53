/* attend_first.cu - attention of token 0 alone.
 *   own (B,1,heads*width) q, or (B,1,3*heads*width) q, k and v of token 0 in place of all's
 *   all (B,T,2*heads*width) k and v, or (B,T,3*heads*width) a q that is not read, k and v
 *   out (B,1,heads*width), in own's type;  saved: lse (B,heads)
 *
 * A block takes one head of one batch element.  A few lanes take a token, V of its columns each at
 * a time, so that heads of 64 in bf16 are read in pieces of 16 bytes; a block reads k and v from
 * memory once.  Sums have a fixed order. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / 32 };

template <class TO, class T> struct head {
    int tokens, width, part, row; /* part: from k to v; row: from a token to the next */
    int lanes;                    /* of a token, a power of two up to 32 */
    float scale;
    bool apart; /* own has k and v of token 0 */
    int own_row;
    const TO *own; /* q */
    const T *all;  /* k of row 0 */

    /* moves on to the block's head */
    __device__ __forceinline__ void enter(int heads) {
        size_t b = blockIdx.x / heads, h = blockIdx.x % heads;
        own += b * own_row + h * width;
        all += b * tokens * row + h * width;
    }
    __device__ __forceinline__ bool is_own(int j) const { return apart && j == 0; }
    __device__ __forceinline__ size_t at(int j) const { return (size_t)j * row; }
    /* V columns from c on of k (part 0) or v (1) of token j */
    template <int V>
    __device__ __forceinline__ void read(float (&x)[V], int p, int j, int c) const {
        if (is_own(j))
            load<V>(x, own + (p + 1) * part + c);
        else
            load<V>(x, all + at(j) + p * part + c);
    }
    /* with a row of `width` numbers; every lane of the token gets it */
    template <int V> __device__ __forceinline__ float dot(int p, int j, const float *with) const {
        float sum = 0;
        for (int c = threadIdx.x % lanes * V; c < width; c += lanes * V) {
            float x[V];
            read<V>(x, p, j, c);
#pragma unroll
            for (int i = 0; i < V; i++) sum += with[c + i] * x[i];
        }
        for (int o = lanes / 2; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        return sum;
    }
};

/* Shared memory: two numbers per token, two rows of a head, and each warp's part of a sum. */
struct block_memory {
    float *p, *ds, *q, *g, *sums;
};
__device__ __forceinline__ block_memory memory_of(float *shared, int tokens, int width) {
    int w = (width + 3) / 4 * 4, t = (tokens + 3) / 4 * 4;
    return {shared + 2 * w, shared + 2 * w + t, shared, shared + w, shared + 2 * w + 2 * t};
}
size_t shared_bytes(const cgs_record *r) {
    size_t width = (size_t)r->arg.attend_first.width, tokens = (size_t)r->in[1]->dim[1];
    return ((width + 3) / 4 * 8 + (tokens + 3) / 4 * 8 + WARPS * 32 * 8) * sizeof(float);
}

/* sum over tokens of factor[j] times its row (part 0: k, 1: v), to f(column, sum) */
template <int V, class H, class F>
__device__ __forceinline__ void weighted_rows(const H &h, int part, const float *factor,
                                              float *sums, F f) {
    int first = threadIdx.x / h.lanes, step = THREADS / h.lanes, lane = threadIdx.x % 32;
    for (int from = 0; from < h.width; from += h.lanes * V) {
        int c = from + threadIdx.x % h.lanes * V;
        float sum[V] = {0};
        if (c < h.width)
#pragma unroll 4
            for (int j = first; j < h.tokens; j += step) {
                float x[V];
                h.template read<V>(x, part, j, c);
#pragma unroll
                for (int i = 0; i < V; i++) sum[i] += factor[j] * x[i];
            }
#pragma unroll
        for (int i = 0; i < V; i++)
            for (int o = 16; o >= h.lanes; o /= 2)
                sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], o);
        __syncthreads(); /* sums may still be in use */
        if (lane < h.lanes)
#pragma unroll
            for (int i = 0; i < V; i++) sums[(threadIdx.x / 32 * h.lanes + lane) * V + i] = sum[i];
        __syncthreads();
        for (int i = threadIdx.x; i < h.lanes * V && from + i < h.width; i += THREADS) {
            float all = 0;
            for (int w = 0; w < WARPS; w++) all += sums[w * h.lanes * V + i];
            f(from + i, all);
        }
    }
}

template <int V, class TO, class T>
__global__ void __launch_bounds__(THREADS, 3)
    first_forward(TO *out, float *lse, head<TO, T> h, int heads) {
    extern __shared__ __align__(16) float shared[];
    __shared__ float partial[32];
    block_memory m = memory_of(shared, h.tokens, h.width);
    h.enter(heads);
    out += (size_t)blockIdx.x * h.width; /* heads lie one after the other */
    for (int c = threadIdx.x; c < h.width; c += THREADS) m.q[c] = widen(h.own[c]);
    __syncthreads();
    /* whole warps: lanes without a token compute the last one's */
    int own = threadIdx.x / h.lanes, step = THREADS / h.lanes;
#pragma unroll 2
    for (int from = 0; from < h.tokens; from += step) {
        int j = min(from + own, h.tokens - 1);
        float s = h.template dot<V>(0, j, m.q) * h.scale;
        if (threadIdx.x % h.lanes == 0 && from + own < h.tokens) m.p[j] = s;
    }
    __syncthreads();
    float top = -INFINITY, sum = 0;
    for (int j = threadIdx.x % 32; j < h.tokens; j += 32) top = fmaxf(top, m.p[j]);
    top = warp_max(top); /* the same in every warp */
    __syncthreads();
    for (int j = threadIdx.x; j < h.tokens; j += THREADS) {
        m.p[j] = expf(m.p[j] - top);
        sum += m.p[j];
    }
    sum = block_sum(sum, partial);
    weighted_rows<V>(h, 1, m.p, m.sums, [&](int c, float y) { out[c] = narrow<TO>(y / sum); });
    if (threadIdx.x == 0) lse[blockIdx.x] = top + logf(sum);
}

/* dv = p dout,  dp = dout v,  ds = p (dp - sum p dp),  dq = ds k,  dk = ds q */
template <int V, class TO, class T>
__global__ void __launch_bounds__(THREADS, 3)
    first_backward(TO *d_own, bool add_own, T *d_all, bool add, const TO *dout, const float *lse,
                   head<TO, T> h, int heads) {
    extern __shared__ __align__(16) float shared[];
    __shared__ float partial[32];
    block_memory m = memory_of(shared, h.tokens, h.width);
    size_t b = blockIdx.x / heads, first = blockIdx.x % heads * h.width;
    int own = threadIdx.x / h.lanes, step = THREADS / h.lanes;
    h.enter(heads);
    dout += (size_t)blockIdx.x * h.width;
    if (d_own) d_own += b * h.own_row + first;
    if (d_all) d_all += b * h.tokens * h.row + first;
    for (int c = threadIdx.x; c < h.width; c += THREADS) {
        m.q[c] = widen(h.own[c]);
        m.g[c] = widen(dout[c]);
    }
    __syncthreads();
    float norm = lse[blockIdx.x], row_dot = 0;
#pragma unroll 2
    for (int from = 0; from < h.tokens; from += step) {
        int j = min(from + own, h.tokens - 1);
        float p = expf(h.template dot<V>(0, j, m.q) * h.scale - norm);
        float dp = h.template dot<V>(1, j, m.g);
        if (threadIdx.x % h.lanes == 0 && from + own < h.tokens) {
            m.p[j] = p;
            m.ds[j] = dp;
            row_dot += p * dp;
        }
    }
    row_dot = block_sum(row_dot, partial); /* and everybody's p and ds are there */
    for (int j = threadIdx.x; j < h.tokens; j += THREADS)
        m.ds[j] = h.scale * m.p[j] * (m.ds[j] - row_dot);
    __syncthreads();
    for (int j = own; j < h.tokens; j += step)
        for (int c = threadIdx.x % h.lanes * V; c < h.width; c += h.lanes * V) {
            float dk[V], dv[V];
#pragma unroll
            for (int i = 0; i < V; i++) {
                dk[i] = m.ds[j] * m.q[c + i];
                dv[i] = m.p[j] * m.g[c + i];
            }
            if (h.is_own(j)) {
                if (!d_own) continue;
                give<V>(d_own + h.part + c, dk, add_own);
                give<V>(d_own + 2 * h.part + c, dv, add_own);
            } else if (d_all) {
                give<V>(d_all + h.at(j) + c, dk, add);
                give<V>(d_all + h.at(j) + h.part + c, dv, add);
            }
        }
    if (!d_own) return;
    weighted_rows<V>(h, 0, m.ds, m.sums,
                     [&](int c, float dq) { give_one(d_own + c, dq, add_own); });
}

int part_of(const cgs_record *r) { return cgs_cols(r->out); }
/* whether backward writes all of the gradient of `all` */
bool writes_all(const cgs_record *r) {
    return cgs_cols(r->in[0]) == part_of(r) && cgs_cols(r->in[1]) == 2 * part_of(r);
}

template <class TO, class T> head<TO, T> head_of(const cgs_record *r, int columns_at_once) {
    int width = r->arg.attend_first.width, part = part_of(r), row = cgs_cols(r->in[1]), lanes = 32;
    while (lanes > 1 && lanes / 2 * columns_at_once >= width) lanes /= 2;
    return {r->in[1]->dim[1],
            width,
            part,
            row,
            lanes,
            1.0f / sqrtf((float)width),
            cgs_cols(r->in[0]) > part,
            cgs_cols(r->in[0]),
            (const TO *)r->in[0]->data,
            (const T *)r->in[1]->data + row - 2 * part};
}

template <int V, class TO, class T> void forward(cgs_device *d, const cgs_record *r) {
    int heads = r->arg.attend_first.heads;
    first_forward<V>
        <<<(unsigned)(r->out->dim[0] * heads), THREADS, shared_bytes(r), stream_of(d)>>>(
            (TO *)r->out->data, (float *)r->saved[0]->data, head_of<TO, T>(r, V), heads);
    LAUNCHED(d, "attend_first");
}

template <int V, class TO, class T> void backward(cgs_device *d, const cgs_record *r) {
    int heads = r->arg.attend_first.heads, part = part_of(r);
    TO *d_own = cgs_wants(r, 0) ? (TO *)r->in[0]->grad : NULL;
    T *d_all = cgs_wants(r, 1) ? (T *)r->in[1]->grad + cgs_cols(r->in[1]) - 2 * part : NULL;
    if (!writes_all(r)) cgs_cuda_clear_grad(d, r, 1);
    first_backward<V>
        <<<(unsigned)(r->out->dim[0] * heads), THREADS, shared_bytes(r), stream_of(d)>>>(
            d_own, r->accumulate[0], d_all, r->accumulate[1], (const TO *)r->out->grad,
            (const float *)r->saved[0]->data, head_of<TO, T>(r, V), heads);
    LAUNCHED(d, "attend_first backward");
}

} // namespace

/* runs with the number of columns that a lane takes at once, and both types */
#define WITH_SHAPE(V, TO, T, r, ...)                                                               \
    WITH_TYPE(TO, (r)->in[0]->dtype, WITH_TYPE(T, (r)->in[1]->dtype, {                             \
                  if ((r)->arg.attend_first.width % 8 == 0) {                                      \
                      constexpr int V = 8;                                                         \
                      __VA_ARGS__;                                                                 \
                  } else {                                                                         \
                      constexpr int V = 1;                                                         \
                      __VA_ARGS__;                                                                 \
                  }                                                                                \
              }))

extern "C" {

cgs_status cgs_cuda_attend_first_prepare(const cgs_record *r) {
    if (shared_bytes(r) > 47 * 1024)
        return cgs_fail(CGS_EARG, "attend_first: %d tokens are too many for the GPU",
                        r->in[1]->dim[1]);
    return CGS_OK;
}

void cgs_cuda_attend_first_forward(cgs_device *d, const cgs_record *r) {
    WITH_SHAPE(V, TO, T, r, (forward<V, TO, T>(d, r)));
}

void cgs_cuda_attend_first_backward(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0) && !cgs_wants(r, 1)) return;
    WITH_SHAPE(V, TO, T, r, (backward<V, TO, T>(d, r)));
}

} /* extern "C" */
