/* predictor.cu - all steps of a rollout in one kernel, for the sizes of the published predictor.
 *
 * Launched one by one, a rollout of 128 plans is some 450 small operations, each of which takes
 * longer to start than to run.  Here a cluster of S blocks takes R = 16 MT plans through all
 * blocks of all steps.  A block has 16 / S heads, 1/S of the hidden units of every MLP, and R / S
 * of the plans as their owner:
 *
 *   owner  norms and modulates its plans' residual rows, sends them in bf16 to all blocks
 *   all    q, k, v of own heads, attention over the window, their share of the output product
 *   owner  adds the S shares in order, gates, norms, modulates, sends
 *   all    own hidden units: product, GELU, their share of the second product
 *   owner  adds the S shares in order, gates
 *
 * with a barrier of the cluster between the lines.  Weights are read from the second-level cache,
 * once by every cluster, before the barrier they are used behind.  A row's sums do not depend on
 * the other rows, nor on MT: only on S.
 *
 * Rows of a step are ordered by token, then by plan.  While the window grows only its newest token
 * is new, and keys and values of the others come from a cache; once it slides, all are computed. */
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/predictor_back.cuh"

namespace {

/* ---- attention
 * -------------------------------------------------------------------------------------- */

__device__ __forceinline__ void read8(float (&v)[8], const float *p) { load<8>(v, p); }

/* Queries of `asked` tokens, the newest ones, over the window's w tokens of which `fresh` are in
 * qkv and the others in the cache.  Eight lanes take one query of one head of one plan. */
template <int S>
__device__ void attend(const task &p, int layer, bf16 *a, const float *qkv, int R, size_t row0,
                       int w, int fresh, int asked) {
    typedef shape<S> sh;
    int lane = threadIdx.x % 32, part = lane % 8 * 8, rank = cluster_rank();
    int tasks = sh::OWN_HEADS * R * asked, old = w - fresh;
    for (int base = (int)threadIdx.x / 32 * 4; base < tasks; base += 4 * WARPS) {
        int t = base + lane / 8;
        bool valid = t < tasks;
        if (!valid) t = tasks - 1;
        int plan = t % R, token = w - asked + t / R % asked, head = t / R / asked;
        const float *own = qkv + (size_t)plan * sh::QKV_ROW + head * 3 * WIDTH + part;
        size_t token_row = (size_t)R * sh::QKV_ROW;
        const float *kept =
            p.cache +
            (((size_t)layer * HEADS + rank * sh::OWN_HEADS + head) * p.cache_rows + row0 + plan) *
                (p.N - 1) * 2 * WIDTH +
            part;
        float q[8], k[8], score[MOST_TOKENS], most = -INFINITY, sum = 0, o[8] = {};
        read8(q, own + (size_t)(token - old) * token_row);
#pragma unroll
        for (int j = 0; j < MOST_TOKENS; j++) {
            score[j] = -INFINITY;
            if (j >= w) continue; /* the same for all lanes */
            read8(k, j < old ? kept + (size_t)j * 2 * WIDTH
                             : own + (size_t)(j - old) * token_row + WIDTH);
            float dot = 0;
#pragma unroll
            for (int i = 0; i < 8; i++) dot += q[i] * k[i];
#pragma unroll
            for (int o8 = 4; o8 > 0; o8 >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, o8);
            if (j <= token) score[j] = dot * 0.125f; /* 1 / sqrt(WIDTH) */
            most = fmaxf(most, score[j]);
        }
#pragma unroll
        for (int j = 0; j < MOST_TOKENS; j++) {
            if (j >= w) continue;
            float e = expf(score[j] - most);
            sum += e;
            read8(k, j < old ? kept + (size_t)j * 2 * WIDTH + WIDTH
                             : own + (size_t)(j - old) * token_row + 2 * WIDTH);
#pragma unroll
            for (int i = 0; i < 8; i++) o[i] += e * k[i];
        }
        float inverse = 1.0f / sum;
#pragma unroll
        for (int i = 0; i < 8; i++) o[i] *= inverse;
        if (valid)
            store<8>(a + (size_t)((token - old) * R + plan) * sh::A_ROW + head * WIDTH + part, o);
    }
}

/* keeps keys and values of the fresh tokens, which are tokens `old` on of the window */
template <int S>
__device__ void keep_keys(const task &p, int layer, const float *qkv, int R, size_t row0, int old,
                          int fresh) {
    typedef shape<S> sh;
    int chunks = 2 * WIDTH / 4, all = sh::OWN_HEADS * R * fresh * chunks, rank = cluster_rank();
    for (int i = threadIdx.x; i < all; i += THREADS) {
        int c = i % chunks, plan = i / chunks % R, token = i / chunks / R % fresh;
        int head = i / chunks / R / fresh;
        const float *from =
            qkv + (size_t)(token * R + plan) * sh::QKV_ROW + head * 3 * WIDTH + WIDTH;
        float *to =
            p.cache +
            ((((size_t)layer * HEADS + rank * sh::OWN_HEADS + head) * p.cache_rows + row0 + plan) *
                 (p.N - 1) +
             old + token) *
                2 * WIDTH;
        *reinterpret_cast<float4 *>(to + 4 * c) = *reinterpret_cast<const float4 *>(from + 4 * c);
    }
}

/* leaves q, k, v of own heads for backward */
template <int S>
__device__ void save_qkv(const task &p, int step, int layer, const float *qkv, int R, size_t row0,
                         int w) {
    typedef shape<S> sh;
    const int chunks = 3 * WIDTH / 4;
    int all = sh::OWN_HEADS * R * w * chunks, rank = cluster_rank();
    for (int i = threadIdx.x; i < all; i += THREADS) {
        int c = i % chunks, plan = i / chunks % R, token = i / chunks / R % w;
        int own = i / chunks / R / w, head = rank * sh::OWN_HEADS + own;
        const float *from = qkv + (size_t)(token * R + plan) * sh::QKV_ROW + own * 3 * WIDTH;
        float *to =
            p.saved.qkv +
            (((((size_t)step * p.layers + layer) * HEADS + head) * p.saved.rows + row0 + plan) *
                 p.N +
             token) *
                3 * WIDTH;
        *reinterpret_cast<float4 *>(to + 4 * c) = *reinterpret_cast<const float4 *>(from + 4 * c);
    }
}

} // namespace

