/* stream.cu - attention on tensor cores for windows of any length, with dropout: bf16
 * heads of width 64.
 *
 * A block takes 64 rows of one head, 16 per warp, and the other side passes by in tiles of 64 rows,
 * the next on its way while one is used:
 *   forward   64 queries; k, v pass by
 *   dq        64 queries and their dout; k, v pass by
 *   dk, dv    64 keys and values; q, dout and their lse and row sums pass by
 * Tiles that the mask hides from all 64 rows are not loaded, and of the others a warp leaves out
 * what none of its 16 rows sees.  Every sum is made by one warp, in order.
 *
 * Dropout follows from the indices of a probability, so each of the three draws it again. */
#include "ops/cuda/attention/mma.cuh"

namespace {

enum { WARPS = 4, ROWS = WARPS * TILE /* of a block, and of a tile that passes by */ };

/* which rows a block has; blocks of the last rows, which see most, begin first */
struct block_rows {
    int b, h, head, block, row0;
    __device__ __forceinline__ block_rows(const attention_shape &s, int first, int blocks) {
        head = blockIdx.x / blocks;
        b = head / s.heads;
        h = head % s.heads;
        block = first + blocks - 1 - (int)(blockIdx.x % blocks);
        row0 = block * ROWS;
    }
};

/* Tile n of two matrices of (T,64) into the half of the ring that is its turn. */
__device__ __forceinline__ void fetch(bf16 *ring, const bf16 *x, size_t x_row, const bf16 *y,
                                      size_t y_row, int T, int n) {
    bf16 *to = ring + (n & 1) * 2 * ROWS * WIDTH;
    int row0 = n * ROWS, rows = T - row0 < ROWS ? T - row0 : ROWS;
    copy_rows(to, x + row0 * x_row, rows, ROWS, x_row);
    copy_rows(to + ROWS * WIDTH, y + row0 * y_row, rows, ROWS, y_row);
}

/* the warp's two rows per lane, as they see others: keys below seen[half] */
__device__ __forceinline__ void visible(int (&seen)[2], const attention_shape &s, int i0) {
    for (int half = 0; half < 2; half++) {
        int i = i0 + threadIdx.x % 32 / 4 + 8 * half;
        seen[half] = i < s.T ? s.limit(i) : 0;
    }
}
/* ... and the keys that any of the warp's rows sees */
__device__ __forceinline__ int keys_of(const attention_shape &s, int i0) {
    return i0 < s.T ? s.limit(i0 + TILE - 1 < s.T ? i0 + TILE - 1 : s.T - 1) : 0;
}

template <class Keep>
__global__ void __launch_bounds__(32 * WARPS, Keep::some ? 3 : 4)
    stream_forward(bf16 *out, bf16 *residual, float *lse, const bf16 *qkv, int first, int blocks,
                   attention_shape s) {
    extern __shared__ __align__(16) bf16 ring[]; /* two of k, v: (64, 64) each */
    block_rows my(s, first, blocks);
    int lane = threadIdx.x % 32, i0 = my.row0 + threadIdx.x / 32 * TILE;
    size_t in_row = s.in_row();
    const bf16 *q = qkv + s.q(my.b, my.h), *keys = q + s.part(), *values = q + 2 * s.part();
    int last = my.row0 + ROWS - 1 < s.T ? my.row0 + ROWS - 1 : s.T - 1;
    int tiles = (s.limit(last) + ROWS - 1) / ROWS, end = keys_of(s, i0), seen[2];
    running<> w = {};
    w.top[0] = w.top[1] = -INFINITY;
    regs4 rows[4];
    load_rows(rows, q, i0, s.T, in_row);
    visible(seen, s, i0);
    Keep keep(s, my.b, my.h, i0);
    float scale = s.scale * LOG2E;
    fetch(ring, keys, in_row, values, in_row, s.T, 0);
    cp_async_commit();
    for (int n = 0; n < tiles; n++) {
        if (n + 1 < tiles) fetch(ring, keys, in_row, values, in_row, s.T, n + 1);
        cp_async_commit(); /* an empty group at the end keeps the count */
        cp_async_wait<1>();
        __syncthreads();
        const bf16 *k = ring + (n & 1) * 2 * ROWS * WIDTH, *v = k + ROWS * WIDTH;
        const int limit[2] = {seen[0] - n * ROWS, seen[1] - n * ROWS};
        for (int j0 = 0; j0 < ROWS && n * ROWS + j0 < end; j0 += 32)
            add_keys<2>(w, rows, k, v, j0, limit, scale, keep, n * ROWS);
        __syncthreads(); /* before the next but one comes into the same place */
    }
    float total[2] = {quad_sum(w.sum[0]), quad_sum(w.sum[1])};
    float upper = 1.0f / weight_of<Keep>(w, 0, total[0]);
    float lower = 1.0f / weight_of<Keep>(w, 1, total[1]);
    store_rows(out + s.out(my.b, my.h), w.out, i0, s.end, s.out_row(), upper, lower, false,
               s.first);
    if (residual) {
        leave_residual(w.out, upper, lower);
        store_rows(residual + s.out(my.b, my.h), w.out, i0, s.end, s.out_row(), 1, 1, false);
    }
    for (int half = 0; half < 2; half++) {
        int i = i0 + lane / 4 + 8 * half;
        if (lane % 4 == 0 && i < s.T)
            lse[(size_t)my.head * s.T + i] = w.top[half] / LOG2E + logf(total[half]);
    }
}

/* parts (B * blocks, 3*heads*64): sums over a block's tokens of what goes to dqkv, or NULL */
template <class Keep>
__global__ void __launch_bounds__(32 * WARPS, 3)
    stream_dq(bf16 *dqkv, bool add, float *parts, const float *row_dots, const bf16 *dout,
              const float *lse, const bf16 *qkv, int blocks, attention_shape s) {
    extern __shared__ __align__(16) bf16 ring[]; /* two of k, v: (64, 64) each */
    __shared__ float columns[WARPS][WIDTH];
    for (int i = threadIdx.x; i < WARPS * WIDTH; i += 32 * WARPS) (&columns[0][0])[i] = 0;
    block_rows my(s, 0, blocks);
    int lane = threadIdx.x % 32, i0 = my.row0 + threadIdx.x / 32 * TILE;
    size_t in_row = s.in_row(), out_row = s.out_row();
    const bf16 *q = qkv + s.q(my.b, my.h), *keys = q + s.part(), *values = q + 2 * s.part();
    int last = my.row0 + ROWS - 1 < s.T ? my.row0 + ROWS - 1 : s.T - 1;
    int tiles = (s.limit(last) + ROWS - 1) / ROWS, end = keys_of(s, i0), seen[2];
    fetch(ring, keys, in_row, values, in_row, s.T, 0);
    cp_async_commit();
    regs4 rows[4], grads[4];
    float norm[2], sum[2], dq[8][4] = {{0}}, scale = s.scale * LOG2E;
    load_rows(rows, q, i0, s.T, in_row);
    load_rows(grads, dout + s.out(my.b, my.h), i0, s.T, out_row);
    visible(seen, s, i0);
    for (int half = 0; half < 2; half++) {
        int i = i0 + lane / 4 + 8 * half;
        size_t at = (size_t)my.head * s.T + i;
        norm[half] = i < s.T ? lse[at] * LOG2E : 0;
        sum[half] = i < s.T ? row_dots[at] : 0; /* rowsum(P dP), also with dropout */
    }
    Keep keep(s, my.b, my.h, i0);
    for (int n = 0; n < tiles; n++) {
        if (n + 1 < tiles) fetch(ring, keys, in_row, values, in_row, s.T, n + 1);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        const bf16 *k = ring + (n & 1) * 2 * ROWS * WIDTH, *v = k + ROWS * WIDTH;
        for (int j0 = 0; j0 < ROWS && n * ROWS + j0 < end; j0 += 16) {
            float p[2][4], dp[2][4];
            product_transposed(p, rows, k, j0);
            product_transposed(dp, grads, v, j0);
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int j = n * ROWS + j0 + 8 * t + 2 * (lane % 4) + i % 2, half = i / 2;
                    float P = j < seen[half] ? exp2_fast(p[t][i] * scale - norm[half]) : 0.0f;
                    if (Keep::some) dp[t][i] *= keep(lane / 4 + 8 * half, j);
                    p[t][i] = P * (dp[t][i] - sum[half]);
                }
            regs4 ds;
            as_factor(ds, p);
            product_plain(dq, ds, k, j0);
        }
        __syncthreads();
    }
    store_rows(dqkv + s.q(my.b, my.h), dq, i0, s.T, in_row, s.scale, s.scale, add);
    if (!parts) return;
    add_columns(columns[threadIdx.x / 32], dq, i0, s.T, s.scale);
    gather_columns(parts + ((size_t)my.b * blocks + my.block) * in_row + my.h * WIDTH, columns);
}

