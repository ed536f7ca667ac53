/* probe_wgmma.cu - one product by a warpgroup for each form of operands, against plain loops.
 *
 *   make build/tests/probe_wgmma && build/tests/probe_wgmma
 *
 * Needs a GPU of compute capability 9.0.  If kernels built on ops/cuda/ptx/wgmma.cuh give wrong
 * results, this says which assumption about matrices in shared memory does not hold: along or
 * transposed A, along or transposed B, A in registers, a further step of the inner index, more
 * columns. */
#include <stdio.h>

#include "ops/cuda/ptx/wgmma.cuh"

enum { DEPTH = 64, MOST = 96 };

/* element (row, col) of a matrix with rows of 64 in shared memory */
static __device__ bf16 *element(bf16 *m, int row, int col) {
    return m + row * 64 + ((col / 8 ^ row % 8) << 3) + col % 8;
}

/* FORM: 0 A along rows, 1 A transposed, 2 A in registers */
template <int N, int FORM, bool TRANSPOSE_B>
__global__ void probe(float *out, const bf16 *a, const bf16 *b) {
#if CGS_HAS_WGMMA
    __shared__ __align__(1024) bf16 A[64 * 64], B[MOST * 64];
    for (int e = threadIdx.x; e < 64 * DEPTH; e += WARPGROUP) { /* a (64,DEPTH) */
        int row = e / DEPTH, k = e % DEPTH;
        *(FORM == 1 ? element(A, k, row) : element(A, row, k)) = a[e];
    }
    for (int e = threadIdx.x; e < N * DEPTH; e += WARPGROUP) { /* b (N,DEPTH) */
        int n = e / DEPTH, k = e % DEPTH;
        if (!TRANSPOSE_B) *element(B, n, k) = b[e];
        if (TRANSPOSE_B && n < 64) *element(B, k, n) = b[e]; /* one piece of 64 columns */
    }
    fence_proxy_async();
    __syncthreads();
    float c[N / 2];
    int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 + lane / 4;
    uint64_t left = smem_descriptor(A), right = smem_descriptor(B);
    regs4 r[DEPTH / 16];
    for (int k = 0; k < DEPTH / 16; k++)
        for (int i = 0; i < 4; i++)
            r[k][i] = *(const uint32_t *)element(A, first + i % 2 * 8,
                                                 16 * k + i / 2 * 8 + 2 * (lane % 4));
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        uint64_t rk = TRANSPOSE_B ? advance_down_rows(right, k) : advance_along_rows(right, k);
        if constexpr (FORM == 2)
            wgmma<TRANSPOSE_B>(c, r[k], rk, k > 0);
        else
            wgmma<FORM == 1, TRANSPOSE_B>(
                c, FORM ? advance_down_rows(left, k) : advance_along_rows(left, k), rk, k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(c);
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        out[(first + i % 4 / 2 * 8) * N + i / 4 * 8 + 2 * (lane % 4) + i % 2] = c[i];
#endif
}

static float plain(const float *a, const float *b, int row, int n) {
    float sum = 0;
    for (int k = 0; k < DEPTH; k++) sum += a[row * DEPTH + k] * b[n * DEPTH + k];
    return sum;
}

/* one form: how many of the results are off */
template <int N, int FORM, bool TRANSPOSE_B> static int check(void) {
    static float a[64 * DEPTH], b[MOST * DEPTH], got[64 * MOST];
    static bf16 a16[64 * DEPTH], b16[MOST * DEPTH];
    unsigned seed = 1;
    for (int i = 0; i < (64 + N) * DEPTH; i++) { /* sixteenths: every sum is exact */
        seed = seed * 1664525u + 1013904223u;
        float v = (float)(int)(seed >> 27) / 16 - 1;
        if (i < 64 * DEPTH)
            a16[i] = __float2bfloat16(a[i] = v);
        else
            b16[i - 64 * DEPTH] = __float2bfloat16(b[i - 64 * DEPTH] = v);
    }
    float *out;
    bf16 *da, *db;
    cudaMalloc(&out, sizeof got);
    cudaMalloc(&da, sizeof a16);
    cudaMalloc(&db, sizeof b16);
    cudaMemset(out, 0xff, sizeof got);
    cudaMemcpy(da, a16, sizeof a16, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b16, sizeof b16, cudaMemcpyHostToDevice);
    probe<N, FORM, TRANSPOSE_B><<<1, WARPGROUP>>>(out, da, db);
    cudaError_t e = cudaDeviceSynchronize();
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    int off = 0, where = -1;
    for (int i = 0; i < 64 * N; i++)
        if (!(got[i] == plain(a, b, i / N, i % N))) {
            if (!off) where = i;
            off++;
        }
    static const char *const forms[] = {"along rows", "transposed", "in registers"};
    printf("64 x %d, A %s, B %s: %s", N, forms[FORM], TRANSPOSE_B ? "transposed" : "along rows",
           e != cudaSuccess ? cudaGetErrorString(e)
           : off            ? "WRONG"
                            : "right");
    if (off && e == cudaSuccess)
        printf(", %d of %d, first at row %d column %d: %g, want %g", off, 64 * N, where / N,
               where % N, got[where], plain(a, b, where / N, where % N));
    printf("\n");
    cudaFree(out);
    cudaFree(da);
    cudaFree(db);
    return off || e != cudaSuccess;
}

int main(void) {
    int bad = 0;
    bad += check<64, 0, false>();
    bad += check<64, 2, false>();
    bad += check<64, 0, true>();
    bad += check<64, 1, false>();
    bad += check<64, 2, true>();
    bad += check<64, 1, true>();
    bad += check<8, 0, false>();
    bad += check<8, 1, false>();
    bad += check<16, 0, false>();
    bad += check<32, 0, false>();
    bad += check<80, 0, false>();
    bad += check<96, 0, false>();
    printf(bad ? "%d forms are WRONG\n" : "all forms are right\n", bad);
    return bad ? 1 : 0;
}