#include "ops/cuda/predictor_back_ring.cuh" /* uses the two above */

namespace {

/* ---- the kernel
 * -------------------------------------------------------------------------------------- */

/* KEEP: leaves everything that backward reads, and computes all tokens of every window */
template <int S, bool KEEP>
__global__ void __launch_bounds__(THREADS, 1) imagine(const __grid_constant__ task p) {
    typedef shape<S> sh;
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = 16 * p.MT, own = R / S, N = p.N, rank = cluster_rank();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    bf16 *x = (bf16 *)memory;                              /* (N R, X_ROW) what enters products */
    float *qkv = (float *)(x + (size_t)N * R * X_ROW);     /* (N R, QKV_ROW) */
    float *parts = qkv;                                    /* (N R, PART_ROW) this block's shares */
    bf16 *h = (bf16 *)(qkv + (size_t)N * R * sh::QKV_ROW); /* (N R, H_ROW) hidden units */
    bf16 *a = h;                                           /* (N R, A_ROW) attention's result */
    float *stream = (float *)(h + (size_t)N * R * sh::H_ROW); /* (own, N, D) residual rows */
    float *window = stream + (size_t)own * N * D;     /* (own, N, D) latents, oldest first */
    const size_t row0 = (size_t)(blockIdx.x / S) * R; /* the cluster's first plan */

    /* global number of own plan i; rows that do not exist repeat the last */
    auto plan_of = [&](int i) {
        size_t row = row0 + (size_t)(rank * own + i);
        return row < (size_t)p.rows ? row : (size_t)p.rows - 1;
    };

    /* phases: barrier, q k v, attention, output, barrier, rows, barrier, in, out, barrier, rows,
     * projector */
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    weights<3, PAIRS_D> wq;
    weights<2, PAIRS_D> win;
    auto qkv_tile = [&](int chunk) {
        return [=](int n) { /* tile of W for the n-th tile of this warp: q, k, v of own heads */
                            int t = warp * sh::QKV_TILES + 3 * chunk + n,
                                head = rank * sh::OWN_HEADS + t / 24;
                            return t % 24 / 8 * (INNER / 8) + head * 8 + t % 8;
        };
    };
    auto in_tile = [&](int chunk) {
        return [=](int n) { return rank * (sh::UNITS / 8) + warp * sh::IN_TILES + 2 * chunk + n; };
    };
    auto out_tile = [=](int n) { return warp * sh::OUT_TILES + n; };

    for (int t = warp; t < own * p.C; t += WARPS) { /* the context */
        int i = t / p.C, j = t % p.C;
        row_values v;
        read_row(v, p.z + (plan_of(i) / p.K * p.C + j) * D);
        write_row(window + (size_t)(i * N + j) * D, v);
    }
    wq.fetch(p.block[0].qkv, PAIRS_D, 0, qkv_tile(0));
    cluster_sync(); /* everyone is here */

    for (int step = 0; step < p.H; step++) {
        const int seen = p.C + step, w = seen < N ? seen : N;
        const int fresh = KEEP || seen > N || step == 0 ? w : 1, old = w - fresh;
        const bool grows = !KEEP && seen < N && step + 1 < p.H; /* keys and values are used again */

        /* The vectors of norm, modulation (shift and scale are slices of it) and norm.  They are
         * read first of all: nothing else has to wait for memory then. */
        struct between {
            row_values shift, scale, w, b;
        };
        auto fetch = [&](between &n, int layer, int i, int token, int slice, const float *nw,
                         const float *nb) {
            const float *mod = p.modulation[layer] + (plan_of(i) * p.T + seen - w + token) * 6 * D;
            read_row(n.shift, mod + slice * D);
            read_row(n.scale, mod + (slice + 1) * D);
            read_row(n.w, nw);
            read_row(n.b, nb);
        };
        auto prepare = [&](row_values &v, const between &n, int i, int token) {
            normalise(v, p.ada_eps);
            scale_shift(v, n.scale, n.shift, 1);
            normalise(v, p.norm_eps);
            scale_shift(v, n.w, n.b, 0);
            send<S>(x, (token - old) * R + rank * own + i, v);
        };
        auto keep = [&](float *to, int layer, int i, int token, const row_values &v) {
            if (KEEP) write_row(to + saved_at(p, step, layer, row0 + rank * own + i, token) * D, v);
        };
        /* adds what a sub-module gave, gated */
        auto take = [&](row_values &v, int layer, int i, int token, int slice, const float *bias) {
            const float *gate =
                p.modulation[layer] + (plan_of(i) * p.T + seen - w + token) * 6 * D + slice * D;
            row_values g, y, r;
            read_row(g, gate);
            read_row(r, stream + (size_t)(i * N + token) * D);
            add_shares<S>(y, bias, parts, (token - old) * R + rank * own + i);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x = r[j].x + g[j].x * y[j].x;
                v[j].y = r[j].y + g[j].y * y[j].y;
            }
            write_row(stream + (size_t)(i * N + token) * D, v);
            keep(slice == 2 ? p.saved.y1 : p.saved.y2, layer, i, token, y);
            if (slice == 2) keep(p.saved.x2, layer, i, token, v);
        };

        for (int t = warp; t < own * fresh; t += WARPS) {
            int i = t / fresh, token = old + t % fresh;
            row_values v, at;
            between n;
            fetch(n, 0, i, token, 0, p.block[0].attn_norm_w, p.block[0].attn_norm_b);
            read_row(v, window + (size_t)(i * N + token) * D);
            read_row(at, p.pos + (size_t)token * D);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += at[j].x;
                v[j].y += at[j].y;
            }
            write_row(stream + (size_t)(i * N + token) * D, v);
            keep(p.saved.x1, 0, i, token, v);
            prepare(v, n, i, token);
        }

