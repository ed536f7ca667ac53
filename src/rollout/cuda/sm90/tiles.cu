/* tiles.cu - rollouts of many plans, for the sizes of the published predictor: a CTA runs 64 plans
 * through every layer of every step by itself.
 *
 * Products are wgmma's, which exist on compute capability 9.0 alone.  Each of three warpgroups has
 * one token of the window and keeps its 64 residual rows; weights flow through a ring of slabs in
 * shared memory, which all three read.  Only keys and values pass between warpgroups.  A head is
 * four slabs,
 *
 *   q, k, v   x times 64 outputs each; k and v are left to the tokens that follow
 *   output    the head's result, from registers, times 64 inputs, added to the row's sums
 *
 * and 64 hidden units are two: into them, GELU, and out of them.  Warpgroups are not held in step:
 * while one computes, the others multiply.  While the window grows only its newest token is new,
 * and keys and values of the others come from the KV cache; once it slides, all are computed.  A
 * row's sums do not depend on the other rows, so neither on how many there are. */
#include <stdlib.h>
#include <string.h>

#include "rollout/cuda/sm90/tiles_attention.cuh"
#include "rollout/cuda/sm90/tiles_pack.cuh"

namespace {

#if CGS_HAS_WGMMA

/* norm, and the rows are what the next products read */
__device__ __forceinline__ void hand_over(const tiles_task &p, tile_smem &m, const token &t,
                                          row_sums &v, const float *w, const float *b) {
    int column = 4 * (threadIdx.x % 4);
    normalise(v, p.norm_eps);
    scale_shift(v, 0, w + column, b + column, 0);
    scale_shift(v, 1, w + column, b + column, 0);
    bar_sync(OWN + t.group, WARPGROUP); /* all warps are done with the rows before */
    store_operand(m.x[t.group], v);
    fence_proxy_async();
    bar_sync(OWN + t.group, WARPGROUP);
    t.mark(token::ROWS);
}
/* ... after norm and modulation: shift and scale are slices */
__device__ __forceinline__ void prepare(const tiles_task &p, tile_smem &m, const token &t,
                                        row_sums &v, int layer, int slice, const float *w,
                                        const float *b) {
    normalise(v, p.ada_eps);
#pragma unroll
    for (int h = 0; h < 2; h++)
        scale_shift(v, h, t.modulation(p, layer, h, slice + 1), t.modulation(p, layer, h, slice),
                    1);
    hand_over(p, m, t, v, w, b);
}
/* v = residual rows + gate (v + bias), and these are the residual rows then */
__device__ __forceinline__ void add_gated(const tiles_task &p, const token &t, row_sums &v,
                                          int layer, int slice, const float *bias) {
    float4 *residual = rows_at(p, t.group);
    const float *gate[2] = {t.modulation(p, layer, 0, slice), t.modulation(p, layer, 1, slice)};
#pragma unroll
    for (int i = 0; i < 12; i++) {
        float4 b = read4(bias + 16 * i + 4 * (threadIdx.x % 4));
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 y = run_of(v, i, h), g = read4(gate[h] + 16 * i),
                   r = residual[(2 * i + h) * WARPGROUP];
            r.x += g.x * (y.x + b.x);
            r.y += g.y * (y.y + b.y);
            r.z += g.z * (y.z + b.z);
            r.w += g.w * (y.w + b.w);
            set_run(v, i, h, r);
            residual[(2 * i + h) * WARPGROUP] = r;
        }
    }
}
/* modulations that are needed at the end of what begins now */
__device__ __forceinline__ void look_ahead(const tiles_task &p, const token &t, int layer,
                                           int slice, int slices) {
    if (threadIdx.x % 4 == 0)
#pragma unroll
        for (int h = 0; h < 2; h++)
            cp_async_bulk_prefetch_l2(t.modulation(p, layer, h, slice), slices * D * 4);
}

/* ---- hidden units -------------------------------------------------------------------------- */

