/* kernels.cuh - loading, storing, reducing and launching, for all kernels. */
#ifndef CGS_OPS_CUDA_KERNELS_CUH
#define CGS_OPS_CUDA_KERNELS_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

extern "C" {
#include "ops/cuda/cuda.h"
}

using bf16 = __nv_bfloat16;

/* Runs the code with T as the element type of a tensor of type `dtype`. */
#define WITH_TYPE(T, dtype, ...)                                                                   \
    do {                                                                                           \
        if ((dtype) == CGS_F32) {                                                                  \
            using T = float;                                                                       \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            using T = bf16;                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

#define LAUNCHED(d, what)                                                                          \
    do {                                                                                           \
        cgs_cuda_note(cgs_cuda_of(d), cudaGetLastError(), what);                                   \
        STAMP(d, what);                                                                            \
    } while (0)

static inline cudaStream_t stream_of(const cgs_device *d) { return cgs_cuda_of(d)->stream; }
static inline unsigned blocks_for(size_t n, size_t each) {
    return (unsigned)((n + each - 1) / each);
}

/* ---- V elements at a time, as floats; V is 1 or 8, and 8 are aligned to 16 bytes -------- */

static __device__ __forceinline__ float widen(float x) { return x; }
static __device__ __forceinline__ float widen(bf16 x) { return __bfloat162float(x); }
template <class T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x) { return __float2bfloat16_rn(x); }

template <int V> __device__ __forceinline__ void load(float (&v)[V], const float *p) {
    if constexpr (V == 8) {
        float4 a = *reinterpret_cast<const float4 *>(p),
               b = *reinterpret_cast<const float4 *>(p + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else if constexpr (V == 2) {
        float2 a = *reinterpret_cast<const float2 *>(p);
        v[0] = a.x, v[1] = a.y;
    } else {
        v[0] = *p;
    }
}
static __device__ __forceinline__ void unpack(float (&v)[8], uint4 u) {
    const unsigned w[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = __uint_as_float(w[i] << 16);
        v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
}
template <int V> __device__ __forceinline__ void load(float (&v)[V], const bf16 *p) {
    if constexpr (V == 8) {
        unpack(v, *reinterpret_cast<const uint4 *>(p));
    } else if constexpr (V == 2) {
        unsigned w = *reinterpret_cast<const unsigned *>(p);
        v[0] = __uint_as_float(w << 16);
        v[1] = __uint_as_float(w & 0xffff0000u);
    } else {
        v[0] = widen(*p);
    }
}
template <int V> __device__ __forceinline__ void store(float *p, const float (&v)[V]) {
    if constexpr (V == 8) {
        *reinterpret_cast<float4 *>(p) = make_float4(v[0], v[1], v[2], v[3]);
        *reinterpret_cast<float4 *>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
    } else if constexpr (V == 2) {
        *reinterpret_cast<float2 *>(p) = make_float2(v[0], v[1]);
    } else {
        *p = v[0];
    }
}
static __device__ __forceinline__ unsigned pack(float low, float high) {
    __nv_bfloat162 h = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<unsigned *>(&h);
}
template <int V> __device__ __forceinline__ void store(bf16 *p, const float (&v)[V]) {
    if constexpr (V == 8) {
        *reinterpret_cast<uint4 *>(p) =
            make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
    } else if constexpr (V == 2) {
        *reinterpret_cast<unsigned *>(p) = pack(v[0], v[1]);
    } else {
        *p = narrow<bf16>(v[0]);
    }
}
/* gives a gradient: adds or overwrites */
template <int V, class T> __device__ __forceinline__ void give(T *p, float (&v)[V], bool add) {
    if (add) {
        float old[V];
        load<V>(old, p);
#pragma unroll
        for (int i = 0; i < V; i++) v[i] += old[i];
    }
    store<V>(p, v);
}
template <class T> __device__ __forceinline__ void give_one(T *p, float v, bool add) {
    *p = narrow<T>(add ? widen(*p) + v : v);
}

/* ---- loops over elements ------------------------------------------------------------------ */

/* f.template at<V>(i) handles elements i .. i+V-1 */
template <int V, class F> __global__ void for_each(size_t n, F f) {
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (V == 1) {
        if (i < n) f.template at<1>(i);
        return;
    }
    if (i + V <= n)
        f.template at<V>(i);
    else
        for (; i < n; i++) f.template at<1>(i);
}

/* in_eights: whether f may take 8 elements at a time that start at multiples of 8 */
template <class F>
static void launch_each(cgs_device *d, size_t n, bool in_eights, const char *what, F f) {
    if (n == 0) return;
    if (in_eights)
        for_each<8><<<blocks_for(n, 8 * 256), 256, 0, stream_of(d)>>>(n, f);
    else
        for_each<1><<<blocks_for(n, 256), 256, 0, stream_of(d)>>>(n, f);
    LAUNCHED(d, what);
}

/* ---- reductions in a fixed order ------------------------------------------------------------- */

template <class T> __device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
static __device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

/* over a block of up to 1024 threads in x; every thread gets it; `partial` holds 32 values */
template <class T> __device__ T block_sum(T v, T *partial) {
    v = warp_sum(v);
    __syncthreads(); /* partial may still be in use */
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    T all = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : T(0);
    return warp_sum(all);
}

/* ---- random numbers, bit for bit those of core/rng.h ----------------------------------------- */

static __device__ __forceinline__ uint64_t mix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}
static __device__ __forceinline__ uint64_t rng_at(uint64_t key, uint64_t n) {
    return mix64(key ^ mix64(n));
}
/* the key of an update, as CGS_DROPOUT_KEY */
static __device__ __forceinline__ uint64_t update_key(uint64_t key, const uint64_t *step) {
    return mix64(key ^ mix64(*step));
}
/* dropout: 0, or `scale` = 1 / (1 - p) */
static __device__ __forceinline__ float keep_factor(uint64_t key, uint64_t i, float p,
                                                    float scale) {
    return (float)(rng_at(key, i) >> 40) * 0x1p-24f >= p ? scale : 0.0f;
}
static inline float keep_scale(float p) { return (float)(1.0 / (1.0 - (double)p)); }

#endif /* CGS_OPS_CUDA_KERNELS_CUH */
