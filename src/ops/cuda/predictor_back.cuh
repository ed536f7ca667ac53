/* predictor_back.cuh - backward of a rollout in one kernel: the gradient of each plan's squared
 * distance to its goal by the modulations.
 *
 * The division of work is that of predictor.cu, its lines in reverse; weights are constants, so
 * every product is one with turned weights.  Gradients enter products rounded to bf16, as on the
 * tape, and are f32 elsewhere.  An owner alone adds to the gradients of its plans' modulations. */
#ifndef CGS_OPS_CUDA_PREDICTOR_BACK_CUH
#define CGS_OPS_CUDA_PREDICTOR_BACK_CUH

#include "ops/cuda/predictor.cuh"

namespace {

/* centres and scales v; returns 1 / its deviation */
__device__ __forceinline__ float standardise(row_values &v, float eps) {
    float sum = 0, square = 0;
#pragma unroll
    for (int j = 0; j < 3; j++) sum += v[j].x + v[j].y;
    float mean = warp_sum(sum) / D;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x -= mean;
        v[j].y -= mean;
        square += v[j].x * v[j].x + v[j].y * v[j].y;
    }
    float rstd = 1.0f / sqrtf(warp_sum(square) / D + eps);
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x *= rstd;
        v[j].y *= rstd;
    }
    return rstd;
}

/* gradient by what was standardised to v, from that by v */
__device__ __forceinline__ void standardise_back(row_values &g, const row_values &v, float rstd) {
    float sum = 0, along = 0;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        sum += g[j].x + g[j].y;
        along += g[j].x * v[j].x + g[j].y * v[j].y;
    }
    sum = warp_sum(sum) / D;
    along = warp_sum(along) / D;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        g[j].x = rstd * (g[j].x - sum - v[j].x * along);
        g[j].y = rstd * (g[j].y - sum - v[j].y * along);
    }
}

__device__ __forceinline__ void times_row(row_values &v, const row_values &w) {
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x *= w[j].x;
        v[j].y *= w[j].y;
    }
}
/* at (D) += a b */
__device__ __forceinline__ void add_products(float *at, const row_values &a, const row_values &b) {
    row_values v;
    read_row(v, at);
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x += a[j].x * b[j].x;
        v[j].y += a[j].y * b[j].y;
    }
    write_row(at, v);
}

template <int S> struct back_shape {
    typedef shape<S> sh;
    enum {
        DQ_ROW = sh::OWN_HEADS * 3 * WIDTH + 8,
        H_ROW = (int)DQ_ROW > (int)sh::H_ROW ? (int)DQ_ROW : (int)sh::H_ROW, /* of either use */
        F_ROW = (int)sh::OWN_HEADS * WIDTH + 8 > (int)PART_ROW ? (int)sh::OWN_HEADS *WIDTH + 8
                                                               : (int)PART_ROW,
    };
    static size_t shared(int MT, int N, int H) {
        size_t rows = (size_t)16 * MT * N, own = (size_t)16 * MT / S;
        return rows * X_ROW * 2 + rows * F_ROW * 4 + rows * H_ROW * 2 + own * (N + H) * D * 4;
    }
};

/* Gradients of q, k, v of own heads from those of attention's result, da (rows, stride), of the
 * newest `asked` tokens.  Eight lanes take one head of one plan. */
