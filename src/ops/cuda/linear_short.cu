/* linear_short.cu - y = x W^T + b for few rows, and GELU behind it; forward only.
 *   x (n,k), W (m,k), b (m) or NULL, y (n,m) bf16 or f32;  k a multiple of 4, m of 2
 *
 * Planning through one token a frame is made of these: 128 to 384 rows, and every map waits for
 * the one before, so what counts is how long a block takes.  A block makes BM x BN of y; both
 * factors pass by in slices of 128 of the inner index, several of them on their way at a time, in
 * pieces of 8 bytes where rows begin at no multiples of 16 (404 columns).  Each of the eight warps
 * has a square of 32 x 32; where there are fewer squares, warps share one, take turns at the inner
 * index, and their sums are added in order. */
#include "ops/cuda/tiles.cuh"

namespace {

enum { WARPS = 8, SIDE = 32, SLICE = 128, STRIDE = SLICE + 8, MOST_ROWS = 512 };

template <int BM, int BN> struct plan {
    enum {
        across = BN / SIDE,
        squares = BM / SIDE * across,
        shares = WARPS / squares,
        stages = BM + BN > 96 ? 3 : 4,
        slice = (BM + BN) * STRIDE, /* elements: rows of x, then rows of W */
        sum_row = BN + 8,           /* floats; so that 4 rows lie in different banks */
        bytes = stages * slice * 2
    };
    static_assert(shares * squares == WARPS, "every warp has a square");
    static_assert(shares * BM * sum_row * 4 <= bytes, "sums fit where the slices were");
};

struct map {
    const bf16 *x, *W;
    const float *b; /* or NULL */
    size_t n;
    int k, m;
    bool gelu;
};

__device__ __forceinline__ void copy8(bf16 *to, const bf16 *from) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

/* One slice, zeros behind the last column.  Rows behind the last are the last again: what comes of
 * them is not kept. */
template <int BM, int BN, int PIECE>
__device__ __forceinline__ void fetch(bf16 *to, const map &p, size_t row0, int col0, int k0) {
    enum { pieces = SLICE / PIECE };
    for (int e = threadIdx.x; e < (BM + BN) * pieces; e += 32 * WARPS) {
        int r = e / pieces, c = e % pieces * PIECE;
        size_t row = r < BM ? row0 + r : (size_t)(col0 + r - BM), last = r < BM ? p.n : (size_t)p.m;
        const bf16 *from = (r < BM ? p.x : p.W) + (row < last ? row : last - 1) * p.k + k0 + c;
        bf16 *at = to + r * STRIDE + c;
        if (k0 + c >= p.k) {
#pragma unroll
            for (int i = 0; i < PIECE; i += 2) *reinterpret_cast<uint32_t *>(at + i) = 0;
        } else if (PIECE == 8) {
            copy16(at, from);
        } else {
            copy8(at, from);
        }
    }
}

template <int BM, int BN, int PIECE, class T>
__global__ void __launch_bounds__(32 * WARPS) short_map(T *y, map p) {
    typedef plan<BM, BN> its;
    extern __shared__ __align__(16) bf16 shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8;
    int square = warp % its::squares, share = warp / its::squares;
    int top = square / its::across * SIDE, left = square % its::across * SIDE;
    size_t row0 = (size_t)blockIdx.y * BM;
    int col0 = blockIdx.x * BN, slices = (p.k + SLICE - 1) / SLICE;
#pragma unroll
    for (int s = 0; s < its::stages - 1; s++) {
        if (s < slices) fetch<BM, BN, PIECE>(shared + s * its::slice, p, row0, col0, s * SLICE);
        copies_close(); /* an empty group keeps the count */
    }
    float c[2][4][4] = {};
    for (int s = 0; s < slices; s++) {
        copies_wait<its::stages - 2>();
        __syncthreads(); /* the slice is there, and nobody reads the one before any more */
        int next = s + its::stages - 1;
        if (next < slices)
            fetch<BM, BN, PIECE>(shared + next % its::stages * its::slice, p, row0, col0,
                                 next * SLICE);
        copies_close();
        const bf16 *here = shared + s % its::stages * its::slice;
        const bf16 *A = here + (top + matrix % 2 * 8 + lane % 8) * STRIDE + matrix / 2 * 8;
        const bf16 *B = here + (BM + left + matrix / 2 * 8 + lane % 8) * STRIDE + matrix % 2 * 8;
        int end = p.k - s * SLICE < SLICE ? p.k - s * SLICE : SLICE;
#pragma unroll 2
        for (int k = 16 * share; k < end; k += 16 * its::shares) {
            regs4 a[2], b[2];
#pragma unroll
            for (int t = 0; t < 2; t++) {
                load_matrices(a[t], A + 16 * t * STRIDE + k);
                load_matrices(b[t], B + 16 * t * STRIDE + k);
            }
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    mma(c[t][i], a[t], b[i / 2][2 * (i % 2)], b[i / 2][2 * (i % 2) + 1]);
        }
    }
    __syncthreads();
    float *sums = reinterpret_cast<float *>(shared); /* (shares, BM, sum_row) */
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = top + 16 * t + 8 * half + lane / 4, col = left + 8 * i + 2 * (lane % 4);
                *reinterpret_cast<float2 *>(sums + (share * BM + row) * its::sum_row + col) =
                    make_float2(c[t][i][2 * half], c[t][i][2 * half + 1]);
            }
    __syncthreads();
    for (int e = threadIdx.x; e < BM * BN / 2; e += 32 * WARPS) {
        int row = e / (BN / 2), col = e % (BN / 2) * 2;
        if (row0 + row >= p.n || col0 + col >= p.m) continue;
        float v[2] = {0, 0};
#pragma unroll
        for (int s = 0; s < its::shares; s++) {
            const float *part = sums + (s * BM + row) * its::sum_row + col;
            v[0] += part[0];
            v[1] += part[1];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (p.b) v[i] += p.b[col0 + col + i];
            if (p.gelu) v[i] = gelu_rounded(widen(narrow<bf16>(v[i])));
        }
        store<2>(y + (row0 + row) * p.m + col0 + col, v);
    }
}

