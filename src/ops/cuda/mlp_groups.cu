/* mlp_groups.cu - forward from attention's result, or from the MLP of an encoder layer, to the norm
 * behind that MLP in one kernel, by warpgroups (wgmma): for a width of 192, many rows and compute
 * capability 9.0.
 *
 *   x' = x + a O^T + o    u = norm(x')                                  where a map is before it
 *   h = u W^T + b         g = gelu(h)    x" = x' + g V^T + c    y = norm(x")
 *
 *   a, u and y (n,192) bf16, O (192,192), W (m,192), V (192,m), h and g (n,m), x .. (n,192) f32
 *
 * Apart, these are five kernels (cuBLASLt and layernorm.cu, linear_gelu.cu, these two again) that
 * write and read rows in between; here u and g go from registers into the next product, and sums
 * start from x.  g is written only for a gradient, h only where that does not make it again
 * (mlp_slope.cu).
 *
 * A block has two groups of 64 rows, and hidden units pass by 64 at a time: slab i of W in one
 * of two buffers, of V in one of three, which O's three slabs use too.  While a group computes GELU
 * of slab i, tensor cores make its h of slab i + 1 and, before that, what slab i - 1 adds to the
 * sum.  In slab i all have used W of slab i and V of slab i - 2: W of i + 2 and V of i + 1 take
 * their places. */
#include "ops/cuda/group_rows.cuh"

namespace {

enum { GROUPS = 2, ALL = GROUPS * GROUP, SLAB = 64 };
enum { OWN = 1 };      /* barriers: one for each group */
enum { MOST = 1024 };  /* hidden units: their biases lie in shared memory */
enum { LEAST = 1024 }; /* rows for which this is worth a block's start */

struct mlp {
    const bf16 *a, *O, *W, *V; /* a: rows to begin with, of attention or u */
    const float *o, *b, *c;    /* biases, or NULL */
    const float *x;
    bf16 *h, *g; /* or NULL */
    norm first, last;
    size_t n;
    int m;
};

/* Shared memory of a block. */
struct room {
    bf16 u[GROUPS][WIDE / PIECE][ROWS * PIECE];
    bf16 W[2][WIDE / PIECE][SLAB * PIECE];
    bf16 V[3][WIDE * SLAB];
    bf16 turn[4 * GROUPS][2][16 * PIECE]; /* where a warp turns results into rows */
    float b[MOST];
    row_constants first, last;
};

#if CGS_HAS_WGMMA

/* a thread takes the same chunk of every 32nd row */
__device__ __forceinline__ void fetch_W(room &r, const mlp &p, int i) {
    int row = threadIdx.x / 8, chunk = threadIdx.x % 8;
    const bf16 *from = p.W + ((size_t)(i % (p.m / SLAB)) * SLAB + row) * WIDE + chunk * 8;
#pragma unroll
    for (int piece = 0; piece < WIDE / PIECE; piece++)
#pragma unroll
        for (int j = 0; j < SLAB; j += ALL / 8)
            copy16(piece_at(r.W[i % 2][piece], row, chunk) + j * PIECE,
                   from + j * WIDE + piece * PIECE);
}
/* 64 columns, from the first of `from` on, of a matrix (192,m) */
__device__ __forceinline__ void fetch_V(bf16 *to, const bf16 *from, int m) {
    int row = threadIdx.x / 8, chunk = threadIdx.x % 8;
    from += (size_t)row * m + chunk * 8;
#pragma unroll
    for (int j = 0; j < WIDE; j += ALL / 8)
        copy16(piece_at(to, row, chunk) + j * PIECE, from + (size_t)j * m);
}

/* c (64,64) = the group's rows times slab i of W */
__device__ __forceinline__ void make_h(float (&c)[32], room &r, int group, int i) {
    const int unit = ATOM / 8 >> 4; /* of a row, in descriptors */
    uint64_t u = matrix_at(r.u[group]), W = matrix_at(r.W[i % 2]);
#pragma unroll
    for (int k = 0; k < WIDE / 16; k++)
        group_product<false, false>(c, along_rows(u + k / 4 * ROWS * unit, k % 4),
                                    along_rows(W + k / 4 * SLAB * unit, k % 4), k > 0);
}

/* c, with biases, rounded */
__device__ __forceinline__ void round_h(regs4 (&h)[4], const float (&c)[32], const float *bias) {
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float b[2];
        load<2>(b, bias + 8 * n + 2 * (threadIdx.x % 4));
        h[n / 2][n % 2 * 2] = pack(c[4 * n] + b[0], c[4 * n + 1] + b[1]);
        h[n / 2][n % 2 * 2 + 1] = pack(c[4 * n + 2] + b[0], c[4 * n + 3] + b[1]);
    }
}
__device__ __forceinline__ uint32_t gelu_pair(uint32_t h) {
    return pack(gelu_rounded(__uint_as_float(h << 16)),
                gelu_rounded(__uint_as_float(h & 0xffff0000u)));
}

