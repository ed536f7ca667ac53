/* timeline.cu - time from launch to launch, for builds with `make CLOCKS=1`: after every kernel
 * one thread reads the GPU's clock and adds the time since its last reading to the sum of the
 * kernel's name.  That thread's own launch is in every reading; "stamp" says how long it takes
 * alone. */
#include "ops/cuda/kernels.cuh"

#ifdef CGS_CLOCKS
#include <stdio.h>
#include <string.h>

namespace {

enum { NAME = 28, NAMES = 64 };

struct label {
    char text[NAME];
};

__device__ struct {
    label name;
    unsigned long long time;
    unsigned count;
} stamp_sums[NAMES];
__device__ unsigned long long stamp_last;
__device__ int stamp_size, stamp_rollouts;

__device__ unsigned long long gpu_time() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void take_stamp(label name) {
    unsigned long long now = gpu_time();
    for (int i = 0; i < NAMES; i++) {
        bool same = true;
        for (int c = 0; c < NAME; c++) same = same && stamp_sums[i].name.text[c] == name.text[c];
        if (!same && stamp_sums[i].name.text[0]) continue;
        stamp_sums[i].name = name;
        stamp_sums[i].time += now - stamp_last;
        stamp_sums[i].count++;
        break;
    }
    stamp_last = gpu_time();
}

__global__ void print_stamps(int size) {
    if (stamp_size != size) stamp_rollouts = 0;
    stamp_size = size;
    int n = ++stamp_rollouts;
    for (int i = 0; n == 58 && i < NAMES && stamp_sums[i].name.text[0]; i++)
        printf("timeline %d: %-28s %6.2f an iteration, %8.2f us each\n", size,
               stamp_sums[i].name.text, stamp_sums[i].count / 25.0,
               stamp_sums[i].time / 1000.0 / (stamp_sums[i].count ? stamp_sums[i].count : 1));
    for (int i = 0; n == 33 && i < NAMES; i++) {
        stamp_sums[i].name.text[0] = 0;
        stamp_sums[i].time = stamp_sums[i].count = 0;
    }
    stamp_last = gpu_time();
}

} // namespace

extern "C" {

void cgs_cuda_stamp(cgs_cuda *c, const char *what) {
    label name = {};
    strncpy(name.text, what, NAME - 1);
    take_stamp<<<1, 1, 0, c->stream>>>(name);
}

void cgs_cuda_show_stamps(cgs_cuda *c, int size) {
    print_stamps<<<1, 1, 0, c->stream>>>(size);
    cgs_cuda_stamp(c, "stamp");
}

} /* extern "C" */
#endif
