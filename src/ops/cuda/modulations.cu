/* modulations.cu - what all blocks of a predictor add and multiply, from embedded actions.
 *
 * Block by block that is an activation and a product each, which take longer to start than to run
 * for a few hundred rows.  Here one kernel does SiLU and the products of all blocks: a block of
 * threads takes 64 rows and some tiles of 128 outputs, weights in the order of mma's registers.
 * Backward a block of threads takes 16 rows and 8 columns of the embedding, each warp a part of the
 * sum over all outputs of all blocks; the parts are added in order. */
#include <stdlib.h>

#include "ops/cuda/predictor.cuh"

namespace {

enum { OUTPUTS = 6 * D, ROWS = 64, TILE = 16 * WARPS, TILES = OUTPUTS / TILE };

struct modulation_task {
    int rows, tiles; /* tiles: of a block of threads */
    const float *c;
    float *dc;
    const uint4 *w[CGS_PREDICTOR_LAYERS], *turned[CGS_PREDICTOR_LAYERS];
    const float *b[CGS_PREDICTOR_LAYERS];
    float *to[CGS_PREDICTOR_LAYERS]; /* backward: gradients */
    int layers;
};

__global__ void __launch_bounds__(THREADS) modulate_all(const __grid_constant__ modulation_task p) {
    __shared__ __align__(16) bf16 x[ROWS * X_ROW];
    const int layer = (int)blockIdx.y, row0 = (int)blockIdx.z * ROWS, lane = threadIdx.x % 32;
    const int warp = (int)threadIdx.x / 32, first = (int)blockIdx.x * p.tiles;
    for (int i = threadIdx.x; i < ROWS * D / 2; i += THREADS) {
        int row = i / (D / 2), column = i % (D / 2) * 2;
        size_t at = (size_t)(row0 + row < p.rows ? row0 + row : p.rows - 1) * D + column;
        float2 v = *reinterpret_cast<const float2 *>(p.c + at);
        *reinterpret_cast<uint32_t *>(&x[row * X_ROW + column]) =
            pack(v.x / (1.0f + expf(-v.x)), v.y / (1.0f + expf(-v.y)));
    }
    __syncthreads();
    for (int t = first; t < first + p.tiles; t++) {
        weights<2, PAIRS_D> w;
        const int tile0 = t * (TILE / 8) + warp * 2, column0 = tile0 * 8 + 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int k = 0; k < PAIRS_D; k++)
                w.b[n][k] = p.w[layer][((size_t)(tile0 + n) * PAIRS_D + k) * 32 + threadIdx.x % 32];
        float2 bias[2];
#pragma unroll
        for (int n = 0; n < 2; n++)
            bias[n] = *reinterpret_cast<const float2 *>(p.b[layer] + column0 + 8 * n);
        products(w, x, X_ROW, row_tiles(0, ROWS), [&](int row, const float(&c)[2][4]) {
#pragma unroll
            for (int n = 0; n < 2; n++) {
                float *to = p.to[layer] + (size_t)(row0 + row) * OUTPUTS + column0 + 8 * n;
                if (row0 + row < p.rows)
                    *reinterpret_cast<float2 *>(to) =
                        make_float2(c[n][0] + bias[n].x, c[n][1] + bias[n].y);
                if (row0 + row + 8 < p.rows)
                    *reinterpret_cast<float2 *>(to + 8 * OUTPUTS) =
                        make_float2(c[n][2] + bias[n].x, c[n][3] + bias[n].y);
            }
        });
    }
}

