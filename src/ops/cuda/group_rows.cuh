/* group_rows.cuh - rows of 192 for products by warpgroups: into shared memory, and results out of
 * registers as whole pieces of rows, or with the norm of a residual stream. */
#ifndef CGS_OPS_CUDA_GROUP_ROWS_CUH
#define CGS_OPS_CUDA_GROUP_ROWS_CUH

#include "ops/cuda/wgmma.cuh"

namespace {

enum { ROWS = 64 /* of a group */, PIECE = 64 /* columns: 128 bytes of a row */, WIDE = 192 };
enum { COLUMNS = WIDE / 8 /* eights of a row */ };

/* chunk c of row r of a matrix with rows of 64 */
__device__ __forceinline__ bf16 *piece_at(bf16 *m, int row, int chunk) {
    return m + row * PIECE + ((chunk ^ (row & 7)) << 3);
}

/* 64 rows of x for a group; rows that are not there keep what was in their place */
__device__ __forceinline__ void fetch_rows(bf16 (&to)[WIDE / PIECE][ROWS * PIECE], const bf16 *x,
                                           size_t row0, size_t n) {
    int row = threadIdx.x % GROUP / 8, chunk = threadIdx.x % 8; /* and every 16th row on */
    const bf16 *from = x + (row0 + row) * WIDE + chunk * 8;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++)
        if (row0 + row + 16 * i < n)
#pragma unroll
            for (int piece = 0; piece < WIDE / PIECE; piece++)
                copy16(piece_at(to[piece], row, chunk) + 16 * i * PIECE,
                       from + 16 * i * WIDE + piece * PIECE);
}

/* four 8 x 8 matrices to shared memory; lane l names row l%8 of matrix l/8 */
__device__ __forceinline__ void store_matrices(bf16 *p, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(p)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* a warp's 16 x 64 to shared memory, and as rows to memory: `to` is where this lane's first 8
 * columns go, `left` how many rows from its first on are there */
__device__ __forceinline__ void turn_in(bf16 *turn, const regs4 (&v)[4]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < 4; k++)
        store_matrices(piece_at(turn, lane % 16, 2 * k + lane / 16), v[k][0], v[k][1], v[k][2],
                       v[k][3]);
    __syncwarp();
}
__device__ __forceinline__ void turn_out(bf16 *to, size_t stride, int left, bf16 *turn) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (4 * i < left)
            *reinterpret_cast<uint4 *>(to + 4 * i * stride) =
                *reinterpret_cast<const uint4 *>(piece_at(turn, 4 * i + lane / 8, lane % 8));
    __syncwarp();
}

/* A norm behind an addition: where its rows go, and what it is made of. */
struct norm {
    float *sum;
    bf16 *y;
    float *means, *rstds;
    const float *w, *s; /* (192) weight and bias, or NULL */
    float eps;
};

/* Numbers of a block for rows of 192: bias of the map, weight and bias of the norm behind it. */
struct row_constants {
    float bias[WIDE], w[WIDE], s[WIDE];
};

/* adds the bias of a map to what a lane has of 64 rows */
__device__ __forceinline__ void add_bias(float (&sum)[WIDE / 2], const float *bias) {
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        float b[2];
        load<2>(b, bias + 8 * j + 2 * (threadIdx.x % 4));
#pragma unroll
        for (int e = 0; e < 4; e++) sum[4 * j + e] += b[e % 2];
    }
}

/* Of 64 rows of 192 a lane has its own and the 8th below, two columns of every 8.  The sums are
 * under way from memory until the first product adds to them. */
__device__ __forceinline__ void start_sums(float (&sum)[WIDE / 2], const float *x, size_t row,
                                           size_t n) {
    x += row * WIDE + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            float v[2] = {0, 0};
            if (row + 8 * half < n) load<2>(v, x + 8 * half * WIDE + 8 * j);
            sum[4 * j + 2 * half] = v[0];
            sum[4 * j + 2 * half + 1] = v[1];
        }
}
__device__ __forceinline__ float over_four(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

/* The sums leave, then the same rows normalised, by way of `place`: for each 64
 * columns 16 rows of the warp's, `apart` from each other. */
__device__ __forceinline__ void give_rows(const norm &to, const row_constants &r,
                                          float (&sum)[WIDE / 2], bf16 *place, int apart,
                                          size_t first, size_t n) {
    int lane = threadIdx.x % 32, column = 2 * (lane % 4);
    float mean[2], rstd[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t row = first + lane / 4 + 8 * half;
        float all = 0, square = 0;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            float v[2] = {sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]};
            all += v[0] + v[1];
            if (row < n) store<2>(to.sum + row * WIDE + 8 * j + column, v);
        }
        mean[half] = over_four(all) / WIDE;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float v = sum[4 * j + 2 * half + e] - mean[half];
                square += v * v;
            }
        rstd[half] = 1.0f / sqrtf(over_four(square) / WIDE + to.eps);
        if (lane % 4 == 0 && row < n) {
            to.means[row] = mean[half];
            to.rstds[row] = rstd[half];
        }
    }
    size_t row = first + lane / 8;
    int left = row < n ? (int)min(n - row, (size_t)16) : 0;
#pragma unroll
    for (int piece = 0; piece < WIDE / PIECE; piece++) {
        regs4 rounded[4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float w[2], s[2];
            load<2>(w, r.w + PIECE * piece + 8 * j + column);
            load<2>(s, r.s + PIECE * piece + 8 * j + column);
            const float *v = sum + 32 * piece + 4 * j;
#pragma unroll
            for (int half = 0; half < 2; half++)
                rounded[j / 2][j % 2 * 2 + half] =
                    pack(fmaf((v[2 * half] - mean[half]) * rstd[half], w[0], s[0]),
                         fmaf((v[2 * half + 1] - mean[half]) * rstd[half], w[1], s[1]));
        }
        turn_in(place + piece * apart, rounded);
        turn_out(to.y + row * WIDE + piece * PIECE + lane % 8 * 8, WIDE, left,
                 place + piece * apart);
    }
}

} // namespace

#endif /* CGS_OPS_CUDA_GROUP_ROWS_CUH */
