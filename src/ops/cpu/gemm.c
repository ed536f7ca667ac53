/* gemm.c - matrix products: our own pair products for bf16 (simd/product_tiles.c), by AMX where it
 * is and by vectors where rows have to be batch-invariant; else oneDNN's; else the table's.  The
 * gradients of a large layer in bf16 are no products of their own where there are vectors of pairs.
 *
 * Design decisions from measurements on the models' shapes (docs/log/2026-11-cpu-kernels.md):
 * - oneDNN's matmul reaches the rate of square products when the right factor is in the layout
 *   that it chooses, and loses up to half of it on plain weights.  So weights are reordered
 *   (prepacked), which costs their size, before each product, or once if they stay constant.
 * - Products that sum over rows (dW = dy^T x) read both factors as they are.
 * - To be batch-invariant oneDNN has to be called for blocks of 128 columns each, which costs more
 *   than half of its rate for the rows of a plan.  Ours sum in one order for any number of rows.
 *
 * oneDNN gets no threads of its own, which would wait for each other like OpenMP's: a product is
 * cut into blocks of the result, and members of the team take them (core/team.h).  The cuts depend
 * on the shape alone, and so does every bit of the result. */
#include "ops/cpu/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/cpu.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/team.h"
#include "core/threads.h"
#include "ops/cpu/onednn.h"
#include "ops/tape.h"

/* how a result is cut: `down` times `across` blocks, the last ones smaller */
typedef struct cut {
    size_t rows, cols; /* of a whole block */
    size_t down, across;
} cut;

struct cgs_gemm {
    cgs_product p;
    struct cgs_gemm *next;
    uint32_t *tiles; /* scratch of a product by tiles, or NULL when it is not one */
    /* through oneDNN */
    cut cut;
    cgs_onednn_product
        *block[2][2]; /* [last down][last across]; all NULL when not through oneDNN */
    cgs_onednn_packed *
        *packed; /* (across) columns of B, unless prepacked; NULL when B is read as it is */
};

struct cgs_prepacked {
    const void *from;
    size_t bytes;
    int users;
    bool fresh;      /* packed after the last change; changes between operations only */
    bool written;    /* by the operation that runs */
    bool transposed; /* a square matrix and its transpose have the same layout */
    struct cgs_prepacked *next;
    const cgs_gemm *first;      /* user: a product that defines the layout */
    uint32_t *tiles;            /* one of these two is not NULL */
    cgs_onednn_packed **packed; /* (across) */
};

struct cgs_gemm_cache {
    cgs_gemm *first;
    cgs_prepacked *kept;
    cgs_onednn *onednn; /* NULL: only own products */
};

static void *aligned(size_t bytes) {
    return aligned_alloc(CGS_ALIGN, cgs_align_up(bytes ? bytes : 1));
}

static size_t parts_of(size_t n, size_t size) { return (n + size - 1) / size; }

/* ---- by pairs of bf16 numbers ---------------------------------------------------------- */

/* where weights change with every run, oneDNN's reordering takes longer than a few rows, and ours
 * takes a tenth of that */
static bool few_rows(const cgs_product *p) { return !p->a_transposed && p->M < 2048; }

/* why it does not, or NULL where it does */
static const char *not_by_pairs(const cgs_cpu *c, const cgs_product *p) {
    if (p->M * p->N * p->K == 0) return "nothing to multiply";
    if (p->in != CGS_BF16) return "factors in f32";
    if (!c->tiles && !c->pairs) return "no instructions for bf16 pairs";
    if (!c->tiles && !p->batch_invariant && !p->in_chunks && !few_rows(p))
        return "no AMX; own pairs are for batch-invariant products, chunks and few rows";
    if (p->N % 32) return "columns no multiple of 32";
    if (p->a_transposed && p->M % 32) return "rows no multiple of 32";
    if (!p->a_transposed && p->K % (c->tiles ? 32 : 2))
        return c->tiles ? "length of sums no multiple of 32" : "sums of an odd length";
    bool sums = !p->b_transposed && p->out == CGS_F32 && !p->bias;
    return p->a_transposed && !sums ? "sums over rows that are no gradient of weights" : NULL;
}