        for (int layer = 0; layer < p.layers; layer++) {
            const block_weights &b = p.block[layer];
            const bool last = layer + 1 == p.layers;
            const int asked = last ? 1 : fresh; /* behind the last attention one token is wanted */
            const int tile0 = (fresh - asked) * p.MT, tiles = asked * p.MT;
            cluster_sync(); /* x is complete */
            clock.mark(0);

#pragma unroll
            for (int chunk = 0; chunk < sh::QKV_TILES / 3; chunk++) {
                if (chunk) wq.fetch(b.qkv, PAIRS_D, 0, qkv_tile(chunk));
                products(wq, x, X_ROW, 0, fresh * p.MT, [&](int row, int n, const float(&c)[4]) {
                    float *to = qkv + (size_t)row * sh::QKV_ROW +
                                (warp * sh::QKV_TILES + 3 * chunk + n) * 8 + quad;
                    *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
                    *reinterpret_cast<float2 *>(to + 8 * sh::QKV_ROW) = make_float2(c[2], c[3]);
                });
            }
            weights<sh::OUT_TILES, sh::OUT_PAIRS> wo;
            wo.fetch(b.out, PAIRS_INNER, rank * sh::OUT_PAIRS, out_tile);
            __syncthreads();
            clock.mark(1);
            attend<S>(p, layer, a, qkv, R, row0, w, fresh, asked);
            if (grows) keep_keys<S>(p, layer, qkv, R, row0, old, fresh);
            if (KEEP) save_qkv<S>(p, step, layer, qkv, R, row0, w);
            win.fetch(b.in, PAIRS_D, 0, in_tile(0));
            __syncthreads();
            clock.mark(2);
            auto share = [&](int row, int n, const float(&c)[4]) {
                float *to = parts + (size_t)row * PART_ROW + (warp * sh::OUT_TILES + n) * 8 + quad;
                *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
                *reinterpret_cast<float2 *>(to + 8 * PART_ROW) = make_float2(c[2], c[3]);
            };
            products(wo, a, sh::A_ROW, tile0, tiles, share);
            clock.mark(3);
            cluster_sync(); /* shares are complete, x is free */
            clock.mark(4);

            for (int t = warp; t < own * asked; t += WARPS) {
                int i = t / asked, token = w - asked + t % asked;
                row_values v;
                between n;
                fetch(n, layer, i, token, 3, b.mlp_norm_w, b.mlp_norm_b);
                take(v, layer, i, token, 2, b.out_b);
                prepare(v, n, i, token);
            }
            weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
            wd.fetch(b.down, PAIRS_HIDDEN, rank * sh::DOWN_PAIRS, out_tile);
            clock.mark(5);
            cluster_sync(); /* x is complete, shares were read */
            clock.mark(6);

#pragma unroll
            for (int chunk = 0; chunk < sh::IN_TILES / 2; chunk++) {
                if (chunk) win.fetch(b.in, PAIRS_D, 0, in_tile(chunk));
                products(win, x, X_ROW, tile0, tiles, [&](int row, int n, const float(&c)[4]) {
                    int unit = (warp * sh::IN_TILES + 2 * chunk + n) * 8 + quad;
                    float2 bias =
                        *reinterpret_cast<const float2 *>(b.in_b + rank * sh::UNITS + unit);
                    float2 u = make_float2(c[0] + bias.x, c[1] + bias.y);
                    float2 v = make_float2(c[2] + bias.x, c[3] + bias.y);
                    bf16 *to = h + (size_t)row * sh::H_ROW + unit;
                    *reinterpret_cast<uint32_t *>(to) = pack(gelu(u.x), gelu(u.y));
                    *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) = pack(gelu(v.x), gelu(v.y));
                    if (KEEP) {
                        float *pre = p.saved.pre +
                                     saved_at(p, step, layer, row0 + row % R, row / R) * HIDDEN +
                                     rank * sh::UNITS + unit;
                        *reinterpret_cast<float2 *>(pre) = u;
                        *reinterpret_cast<float2 *>(pre + (size_t)8 * N * HIDDEN) = v;
                    }
                });
            }
            __syncthreads();
            clock.mark(7);
            products(wd, h, sh::H_ROW, tile0, tiles, share);
            if (last)
                win.fetch(p.proj_in, PAIRS_D, 0, in_tile(0));
            else
                wq.fetch(p.block[layer + 1].qkv, PAIRS_D, 0, qkv_tile(0));
            clock.mark(8);
            cluster_sync(); /* shares are complete, x is free */
            clock.mark(9);