__device__ __forceinline__ void read_constants(row_constants &to, const float *bias,
                                               const norm &of) {
    for (int k = threadIdx.x; k < WIDE; k += ALL) {
        to.bias[k] = bias ? bias[k] : 0.0f;
        to.w[k] = of.w ? of.w[k] : 1.0f;
        to.s[k] = of.s ? of.s[k] : 0.0f;
    }
}

/* What is before the MLP, of a warp's rows from row0 on: u is in shared memory then.  O's slabs
 * lie in V, from number v on; all groups have used them then.  What is added to x is rounded, as it
 * is where it goes through memory: u and all that follows would differ by more than by roundings
 * of their own. */
__device__ __forceinline__ void before_mlp(const mlp &p, room &r, float (&sum)[WIDE / 2],
                                           int group, int v, size_t row0) {
    const int unit = ATOM / 8 >> 4;
    uint64_t a = matrix_at(r.u[group]);
    float added[WIDE / 2];
    products_begin();
#pragma unroll
    for (int piece = 0; piece < WIDE / PIECE; piece++) {
        uint64_t O = matrix_at(r.V[(v + piece) % 3]);
#pragma unroll
        for (int k = 0; k < PIECE / 16; k++)
            group_product<false, false>(added, along_rows(a + piece * ROWS * unit, k),
                                        along_rows(O, k), piece + k > 0);
    }
    products_end();
    products_wait<0>();
    arrived(added);
    add_bias(added, r.first.bias);
#pragma unroll
    for (int j = 0; j < WIDE / 2; j++) sum[j] += widen(narrow<bf16>(added[j]));
    __syncthreads();
    fetch_V(r.V[v % 3], p.V, p.m);
    copies_close();
    give_rows(p.first, r.first, sum, r.u[group][0] + threadIdx.x % GROUP / 32 * 16 * PIECE,
              ROWS * PIECE, row0, p.n);
    written_for_products();
    meet(OWN + group, GROUP); /* the rows of all warps are there */
}

/* What a thread knows of the 64 rows of its group. */
struct tile {
    int group, left; /* rows from the lane's first on that are there */
    size_t to;       /* where the lane's first 8 columns of h and g go */
    size_t next;     /* row of the group's next tile */
};

/* g of a slab, of which h is there, and what it adds to the sums; number i of W's slabs and v of
 * V's.  MORE: the tile has another one, of which h is made meanwhile. */
template <bool FRONT, bool MORE>
__device__ __forceinline__ void take_slab(const mlp &p, room &r, const tile &t,
                                          float (&sum)[WIDE / 2], regs4 (&h)[4], int slab, int i,
                                          int v) {
    bf16 *turn_h = r.turn[threadIdx.x / 32][0], *turn_g = r.turn[threadIdx.x / 32][1];
    size_t to = t.to + slab * SLAB;
    fetch_W(r, p, i + 2);
    bf16 *next = r.V[(v + 1) % 3];
    if (MORE || !FRONT)
        fetch_V(next, MORE ? p.V + (slab + 1) * SLAB : p.V, p.m);
    else
        fetch_V(next, p.O, WIDE);
    if (!MORE) fetch_rows(r.u[t.group], p.a, t.next, p.n);
    copies_close();
    float c[32];
    if (MORE) {
        products_begin();
        make_h(c, r, t.group, i + 1);
        products_end();
    }
    if (p.h) turn_out(p.h + to, p.m, t.left, turn_h);
    regs4 g[4];
#pragma unroll
    for (int k = 0; k < 16; k++) g[k / 4][k % 4] = gelu_pair(h[k / 4][k % 4]);
    uint64_t V = matrix_at(r.V[v % 3]);
    products_begin();
#pragma unroll
    for (int k = 0; k < SLAB / 16; k++) group_product<false>(sum, g[k], along_rows(V, k), true);
    products_end();
    if (p.g) {
        turn_in(turn_g, g);
        turn_out(p.g + to, p.m, t.left, turn_g);
    }
    if (MORE) {
        products_wait<1>();
        arrived(c);
        round_h(h, c, r.b + (slab + 1) * SLAB);
        if (p.h) turn_in(turn_h, h);
    }
    products_wait<0>();
    arrived(sum);
    copies_wait<0>();
    written_for_products();
    __syncthreads(); /* the next slabs are there, and these have been used */
}

