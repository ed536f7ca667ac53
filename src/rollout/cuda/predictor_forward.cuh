/* predictor_forward.cuh - all steps of a rollout in one kernel.  See predictor.cu for the division
 * of work.
 *
 * One warp keeps a ring of weights filled (weight_ring.cuh); rows and partial sums travel by
 * exchange.cuh. Whatever does not depend on other CTAs (modulations, gates, biases, keys of older
 * tokens) is read before the wait it would prolong. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_FORWARD_CUH
#define CGS_ROLLOUT_CUDA_PREDICTOR_FORWARD_CUH

#include "ops/cuda/clocks.cuh"
#include "rollout/cuda/exchange.cuh"
#include "rollout/cuda/predictor_attention.cuh"
#include "rollout/cuda/weight_ring.cuh"

namespace {

/* slabs of a layer, in the order of use */
template <int S> struct forward_slabs {
    enum { OWN = 16 / S, HEAD = 3, OUT = HEAD * OWN, IN = OUT + OWN, DOWN = IN + 2 * OWN };

    /* slab i of a step: layers in order, then the projector */
    static __device__ __forceinline__ slab_source source(const packed_weights &w, int i, int rank) {
        int layer = i / ring<S>::LAYER, kind = i % ring<S>::LAYER;
        if (layer == w.layers) kind += IN;
        const packed_layer &b = w.layer[layer < w.layers ? layer : 0];
        const uint4 *in = layer < w.layers ? b.in : w.proj_in;
        const uint4 *down = layer < w.layers ? b.down : w.proj_out;
        if (kind < OUT)
            return whole_tiles(b.qkv, kind % 3 * (INNER / 8) + (rank * OWN + kind / 3) * 8);
        if (kind < IN)
            return parts_of_tiles(b.out, (kind - OUT) * (24 / OWN), PAIRS_INNER, rank * 2 * OWN,
                                  2 * OWN);
        if (kind < DOWN) return whole_tiles(in, rank * 16 * OWN + (kind - IN) * 8);
        return parts_of_tiles(down, (kind - DOWN) * (12 / OWN), PAIRS_HIDDEN, rank * 4 * OWN,
                              4 * OWN);
    }
};

/* what a warp reads before it waits: the vectors of one row */
struct row_vectors {
    row_values gate, bias, shift, scale, w, b;
};

/* shared memory of a launch, but for the ring */
template <int S> size_t forward_rest(int N, int R) {
    typedef shape<S> sh;
    size_t rows = (size_t)padded_rows(N, R);
    return exchange<S>::bytes(N) + rows * (X_ROW * 2 + sh::QKV_ROW * 4 + sh::H_ROW * 2) +
           (size_t)2 * sh::OWN * N * D * 4;
}
/* slots that fit beside it; 0: too few, or more rows than warps but one */
template <int S> int forward_slots(size_t most, int N, int R) {
    int slots = RING_MOST;
    if (shape<S>::OWN * N >= WARPS) return 0;
    while (slots >= 4 && ring<S>::bytes(slots) + forward_rest<S>(N, R) > most) slots--;
    return slots >= 4 ? slots : 0;
}

/* A step is a row of stages: attention and MLP of each layer in turn, then the projector.  In a
 * stage owners make rows of x from the partial sums of the stage before, and all CTAs make products
 * and send partial sums.  One piece of code for all stages: what they execute has to stay in the
 * instruction cache.
 * SAVE: saves everything that backward reads, and computes all tokens of every window */