            for (int t = warp; t < own * asked; t += WARPS) {
                int i = t / asked, token = w - asked + t % asked;
                row_values v;
                between n;
                if (!last) {
                    const block_weights &next = p.block[layer + 1];
                    fetch(n, layer + 1, i, token, 0, next.attn_norm_w, next.attn_norm_b);
                } else {
                    read_row(n.w, p.norm_w);
                    read_row(n.b, p.norm_b);
                }
                take(v, layer, i, token, 5, b.down_b);
                if (!last) {
                    keep(p.saved.x1, layer + 1, i, token, v);
                    prepare(v, n, i, token);
                } else {
                    if (KEEP)
                        write_row(p.saved.last +
                                      ((size_t)step * p.saved.rows + row0 + rank * own + i) * D,
                                  v);
                    normalise(v, p.norm_eps);
                    scale_shift(v, n.w, n.b, 0);
                    send<S>(x, (token - old) * R + rank * own + i, v);
                }
            }
            clock.mark(10);
        }

        /* the projector: linear map, batch norm, GELU, linear map, of the newest token */
        const int tile0 = (fresh - 1) * p.MT;
        weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
        wd.fetch(p.proj_out, PAIRS_HIDDEN, rank * sh::DOWN_PAIRS, out_tile);
        cluster_sync(); /* x is complete, shares were read */