#endif

/* FRONT: a map and a norm are before the MLP */
template <bool FRONT> __global__ void __launch_bounds__(ALL, 1) whole_mlp(mlp p) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(16) unsigned char shared[];
    room &r = *(room *)(shared + (-(uint32_t)__cvta_generic_to_shared(shared) & (ATOM - 1)));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, slabs = p.m / SLAB;
    int group = __shfl_sync(0xffffffffu, warp / 4, 0);
    int i = 0, v = 0; /* slabs of W that have passed, and of V and O */
    size_t step = (size_t)gridDim.x * GROUPS * ROWS, first = (size_t)blockIdx.x * GROUPS * ROWS;
    fetch_rows(r.u[group], p.a, first + group * ROWS, p.n);
    fetch_W(r, p, 0);
    fetch_W(r, p, 1);
    if (!FRONT) fetch_V(r.V[0], p.V, p.m);
    for (int k = 0; FRONT && k < WIDE / SLAB; k++) fetch_V(r.V[k], p.O + k * SLAB, WIDE);
    copies_close();
    for (int k = threadIdx.x; k < p.m; k += ALL) r.b[k] = p.b ? p.b[k] : 0.0f;
    if (FRONT) read_constants(r.first, p.o, p.first);
    read_constants(r.last, p.c, p.last);
#pragma unroll 1
    for (; first < p.n; first += step) {
        size_t row0 = first + group * ROWS + warp % 4 * 16; /* of the warp */
        size_t row = row0 + lane / 8;                       /* the lane's first in whole rows */
        tile t = {group, row < p.n ? (int)min(p.n - row, (size_t)16) : 0,
                  row * p.m + lane % 8 * 8, first + step + group * ROWS};
        float sum[WIDE / 2], c[32];
        start_sums(sum, p.x, row0 + lane / 4, p.n);
        copies_wait<0>();
        written_for_products();
        __syncthreads(); /* the group's rows are there, and the first slabs */
        if (FRONT) {
            before_mlp(p, r, sum, group, v, row0);
            v += WIDE / SLAB;
        }
        regs4 h[4];
        products_begin();
        make_h(c, r, group, i);
        products_end();
        products_wait<0>();
        arrived(c);
        round_h(h, c, r.b);
        if (p.h) turn_in(r.turn[warp][0], h);
        copies_wait<0>();
        written_for_products();
        __syncthreads(); /* all have used the first slab of W */
#pragma unroll 1
        for (int slab = 0; slab + 1 < slabs; slab++, i++, v++)
            take_slab<FRONT, true>(p, r, t, sum, h, slab, i, v);
        take_slab<FRONT, false>(p, r, t, sum, h, slabs - 1, i++, v++);
        for (int k = 1; FRONT && k < WIDE / SLAB; k++)
            fetch_V(r.V[(v + k) % 3], p.O + k * SLAB, WIDE);
        copies_close();
        add_bias(sum, r.last.bias);
        give_rows(p.last, r.last, sum, r.turn[warp][0], 0, row0, p.n);
    }
    copies_wait<0>();
#endif
}

const float *values_of(const cgs_tensor *t) { return t ? (const float *)t->data : NULL; }

norm norm_of(const cgs_record *r) {
    norm to;
    to.sum = (float *)r->in[0]->data;
    to.y = (bf16 *)r->out->data;
    to.means = (float *)r->saved[0]->data;
    to.rstds = (float *)r->saved[1]->data;
    to.w = values_of(r->in[1]);
    to.s = values_of(r->in[2]);
    to.eps = r->arg.layernorm.eps;
    return to;
}

/* The records that run together: `in` is the map into hidden units, front the one before it and
 * its norm, or NULL. */
struct chain {
    const cgs_record *front, *in;
};

bool follows(const cgs_record *r, const cgs_opcode *ops, int count) {
    for (int i = 0; i < count; i++, r = r->next)
        if (!cgs_cuda_is(r, ops[i])) return false;
    return true;
}

