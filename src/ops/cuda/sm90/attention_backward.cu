/* attention_backward.cu - the gradient of attention by warpgroups (wgmma), in one kernel: the
 * shapes of attention_forward.cu.
 *
 * A block takes one head; q, k, v and dout lie in shared memory whole.  Group g owns keys 64 g ..,
 * for which it sums dk and dv in registers, and walks over the queries:
 *   P^T = exp(k q^T - lse)    dP^T = v dout^T         rows are keys, columns 32 queries
 *   dv += P^T dout            dS^T = P^T (dP^T - row_dots)         dk += dS^T q
 * where row_dots = rowsum(P dP) comes from a kernel before (attention/mma.cu).
 * P and dS are factors of the next products as they lie in registers.  dq = dS k needs all keys:
 * every group leaves its dS^T of 64 queries in shared memory, and one of the first two groups
 * multiplies it there while the others go on with the next 64, in a second buffer.  So dq is
 * one product over all keys, scores are computed once, and every sum has one order.
 *
 * 257 tokens are 4 x 64 and one more.  Keys from 256 on (at most 8) are columns instead of rows:
 * the last two groups take turns to make 64 queries x 8 keys of them, and dk^T = q^T dS,
 * dv^T = dout^T P.  Queries from 256 on are a piece of 16 columns. */
#include "ops/cuda/clocks.cuh"
#include "ops/cuda/sm90/attention_wgmma.cuh"