template <class Keep>
__global__ void __launch_bounds__(32 * WARPS, 3)
    stream_dkv(bf16 *dqkv, bool add, float *parts, const float *row_dots, const bf16 *dout,
               const float *lse, const bf16 *qkv, int blocks, attention_shape s) {
    extern __shared__ __align__(16) bf16 ring[]; /* two of q, dout: (64, 64) each */
    __shared__ float norms[2][ROWS], sums[2][ROWS], columns[2][WARPS][WIDTH];
    for (int i = threadIdx.x; i < 2 * WARPS * WIDTH; i += 32 * WARPS) (&columns[0][0][0])[i] = 0;
    int head = blockIdx.x / blocks, block = blockIdx.x % blocks, key0 = block * ROWS;
    int b = head / s.heads, h = head % s.heads, lane = threadIdx.x % 32;
    int j0 = key0 + threadIdx.x / 32 * TILE;
    size_t in_row = s.in_row(), out_row = s.out_row();
    const bf16 *q = qkv + s.q(b, h), *g = dout + s.out(b, h);
    /* queries before the block of the first key see none of these keys */
    int first = s.causal ? key0 / s.block * s.block / ROWS : 0, tiles = (s.T + ROWS - 1) / ROWS;
    int begin = s.causal ? j0 / s.block * s.block : 0;
    /* norms of tile n; beyond the last token every probability is exp(-inf) = 0 */
    auto fetch_norms = [&](int n) {
        for (int i = threadIdx.x; i < ROWS; i += 32 * WARPS) {
            int at = n * ROWS + i;
            norms[n & 1][i] = at < s.T ? lse[(size_t)head * s.T + at] * LOG2E : INFINITY;
            sums[n & 1][i] = at < s.T ? row_dots[(size_t)head * s.T + at] : 0;
        }
    };
    fetch(ring, q, in_row, g, out_row, s.T, first);
    fetch_norms(first);
    cp_async_commit();
    regs4 keys[4], values[4];
    load_rows(keys, q + s.part(), j0, s.T, in_row);
    load_rows(values, q + 2 * s.part(), j0, s.T, in_row);
    float dk[8][4] = {{0}}, dv[8][4] = {{0}}, scale = s.scale * LOG2E;
    for (int n = first; n < tiles; n++) {
        if (n + 1 < tiles) {
            fetch(ring, q, in_row, g, out_row, s.T, n + 1);
            fetch_norms(n + 1);
        }
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        const bf16 *rows = ring + (n & 1) * 2 * ROWS * WIDTH, *grads = rows + ROWS * WIDTH;
        Keep keep(s, b, h, n * ROWS);
        for (int i0 = 0; i0 < ROWS && n * ROWS + i0 < s.T; i0 += 16) {
            if (j0 >= s.T || n * ROWS + i0 + 15 < begin) continue;
            float p[2][4], dp[2][4]; /* rows are keys, columns queries */
            product_transposed(p, keys, rows, i0);
            product_transposed(dp, values, grads, i0);
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int at = i0 + 8 * t + 2 * (lane % 4) + i % 2, query = n * ROWS + at;
                    int key = j0 + lane / 4 + 8 * (i / 2);
                    bool seen = !s.causal || key < s.limit(query);
                    float P = seen ? exp2_fast(p[t][i] * scale - norms[n & 1][at]) : 0.0f;
                    float factor = Keep::some ? keep(at, key) : 1.0f;
                    p[t][i] = P * factor;
                    dp[t][i] = P * (dp[t][i] * factor - sums[n & 1][at]);
                }
            regs4 a;
            as_factor(a, p);
            product_plain(dv, a, grads, i0);
            as_factor(a, dp);
            product_plain(dk, a, rows, i0);
        }
        __syncthreads();
    }
    bf16 *to = dqkv + s.q(b, h);
    store_rows(to + s.part(), dk, j0, s.T, in_row, s.scale, s.scale, add);
    store_rows(to + 2 * s.part(), dv, j0, s.T, in_row, 1.0f, 1.0f, add);
    if (!parts) return;
    add_columns(columns[0][threadIdx.x / 32], dk, j0, s.T, s.scale);
    add_columns(columns[1][threadIdx.x / 32], dv, j0, s.T, 1.0f);
    parts += ((size_t)b * blocks + block) * in_row + h * WIDTH;
    gather_columns(parts + s.part(), columns[0]);
    gather_columns(parts + 2 * s.part(), columns[1]);
}

