/* mlp_slope.cu - backward through GELU and the map behind it where the forward pass of an MLP
 * (mlp_groups.cu) has not kept h: it is made again, by warpgroups (wgmma).
 *
 *   dh = (dy V) gelu'(u W^T + b), db = sum dh
 *
 *   dy and u (n,192), V (192,m), W (m,192), dh (n,m)
 *
 * As in linear_gelu.cu, weights of 128 columns stay in a block and groups of 64 rows work by
 * themselves; here both weights, so there is room for two groups.  Both products of the second 64
 * columns are made while the first are computed and written. */
#include "ops/cuda/gelu_rows.cuh"

namespace {

enum { GROUPS = 2, ALL = GROUPS * GROUP };

/* Shared memory of a block. */
struct room {
    bf16 V[SLAB * K], W[SLAB * K]; /* (2,192,64), (3,128,64) */
    bf16 dy[GROUPS][K / PIECE][ROWS * PIECE], u[GROUPS][K / PIECE][ROWS * PIECE];
    bf16 turn[4 * GROUPS][16 * PIECE];
    float4 sums[4 * GROUPS][2][2][32]; /* of dh, in a lane's 8 columns of both halves */
    float bias[SLAB];
};

#if CGS_HAS_WGMMA

/* Columns 64 j .. of a group's rows: dg = dy V and h = u W^T. */
__device__ __forceinline__ void make_both(float (&dg)[32], float (&h)[32], room &m, int group,
                                          int j) {
    const int unit = ATOM / 8 >> 4; /* of a row, in descriptors */
    uint64_t dy = matrix_at(m.dy[group]), u = matrix_at(m.u[group]);
    uint64_t V = matrix_at(m.V) + j * K * unit, W = matrix_at(m.W) + j * PIECE * unit;
#pragma unroll
    for (int k = 0; k < K / 16; k++)
        group_product<false, true>(dg, along_rows(dy + k / 4 * ROWS * unit, k % 4), down_rows(V, k),
                                   k > 0);
#pragma unroll
    for (int k = 0; k < K / 16; k++)
        group_product<false, false>(h, along_rows(u + k / 4 * ROWS * unit, k % 4),
                                    along_rows(W + k / 4 * SLAB * unit, k % 4), k > 0);
}

/* dh of a warp's 16 x 64; `to` is where this lane's first 8 columns go */
__device__ __forceinline__ void give_slopes(bf16 *to, float4 (&sums)[2][32], room &m,
                                            const float (&dg)[32], const float (&h)[32],
                                            const float *bias, size_t row, const shape &s) {
    int lane = threadIdx.x % 32;
    bf16 *turn = m.turn[threadIdx.x / 32];
    uint4 h8[4];
    turn_rows(turn, h, bias);
#pragma unroll
    for (int i = 0; i < 4; i++)
        h8[i] = *reinterpret_cast<const uint4 *>(piece_at(turn, 4 * i + lane / 8, lane % 8));
    turn_rows(turn, dg, NULL);
    float sum[8] = {0};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (row + 4 * i >= s.n) continue;
        float v[8], x[8];
        load<8>(v, piece_at(turn, 4 * i + lane / 8, lane % 8));
        unpack(x, h8[i]);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            v[k] *= gelu_slope_rounded(x[k]);
            sum[k] += v[k];
        }
        give<8>(to + 4 * i * s.m, v, s.add);
    }
    add_to(sums[0][lane], sum);
    add_to(sums[1][lane], sum + 4);
}

#endif