namespace {

enum { GROUPS = 4, ALL = GROUPS * WARPGROUP, PIECE = 32, MAKERS = 2 /* groups that make dq */ };
enum { LEFT = EXTRA * WIDTH };         /* sums of dk (or dv) of the keys from 256 on */
enum { FULL = 1, EMPTY = 3, OWN = 5 }; /* named barriers: two buffers each, one per group */

/* Phases of clocks.cuh, as the first thread of group 0 counts them; 8 more are those of group 2 */
enum { FIRST_ROWS, SCORES, EXPONENTIALS, SUMS, OTHER_ROWS, LAST_KEYS, WAITING, LEAVING };

/* Shared memory of a block. */
struct block_memory {
    bf16 *q, *k, *v, *g; /* (PADDED, 64) each; g is dout */
    bf16 *ds;            /* two of (PADDED, 64): keys x 64 queries */
    bf16 *kept;          /* two of (8, 64): P^T of the keys from 256 on */
    float *norms, *sums; /* (PADDED): lse in units of log 2, rowsum(P dP) */
    float *left;         /* two of (2, LEFT): dk and dv of these keys */
    float *columns;      /* (4 MAKERS, 64): sums of dq over a warp's rows */
};

size_t shared_bytes() {
    return (6 * MATRIX + 2 * EXTRA * WIDTH) * sizeof(bf16) +
           (2 * PADDED + 4 * LEFT + 4 * MAKERS * WIDTH) * sizeof(float) + SLACK;
}

#if CGS_HAS_WGMMA

__device__ __forceinline__ block_memory memory_of(unsigned char *shared) {
    block_memory m;
    m.q = first_matrix(shared);
    m.k = m.q + MATRIX;
    m.v = m.k + MATRIX;
    m.g = m.v + MATRIX;
    m.ds = m.g + MATRIX;
    m.kept = m.ds + 2 * MATRIX;
    m.norms = (float *)(m.kept + 2 * EXTRA * WIDTH);
    m.sums = m.norms + PADDED;
    m.left = m.sums + PADDED;
    m.columns = m.left + 4 * LEFT;
    return m;
}

/* Loads what the first 64 queries need; cp.async of the other rows of q and dout is pending after
 * it. */
__device__ __forceinline__ void load_first(const block_memory &m, const bf16 *q, const bf16 *dout,
                                           const float *row_dots, const float *lse,
                                           const attention_shape &s) {
    size_t in_row = s.in_row(), out_row = s.out_row();
    int later = s.T - BLOCK, padded = PADDED - BLOCK;
    copy_rows(m.k, q + s.part(), s.T, PADDED, in_row);
    copy_rows(m.v, q + 2 * s.part(), s.T, PADDED, in_row);
    copy_rows(m.q, q, BLOCK, BLOCK, in_row);
    copy_rows(m.g, dout, BLOCK, BLOCK, out_row);
    cp_async_commit();
    copy_rows(m.q + BLOCK * WIDTH, q + BLOCK * in_row, later, padded, in_row);
    copy_rows(m.g + BLOCK * WIDTH, dout + BLOCK * out_row, later, padded, out_row);
    cp_async_commit();
    for (int i = threadIdx.x; i < PADDED; i += ALL) { /* beyond the last token exp(-inf) = 0 */
        m.norms[i] = i < s.T ? lse[i] * LOG2E : INFINITY;
        m.sums[i] = i < s.T ? row_dots[i] : 0;
    }
    for (int i = threadIdx.x; i < 4 * MAKERS * WIDTH; i += ALL) m.columns[i] = 0;
    /* rows of dS that no group writes: keys that are not there */
    for (int i = threadIdx.x; i < 2 * (PADDED - WHOLE) * 8; i += ALL) {
        int buffer = i / ((PADDED - WHOLE) * 8), chunk = i % ((PADDED - WHOLE) * 8);
        reinterpret_cast<uint4 *>(m.ds + buffer * MATRIX + WHOLE * WIDTH)[chunk] =
            make_uint4(0, 0, 0, 0);
    }
    cp_async_wait<1>();
    fence_proxy_async();
    __syncthreads();
}

__device__ __forceinline__ void load_remaining() {
    cp_async_wait<0>();
    fence_proxy_async();
    __syncthreads();
}

struct group_clock {
    phase_clock clock;
    int group;
    __device__ __forceinline__ void start(int own) {
        group = own;
        clock.start(blockIdx.x == 0 && threadIdx.x % WARPGROUP == 0 && own % 2 == 0);
    }
    __device__ __forceinline__ void mark(int phase) { clock.mark(4 * group + phase); }
};

/* Queries i0 .. i0 + N - 1 for the group's keys; dS^T goes to ds. */
template <int N>
__device__ __forceinline__ void take_queries(float (&dk)[32], float (&dv)[32],
                                             const block_memory &m, bf16 *ds, int key0, int i0,
                                             float scale, group_clock &clock) {
    int lane = threadIdx.x % 32, row = key0 + threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
    float p[N / 2], dp[N / 2];
    uint64_t q = smem_descriptor(m.q + i0 * WIDTH), g = smem_descriptor(m.g + i0 * WIDTH);
    uint64_t k = smem_descriptor(m.k + key0 * WIDTH), v = smem_descriptor(m.v + key0 * WIDTH);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        wgmma<false, false>(p, advance_along_rows(k, i), advance_along_rows(q, i), i > 0);
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        wgmma<false, false>(dp, advance_along_rows(v, i), advance_along_rows(g, i), i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(p);
    wgmma_fence_registers(dp);
    clock.mark(SCORES);
    regs4 P[N / 16], dS[N / 16];
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        float norm[2], sum[2];
        load<2>(norm, m.norms + i0 + 8 * n + 2 * (lane % 4));
        load<2>(sum, m.sums + i0 + 8 * n + 2 * (lane % 4));
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float x = exp2_fast(fmaf(p[4 * n + e], scale, -norm[e % 2]));
            p[4 * n + e] = x;
            dp[4 * n + e] = x * (dp[4 * n + e] - sum[e % 2]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int e = 4 * n + 2 * half, to = 2 * (n % 2) + half;
            P[n / 2][to] = pack(p[e], p[e + 1]);
            dS[n / 2][to] = pack(dp[e], dp[e + 1]);
            const bf16 *at = chunk_at(ds, row + 8 * half, i0 % BLOCK / 8 + n) + 2 * (lane % 4);
            *reinterpret_cast<uint32_t *>(const_cast<bf16 *>(at)) = dS[n / 2][to];
        }
    }
    clock.mark(EXPONENTIALS);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < N / 16; i++) wgmma<true>(dv, P[i], advance_down_rows(g, i), true);
#pragma unroll
    for (int i = 0; i < N / 16; i++) wgmma<true>(dk, dS[i], advance_down_rows(q, i), true);
    wgmma_commit();
    wgmma_wait<0>(); /* more under way at a time would need more registers than there are */
    wgmma_fence_registers(dk);
    wgmma_fence_registers(dv);
    clock.mark(SUMS);
}

