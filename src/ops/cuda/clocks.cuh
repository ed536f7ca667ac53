/* clocks.cuh - where the time of a long kernel goes.  `make CLOCKS=1` builds kernels in whose first
 * block a thread counts the cycles of each phase, and prints them behind two launches (the 19th and
 * 20th, so both kernels of a gradient do); in any other build nothing of this is left. */
#ifndef CGS_OPS_CUDA_CLOCKS_CUH
#define CGS_OPS_CUDA_CLOCKS_CUH

#include "ops/cuda/kernels.cuh"

#ifdef CGS_CLOCKS
#include <stdio.h>

namespace {

enum { CLOCK_PHASES = 16 };
__device__ unsigned long long clock_sums[CLOCK_PHASES];
__device__ unsigned clock_launches;

struct phase_clock {
    bool on;
    long long last;
    __device__ void start(bool mine) {
        on = mine;
        last = clock64();
    }
    __device__ void mark(int phase) {
        if (!on) return;
        long long now = clock64();
        clock_sums[phase] += (unsigned long long)(now - last);
        last = clock64();
    }
};

/* a kernel of its own: a call inside would keep products of warpgroups from overlapping */
__global__ void print_clocks(int blocks) {
    unsigned launch = ++clock_launches;
    bool print = launch == 19 || launch == 20;
    if (print) printf("%d blocks, cycles a phase:", blocks);
    for (int i = 0; i < CLOCK_PHASES; i++) {
        if (print) printf(" %llu", clock_sums[i]);
        clock_sums[i] = 0;
    }
    if (print) printf("\n");
}

inline void show_clocks(cudaStream_t stream, unsigned blocks) {
    print_clocks<<<1, 1, 0, stream>>>((int)blocks);
}

} // namespace

#else

struct phase_clock {
    __device__ void start(bool) {}
    __device__ void mark(int) {}
};
static inline void show_clocks(cudaStream_t, unsigned) {}

#endif

#endif /* CGS_OPS_CUDA_CLOCKS_CUH */
