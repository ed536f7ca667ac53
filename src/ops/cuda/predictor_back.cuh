/* predictor_back.cuh - backward of a rollout in one kernel: the gradient of each plan's squared
 * distance to its goal by the modulations.
 *
 * The division of work is that of predictor.cu for clusters of 16, its lines in reverse; weights
 * are constants, so every product is one with turned weights.  Gradients enter products rounded to
 * bf16, as on the tape, and are f32 elsewhere.  An owner alone adds to the gradients of its plan's
 * modulations.
 *
 * What forward left is on the way early: hidden units and q, k, v are copied to shared memory while
 * the phase before them runs; an owner reads the rows that its part of a phase needs, and computes
 * the norms of forward again, before it waits for shares. */
#ifndef CGS_OPS_CUDA_PREDICTOR_BACK_CUH
#define CGS_OPS_CUDA_PREDICTOR_BACK_CUH

#include "ops/cuda/predictor_back_parts.cuh"
#include "ops/cuda/predictor_forward.cuh"

namespace {

/* slabs in the order of use: MLP, output of attention, q k v */
enum { UP_SLAB = 0, INTO_SLAB = 2, BACK_OUT_SLAB = 4, BACK_QKV_SLAB = 5 };

/* slab i of a step, of turned weights: the projector, then blocks from the last on */
struct backward_slabs {
    static __device__ __forceinline__ slab_source source(const packed_weights &w, int i, int rank) {
        typedef ring<BACK_BLOCKS> r;
        if (i < r::PROJECTOR) {
            if (i < INTO_SLAB) return whole_tiles(w.proj_out, rank * 16 + i * 8);
            return parts_of_tiles(w.proj_in, (i - INTO_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
        }
        i -= r::PROJECTOR;
        const packed_block &b = w.block[w.layers - 1 - i / r::LAYER];
        int kind = i % r::LAYER;
        if (kind < INTO_SLAB) return whole_tiles(b.down, rank * 16 + kind * 8);
        if (kind < BACK_OUT_SLAB)
            return parts_of_tiles(b.in, (kind - INTO_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
        if (kind == BACK_OUT_SLAB) return whole_tiles(b.out, rank * 8);
        return parts_of_tiles(b.qkv, 0, 3 * PAIRS_INNER,
                              (kind - BACK_QKV_SLAB) * PAIRS_INNER + rank * 2, 2);
    }
};

/* shared memory of a launch, but for the ring */
inline size_t back_rest(int N, int H, int R) {
    return mail<BACK_BLOCKS>::bytes(N) +
           (size_t)padded_rows(N, R) *
               (X_ROW * 2 + DA_ROW * 4 + DH_ROW * 2 + PRE_ROW * 4 + KEPT_ROW * 4) +
           (size_t)(N + H) * D * 4;
}
inline int back_slots(size_t most, int N, int H, int R) {
    int slots = RING_MOST;
    while (slots >= 3 && ring<BACK_BLOCKS>::bytes(slots) + back_rest(N, H, R) > most) slots--;
    return slots >= 3 ? slots : 0;
}

/* what an owner reads ahead for one row: for the way through two norms and for the gate behind */
struct back_vectors {
    row_values first, shift, scale, weight, old_shift, old_scale; /* through norms */
    row_values gate, out, old_gate;
};

__global__ void __launch_bounds__(THREADS, 1) imagine_back(const __grid_constant__ task p) {
    enum { S = BACK_BLOCKS };
    typedef shape<S> sh;
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = p.R, N = p.N, rank = cluster_rank(), padded = padded_rows(N, R);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const bool filler = warp == WARPS - 1;
    unsigned char *letters = memory + ring<S>::bytes(p.slots);
    bf16 *x = (bf16 *)(letters + mail<S>::bytes(N));   /* (padded, X_ROW) for products */
    float *da = (float *)(x + (size_t)padded * X_ROW); /* (padded, DA_ROW) of attention's result */
    bf16 *h = (bf16 *)(da + (size_t)padded * DA_ROW);  /* (padded, DH_ROW) hidden units, q k v */
    float *pre = (float *)(h + (size_t)padded * DH_ROW); /* (padded, PRE_ROW) from forward */
    float *kept = pre + (size_t)padded * PRE_ROW;        /* (padded, KEPT_ROW) q, k, v */
    float *stream = kept + (size_t)padded * KEPT_ROW;    /* (N, D) of residual rows */
    float *frames = stream + (size_t)N * D;              /* (H, D) of imagined frames */
    const cluster_plans plans(p, S);
    const bool exists = rank < plans.existing; /* a plan of its own */
    const size_t mine = plans.row0 + (size_t)rank;

    /* phases: projector, rows awaited, into units, out of them, shares awaited, rows, rows awaited,
     * output, attention, q k v, shares awaited, rows */
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    ring<S> weights_ahead;
    mail<S> box;
    weights_ahead.make(p, p.saved.slabs, memory);
    box.make(letters, N, p.barriers);
    auto used = [&](int n) { /* when all warps of the block have taken n slabs */
        weights_ahead.pass(n);
        if (filler) weights_ahead.fill();
    };
    auto window = [&](int step) { return p.C + step < N ? p.C + step : N; };

    /* sends shares of rows `first` to `end` to their owners */
    auto share = [&](int first, int end) {
        return [&, first, end](int row, const float(&c)[3][4]) {
            runs_of_four(row, c, [&](int r, int column, float4 v) {
                if (r >= first && r < end && plans.plan(r) < plans.existing)
                    box.post(plans.plan(r), plans.token(r), warp * 24 + column, v);
            });
        };
    };
    /* the sum of all shares of the own row of a token */
    auto shares = [&](row_values &v, int token) {
        row_values none;
#pragma unroll
        for (int j = 0; j < 3; j++) none[j] = make_float2(0, 0);
        box.add_shares(v, none, token);
    };
    /* products into own hidden units, of rows `first` to `end`; to(row, tile, unit, c) */
    auto into_units = [&](int first, int end, auto to) {
        weights<sh::IN_TILES, PAIRS_D> wu;
        const uint4 *from = weights_ahead.await(warp / 4);
#pragma unroll
        for (int i = 0; i < sh::IN_TILES; i++) take_tile(wu, i, from, warp % 4 * sh::IN_TILES + i);
        products(wu, x, X_ROW, row_tiles(first, end), [&](int row, const float(&c)[2][4]) {
#pragma unroll
            for (int i = 0; i < sh::IN_TILES; i++)
                to(row, i, (warp * sh::IN_TILES + i) * 8 + quad, c[i]);
        });
    };
    /* shares of what goes back from own hidden units */
    auto out_of_units = [&](int first, int end) {
        weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
        const uint4 *from = weights_ahead.await(warp / 4);
#pragma unroll
        for (int i = 0; i < sh::OUT_TILES; i++)
            take_tile(wd, i, from, warp % 4 * sh::OUT_TILES + i);
        products(wd, h, DH_ROW, row_tiles(first, end), share(first, end));
    };

    /* gradients of the own plan's modulations start at 0, those of frames with the cost's */
    for (int c = threadIdx.x; c < p.T * p.layers * 6 * D && exists; c += THREADS)
        p.saved.gradient[modulation_at(p, 0, mine, 0) + c] = 0;
    for (int step = warp; exists && step < p.H; step += WARPS) {
        row_values v, goal;
        read_row(v, p.saved.frames + ((size_t)step * p.saved.rows + mine) * D);
        read_row(goal, p.goal + mine / p.K * D);
        float factor = step + 1 == p.H ? 2 : 0;
#pragma unroll
        for (int j = 0; j < 3; j++)
            v[j] = make_float2(factor * (v[j].x - goal[j].x), factor * (v[j].y - goal[j].y));
        write_row(frames + (size_t)step * D, v);
    }
    recall_hidden(p, p.H - 1, p.layers - 1, pre, plans, window(p.H - 1));
    cluster_sync(); /* everyone is here */
    used(0);

    for (int step = p.H - 1; step >= 0; step--) {
        const int seen = p.C + step, w = window(step), token = warp; /* of an owner's warp */

        /* where the modulation of the warp's token lies, and its gradient */
        auto mod_at = [&](int layer, int slice) {
            return modulation_at(p, layer, mine, seen - w + token) + slice * D;
        };
        auto fetch_gate = [&](back_vectors &n, int layer, int slice, const float *y) {
            size_t at = mod_at(layer, slice);
            read_row(n.gate, p.modulation + at);
            read_row(n.out, y + saved_at(p, step, layer, mine, token) * D);
            read_row(n.old_gate, p.saved.gradient + at);
        };
        auto fetch_norms = [&](back_vectors &n, int layer, int slice, const float *from,
                               const float *nw) {
            size_t at = mod_at(layer, slice);
            read_row(n.first, from + saved_at(p, step, layer, mine, token) * D);
            read_row(n.shift, p.modulation + at);
            read_row(n.scale, p.modulation + at + D);
            read_row(n.weight, nw);
            read_row(n.old_shift, p.saved.gradient + at);
            read_row(n.old_scale, p.saved.gradient + at + D);
        };
        auto add = [&](float *to, row_values &old, const row_values &a, const row_values &b) {
#pragma unroll
            for (int j = 0; j < 3; j++) {
                old[j].x += a[j].x * b[j].x;
                old[j].y += a[j].y * b[j].y;
            }
            write_row(to, old);
        };
        /* v: gradient of the sum of residual and gated sub-module; sends that of the sub-module */
        auto open_gate = [&](const row_values &v, back_vectors &n, int layer, int slice) {
            add(p.saved.gradient + mod_at(layer, slice), n.old_gate, v, n.out);
            times_row(n.gate, v);
            box.send(x, token * R + rank, n.gate);
        };
        /* the norms of forward: what they gave */
        struct normalised {
            row_values second;
            float rstd1, rstd2;
        };
        auto norms_again = [&](normalised &s, back_vectors &n) {
            s.rstd1 = normalise(n.first, p.ada_eps);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                n.scale[j].x += 1;
                n.scale[j].y += 1;
                s.second[j].x = n.first[j].x * n.scale[j].x + n.shift[j].x;
                s.second[j].y = n.first[j].y * n.scale[j].y + n.shift[j].y;
            }
            s.rstd2 = normalise(s.second, p.norm_eps);
        };
        /* v: gradient of the residual row; adds what comes back through the two norms from u, that
         * of the sub-module's input */
        auto through_norms = [&](row_values &v, row_values &u, back_vectors &n, const normalised &s,
                                 int layer, int slice) {
            float *to = p.saved.gradient + mod_at(layer, slice);
            row_values one;
#pragma unroll
            for (int j = 0; j < 3; j++) one[j] = make_float2(1, 1);
            times_row(u, n.weight);
            normalise_back(u, s.second, s.rstd2);
            add(to, n.old_shift, u, one);
            add(to + D, n.old_scale, u, n.first);
            times_row(u, n.scale);
            normalise_back(u, n.first, s.rstd1);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += u[j].x;
                v[j].y += u[j].y;
            }
        };

        /* the projector */
        if (exists && warp == 0) {
            row_values v;
            read_row(v, frames + (size_t)step * D);
            box.send(x, (w - 1) * R + rank, v);
        }
        const int rows = w * R;
        float2 slope[sh::IN_TILES][2]; /* of batch norm and GELU: rows of the newest token, one tile */
#pragma unroll
        for (int i = 0; i < sh::IN_TILES; i++) {
            int u = rank * sh::UNITS + (warp * sh::IN_TILES + i) * 8 + quad;
            float2 scale = *reinterpret_cast<const float2 *>(p.proj_scale + u);
            float2 shift = *reinterpret_cast<const float2 *>(p.proj_shift + u);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int plan = plans.plan((rows - R) / 16 * 16 + lane / 4 + 8 * half);
                float2 before = make_float2(0, 0);
                if (plan < plans.existing)
                    before = *reinterpret_cast<const float2 *>(
                        p.saved.projected +
                        ((size_t)step * p.saved.rows + plans.row0 + plan) * HIDDEN + u);
                slope[i][half].x = scale.x * gelu_slope_rounded(before.x * scale.x + shift.x);
                slope[i][half].y = scale.y * gelu_slope_rounded(before.y * scale.y + shift.y);
            }
        }
        box.await_rows(plans.existing);
        into_units(rows - R, rows, [&](int row, int i, int unit, const float(&c)[4]) {
            bf16 *to = h + (size_t)row * DH_ROW + unit;
            *reinterpret_cast<uint32_t *>(to) = pack(c[0] * slope[i][0].x, c[1] * slope[i][0].y);
            *reinterpret_cast<uint32_t *>(to + 8 * DH_ROW) =
                pack(c[2] * slope[i][1].x, c[3] * slope[i][1].y);
        });
        __syncthreads();
        used(INTO_SLAB - UP_SLAB);
        out_of_units(rows - R, rows);
        back_vectors n;
        row_values from, weight;
        if (exists && token == w - 1) {
            fetch_gate(n, p.layers - 1, 5, p.saved.y2);
            read_row(from, p.saved.last + ((size_t)step * p.saved.rows + mine) * D);
            read_row(weight, p.norm_w);
        }
        box.await_shares(exists);
        used(BACK_OUT_SLAB - INTO_SLAB);
        if (exists && token < w) {
            row_values v;
#pragma unroll
            for (int j = 0; j < 3; j++) v[j] = make_float2(0, 0);
            if (token == w - 1) {
                shares(v, token);
                float rstd = normalise(from, p.norm_eps);
                times_row(v, weight);
                normalise_back(v, from, rstd);
                open_gate(v, n, p.layers - 1, 5);
            }
            write_row(stream + (size_t)token * D, v);
        }

        for (int layer = p.layers - 1; layer >= 0; layer--) {
            const block_vectors &b = p.block[layer];
            const int asked = layer + 1 == p.layers ? 1 : w, first = rows - asked * R;
            const bool owner = exists && token < w && token >= w - asked;
            normalised s;
            clock.mark(layer + 1 == p.layers ? 0 : 11);
            copies_wait<0>(); /* hidden units */
            recall_qkv(p, step, layer, kept, plans, w);
            __syncthreads(); /* hidden units of all threads are there */
            box.await_rows(asked * plans.existing);
            clock.mark(1);

            /* MLP */
            into_units(first, rows, [&](int row, int, int unit, const float(&c)[4]) {
                float2 u = *reinterpret_cast<const float2 *>(pre + (size_t)row * PRE_ROW + unit);
                float2 v =
                    *reinterpret_cast<const float2 *>(pre + (size_t)(row + 8) * PRE_ROW + unit);
                bf16 *to = h + (size_t)row * DH_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) =
                    pack(c[0] * gelu_slope_rounded(u.x), c[1] * gelu_slope_rounded(u.y));
                *reinterpret_cast<uint32_t *>(to + 8 * DH_ROW) =
                    pack(c[2] * gelu_slope_rounded(v.x), c[3] * gelu_slope_rounded(v.y));
            });
            copies_wait<0>(); /* q, k, v */
            __syncthreads();
            used(INTO_SLAB - UP_SLAB);
            clock.mark(2);
            if (layer)
                recall_hidden(p, step, layer - 1, pre, plans, w);
            else if (step)
                recall_hidden(p, step - 1, p.layers - 1, pre, plans, window(step - 1));
            if (owner) {
                fetch_norms(n, layer, 3, p.saved.x2, b.mlp_norm_w);
                fetch_gate(n, layer, 2, p.saved.y1);
            }
            out_of_units(first, rows);
            if (owner) norms_again(s, n);
            clock.mark(3);
            box.await_shares(exists ? asked : 0);
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
            box.await_rows(asked * plans.existing);
            clock.mark(6);

            /* attention */
            {
                weights<1, PAIRS_D> up; /* of attention's result */
                take_tile(up, 0, weights_ahead.await(0), warp);
                products(up, x, X_ROW, row_tiles(first, rows), [&](int row, const float(&c)[1][4]) {
                    float *to = da + (size_t)row * DA_ROW + warp * 8 + quad;
                    *reinterpret_cast<float2 *>(to) = make_float2(c[0][0], c[0][1]);
                    *reinterpret_cast<float2 *>(to + 8 * DA_ROW) = make_float2(c[0][2], c[0][3]);
                });
            }
            __syncthreads();
            used(BACK_QKV_SLAB - BACK_OUT_SLAB);
            clock.mark(7);
            attend_back(h, kept, da, R, w, asked);
            if (exists && token < w) {
                fetch_norms(n, layer, 0, p.saved.x1, b.attn_norm_w);
                if (layer) fetch_gate(n, layer - 1, 5, p.saved.y2);
            }
            weights<sh::OUT_TILES, 6> down;
#pragma unroll
            for (int part = 0; part < 3; part++) { /* q, k, v: two pairs each */
                const uint4 *of = weights_ahead.await(part);
#pragma unroll
                for (int i = 0; i < sh::OUT_TILES; i++)
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        down.b[i][2 * part + k] =
                            of[((warp * sh::OUT_TILES + i) * 2 + k) * 32 + lane];
            }
            __syncthreads();
            used(ring<S>::LAYER - BACK_QKV_SLAB);
            clock.mark(8);
            products(down, h, DH_ROW, row_tiles(0, rows), share(0, rows));
            if (exists && token < w) norms_again(s, n);
            clock.mark(9);
            box.await_shares(exists ? w : 0);
            clock.mark(10);
            if (exists && token < w) {
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
    cluster_sync(); /* nobody leaves while others send to it */
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_BACK_CUH */