/* y = GELU of x into hidden units, out of them again; `groups` warpgroups do so */
__device__ __forceinline__ void hidden_units(const tiles_task &p, tile_smem &m, const token &t,
                                             row_sums &y, int s, int groups) {
    int column = 2 * (threadIdx.x % 4);
#pragma unroll 1
    for (int unit = 0; unit < HIDDEN / 64; unit++, s += UNIT_SLABS) {
        float c[32];
        uint32_t a[4][4];
        await(m, s);
        t.mark(token::WAITED);
        into_units(c, m, t.group, s);
        t.mark(token::MULTIPLIED);
        const float *extra = m.extra[s % SLOTS] + column;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float2 f = *reinterpret_cast<const float2 *>(extra + 8 * j);
            float2 b = *reinterpret_cast<const float2 *>(extra + 64 + 8 * j);
            float u[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                u[i] = gelu_rounded(fmaf(c[4 * j + i], i % 2 ? f.y : f.x, i % 2 ? b.y : b.x));
            a[j / 2][j % 2 * 2] = pack(u[0], u[1]);
            a[j / 2][j % 2 * 2 + 1] = pack(u[2], u[3]);
        }
        release(p, m, s, groups);
        t.mark(token::ACTIVATED);
        await(m, s + 1);
        t.mark(token::WAITED);
        into_rows(y, a, m, s + 1, unit > 0);
        t.mark(token::MULTIPLIED);
        release(p, m, s + 1, groups);
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* the latent that is imagined: stored for the steps to come, and compared at the end */
__device__ __forceinline__ void finish(const tiles_task &p, const token &t, row_sums &v, int step) {
    int column = 4 * (threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < 12; i++) {
        float4 b = read4(p.proj_out_b + 16 * i + column);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 f = run_of(v, i, h);
            set_run(v, i, h, make_float4(f.x + b.x, f.y + b.y, f.z + b.z, f.w + b.w));
        }
    }
    store_rows(rows_at(p, TOKENS + (p.C + step) % TOKENS), v);
    int row0 = (int)(blockIdx.x * PLANS + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        bool exists = row0 + 8 * h < p.rows;
        if (p.latents && exists)
#pragma unroll
            for (int i = 0; i < 12; i++)
                *reinterpret_cast<float4 *>(p.latents + ((size_t)t.plan[h] * p.H + step) * D +
                                            16 * i + column) = run_of(v, i, h);
        if (step + 1 < p.H) continue;
        const float *goal = p.goal + (size_t)(t.plan[h] / p.K) * D + column;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 12; i++) {
            float4 f = run_of(v, i, h), g = read4(goal + 16 * i);
            f.x -= g.x, f.y -= g.y, f.z -= g.z, f.w -= g.w;
            sum += (f.x * f.x + f.y * f.y) + (f.z * f.z + f.w * f.w);
        }
        sum = quad_sum(sum);
        if (exists && column == 0) p.cost[t.plan[h]] = sum;
    }
}