static void run_tiles(cgs_device *d, cgs_gemm *g, const cgs_gemm_part *part, void *C, const void *A,
                      const void *B, const float *bias, cgs_prepacked *kept) {
    const cgs_cpu_table *table = cgs_cpu_of(d)->table;
    cgs_product p = g->p;
    p.M = part->rows;
    p.tokens = part->tokens;
    p.unread = part->unread;
    p.unread_columns = part->unread_columns;
    if (p.a_transposed) {
        table->tiles_sum(d, &p, C, A, B, g->tiles);
        return;
    }
    bool keeps = kept && kept->from == B;
    uint32_t *packed = keeps ? kept->tiles : g->tiles;
    if (!keeps || !kept->fresh) {
        table->tiles_pack(d, &p, packed, B);
        if (keeps && cgs_member() == 0) kept->written = true;
    }
    table->tiles_product(d, &p, C, A, packed, bias);
}

/* A piece of about a thousand rows has sums of its own for dW, which then are added: 4 % of the
 * work. Runs are as long as their interleaved rows stay in L2 beside W and a part of dW, and of one
 * length, for a run is also a pass over dW. */
cgs_cpu_pieces cgs_gemm_joint(const cgs_device *d, size_t n, size_t k, size_t m) {
    enum { FEWEST = 2048, PIECE = 1024, PIECES = 8, MOST = 4, ROWS = CGS_LINEAR_PAIRS_ROWS };
    const size_t wide = 264 * 960; /* elements of x and y in a run */
    const cgs_cpu *c = cgs_cpu_of(d);
    cgs_cpu_pieces p = {0};
    if (c->tiles || !c->pairs || n < FEWEST || k % 32 || m % CGS_LINEAR_PAIRS_COLS) return p;
    size_t times = (n + PIECES * PIECE / 2) / (PIECES * PIECE);
    p.pieces = PIECES * (times < 1 ? 1 : times > MOST ? MOST : times);
    p.rows = parts_of(parts_of(n, p.pieces), ROWS) * ROWS;
    size_t runs = parts_of(p.rows * (k + m), wide);
    p.run = parts_of(parts_of(p.rows, runs), ROWS) * ROWS;
    return p;
}

/* ---- through oneDNN -------------------------------------------------------------------- */

/* bf16 without hardware instructions is slower than f32, so only those count */
static bool multiplies_bf16(void) { return cgs_cpu_ask()->bf16; }

/* why it does not, or NULL where it may, if it is there and has fast code */
static const char *not_by_onednn(const cgs_product *p) {
    if (p->M * p->N * p->K == 0) return "nothing to multiply";
    if (p->in == CGS_BF16) return multiplies_bf16() ? NULL : "no instructions for bf16 pairs";
    return p->out == CGS_F32 ? NULL : "factors in f32 and a result in bf16";
}

/* Sixteen blocks of rows where there are rows enough; a few rows of many columns are cut across.
 * Where a row must not depend on the others (batch-invariant), the columns are cut alike for any
 * number of rows, as oneDNN's order of summation depends on them. */
static cut cut_of(const cgs_product *p) {
    enum { BLOCKS = 16, FEWEST = 8, LEAST = 64, ALONE = 128 };
    const size_t worth = (size_t)1 << 20; /* multiplications */
    bool shared = p->M * p->N * p->K >= worth;
    cut c = {p->M, p->N, 1, 1};
    if (shared) {
        c.rows = p->M < BLOCKS * LEAST ? LEAST : parts_of(p->M, BLOCKS * 32) * 32;
        if (c.rows > p->M) c.rows = p->M;
        c.down = parts_of(p->M, c.rows);
    }
    if (p->batch_invariant)
        c.cols = p->N > ALONE ? ALONE : p->N;
    else if (shared && c.down < FEWEST && p->N >= 2 * LEAST)
        c.cols = parts_of(p->N, parts_of(FEWEST, c.down) * LEAST) * LEAST;
    c.across = parts_of(p->N, c.cols);
    return c;
}

static size_t rows_at(const cgs_gemm *g, size_t down) {
    return down + 1 < g->cut.down ? g->cut.rows : g->p.M - down * g->cut.rows;
}
static size_t cols_at(const cgs_gemm *g, size_t across) {
    return across + 1 < g->cut.across ? g->cut.cols : g->p.N - across * g->cut.cols;
}
static cgs_onednn_product *block_at(const cgs_gemm *g, size_t down, size_t across) {
    return g->block[down + 1 == g->cut.down][across + 1 == g->cut.across];
}

