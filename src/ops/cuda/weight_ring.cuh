/* weight_ring.cuh - a ring of slabs of packed weights in shared memory, which one warp keeps filled
 * by bulk copies. */
#ifndef CGS_OPS_CUDA_WEIGHT_RING_CUH
#define CGS_OPS_CUDA_WEIGHT_RING_CUH

#include "ops/cuda/bulk.cuh"
#include "ops/cuda/predictor.cuh"

namespace {

enum { RING_SLAB = 8 * PAIRS_D * 512, RING_MOST = 8 };

/* Where a slab comes from: `pieces` runs of equal size, of which each lane names one. */
struct slab_source {
    const uint4 *from;
    int pieces;
};
/* 8 tiles from `tile` on, of 192 inputs: one run */
__device__ __forceinline__ slab_source whole_tiles(const uint4 *W, int tile) {
    return {W + (size_t)tile * PAIRS_D * 32, 1};
}
/* `pairs` pairs from `pair` on, of tiles `tile` on that have `row` of them */
__device__ __forceinline__ slab_source parts_of_tiles(const uint4 *W, int tile, int row, int pair,
                                                      int pairs) {
    return {W + ((size_t)(tile + threadIdx.x % 32) * row + pair) * 32, RING_SLAB / (pairs * 512)};
}

/* of the part that one of S blocks has */
template <int S> struct ring {
    enum { LAYER = 8 * 16 / S, PROJECTOR = 4 * 16 / S }; /* slabs of a block of the predictor */
    unsigned char *slabs;
    phase_counter *full;
    int slots, done, slot; /* slabs that are used up; where the next one lies */
    uint32_t phase;        /* of its counter */
    int asked, total;      /* asked for so far; all that this launch needs */
    int ask_slot, ask_at;  /* of the next one to ask for, and its number in its step */

    static __host__ __device__ size_t bytes(int slots) {
        return (size_t)slots * RING_SLAB + RING_MOST * sizeof(phase_counter);
    }
    /* All threads; a barrier has to follow. */
    __device__ void make(const task &p, unsigned char *memory) {
        slabs = memory;
        full = (phase_counter *)(memory + (size_t)p.slots * RING_SLAB);
        slots = p.slots;
        done = slot = asked = ask_slot = ask_at = 0;
        phase = 0;
        total = p.H * (LAYER * p.layers + PROJECTOR);
        if (threadIdx.x == 0) {
            for (int i = 0; i < slots; i++) counter_make(&full[i], 1);
            counters_made();
        }
    }
    /* n more slabs, at most as many as there are slots, are used up */
    __device__ void pass(int n) {
        done += n;
        slot += n;
        if (slot >= slots) {
            slot -= slots;
            phase ^= 1;
        }
    }
    /* One warp: asks for slabs as far as there are slots.  source(i) says where slab i of a step
     * comes from. */
    template <class F> __device__ void fill(const task &p, F source) {
        for (; asked < total && asked < done + slots; asked++) {
            slab_source s = source(ask_at);
            int lane = threadIdx.x % 32, size = RING_SLAB / s.pieces;
            if (lane == 0) counter_expect(&full[ask_slot], RING_SLAB);
            __syncwarp();
            if (lane < s.pieces)
                copy_bulk(slabs + (size_t)ask_slot * RING_SLAB + lane * size, s.from, size,
                          &full[ask_slot]);
            if (++ask_slot == slots) ask_slot = 0;
            if (++ask_at == LAYER * p.layers + PROJECTOR) ask_at = 0;
        }
    }
    /* slab number `ahead` behind those that are used up */
    __device__ const uint4 *await(int ahead) const {
        int at = slot + ahead;
        bool around = at >= slots;
        if (around) at -= slots;
        counter_wait(&full[at], phase ^ (uint32_t)around);
        return (const uint4 *)(slabs + (size_t)at * RING_SLAB);
    }
};

/* KP pairs of tile `tile` of a slab */
template <int NT, int KP>
__device__ __forceinline__ void take_tile(weights<NT, KP> &w, int n, const uint4 *slab, int tile) {
#pragma unroll
    for (int k = 0; k < KP; k++) w.b[n][k] = slab[(tile * KP + k) * 32 + threadIdx.x % 32];
}

} // namespace

#endif /* CGS_OPS_CUDA_WEIGHT_RING_CUH */