/* The keys from 256 on for the queries of a tile, of which the first 16 STEPS may be there: their
 * dS^T goes to ds too, dk and dv are added up in left (2, 8, 64). */
template <int STEPS>
__device__ __forceinline__ void take_extra(const block_memory &m, bf16 *ds, bf16 *kept, float *left,
                                           int tile, int T, float scale, int barrier) {
    int lane = threadIdx.x % 32, mine = threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
    float p[4], dp[4];
    uint64_t q = smem_descriptor(m.q + tile * BLOCK * WIDTH),
             g = smem_descriptor(m.g + tile * BLOCK * WIDTH);
    uint64_t k = smem_descriptor(m.k + WHOLE * WIDTH), v = smem_descriptor(m.v + WHOLE * WIDTH);
    bf16 *last = ds + WHOLE * WIDTH;
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        wgmma<false, false>(p, advance_along_rows(q, i), advance_along_rows(k, i), i > 0);
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        wgmma<false, false>(dp, advance_along_rows(g, i), advance_along_rows(v, i), i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(p);
    wgmma_fence_registers(dp);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = mine + 8 * half, i = tile * BLOCK + query;
        float norm = i < T ? m.norms[i] : 0, sum = i < T ? m.sums[i] : 0;
#pragma unroll
        for (int e = 0; e < 2; e++) {
            int key = 2 * (lane % 4) + e, at = (int)(chunk_at(ds, key, query / 8) - ds) + query % 8;
            bool there = i < T && WHOLE + key < T;
            float x = exp2_fast(fmaf(p[2 * half + e], scale, -norm));
            kept[at] = narrow<bf16>(there ? x : 0.0f);
            last[at] = narrow<bf16>(there ? x * (dp[2 * half + e] - sum) : 0.0f);
        }
    }
    fence_proxy_async();
    bar_sync(barrier, WARPGROUP);
    float dk[4], dv[4];
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        wgmma<true, false>(dv, advance_down_rows(g, i),
                           advance_along_rows(smem_descriptor(kept), i), i > 0);
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        wgmma<true, false>(dk, advance_down_rows(q, i),
                           advance_along_rows(smem_descriptor(last), i), i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(dv);
    wgmma_fence_registers(dk);
#pragma unroll
    for (int e = 0; e < 4; e++) { /* the group's second tile and later ones add */
        float *to = left + (2 * (lane % 4) + e % 2) * WIDTH + mine + e / 2 * 8;
        to[0] = (tile < MAKERS ? 0.0f : to[0]) + dk[e];
        to[LEFT] = (tile < MAKERS ? 0.0f : to[LEFT]) + dv[e];
    }
}

/* Lanes 4 COUNT apart exchange halves of the 2 COUNT sums they have, and add: COUNT are left. */
template <int COUNT> __device__ __forceinline__ void exchange(float (&c)[4]) {
    bool high = threadIdx.x & (4 * COUNT);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        float other = __shfl_xor_sync(0xffffffffu, high ? c[i] : c[i + COUNT], 4 * COUNT);
        c[i] = (high ? c[i + COUNT] : c[i]) + other;
    }
}

/* Adds the columns of v (64,64), a warp's 16 rows of it, to sums (64) that are the warp's own;
 * rows from `rows` on do not count. */