__device__ __forceinline__ void imagine_token(const tiles_task &p, tile_smem &m, const token &t,
                                              int step) {
    int column = 4 * (threadIdx.x % 4), s = step * (p.layers * LAYER_SLABS + MLP_SLABS);
    row_sums v;
    if (t.at < p.C) {
#pragma unroll
        for (int i = 0; i < 12; i++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                set_run(v, i, h,
                        read4(p.z + (size_t)(t.plan[h] / p.K * p.C + t.at) * D + 16 * i + column));
    } else {
        load_rows(v, rows_at(p, TOKENS + t.at % TOKENS));
    }
    const float *pos = p.pos + (size_t)t.group * D + column;
#pragma unroll
    for (int i = 0; i < 12; i++) {
        float4 at = read4(pos + 16 * i);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 f = run_of(v, i, h);
            set_run(v, i, h, make_float4(f.x + at.x, f.y + at.y, f.z + at.z, f.w + at.w));
        }
    }
    store_rows(rows_at(p, t.group), v);
    prepare(p, m, t, v, 0, 0, p.layer[0].attn_norm_w, p.layer[0].attn_norm_b);

#pragma unroll 1
    for (int layer = 0; layer < p.layers; layer++, s += LAYER_SLABS) {
        const layer_vectors &l = p.layer[layer];
        const bool last = layer + 1 == p.layers;
        look_ahead(p, t, layer, 2, 3);
        if (last && !t.newest()) { /* after the last attention only the newest is needed */
            keys_only(p, m, t, layer, s);
            return;
        }
        attention(p, m, t, v, layer, s);
        add_gated(p, t, v, layer, 2, l.out_b);
        prepare(p, m, t, v, layer, 3, l.mlp_norm_w, l.mlp_norm_b);
        look_ahead(p, t, layer, 5, 1);
        if (!last) look_ahead(p, t, layer + 1, 0, 2);
        hidden_units(p, m, t, v, s + HEADS * HEAD_SLABS, last ? 1 : t.active);
        add_gated(p, t, v, layer, 5, l.down_b);
        if (!last)
            prepare(p, m, t, v, layer + 1, 0, p.layer[layer + 1].attn_norm_w,
                    p.layer[layer + 1].attn_norm_b);
    }
    hand_over(p, m, t, v, p.norm_w, p.norm_b);
    hidden_units(p, m, t, v, s, 1);
    finish(p, t, v, step);
}

#endif /* CGS_HAS_WGMMA */

__global__ void __launch_bounds__(THREADS, 1) imagine_tiles(const __grid_constant__ tiles_task p) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(1024) unsigned char memory[];
    tile_smem &m = *(tile_smem *)memory;
    token t;
    t.group = __shfl_sync(0xffffffffu, (int)threadIdx.x / WARPGROUP, 0);
    t.clock.start(blockIdx.x == 0 && threadIdx.x % WARPGROUP == 0);
    int row0 = (int)(blockIdx.x * PLANS + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4);
    for (int h = 0; h < 2; h++) /* rows that do not exist repeat the last */
        t.plan[h] = row0 + 8 * h < p.rows ? row0 + 8 * h : p.rows - 1;
    if (threadIdx.x == 0) {
        if (shared_address(memory) % 1024) __trap(); /* chunks would be exchanged wrongly */
        for (int i = 0; i < SLOTS; i++) {
            mbarrier_init(&m.full[i], 1);
            m.released[i] = 0;
        }
        fence_mbarrier_init();
        for (int i = 0; i < SLOTS; i++) fetch_slab(p, m, i);
    }
    __syncthreads();
    for (int step = 0; step < p.H; step++) {
        int seen = p.C + step;
        t.w = seen < p.N ? seen : p.N;
        t.at = seen - t.w + t.group;
        t.active = seen > p.N || step == 0 ? t.w : 1; /* the window slides, or there is none yet */
        t.grows = seen < p.N && step + 1 < p.H;
        if (t.group < t.w && t.group >= t.w - t.active) imagine_token(p, m, t, step);
        __syncthreads(); /* latents are read by other warpgroups; none may fall a phase behind */
        if (threadIdx.x == 0) t.clock.mark(15);
    }
#endif
}

/* ---- the host's side ---------------------------------------------------------------------------
 */

struct tiles {
    tiles_task base;
    void *slabs, *rows, *cache;
};

const float *values(const cgs_tensor *x) { return (const float *)x->data; }

