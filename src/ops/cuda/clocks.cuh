/* clocks.cuh - where the time of a long kernel goes.  `make CLOCKS=1` builds kernels in whose first
 * block a thread counts the cycles of each phase, and prints them after the 19th launch of its
 * kind and size; in any other build nothing of this is left.  Time between kernels: timeline.cu. */
#ifndef CGS_OPS_CUDA_CLOCKS_CUH
#define CGS_OPS_CUDA_CLOCKS_CUH

#include "ops/cuda/kernels.cuh"

#ifdef CGS_CLOCKS
#include <stdio.h>

namespace {

enum { CLOCK_PHASES = 16 };
__device__ unsigned long long clock_sums[CLOCK_PHASES];
enum clock_kind {
    CLOCK_ROLLOUT,
    CLOCK_FORWARD,
    CLOCK_BACKWARD,
    CLOCK_TILES,
    CLOCK_ATTENTION,
    CLOCK_KINDS
};
__device__ int clock_launches[CLOCK_KINDS], clock_blocks[CLOCK_KINDS];

__device__ __forceinline__ unsigned *clock_here() {
    __shared__ unsigned sums[CLOCK_PHASES]; /* backend.c subtracts them from the capacity */
    return sums;
}

/* Sums stay in shared memory until the end: a barrier's fence would wait for their way out. */
struct phase_clock {
    bool on;
    unsigned last;
    __device__ void start(bool mine) {
        on = mine;
        for (int i = 0; on && i < CLOCK_PHASES; i++) clock_here()[i] = 0;
        last = (unsigned)clock64();
    }
    __device__ void mark(int phase) {
        if (!on) return;
        clock_here()[phase] += (unsigned)clock64() - last;
        last = (unsigned)clock64();
    }
    __device__ ~phase_clock() {
        for (int i = 0; on && i < CLOCK_PHASES; i++)
            atomicAdd(&clock_sums[i], (unsigned long long)atomicExch(&clock_here()[i], 0u));
    }
};

/* when a cluster or block began and ended, and on which multiprocessor: one thread of each calls */
enum { CLOCK_SPANS = 16 };
__device__ unsigned long long span_from[CLOCK_SPANS], span_to[CLOCK_SPANS];
__device__ unsigned span_place[CLOCK_SPANS];
__device__ inline unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
__device__ inline void span_begins(unsigned i) {
    if (i >= CLOCK_SPANS) return;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(span_place[i]));
    span_from[i] = nanoseconds();
}
__device__ inline void span_ends(unsigned i) {
    if (i < CLOCK_SPANS) span_to[i] = nanoseconds();
}

/* the same where shared memory is full: sums go out at once */
struct far_clock {
    bool on;
    unsigned last;
    __device__ void start(bool mine) {
        on = mine;
        last = (unsigned)clock64();
    }
    __device__ void mark(int phase) {
        if (!on) return;
        atomicAdd(&clock_sums[phase], (unsigned long long)((unsigned)clock64() - last));
        last = (unsigned)clock64();
    }
};

/* a kernel of its own: a call inside would keep products of warpgroups from overlapping */
__global__ void print_clocks(int kind, int blocks) {
    if (clock_blocks[kind] != blocks) clock_launches[kind] = 0;
    clock_blocks[kind] = blocks;
    bool print = ++clock_launches[kind] == 19;
    const char *const names[] = {"rollout", "forward", "backward", "tiles", "attention backward"};
    if (print) printf("%s, %d clusters or blocks, cycles a phase:", names[kind], blocks);
    for (int i = 0; i < CLOCK_PHASES; i++) {
        if (print) printf(" %llu", clock_sums[i]);
        clock_sums[i] = 0;
    }
    if (print) printf("\n");
    for (int i = 0; i < CLOCK_SPANS && i < blocks; i++) {
        if (print && span_to[i])
            printf("  %d: multiprocessor %u, %.1f to %.1f us\n", i, span_place[i],
                   1e-3 * (double)(long long)(span_from[i] - span_from[0]),
                   1e-3 * (double)(long long)(span_to[i] - span_from[0]));
        span_to[i] = 0;
    }
}

inline void show_clocks(cudaStream_t stream, clock_kind kind, unsigned blocks) {
    print_clocks<<<1, 1, 0, stream>>>(kind, (int)blocks);
}

} // namespace

#else

struct phase_clock {
    __device__ void start(bool) {}
    __device__ void mark(int) {}
};
typedef phase_clock far_clock;
static __device__ inline void span_begins(unsigned) {}
static __device__ inline void span_ends(unsigned) {}
enum clock_kind { CLOCK_ROLLOUT, CLOCK_FORWARD, CLOCK_BACKWARD, CLOCK_TILES, CLOCK_ATTENTION };
static inline void show_clocks(cudaStream_t, clock_kind, unsigned) {}

#endif

#endif /* CGS_OPS_CUDA_CLOCKS_CUH */