__global__ void __launch_bounds__(THREADS)
    modulate_back(const __grid_constant__ modulation_task p) {
    enum { PAIRS = OUTPUTS / 32, BATCH = 5 };
    __shared__ float parts[WARPS][32][4];
    const int lane = threadIdx.x % 32, warp = (int)threadIdx.x / 32, tile = (int)blockIdx.x;
    const int row = (int)blockIdx.y * 16 + lane / 4, quad = 2 * (lane % 4);
    /* rows that do not exist repeat the last; nobody reads what they give */
    const size_t first = (size_t)(row < p.rows ? row : p.rows - 1) * OUTPUTS + quad;
    const size_t second = (size_t)(row + 8 < p.rows ? row + 8 : p.rows - 1) * OUTPUTS + quad;
    float sum[4] = {};
    const int pairs = p.layers * PAIRS;
    for (int i0 = warp; i0 < pairs; i0 += BATCH * WARPS) {
        uint4 w[BATCH];
        float2 v[BATCH][8];
#pragma unroll
        for (int j = 0; j < BATCH; j++) { /* all on the way before the first is used */
            int i = min(i0 + j * WARPS, pairs - 1), layer = i / PAIRS, pair = i % PAIRS;
            w[j] = p.turned[layer][((size_t)tile * PAIRS + pair) * 32 + lane];
            const float *from = p.to[layer] + pair * 32;
#pragma unroll
            for (int k = 0; k < 8; k++)
                v[j][k] =
                    *reinterpret_cast<const float2 *>(from + (k % 2 ? second : first) + k / 2 * 8);
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            uint32_t a[2][4]; /* 16 of the inner index each */
#pragma unroll
            for (int k = 0; k < 8; k++) a[k / 4][k % 4] = pack(v[j][k].x, v[j][k].y);
            uint32_t there =
                i0 + j * WARPS < pairs ? 0xffffffffu : 0; /* a branch would delay loads */
            mma_tile(sum, a[0], w[j].x & there, w[j].y & there);
            mma_tile(sum, a[1], w[j].z & there, w[j].w & there);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) parts[warp][lane][k] = sum[k];
    __syncthreads();
    if (warp) return;
    for (int k = 0; k < 4; k++) {
        float all = 0;
        for (int i = 0; i < WARPS; i++) all += parts[i][lane][k];
        if (row + k / 2 * 8 >= p.rows) continue;
        size_t at = (size_t)(row + k / 2 * 8) * D + tile * 8 + quad + k % 2;
        float x = p.c[at], s = 1.0f / (1.0f + expf(-x));
        p.dc[at] = all * s * (1.0f + x * (1.0f - s));
    }
}

struct modulations {
    modulation_task base;
    void *packed;
};

} // namespace

extern "C" {

cgs_status cgs_cuda_modulations_open(cgs_device *d, void **out, const cgs_modulation_weights *w,
                                     bool gradient) {
    const char *wish = getenv("CGS_MODULATIONS");
    *out = NULL;
    if (!wish || atoi(wish) != 1 || w->D != D || w->layers > CGS_PREDICTOR_LAYERS) return CGS_OK;
    for (int i = 0; i < w->layers; i++)
        if (!w->w[i]->bf16) return CGS_OK;
    modulations *m = (modulations *)calloc(1, sizeof *m);
    if (!m) return cgs_fail(CGS_ENOMEM, "no memory for modulations");
    const size_t each = (size_t)OUTPUTS * D * sizeof(uint16_t);
    cgs_status rc = d->ops->alloc(d, &m->packed, each * (size_t)w->layers * (gradient ? 2 : 1));
    if (rc != CGS_OK) {
        free(m);
        return rc;
    }
    m->base.layers = w->layers;
    for (int i = 0; i < w->layers; i++) {
        uint4 *to = (uint4 *)((unsigned char *)m->packed + i * each);
        uint4 *turned = (uint4 *)((unsigned char *)m->packed + (w->layers + i) * each);
        pack_weights<<<OUTPUTS / 8, THREADS, 0, stream_of(d)>>>(to, w->w[i]->bf16, D);
        LAUNCHED(d, "packing weights");
        if (gradient) {
            pack_turned<<<D / 8, THREADS, 0, stream_of(d)>>>(turned, w->w[i]->bf16, OUTPUTS, D);
            LAUNCHED(d, "packing weights");
            m->base.turned[i] = turned;
        }
        m->base.w[i] = to;
        m->base.b[i] = (const float *)w->b[i]->data;
    }
    *out = m;
    return d->ops->sync(d);
}

void cgs_cuda_modulations_run(cgs_device *d, void *kept, const float *c, int rows,
                              float *const *to) {
    const modulations *m = (const modulations *)kept;
    modulation_task t = m->base;
    unsigned high = blocks_for((size_t)rows, ROWS);
    t.rows = rows;
    t.c = c;
    for (int i = 0; i < t.layers; i++) t.to[i] = to[i];
    /* few rows: many blocks of threads; many rows: SiLU once for all outputs of a block */
    t.tiles = high < 64 ? 1 : TILES;
    modulate_all<<<dim3((unsigned)(TILES / t.tiles), (unsigned)t.layers, high), THREADS, 0,
                   stream_of(d)>>>(t);
    LAUNCHED(d, "modulations");
}

void cgs_cuda_modulations_back(cgs_device *d, void *kept, float *dc, const float *c, int rows,
                               float *const *gradient) {
    modulation_task t = ((const modulations *)kept)->base;
    t.rows = rows;
    t.c = c;
    t.dc = dc;
    for (int i = 0; i < t.layers; i++) t.to[i] = gradient[i];
    modulate_back<<<dim3(D / 8, blocks_for((size_t)rows, 16)), THREADS, 0, stream_of(d)>>>(t);
    LAUNCHED(d, "the gradient of modulations");
}

void cgs_cuda_modulations_close(cgs_device *d, void *kept) {
    modulations *m = (modulations *)kept;
    d->ops->release(d, m->packed);
    free(m);
}

} /* extern "C" */
