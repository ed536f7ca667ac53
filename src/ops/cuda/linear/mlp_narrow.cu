/* mlp_narrow.cu - y = V gelu(W x + b) + c for rows x and y of up to 32 numbers, in one kernel.
 *   x (n,k), W (m,k), b (m), V (l,m), c (l), y (n,l) f32;  k, l <= 32
 *
 * The hidden rows, 73 times as wide as x in the patch predictor, stay in registers: a warp has 16
 * rows of x; the weights pass by in slabs of 128 hidden units, two of them in shared memory at a
 * time; of a slab 16 units are multiplied, activated, and multiplied into the sums of y.
 * Forward only: gradients need the hidden rows. */
#include "ops/cuda/ptx/mma.cuh"

namespace {

enum { WARPS = 4, ROWS = 16 * WARPS, WIDEST = 32, SLAB = 128, STRIDE = SLAB + 8 };

/* a slab: W as it is in memory (128,k), V (32,STRIDE) with zeros below l, and b */
struct slab {
    bf16 first[SLAB * WIDEST];
    bf16 second[WIDEST * STRIDE];
    float bias[SLAB];
};

struct mlp {
    const bf16 *x, *W, *V;
    const float *b, *c; /* or NULL */
    float *y;
    size_t n;
    int k, m, l;
};

__device__ __forceinline__ void fetch(slab *to, const mlp &p, int unit0) {
    for (int e = threadIdx.x; e < SLAB * p.k / 8; e += 32 * WARPS)
        cp_async_16(to->first + 8 * e, p.W + (size_t)unit0 * p.k + 8 * e);
    for (int e = threadIdx.x; e < p.l * (SLAB / 8); e += 32 * WARPS) {
        int row = e / (SLAB / 8), chunk = e % (SLAB / 8);
        cp_async_16(to->second + row * STRIDE + 8 * chunk,
                    p.V + (size_t)row * p.m + unit0 + 8 * chunk);
    }
    for (int e = threadIdx.x; e < SLAB; e += 32 * WARPS) to->bias[e] = p.b ? p.b[unit0 + e] : 0;
    cp_async_commit();
}

__global__ void __launch_bounds__(32 * WARPS, 5) whole_mlp(mlp p) {
    extern __shared__ __align__(16) unsigned char shared[];
    slab *slabs = reinterpret_cast<slab *>(shared); /* two */
    int lane = threadIdx.x % 32, matrix = lane / 8;
    size_t row0 = (size_t)blockIdx.x * ROWS + threadIdx.x / 32 * 16;
    for (int e = threadIdx.x; e < 2 * WIDEST * STRIDE; e += 32 * WARPS)
        slabs[e / (WIDEST * STRIDE)].second[e % (WIDEST * STRIDE)] = narrow<bf16>(0);
    __syncthreads();
    fetch(slabs, p, 0);
    regs4 x[2]; /* columns from k on are 0 */
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
            size_t row = row0 + lane / 4 + 8 * (part % 2);
            int c = 16 * k + 8 * (part / 2) + 2 * (lane % 4);
            x[k][part] =
                row < p.n && c < p.k ? *reinterpret_cast<const uint32_t *>(p.x + row * p.k + c) : 0;
        }
    float y[4][4] = {{0}};
    for (int unit0 = 0, stage = 0; unit0 < p.m; unit0 += SLAB, stage ^= 1) {
        if (unit0 + SLAB < p.m)
            fetch(slabs + (stage ^ 1), p, unit0 + SLAB);
        else
            cp_async_commit(); /* an empty group keeps the count */
        cp_async_wait<1>();
        __syncthreads();
        const slab &w = slabs[stage];
#pragma unroll 2
        for (int u = 0; u < SLAB; u += 16) {
            float h[2][4];
#pragma unroll
            for (int t = 0; t < 2; t++) {
                const bf16 *row = w.first + (u + 8 * t + lane / 4) * p.k;
                const float *bias = w.bias + u + 8 * t + 2 * (lane % 4);
                h[t][0] = h[t][2] = bias[0];
                h[t][1] = h[t][3] = bias[1];
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    int c = 16 * k + 2 * (lane % 4);
                    uint32_t b0 = c < p.k ? *reinterpret_cast<const uint32_t *>(row + c) : 0;
                    uint32_t b1 =
                        c + 8 < p.k ? *reinterpret_cast<const uint32_t *>(row + c + 8) : 0;
                    mma(h[t], x[k], b0, b1);
                }
            }
            regs4 a;
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int half = 0; half < 2; half++)
                    a[2 * t + half] =
                        pack(gelu_rounded(h[t][2 * half]), gelu_rounded(h[t][2 * half + 1]));
#pragma unroll
            for (int n = 0; n < 2; n++) {
                regs4 b;
                ldmatrix_x4(b, w.second + (16 * n + (matrix / 2) * 8 + lane % 8) * STRIDE + u +
                                   (matrix % 2) * 8);
                mma(y[2 * n], a, b[0], b[1]);
                mma(y[2 * n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads(); /* before the next but one comes into the same place */
    }
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            size_t row = row0 + lane / 4 + 8 * (i / 2);
            int col = 8 * n + 2 * (lane % 4) + i % 2;
            if (row < p.n && col < p.l) p.y[row * p.l + col] = y[n][i] + (p.c ? p.c[col] : 0);
        }
}

const float *values_of(const cgs_tensor *t) { return t ? (const float *)t->data : NULL; }

} // namespace

extern "C" {

bool cgs_cuda_mlp_narrow_fits(const cgs_device *, const cgs_record *in, const cgs_record *act,
                              const cgs_record *out) {
    const cgs_tensor *x = in->in[0], *h = in->out;
    return act->arg.activation.kind == CGS_GELU && act->in[0] == h && !act->out->wants_grad &&
           cgs_cols(x) <= WIDEST && cgs_cols(x) % 2 == 0 && cgs_cols(h) % SLAB == 0 &&
           x->dtype == CGS_BF16 && h->dtype == CGS_BF16 && act->out->dtype == CGS_BF16 &&
           in->in[1]->bf16 &&
           (!out || (out->in[0] == act->out && cgs_cols(out->out) <= WIDEST &&
                     out->out->dtype == CGS_F32 && out->in[1]->bf16 && !out->out->wants_grad));
}

cgs_status cgs_cuda_mlp_narrow_prepare(cgs_device *, const cgs_record *) { return CGS_OK; }

void cgs_cuda_mlp_narrow_forward(cgs_device *d, const cgs_record *act) {
    const cgs_record *in = act->before, *out = act->next;
    mlp p = {(const bf16 *)in->in[0]->data,
             (const bf16 *)in->in[1]->bf16,
             (const bf16 *)out->in[1]->bf16,
             values_of(in->in[2]),
             values_of(out->in[2]),
             (float *)out->out->data,
             cgs_rows(in->in[0]),
             cgs_cols(in->in[0]),
             cgs_cols(in->out),
             cgs_cols(out->out)};
    whole_mlp<<<blocks_for(p.n, ROWS), 32 * WARPS, 2 * sizeof(slab), stream_of(d)>>>(p);
    LAUNCHED(d, "narrow mlp");
}

} /* extern "C" */