#pragma unroll
        for (int chunk = 0; chunk < sh::IN_TILES / 2; chunk++) {
            if (chunk) win.fetch(p.proj_in, PAIRS_D, 0, in_tile(chunk));
            products(win, x, X_ROW, tile0, p.MT, [&](int row, int n, const float(&c)[4]) {
                int unit = (warp * sh::IN_TILES + 2 * chunk + n) * 8 + quad;
                float v[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int u = rank * sh::UNITS + unit + i % 2;
                    float rstd = 1.0f / sqrtf(p.proj_var[u] + p.batch_eps);
                    float pre = c[i] + p.proj_in_b[u];
                    v[i] =
                        gelu((pre - p.proj_mean[u]) * rstd * p.proj_norm_w[u] + p.proj_norm_b[u]);
                    if (KEEP)
                        p.saved
                            .projected[((size_t)step * p.saved.rows + row0 + row % R + i / 2 * 8) *
                                           HIDDEN +
                                       u] = pre;
                }
                bf16 *to = h + (size_t)row * sh::H_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) = pack(v[0], v[1]);
                *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) = pack(v[2], v[3]);
            });
        }
        __syncthreads();
        products(wd, h, sh::H_ROW, tile0, p.MT, [&](int row, int n, const float(&c)[4]) {
            float *to = parts + (size_t)row * PART_ROW + (warp * sh::OUT_TILES + n) * 8 + quad;
            *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
            *reinterpret_cast<float2 *>(to + 8 * PART_ROW) = make_float2(c[2], c[3]);
        });
        wq.fetch(p.block[0].qkv, PAIRS_D, 0, qkv_tile(0));
        cluster_sync(); /* shares are complete */

        /* a warp moves a plan's window on */
        for (int i = warp; i < own; i += WARPS) {
            row_values v;
            size_t row = row0 + (size_t)(rank * own + i);
            bool exists = row < (size_t)p.rows;
            float *frames = window + (size_t)i * N * D;
            add_shares<S>(v, p.proj_out_b, parts, (fresh - 1) * R + rank * own + i);
            for (int j = 0; w == N && j + 1 < N; j++) { /* the lane's own columns: in order */
                row_values later;
                read_row(later, frames + (size_t)(j + 1) * D);
                write_row(frames + (size_t)j * D, later);
            }
            write_row(frames + (size_t)(w == N ? N - 1 : w) * D, v);
            if (KEEP)
                write_row(
                    p.saved.frames + ((size_t)step * p.saved.rows + row0 + rank * own + i) * D, v);
            if (p.frames && exists) write_row(p.frames + (row * p.H + step) * D, v);
            if (step + 1 == p.H) {
                row_values goal;
                float sum = 0;
                read_row(goal, p.goal + plan_of(i) / p.K * D);
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    float dx = v[j].x - goal[j].x, dy = v[j].y - goal[j].y;
                    sum += dx * dx + dy * dy;
                }
                sum = warp_sum(sum);
                if (exists && lane == 0) p.cost[row] = sum;
            }
        }
        __syncthreads(); /* rows of the window are read by other warps */
        clock.mark(11);
    }
    cluster_sync(); /* nobody leaves while others read its shared memory */
}

/* ---- the host's side
 * ------------------------------------------------------------------------------------ */

struct predictor {
    task base;
    int S, capacity; /* blocks in a cluster; clusters that run at the same time */
    int most_MT;
    bool ring;    /* weights by predictor_ring.cuh */
    int gradient; /* steps of jobs that want one; 0: none */
    void *packed, *saved;
    float *cache;
    void *tiles; /* not NULL: rollouts are made by rollout_tiles.cu, and nothing else is set */
};

/* with `active`: asks how many clusters run at a time instead */
template <class F>
cudaError_t launch(cgs_device *d, F kernel, int S, size_t shared, const task &t, unsigned clusters,
                   int *active) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = (unsigned)S;
    attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
    config.gridDim = dim3(clusters * (unsigned)S);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream_of(d);
    config.attrs = attribute;
    config.numAttrs = 1;
    if (shared > (size_t)cgs_cuda_of(d)->max_shared) return cudaErrorInvalidValue;
    /* the most there is, not what this launch takes: programs hold launches of other sizes */
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         cgs_cuda_of(d)->max_shared);
    if (e == cudaSuccess && S > 8)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e != cudaSuccess) return e;
    if (active) return cudaOccupancyMaxActiveClusters(active, kernel, &config);
    return cudaLaunchKernelEx(&config, kernel, t);
}

