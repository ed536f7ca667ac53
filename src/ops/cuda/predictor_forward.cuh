/* predictor_forward.cuh - all steps of a rollout in one kernel.  See predictor.cu for the division
 * of work.
 *
 * One warp keeps a ring of weights filled (weight_ring.cuh); rows and shares travel by mail.cuh.
 * Whatever does not depend on other blocks (modulations, gates, biases, keys of older tokens) is
 * read before the wait it would prolong. */
#ifndef CGS_OPS_CUDA_PREDICTOR_FORWARD_CUH
#define CGS_OPS_CUDA_PREDICTOR_FORWARD_CUH

#include "ops/cuda/clocks.cuh"
#include "ops/cuda/mail.cuh"
#include "ops/cuda/predictor_attention.cuh"
#include "ops/cuda/weight_ring.cuh"

namespace {

/* slabs of a block of the predictor, in the order of use */
template <int S> struct forward_slabs {
    enum { OWN = 16 / S, HEAD = 3, OUT = HEAD * OWN, IN = OUT + OWN, DOWN = IN + 2 * OWN };

    /* slab i of a step: blocks in order, then the projector */
    static __device__ __forceinline__ slab_source source(const task &p, int i) {
        int layer = i / ring<S>::LAYER, kind = i % ring<S>::LAYER, rank = cluster_rank();
        if (layer == p.layers) kind += IN;
        const block_weights &b = p.block[layer < p.layers ? layer : 0];
        const uint4 *in = layer < p.layers ? b.in : p.proj_in;
        const uint4 *down = layer < p.layers ? b.down : p.proj_out;
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
    return mail<S>::bytes(N) + rows * (X_ROW * 2 + sh::QKV_ROW * 4 + sh::H_ROW * 2) +
           (size_t)2 * sh::OWN * N * D * 4;
}
/* slots that fit beside it; 0: too few, or more rows than warps but one */
template <int S> int forward_slots(size_t most, int N, int R) {
    int slots = RING_MOST;
    if (shape<S>::OWN * N >= WARPS) return 0;
    while (slots >= 4 && ring<S>::bytes(slots) + forward_rest<S>(N, R) > most) slots--;
    return slots >= 4 ? slots : 0;
}

/* KEEP: leaves everything that backward reads, and computes all tokens of every window */
template <int S, bool KEEP>
__global__ void __launch_bounds__(THREADS, 1) imagine(const __grid_constant__ task p) {
    typedef shape<S> sh;
    typedef forward_slabs<S> slabs;
    enum { OWN = sh::OWN };
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = p.R, N = p.N, rank = cluster_rank(), padded = padded_rows(N, R);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    const bool filler = warp == WARPS - 1; /* has no rows of its own */
    unsigned char *letters = memory + ring<S>::bytes(p.slots);
    bf16 *x = (bf16 *)(letters + mail<S>::bytes(N));    /* (padded, X_ROW) what enters products */
    float *qkv = (float *)(x + (size_t)padded * X_ROW); /* (padded, QKV_ROW) of one head */
    bf16 *h = (bf16 *)(qkv + (size_t)padded * QKV_ROW); /* (padded, H_ROW) hidden units */
    bf16 *a = h;                                        /* (padded, A_ROW) attention's result */
    float *stream = (float *)(h + (size_t)padded * sh::H_ROW); /* (OWN, N, D) residual rows */
    float *window = stream + (size_t)OWN * N * D; /* (OWN, N, D) latents, oldest first */
    const cluster_plans plans(p, S);
    const int left = plans.existing - rank * OWN, own = left < 0 ? 0 : left < OWN ? left : OWN;
    auto plan_of = [&](int i) { return plans.row0 + (size_t)(rank * OWN + i); };

    /* phases: rows awaited, q k v, attention, output, shares awaited, rows, rows awaited, in, out,
     * shares awaited, rows, projector */
    phase_clock clock;
    clock.start(blockIdx.x == 0 && threadIdx.x == 0);
    ring<S> weights_ahead;
    mail<S> box;
    weights_ahead.make(p, memory);
    box.make(letters, N, p.barriers);
    for (int t = warp; t < own * p.C; t += WARPS) { /* the context */
        int i = t / p.C, j = t % p.C;
        row_values v;
        read_row(v, p.z + (plan_of(i) / p.K * p.C + j) * D);
        write_row(window + (size_t)(i * N + j) * D, v);
    }
    const float *goals = p.goal; /* of the warp's plan, at the end */
    if (warp < own) goals += plan_of(warp) / p.K * D;
    cluster_sync();          /* everyone is here */
    auto used = [&](int n) { /* when all warps of the block have taken n slabs */
                             weights_ahead.pass(n);
                             if (filler)
                                 weights_ahead.fill(p, [&](int i) { return slabs::source(p, i); });
    };
    used(0);

    for (int step = 0; step < p.H; step++) {
        const int seen = p.C + step, w = seen < N ? seen : N;
        const int fresh = KEEP || seen > N || step == 0 ? w : 1, old = w - fresh;
        const int rows = fresh * R;                             /* of x */
        const bool grows = !KEEP && seen < N && step + 1 < p.H; /* keys and values are used again */

        /* A warp has at most one row: plan `mine` and, of the newest `count` tokens, `token`. */
        struct row_task {
            int mine, token;
            bool any;
        };
        auto task_of = [&](int count) {
            int mine = warp >= count; /* at most two plans */
            return row_task{mine, w - count + warp - mine * count, warp < own * count};
        };
        auto modulation = [&](int layer, const row_task &t, int slice) {
            return p.modulation[layer] + (plan_of(t.mine) * p.T + seen - w + t.token) * 6 * D +
                   slice * D;
        };
        auto keep = [&](float *to, int layer, const row_task &t, const row_values &v) {
            if (KEEP) write_row(to + saved_at(p, step, layer, plan_of(t.mine), t.token) * D, v);
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
        auto send = [&](const row_values &v, const row_task &t) {
            box.send(x, (t.token - old) * R + rank * OWN + t.mine, v);
        };
        auto prepare = [&](row_values &v, const row_vectors &n, const row_task &t) {
            normalise(v, p.ada_eps);
            scale_shift(v, n.scale, n.shift, 1);
            normalise(v, p.norm_eps);
            scale_shift(v, n.w, n.b, 0);
            send(v, t);
        };
        auto slot_of = [&](const row_task &t) { return (t.token - old) * OWN + t.mine; };
        /* adds what a sub-module gave, gated */
        auto take = [&](row_values &v, const row_vectors &n, const row_task &t, int layer,
                        bool first) {
            row_values y, r;
            read_row(r, stream + (size_t)(t.mine * N + t.token) * D);
            box.add_shares(y, n.bias, slot_of(t));
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x = r[j].x + n.gate[j].x * y[j].x;
                v[j].y = r[j].y + n.gate[j].y * y[j].y;
            }
            write_row(stream + (size_t)(t.mine * N + t.token) * D, v);
            keep(first ? p.saved.y1 : p.saved.y2, layer, t, y);
            if (first) keep(p.saved.x2, layer, t, v);
        };
        /* sends what a product gave for the newest `count` tokens to the owners of its rows */
        auto share = [&](int count) {
            return [&, first = rows - count * R](int row, const float(&c)[3][4]) {
                runs_of_four(row, c, [&](int r, int column, float4 v) {
                    int plan = plans.plan(r);
                    if (r >= first && r < rows && plan < plans.existing)
                        box.post(plan, plans.token(r) * OWN + plan % OWN, warp * 24 + column, v);
                });
            };
        };
        /* a product into own hidden units: a chunk at a time; end as that of products() */
        auto into_units = [&](int count, auto end) {
#pragma unroll
            for (int chunk = 0; chunk < OWN; chunk++) {
                weights<sh::IN_TILES, PAIRS_D> win;
                const uint4 *in = weights_ahead.await(warp / 4);
#pragma unroll
                for (int i = 0; i < sh::IN_TILES; i++)
                    take_tile(win, i, in, warp % 4 * sh::IN_TILES + i);
                products(win, x, X_ROW, row_tiles(rows - count * R, rows),
                         [&](int row, const float(&c)[2][4]) {
#pragma unroll
                             for (int i = 0; i < sh::IN_TILES; i++)
                                 end(row, chunk * sh::IN_TILES + i,
                                     ((chunk * WARPS + warp) * sh::IN_TILES + i) * 8 + quad, c[i]);
                         });
                __syncthreads();
                used(2);
            }
        };
        /* ... and out of them */
        auto out_of_units = [&](int count) {
            weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
            const int tile = warp * sh::OUT_TILES, each = 12 / OWN;
            const uint4 *from = weights_ahead.await(tile / each);
#pragma unroll
            for (int n = 0; n < sh::OUT_TILES; n++) take_tile(wd, n, from, tile % each + n);
            products(wd, h, sh::H_ROW, row_tiles(rows - count * R, rows), share(count));
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
            row_vectors n;

            for (int head = 0; head < OWN; head++) {
                const int number = rank * OWN + head;
                if (head) __syncthreads(); /* keys of the head before were read */
                if (old) recall_keys(p, layer, number, qkv, plans, old, fresh);
                if (!head) {
                    box.await_rows(fresh * plans.existing);
                    clock.mark(0);
                }
                weights<sh::QKV_TILES, PAIRS_D> wq;
#pragma unroll
                for (int i = 0; i < sh::QKV_TILES; i++) {
                    int tile = warp * sh::QKV_TILES + i;
                    take_tile(wq, i, weights_ahead.await(tile / 8), tile % 8);
                }
                products(wq, x, X_ROW, row_tiles(0, rows), [&](int row, const float(&c)[3][4]) {
#pragma unroll
                    for (int i = 0; i < sh::QKV_TILES; i++) {
                        float *to =
                            qkv + (size_t)row * QKV_ROW + (warp * sh::QKV_TILES + i) * 8 + quad;
                        *reinterpret_cast<float2 *>(to) = make_float2(c[i][0], c[i][1]);
                        *reinterpret_cast<float2 *>(to + 8 * QKV_ROW) =
                            make_float2(c[i][2], c[i][3]);
                    }
                });
                copies_wait<0>();
                __syncthreads();
                used(slabs::HEAD);
                clock.mark(1);
                attend(a + head * WIDTH, sh::A_ROW, qkv, plans, w, fresh, asked);
                if (grows) keep_keys(p, layer, number, qkv, plans, old, fresh);
                if (KEEP) save_qkv(p, step, layer, number, qkv, plans, w);
            }
            t = task_of(asked);
            if (t.any) {
                fetch_gate(n, t, layer, 2, b.out_b);
                fetch_norms(n, t, layer, 3, b.mlp_norm_w, b.mlp_norm_b);
            }
            {
                weights<sh::OUT_TILES, sh::OUT_PAIRS> wo;
                const int tile = warp * sh::OUT_TILES, each = 24 / OWN;
                const uint4 *from = weights_ahead.await(tile / each);
#pragma unroll
                for (int i = 0; i < sh::OUT_TILES; i++) take_tile(wo, i, from, tile % each + i);
                __syncthreads();
                used(slabs::IN - slabs::OUT);
                clock.mark(2);
                products(wo, a, sh::A_ROW, row_tiles(rows - asked * R, rows), share(asked));
            }
            clock.mark(3);
            box.await_shares(own * asked);
            clock.mark(4);

            if (t.any) {
                row_values v;
                take(v, n, t, layer, true);
                prepare(v, n, t);
            }
            float2 bias[OWN * sh::IN_TILES];
#pragma unroll
            for (int i = 0; i < OWN * sh::IN_TILES; i++)
                bias[i] = *reinterpret_cast<const float2 *>(
                    b.in_b + rank * sh::UNITS +
                    ((i / 2 * WARPS + warp) * sh::IN_TILES + i % 2) * 8 + quad);
            clock.mark(5);
            box.await_rows(asked * plans.existing);
            clock.mark(6);
            into_units(asked, [&](int row, int i, int unit, const float(&c)[4]) {
                float2 u = make_float2(c[0] + bias[i].x, c[1] + bias[i].y);
                float2 v = make_float2(c[2] + bias[i].x, c[3] + bias[i].y);
                bf16 *to = h + (size_t)row * sh::H_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) = pack(gelu_rounded(u.x), gelu_rounded(u.y));
                *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) =
                    pack(gelu_rounded(v.x), gelu_rounded(v.y));
                for (int half = 0; KEEP && half < 2; half++) {
                    int r = row + 8 * half, plan = plans.plan(r);
                    if (r < rows && plan < plans.existing)
                        *reinterpret_cast<float2 *>(
                            p.saved.pre +
                            saved_at(p, step, layer, plans.row0 + plan, plans.token(r)) * HIDDEN +
                            rank * sh::UNITS + unit) = half ? v : u;
                }
            });
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
            out_of_units(asked);
            clock.mark(8);
            box.await_shares(own * asked);
            used(ring<S>::LAYER - slabs::DOWN);
            clock.mark(9);
            if (t.any) {
                row_values v;
                take(v, n, t, layer, false);
                if (!last) {
                    keep(p.saved.x1, layer + 1, t, v);
                    prepare(v, n, t);
                } else {
                    if (KEEP)
                        write_row(
                            p.saved.last + ((size_t)step * p.saved.rows + plan_of(t.mine)) * D, v);
                    normalise(v, p.norm_eps);
                    scale_shift(v, n.w, n.b, 0);
                    send(v, t);
                }
            }
            clock.mark(10);
        }

        /* the projector: linear map, batch norm, GELU, linear map, of the newest token */
        float scale[OWN * sh::IN_TILES][2], shift[OWN * sh::IN_TILES][2],
            add[OWN * sh::IN_TILES][2];
#pragma unroll
        for (int i = 0; i < OWN * sh::IN_TILES; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int u = rank * sh::UNITS + ((i / 2 * WARPS + warp) * sh::IN_TILES + i % 2) * 8 +
                        quad + j;
                add[i][j] = p.proj_in_b[u];
                scale[i][j] = p.proj_norm_w[u] / sqrtf(p.proj_var[u] + p.batch_eps);
                shift[i][j] = p.proj_norm_b[u] - p.proj_mean[u] * scale[i][j];
            }
        row_values goal, bias;
        if (warp < own) {
            read_row(goal, goals);
            read_row(bias, p.proj_out_b);
        }
        box.await_rows(plans.existing);
        into_units(1, [&](int row, int i, int unit, const float(&c)[4]) {
            float v[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float pre = c[j] + add[i][j % 2];
                v[j] = gelu_rounded(pre * scale[i][j % 2] + shift[i][j % 2]);
                int r = row + j / 2 * 8, plan = plans.plan(r);
                if (KEEP && r >= rows - R && r < rows && plan < plans.existing)
                    p.saved.projected[((size_t)step * p.saved.rows + plans.row0 + plan) * HIDDEN +
                                      rank * sh::UNITS + unit + j % 2] = pre;
            }
            bf16 *to = h + (size_t)row * sh::H_ROW + unit;
            *reinterpret_cast<uint32_t *>(to) = pack(v[0], v[1]);
            *reinterpret_cast<uint32_t *>(to + 8 * sh::H_ROW) = pack(v[2], v[3]);
        });
        out_of_units(1);
        box.await_shares(own);
        used(ring<S>::LAYER - slabs::DOWN);

        /* a warp moves a plan's window on */
        if (warp < own) {
            row_values v;
            size_t row = plan_of(warp);
            float *frames = window + (size_t)warp * N * D;
            box.add_shares(v, bias, slot_of(row_task{warp, w - 1, true}));
            for (int j = 0; w == N && j + 1 < N; j++) { /* the lane's own columns: in order */
                row_values later;
                read_row(later, frames + (size_t)(j + 1) * D);
                write_row(frames + (size_t)j * D, later);
            }
            write_row(frames + (size_t)(w == N ? N - 1 : w) * D, v);
            if (KEEP) write_row(p.saved.frames + ((size_t)step * p.saved.rows + row) * D, v);
            if (p.frames) write_row(p.frames + (row * p.H + step) * D, v);
            if (step + 1 == p.H) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    float dx = v[j].x - goal[j].x, dy = v[j].y - goal[j].y;
                    sum += dx * dx + dy * dy;
                }
                sum = warp_sum(sum);
                if (lane == 0) p.cost[row] = sum;
            }
        }
        __syncthreads(); /* rows of the window are read by other warps */
        clock.mark(11);
    }
    cluster_sync(); /* nobody leaves while others send to it */
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_FORWARD_CUH */