chain chain_of(const cgs_device *d, const cgs_record *r) {
    static const cgs_opcode ops[] = {CGS_OP_linear, CGS_OP_add,        CGS_OP_layernorm,
                                     CGS_OP_linear, CGS_OP_activation, CGS_OP_linear,
                                     CGS_OP_add,    CGS_OP_layernorm};
    chain none = {NULL, NULL}, c = none;
    while (r->before) r = r->before;
    if (follows(r, ops, 4)) {
        c.front = r;
        r = r->next->next->next;
    }
    if (!follows(r, ops + 3, 5)) return none;
    c.in = r;
    /* the sum before the MLP is what the MLP's is added to */
    if (c.front && c.front->next->out != r->next->next->next->in[0]) c.front = NULL;
    const cgs_record *act = r->next, *out = act->next;
    const cgs_tensor *u = r->in[0], *h = r->out;
    bool fits = cgs_cuda_linear_joins_gelu(d, r, act) && cgs_cuda_gelu_joins_linear(d, act, out) &&
                cgs_rows(u) >= LEAST && cgs_cols(u) == WIDE && cgs_cols(h) % SLAB == 0 &&
                cgs_cols(h) <= MOST && cgs_cols(out->out) == WIDE &&
                out->next->next->out->dtype == CGS_BF16;
    return fits ? c : none;
}

bool is_on(const cgs_device *d) {
    const cgs_cuda *c = cgs_cuda_of(d);
    return !(c->off & CGS_CUDA_WGMMA_MLP) && c->capability == 90;
}

} // namespace

extern "C" {

bool cgs_cuda_norm_joins_mlp(const cgs_device *d, const cgs_record *norm, const cgs_record *map) {
    const cgs_record *add = norm->before, *front = add ? add->before : NULL;
    return is_on(d) && cgs_cuda_is(front, CGS_OP_linear) && map->in[0] == norm->out &&
           cgs_cols(map->out) % (2 * SLAB) == 0 && cgs_cols(norm->out) == WIDE &&
           cgs_cols(front->in[0]) == WIDE && front->in[0]->dtype == CGS_BF16 &&
           norm->out->dtype == CGS_BF16 && front->in[1]->bf16 && cgs_rows(norm->out) >= LEAST;
}

bool cgs_cuda_mlp_groups(const cgs_device *d, const cgs_record *r) {
    if (!is_on(d)) return false;
    chain c = chain_of(d, r);
    if (c.front || !c.in) return c.in;
    while (r && r != c.in) r = r->before;
    return r; /* not before the MLP */
}

bool cgs_cuda_mlp_forgets(const cgs_device *d, const cgs_record *r) {
    return !(cgs_cuda_of(d)->off & CGS_CUDA_AGAIN) && is_on(d) && chain_of(d, r).in;
}

cgs_status cgs_cuda_mlp_groups_prepare(void) {
    cudaFuncAttribute what = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const int bytes = (int)sizeof(room) + ATOM;
    cudaError_t e = cudaFuncSetAttribute(whole_mlp<false>, what, bytes);
    if (e == cudaSuccess) e = cudaFuncSetAttribute(whole_mlp<true>, what, bytes);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "MLP");
}

void cgs_cuda_mlp_groups_forward(cgs_device *d, const cgs_record *in) {
    const cgs_record *act = in->next, *out = act->next, *add = out->next;
    const cgs_record *front = chain_of(d, in).front;
    bool kept = in->out->wants_grad;
    mlp p = {};
    p.a = (const bf16 *)(front ? front : in)->in[0]->data;
    p.W = (const bf16 *)in->in[1]->bf16;
    p.V = (const bf16 *)out->in[1]->bf16;
    p.b = values_of(in->in[2]);
    p.c = values_of(out->in[2]);
    p.x = values_of((front ? front->next : add)->in[0]);
    p.h = kept && !cgs_cuda_mlp_forgets(d, in) ? (bf16 *)in->out->data : NULL;
    p.g = kept ? (bf16 *)act->out->data : NULL;
    p.last = norm_of(add->next);
    p.n = cgs_rows(in->in[0]);
    p.m = cgs_cols(in->out);
    unsigned tiles = blocks_for(p.n, GROUPS * ROWS), places = (unsigned)cgs_cuda_of(d)->processors;
    unsigned blocks = tiles < places ? tiles : places;
    if (front) {
        p.O = (const bf16 *)front->in[1]->bf16;
        p.o = values_of(front->in[2]);
        p.first = norm_of(front->next->next);
        whole_mlp<true><<<blocks, ALL, sizeof(room) + ATOM, stream_of(d)>>>(p);
    } else {
        whole_mlp<false><<<blocks, ALL, sizeof(room) + ATOM, stream_of(d)>>>(p);
    }
    LAUNCHED(d, "mlp and norm");
}

} /* extern "C" */