cudaError_t forward(cgs_device *d, int S, const task &t, bool keep, unsigned clusters,
                    int *active) {
    if (t.slots)
        return launch(d, keep ? imagine_ring<true> : imagine_ring<false>, RING_BLOCKS,
                      ring::bytes(t.slots) + ring_rest(t.MT, t.N), t, clusters, active);
    if (S == 16)
        return launch(d, keep ? imagine<16, true> : imagine<16, false>, 16,
                      shape<16>::shared(t.MT, t.N), t, clusters, active);
    return launch(d, keep ? imagine<8, true> : imagine<8, false>, 8, shape<8>::shared(t.MT, t.N), t,
                  clusters, active);
}

cudaError_t backward(cgs_device *d, int S, const task &t, unsigned clusters, int *active) {
    task by_ring = t;
    by_ring.slots = back_ring_slots((size_t)cgs_cuda_of(d)->max_shared, t.N, t.H);
    if (t.slots && by_ring.slots)
        return launch(d, imagine_back_ring, RING_BLOCKS,
                      ring::bytes(by_ring.slots) + back_ring_rest(t.N, t.H), by_ring, clusters,
                      active);
    if (S == 16)
        return launch(d, imagine_back<16>, 16, back_shape<16>::shared(t.MT, t.N, t.H), t, clusters,
                      active);
    return launch(d, imagine_back<8>, 8, back_shape<8>::shared(t.MT, t.N, t.H), t, clusters,
                  active);
}

/* clusters of S blocks that the GPU holds at the same time; 0 when it cannot */
int active_clusters(cgs_device *d, const task &t, int S, int gradient) {
    int active = 0, back = 1;
    cudaError_t e = forward(d, S, t, gradient > 0, 8, &active);
    if (e == cudaSuccess && gradient) e = backward(d, S, t, 8, &back);
    if (e == cudaSuccess) return back > 0 ? active : 0;
    cudaGetLastError();
    return 0;
}

/* takes memory for a packed matrix, and fills it */
const uint4 *packed(cgs_device *d, unsigned char *&at, const cgs_tensor *W) {
    int K = cgs_cols(W);
    unsigned tiles = (unsigned)(cgs_rows(W) / 8);
    uint4 *to = (uint4 *)at;
    pack_weights<<<tiles, THREADS, 0, stream_of(d)>>>(to, W->bf16, K);
    LAUNCHED(d, "packing weights");
    at += cgs_numel(W) * sizeof(uint16_t);
    return to;
}

const uint4 *turned(cgs_device *d, unsigned char *&at, const cgs_tensor *W) {
    int N = (int)cgs_rows(W), K = cgs_cols(W);
    uint4 *to = (uint4 *)at;
    pack_turned<<<(unsigned)(K / 8), THREADS, 0, stream_of(d)>>>(to, W->bf16, N, K);
    LAUNCHED(d, "packing weights");
    at += cgs_numel(W) * sizeof(uint16_t);
    return to;
}

const float *values(const cgs_tensor *x) { return (const float *)x->data; }

bool fits(const cgs_predictor_weights *w) {
    bool same = w->D == D && w->heads == HEADS && w->width == WIDTH && w->mlp == HIDDEN &&
                w->hidden == HIDDEN && w->history <= MOST_TOKENS &&
                w->layers <= CGS_PREDICTOR_LAYERS && w->proj_in_w->bf16 && w->proj_out_w->bf16;
    for (int i = 0; same && i < w->layers; i++)
        same = w->block[i].qkv->bf16 && w->block[i].attn_out_w->bf16 &&
               w->block[i].mlp_in_w->bf16 && w->block[i].mlp_out_w->bf16;
    return same;
}

