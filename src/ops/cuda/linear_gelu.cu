/* linear_gelu.cu - a linear map and the GELU behind it in one kernel, and backward the
 * gradient of GELU with the linear map before which it stands.
 *
 *   forward    h = x W^T + b, g = gelu(h)          x (n,K), W (m,K), h and g (n,m)
 *   backward   dh = (dy V) gelu'(h), db = sum dh    dy (n,K), V (K,m), h and dh (n,m)
 *
 * where V is the weight of the map that reads g.  K is the width of the model, short enough
 * that a warp keeps its 32 rows of x or dy in registers as long as it lives; the weights pass
 * by in slabs of 64 columns of the result, two of them in shared memory at a time.  A finished
 * 32 x 64 is turned in shared memory so that rows leave in pieces of 128 bytes, and GELU is
 * computed on the way out. */
#include "ops/cuda/tiles.cuh"

namespace {

enum { WARPS = 4, ROWS = 32 * WARPS, SLAB = 64, PAD = 8 };

/* One slab of weights in shared memory.  Forward it is 64 rows of W, backward 64 columns of
 * V; rows are padded by 16 bytes, so that 8 of them lie in different banks. */
template <int K, bool BACK> struct slab {
    enum { rows = BACK ? K : SLAB, cols = BACK ? SLAB : K, stride = cols + PAD };
    enum { elements = rows * stride };

    static __device__ __forceinline__ void copy(bf16 *to, const bf16 *weights, int m, int col0) {
        for (int e = threadIdx.x; e < rows * (cols / 8); e += 32 * WARPS) {
            int row = e / (cols / 8), chunk = e % (cols / 8);
            const bf16 *from =
                BACK ? weights + (size_t)row * m + col0 : weights + (size_t)(col0 + row) * K;
            copy16(to + row * stride + chunk * 8, from + chunk * 8);
        }
        copies_close();
    }
    /* B of a product: inner index 16 k .., columns 16 n .. of the slab's result */
    static __device__ __forceinline__ void load(regs4 &r, const bf16 *s, int k, int n) {
        int lane = threadIdx.x % 32, matrix = lane / 8;
        if (BACK)
            load_matrices_turned(r, s + (16 * k + (matrix % 2) * 8 + lane % 8) * stride + 16 * n +
                                        (matrix / 2) * 8);
        else
            load_matrices(r, s + (16 * n + (matrix / 2) * 8 + lane % 8) * stride + 16 * k +
                                 (matrix % 2) * 8);
    }
};

/* where a 32 x 64 result is turned: chunk c of row r */
__device__ __forceinline__ bf16 *turning(bf16 *m, int row, int chunk) {
    return m + row * SLAB + ((chunk ^ (row & 7)) << 3);
}

struct shape {
    size_t n;
    int m;
    bool add; /* dh is added to */
};

/* parts (row blocks, m): sums of dh over a block's rows, or NULL */
template <int K, bool BACK>
__global__ void __launch_bounds__(32 * WARPS, 2)
    product_gelu(bf16 *h, bf16 *out, float *parts, const bf16 *x, const bf16 *weights,
                 const float *bias, shape s) {
    typedef slab<K, BACK> slab_t;
    extern __shared__ __align__(16) bf16 shared[]; /* two slabs, then (WARPS, 32, 64) */
    __shared__ float sums[WARPS][SLAB];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bf16 *turn = shared + 2 * slab_t::elements + warp * 32 * SLAB;
    size_t row0 = (size_t)blockIdx.x * ROWS + warp * 32;
    int step = gridDim.y * SLAB, col0 = blockIdx.y * SLAB;
    slab_t::copy(shared, weights, s.m, col0);

    regs4 a[2][K / 16];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            size_t row = row0 + 16 * t + lane / 4 + 8 * half;
            const bf16 *p = x + row * K + 2 * (lane % 4);
#pragma unroll
            for (int k = 0; k < K / 16; k++) {
                a[t][k][half] = row < s.n ? *reinterpret_cast<const uint32_t *>(p + 16 * k) : 0;
                a[t][k][half + 2] =
                    row < s.n ? *reinterpret_cast<const uint32_t *>(p + 16 * k + 8) : 0;
            }
        }

