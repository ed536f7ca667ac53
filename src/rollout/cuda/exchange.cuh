/* exchange.cuh - activations and partial sums exchanged through distributed shared memory.
 *
 * Two mbarriers in every CTA count the bytes that st.async has brought: rows of x, from their
 * owners to all CTAs, and partial sums of a product, from all CTAs to the owner of their row.
 * Nothing else orders the CTAs.  An owner that has all partial sums of its rows knows that every
 * CTA is done with the x before, and may send the next; a CTA that has all rows of x knows that
 * every owner has read its partial sums, and may send the next.  Checkers of races do not follow
 * st.async: for them barrier.cluster follows every wait (CGS_CLUSTER_BARRIERS=1). */
#ifndef CGS_ROLLOUT_CUDA_EXCHANGE_CUH
#define CGS_ROLLOUT_CUDA_EXCHANGE_CUH

#include "ops/cuda/ptx/mbarrier.cuh"
#include "rollout/cuda/predictor.cuh"

namespace {

struct exchange_mbarriers {
    mbarrier rows, partials;
};

/* S CTAs, each of which owns OWN plans */
template <int S> struct exchange {
    enum { OWN = 16 / S };
    exchange_mbarriers *arrived;
    float *partial_sums; /* (S, slots, D) by sender, then by own row */
    int slots, rank;
    bool barriers;
    uint32_t rows_phase, partials_phase;

    static __host__ __device__ size_t bytes(int N) {
        return sizeof(exchange_mbarriers) + (size_t)S * OWN * N * D * sizeof(float);
    }
    /* All threads; a barrier of the cluster has to follow.  N: tokens of a window */
    __device__ void make(unsigned char *memory, int N, bool with_barriers) {
        arrived = (exchange_mbarriers *)memory;
        partial_sums = (float *)(memory + sizeof(exchange_mbarriers));
        slots = OWN * N;
        barriers = with_barriers;
        rank = cluster_rank();
        rows_phase = partials_phase = 0;
        if (threadIdx.x == 0) {
            mbarrier_init(&arrived->rows, 1);
            mbarrier_init(&arrived->partials, 1);
            fence_mbarrier_init();
        }
    }

    /* A warp sends a row, rounded, to all CTAs.  Lanes have two columns in each third of it; 24
     * of them send eight columns each. */
    __device__ void send(bf16 *x, int row, const row_values &v) const {
        int lane = threadIdx.x % 32;
        uint32_t eight[4] = {};
#pragma unroll
        for (int j = 0; j < 3; j++) {
            uint32_t two = pack(v[j].x, v[j].y);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t got = __shfl_sync(0xffffffffu, two, (4 * lane + i) % 32);
                if (lane / 8 == j) eight[i] = got;
            }
        }
        if (lane < D / 8) {
            const bf16 *at = x + (size_t)row * X_ROW + 8 * lane;
            for (int b = 0; b < S; b++) /* not all to the same CTA at a time */
                st_async(mapa(at, (rank + b) % S), eight[0], eight[1], eight[2], eight[3],
                         mapa(&arrived->rows, (rank + b) % S));
        }
        __syncwarp();
    }

    /* four columns of the partial sums of a plan, whose row is the owner's number `slot` */
    __device__ void send_partial(int plan, int slot, int column, float4 v) const {
        const float *at = partial_sums + (size_t)(rank * slots + slot) * D + column;
        st_async(mapa(at, plan / OWN), __float_as_uint(v.x), __float_as_uint(v.y),
                 __float_as_uint(v.z), __float_as_uint(v.w), mapa(&arrived->partials, plan / OWN));
    }

    /* Waits for n rows of x, and for the partial sums of n own rows.  Without own rows there is
     * nothing to wait for; either way all warps of the CTA have made their partial sums then. */
    __device__ void await_rows(int n) {
        if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&arrived->rows, n * D * (int)sizeof(bf16));
        mbarrier_wait_parity(&arrived->rows, rows_phase++);
        if (barriers) cluster_sync();
    }
    __device__ void await_partials(int n) {
        if (n) {
            if (threadIdx.x == 0)
                mbarrier_arrive_expect_tx(&arrived->partials, n * S * D * (int)sizeof(float));
            mbarrier_wait_parity(&arrived->partials, partials_phase++);
        } else {
            __syncthreads();
        }
        if (barriers) cluster_sync();
    }

    /* bias + the partial sums of all CTAs, in their order */
    __device__ void add_partials(row_values &v, const row_values &bias, int slot) const {
#pragma unroll
        for (int j = 0; j < 3; j++) v[j] = bias[j];
#pragma unroll
        for (int b = 0; b < S; b++) {
            row_values w;
            read_row(w, partial_sums + (size_t)(b * slots + slot) * D);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += w[j].x;
                v[j].y += w[j].y;
            }
        }
    }
};

/* Three tiles of 8 columns of rows `row` and `row` + 8, as products() leaves them, as runs of four
 * columns: to(row, first column, four).  Neighbouring lanes swap what completes a run. */
template <class F>
__device__ __forceinline__ void runs_of_four(int row, const float (&c)[3][4], F to) {
    int lane = threadIdx.x % 32;
    const bool odd = lane & 1;
    const int column = lane % 4 / 2 * 4;
#pragma unroll
    for (int h = 0; h < 2; h++) { /* the first two tiles: one for each of two lanes */
        float x = odd ? c[0][2 * h] : c[1][2 * h], y = odd ? c[0][2 * h + 1] : c[1][2 * h + 1];
        x = __shfl_xor_sync(0xffffffffu, x, 1);
        y = __shfl_xor_sync(0xffffffffu, y, 1);
        to(row + 8 * h, 8 * odd + column,
           odd ? make_float4(x, y, c[1][2 * h], c[1][2 * h + 1])
               : make_float4(c[0][2 * h], c[0][2 * h + 1], x, y));
    }
    float x = odd ? c[2][0] : c[2][2], y = odd ? c[2][1] : c[2][3]; /* the third: a row each */
    x = __shfl_xor_sync(0xffffffffu, x, 1);
    y = __shfl_xor_sync(0xffffffffu, y, 1);
    to(row + 8 * odd, 16 + column,
       odd ? make_float4(x, y, c[2][2], c[2][3]) : make_float4(c[2][0], c[2][1], x, y));
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_EXCHANGE_CUH */