static void packed_destroy(cgs_onednn_packed **packed, size_t across) {
    for (size_t j = 0; packed && j < across; j++) cgs_onednn_packed_destroy(packed[j]);
    free(packed);
}

static cgs_status packed_create(cgs_onednn_packed ***out, const cgs_gemm *g) {
    cgs_onednn_packed **packed = calloc(g->cut.across, sizeof *packed);
    cgs_status rc = packed ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for the blocks of a product");
    for (size_t j = 0; rc == CGS_OK && j < g->cut.across; j++)
        if (cgs_onednn_packed_bytes(block_at(g, 0, j)) > 0)
            rc = cgs_onednn_packed_create(&packed[j], block_at(g, 0, j));
    if (rc == CGS_OK)
        *out = packed;
    else
        packed_destroy(packed, g->cut.across);
    return rc;
}

static void blocks_destroy(cgs_gemm *g) {
    for (int i = 0; i < 4; i++) {
        cgs_onednn_product_destroy(g->block[i / 2][i % 2]);
        g->block[i / 2][i % 2] = NULL;
    }
}

/* Leaves no blocks where oneDNN has no fast product.  Blocks in a column read the same packed B, so
 * the later ones use the layout of the first. */
static cgs_status create_onednn(cgs_gemm_cache *c, cgs_gemm *g) {
    g->cut = cut_of(&g->p);
    for (size_t j = g->cut.across == 1; j < 2; j++)
        for (size_t i = g->cut.down == 1; i < 2; i++) {
            cgs_product p = g->p;
            p.M = rows_at(g, i ? g->cut.down - 1 : 0);
            p.N = cols_at(g, j ? g->cut.across - 1 : 0);
            CGS_TRY(cgs_onednn_product_create(&g->block[i][j], c->onednn, &p, &g->p,
                                              i ? g->block[0][j] : NULL));
            if (!g->block[i][j]) {
                blocks_destroy(g);
                return CGS_OK;
            }
        }
    bool packs = false;
    for (size_t j = 0; j < g->cut.across; j++)
        packs = packs || cgs_onednn_packed_bytes(block_at(g, 0, j)) > 0;
    return packs ? packed_create(&g->packed, g) : CGS_OK;
}

static const void *element(const void *m, cgs_dtype type, size_t at) {
    return (const char *)m + at * cgs_dtype_size(type);
}

static void run_onednn(cgs_gemm *g, void *C, const void *A, const void *B, const float *bias,
                       cgs_prepacked *kept) {
    const cgs_product *p = &g->p;
    int lane = cgs_member();
    bool keeps = kept && kept->from == B;
    cgs_onednn_packed **packed = keeps ? kept->packed : g->packed;
    if (packed && !(keeps && kept->fresh)) {
        CGS_QUEUE (j, g->cut.across) {
            size_t at = j * g->cut.cols * (p->b_transposed ? p->K : 1);
            if (!packed[j]) continue; /* read as it is */
            cgs_onednn_pack(block_at(g, 0, j), lane, packed[j], element(B, p->in, at));
        }
        cgs_meet();
    }
    if (keeps && lane == 0) kept->written = true;
    CGS_SHARE (task, g->cut.down * g->cut.across) {
        size_t i = task / g->cut.across, j = task % g->cut.across;
        size_t row = i * g->cut.rows, col = j * g->cut.cols;
        const void *a = element(A, p->in, row * (p->a_transposed ? 1 : p->K));
        const void *b = element(B, p->in, col * (p->b_transposed ? p->K : 1));
        void *c = (void *)(uintptr_t)element(C, p->out, row * p->N + col);
        cgs_onednn_run(block_at(g, i, j), lane, c, a, b, packed ? packed[j] : NULL,
                       bias ? bias + col : NULL);
    }
}

/* ---- all of them ------------------------------------------------------------------------- */

