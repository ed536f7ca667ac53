/* modulations.cu - what all blocks of a predictor add and multiply, from embedded actions.
 *
 * Block by block that is an activation and a product each, which take longer to start than to run
 * for a few hundred rows.  Here one kernel does SiLU and the products of all blocks: a block of
 * threads takes 64 rows and some tiles of 128 outputs, weights in the order of mma's registers. */
#include <stdlib.h>

#include "ops/cuda/predictor.cuh"

namespace {

enum { OUTPUTS = 6 * D, ROWS = 64, TILE = 16 * WARPS, TILES = OUTPUTS / TILE };

struct modulation_task {
    int rows, tiles; /* tiles: of a block of threads */
    const float *c;
    const uint4 *w[CGS_PREDICTOR_LAYERS];
    const float *b[CGS_PREDICTOR_LAYERS];
    float *to[CGS_PREDICTOR_LAYERS];
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
        w.fetch(p.w[layer], PAIRS_D, 0, [=](int n) { return tile0 + n; });
        float2 bias[2];
#pragma unroll
        for (int n = 0; n < 2; n++)
            bias[n] = *reinterpret_cast<const float2 *>(p.b[layer] + column0 + 8 * n);
        products(w, x, X_ROW, 0, ROWS / 16, [&](int row, int n, const float(&c)[4]) {
            float *to = p.to[layer] + (size_t)(row0 + row) * OUTPUTS + column0 + 8 * n;
            if (row0 + row < p.rows)
                *reinterpret_cast<float2 *>(to) = make_float2(c[0] + bias[n].x, c[1] + bias[n].y);
            if (row0 + row + 8 < p.rows)
                *reinterpret_cast<float2 *>(to + 8 * OUTPUTS) =
                    make_float2(c[2] + bias[n].x, c[3] + bias[n].y);
        });
    }
}

struct modulations {
    modulation_task base;
    int layers;
    void *packed;
};

} // namespace

extern "C" {

cgs_status cgs_cuda_modulations_open(cgs_device *d, void **out, const cgs_modulation_weights *w) {
    const char *wish = getenv("CGS_MODULATIONS");
    *out = NULL;
    if (!wish || atoi(wish) != 1 || w->D != D || w->layers > CGS_PREDICTOR_LAYERS) return CGS_OK;
    for (int i = 0; i < w->layers; i++)
        if (!w->w[i]->bf16) return CGS_OK;
    modulations *m = (modulations *)calloc(1, sizeof *m);
    if (!m) return cgs_fail(CGS_ENOMEM, "no memory for modulations");
    const size_t each = (size_t)OUTPUTS * D * sizeof(uint16_t);
    cgs_status rc = d->ops->alloc(d, &m->packed, each * (size_t)w->layers);
    if (rc != CGS_OK) {
        free(m);
        return rc;
    }
    m->layers = w->layers;
    for (int i = 0; i < w->layers; i++) {
        uint4 *to = (uint4 *)((unsigned char *)m->packed + i * each);
        pack_weights<<<OUTPUTS / 8, THREADS, 0, stream_of(d)>>>(to, w->w[i]->bf16, D);
        LAUNCHED(d, "packing weights");
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
    for (int i = 0; i < m->layers; i++) t.to[i] = to[i];
    /* few rows: many blocks of threads; many rows: SiLU once for all outputs of a block */
    t.tiles = high < 64 ? 1 : TILES;
    modulate_all<<<dim3((unsigned)(TILES / t.tiles), (unsigned)m->layers, high), THREADS, 0,
                   stream_of(d)>>>(t);
    LAUNCHED(d, "modulations");
}

void cgs_cuda_modulations_close(cgs_device *d, void *kept) {
    modulations *m = (modulations *)kept;
    d->ops->release(d, m->packed);
    free(m);
}

} /* extern "C" */