/* a switch of the environment: its number, or `otherwise` */
int wish(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

/* clusters of 16 whose weights come by a ring, where CGS_ROLLOUT=ring asks for them */
bool choose_ring(cgs_device *d, predictor *p) {
    const char *text = getenv("CGS_ROLLOUT");
    if (!text || strcmp(text, "ring")) return false;
    for (int MT = 1; MT <= (p->gradient ? 1 : 2); MT++) {
        p->base.MT = MT;
        p->base.slots = ring_slots((size_t)cgs_cuda_of(d)->max_shared, MT, p->base.N);
        int active = p->base.slots ? active_clusters(d, p->base, RING_BLOCKS, p->gradient) : 0;
        if (!active) break;
        if (MT == 1) p->capacity = active;
        p->most_MT = MT;
    }
    p->base.slots = 0;
    p->S = RING_BLOCKS;
    p->ring = p->capacity > 0;
    return p->ring;
}

bool choose(cgs_device *d, predictor *p) {
    int major = 0, wanted = wish("CGS_CLUSTER", 0);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (major < 9 || !wish("CGS_FUSED", 1)) return false;
    p->base.H = p->gradient;
    if (choose_ring(d, p)) return true;
    p->base.MT = 1;
    int of16 = wanted == 8 ? 0 : active_clusters(d, p->base, 16, p->gradient);
    /* 128 plans are 8 clusters: below that, smaller clusters use the GPU better */
    p->S = of16 >= 8 || (wanted == 16 && of16 > 0) ? 16 : 8;
    p->capacity = p->S == 16 ? of16 : active_clusters(d, p->base, 8, p->gradient);
    p->most_MT = 1;
    for (p->base.MT = 2; p->base.MT <= 3 && !p->gradient; p->base.MT++)
        if (p->S == 16 && active_clusters(d, p->base, 16, 0) > 0) p->most_MT = p->base.MT;
    return p->capacity > 0;
}

/* what gradients need besides */
cgs_status fill_back(cgs_device *d, predictor *p, const cgs_predictor_weights *w, int rows,
                     unsigned char *at) {
    saved_pass *s = &p->base.saved;
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_block *b = &w->block[i];
        s->block[i] = {turned(d, at, b->qkv), turned(d, at, b->attn_out_w),
                       turned(d, at, b->mlp_in_w), turned(d, at, b->mlp_out_w)};
    }
    s->proj_in = turned(d, at, w->proj_in_w);
    s->proj_out = turned(d, at, w->proj_out_w);
    s->rows = ((size_t)rows + 15) / 16 * 16;
    size_t steps = (size_t)p->gradient, each = steps * s->rows,
           tokens = each * w->layers * w->history;
    float **to[] = {&s->x1,  &s->x2,   &s->y1,        &s->y2,    &s->qkv,
                    &s->pre, &s->last, &s->projected, &s->frames};
    const size_t sizes[] = {tokens * D, tokens * D,         tokens * D,
                            tokens * D, tokens * 3 * INNER, tokens * HIDDEN,
                            each * D,   each * HIDDEN,      each * D};
    size_t all = 0;
    for (size_t size : sizes) all += size;
    CGS_TRY(d->ops->alloc(d, &p->saved, all * sizeof(float)));
    float *next = (float *)p->saved;
    for (int i = 0; i < 9; i++) {
        *to[i] = next;
        next += sizes[i];
    }
    return CGS_OK;
}

cgs_status fill(cgs_device *d, predictor *p, const cgs_predictor_weights *w, int rows) {
    size_t bytes = cgs_numel(w->proj_in_w) + cgs_numel(w->proj_out_w);
    void *memory;
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_block *b = &w->block[i];
        bytes += cgs_numel(b->qkv) + cgs_numel(b->attn_out_w) + cgs_numel(b->mlp_in_w) +
                 cgs_numel(b->mlp_out_w);
    }
    if (p->gradient) bytes *= 2; /* turned as well */
    CGS_TRY(d->ops->alloc(d, &p->packed, bytes * sizeof(uint16_t)));
    task *t = &p->base;
    t->cache_rows = ((size_t)rows + 47) / 48 * 48 + 48;
    CGS_TRY(d->ops->alloc(d, &memory,
                          (size_t)w->layers * HEADS * t->cache_rows *
                              (size_t)(w->history > 1 ? w->history - 1 : 1) * 2 * WIDTH *
                              sizeof(float)));
    p->cache = t->cache = (float *)memory;
    unsigned char *at = (unsigned char *)p->packed;
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_block *b = &w->block[i];
        block_weights *to = &t->block[i];
        to->qkv = packed(d, at, b->qkv);
        to->out = packed(d, at, b->attn_out_w);
        to->in = packed(d, at, b->mlp_in_w);
        to->down = packed(d, at, b->mlp_out_w);
        to->attn_norm_w = values(b->attn_norm_w);
        to->attn_norm_b = values(b->attn_norm_b);
        to->out_b = values(b->attn_out_b);
        to->mlp_norm_w = values(b->mlp_norm_w);
        to->mlp_norm_b = values(b->mlp_norm_b);
        to->in_b = values(b->mlp_in_b);
        to->down_b = values(b->mlp_out_b);
    }
    t->proj_in = packed(d, at, w->proj_in_w);
    t->proj_out = packed(d, at, w->proj_out_w);
    t->pos = values(w->pos);
    t->norm_w = values(w->norm_w);
    t->norm_b = values(w->norm_b);
    t->proj_in_b = values(w->proj_in_b);
    t->proj_norm_w = values(w->proj_norm_w);
    t->proj_norm_b = values(w->proj_norm_b);
    t->proj_mean = values(w->proj_mean);
    t->proj_var = values(w->proj_var);
    t->proj_out_b = values(w->proj_out_b);
    if (p->gradient) CGS_TRY(fill_back(d, p, w, rows, at));
    return d->ops->sync(d);
}

} // namespace