cgs_status cgs_gemm_cache_create(cgs_gemm_cache **out, bool onednn, int threads) {
    cgs_gemm_cache *c = *out = calloc(1, sizeof *c);
    if (!c) return cgs_fail(CGS_ENOMEM, "no memory for matrix products");
    if (onednn && !cgs_onednn_limit(cgs_cpu_ask()->libraries)) {
        cgs_log(CGS_WARN, "oneDNN was used before it could be limited to %s: doing without it",
                cgs_isa_name(cgs_cpu_ask()->libraries));
        onednn = false;
    }
    cgs_status rc = onednn ? cgs_onednn_create(&c->onednn, threads) : CGS_OK;
    if (rc == CGS_OK) return CGS_OK;
    free(c);
    *out = NULL;
    return rc;
}

static void destroy(cgs_gemm *g) {
    packed_destroy(g->packed, g->cut.across);
    blocks_destroy(g);
    free(g->tiles);
    free(g);
}

void cgs_gemm_cache_destroy(cgs_gemm_cache *c) {
    if (!c) return;
    while (c->first) {
        cgs_gemm *g = c->first;
        c->first = g->next;
        destroy(g);
    }
    cgs_onednn_destroy(c->onednn);
    free(c);
}

static bool same(const cgs_product *a, const cgs_product *b) {
    return a->M == b->M && a->N == b->N && a->K == b->K && a->in == b->in && a->out == b->out &&
           a->a_transposed == b->a_transposed && a->b_transposed == b->b_transposed &&
           a->bias == b->bias && a->accumulate == b->accumulate &&
           a->batch_invariant == b->batch_invariant && a->in_chunks == b->in_chunks &&
           a->joint == b->joint;
}

cgs_status cgs_gemm_prepare(cgs_device *d, const cgs_product *p, cgs_gemm **out) {
    const cgs_cpu *cpu = cgs_cpu_of(d);
    cgs_gemm_cache *c = cpu->gemms;
    for (cgs_gemm *g = c->first; g; g = g->next)
        if (same(&g->p, p)) {
            *out = g;
            return CGS_OK;
        }
    *out = NULL;
    cgs_gemm *g = calloc(1, sizeof *g);
    if (!g)
        return cgs_fail(CGS_ENOMEM, "no memory for a %zu x %zu x %zu product", p->M, p->N, p->K);
    g->p = *p;
    cgs_status rc = CGS_OK;
    if (p->joint) {
        ; /* listed, and run by its layer */
    } else if (!not_by_pairs(cpu, p)) {
        g->tiles = aligned(cpu->table->tiles_words(p) * sizeof *g->tiles);
        if (!g->tiles) rc = cgs_fail(CGS_ENOMEM, "no memory for a product by pairs");
    } else if (!not_by_onednn(p)) {
        rc = create_onednn(c, g);
    }
    if (rc != CGS_OK) { /* a partly built one would be found the next time */
        destroy(g);
        return rc;
    }
    g->next = c->first;
    c->first = g;
    *out = g;
    return CGS_OK;
}

static size_t bytes_of(const cgs_gemm *g) { return g->p.K * g->p.N * cgs_dtype_size(g->p.in); }

/* bytes of B in tiles, 0 when it is read as it is */
static size_t tiled_bytes(const cgs_gemm *g) {
    return g->tiles && !g->p.a_transposed ? g->p.K * g->p.N * cgs_dtype_size(g->p.in) : 0;
}

static bool same_layout(const cgs_prepacked *k, const cgs_gemm *g) {
    if (k->transposed != g->p.b_transposed || !k->tiles != !g->tiles) return false;
    if (k->tiles) return true;
    for (size_t j = 0; j < 2; j++)
        if (k->first->block[1][j] && g->block[1][j] &&
            !cgs_onednn_same_layout(k->first->block[1][j], g->block[1][j]))
            return false;
    return k->first->cut.cols == g->cut.cols && k->first->cut.across == g->cut.across;
}