/* parts (blocks in y, m): sums of dh over a block's rows, or NULL */
__global__ void __launch_bounds__(ALL, 1)
    slope_again(bf16 *dh, float *parts, const bf16 *dy, const bf16 *V, const bf16 *u, const bf16 *W,
                const float *bias, shape s) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(16) unsigned char shared[];
    room &m = *(room *)(shared + (-(uint32_t)__cvta_generic_to_shared(shared) & (ATOM - 1)));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int group = __shfl_sync(0xffffffffu, warp / 4, 0), col0 = blockIdx.x * SLAB;
    size_t step = (size_t)gridDim.y * GROUPS * ROWS;
    size_t row0 = ((size_t)blockIdx.y * GROUPS + group) * ROWS;
    fetch_weights<true, ALL>(m.V, V, s.m, col0);
    fetch_weights<false, ALL>(m.W, W, s.m, col0);
    fetch_rows(m.dy[group], dy, row0, s.n);
    fetch_rows(m.u[group], u, row0, s.n);
    copies_close();
    for (int i = threadIdx.x; i < SLAB; i += ALL) m.bias[i] = bias ? bias[col0 + i] : 0.0f;
    for (int i = 0; i < 4; i++) (&m.sums[warp][0][0][0])[i * 32 + lane] = float4();
    copies_wait<0>();
    written_for_products();
    __syncthreads();
#pragma unroll 1
    for (; row0 < s.n; row0 += step) {
        float dg[2][32], h[2][32];
        products_begin();
        make_both(dg[0], h[0], m, group, 0);
        products_end();
        make_both(dg[1], h[1], m, group, 1);
        products_end();
        size_t row = row0 + warp % 4 * 16 + lane / 8;
        bf16 *to = dh + row * s.m + col0 + lane % 8 * 8;
        products_wait<1>();
        arrived(dg[0]);
        arrived(h[0]);
        give_slopes(to, m.sums[warp][0], m, dg[0], h[0], m.bias, row, s);
        products_wait<0>();
        arrived(dg[1]);
        arrived(h[1]);
        meet(BEHIND + group, GROUP); /* all warps of the group have used the rows */
        if (row0 + step < s.n) {
            fetch_rows(m.dy[group], dy, row0 + step, s.n);
            fetch_rows(m.u[group], u, row0 + step, s.n);
            copies_close();
        }
        give_slopes(to + PIECE, m.sums[warp][1], m, dg[1], h[1], m.bias + PIECE, row, s);
        copies_wait<0>();
        written_for_products();
        meet(BEHIND + group, GROUP); /* the next rows are there */
    }
    if (parts) add_up(parts + blockIdx.y * s.m + col0, &m.sums[0][0][0][0], 4 * GROUPS);
#endif
}

} // namespace

extern "C" {

cgs_status cgs_cuda_mlp_slope_prepare(cgs_device *d, const cgs_record *map) {
    shape s = {cgs_rows(map->in[0]), (size_t)cgs_cols(map->in[0]), false};
    cudaError_t e = cudaFuncSetAttribute(slope_again, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)sizeof(room) + ATOM);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "gradient of an MLP");
    return cgs_cuda_need(d, sharers(s, GROUPS) * s.m * sizeof(float));
}

void cgs_cuda_mlp_slope(cgs_device *d, const cgs_record *map) {
    const cgs_record *act = map->before, *made = act->before;
    const cgs_tensor *u = made->in[0], *b = made->in[2], *h = made->out, *dy = map->out;
    float *parts = cgs_cuda_wants(made, 2) ? (float *)cgs_cuda_of(d)->scratch : NULL;
    shape s = {cgs_rows(dy), (size_t)cgs_cols(h), act->accumulate[0]};
    dim3 grid((unsigned)(s.m / SLAB), sharers(s, GROUPS));
    slope_again<<<grid, ALL, sizeof(room) + ATOM, stream_of(d)>>>(
        (bf16 *)h->grad, parts, (const bf16 *)dy->grad, (const bf16 *)map->in[1]->bf16,
        (const bf16 *)u->data, (const bf16 *)made->in[1]->bf16, b ? (const float *)b->data : NULL,
        s);
    LAUNCHED(d, "gradient of an MLP");
    if (parts)
        cgs_cuda_add_parts(d, (float *)b->grad, made->accumulate[2], parts, grid.y, s.m, s.m);
}

} /* extern "C" */