    for (int turn_count = 0; col0 < s.m; col0 += step, turn_count++) {
        const bf16 *here = shared + (turn_count & 1) * slab_t::elements;
        copies_wait<0>();
        __syncthreads(); /* the slab is there, and nobody reads the other one any more */
        if (col0 + step < s.m)
            slab_t::copy(shared + ((turn_count + 1) & 1) * slab_t::elements, weights, s.m,
                         col0 + step);
        uint4 ahead[8]; /* backward: h, on its way while the product is made */
#pragma unroll
        for (int i = 0; i < 8; i++) {
            size_t row = row0 + 4 * i + lane / 8;
            if (BACK && row < s.n)
                ahead[i] = *reinterpret_cast<const uint4 *>(h + row * s.m + col0 + lane % 8 * 8);
        }
        float c[2][8][4] = {};
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                regs4 b;
                slab_t::load(b, here, k, n);
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    mma(c[t][2 * n], a[t][k], b[0], b[1]);
                    mma(c[t][2 * n + 1], a[t][k], b[2], b[3]);
                }
            }
        __syncwarp(); /* the last result has left */
#pragma unroll
        for (int n = 0; n < 8; n++) {
            float shift[2] = {0, 0};
            if (!BACK && bias) load<2>(shift, bias + col0 + 8 * n + 2 * (lane % 4));
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int row = 16 * t + 8 * half + lane / 4;
                    *reinterpret_cast<unsigned *>(turning(turn, row, n) + 2 * (lane % 4)) =
                        pack(c[t][n][2 * half] + shift[0], c[t][n][2 * half + 1] + shift[1]);
                }
        }
        __syncwarp();
        float sum[8] = {0};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = 4 * i + lane / 8;
            if (row0 + row >= s.n) continue;
            size_t at = (row0 + row) * s.m + col0 + lane % 8 * 8;
            float v[8];
            load<8>(v, turning(turn, row, lane % 8));
            if constexpr (!BACK) {
                *reinterpret_cast<uint4 *>(h + at) =
                    *reinterpret_cast<const uint4 *>(turning(turn, row, lane % 8));
#pragma unroll
                for (int k = 0; k < 8; k++) v[k] = gelu_rounded(v[k]);
                store<8>(out + at, v);
            } else {
                float x8[8];
                load<8>(x8, reinterpret_cast<const bf16 *>(&ahead[i]));
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    v[k] *= gelu_slope_rounded(x8[k]);
                    sum[k] += v[k];
                }
                give<8>(out + at, v, s.add);
            }
        }
        if constexpr (BACK) {
            if (!parts) continue;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], 8);
                sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], 16);
                if (lane < 8) sums[warp][lane * 8 + k] = sum[k];
            }
            __syncthreads();
            if (threadIdx.x < SLAB) {
                float all = 0;
                for (int w = 0; w < WARPS; w++) all += sums[w][threadIdx.x];
                parts[(size_t)blockIdx.x * s.m + col0 + threadIdx.x] = all;
            }
        }
    }
}

template <int K, bool BACK> size_t shared_bytes() {
    return (2 * (size_t)slab<K, BACK>::elements + WARPS * 32 * SLAB) * sizeof(bf16);
}

template <int K, bool BACK>
void launch(cgs_device *d, bf16 *h, bf16 *out, float *parts, const bf16 *x, const bf16 *weights,
            const float *bias, shape s) {
    unsigned rows = blocks_for(s.n, ROWS), slabs = (unsigned)s.m / SLAB;
    /* few rows: columns are shared out too */
    unsigned across = rows >= 256 ? 1 : (255 + rows) / rows;
    if (across > slabs) across = slabs;
    size_t shared = shared_bytes<K, BACK>();
    product_gelu<K, BACK><<<dim3(rows, across), 32 * WARPS, shared, stream_of(d)>>>(
        h, out, parts, x, weights, bias, s);
    LAUNCHED(d, BACK ? "gelu and linear backward" : "linear and gelu");
}