cgs_status fill(cgs_device *d, tiles *o, const cgs_predictor_weights *w, int rows) {
    size_t slabs = (size_t)w->layers * LAYER_SLABS + MLP_SLABS, ctas = blocks_for(rows, PLANS);
    tiles_task *t = &o->base;
    pack_task k = {};
    CGS_TRY(d->ops->alloc(d, &o->slabs, slabs * PACKED));
    CGS_TRY(d->ops->alloc(d, &o->rows, ctas * 2 * TOKENS * PLANS * D * sizeof(float)));
    CGS_TRY(d->ops->alloc(d, &o->cache,
                          ctas * (size_t)w->layers * HEADS * (TOKENS - 1) * 8 * WARPGROUP *
                              sizeof(uint4)));
    t->slabs = (const unsigned char *)o->slabs;
    t->cache = (uint4 *)o->cache;
    t->row_memory = (float4 *)o->rows;
    k.layers = w->layers;
    k.batch_eps = w->batch_eps;
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_layer_weights *b = &w->layer[i];
        k.qkv[i] = b->qkv->bf16;
        k.out[i] = b->attn_out_w->bf16;
        k.in[i] = b->mlp_in_w->bf16;
        k.down[i] = b->mlp_out_w->bf16;
        k.in_b[i] = values(b->mlp_in_b);
        t->layer[i] = {values(b->attn_norm_w), values(b->attn_norm_b), values(b->attn_out_b),
                       values(b->mlp_norm_w),  values(b->mlp_norm_b),  values(b->mlp_out_b)};
    }
    k.in[w->layers] = w->proj_in_w->bf16;
    k.down[w->layers] = w->proj_out_w->bf16;
    k.in_b[w->layers] = values(w->proj_in_b);
    k.norm_w = values(w->proj_norm_w);
    k.norm_b = values(w->proj_norm_b);
    k.mean = values(w->proj_mean);
    k.var = values(w->proj_var);
    t->pos = values(w->pos);
    t->norm_w = values(w->norm_w);
    t->norm_b = values(w->norm_b);
    t->proj_out_b = values(w->proj_out_b);
    pack_slabs<<<(unsigned)slabs, 256, 0, stream_of(d)>>>((unsigned char *)o->slabs, k);
    LAUNCHED(d, "packing weights");
    return d->ops->sync(d);
}

} // namespace

extern "C" {

cgs_status cgs_cuda_tiles_open(cgs_device *d, void **out, const cgs_predictor_weights *w,
                               int rows) {
    int major = 0, minor = 0;
    *out = NULL;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d->index);
    if (major != 9 || minor != 0 || w->history > TOKENS ||
        sizeof(tile_smem) > (size_t)cgs_cuda_of(d)->max_shared)
        return CGS_OK;
    tiles *o = (tiles *)calloc(1, sizeof *o);
    if (!o) return cgs_fail(CGS_ENOMEM, "no memory for a predictor");
    o->base.N = w->history;
    o->base.layers = w->layers;
    o->base.ada_eps = w->ada_eps;
    o->base.norm_eps = w->norm_eps;
    cudaError_t e = cudaFuncSetAttribute(imagine_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)sizeof(tile_smem));
    cgs_status rc =
        e == cudaSuccess ? fill(d, o, w, rows) : cgs_cuda_failed(e, "a rollout by tiles");
    if (rc == CGS_OK)
        *out = o;
    else
        cgs_cuda_tiles_close(d, o);
    return rc;
}

void cgs_cuda_tiles_run(cgs_device *d, const void *handle, const cgs_predictor_job *j) {
    tiles_task t = ((const tiles *)handle)->base;
    t.rows = j->rows;
    t.K = j->K;
    t.C = j->C;
    t.H = j->H;
    t.T = j->C - 1 + j->H;
    t.z = j->z;
    t.goal = j->goal;
    t.cost = j->cost;
    t.latents = j->latents;
    t.modulation = j->modulation;
    imagine_tiles<<<blocks_for((size_t)j->rows, PLANS), THREADS, sizeof(tile_smem), stream_of(d)>>>(
        t);
    LAUNCHED(d, "a rollout by tiles");
    show_clocks(stream_of(d), CLOCK_TILES, blocks_for((size_t)j->rows, PLANS));
    SHOW_STAMPS(d, j->rows);
}

void cgs_cuda_tiles_close(cgs_device *d, void *handle) {
    tiles *o = (tiles *)handle;
    d->ops->release(d, o->slabs);
    d->ops->release(d, o->rows);
    d->ops->release(d, o->cache);
    free(o);
}

} /* extern "C" */