const size_t RING = 4 * ROWS * WIDTH * sizeof(bf16);

int blocks_of(const cgs_record *r) { return (r->in[0]->dim[1] + ROWS - 1) / ROWS; }

template <class Keep> void forward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    int first = s.first / ROWS, blocks = (s.end + ROWS - 1) / ROWS - first;
    unsigned grid = (unsigned)(r->in[0]->dim[0] * s.heads * blocks);
    stream_forward<Keep><<<grid, 32 * WARPS, RING, stream_of(d)>>>(
        (bf16 *)attention_result(r), attention_residual(r), (float *)r->saved[0]->data,
        (const bf16 *)r->in[0]->data, first, blocks, s);
    LAUNCHED(d, "attention");
}

template <class Keep> void backward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    const cgs_tensor *x = r->in[0], *y = r->out;
    int blocks = blocks_of(r);
    unsigned grid = (unsigned)(x->dim[0] * s.heads * blocks);
    float *row_dots = cgs_cuda_attention_row_dots(d, r),
          *parts = bias_parts(d, r, (size_t)x->dim[0] * (size_t)blocks);
    const float *lse = (const float *)r->saved[0]->data;
    const bf16 *dout = (const bf16 *)y->grad;
    stream_dq<Keep><<<grid, 32 * WARPS, RING, stream_of(d)>>>((bf16 *)x->grad, r->accumulate[0],
                                                              parts, row_dots, dout, lse,
                                                              (const bf16 *)x->data, blocks, s);
    LAUNCHED(d, "attention backward");
    stream_dkv<Keep><<<grid, 32 * WARPS, RING, stream_of(d)>>>((bf16 *)x->grad, r->accumulate[0],
                                                               parts, row_dots, dout, lse,
                                                               (const bf16 *)x->data, blocks, s);
    LAUNCHED(d, "attention backward");
    give_bias_parts(d, r, parts, (size_t)x->dim[0] * (size_t)blocks);
}

} // namespace

extern "C" {

/* Long: whole matrices would fill more than half of a multiprocessor's shared memory. */
bool cgs_cuda_attention_stream_fits(const cgs_device *, const cgs_record *, const cgs_record *r,
                                    const cgs_record *) {
    int T = r->in[0]->dim[1];
    bool is_long = 2 * (size_t)T * WIDTH * sizeof(bf16) > 100 * 1024;
    return is_bf16_attention(r) && T >= TILE && (is_long || r->arg.attention.dropout > 0);
}

cgs_status cgs_cuda_attention_stream_prepare(cgs_device *d, const cgs_record *r) {
    return need_row_dots(d, r, (size_t)r->in[0]->dim[0] * (size_t)blocks_of(r));
}

void cgs_cuda_attention_stream_forward(cgs_device *d, const cgs_record *r) {
    if (r->arg.attention.dropout > 0)
        forward<keep_drawn>(d, r);
    else
        forward<keep_all>(d, r);
}

void cgs_cuda_attention_stream_backward(cgs_device *d, const cgs_record *r) {
    if (r->arg.attention.dropout > 0)
        backward<keep_drawn>(d, r);
    else
        backward<keep_all>(d, r);
}

} /* extern "C" */