cgs_status cgs_gemm_prepack(cgs_device *d, cgs_gemm *g, const void *B, cgs_prepacked **out) {
    cgs_gemm_cache *c = cgs_cpu_of(d)->gemms;
    size_t tiled = tiled_bytes(g);
    *out = NULL;
    if (!tiled && !g->packed) return CGS_OK;
    for (cgs_prepacked *k = c->kept; k; k = k->next)
        if (k->from == B && k->bytes == bytes_of(g) && same_layout(k, g)) {
            k->users++;
            *out = k;
            return CGS_OK;
        }
    cgs_prepacked *k = calloc(1, sizeof *k);
    if (!k) return cgs_fail(CGS_ENOMEM, "no memory for reordered weights");
    *k = (cgs_prepacked){.from = B,
                         .bytes = bytes_of(g),
                         .users = 1,
                         .transposed = g->p.b_transposed,
                         .next = c->kept,
                         .first = g};
    cgs_status rc = CGS_OK;
    if (!tiled)
        rc = packed_create(&k->packed, g);
    else if (!(k->tiles = aligned(tiled)))
        rc = cgs_fail(CGS_ENOMEM, "no memory for reordered weights");
    if (rc != CGS_OK) {
        free(k);
        return rc;
    }
    c->kept = k;
    *out = k;
    return CGS_OK;
}

void cgs_gemm_drop(cgs_device *d, cgs_prepacked *k) {
    if (!k || --k->users > 0) return;
    cgs_prepacked **at = &cgs_cpu_of(d)->gemms->kept;
    while (*at != k) at = &(*at)->next;
    *at = k->next;
    packed_destroy(k->packed, k->first->cut.across);
    free(k->tiles);
    free(k);
}

void cgs_gemm_settle(cgs_prepacked *k) {
    if (!k || !k->written) return;
    k->fresh = true;
    k->written = false;
}

void cgs_gemm_changed(cgs_device *d, const void *p, size_t bytes) {
    uintptr_t first = (uintptr_t)p;
    for (cgs_prepacked *k = cgs_cpu_of(d)->gemms->kept; k; k = k->next) {
        uintptr_t from = (uintptr_t)k->from;
        if (first < from + k->bytes && from < first + bytes) k->fresh = false;
    }
}

bool cgs_gemm_separable(const cgs_device *d, const cgs_product *p) {
    bool may = p->batch_invariant || p->in_chunks;
    return may && !p->a_transposed && !not_by_pairs(cgs_cpu_of(d), p);
}

bool cgs_gemm_is_fresh(const cgs_prepacked *k) { return k->fresh; }

void cgs_gemm_refresh(cgs_device *d, const cgs_gemm *g, const void *B, cgs_prepacked *k) {
    cgs_cpu_of(d)->table->tiles_pack(d, &g->p, k->tiles, B);
    if (cgs_member() == 0) k->written = true;
}

void cgs_gemm_run(cgs_device *d, cgs_gemm *g, void *C, const void *A, const void *B,
                  const float *bias, cgs_prepacked *kept) {
    cgs_gemm_run_part(d, g, &(cgs_gemm_part){.rows = g->p.M}, C, A, B, bias, kept);
}

void cgs_gemm_run_part(cgs_device *d, cgs_gemm *g, const cgs_gemm_part *part, void *C,
                       const void *A, const void *B, const float *bias, cgs_prepacked *kept) {
    if (part->rows * g->p.N == 0) return;
    if (g->tiles)
        run_tiles(d, g, part, C, A, B, bias, kept);
    else if (g->block[1][1])
        run_onednn(g, C, A, B, bias, kept);
    else
        cgs_cpu_of(d)->table->product(d, &g->p, C, A, B, bias);
    cgs_meet();
}

bool cgs_gemm_choice_at(const cgs_device *d, int i, cgs_gemm_choice *out) {
    const cgs_cpu *cpu = cgs_cpu_of(d);
    int count = 0;
    for (const cgs_gemm *g = cpu->gemms->first; g; g = g->next) count++;
    const cgs_gemm *g = cpu->gemms->first; /* the newest */
    if (i >= count) return false;
    for (int k = count - 1; k > i; k--) g = g->next;
    *out = (cgs_gemm_choice){.p = g->p};
    if (g->p.joint) {
        out->code = "own bf16 pairs";
        out->why = "bf16, gradients of a layer in one pass";
    } else if (g->tiles) {
        out->code = cpu->tiles ? "own tiles" : "own bf16 pairs";
        out->why = cpu->tiles             ? "bf16, and AMX is used"
                   : g->p.batch_invariant ? "bf16, batch-invariant"
                   : g->p.in_chunks       ? "bf16, of a large layer that is trained"
                                          : "bf16, few rows";
    } else if (g->block[1][1]) {
        out->code = "oneDNN";
        out->why = not_by_pairs(cpu, &g->p);
    } else {
        out->code = "own vectors";
        out->why = not_by_onednn(&g->p);
        if (!out->why) out->why = cpu->gemms->onednn ? "no fast code in oneDNN" : "no oneDNN";
    }
    return true;
}