template <int BM, int BN, int PIECE, class T> cudaError_t allow() {
    return cudaFuncSetAttribute(short_map<BM, BN, PIECE, T>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, plan<BM, BN>::bytes);
}
template <int BM, int BN> cudaError_t allow_all() {
    cudaError_t e = allow<BM, BN, 4, float>();
    if (e == cudaSuccess) e = allow<BM, BN, 8, float>();
    if (e == cudaSuccess) e = allow<BM, BN, 4, bf16>();
    return e == cudaSuccess ? allow<BM, BN, 8, bf16>() : e;
}

bool aligned(const map &p, size_t bytes) {
    return ((uintptr_t)p.x | (uintptr_t)p.W) % bytes == 0 && p.k * 2 % bytes == 0;
}

template <int BM, int BN, class T> void launch(cgs_device *d, T *y, const map &p) {
    dim3 grid(blocks_for((size_t)p.m, BN), blocks_for(p.n, BM));
    const size_t room = plan<BM, BN>::bytes;
    if (aligned(p, 16))
        short_map<BM, BN, 8, T><<<grid, 32 * WARPS, room, stream_of(d)>>>(y, p);
    else
        short_map<BM, BN, 4, T><<<grid, 32 * WARPS, room, stream_of(d)>>>(y, p);
    LAUNCHED(d, "linear map of few rows");
}

/* the largest tile that still keeps half of a large GPU busy: it reads least */
template <class T> void launch_best(cgs_device *d, T *y, const map &p) {
    enum { ENOUGH = 64 };
    size_t m = (size_t)p.m;
    if (blocks_for(p.n, 64) * blocks_for(m, 64) >= ENOUGH)
        launch<64, 64>(d, y, p);
    else if (blocks_for(p.n, 64) * blocks_for(m, 32) >= ENOUGH)
        launch<64, 32>(d, y, p);
    else
        launch<32, 32>(d, y, p);
}

} // namespace

extern "C" {

bool cgs_cuda_linear_short(const cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    return (cgs_cuda_of(d)->on & CGS_CUDA_SHORT) && !r->out->wants_grad && x->dtype == CGS_BF16 &&
           W->bf16 && cgs_rows(x) <= MOST_ROWS && cgs_cols(x) % 4 == 0 &&
           cgs_cols(r->out) % 2 == 0 && ((uintptr_t)x->data | (uintptr_t)W->bf16) % 8 == 0;
}

bool cgs_cuda_short_joins_gelu(const cgs_device *d, const cgs_record *map, const cgs_record *act) {
    return cgs_cuda_linear_short(d, map) && act->in[0] == map->out && !act->out->wants_grad &&
           act->arg.activation.kind == CGS_GELU && map->out->dtype == CGS_BF16 &&
           act->out->dtype == CGS_BF16;
}

cgs_status cgs_cuda_linear_short_prepare(void) {
    cudaError_t e = allow_all<64, 64>();
    if (e == cudaSuccess) e = allow_all<64, 32>();
    if (e == cudaSuccess) e = allow_all<32, 32>();
    if (e == cudaSuccess) return CGS_OK;
    cudaGetLastError();
    return cgs_fail(CGS_EDEVICE, "cuda: linear map of few rows: %s", cudaGetErrorString(e));
}

void cgs_cuda_linear_short_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1], *b = r->in[2], *y = r->out;
    bool gelu = cgs_cuda_is(r->next, CGS_OP_activation) && cgs_cuda_short_joins_gelu(d, r, r->next);
    map p = {(const bf16 *)x->data,
             (const bf16 *)W->bf16,
             b ? (const float *)b->data : NULL,
             cgs_rows(x),
             cgs_cols(x),
             cgs_cols(y),
             gelu};
    if (gelu) y = r->next->out;
    WITH_TYPE(T, y->dtype, launch_best(d, (T *)y->data, p));
}

} /* extern "C" */
