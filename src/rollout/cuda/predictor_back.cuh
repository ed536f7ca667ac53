/* predictor_back.cuh - backward of a rollout in one kernel: the gradient of each plan's squared
 * distance to its goal by the modulations.
 *
 * The division of work is that of predictor.cu for clusters of 16, its lines in reverse; weights
 * are constants, so every product is one with transposed weights.  Gradients enter products rounded
 * to bf16, as on the tape, and are f32 elsewhere.  An owner alone adds to the gradients of its
 * plan's modulations.
 *
 * What forward saved is fetched early: hidden units and q, k, v are copied to shared memory while
 * the phase before them runs; an owner reads the rows that its part of a phase needs, and computes
 * the norms of forward again, before it waits for partial sums. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_BACK_CUH
#define CGS_ROLLOUT_CUDA_PREDICTOR_BACK_CUH

#include "rollout/cuda/predictor_back_parts.cuh"
#include "rollout/cuda/predictor_forward.cuh"

namespace {

/* slabs in the order of use: MLP, output of attention, q k v */
enum { UP_SLAB = 0, INTO_SLAB = 2, BACK_OUT_SLAB = 4, BACK_QKV_SLAB = 5 };

/* slab i of a step, of transposed weights: the projector, then layers from the last on */
struct backward_slabs {
    static __device__ __forceinline__ slab_source source(const packed_weights &w, int i, int rank) {
        typedef ring<BACKWARD_CTAS> r;
        if (i < r::PROJECTOR) {
            if (i < INTO_SLAB) return whole_tiles(w.proj_out, rank * 16 + i * 8);
            return parts_of_tiles(w.proj_in, (i - INTO_SLAB) * 12, PAIRS_HIDDEN, rank * 4, 4);
        }
        i -= r::PROJECTOR;
        const packed_layer &b = w.layer[w.layers - 1 - i / r::LAYER];
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
    return exchange<BACKWARD_CTAS>::bytes(N) +
           (size_t)padded_rows(N, R) *
               (X_ROW * 2 + DA_ROW * 4 + DH_ROW * 2 + PRE_ROW * 4 + SAVED_QKV_ROW * 4) +
           (size_t)(N + H) * D * 4;
}
inline int back_slots(size_t most, int N, int H, int R) {
    int slots = RING_MOST;
    while (slots >= 3 && ring<BACKWARD_CTAS>::bytes(slots) + back_rest(N, H, R) > most) slots--;
    return slots >= 3 ? slots : 0;
}

/* what an owner reads ahead for one row: for the way through two norms and for the gate after them
 */
struct back_vectors {
    row_values first, shift, scale, weight, old_shift, old_scale; /* through norms */
    row_values gate, out, old_gate;
};
/* ... and computes before it waits: what the norms of forward gave */
struct normalised {
    row_values second;
    float rstd1, rstd2;
};

/* The stages of forward in reverse: the projector, then MLP and attention of each layer from the
 * last on.  In a stage all CTAs make products with the rows that owners sent and send partial sums;
 * the owners take them through the norms before the sub-module and through the gate after the one
 * before it, and send the next rows. */
__global__ void __launch_bounds__(THREADS, 1) imagine_back(const __grid_constant__ task p) {
    enum { S = BACKWARD_CTAS };
    typedef shape<S> sh;
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = p.R, N = p.N, rank = cluster_rank(), padded = padded_rows(N, R);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const int stages = 2 * p.layers + 1;
    const bool filler = warp == WARPS - 1;
    unsigned char *exchange_memory = memory + ring<S>::bytes(p.slots);
    bf16 *x = (bf16 *)(exchange_memory + exchange<S>::bytes(N)); /* (padded, X_ROW) for products */
    float *da = (float *)(x + (size_t)padded * X_ROW); /* (padded, DA_ROW) of attention's result */
    bf16 *h = (bf16 *)(da + (size_t)padded * DA_ROW);  /* (padded, DH_ROW) hidden units, q k v */
    float *pre = (float *)(h + (size_t)padded * DH_ROW);  /* (padded, PRE_ROW) from forward */
    float *qkv = pre + (size_t)padded * PRE_ROW;          /* (padded, SAVED_QKV_ROW) q, k, v */
    float *stream = qkv + (size_t)padded * SAVED_QKV_ROW; /* (N, D) of residual rows */
    float *latents = stream + (size_t)N * D;              /* (H, D) of imagined latents */
    const cluster_plans plans(p, S);
    const bool exists = rank < plans.existing; /* a plan of its own */
    const size_t mine = plans.row0 + (size_t)rank;

    enum { ROWS, INTO, OUT_OF, OUTPUT, ATTENTION, QKV, PARTIALS, PASSED }; /* phases */
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    ring<S> weights_ahead;
    exchange<S> peers;
    weights_ahead.make(p, p.saved.slabs, memory);
    peers.make(exchange_memory, N, p.barriers);
    auto used = [&](int n) { /* when all warps of the CTA have taken n slabs */
                             weights_ahead.pass(n);
                             if (filler) weights_ahead.fill();
    };
    auto window = [&](int step) { return p.C + step < N ? p.C + step : N; };

    /* sends partial sums of rows `first` to `end` to their owners */
    auto send_partials = [&](int first, int end) {
        return [&, first, end](int row, const float(&c)[3][4]) {
            runs_of_four(row, c, [&](int r, int column, float4 v) {
                if (r >= first && r < end && plans.plan(r) < plans.existing)
                    peers.send_partial(plans.plan(r), plans.token(r), warp * 24 + column, v);
            });
        };
    };
    auto add_product = [](row_values &to, const row_values &a, const row_values &b) {
#pragma unroll
        for (int j = 0; j < 3; j++) {
            to[j].x += a[j].x * b[j].x;
            to[j].y += a[j].y * b[j].y;
        }
    };

    /* gradients of the own plan's modulations start at 0, those of latents with the cost's */
    for (int c = threadIdx.x; c < p.T * p.layers * 6 * D && exists; c += THREADS)
        p.saved.gradient[modulation_at(p, 0, mine, 0) + c] = 0;
    for (int step = warp; exists && step < p.H; step += WARPS) {
        row_values v, goal;
        read_row(v, p.saved.latents + ((size_t)step * p.saved.rows + mine) * D);
        read_row(goal, p.goal + mine / p.K * D);
        float factor = step + 1 == p.H ? 2 : 0;
#pragma unroll
        for (int j = 0; j < 3; j++)
            v[j] = make_float2(factor * (v[j].x - goal[j].x), factor * (v[j].y - goal[j].y));
        write_row(latents + (size_t)step * D, v);
    }
    load_projected(p, p.H - 1, pre, plans, window(p.H - 1));
    cluster_sync(); /* everyone is here */
    used(0);

#pragma unroll 1
    for (int step = p.H - 1; step >= 0; step--) {
        const int seen = p.C + step, w = window(step), token = warp; /* of an owner's warp */
        const int rows = w * R;

        /* where the modulation of the warp's token lies, and its gradient */
        auto mod_at = [&](int layer, int slice) {
            return modulation_at(p, layer, mine, seen - w + token) + slice * D;
        };

        if (exists && warp == 0) {
            row_values v;
            read_row(v, latents + (size_t)step * D);
            peers.send(x, (w - 1) * R + rank, v);
        }
#pragma unroll 1
        for (int stage = 0; stage < stages; stage++) {
            const bool project = stage == 0, units = project || stage % 2;
            const int layer = p.layers - 1 - (project ? 0 : (stage - 1) / 2);
            /* tokens with rows, and with partial sums: after the last attention there is one */
            const int given = stage <= 2 ? 1 : w, asked = stage <= 1 ? 1 : w;
            const int first = rows - given * R;
            const bool owner = exists && token < w && token >= w - asked;
            /* the gate after the sub-module before: of the MLP's layer, or of the one below it */
            const int gated = project || stage % 2 ? layer : layer - 1;
            const int gate = project || stage % 2 == 0 ? 5 : 2, norms = stage % 2 ? 3 : 0;
            back_vectors n;
            normalised s;
            auto look_ahead = [&] {
                if (!owner) return;
                const layer_vectors &b = p.layer[layer];
                size_t at = saved_at(p, step, layer, mine, token) * D;
                if (project) {
                    read_row(n.first, p.saved.last + ((size_t)step * p.saved.rows + mine) * D);
                    read_row(n.weight, p.norm_w);
                } else {
                    read_row(n.first, (stage % 2 ? p.saved.x2 : p.saved.x1) + at);
                    read_row(n.shift, p.modulation + mod_at(layer, norms));
                    read_row(n.scale, p.modulation + mod_at(layer, norms + 1));
                    read_row(n.weight, stage % 2 ? b.mlp_norm_w : b.attn_norm_w);
                    read_row(n.old_shift, p.saved.gradient + mod_at(layer, norms));
                    read_row(n.old_scale, p.saved.gradient + mod_at(layer, norms + 1));
                }
                if (gated < 0) return;
                read_row(n.gate, p.modulation + mod_at(gated, gate));
                read_row(n.out, (gate == 2 ? p.saved.y1 : p.saved.y2) +
                                    saved_at(p, step, gated, mine, token) * D);
                read_row(n.old_gate, p.saved.gradient + mod_at(gated, gate));
            };

            if (units) {
                unit_norm norm[sh::IN_TILES];
#pragma unroll
                for (int i = 0; i < sh::IN_TILES; i++)
                    norm[i] = unit_norm(p, project,
                                        rank * sh::UNITS + (warp * sh::IN_TILES + i) * 8 + quad);
                cp_async_wait<0>(); /* hidden units */
                if (!project) load_qkv(p, step, layer, qkv, plans, w);
                __syncthreads(); /* hidden units of all threads are there */
                peers.await_rows(given * plans.existing);
                clock.mark(ROWS);
                weights<sh::IN_TILES, PAIRS_D> wu;
                take_tiles(wu, weights_ahead.await(warp / 4), warp % 4 * sh::IN_TILES);
                products(wu, x, X_ROW, row_tiles(first, rows), [&](int row, const float(&c)[2][4]) {
#pragma unroll
                    for (int i = 0; i < sh::IN_TILES; i++)
#pragma unroll
                        for (int half = 0; half < 2; half++) {
                            size_t r = (size_t)(row + 8 * half);
                            int unit = (warp * sh::IN_TILES + i) * 8 + quad;
                            float2 u = *reinterpret_cast<const float2 *>(pre + r * PRE_ROW + unit);
                            float2 v = norm[i].of(u);
                            *reinterpret_cast<uint32_t *>(h + r * DH_ROW + unit) = pack(
                                c[i][2 * half] * norm[i].scale.x * gelu_derivative_rounded(v.x),
                                c[i][2 * half + 1] * norm[i].scale.y *
                                    gelu_derivative_rounded(v.y));
                        }
                });
                cp_async_wait<0>(); /* q, k, v */
                __syncthreads();
                used(INTO_SLAB - UP_SLAB);
                clock.mark(INTO);
                if (project)
                    load_hidden(p, step, layer, pre, plans, w);
                else if (layer)
                    load_hidden(p, step, layer - 1, pre, plans, w);
                else if (step)
                    load_projected(p, step - 1, pre, plans, window(step - 1));
                look_ahead();
                weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
                take_tiles(wd, weights_ahead.await(warp / 4), warp % 4 * sh::OUT_TILES);
                products(wd, h, DH_ROW, row_tiles(first, rows), send_partials(first, rows));
                clock.mark(OUT_OF);
            } else {
                peers.await_rows(given * plans.existing);
                clock.mark(ROWS);
                weights<1, PAIRS_D> up; /* of attention's result */
                take_tiles(up, weights_ahead.await(0), warp);
                products(up, x, X_ROW, row_tiles(first, rows), [&](int row, const float(&c)[1][4]) {
                    float *to = da + (size_t)row * DA_ROW + warp * 8 + quad;
                    *reinterpret_cast<float2 *>(to) = make_float2(c[0][0], c[0][1]);
                    *reinterpret_cast<float2 *>(to + 8 * DA_ROW) = make_float2(c[0][2], c[0][3]);
                });
                __syncthreads();
                used(BACK_QKV_SLAB - BACK_OUT_SLAB);
                clock.mark(OUTPUT);
                attend_back(h, qkv, da, R, w, given);
                look_ahead();
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
                clock.mark(ATTENTION);
                products(down, h, DH_ROW, row_tiles(0, rows), send_partials(0, rows));
                clock.mark(QKV);
            }
            if (owner) { /* the norms of forward again */
                s.rstd1 = normalise(n.first, project ? p.norm_eps : p.ada_eps);
                if (!project) {
#pragma unroll
                    for (int j = 0; j < 3; j++) {
                        n.scale[j].x += 1;
                        n.scale[j].y += 1;
                        s.second[j].x = n.first[j].x * n.scale[j].x + n.shift[j].x;
                        s.second[j].y = n.first[j].y * n.scale[j].y + n.shift[j].y;
                    }
                    s.rstd2 = normalise(s.second, p.norm_eps);
                }
            }
            peers.await_partials(exists ? asked : 0);
            if (units) used(BACK_OUT_SLAB - INTO_SLAB);
            clock.mark(PARTIALS);
            if (owner) {
                row_values v, u;
#pragma unroll
                for (int j = 0; j < 3; j++) v[j] = make_float2(0, 0);
                peers.add_partials(u, v, token);
                times_row(u, n.weight);
                if (!project) { /* back through the second norm and the modulation */
                    float *to = p.saved.gradient + mod_at(layer, norms);
                    read_row(v, stream + (size_t)token * D);
                    normalise_back(u, s.second, s.rstd2);
#pragma unroll
                    for (int j = 0; j < 3; j++) {
                        n.old_shift[j].x += u[j].x;
                        n.old_shift[j].y += u[j].y;
                    }
                    add_product(n.old_scale, u, n.first);
                    write_row(to, n.old_shift);
                    write_row(to + D, n.old_scale);
                    times_row(u, n.scale);
                }
                normalise_back(u, n.first, s.rstd1);
#pragma unroll
                for (int j = 0; j < 3; j++) { /* of the residual row */
                    v[j].x += u[j].x;
                    v[j].y += u[j].y;
                }
                write_row(stream + (size_t)token * D, v);
                if (gated >= 0) {
                    add_product(n.old_gate, v, n.out);
                    write_row(p.saved.gradient + mod_at(gated, gate), n.old_gate);
                    times_row(n.gate, v);
                    peers.send(x, token * R + rank, n.gate);
                } else if (seen - w + token >= p.C) { /* a latent that was imagined */
                    row_values sum;
                    float *at = latents + (size_t)(seen - w + token - p.C) * D;
                    read_row(sum, at);
#pragma unroll
                    for (int j = 0; j < 3; j++) {
                        sum[j].x += v[j].x;
                        sum[j].y += v[j].y;
                    }
                    write_row(at, sum);
                }
            } else if (project && exists && token < w) {
                row_values none;
#pragma unroll
                for (int j = 0; j < 3; j++) none[j] = make_float2(0, 0);
                write_row(stream + (size_t)token * D, none);
            }
            clock.mark(PASSED);
        }
        __syncthreads(); /* latents are read by other warps */
    }
    cluster_sync(); /* nobody leaves while others send to it */
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_BACK_CUH */
