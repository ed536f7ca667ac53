/* tiles_attention.cuh - attention of tiles.cu: each warpgroup has one token of the
 * window; keys and values of a head pass from the tokens before through shared memory, every thread
 * leaving what the same thread of the others needs, so that nothing but barriers is between them.
 */
#ifndef CGS_ROLLOUT_CUDA_SM90_TILES_ATTENTION_CUH
#define CGS_ROLLOUT_CUDA_SM90_TILES_ATTENTION_CUH

#include "rollout/cuda/sm90/tiles.cuh"

namespace {

#if CGS_HAS_WGMMA

/* named barriers: of a warpgroup; a token's keys are there, its values are, both were read */
enum { OWN = 1, KEYS = OWN + TOKENS, VALUES = KEYS + TOKENS - 1, READ = VALUES + TOKENS - 1 };

__device__ __forceinline__ float2 pair_of(uint32_t u) {
    return make_float2(__uint_as_float(u << 16), __uint_as_float(u & 0xffff0000u));
}

/* a thread of a warpgroup: its token and its two plans */
struct token {
    int group, w; /* which token, of how many in the window */
    int active;   /* tokens that are computed: all, or the newest alone */
    bool grows;   /* keys and values are used again in the next step */
    int at;       /* number of the token since the first latent of the context */
    int plan[2];
    mutable far_clock clock;

    /* phases of each warpgroup */
    enum { WAITED, MULTIPLIED, ATTENDED, ACTIVATED, ROWS };
    __device__ void mark(int phase) const { clock.mark(5 * group + phase); }
    __device__ bool newest() const { return group + 1 == w; }
    /* keys and values of the tokens before come from the KV cache, not from other warpgroups */
    __device__ bool uses_cache() const { return active < w; }
    /* slice of a layer's modulation for plan h, from this lane's columns on */
    __device__ const float *modulation(const tiles_task &p, int layer, int h, int slice) const {
        return p.modulation + (((size_t)plan[h] * p.T + at) * p.layers + layer) * 6 * D +
               slice * D + 4 * (threadIdx.x % 4);
    }
    /* threads that exchange keys of token j */
    __device__ int readers(int j) const { return (w - j) * WARPGROUP; }
};

/* ---- attention ------------------------------------------------------------------------------- */

__device__ __forceinline__ void round_all(uint32_t (&a)[4][4], const float (&c)[32]) {
#pragma unroll
    for (int i = 0; i < 16; i++) a[i / 4][i % 4] = pack(c[2 * i], c[2 * i + 1]);
}
/* adds products of both rows: even registers are of one, odd of the other */
__device__ __forceinline__ void add_dots(float (&s)[2], const uint32_t (&q)[4],
                                         const uint32_t (&k)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 a = pair_of(q[i]), b = pair_of(k[i]);
        s[i % 2] += a.x * b.x + a.y * b.y;
    }
}
__device__ __forceinline__ void finish_dots(float (&s)[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) s[h] = quad_sum(s[h]) * 0.125f; /* 1 / sqrt(WIDTH) */
}
/* a thread's keys (i < 4) and values of token j */
__device__ __forceinline__ void read_keys(uint32_t (&k)[4], const tile_smem &m, int j, int i) {
    uint4 v = m.keys[j][i][threadIdx.x % WARPGROUP];
    k[0] = v.x, k[1] = v.y, k[2] = v.z, k[3] = v.w;
}
__device__ __forceinline__ uint4 four(const uint32_t (&k)[4]) {
    return make_uint4(k[0], k[1], k[2], k[3]);
}
__device__ __forceinline__ void store_keys(tile_smem &m, int j, int i, const uint32_t (&k)[4]) {
    m.keys[j][i][threadIdx.x % WARPGROUP] = four(k);
}

/* The same in the KV cache, for steps to come. */
__device__ __forceinline__ uint4 *kv_cache_at(const tiles_task &p, int layer, int head, int j) {
    size_t at = ((size_t)blockIdx.x * p.layers + layer) * HEADS + head;
    return p.cache + ((at * (TOKENS - 1) + j) * 8) * WARPGROUP + threadIdx.x % WARPGROUP;
}
/* starts copying keys and values of a head of the tokens before; a thread's own, so it has to
 * wait for nobody else */
__device__ __forceinline__ void load_kv_cache(const tiles_task &p, tile_smem &m, const token &t,
                                              int layer, int head) {
    for (int j = 0; j < t.group; j++) {
        const uint4 *from = kv_cache_at(p, layer, head, j);
#pragma unroll
        for (int i = 0; i < 8; i++)
            cp_async_16((bf16 *)&m.keys[j][i][threadIdx.x % WARPGROUP],
                        (const bf16 *)(from + i * WARPGROUP));
    }
    cp_async_commit();
}

/* score[0], [1]: of the tokens before, then of the token itself */
typedef float scores[TOKENS][2];

/* scores of the tokens before; those that exist are the same for all threads of a warpgroup */
__device__ __forceinline__ void compare(const token &t, const tile_smem &m,
                                        const uint32_t (&q)[4][4], scores &score) {
#pragma unroll
    for (int j = 0; j < TOKENS - 1; j++) {
        score[j][0] = score[j][1] = 0;
        if (j >= t.group) continue;
        if (!t.uses_cache()) bar_sync(KEYS + j, t.readers(j));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t k[4];
            read_keys(k, m, j, i);
            add_dots(score[j], q[i], k);
        }
        finish_dots(score[j]);
    }
}

