/* predictor_ring.cuh - the rollout of predictor.cu with weights that come by themselves.
 *
 * There a block reads weights into registers before the barrier they are used behind; what does
 * not fit is read at the moment of use, and every such read is waited for.  Here one warp keeps a
 * ring of slabs in shared memory filled by bulk copies: they run while the block waits for
 * barriers, adds shares and computes norms.  Whatever else does not depend on other blocks
 * (modulations, gates, biases, keys of older tokens) is read before the barrier, too.
 *
 * Clusters of 16 blocks alone: a block has one head, 128 hidden units and MT plans.  A slab is
 * 24 KB: q, k, v of the head; its output; 64 hidden units; 12 tiles of the second product. */
#ifndef CGS_OPS_CUDA_PREDICTOR_RING_CUH
#define CGS_OPS_CUDA_PREDICTOR_RING_CUH

#include "ops/cuda/clocks.cuh"
#include "ops/cuda/tiles.cuh"
#include "ops/cuda/weight_ring.cuh"

namespace {

enum { Q_SLAB, K_SLAB, V_SLAB, OUT_SLAB, IN_SLAB, DOWN_SLAB = IN_SLAB + 2 };

/* what a warp reads before the barrier: the vectors of one row */
struct row_vectors {
    row_values gate, bias, shift, scale, w, b;
};

/* slab i of a step, forward: blocks in order, then the projector */
__device__ __forceinline__ slab_source forward_slab(const task &p, int i) {
    int layer = i / RING_LAYER, kind = i % RING_LAYER, rank = cluster_rank();
    if (layer == p.layers) {
        if (kind < 2) return whole_tiles(p.proj_in, rank * 16 + kind * 8);
        return parts_of_tiles(p.proj_out, (kind - 2) * 12, PAIRS_HIDDEN, rank * 4, 4);
    }
    const block_weights &b = p.block[layer];
    if (kind < OUT_SLAB) return whole_tiles(b.qkv, kind * (INNER / 8) + rank * 8);
    if (kind == OUT_SLAB) return parts_of_tiles(b.out, 0, PAIRS_INNER, rank * 2, 2);
    if (kind < DOWN_SLAB) return whole_tiles(b.in, rank * 16 + (kind - IN_SLAB) * 8);
    return parts_of_tiles(b.down, (kind - DOWN_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
}

/* ---- attention, keys and values of older tokens behind those of the fresh ones --------------- */

/* starts copying what older tokens left; waited for by copies_wait<0> and a barrier */
__device__ void recall_keys(const task &p, int layer, float *qkv, int R, size_t row0, int old,
                            int fresh) {
    typedef shape<RING_BLOCKS> sh;
    const int chunks = 2 * WIDTH / 4;
    for (int i = threadIdx.x; i < R * old * chunks; i += THREADS) {
        int c = i % chunks, plan = i / chunks % R, token = i / chunks / R;
        float *to = qkv + (size_t)((fresh + token) * R + plan) * sh::QKV_ROW + WIDTH + 4 * c;
        const float *from =
            p.cache +
            ((((size_t)layer * HEADS + cluster_rank()) * p.cache_rows + row0 + plan) * (p.N - 1) +
             token) *
                2 * WIDTH +
            4 * c;
        copy16((bf16 *)to, (const bf16 *)from);
    }
    copies_close();
}

/* queries of the newest `asked` of w tokens; eight lanes take one query of one plan */
__device__ void attend_all(bf16 *a, const float *qkv, int R, int w, int fresh, int asked) {
    typedef shape<RING_BLOCKS> sh;
    int lane = threadIdx.x % 32, part = lane % 8 * 8, tasks = R * asked, old = w - fresh;
    for (int base = (int)threadIdx.x / 32 * 4; base < tasks; base += 4 * WARPS) {
        int t = base + lane / 8; /* R is a multiple of 16: every lane has a task */
        int plan = t % R, token = w - asked + t / R;
        const float *own = qkv + (size_t)plan * sh::QKV_ROW + part;
        size_t token_row = (size_t)R * sh::QKV_ROW;
        float q[8], k[8], score[MOST_TOKENS], most = -INFINITY, sum = 0, o[8] = {};
        load<8>(q, own + (size_t)(token - old) * token_row);
#pragma unroll
        for (int j = 0; j < MOST_TOKENS; j++) {
            score[j] = -INFINITY;
            if (j >= w) continue; /* the same for all lanes */
            load<8>(k, own + (size_t)(j < old ? fresh + j : j - old) * token_row + WIDTH);
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
            float e = exp2_fast((score[j] - most) * 1.44269504f);
            sum += e;
            load<8>(k, own + (size_t)(j < old ? fresh + j : j - old) * token_row + 2 * WIDTH);
#pragma unroll
            for (int i = 0; i < 8; i++) o[i] += e * k[i];
        }
        float inverse = 1.0f / sum;
#pragma unroll
        for (int i = 0; i < 8; i++) o[i] *= inverse;
        store<8>(a + (size_t)((token - old) * R + plan) * sh::A_ROW + part, o);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* KEEP: leaves everything that backward reads, and computes all tokens of every window */
template <bool KEEP>
__global__ void __launch_bounds__(THREADS, 1) imagine_ring(const __grid_constant__ task p) {
    enum { S = RING_BLOCKS };
    typedef shape<S> sh;
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = 16 * p.MT, own = p.MT, N = p.N, rank = cluster_rank();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const bool filler = warp == WARPS - 1;                 /* has no rows of its own */
    bf16 *x = (bf16 *)(memory + ring::bytes(p.slots));     /* (N R, X_ROW) what enters products */
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
    ring weights_ahead;
    weights_ahead.make(p, memory);
    for (int t = warp; t < own * p.C; t += WARPS) { /* the context */
        int i = t / p.C, j = t % p.C;
        row_values v;
        read_row(v, p.z + (plan_of(i) / p.K * p.C + j) * D);
        write_row(window + (size_t)(i * N + j) * D, v);
    }
    cluster_sync();              /* everyone is here */
    int slab = 0;                /* the first one of what is computed now */
    auto used = [&](int slabs) { /* behind a barrier of the block */
                                 slab += slabs;
                                 if (filler)
                                     weights_ahead.fill(p, slab,
                                                        [&](int i) { return forward_slab(p, i); });
    };
    used(0);

    for (int step = 0; step < p.H; step++) {
        const int seen = p.C + step, w = seen < N ? seen : N;
        const int fresh = KEEP || seen > N || step == 0 ? w : 1, old = w - fresh;
        const bool grows = !KEEP && seen < N && step + 1 < p.H; /* keys and values are used again */

        /* A warp has at most one row: plan `mine` and, of the newest `count` tokens, `token`. */
        struct row_task {
            int mine, token;
            bool any;
        };
        auto task_of = [&](int count) {
            return row_task{warp / count, w - count + warp % count, warp < own * count};
        };
        auto modulation = [&](int layer, const row_task &t, int slice) {
            return p.modulation[layer] + (plan_of(t.mine) * p.T + seen - w + t.token) * 6 * D +
                   slice * D;
        };
        auto row_of = [&](const row_task &t) { return (t.token - old) * R + rank * own + t.mine; };
        auto keep = [&](float *to, int layer, const row_task &t, const row_values &v) {
            if (KEEP)
                write_row(to + saved_at(p, step, layer, row0 + rank * own + t.mine, t.token) * D,
                          v);
        };
        auto fetch_norms = [&](row_vectors &n, const row_task &t, int layer, int slice,
                               const float *nw, const float *nb) {
            read_row(n.shift, modulation(layer, t, slice));
            read_row(n.scale, modulation(layer, t, slice + 1));
            read_row(n.w, nw);
            read_row(n.b, nb);
        };
        auto fetch_gate = [&](row_vectors &n, const row_task &t, int layer, int slice,
                              const float *bias) {
            read_row(n.gate, modulation(layer, t, slice));
            read_row(n.bias, bias);
        };
        auto prepare = [&](row_values &v, const row_vectors &n, const row_task &t) {
            normalise(v, p.ada_eps);
            scale_shift(v, n.scale, n.shift, 1);
            normalise(v, p.norm_eps);
            scale_shift(v, n.w, n.b, 0);
            send<S>(x, row_of(t), v);
        };
        /* adds what a sub-module gave, gated */
        auto take = [&](row_values &v, const row_vectors &n, const row_task &t, int layer,
                        bool first) {
            row_values y, r;
            read_row(r, stream + (size_t)(t.mine * N + t.token) * D);
            add_shares_to<S, S>(y, n.bias, parts, row_of(t));
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x = r[j].x + n.gate[j].x * y[j].x;
                v[j].y = r[j].y + n.gate[j].y * y[j].y;
            }
            write_row(stream + (size_t)(t.mine * N + t.token) * D, v);
            keep(first ? p.saved.y1 : p.saved.y2, layer, t, y);
            if (first) keep(p.saved.x2, layer, t, v);
        };
        auto share = [&](int row, int n, const float(&c)[4]) {
            float *to = parts + (size_t)row * PART_ROW + (warp * sh::OUT_TILES + n) * 8 + quad;
            *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
            *reinterpret_cast<float2 *>(to + 8 * PART_ROW) = make_float2(c[2], c[3]);
        };
        /* the second product of hidden units: warps 0 to 3 have the first twelve tiles */
        auto down = [&](int tile0, int tiles) {
            weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
            const uint4 *from = weights_ahead.await(slab + warp / 4);
#pragma unroll
            for (int n = 0; n < sh::OUT_TILES; n++)
                take_tile(wd, n, from, warp % 4 * sh::OUT_TILES + n);
            products(wd, h, sh::H_ROW, tile0, tiles, share);
        };

        row_task t = task_of(fresh);
        if (t.any) {
            row_values v, at;
            row_vectors n;
            fetch_norms(n, t, 0, 0, p.block[0].attn_norm_w, p.block[0].attn_norm_b);
            read_row(v, window + (size_t)(t.mine * N + t.token) * D);
            read_row(at, p.pos + (size_t)t.token * D);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += at[j].x;
                v[j].y += at[j].y;
            }
            write_row(stream + (size_t)(t.mine * N + t.token) * D, v);
            keep(p.saved.x1, 0, t, v);
            prepare(v, n, t);
        }

        for (int layer = 0; layer < p.layers; layer++) {
            const block_weights &b = p.block[layer];
            const bool last = layer + 1 == p.layers;
            const int asked = last ? 1 : fresh; /* behind the last attention one token is wanted */
            const int tile0 = (fresh - asked) * p.MT, tiles = asked * p.MT;
            row_vectors n;
            /* where keys of older tokens go, a step before this may have left shares */
            if (old && layer) recall_keys(p, layer, qkv, R, row0, old, fresh);
            cluster_sync(); /* x is complete */
            if (old && !layer) recall_keys(p, layer, qkv, R, row0, old, fresh);
            clock.mark(0);

            {
                weights<sh::QKV_TILES, PAIRS_D> wq;
#pragma unroll
                for (int i = 0; i < sh::QKV_TILES; i++) {
                    int tile = warp * sh::QKV_TILES + i;
                    take_tile(wq, i, weights_ahead.await(slab + tile / 8), tile % 8);
                }
                products(wq, x, X_ROW, 0, fresh * p.MT, [&](int row, int i, const float(&c)[4]) {
                    float *to =
                        qkv + (size_t)row * sh::QKV_ROW + (warp * sh::QKV_TILES + i) * 8 + quad;
                    *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
                    *reinterpret_cast<float2 *>(to + 8 * sh::QKV_ROW) = make_float2(c[2], c[3]);
                });
            }
            copies_wait<0>();
            __syncthreads();
            used(OUT_SLAB - Q_SLAB);
            clock.mark(1);
            attend_all(a, qkv, R, w, fresh, asked);
            if (grows) keep_keys<S>(p, layer, qkv, R, row0, old, fresh);
            if (KEEP) save_qkv<S>(p, step, layer, qkv, R, row0, w);
            t = task_of(asked);
            if (t.any) {
                fetch_gate(n, t, layer, 2, b.out_b);
                fetch_norms(n, t, layer, 3, b.mlp_norm_w, b.mlp_norm_b);
            }
            weights<sh::OUT_TILES, sh::OUT_PAIRS> wo;
            const uint4 *from = weights_ahead.await(slab);
#pragma unroll
            for (int i = 0; i < sh::OUT_TILES; i++)
                take_tile(wo, i, from, warp * sh::OUT_TILES + i);
            __syncthreads();
            clock.mark(2);
            products(wo, a, sh::A_ROW, tile0, tiles, share);
            clock.mark(3);
            cluster_sync(); /* shares are complete, x is free */

            used(IN_SLAB - OUT_SLAB);
            clock.mark(4);
            if (t.any) {
                row_values v;
                take(v, n, t, layer, true);
                prepare(v, n, t);
            }
            float2 bias[sh::IN_TILES];
#pragma unroll
            for (int i = 0; i < sh::IN_TILES; i++)
                bias[i] = *reinterpret_cast<const float2 *>(b.in_b + rank * sh::UNITS +
                                                            (warp * sh::IN_TILES + i) * 8 + quad);
            clock.mark(5);
            cluster_sync(); /* x is complete, shares were read */
            clock.mark(6);

            {
                weights<sh::IN_TILES, PAIRS_D> win;
                const uint4 *in = weights_ahead.await(slab + warp / 4);
#pragma unroll
                for (int i = 0; i < sh::IN_TILES; i++)
                    take_tile(win, i, in, warp % 4 * sh::IN_TILES + i);
                products(win, x, X_ROW, tile0, tiles, [&](int row, int i, const float(&c)[4]) {
                    int unit = (warp * sh::IN_TILES + i) * 8 + quad;
                    float2 u = make_float2(c[0] + bias[i].x, c[1] + bias[i].y);
                    float2 v = make_float2(c[2] + bias[i].x, c[3] + bias[i].y);
                    bf16 *to = h + (size_t)row * sh::H_ROW + unit;
                    *reinterpret_cast<uint32_t *>(to) = pack(gelu_rounded(u.x), gelu_rounded(u.y));
                    *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) =
                        pack(gelu_rounded(v.x), gelu_rounded(v.y));
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
            used(DOWN_SLAB - IN_SLAB);
            clock.mark(7);
            if (t.any) {
                fetch_gate(n, t, layer, 5, b.down_b);
                if (!last) {
                    const block_weights &next = p.block[layer + 1];
                    fetch_norms(n, t, layer + 1, 0, next.attn_norm_w, next.attn_norm_b);
                } else {
                    read_row(n.w, p.norm_w);
                    read_row(n.b, p.norm_b);
                }
            }
            down(tile0, tiles);
            clock.mark(8);
            cluster_sync(); /* shares are complete, x is free */

            used(RING_LAYER - DOWN_SLAB);
            clock.mark(9);
            if (t.any) {
                row_values v;
                take(v, n, t, layer, false);
                if (!last) {
                    keep(p.saved.x1, layer + 1, t, v);
                    prepare(v, n, t);
                } else {
                    if (KEEP)
                        write_row(p.saved.last +
                                      ((size_t)step * p.saved.rows + row0 + rank * own + t.mine) *
                                          D,
                                  v);
                    normalise(v, p.norm_eps);
                    scale_shift(v, n.w, n.b, 0);
                    send<S>(x, row_of(t), v);
                }
            }
            clock.mark(10);
        }

        /* the projector: linear map, batch norm, GELU, linear map, of the newest token */
        const int tile0 = (fresh - 1) * p.MT;
        float scale[sh::IN_TILES][2], shift[sh::IN_TILES][2], add[sh::IN_TILES][2];
#pragma unroll
        for (int i = 0; i < sh::IN_TILES; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int u = rank * sh::UNITS + (warp * sh::IN_TILES + i) * 8 + quad + j;
                add[i][j] = p.proj_in_b[u];
                scale[i][j] = p.proj_norm_w[u] / sqrtf(p.proj_var[u] + p.batch_eps);
                shift[i][j] = p.proj_norm_b[u] - p.proj_mean[u] * scale[i][j];
            }
        row_values goal, bias;
        if (warp < own) {
            read_row(goal, p.goal + plan_of(warp) / p.K * D);
            read_row(bias, p.proj_out_b);
        }
        cluster_sync(); /* x is complete, shares were read */
        {
            weights<sh::IN_TILES, PAIRS_D> win;
            const uint4 *in = weights_ahead.await(slab + warp / 4);
#pragma unroll
            for (int i = 0; i < sh::IN_TILES; i++)
                take_tile(win, i, in, warp % 4 * sh::IN_TILES + i);
            products(win, x, X_ROW, tile0, p.MT, [&](int row, int i, const float(&c)[4]) {
                int unit = (warp * sh::IN_TILES + i) * 8 + quad;
                float v[4];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float pre = c[j] + add[i][j % 2];
                    v[j] = gelu_rounded(pre * scale[i][j % 2] + shift[i][j % 2]);
                    if (KEEP)
                        p.saved
                            .projected[((size_t)step * p.saved.rows + row0 + row % R + j / 2 * 8) *
                                           HIDDEN +
                                       rank * sh::UNITS + unit + j % 2] = pre;
                }
                bf16 *to = h + (size_t)row * sh::H_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) = pack(v[0], v[1]);
                *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) = pack(v[2], v[3]);
            });
        }
        __syncthreads();
        used(DOWN_SLAB - IN_SLAB);
        down(tile0, p.MT);
        cluster_sync(); /* shares are complete */
        used(RING_LAYER - DOWN_SLAB);

        /* a warp moves a plan's window on */
        if (warp < own) {
            row_values v;
            size_t row = row0 + (size_t)(rank * own + warp);
            bool exists = row < (size_t)p.rows;
            float *frames = window + (size_t)warp * N * D;
            add_shares_to<S, S>(v, bias, parts, (fresh - 1) * R + rank * own + warp);
            for (int j = 0; w == N && j + 1 < N; j++) { /* the lane's own columns: in order */
                row_values later;
                read_row(later, frames + (size_t)(j + 1) * D);
                write_row(frames + (size_t)j * D, later);
            }
            write_row(frames + (size_t)(w == N ? N - 1 : w) * D, v);
            if (KEEP)
                write_row(p.saved.frames +
                              ((size_t)step * p.saved.rows + row0 + rank * own + warp) * D,
                          v);
            if (p.frames && exists) write_row(p.frames + (row * p.H + step) * D, v);
            if (step + 1 == p.H) {
                float sum = 0;
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

/* shared memory of a launch, but for the ring */
inline size_t ring_rest(int MT, int N) { return shape<RING_BLOCKS>::shared(MT, N); }
/* slots that fit beside it; 0: too few */
inline int ring_slots(size_t most, int MT, int N) {
    int slots = RING_MOST;
    if (MT * N >= WARPS) return 0; /* a warp has one row, and one warp none */
    while (slots >= 3 && ring::bytes(slots) + ring_rest(MT, N) > most) slots--;
    return slots >= 3 ? slots : 0;
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_RING_CUH */