template <int S>
__device__ void attend_back(const task &p, int step, int layer, bf16 *dqkv, const float *da,
                            int stride, int R, size_t row0, int w, int asked) {
    typedef shape<S> sh;
    int lane = threadIdx.x % 32, part = lane % 8 * 8, rank = cluster_rank();
    int tasks = sh::OWN_HEADS * R;
    for (int base = (int)threadIdx.x / 32 * 4; base < tasks; base += 4 * WARPS) {
        int t = base + lane / 8; /* R is a multiple of 16: every lane has a task */
        int plan = t % R, head = t / R;
        const float *own =
            p.saved.qkv +
            ((((size_t)step * p.layers + layer) * HEADS + rank * sh::OWN_HEADS + head) *
                 p.saved.rows +
             row0 + plan) *
                p.N * 3 * WIDTH +
            part;
        float k[MOST_TOKENS][8], v[MOST_TOKENS][8], dk[MOST_TOKENS][8] = {},
                                                    dv[MOST_TOKENS][8] = {};
        bf16 *to = dqkv + (size_t)plan * back_shape<S>::H_ROW + head * 3 * WIDTH + part;
        size_t token_row = (size_t)R * back_shape<S>::H_ROW;
#pragma unroll
        for (int j = 0; j < MOST_TOKENS; j++)
            if (j < w) {
                load<8>(k[j], own + (size_t)j * 3 * WIDTH + WIDTH);
                load<8>(v[j], own + (size_t)j * 3 * WIDTH + 2 * WIDTH);
            }
#pragma unroll
        for (int i = 0; i < MOST_TOKENS; i++) {
            if (i >= w) continue; /* the same for all lanes */
            float dq[8] = {};
            if (i >= w - asked) {
                float q[8], d[8], score[MOST_TOKENS], slope[MOST_TOKENS];
                float most = -INFINITY, sum = 0, mean = 0;
                load<8>(q, own + (size_t)i * 3 * WIDTH);
                load<8>(d, da + (size_t)(i * R + plan) * stride + head * WIDTH + part);
#pragma unroll
                for (int j = 0; j <= i; j++) {
                    float dot = 0, along = 0;
#pragma unroll
                    for (int c = 0; c < 8; c++) {
                        dot += q[c] * k[j][c];
                        along += d[c] * v[j][c];
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
                for (int j = 0; j <= i; j++) sum += score[j] = expf(score[j] - most);
#pragma unroll
                for (int j = 0; j <= i; j++) {
                    score[j] /= sum;
                    mean += score[j] * slope[j];
                }
#pragma unroll
                for (int j = 0; j <= i; j++) {
                    float ds = 0.125f * score[j] * (slope[j] - mean);
#pragma unroll
                    for (int c = 0; c < 8; c++) {
                        dq[c] += ds * k[j][c];
                        dk[j][c] += ds * q[c];
                        dv[j][c] += score[j] * d[c];
                    }
                }
            }
            store<8>(to + (size_t)i * token_row, dq);
        }
#pragma unroll
        for (int j = 0; j < MOST_TOKENS; j++)
            if (j < w) {
                store<8>(to + (size_t)j * token_row + WIDTH, dk[j]);
                store<8>(to + (size_t)j * token_row + 2 * WIDTH, dv[j]);
            }
    }
}

template <int S>
__global__ void __launch_bounds__(THREADS, 1) imagine_back(const __grid_constant__ task p) {
    typedef shape<S> sh;
    typedef back_shape<S> bs;
    extern __shared__ __align__(16) unsigned char memory[];
    const int R = 16 * p.MT, own = R / S, N = p.N, rank = cluster_rank();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = 2 * (lane % 4);
    bf16 *x = (bf16 *)memory;                           /* (N R, X_ROW) what enters products */
    float *da = (float *)(x + (size_t)N * R * X_ROW);   /* (N R, F_ROW) of attention's result */
    float *parts = da;                                  /* (N R, PART_ROW) this block's shares */
    bf16 *h = (bf16 *)(da + (size_t)N * R * bs::F_ROW); /* (N R, H_ROW) hidden units, or q k v */
    float *stream = (float *)(h + (size_t)N * R * bs::H_ROW); /* (own, N, D) of residual rows */
    float *frames = stream + (size_t)own * N * D;             /* (own, H, D) of imagined frames */
    const size_t row0 = (size_t)(blockIdx.x / S) * R, mine = row0 + (size_t)rank * own;

    auto exists = [&](int i) { return mine + i < (size_t)p.rows; };
    auto in_tile = [&](int chunk) {
        return [=](int n) { return rank * (sh::UNITS / 8) + warp * sh::IN_TILES + 2 * chunk + n; };
    };
    auto out_tile = [=](int n) { return warp * sh::OUT_TILES + n; };
    auto share = [&](int row, int n, const float(&c)[4]) {
        float *to = parts + (size_t)row * PART_ROW + (warp * sh::OUT_TILES + n) * 8 + quad;
        *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
        *reinterpret_cast<float2 *>(to + 8 * PART_ROW) = make_float2(c[2], c[3]);
    };
    weights<2, PAIRS_D> wu;
    weights<sh::OUT_TILES, sh::DOWN_PAIRS> wd;
    /* the sum of all shares of a row */
    auto shares = [&](row_values &v, int row) {
#pragma unroll
        for (int j = 0; j < 3; j++) v[j] = make_float2(0, 0);
        float *at = parts + (size_t)row * PART_ROW;
#pragma unroll 8
        for (int b = 0; b < S; b++) {
            row_values w;
            read_row(w, in_block(at, b));
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += w[j].x;
                v[j].y += w[j].y;
            }
        }
    };

    /* gradients of own plans' modulations start at 0, those of frames with the cost's */
    for (int layer = 0; layer < p.layers; layer++)
        for (int i = 0; i < own; i++)
            for (int c = threadIdx.x; c < p.T * 6 * D && exists(i); c += THREADS)
                p.saved.gradient[layer][(mine + i) * p.T * 6 * D + c] = 0;
    for (int t = warp; t < own * p.H; t += WARPS) {
        int i = t / p.H, step = t % p.H;
        row_values v, goal;
        size_t row = exists(i) ? mine + i : (size_t)p.rows - 1;
        read_row(v, p.saved.frames + ((size_t)step * p.saved.rows + mine + i) * D);
        read_row(goal, p.goal + row / p.K * D);
        float factor = step + 1 == p.H ? 2 : 0;
#pragma unroll
        for (int j = 0; j < 3; j++)
            v[j] = make_float2(factor * (v[j].x - goal[j].x), factor * (v[j].y - goal[j].y));
        write_row(frames + (size_t)(i * p.H + step) * D, v);
    }
    cluster_sync(); /* everyone is here */

    for (int step = p.H - 1; step >= 0; step--) {
        const int seen = p.C + step, w = seen < N ? seen : N;

        /* the modulation of a token, and its gradient; padded rows share the last plan's */
        auto mod_at = [&](int i, int token) {
            size_t row = exists(i) ? mine + i : (size_t)p.rows - 1;
            return (row * p.T + seen - w + token) * 6 * D;
        };
        /* v: gradient of the sum of residual and gated sub-module; sends that of the sub-module */
        auto open_gate = [&](const row_values &v, int layer, int i, int token, int slice,
                             const float *y) {
            size_t at = mod_at(i, token) + slice * D;
            row_values g, out;
            read_row(g, p.modulation[layer] + at);
            read_row(out, y + saved_at(p, step, layer, mine + i, token) * D);
            if (exists(i)) add_products(p.saved.gradient[layer] + at, v, out);
            times_row(g, v);
            send<S>(x, token * R + rank * own + i, g);
        };
        /* v: gradient of the residual row; adds what comes back through the two norms from u, that
         * of the sub-module's input */
        auto through_norms = [&](row_values &v, row_values &u, int layer, int i, int token,
                                 int slice, const float *from, const float *nw) {
            size_t at = mod_at(i, token) + slice * D;
            row_values first, second, shift, scale, one;
            read_row(first, from + saved_at(p, step, layer, mine + i, token) * D);
            read_row(shift, p.modulation[layer] + at);
            read_row(scale, p.modulation[layer] + at + D);
            float rstd1 = standardise(first, p.ada_eps);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                scale[j].x += 1;
                scale[j].y += 1;
                second[j].x = first[j].x * scale[j].x + shift[j].x;
                second[j].y = first[j].y * scale[j].y + shift[j].y;
                one[j] = make_float2(1, 1);
            }
            float rstd2 = standardise(second, p.norm_eps);
            row_values weight;
            read_row(weight, nw);
            times_row(u, weight);
            standardise_back(u, second, rstd2);
            if (exists(i)) {
                add_products(p.saved.gradient[layer] + at, u, one);
                add_products(p.saved.gradient[layer] + at + D, u, first);
            }
            times_row(u, scale);
            standardise_back(u, first, rstd1);
#pragma unroll
            for (int j = 0; j < 3; j++) {
                v[j].x += u[j].x;
                v[j].y += u[j].y;
            }
        };

        /* the projector */
        const int last_tile = (w - 1) * p.MT;
        for (int i = warp; i < own; i += WARPS) {
            row_values v;
            read_row(v, frames + (size_t)(i * p.H + step) * D);
            send<S>(x, (w - 1) * R + rank * own + i, v);
        }
        wu.fetch(p.saved.proj_out, PAIRS_D, 0, in_tile(0));
        wd.fetch(p.saved.proj_in, PAIRS_HIDDEN, rank * sh::DOWN_PAIRS, out_tile);
        cluster_sync(); /* x is complete */
#pragma unroll 1
        for (int chunk = 0; chunk < sh::IN_TILES / 2; chunk++) {
            if (chunk) wu.fetch(p.saved.proj_out, PAIRS_D, 0, in_tile(chunk));
            products(wu, x, X_ROW, last_tile, p.MT, [&](int row, int n, const float(&c)[4]) {
                int unit = (warp * sh::IN_TILES + 2 * chunk + n) * 8 + quad;
                float g[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int u = rank * sh::UNITS + unit + i % 2;
                    float scale = p.proj_norm_w[u] / sqrtf(p.proj_var[u] + p.batch_eps);
                    float pre =
                        p.saved
                            .projected[((size_t)step * p.saved.rows + row0 + row % R + i / 2 * 8) *
                                           HIDDEN +
                                       u];
                    g[i] = c[i] * scale *
                           gelu_slope((pre - p.proj_mean[u]) * scale + p.proj_norm_b[u]);
                }
                bf16 *to = h + (size_t)row * bs::H_ROW + unit;
                *reinterpret_cast<uint32_t *>(to) = pack(g[0], g[1]);
                *reinterpret_cast<uint32_t *>(to + 8 * bs::H_ROW) = pack(g[2], g[3]);
            });
        }
        __syncthreads();
        products(wd, h, bs::H_ROW, last_tile, p.MT, share);
        cluster_sync(); /* shares are complete, x is free */
        for (int t = warp; t < own * w; t += WARPS) {
            int i = t / w, token = t % w, layer = p.layers - 1;
            row_values v, from, weight;
#pragma unroll
            for (int j = 0; j < 3; j++) v[j] = make_float2(0, 0);
            if (token == w - 1) {
                shares(v, token * R + rank * own + i);
                read_row(from, p.saved.last + ((size_t)step * p.saved.rows + mine + i) * D);
                read_row(weight, p.norm_w);
                float rstd = standardise(from, p.norm_eps);
                times_row(v, weight);
                standardise_back(v, from, rstd);
                open_gate(v, layer, i, token, 5, p.saved.y2);
            }
            write_row(stream + (size_t)(i * N + token) * D, v);
        }

        for (int layer = p.layers - 1; layer >= 0; layer--) {
            const block_weights &b = p.block[layer];
            const turned_weights &turned = p.saved.block[layer];
            const int asked = layer + 1 == p.layers ? 1 : w;
            const int tile0 = (w - asked) * p.MT, tiles = asked * p.MT;
            wu.fetch(turned.down, PAIRS_D, 0, in_tile(0));
            wd.fetch(turned.in, PAIRS_HIDDEN, rank * sh::DOWN_PAIRS, out_tile);
            cluster_sync(); /* x is complete, shares were read */

            /* MLP */
#pragma unroll 1
            for (int chunk = 0; chunk < sh::IN_TILES / 2; chunk++) {
                if (chunk) wu.fetch(turned.down, PAIRS_D, 0, in_tile(chunk));
                products(wu, x, X_ROW, tile0, tiles, [&](int row, int n, const float(&c)[4]) {
                    int unit = (warp * sh::IN_TILES + 2 * chunk + n) * 8 + quad;
                    const float *pre = p.saved.pre +
                                       saved_at(p, step, layer, row0 + row % R, row / R) * HIDDEN +
                                       rank * sh::UNITS + unit;
                    float2 u = *reinterpret_cast<const float2 *>(pre);
                    float2 v = *reinterpret_cast<const float2 *>(pre + (size_t)8 * N * HIDDEN);
                    bf16 *to = h + (size_t)row * bs::H_ROW + unit;
                    *reinterpret_cast<uint32_t *>(to) =
                        pack(c[0] * gelu_slope(u.x), c[1] * gelu_slope(u.y));
                    *reinterpret_cast<uint32_t *>(to + 8 * bs::H_ROW) =
                        pack(c[2] * gelu_slope(v.x), c[3] * gelu_slope(v.y));
                });
            }
            __syncthreads();
            products(wd, h, bs::H_ROW, tile0, tiles, share);
            weights<sh::OWN_HEADS, PAIRS_D> up; /* of attention's result */
            up.fetch(turned.out, PAIRS_D, 0, [=](int n) {
                return rank * sh::OWN_HEADS * (WIDTH / 8) + warp * sh::OWN_HEADS + n;
            });
            cluster_sync(); /* shares are complete, x is free */
            for (int t = warp; t < own * asked; t += WARPS) {
                int i = t / asked, token = w - asked + t % asked;
                row_values v, u;
                read_row(v, stream + (size_t)(i * N + token) * D);
                shares(u, token * R + rank * own + i);
                through_norms(v, u, layer, i, token, 3, p.saved.x2, b.mlp_norm_w);
                write_row(stream + (size_t)(i * N + token) * D, v);
                open_gate(v, layer, i, token, 2, p.saved.y1);
            }
            cluster_sync(); /* x is complete, shares were read */

            /* attention */
            products(up, x, X_ROW, tile0, tiles, [&](int row, int n, const float(&c)[4]) {
                float *to = da + (size_t)row * bs::F_ROW + (warp * sh::OWN_HEADS + n) * 8 + quad;
                *reinterpret_cast<float2 *>(to) = make_float2(c[0], c[1]);
                *reinterpret_cast<float2 *>(to + 8 * bs::F_ROW) = make_float2(c[2], c[3]);
            });
            __syncthreads();
            attend_back<S>(p, step, layer, h, da, bs::F_ROW, R, row0, w, asked);
            weights<sh::OUT_TILES, sh::OWN_HEADS * 6> down;
#pragma unroll
            for (int n = 0; n < sh::OUT_TILES; n++)
#pragma unroll
                for (int k = 0; k < sh::OWN_HEADS * 6; k++) { /* q, k, v of each own head */
                    int head = rank * sh::OWN_HEADS + k / 6;
                    int pair = k % 6 / 2 * PAIRS_INNER + head * 2 + k % 2;
                    down.b[n][k] = load_packed(
                        turned.qkv + ((size_t)out_tile(n) * 3 * PAIRS_INNER + pair) * 32 + lane);
                }
            __syncthreads();
            products(down, h, bs::H_ROW, 0, w * p.MT, share);
            cluster_sync(); /* shares are complete, x is free */
            for (int t = warp; t < own * w; t += WARPS) {
                int i = t / w, token = t % w, frame = seen - w + token - p.C;
                row_values v, u;
                read_row(v, stream + (size_t)(i * N + token) * D);
                shares(u, token * R + rank * own + i);
                through_norms(v, u, layer, i, token, 0, p.saved.x1, b.attn_norm_w);
                write_row(stream + (size_t)(i * N + token) * D, v);
                if (layer) {
                    open_gate(v, layer - 1, i, token, 5, p.saved.y2);
                } else if (frame >= 0) {
                    row_values sum;
                    float *at = frames + (size_t)(i * p.H + frame) * D;
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
        __syncthreads(); /* frames are read by other warps */
    }
    cluster_sync(); /* nobody leaves while others read its shared memory */
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_BACK_CUH */
