/* attend_first.cu - what attention gives token 0, whose own q, k and v come apart from the others'.
 *   own (B,1,3*heads*width) f32, qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,1,heads*width) f32;  saved: lse (B,heads)
 *
 * A block takes one head of one batch element: its warps take keys in turn, then its threads
 * columns of the sum over tokens, whose weights lie in shared memory.  Sums have a fixed order. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / 32 };

template <class T> struct head {
    int tokens, width, part, row; /* part: from q to k to v; row: from a token to the next */
    float scale;
    const float *own; /* all of them at token 0 */
    const T *qkv;

    /* moves on to the block's head */
    __device__ __forceinline__ void enter(int heads) {
        size_t b = blockIdx.x / heads, h = blockIdx.x % heads;
        own += b * row + h * width;
        qkv += b * tokens * row + h * width;
    }
    /* column c of part 1 (k) or 2 (v) of token j */
    __device__ __forceinline__ float at(int which, int j, int c) const {
        int in = which * part + c;
        return j ? widen(qkv[(size_t)j * row + in]) : own[in];
    }
    /* with a row of `width` numbers; every lane of the warp gets it */
    __device__ __forceinline__ float dot(int which, int j, const float *x) const {
        float sum = 0;
        for (int c = threadIdx.x % 32; c < width; c += 32) sum += x[c] * at(which, j, c);
        return warp_sum(sum);
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS)
    first_forward(float *out, float *lse, head<T> h, int heads) {
    extern __shared__ float p[]; /* (tokens) */
    __shared__ float partial[32];
    h.enter(heads);
    out += (size_t)blockIdx.x * h.width; /* heads lie one after the other */
    for (int j = threadIdx.x / 32; j < h.tokens; j += WARPS) {
        float s = h.dot(1, j, h.own) * h.scale;
        if (threadIdx.x % 32 == 0) p[j] = s;
    }
    __syncthreads();
    float top = -INFINITY, sum = 0;
    for (int j = threadIdx.x % 32; j < h.tokens; j += 32) top = fmaxf(top, p[j]);
    top = warp_max(top); /* the same in every warp */
    __syncthreads();
    for (int j = threadIdx.x; j < h.tokens; j += THREADS) {
        p[j] = expf(p[j] - top);
        sum += p[j];
    }
    sum = block_sum(sum, partial);
    for (int c = threadIdx.x; c < h.width; c += THREADS) {
        float y = 0;
#pragma unroll 8
        for (int j = 0; j < h.tokens; j++) y += p[j] * h.at(2, j, c);
        out[c] = y / sum;
    }
    if (threadIdx.x == 0) lse[blockIdx.x] = top + logf(sum);
}

/* dv = p dout,  dp = dout v,  ds = p (dp - dout out),  dq = ds k,  dk = ds q */
template <class T>
__global__ void __launch_bounds__(THREADS)
    first_backward(float *d_own, bool add_own, T *dqkv, bool add, const float *dout,
                   const float *out, const float *lse, head<T> h, int heads) {
    extern __shared__ float ds[]; /* (tokens) */
    size_t b = blockIdx.x / heads, first = blockIdx.x % heads * h.width;
    int lane = threadIdx.x % 32;
    h.enter(heads);
    dout += (size_t)blockIdx.x * h.width;
    out += (size_t)blockIdx.x * h.width;
    if (d_own) d_own += b * h.row + first;
    if (dqkv) dqkv += b * h.tokens * h.row + first;
    float row_dot = 0, norm = lse[blockIdx.x];
    for (int c = lane; c < h.width; c += 32) row_dot += dout[c] * out[c];
    row_dot = warp_sum(row_dot);
    for (int j = threadIdx.x / 32; j < h.tokens; j += WARPS) {
        float p = expf(h.dot(1, j, h.own) * h.scale - norm);
        float d = h.scale * p * (h.dot(2, j, dout) - row_dot);
        if (lane == 0) ds[j] = d;
        for (int c = lane; c < h.width; c += 32) {
            float dk = d * h.own[c], dv = p * dout[c];
            if (j == 0 && d_own) {
                give_one(d_own + h.part + c, dk, add_own);
                give_one(d_own + 2 * h.part + c, dv, add_own);
            } else if (j > 0 && dqkv) {
                give_one(dqkv + (size_t)j * h.row + h.part + c, dk, add);
                give_one(dqkv + (size_t)j * h.row + 2 * h.part + c, dv, add);
            }
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; d_own && c < h.width; c += THREADS) {
        float dq = 0;
#pragma unroll 8
        for (int j = 0; j < h.tokens; j++) dq += ds[j] * h.at(1, j, c);
        give_one(d_own + c, dq, add_own);
    }
}

template <class T> head<T> head_of(const cgs_record *r) {
    int width = r->arg.attend_first.width, all = r->arg.attend_first.heads * width;
    return {r->in[1]->dim[1],
            width,
            all,
            3 * all,
            1.0f / sqrtf((float)width),
            (const float *)r->in[0]->data,
            (const T *)r->in[1]->data};
}

/* in whole pieces of 16 bytes, as the compiler reads them */
size_t shared_bytes(const cgs_record *r) {
    return ((size_t)r->in[1]->dim[1] + 3) / 4 * 4 * sizeof(float);
}

template <class T> void forward(cgs_device *d, const cgs_record *r) {
    int heads = r->arg.attend_first.heads;
    first_forward<<<(unsigned)(r->out->dim[0] * heads), THREADS, shared_bytes(r), stream_of(d)>>>(
        (float *)r->out->data, (float *)r->saved[0]->data, head_of<T>(r), heads);
    LAUNCHED(d, "attend_first");
}

template <class T> void backward(cgs_device *d, const cgs_record *r) {
    int heads = r->arg.attend_first.heads;
    float *d_own = cgs_wants(r, 0) ? (float *)r->in[0]->grad : NULL;
    T *dqkv = cgs_wants(r, 1) ? (T *)r->in[1]->grad : NULL;
    cgs_cuda_clear_grad(d, r, 1); /* the q of qkv and its row 0 */
    first_backward<<<(unsigned)(r->out->dim[0] * heads), THREADS, shared_bytes(r), stream_of(d)>>>(
        d_own, r->accumulate[0], dqkv, r->accumulate[1], (const float *)r->out->grad,
        (const float *)r->out->data, (const float *)r->saved[0]->data, head_of<T>(r), heads);
    LAUNCHED(d, "attend_first backward");
}

} // namespace

extern "C" {

cgs_status cgs_cuda_attend_first_prepare(const cgs_record *r) {
    if (shared_bytes(r) > 47 * 1024)
        return cgs_fail(CGS_EARG, "attend_first: %d tokens are too many for the GPU",
                        r->in[1]->dim[1]);
    return CGS_OK;
}

void cgs_cuda_attend_first_forward(cgs_device *d, const cgs_record *r) {
    WITH_TYPE(T, r->in[1]->dtype, forward<T>(d, r));
}

void cgs_cuda_attend_first_backward(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0) && !cgs_wants(r, 1)) return;
    WITH_TYPE(T, r->in[1]->dtype, backward<T>(d, r));
}

} /* extern "C" */