template <int S, bool SAVE>
__global__ void __launch_bounds__(THREADS, 1) imagine(const __grid_constant__ task p) {
    typedef shape<S> sh;
    typedef forward_slabs<S> slabs;
    enum { OWN = sh::OWN };
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = p.R, N = p.N, rank = cluster_rank(), padded = padded_rows(N, R);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const int stages = 2 * p.layers + 1;
    const bool filler = warp == WARPS - 1; /* has no rows of its own */
    unsigned char *exchange_memory = memory + ring<S>::bytes(p.slots);
    bf16 *x = (bf16 *)(exchange_memory +
                       exchange<S>::bytes(N));          /* (padded, X_ROW) what enters products */
    float *qkv = (float *)(x + (size_t)padded * X_ROW); /* (padded, QKV_ROW) of one head */
    bf16 *h = (bf16 *)(qkv + (size_t)padded * QKV_ROW); /* (padded, H_ROW) hidden units */
    bf16 *a = h;                                        /* (padded, A_ROW) attention's result */
    float *stream = (float *)(h + (size_t)padded * sh::H_ROW); /* (OWN, N, D) residual rows */
    float *window = stream + (size_t)OWN * N * D; /* (OWN, N, D) latents, oldest first */
    const cluster_plans plans(p, S);
    const int left = plans.existing - rank * OWN, own = left < 0 ? 0 : left < OWN ? left : OWN;
    auto plan_of = [&](int i) { return plans.row0 + (size_t)(rank * OWN + i); };

    /* phases: rows made, rows awaited, q k v, attention, its output, units, out of units,
     * partial sums awaited, window */
    enum { MADE, ROWS, QKV, ATTENTION, OUTPUT, INTO, OUT_OF, PARTIALS, WINDOW };
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    if (rank == 0 && threadIdx.x == 0) span_begins(blockIdx.x / S);
    ring<S> weights_ahead;
    exchange<S> peers;
    weights_ahead.make(p, p.slabs, memory);
    peers.make(exchange_memory, N, p.barriers);
    for (int t = warp; t < own * p.C; t += WARPS) { /* the context */
        int i = t / p.C, j = t % p.C;
        row_values v;
        read_row(v, p.z + (plan_of(i) / p.K * p.C + j) * D);
        write_row(window + (size_t)(i * N + j) * D, v);
    }
    const float *goals = p.goal; /* of the warp's plan, at the end */
    if (warp < own) goals += plan_of(warp) / p.K * D;
    cluster_sync(); /* everyone is here */
    auto used = [&](int n) {
        weights_ahead.pass(n);
        if (filler) weights_ahead.fill();
    };
    /* After it all warps have n slabs in their registers: later ones come while these multiply. */
    auto taken = [&](int n) {
        __syncthreads();
        used(n);
    };
    used(0);

#pragma unroll 1
    for (int step = 0; step < p.H; step++) {
        const int seen = p.C + step, w = seen < N ? seen : N;
        const int fresh = SAVE || seen > N || step == 0 ? w : 1, old = w - fresh;
        const int rows = fresh * R;                             /* of x */
        const bool grows = !SAVE && seen < N && step + 1 < p.H; /* keys and values are used again */
        /* tokens of a stage's rows: after the last attention only the newest is needed */
        auto count_of = [&](int stage) { return stage + 2 >= stages ? 1 : fresh; };

        /* A warp has at most one row: plan `mine` and, of the newest `count` tokens, `token`. */
        struct row_task {
            int mine, token;
            bool any;
        };
        auto task_of = [&](int count) {
            int mine = warp >= count; /* at most two plans */
            return row_task{mine, w - count + warp - mine * count, warp < own * count};
        };
        auto slot_of = [&](const row_task &t) { return (t.token - old) * OWN + t.mine; };
        auto own_row = [&](float *of, const row_task &t) {
            return of + (size_t)(t.mine * N + t.token) * D;
        };
        auto save = [&](float *to, int layer, const row_task &t, const row_values &v) {
            if (SAVE) write_row(to + saved_at(p, step, layer, plan_of(t.mine), t.token) * D, v);
        };
        /* what the rows of a stage need besides the partial sums of the one before */
        auto fetch = [&](row_vectors &n, const row_task &t, int stage) {
            const bool mlp = stage % 2, first = stage == 0, project = stage + 1 == stages;
            const int layer = stage / 2, before = first ? 0 : (stage - 1) / 2;
            auto modulation = [&](int of, int slice) {
                return p.modulation + modulation_at(p, of, plan_of(t.mine), seen - w + t.token) +
                       slice * D;
            };
            if (first) {
                read_row(n.gate, own_row(window, t)); /* the sum of two rows */
                read_row(n.bias, p.pos + (size_t)t.token * D);
            } else {
                read_row(n.gate, modulation(before, mlp ? 2 : 5));
                read_row(n.bias, mlp ? p.layer[before].out_b : p.layer[before].down_b);
            }
            if (project) {
                read_row(n.w, p.norm_w);
                read_row(n.b, p.norm_b);
            } else {
                const layer_vectors &b = p.layer[layer];
                read_row(n.shift, modulation(layer, mlp ? 3 : 0));
                read_row(n.scale, modulation(layer, mlp ? 4 : 1));
                read_row(n.w, mlp ? b.mlp_norm_w : b.attn_norm_w);
                read_row(n.b, mlp ? b.mlp_norm_b : b.attn_norm_b);
            }
        };
        /* the residual row with what the stage before gave, gated; normed and modulated to all */
        auto make_row = [&](const row_vectors &n, const row_task &t, int stage) {
            const bool mlp = stage % 2, first = stage == 0, project = stage + 1 == stages;
            const int layer = stage / 2;
            row_values v;
            if (first) {
#pragma unroll
                for (int j = 0; j < 3; j++)
                    v[j] = make_float2(n.gate[j].x + n.bias[j].x, n.gate[j].y + n.bias[j].y);
            } else {
                row_values y;
                read_row(v, own_row(stream, t));
                peers.add_partials(y, n.bias, slot_of(t));
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    v[j].x += n.gate[j].x * y[j].x;
                    v[j].y += n.gate[j].y * y[j].y;
                }
                save(mlp ? p.saved.y1 : p.saved.y2, (stage - 1) / 2, t, y);
            }
            write_row(own_row(stream, t), v);
            if (!project) {
                save(mlp ? p.saved.x2 : p.saved.x1, layer, t, v);
                normalise(v, p.ada_eps);
                scale_shift(v, n.scale, n.shift, 1);
            } else if (SAVE) {
                write_row(p.saved.last + ((size_t)step * p.saved.rows + plan_of(t.mine)) * D, v);
            }
            normalise(v, p.norm_eps);
            scale_shift(v, n.w, n.b, 0);
            peers.send(x, (t.token - old) * R + rank * OWN + t.mine, v);
        };
        /* sends what a product gave for the newest `count` tokens to the owners of its rows */
        auto send_partials = [&](int count) {
            return [&, first = rows - count * R](int row, const float(&c)[3][4]) {
                runs_of_four(row, c, [&](int r, int column, float4 v) {
                    int plan = plans.plan(r);
                    if (r >= first && r < rows && plan < plans.existing)
                        peers.send_partial(plan, plans.token(r) * OWN + plan % OWN,
                                           warp * 24 + column, v);
                });
            };
        };

        row_task t = task_of(count_of(0));
        row_vectors n;
        if (t.any) fetch(n, t, 0);
#pragma unroll 1
        for (int stage = 0; stage < stages; stage++) {
            const int layer = stage / 2, given = count_of(stage), asked = count_of(stage + 1);
            const bool project = stage + 1 == stages;
            /* what is read ahead for the next rows; of the projector, for the window */
            auto look_ahead = [&] {
                t = task_of(asked);
                if (project && t.any) {
                    read_row(n.gate, goals);
                    read_row(n.bias, p.proj_out_b);
                } else if (t.any) {
                    fetch(n, t, stage + 1);
                }
            };
            if (t.any) make_row(n, t, stage);
            clock.mark(MADE);

            if (stage % 2 == 0 && !project) {
#pragma unroll 1
                for (int head = 0; head < OWN; head++) {
                    const int number = rank * OWN + head;
                    if (head) __syncthreads(); /* keys of the head before were read */
                    if (old) load_kv_cache(p, layer, number, qkv, plans, old, fresh);
                    if (!head) {
                        peers.await_rows(given * plans.existing);
                        clock.mark(ROWS);
                    }
                    weights<sh::QKV_TILES, PAIRS_D> wq;
#pragma unroll
                    for (int i = 0; i < sh::QKV_TILES; i++) {
                        int tile = warp * sh::QKV_TILES + i;
                        take_tile(wq, i, weights_ahead.await(tile / 8), tile % 8);
                    }
                    taken(slabs::HEAD);
                    products(wq, x, X_ROW, row_tiles(0, rows), [&](int row, const float(&c)[3][4]) {
#pragma unroll
                        for (int i = 0; i < sh::QKV_TILES; i++) {
                            float *to =
                                qkv + (size_t)row * QKV_ROW + (warp * sh::QKV_TILES + i) * 8 + quad;
                            /* after them are keys of older tokens */
                            if (row < rows)
                                *reinterpret_cast<float2 *>(to) = make_float2(c[i][0], c[i][1]);
                            if (row + 8 < rows)
                                *reinterpret_cast<float2 *>(to + 8 * QKV_ROW) =
                                    make_float2(c[i][2], c[i][3]);
                        }
                    });
                    cp_async_wait<0>();
                    __syncthreads();
                    clock.mark(QKV);
                    if (head + 1 == OWN) look_ahead();
                    attend(a + head * WIDTH, sh::A_ROW, qkv, plans, w, fresh, asked);
                    if (grows) store_kv_cache(p, layer, number, qkv, plans, old, fresh);
                    if (SAVE) save_qkv(p, step, layer, number, qkv, plans, w);
                    clock.mark(ATTENTION);
                }
                weights<sh::OUT_TILES, sh::OUT_PAIRS> wo;
                const int tile = warp * sh::OUT_TILES, each = 24 / OWN;
                const uint4 *from = weights_ahead.await(tile / each);
                take_tiles(wo, from, tile % each);
                taken(slabs::IN - slabs::OUT); /* and all of attention's result is there */
                products(wo, a, sh::A_ROW, row_tiles(rows - asked * R, rows), send_partials(asked));
                clock.mark(OUTPUT);
            } else {
                const float *biases = project ? p.proj_in_b : p.layer[layer].in_b;
#pragma unroll 1
                for (int chunk = 0; chunk < OWN; chunk++) {
                    float2 add[sh::IN_TILES];
                    unit_norm norm[sh::IN_TILES];
                    const int unit0 = (chunk * WARPS + warp) * sh::IN_TILES * 8 + quad;
#pragma unroll
                    for (int i = 0; i < sh::IN_TILES; i++) {
                        int u = rank * sh::UNITS + unit0 + 8 * i;
                        add[i] = *reinterpret_cast<const float2 *>(biases + u);
                        norm[i] = unit_norm(p, project, u);
                    }
                    if (!chunk) {
                        peers.await_rows(given * plans.existing);
                        clock.mark(ROWS);
                    }
                    weights<sh::IN_TILES, PAIRS_D> win;
                    take_tiles(win, weights_ahead.await(warp / 4), warp % 4 * sh::IN_TILES);
                    taken(2);
                    auto finish_unit = [&](int r, int unit, float2 before, const unit_norm &then) {
                        float2 v = then.of(before);
                        *reinterpret_cast<uint32_t *>(h + (size_t)r * sh::H_ROW + unit) =
                            pack(gelu_rounded(v.x), gelu_rounded(v.y));
                        int plan = plans.plan(r);
                        if (!SAVE || r < rows - given * R || r >= rows || plan >= plans.existing)
                            return;
                        float *to =
                            project ? p.saved.projected +
                                          ((size_t)step * p.saved.rows + plans.row0 + plan) * HIDDEN
                                    : p.saved.pre + saved_at(p, step, layer, plans.row0 + plan,
                                                             plans.token(r)) *
                                                        HIDDEN;
                        *reinterpret_cast<float2 *>(to + rank * sh::UNITS + unit) = before;
                    };
                    products(win, x, X_ROW, row_tiles(rows - given * R, rows),
                             [&](int row, const float(&c)[2][4]) {
#pragma unroll
                                 for (int e = 0; e < 2 * sh::IN_TILES; e++) {
                                     const int i = e / 2, half = e % 2;
                                     finish_unit(row + 8 * half, unit0 + 8 * i,
                                                 make_float2(c[i][2 * half] + add[i].x,
                                                             c[i][2 * half + 1] + add[i].y),
                                                 norm[i]);
                                 }
                             });
                }
                clock.mark(INTO);
                look_ahead();
                weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
                const int tile = warp * sh::OUT_TILES, each = 12 / OWN;
                const uint4 *from = weights_ahead.await(tile / each);
                take_tiles(wd, from, tile % each);
                taken(ring<S>::LAYER - slabs::DOWN); /* and all hidden units are there */
                products(wd, h, sh::H_ROW, row_tiles(rows - asked * R, rows), send_partials(asked));
                clock.mark(OUT_OF);
            }
            peers.await_partials(own * asked);
            clock.mark(PARTIALS);
        }

        /* a warp moves a plan's window on */
        if (warp < own) {
            row_values v;
            size_t row = plan_of(warp);
            float *latents = window + (size_t)warp * N * D;
            peers.add_partials(v, n.bias, slot_of(t));
            for (int j = 0; w == N && j + 1 < N; j++) { /* the lane's own columns: in order */
                row_values later;
                read_row(later, latents + (size_t)(j + 1) * D);
                write_row(latents + (size_t)j * D, later);
            }
            write_row(latents + (size_t)(w == N ? N - 1 : w) * D, v);
            if (SAVE) write_row(p.saved.latents + ((size_t)step * p.saved.rows + row) * D, v);
            if (p.latents) write_row(p.latents + (row * p.H + step) * D, v);
            if (step + 1 == p.H) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    float dx = v[j].x - n.gate[j].x, dy = v[j].y - n.gate[j].y; /* the goal */
                    sum += dx * dx + dy * dy;
                }
                sum = warp_sum(sum);
                if (lane == 0) p.cost[row] = sum;
            }
        }
        __syncthreads(); /* rows of the window are read by other warps */
        clock.mark(WINDOW);
    }
    if (rank == 0 && threadIdx.x == 0) span_ends(blockIdx.x / S);
    cluster_sync(); /* nobody leaves while others send to it */
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_FORWARD_CUH */
