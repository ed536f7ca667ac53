/* emulate.h - threads of CUDA blocks as fibers on a CPU.
 *
 * translate.py makes C++ of the kernels; fibers.cpp runs them, ptx*.cpp what they write as asm.
 * runtime.cpp and streams.cpp stand for CUDA's runtime, products.cpp for cuBLASLt.
 *
 * It sees wrong results, deadlocks (and says who waits for what), instructions that it does not
 * know, shared memory that is read before it was written (it begins as NaN) or written after its
 * end, and access after an array, rounded up to 256 bytes.  Whether anybody waits for what has to
 * come first shows when that comes late, by the environment:
 *   CGS_EMULATE_ORDER=reverse|random   whose turn it is among the threads; else by their number
 *   CGS_EMULATE_ASYNC=early            copies and products that a thread does not wait for happen
 *                                      at once; else as late as they may
 *   CGS_EMULATE_STREAMS=main-first|others-first|random   what a stream does happens when the host
 *                                      waits, in one order or the other (streams.cpp); else at once
 *
 * It does not see missing fences (a thread runs until it waits, and all see what it wrote), nor
 * anything of registers, banks and time. */
#pragma once
#include <algorithm>
#include <functional>
#include <stdint.h>
#include <string.h>
#include <string>
#include <vector>

namespace emulate {

/* ---- operands of PTX ---- */
struct operand {
    void *p;    /* out: the variable */
    uint64_t v; /* in: its bits */
    int size;
};
inline operand none() { return {nullptr, 0, 0}; }
template <class T> operand out(T &x) { return {(void *)&x, 0, (int)sizeof x}; }
template <class T> operand in(const T &x) {
    operand o = {nullptr, 0, (int)sizeof(T)};
    memcpy(&o.v, &x, sizeof(T));
    return o;
}
inline float f32(const operand &o) {
    float f;
    memcpy(&f, &o.v, 4);
    return f;
}

/* one asm statement: `name` is its instructions joined by blanks, without operands */
typedef void (*ptx_function)(const struct instruction &, operand *out, operand *in);
struct instruction {
    const char *text;
    ptx_function f;
    instruction(const char *text);
    void run(operand *o, operand *i) const { f(*this, o, i); }
};

/* ---- where a thread is ---- */
struct uint3_ {
    unsigned x, y, z;
};
} // namespace emulate
extern emulate::uint3_ threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
namespace emulate {

void *dynamic_shared();
void *static_shared(int key, size_t bytes);
int new_key();

void sync_threads();
void named_barrier(int id, int threads, bool wait);
void cluster_barrier();
void cluster_arrive();
void cluster_wait();
/* all lanes of the warp (or of the group of 128 threads) hand over `mine`; the last one runs f
 * over all of them */
typedef void (*meeting)(void **args, int n);
void warp_meet(void *mine, meeting f);
void group_meet(void *mine, meeting f);
void wait_a_little(); /* another thread has to do something first */
void wait_for_bit(const int *value, int mask, const char *why); /* until its bits change */
void progress();                     /* something was done that others wait for */
void later(std::function<void()> f); /* an asynchronous copy: at once, or as late as possible */
void die(const char *why, ...);
uint32_t to_shared(const void *p);
void *from_shared(uint32_t a);

/* ---- launching ---- */
void enqueue(cudaStream_t s, std::function<void()> f); /* or records it: see streams.cpp */
void run_grid(dim3 grid, dim3 block, size_t shared, int cluster, bool together,
              const std::function<void()> &body);

template <class K, class... A>
void launch(dim3 grid, dim3 block, size_t shared, cudaStream_t s, K k, A... a) {
    enqueue(s, [=] { run_grid(grid, block, shared, 1, false, [=] { k(a...); }); });
}

template <class T> T shuffle(T v, int from) {
    struct box {
        T v;
        int from;
        T got;
    } mine = {v, from, v};
    warp_meet(&mine, [](void **a, int n) {
        for (int i = 0; i < n; i++) {
            box *b = (box *)a[i];
            if (!b) continue;
            if (b->from < n && a[b->from]) b->got = ((box *)a[b->from])->v;
        }
    });
    return mine.got;
}
int lane();

} // namespace emulate

#define warpSize 32

inline void __syncthreads() { emulate::sync_threads(); }
inline void __syncwarp(unsigned = 0) { emulate::warp_meet(nullptr, nullptr); }
template <class T> T __shfl_xor_sync(unsigned, T v, int x) {
    return emulate::shuffle(v, emulate::lane() ^ x);
}
template <class T> T __shfl_down_sync(unsigned, T v, int x) {
    return emulate::shuffle(v, emulate::lane() + x);
}
template <class T> T __shfl_sync(unsigned, T v, int x) { return emulate::shuffle(v, x); }
inline int __any_sync(unsigned, int p) {
    struct box {
        int v, got;
    } mine = {p, 0};
    emulate::warp_meet(&mine, [](void **a, int n) {
        int any = 0;
        for (int i = 0; i < n; i++)
            if (a[i]) any |= ((box *)a[i])->v != 0;
        for (int i = 0; i < n; i++)
            if (a[i]) ((box *)a[i])->got = any;
    });
    return mine.got;
}
inline float __uint_as_float(unsigned u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
inline unsigned __float_as_uint(float f) {
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
inline size_t __cvta_generic_to_shared(const void *p) { return emulate::to_shared(p); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __trap() { emulate::die("trap"); }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int atomicAdd(int *p, int v) {
    int o = *p;
    *p += v;
    emulate::progress();
    return o;
}
inline unsigned atomicAdd(unsigned *p, unsigned v) {
    unsigned o = *p;
    *p += v;
    emulate::progress();
    return o;
}
using std::max;
using std::min;

template <class F> cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int) {
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveClusters(int *n, F *, const cudaLaunchConfig_t *c) {
    int S = 1;
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            S = (int)c->attrs[i].val.clusterDim.x;
    *n = S == 16 ? 7 : 132 / S; /* as an H200 says */
    return cudaSuccess;
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*k)(P...), const A &...a) {
    int S = 1;
    bool together = false;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            S = (int)c->attrs[i].val.clusterDim.x;
        if (c->attrs[i].id == cudaLaunchAttributeCooperative)
            together = c->attrs[i].val.cooperative != 0;
    }
    dim3 grid = c->gridDim, block = c->blockDim;
    size_t shared = c->dynamicSmemBytes;
    emulate::enqueue(
        c->stream, [=] { emulate::run_grid(grid, block, shared, S, together, [=] { k(a...); }); });
    return cudaSuccess;
}