__device__ __forceinline__ void add_columns(float *sums, const float (&v)[32], int row0, int rows,
                                            float scale) {
    int lane = threadIdx.x % 32, row = row0 + threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) { /* 16 columns at a time: few registers */
        float c[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int at = 8 * quarter + i / 2 * 4 + i % 2;
            c[i] = (row < rows ? v[at] : 0.0f) + (row + 8 < rows ? v[at + 2] : 0.0f);
        }
        exchange<2>(c);
        exchange<1>(c);
        c[0] += __shfl_xor_sync(0xffffffffu, c[0], 16);
        /* which column is left: 8 of them by bit 3 of the lane, then 2, then bit 2 */
        if (lane < 16)
            sums[16 * quarter + lane / 8 * 8 + 2 * (lane % 4) + lane / 4 % 2] += scale * c[0];
    }
}

/* dq of a tile from dS^T of all keys */
__device__ __forceinline__ void make_dq(float (&dq)[32], const block_memory &m, const bf16 *ds) {
    uint64_t k = smem_descriptor(m.k), factor = smem_descriptor(ds);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < PADDED / 16; i++)
        wgmma<true, true>(dq, advance_down_rows(factor, i), advance_down_rows(k, i), i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(dq);
}

/* What is left when the groups' own keys are out: keys from 256 on, and sums over tokens. */
__device__ __forceinline__ void finish(bf16 *dqkv, bool add, float *parts, const block_memory &m,
                                       const float *columns, const attention_shape &s) {
    int rows = s.T > WHOLE ? s.T - WHOLE : 0;
    for (int e = threadIdx.x; e < 2 * rows * WIDTH; e += ALL) {
        int c = e % WIDTH, row = e / WIDTH % rows, dv = e / WIDTH / rows;
        const float *at = m.left + dv * LEFT + row * WIDTH + c;
        float sum = (at[0] + at[2 * LEFT]) * (dv ? 1.0f : s.scale);
        give_one(dqkv + (1 + dv) * s.part() + (size_t)(WHOLE + row) * s.in_row() + c, sum, add);
    }
    if (!parts || threadIdx.x >= 3 * WIDTH) return;
    int c = threadIdx.x % WIDTH, which = threadIdx.x / WIDTH; /* dq, dk, dv */
    float all = 0;
    if (which == 0) {
        for (int w = 0; w < 4 * MAKERS; w++) all += m.columns[w * WIDTH + c];
    } else {
        for (int w = 0; w < 4 * GROUPS; w++)
            all += columns[((which - 1) * 4 * GROUPS + w) * WIDTH + c];
        for (int row = 0; row < rows; row++) {
            const float *at = m.left + (which - 1) * LEFT + row * WIDTH + c;
            all += (at[0] + at[2 * LEFT]) * (which == 2 ? 1.0f : s.scale);
        }
    }
    parts[which * s.part() + c] = all;
}

#endif