#define WITH_WIDTH(K, width, ...)                                                                  \
    do {                                                                                           \
        if ((width) == 64) {                                                                       \
            enum { K = 64 };                                                                       \
            __VA_ARGS__;                                                                           \
        } else if ((width) == 96) {                                                                \
            enum { K = 96 };                                                                       \
            __VA_ARGS__;                                                                           \
        } else if ((width) == 192) {                                                               \
            enum { K = 192 };                                                                      \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

bool fits(const cgs_tensor *narrow, const cgs_tensor *wide, const cgs_tensor *W) {
    int K = cgs_cols(narrow);
    return (K == 64 || K == 96 || K == 192) && cgs_cols(wide) % SLAB == 0 && W->bf16 &&
           narrow->dtype == CGS_BF16 && wide->dtype == CGS_BF16;
}

/* dynamic shared memory beyond 48 KiB has to be asked for */
template <int K, bool BACK> cudaError_t allow() {
    return cudaFuncSetAttribute(product_gelu<K, BACK>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)shared_bytes<K, BACK>());
}

} // namespace

extern "C" {

bool cgs_cuda_linear_joins_gelu(const cgs_record *map, const cgs_record *act) {
    return act->arg.activation.kind == CGS_GELU && act->out->dtype == CGS_BF16 &&
           fits(map->in[0], map->out, map->in[1]);
}

bool cgs_cuda_gelu_joins_linear(const cgs_record *act, const cgs_record *map) {
    return act->arg.activation.kind == CGS_GELU && act->in[0]->dtype == CGS_BF16 &&
           map->in[0] == act->out && fits(map->out, map->in[0], map->in[1]);
}

cgs_status cgs_cuda_linear_gelu_prepare(cgs_device *d, const cgs_record *map) {
    size_t rows = cgs_rows(map->in[0]), widest = (size_t)cgs_cols(map->out);
    if ((size_t)cgs_cols(map->in[0]) > widest) widest = (size_t)cgs_cols(map->in[0]);
    cudaError_t e = cudaSuccess;
    if (cgs_cuda_gelu_groups(d, map->in[0], map->out, CGS_CUDA_WGMMA_GELU) ||
        cgs_cuda_gelu_groups(d, map->out, map->in[0], CGS_CUDA_WGMMA_SLOPE))
        CGS_TRY(cgs_cuda_gelu_groups_prepare());
    WITH_WIDTH(K, cgs_cols(map->in[0]), e = allow<K, false>());
    if (e == cudaSuccess) WITH_WIDTH(K, cgs_cols(map->out), e = allow<K, true>());
    if (e != cudaSuccess) {
        cudaGetLastError();
        return cgs_fail(CGS_EDEVICE, "cuda: linear map with GELU: %s", cudaGetErrorString(e));
    }
    return cgs_cuda_need(d, blocks_for(rows, ROWS) * widest * sizeof(float));
}

void cgs_cuda_linear_gelu_forward(cgs_device *d, const cgs_record *map) {
    const cgs_tensor *x = map->in[0], *W = map->in[1], *b = map->in[2], *h = map->out;
    if (cgs_cuda_gelu_groups(d, x, h, CGS_CUDA_WGMMA_GELU)) {
        cgs_cuda_gelu_groups_forward(d, map);
        return;
    }
    shape s = {cgs_rows(x), cgs_cols(h), false};
    WITH_WIDTH(K, cgs_cols(x),
               launch<K, false>(d, (bf16 *)h->data, (bf16 *)map->next->out->data, NULL,
                                (const bf16 *)x->data, (const bf16 *)W->bf16,
                                b ? (const float *)b->data : NULL, s));
}

void cgs_cuda_linear_gelu_backward(cgs_device *d, const cgs_record *map) {
    const cgs_record *act = map->before, *made = act->before;
    const cgs_tensor *h = act->in[0], *dy = map->out, *W = map->in[1];
    if (cgs_cuda_gelu_groups(d, dy, h, CGS_CUDA_WGMMA_SLOPE)) {
        cgs_cuda_gelu_groups_backward(d, map);
        return;
    }
    bool bias = made && cgs_cuda_wants(made, 2);
    float *parts = bias ? (float *)cgs_cuda_of(d)->scratch : NULL;
    shape s = {cgs_rows(dy), cgs_cols(h), act->accumulate[0]};
    WITH_WIDTH(K, cgs_cols(dy),
               launch<K, true>(d, (bf16 *)h->data, (bf16 *)h->grad, parts, (const bf16 *)dy->grad,
                               (const bf16 *)W->bf16, NULL, s));
    if (!bias) return;
    cgs_cuda_add_parts(d, (float *)made->in[2]->grad, made->accumulate[2], parts,
                       blocks_for(s.n, ROWS), s.m, s.m);
}

} /* extern "C" */