extern "C" {

cgs_status cgs_cuda_predictor_open(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                   int rows, int gradient) {
    *out = NULL;
    if (!fits(w)) return CGS_OK;
    predictor *p = (predictor *)calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "no memory for a predictor");
    if (!gradient) {
        cgs_status rc = cgs_cuda_tiles_open(d, &p->tiles, w, rows);
        if (rc != CGS_OK || p->tiles) {
            if (rc == CGS_OK)
                *out = p;
            else
                free(p);
            return rc;
        }
    }
    p->gradient = gradient;
    p->base.N = w->history;
    p->base.layers = w->layers;
    p->base.ada_eps = w->ada_eps;
    p->base.norm_eps = w->norm_eps;
    p->base.batch_eps = w->batch_eps;
    if (!choose(d, p)) {
        free(p);
        return CGS_OK;
    }
    cgs_status rc = fill(d, p, w, rows);
    if (rc == CGS_OK)
        *out = p;
    else
        cgs_cuda_predictor_close(d, p);
    return rc;
}

void cgs_cuda_predictor_run(cgs_device *d, void *kept, const cgs_predictor_job *j) {
    const predictor *p = (const predictor *)kept;
    if (p->tiles) {
        cgs_cuda_tiles_run(d, p->tiles, j);
        return;
    }
    task t = p->base;
    t.rows = j->rows;
    t.K = j->K;
    t.C = j->C;
    t.H = j->H;
    t.T = j->C - 1 + j->H;
    t.z = j->z;
    t.goal = j->goal;
    t.cost = j->cost;
    t.frames = j->frames;
    for (int i = 0; i < t.layers; i++) t.modulation[i] = j->modulation[i];
    /* more plans a cluster read the weights less often, fewer use more of the GPU */
    t.MT = 1;
    while (t.MT < p->most_MT && ((int)blocks_for((size_t)j->rows, 16 * (size_t)t.MT)) > p->capacity)
        t.MT++;
    unsigned clusters = blocks_for((size_t)j->rows, 16 * (size_t)t.MT);
    t.slots = p->ring ? ring_slots((size_t)cgs_cuda_of(d)->max_shared, t.MT, t.N) : 0;
    bool keep = j->gradient[0] != NULL;
    for (int i = 0; i < t.layers; i++) t.saved.gradient[i] = j->gradient[i];
    const unsigned blocks = clusters * (unsigned)p->S;
    cudaError_t e = forward(d, p->S, t, keep, clusters, NULL);
    STAMP(d, "a rollout");
    show_clocks(stream_of(d), keep ? CLOCK_FORWARD : CLOCK_ROLLOUT, blocks);
    if (e == cudaSuccess && keep) {
        STAMP(d, "printing");
        e = backward(d, p->S, t, clusters, NULL);
        STAMP(d, "its gradient");
        show_clocks(stream_of(d), CLOCK_BACKWARD, blocks);
    }
    cgs_cuda_note(cgs_cuda_of(d), e, "a rollout");
    LAUNCHED(d, "printing");
    SHOW_STAMPS(d, 2 * j->rows + keep);
}

void cgs_cuda_predictor_close(cgs_device *d, void *kept) {
    predictor *p = (predictor *)kept;
    if (p->tiles) cgs_cuda_tiles_close(d, p->tiles);
    d->ops->release(d, p->packed);
    d->ops->release(d, p->saved);
    d->ops->release(d, p->cache);
    free(p);
}

} /* extern "C" */
