/* predictor_back_ring.cuh - the backward pass of predictor_back.cuh with weights by the ring of
 * predictor_ring.cuh, for one tile of plans a cluster.
 *
 * What forward left is on the way early, too: hidden units and q, k, v are copied to shared memory
 * while the phase before them runs; an owner reads the rows that its part of a phase needs before
 * it waits for shares, and computes the norms of forward again between the two halves of that
 * barrier. */
#ifndef CGS_OPS_CUDA_PREDICTOR_BACK_RING_CUH
#define CGS_OPS_CUDA_PREDICTOR_BACK_RING_CUH

#include "ops/cuda/predictor_back.cuh"
#include "ops/cuda/predictor_ring.cuh"

namespace {

/* slabs in the order of use: MLP, output of attention, q k v */
enum { UP_SLAB = 0, INTO_SLAB = 2, BACK_OUT_SLAB = 4, BACK_QKV_SLAB = 5 };

/* slab i of a step, backward: the projector, then blocks from the last on */
__device__ __forceinline__ slab_source backward_slab(const task &p, int i) {
    int rank = cluster_rank();
    if (i < RING_PROJECTOR) {
        if (i < INTO_SLAB) return whole_tiles(p.saved.proj_out, rank * 16 + i * 8);
        return parts_of_tiles(p.saved.proj_in, (i - INTO_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
    }
    i -= RING_PROJECTOR;
    const turned_weights &t = p.saved.block[p.layers - 1 - i / RING_LAYER];
    int kind = i % RING_LAYER;
    if (kind < INTO_SLAB) return whole_tiles(t.down, rank * 16 + kind * 8);
    if (kind < BACK_OUT_SLAB)
        return parts_of_tiles(t.in, (kind - INTO_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
    if (kind == BACK_OUT_SLAB) return whole_tiles(t.out, rank * 8);
    return parts_of_tiles(t.qkv, 0, 3 * PAIRS_INNER,
                          (kind - BACK_QKV_SLAB) * PAIRS_INNER + rank * 2, 2);
}

enum { PRE_ROW = HIDDEN / RING_BLOCKS + 4, KEPT_ROW = 3 * WIDTH + 4 }; /* no bank twice */

/* shared memory of a launch, but for the ring */
inline size_t back_ring_rest(int N, int H) {
    return back_shape<RING_BLOCKS>::shared(1, N, H) + (size_t)16 * N * (PRE_ROW + KEPT_ROW) * 4;
}
inline int back_ring_slots(size_t most, int N, int H) {
    int slots = RING_MOST;
    while (slots >= 3 && ring::bytes(slots) + back_ring_rest(N, H) > most) slots--;
    return slots >= 3 ? slots : 0;
}

/* starts copying own hidden units before GELU of all w tokens of a block of a step */
__device__ void recall_hidden(const task &p, int step, int layer, float *to, size_t row0, int w) {
    const int units = HIDDEN / RING_BLOCKS, chunks = units / 4;
    for (int i = threadIdx.x; i < 16 * w * chunks; i += THREADS) {
        int c = i % chunks, plan = i / chunks % 16, token = i / chunks / 16;
        copy16((bf16 *)(to + (size_t)(token * 16 + plan) * PRE_ROW + 4 * c),
               (const bf16 *)(p.saved.pre + saved_at(p, step, layer, row0 + plan, token) * HIDDEN +
                              cluster_rank() * units + 4 * c));
    }
    copies_close();
}
/* ... q, k, v of the own head */
__device__ void recall_qkv(const task &p, int step, int layer, float *to, size_t row0, int w) {
    const int chunks = 3 * WIDTH / 4;
    for (int i = threadIdx.x; i < 16 * w * chunks; i += THREADS) {
        int c = i % chunks, plan = i / chunks % 16, token = i / chunks / 16;
        const float *from =
            p.saved.qkv +
            ((((size_t)step * p.layers + layer) * HEADS + cluster_rank()) * p.saved.rows + row0 +
             plan) *
                p.N * 3 * WIDTH;
        copy16((bf16 *)(to + (size_t)(token * 16 + plan) * KEPT_ROW + 4 * c),
               (const bf16 *)(from + (size_t)token * 3 * WIDTH + 4 * c));
    }
    copies_close();
}

/* Gradients of q, k, v from those of attention's result, da, of the newest `asked` tokens.  Eight
 * lanes take one plan. */
__device__ void attend_back_kept(bf16 *dqkv, const float *kept, const float *da, int w, int asked) {
    typedef back_shape<RING_BLOCKS> bs;
    int lane = threadIdx.x % 32, part = lane % 8 * 8, plan = (int)threadIdx.x / 32 * 4 + lane / 8;
    if (threadIdx.x >= 128) return; /* four warps have 16 plans */
    const float *own = kept + (size_t)plan * KEPT_ROW + part;
    bf16 *to = dqkv + (size_t)plan * bs::H_ROW + part;
    float dk[MOST_TOKENS][8] = {}, dv[MOST_TOKENS][8] = {};
#pragma unroll
    for (int i = 0; i < MOST_TOKENS; i++) {
        if (i >= w) continue; /* the same for all lanes */
        float dq[8] = {};
        if (i >= w - asked) {
            float q[8], d[8], k[8], v[8], score[MOST_TOKENS], slope[MOST_TOKENS];
            float most = -INFINITY, sum = 0, mean = 0;
            load<8>(q, own + (size_t)i * 16 * KEPT_ROW);
            load<8>(d, da + (size_t)(i * 16 + plan) * bs::F_ROW + part);
#pragma unroll
            for (int j = 0; j <= i; j++) {
                float dot = 0, along = 0;
                load<8>(k, own + (size_t)j * 16 * KEPT_ROW + WIDTH);
                load<8>(v, own + (size_t)j * 16 * KEPT_ROW + 2 * WIDTH);
#pragma unroll
                for (int c = 0; c < 8; c++) {
                    dot += q[c] * k[c];
                    along += d[c] * v[c];
                }
#pragma unroll
                for (int o = 4; o > 0; o >>= 1) {
                    dot += __shfl_xor_sync(0xffffffffu, dot, o);
                    along += __shfl_xor_sync(0xffffffffu, along, o);
                }
                score[j] = dot * 0.125f;
                slope[j] = along;
                most = fmaxf(most, score[j]);
            }
#pragma unroll
            for (int j = 0; j <= i; j++)
                sum += score[j] = exp2_fast((score[j] - most) * 1.44269504f);
#pragma unroll
            for (int j = 0; j <= i; j++) {
                score[j] /= sum;
                mean += score[j] * slope[j];
            }
#pragma unroll
            for (int j = 0; j <= i; j++) {
                float ds = 0.125f * score[j] * (slope[j] - mean);
                load<8>(k, own + (size_t)j * 16 * KEPT_ROW + WIDTH);
#pragma unroll
                for (int c = 0; c < 8; c++) {
                    dq[c] += ds * k[c];
                    dk[j][c] += ds * q[c];
                    dv[j][c] += score[j] * d[c];
                }
            }
        }
        store<8>(to + (size_t)i * 16 * bs::H_ROW, dq);
    }
#pragma unroll
    for (int j = 0; j < MOST_TOKENS; j++)
        if (j < w) {
            store<8>(to + (size_t)j * 16 * bs::H_ROW + WIDTH, dk[j]);
            store<8>(to + (size_t)j * 16 * bs::H_ROW + 2 * WIDTH, dv[j]);
        }
}

/* what an owner reads ahead for one row: for the way through two norms and for the gate behind */
struct back_vectors {
    row_values first, shift, scale, weight, old_shift, old_scale; /* through norms */
    row_values gate, out, old_gate;
};

/* Plans beyond the last have no gradient to be added to; they compute with the last one's numbers.
 */
__global__ void __launch_bounds__(THREADS, 1) imagine_back_ring(const __grid_constant__ task p) {
    enum { S = RING_BLOCKS, R = 16 };
    typedef shape<S> sh;
    typedef back_shape<S> bs;
    extern __shared__ __align__(16) unsigned char memory[];
    const int N = p.N, rank = cluster_rank();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const bool filler = warp == WARPS - 1;
    bf16 *x = (bf16 *)(memory + ring::bytes(p.slots));  /* (N R, X_ROW) what enters products */
    float *da = (float *)(x + (size_t)N * R * X_ROW);   /* (N R, F_ROW) of attention's result */
    float *parts = da;                                  /* (N R, PART_ROW) this block's shares */
    bf16 *h = (bf16 *)(da + (size_t)N * R * bs::F_ROW); /* (N R, H_ROW) hidden units, or q k v */
    float *stream = (float *)(h + (size_t)N * R * bs::H_ROW); /* (N, D) of residual rows */
    float *frames = stream + (size_t)N * D;                   /* (H, D) of imagined frames */
    float *pre = frames + (size_t)p.H * D;                    /* (N R, PRE_ROW) from forward */
    float *kept = pre + (size_t)N * R * PRE_ROW;              /* (N R, KEPT_ROW) q, k, v */
    const size_t row0 = (size_t)(blockIdx.x / S) * R, mine = row0 + (size_t)rank;
    const bool exists = mine < (size_t)p.rows;
    const size_t plan = exists ? mine : (size_t)p.rows - 1;

    /* phases: projector, barrier, into units, out of them, barrier, rows, barrier, output,
     * attention, q k v, barrier, rows */
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    ring weights_ahead;
    weights_ahead.make(p, memory);
    int slab = 0;                /* the first one of what is computed now */
    auto used = [&](int slabs) { /* behind a barrier of the block */
                                 slab += slabs;
                                 if (filler)
                                     weights_ahead.fill(p, slab,
                                                        [&](int i) { return backward_slab(p, i); });
    };
    auto window = [&](int step) { return p.C + step < N ? p.C + step : N; };

    auto share = [&](int row, int n, const float(&c)[4]) {
        float *to = parts + (size_t)row * PART_ROW + (warp * sh::OUT_TILES + n) * 8 + quad;
        *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
        *reinterpret_cast<float2 *>(to + 8 * PART_ROW) = make_float2(c[2], c[3]);
    };
    /* the sum of all shares of the own row of a token */
    auto shares = [&](row_values &v, int token) {
        row_values none;
#pragma unroll
        for (int j = 0; j < 3; j++) none[j] = make_float2(0, 0);
        add_shares_to<S>(v, none, parts, token * R + rank);
    };
    /* products into own hidden units; end as that of products() */
    auto into_units = [&](int tile0, int tiles, auto end) {
        weights<sh::IN_TILES, PAIRS_D> wu;
        const uint4 *from = weights_ahead.await(slab + warp / 4);
#pragma unroll
        for (int i = 0; i < sh::IN_TILES; i++) take_tile(wu, i, from, warp % 4 * sh::IN_TILES + i);
        products(wu, x, X_ROW, tile0, tiles, end);
    };
    /* shares of what goes back from own hidden units */
    auto out_of_units = [&](int tile0, int tiles) {
        weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
        const uint4 *from = weights_ahead.await(slab + warp / 4);
#pragma unroll
        for (int i = 0; i < sh::OUT_TILES; i++)
            take_tile(wd, i, from, warp % 4 * sh::OUT_TILES + i);
        products(wd, h, bs::H_ROW, tile0, tiles, share);
    };

    /* gradients of the own plan's modulations start at 0, those of frames with the cost's */
    for (int layer = 0; layer < p.layers; layer++)
        for (int c = threadIdx.x; c < p.T * 6 * D && exists; c += THREADS)
            p.saved.gradient[layer][mine * p.T * 6 * D + c] = 0;
    for (int step = warp; step < p.H; step += WARPS) {
        row_values v, goal;
        read_row(v, p.saved.frames + ((size_t)step * p.saved.rows + mine) * D);
        read_row(goal, p.goal + plan / p.K * D);
        float factor = step + 1 == p.H ? 2 : 0;
#pragma unroll
        for (int j = 0; j < 3; j++)
            v[j] = make_float2(factor * (v[j].x - goal[j].x), factor * (v[j].y - goal[j].y));
        write_row(frames + (size_t)step * D, v);
    }
    recall_hidden(p, p.H - 1, p.layers - 1, pre, row0, window(p.H - 1));
    cluster_sync(); /* everyone is here */
    used(0);

    for (int step = p.H - 1; step >= 0; step--) {
        const int seen = p.C + step, w = window(step), token = warp; /* of an owner's warp */

        /* where the modulation of the warp's token lies, and its gradient */
        auto mod_at = [&](int of) { return (plan * p.T + seen - w + of) * 6 * D; };
        auto fetch_gate = [&](back_vectors &n, int layer, int slice, const float *y) {
            size_t at = mod_at(token) + slice * D;
            read_row(n.gate, p.modulation[layer] + at);
            read_row(n.out, y + saved_at(p, step, layer, mine, token) * D);
            read_row(n.old_gate, p.saved.gradient[layer] + at);
        };
        auto fetch_norms = [&](back_vectors &n, int layer, int slice, const float *from,
                               const float *nw) {
            size_t at = mod_at(token) + slice * D;
            read_row(n.first, from + saved_at(p, step, layer, mine, token) * D);
            read_row(n.shift, p.modulation[layer] + at);
            read_row(n.scale, p.modulation[layer] + at + D);
            read_row(n.weight, nw);
            read_row(n.old_shift, p.saved.gradient[layer] + at);
            read_row(n.old_scale, p.saved.gradient[layer] + at + D);
        };
        auto add = [&](float *to, row_values &old, const row_values &a, const row_values &b) {
            if (!exists) return;
#pragma unroll
            for (int j = 0; j < 3; j++) {
                old[j].x += a[j].x * b[j].x;
                old[j].y += a[j].y * b[j].y;
            }
            write_row(to, old);
        };
        /* v: gradient of the sum of residual and gated sub-module; sends that of the sub-module */
        auto open_gate = [&](const row_values &v, back_vectors &n, int layer, int slice) {
            add(p.saved.gradient[layer] + mod_at(token) + slice * D, n.old_gate, v, n.out);
            times_row(n.gate, v);
            send<S>(x, token * R + rank, n.gate);
        };
        /* the norms of forward: what they gave, between the halves of a barrier */
        struct standardised {
            row_values second;
            float rstd1, rstd2;
        };
        auto norms_again = [&](standardised &s, back_vectors &n) {
            s.rstd1 = standardise(n.first, p.ada_eps);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                n.scale[j].x += 1;
                n.scale[j].y += 1;
                s.second[j].x = n.first[j].x * n.scale[j].x + n.shift[j].x;
                s.second[j].y = n.first[j].y * n.scale[j].y + n.shift[j].y;
            }
            s.rstd2 = standardise(s.second, p.norm_eps);
        };
        /* v: gradient of the residual row; adds what comes back through the two norms from u, that
         * of the sub-module's input */
        auto through_norms = [&](row_values &v, row_values &u, back_vectors &n,
                                 const standardised &s, int layer, int slice) {
            float *to = p.saved.gradient[layer] + mod_at(token) + slice * D;
            row_values one;
#pragma unroll
            for (int j = 0; j < 3; j++) one[j] = make_float2(1, 1);
            times_row(u, n.weight);
            standardise_back(u, s.second, s.rstd2);
            add(to, n.old_shift, u, one);
            add(to + D, n.old_scale, u, n.first);
            times_row(u, n.scale);
            standardise_back(u, n.first, s.rstd1);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += u[j].x;
                v[j].y += u[j].y;
            }
        };

        /* the projector */
        if (warp == 0) {
            row_values v;
            read_row(v, frames + (size_t)step * D);
            send<S>(x, (w - 1) * R + rank, v);
        }
        cluster_sync(); /* x is complete */
        into_units(w - 1, 1, [&](int row, int n, const float(&c)[4]) {
            int unit = (warp * sh::IN_TILES + n) * 8 + quad;
            float g[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int u = rank * sh::UNITS + unit + i % 2;
                float scale = p.proj_norm_w[u] / sqrtf(p.proj_var[u] + p.batch_eps);
                float before =
                    p.saved.projected[((size_t)step * p.saved.rows + row0 + row % R + i / 2 * 8) *
                                          HIDDEN +
                                      u];
                g[i] = c[i] * scale *
                       gelu_slope_rounded((before - p.proj_mean[u]) * scale + p.proj_norm_b[u]);
            }
            bf16 *to = h + (size_t)row * bs::H_ROW + unit;
            *reinterpret_cast<uint32_t *>(to) = pack(g[0], g[1]);
            *reinterpret_cast<uint32_t *>(to + 8 * bs::H_ROW) = pack(g[2], g[3]);
        });
        __syncthreads();
        used(INTO_SLAB - UP_SLAB);
        out_of_units(w - 1, 1);
        back_vectors n;
        row_values from, weight;
        if (token == w - 1) {
            fetch_gate(n, p.layers - 1, 5, p.saved.y2);
            read_row(from, p.saved.last + ((size_t)step * p.saved.rows + mine) * D);
            read_row(weight, p.norm_w);
        }
        cluster_sync(); /* shares are complete, x is free */
        used(BACK_OUT_SLAB - INTO_SLAB);
        if (token < w) {
            row_values v;
#pragma unroll
            for (int j = 0; j < 3; j++) v[j] = make_float2(0, 0);
            if (token == w - 1) {
                shares(v, token);
                float rstd = standardise(from, p.norm_eps);
                times_row(v, weight);
                standardise_back(v, from, rstd);
                open_gate(v, n, p.layers - 1, 5);
            }
            write_row(stream + (size_t)token * D, v);
        }

        for (int layer = p.layers - 1; layer >= 0; layer--) {
            const block_weights &b = p.block[layer];
            const int asked = layer + 1 == p.layers ? 1 : w, tile0 = w - asked;
            const bool owner = token < w && token >= tile0;
            standardised s;
            clock.mark(layer + 1 == p.layers ? 0 : 11);
            copies_wait<0>(); /* hidden units */
            recall_qkv(p, step, layer, kept, row0, w);
            cluster_sync(); /* x is complete, shares were read */
            clock.mark(1);

            /* MLP */
            into_units(tile0, asked, [&](int row, int i, const float(&c)[4]) {
                int unit = (warp * sh::IN_TILES + i) * 8 + quad;
                float2 u = *reinterpret_cast<const float2 *>(pre + (size_t)row * PRE_ROW + unit);
                float2 v =
                    *reinterpret_cast<const float2 *>(pre + (size_t)(row + 8) * PRE_ROW + unit);
                bf16 *to = h + (size_t)row * bs::H_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) =
                    pack(c[0] * gelu_slope_rounded(u.x), c[1] * gelu_slope_rounded(u.y));
                *reinterpret_cast<uint32_t *>(to + 8 * bs::H_ROW) =
                    pack(c[2] * gelu_slope_rounded(v.x), c[3] * gelu_slope_rounded(v.y));
            });
            copies_wait<0>(); /* q, k, v */
            __syncthreads();
            used(INTO_SLAB - UP_SLAB);
            clock.mark(2);
            if (layer)
                recall_hidden(p, step, layer - 1, pre, row0, w);
            else if (step)
                recall_hidden(p, step - 1, p.layers - 1, pre, row0, window(step - 1));
            if (owner) {
                fetch_norms(n, layer, 3, p.saved.x2, b.mlp_norm_w);
                fetch_gate(n, layer, 2, p.saved.y1);
            }
            out_of_units(tile0, asked);
            clock.mark(3);
            cluster_arrive();
            if (owner) norms_again(s, n);
            cluster_wait(); /* shares are complete, x is free */
            used(BACK_OUT_SLAB - INTO_SLAB);
            clock.mark(4);
            if (owner) {
                row_values v, u;
                read_row(v, stream + (size_t)token * D);
                shares(u, token);
                through_norms(v, u, n, s, layer, 3);
                write_row(stream + (size_t)token * D, v);
                open_gate(v, n, layer, 2);
            }
            clock.mark(5);
            cluster_sync(); /* x is complete, shares were read */
            clock.mark(6);

            /* attention */
            {
                weights<1, PAIRS_D> up; /* of attention's result */
                take_tile(up, 0, weights_ahead.await(slab), warp);
                products(up, x, X_ROW, tile0, asked, [&](int row, int, const float(&c)[4]) {
                    float *to = da + (size_t)row * bs::F_ROW + warp * 8 + quad;
                    *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
                    *reinterpret_cast<float2 *>(to + 8 * bs::F_ROW) = make_float2(c[2], c[3]);
                });
            }
            __syncthreads();
            used(BACK_QKV_SLAB - BACK_OUT_SLAB);
            clock.mark(7);
            attend_back_kept(h, kept, da, w, asked);
            if (token < w) {
                fetch_norms(n, layer, 0, p.saved.x1, b.attn_norm_w);
                if (layer) fetch_gate(n, layer - 1, 5, p.saved.y2);
            }
            weights<sh::OUT_TILES, 6> down;
#pragma unroll
            for (int part = 0; part < 3; part++) { /* q, k, v: two pairs each */
                const uint4 *of = weights_ahead.await(slab + part);
#pragma unroll
                for (int i = 0; i < sh::OUT_TILES; i++)
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        down.b[i][2 * part + k] =
                            of[((warp * sh::OUT_TILES + i) * 2 + k) * 32 + lane];
            }
            __syncthreads();
            clock.mark(8);
            products(down, h, bs::H_ROW, 0, w, share);
            clock.mark(9);
            cluster_arrive();
            if (token < w) norms_again(s, n);
            cluster_wait(); /* shares are complete, x is free */
            used(RING_LAYER - BACK_QKV_SLAB);
            clock.mark(10);
            if (token < w) {
                int frame = seen - w + token - p.C;
                row_values v, u;
                read_row(v, stream + (size_t)token * D);
                shares(u, token);
                through_norms(v, u, n, s, layer, 0);
                write_row(stream + (size_t)token * D, v);
                if (layer) {
                    open_gate(v, n, layer - 1, 5);
                } else if (frame >= 0) {
                    row_values sum;
                    float *at = frames + (size_t)frame * D;
                    read_row(sum, at);
#pragma unroll
                    for (int j = 0; j < 3; j++) {
                        sum[j].x += v[j].x;
                        sum[j].y += v[j].y;
                    }
                    write_row(at, sum);
                }
            }
        }
        clock.mark(11);
        __syncthreads(); /* frames are read by other warps */
    }
    cluster_sync(); /* nobody leaves while others read its shared memory */
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_BACK_RING_CUH */