/* a = the head's result; v: the token's own values */
__device__ __forceinline__ void attend(const token &t, const tile_smem &m, const scores &score,
                                       float (&v)[32], uint32_t (&a)[4][4]) {
    float most[2], sum[2], weight[2];
    const float base = 1.44269504f; /* exponentials by powers of two */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        most[h] = score[TOKENS - 1][h];
#pragma unroll
        for (int j = 0; j < TOKENS - 1; j++)
            if (j < t.group) most[h] = fmaxf(most[h], score[j][h]);
        sum[h] = weight[h] = exp2_fast((score[TOKENS - 1][h] - most[h]) * base);
    }
#pragma unroll
    for (int i = 0; i < 32; i++) v[i] *= weight[i / 2 % 2];
#pragma unroll
    for (int j = 0; j < TOKENS - 1; j++) {
        if (j >= t.group) continue;
        if (!t.uses_cache()) bar_sync(VALUES + j, t.readers(j));
#pragma unroll
        for (int h = 0; h < 2; h++) {
            weight[h] = exp2_fast((score[j][h] - most[h]) * base);
            sum[h] += weight[h];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t k[4];
            read_keys(k, m, j, 4 + i);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float2 of = pair_of(k[l]);
                v[8 * i + 2 * l] += weight[l % 2] * of.x;
                v[8 * i + 2 * l + 1] += weight[l % 2] * of.y;
            }
        }
        if (!t.uses_cache()) bar_arrive(READ + j, t.readers(j));
    }
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] = 1.0f / sum[h];
#pragma unroll
    for (int i = 0; i < 32; i++) v[i] *= sum[i / 2 % 2];
    round_all(a, v);
}

/* c = x times the 64 outputs of slab s, which is given back */
__device__ __forceinline__ void project(const tiles_task &p, tile_smem &m, const token &t,
                                        float (&c)[32], int s) {
    await(m, s);
    t.mark(token::WAITED);
    into_units(c, m, t.group, s);
    t.mark(token::MULTIPLIED);
    release(p, m, s, t.active);
}

/* four registers of keys or values, rounded */
__device__ __forceinline__ void round_four(uint32_t (&k)[4], const float (&c)[32], int i) {
#pragma unroll
    for (int j = 0; j < 4; j++) k[j] = pack(c[8 * i + 2 * j], c[8 * i + 2 * j + 1]);
}

/* y = what attention gives, from slab s on */
__device__ __forceinline__ void attention(const tiles_task &p, tile_smem &m, const token &t,
                                          row_sums &y, int layer, int s) {
    if (t.uses_cache()) load_kv_cache(p, m, t, layer, 0);
#pragma unroll 1
    for (int head = 0; head < HEADS; head++, s += HEAD_SLABS) {
        float c[32];
        uint32_t q[4][4];
        scores score;
        project(p, m, t, c, s);
        round_all(q, c);

        project(p, m, t, c, s + 1);
        /* the others have read the head before, if there was one in this step */
        if (!t.newest() && (layer || head)) bar_sync(READ + t.group, t.readers(t.group));
        score[TOKENS - 1][0] = score[TOKENS - 1][1] = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t k[4];
            round_four(k, c, i);
            if (!t.newest()) store_keys(m, t.group, i, k);
            if (t.grows) kv_cache_at(p, layer, head, t.group)[i * WARPGROUP] = four(k);
            add_dots(score[TOKENS - 1], q[i], k);
        }
        finish_dots(score[TOKENS - 1]);
        if (!t.newest()) bar_arrive(KEYS + t.group, t.readers(t.group));
        cp_async_wait<0>();
        compare(t, m, q, score);

        project(p, m, t, c, s + 2);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t k[4];
            round_four(k, c, i);
            if (!t.newest()) store_keys(m, t.group, 4 + i, k);
            if (t.grows) kv_cache_at(p, layer, head, t.group)[(4 + i) * WARPGROUP] = four(k);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float2 v = pair_of(k[j]);
                c[8 * i + 2 * j] = v.x, c[8 * i + 2 * j + 1] = v.y;
            }
        }
        if (!t.newest()) bar_arrive(VALUES + t.group, t.readers(t.group));
        attend(t, m, score, c, q);
        if (t.uses_cache() && head + 1 < HEADS) load_kv_cache(p, m, t, layer, head + 1);
        t.mark(token::ATTENDED);
        await(m, s + 3);
        t.mark(token::WAITED);
        into_rows(y, q, m, s + 3, head > 0);
        t.mark(token::MULTIPLIED);
        release(p, m, s + 3, t.active);
    }
}

/* a token whose own result is not needed leaves its keys and values; it takes part in all barriers
 */
__device__ __forceinline__ void keys_only(const tiles_task &p, tile_smem &m, const token &t,
                                          int layer, int s) {
#pragma unroll 1
    for (int head = 0; head < HEADS; head++, s += HEAD_SLABS) {
        float c[32];
        await(m, s);
        release(p, m, s, t.active);
#pragma unroll 1
        for (int part = 0; part < 2; part++) {
            project(p, m, t, c, s + 1 + part);
            if (part == 0 && (layer || head)) bar_sync(READ + t.group, t.readers(t.group));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t k[4];
                round_four(k, c, i);
                store_keys(m, t.group, 4 * part + i, k);
                if (t.grows)
                    kv_cache_at(p, layer, head, t.group)[(4 * part + i) * WARPGROUP] = four(k);
            }
            bar_arrive((part ? VALUES : KEYS) + t.group, t.readers(t.group));
            for (int j = 0; j < t.group; j++) bar_sync((part ? VALUES : KEYS) + j, t.readers(j));
        }
        for (int j = 0; j < t.group; j++) bar_arrive(READ + j, t.readers(j));
        await(m, s + 3);
        release(p, m, s + 3, t.active);
    }
    bar_sync(READ + t.group, t.readers(t.group));
}

#endif /* CGS_HAS_WGMMA */

} // namespace

#endif /* CGS_ROLLOUT_CUDA_SM90_TILES_ATTENTION_CUH */
