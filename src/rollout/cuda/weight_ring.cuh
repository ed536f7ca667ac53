/* weight_ring.cuh - a ring of slabs of packed weights in shared memory, which one warp keeps filled
 * by bulk copies.
 *
 * In memory the slabs of each CTA of a cluster follow each other in the order of a step, so that
 * asking for the next one is a single copy: the warp that asks has products to make, too. */
#ifndef CGS_ROLLOUT_CUDA_WEIGHT_RING_CUH
#define CGS_ROLLOUT_CUDA_WEIGHT_RING_CUH

#include "ops/cuda/ptx/mbarrier.cuh"
#include "rollout/cuda/predictor.cuh"

namespace {

enum { RING_SLAB = 8 * PAIRS_D * 512, RING_MOST = 8 };

/* Where a slab comes from: `pieces` runs of equal size, `apart` from each other. */
struct slab_source {
    const uint4 *from;
    int pieces;
    size_t apart;
};
/* 8 tiles from `tile` on, of 192 inputs: one run */
__device__ __forceinline__ slab_source whole_tiles(const uint4 *W, int tile) {
    return {W + (size_t)tile * PAIRS_D * 32, 1, 0};
}
/* `pairs` pairs from `pair` on, of tiles `tile` on that have `row` of them */
__device__ __forceinline__ slab_source parts_of_tiles(const uint4 *W, int tile, int row, int pair,
                                                      int pairs) {
    return {W + ((size_t)tile * row + pair) * 32, RING_SLAB / (pairs * 512), (size_t)row * 32};
}

/* Slabs of all S CTAs of a cluster in the order of a step: O::source(w, i, rank) says what is
 * number i of one of them.  Launched with a CTA per slab: (slabs of a step, S). */
template <class O>
__global__ void __launch_bounds__(THREADS)
    order_slabs(uint4 *to, const __grid_constant__ packed_weights w) {
    const size_t all = RING_SLAB / sizeof(uint4);
    slab_source s = O::source(w, (int)blockIdx.x, (int)blockIdx.y);
    to += ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * all;
    for (size_t i = threadIdx.x; i < all; i += THREADS) {
        size_t each = all / s.pieces;
        to[i] = s.from[i / each * s.apart + i % each];
    }
}

/* of the part that one of S CTAs has */
template <int S> struct ring {
    enum { LAYER = 8 * 16 / S, PROJECTOR = 4 * 16 / S }; /* slabs of a layer */
    const unsigned char *from;                           /* the slabs of a step, in memory */
    unsigned char *slabs;
    mbarrier *full;
    int slots, done, slot;  /* slabs that are used up; where the next one lies */
    uint32_t phase;         /* parity of its mbarrier */
    int asked, total, step; /* asked for so far; all that this launch needs, and a step */
    int ask_slot, ask_at;   /* of the next one to ask for, and its number in its step */

    static __host__ __device__ int slabs_of_step(int layers) { return LAYER * layers + PROJECTOR; }

    static __host__ __device__ size_t bytes(int slots) {
        return (size_t)slots * RING_SLAB + RING_MOST * sizeof(mbarrier);
    }
    /* All threads; a barrier has to follow.  ordered: by order_slabs */
    __device__ void make(const task &p, const uint4 *ordered, unsigned char *memory) {
        step = slabs_of_step(p.layers);
        from = (const unsigned char *)ordered + (size_t)cluster_rank() * step * RING_SLAB;
        slabs = memory;
        full = (mbarrier *)(memory + (size_t)p.slots * RING_SLAB);
        slots = p.slots;
        done = slot = asked = ask_slot = ask_at = 0;
        phase = 0;
        total = p.H * step;
        if (threadIdx.x == 0) {
            for (int i = 0; i < slots; i++) mbarrier_init(&full[i], 1);
            fence_mbarrier_init();
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
    /* One warp: asks for slabs as far as there are slots. */
    __device__ void fill() {
        for (; asked < total && asked < done + slots; asked++) {
            if (threadIdx.x % 32 == 0) {
                mbarrier_arrive_expect_tx(&full[ask_slot], RING_SLAB);
                cp_async_bulk(slabs + (size_t)ask_slot * RING_SLAB,
                              from + (size_t)ask_at * RING_SLAB, RING_SLAB, &full[ask_slot]);
            }
            if (++ask_slot == slots) ask_slot = 0;
            if (++ask_at == step) ask_at = 0;
        }
        __syncwarp();
    }
    /* slab number `ahead` after those that are used up */
    __device__ const uint4 *await(int ahead) const {
        int at = slot + ahead;
        bool around = at >= slots;
        if (around) at -= slots;
        mbarrier_wait_parity(&full[at], phase ^ (uint32_t)around);
        return (const uint4 *)(slabs + (size_t)at * RING_SLAB);
    }
};

/* KP pairs of tile `tile` of a slab */
template <int NT, int KP>
__device__ __forceinline__ void take_tile(weights<NT, KP> &w, int n, const uint4 *slab, int tile) {
#pragma unroll
    for (int k = 0; k < KP; k++) w.b[n][k] = slab[(tile * KP + k) * 32 + threadIdx.x % 32];
}

/* all tiles of w: those of a slab from `first` on */
template <int NT, int KP>
__device__ __forceinline__ void take_tiles(weights<NT, KP> &w, const uint4 *slab, int first) {
#pragma unroll
    for (int n = 0; n < NT; n++) take_tile(w, n, slab, first + n);
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_WEIGHT_RING_CUH */