/* parts (B, 3*heads*64): sums over tokens of what goes to dqkv, or NULL */
__global__ void __launch_bounds__(ALL, 1)
    groups_backward(bf16 *dqkv, bool add, float *parts, const bf16 *dout, const float *row_dots,
                    const float *lse, const bf16 *qkv, attention_shape s) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(16) unsigned char shared[];
    const block_memory m = memory_of(shared);
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads, group = own_group();
    int key0 = group * BLOCK, tiles = s.T > WHOLE ? WHOLE / BLOCK + 1 : WHOLE / BLOCK;
    group_clock clock;
    clock.start(group);
    dqkv += s.q(b, h);
    load_first(m, qkv + s.q(b, h), dout + s.out(b, h), row_dots + (size_t)blockIdx.x * s.T,
               lse + (size_t)blockIdx.x * s.T, s);
    clock.mark(FIRST_ROWS);
    float scale = s.scale * LOG2E, dk[32] = {0}, dv[32] = {0};
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        int side = tile % MAKERS;
        bf16 *ds = m.ds + side * MATRIX;
        bool maker = group == side;
        if (tile >= MAKERS && !maker) bar_sync(EMPTY + side, ALL);
        clock.mark(WAITING);
        if (tile < WHOLE / BLOCK) {
#pragma unroll 1
            for (int i0 = tile * BLOCK; i0 < (tile + 1) * BLOCK; i0 += PIECE)
                take_queries<PIECE>(dk, dv, m, ds, key0, i0, scale, clock);
        } else {
            take_queries<16>(dk, dv, m, ds, key0, tile * BLOCK, scale, clock);
        }
        if (tile == 0) load_remaining();
        clock.mark(OTHER_ROWS);
        if (s.T > WHOLE && group == MAKERS + side) {
            bf16 *kept = m.kept + side * EXTRA * WIDTH;
            float *left = m.left + side * 2 * LEFT;
            if (tile < WHOLE / BLOCK)
                take_extra<BLOCK / 16>(m, ds, kept, left, tile, s.T, scale, OWN + group);
            else
                take_extra<1>(m, ds, kept, left, tile, s.T, scale, OWN + group);
        }
        clock.mark(LAST_KEYS);
        fence_proxy_async();
        if (!maker) {
            bar_arrive(FULL + side, ALL);
            continue;
        }
        bar_sync(FULL + side, ALL);
        clock.mark(WAITING);
        float dq[32];
        make_dq(dq, m, ds);
        bar_sync(OWN + group, WARPGROUP); /* all warps of the group have read dS */
        if (tile + MAKERS < tiles) bar_arrive(EMPTY + side, ALL);
        if (parts)
            add_columns(m.columns + threadIdx.x / 32 * WIDTH, dq, tile * BLOCK, s.T, s.scale);
        /* out by way of rows that this group alone writes: the others are in theirs again */
        give_block(dqkv, dq, s.scale, s.scale, ds + key0 * WIDTH, tile * BLOCK, s.T, s.in_row(),
                   add);
        clock.mark(LEAVING);
    }
    bar_sync(OWN + group, WARPGROUP); /* all warps of the group have used its values */
    bf16 *place = m.v + key0 * WIDTH;
    give_block(dqkv + 2 * s.part(), dv, 1.0f, 1.0f, place, key0, s.T, s.in_row(), add);
    give_block(dqkv + s.part(), dk, s.scale, s.scale, place, key0, s.T, s.in_row(), add);
    __syncthreads();
    float *columns = (float *)m.ds, *own = columns + threadIdx.x / 32 * WIDTH;
    if (parts) {
        for (int i = threadIdx.x % 32; i < WIDTH; i += 32) own[i] = own[4 * GROUPS * WIDTH + i] = 0;
        __syncwarp();
        add_columns(own, dk, key0, s.T, s.scale);
        add_columns(own + 4 * GROUPS * WIDTH, dv, key0, s.T, 1.0f);
        parts += (size_t)b * s.in_row() + h * WIDTH;
    }
    __syncthreads();
    finish(dqkv, add, parts, m, columns, s);
    clock.mark(LEAVING);
#endif
}

} // namespace

extern "C" {

bool cgs_cuda_attention_wgmma_gradient_fits(const cgs_device *d, const cgs_record *,
                                            const cgs_record *r, const cgs_record *) {
    return fits_warpgroups(d, r);
}

cgs_status cgs_cuda_attention_wgmma_gradient_prepare(cgs_device *d, const cgs_record *r) {
    CGS_TRY(need_row_dots(d, r, (size_t)r->in[0]->dim[0]));
    cudaError_t e = cudaFuncSetAttribute(
        groups_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes());
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "attention backward");
}

void cgs_cuda_attention_wgmma_gradient_backward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    const cgs_tensor *x = r->in[0], *y = r->out;
    float *row_dots = cgs_cuda_attention_row_dots(d, r),
          *parts = bias_parts(d, r, (size_t)x->dim[0]);
    unsigned heads = (unsigned)(x->dim[0] * s.heads);
    groups_backward<<<heads, ALL, shared_bytes(), stream_of(d)>>>(
        (bf16 *)x->grad, r->accumulate[0], parts, (const bf16 *)y->grad, row_dots,
        (const float *)r->saved[0]->data, (const bf16 *)x->data, s);
    LAUNCHED(d, "attention backward");
    show_clocks(stream_of(d), CLOCK_ATTENTION, heads);
    give_bias_parts(d, r, parts, (size_t)x->dim[0]);
}

} /* extern "C" */