int cgs_bench_gemm_side(const cgs_device *d) {
    if (!strcmp(d->ops->name, "ref")) return 128;
    return !strcmp(d->ops->name, "cpu") ? 2048 : 4096;
}

/* other devices: a linear layer through their table, on nonzero numbers */
static cgs_status linear_peak(cgs_device *d, cgs_dtype type, double *flops) {
    int side = cgs_bench_gemm_side(d), dim[2] = {side, side};
    size_t n = (size_t)side * (size_t)side;
    cgs_tape *t = NULL;
    cgs_tensor W = {.rank = 2, .dim = {side, side}, .outside = true};
    float *values = malloc(n * sizeof *values);
    void *half = NULL;
    cgs_status rc = values ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for a product of %d", side);
    if (rc == CGS_OK) rc = d->ops->alloc(d, &W.data, n * sizeof *values);
    if (rc == CGS_OK) rc = d->ops->alloc(d, &half, n * sizeof *W.bf16);
    if (rc == CGS_OK) rc = cgs_tape_create(&t, d, type);
    if (rc == CGS_OK) {
        W.bf16 = half;
        cgs_rng r = cgs_rng_stream(0, CGS_STREAM_TEST, 0);
        for (size_t i = 0; i < n; i++) values[i] = cgs_rng_f32(&r) - 0.5f;
        cgs_tensor *x = cgs_input(t, "x", type, 2, dim);
        cgs_keep(cgs_linear(t, x, &W, NULL));
        rc = cgs_tape_finish(t, NULL);
        if (rc == CGS_OK) rc = cgs_tensor_write(t, x, values);
        if (rc == CGS_OK) rc = d->ops->upload(d, W.data, values, n * sizeof *values);
        if (rc == CGS_OK) d->ops->round_bf16(d, half, W.data, n);
    }
    *flops = 0;
    for (int run = 0; rc == CGS_OK && run < 20; run++) {
        double start = cgs_now();
        cgs_tape_forward(t);
        rc = d->ops->sync(d);
        double rate = 2.0 * (double)n * side / (cgs_now() - start);
        if (rate > *flops) *flops = rate;
    }
    cgs_tape_destroy(t);
    if (W.data) d->ops->release(d, W.data);
    if (half) d->ops->release(d, half);
    free(values);
    return rc;
}

typedef struct bench {
    cgs_device *d;
    cgs_gemm *g;
    void *m[3];
} bench;

static void multiply(void *context) {
    const bench *b = context;
    cgs_gemm_run(b->d, b->g, b->m[0], b->m[1], b->m[2], NULL, NULL);
}

cgs_status cgs_bench_gemm_peak(cgs_device *d, cgs_dtype type, double *flops) {
    if (strcmp(d->ops->name, "cpu") != 0) return linear_peak(d, type, flops);
    const cgs_product p = {.M = 2048, .N = 2048, .K = 2048, .in = type, .out = type};
    size_t bytes = p.M * p.N * cgs_dtype_size(type);
    bench b = {.d = d};
    cgs_status rc = cgs_gemm_prepare(d, &p, &b.g);
    for (int i = 0; i < 3 && rc == CGS_OK; i++) rc = d->ops->alloc(d, &b.m[i], bytes);
    *flops = 0;
    double start = cgs_now();
    for (int run = 0; rc == CGS_OK && (run < 4 || cgs_now() - start < 0.5); run++) {
        double t = cgs_now();
        cgs_together(d->threads, multiply, &b);
        double rate = 2.0 * 2048 * 2048 * 2048 / (cgs_now() - t);
        if (rate > *flops) *flops = rate;
    }
    for (int i = 0; i < 3; i++)
        if (b.m[i]) d->ops->release(d, b.m[i]);
    return rc;
}
