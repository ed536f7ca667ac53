/* gemm.c - matrix products: own ones by tiles for bf16 where there is AMX, else through
 * oneDNN, else the table's own.
 *
 * What measurements on the shapes of the models decided (docs/performance.md):
 * - oneDNN's matmul is as fast as its square products when the right factor comes in the
 *   layout that it chooses for itself, and loses up to half of that on plain weights.
 *   So weights are reordered, which costs their size, before each product, or once
 *   if they do not change between runs.
 * - Products that sum over rows (dW = dy^T x) read both factors as they are. */
#include "ops/cpu/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "core/team.h"
#include "core/threads.h"
#include "ops/tape.h"
#ifdef CGS_WITH_ONEDNN
#include <dnnl.h>
#endif

struct cgs_gemm {
    cgs_product p;
    struct cgs_gemm *next;
    uint32_t *tiles; /* what a product by tiles needs, or NULL when it is not one */
#ifdef CGS_WITH_ONEDNN
    dnnl_primitive_t multiply, reorder; /* reorder: NULL when B is read as it is */
    dnnl_memory_t C, A, B, bias, packed, scratch;
    void *packed_data;
#endif
};

struct cgs_kept {
    const void *from;
    size_t bytes;
    int users;
    bool fresh, transposed; /* a square matrix and its transpose have the same layout */
    struct cgs_kept *next;
    void *data;
    bool tiles; /* else in oneDNN's layout */
#ifdef CGS_WITH_ONEDNN
    dnnl_memory_desc_t layout;
    dnnl_memory_t packed;
#endif
};

struct cgs_gemm_cache {
    cgs_gemm *first;
    cgs_kept *kept;
    bool onednn;
#ifdef CGS_WITH_ONEDNN
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    void *scratch;
    size_t scratch_bytes;
#endif
};

static void *aligned(size_t bytes) {
    return aligned_alloc(CGS_ALIGN, cgs_align_up(bytes ? bytes : 1));
}

/* ---- by tiles ------------------------------------------------------------------------ */

static bool by_tiles(const cgs_cpu *c, const cgs_product *p) {
    if (!c->tiles || p->in != CGS_BF16 || p->M * p->N * p->K == 0 || p->N % 32) return false;
    if (!p->a_transposed) return p->K % 32 == 0;
    return p->M % 32 == 0 && !p->b_transposed && p->out == CGS_F32 && !p->bias;
}

static void run_tiles(cgs_device *d, cgs_gemm *g, void *C, const void *A, const void *B,
                      const float *bias, cgs_kept *kept) {
    const cgs_cpu_table *table = cgs_cpu_of(d)->table;
    if (g->p.a_transposed) {
        table->tiles_sum(d, &g->p, C, A, B, g->tiles);
        return;
    }
    bool keeps = kept && kept->from == B;
    uint32_t *packed = keeps ? kept->data : g->tiles;
    if (!keeps || !kept->fresh) table->tiles_pack(d, &g->p, packed, B);
    if (keeps && cgs_member() == 0) kept->fresh = true; /* packing ended with a meeting */
    table->tiles_product(d, &g->p, C, A, packed, bias, g->tiles + g->p.K / 2 * g->p.N);
}

/* ---- through oneDNN -------------------------------------------------------------------- */

#ifdef CGS_WITH_ONEDNN

/* bf16 without instructions for it is slower than f32, so only the real thing counts */
static bool multiplies_bf16(void) { return __builtin_cpu_supports("avx512bf16"); }

static bool describe(dnnl_memory_desc_t *md, size_t rows, size_t cols, cgs_dtype type,
                     dnnl_format_tag_t tag) {
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    dnnl_data_type_t t = type == CGS_F32 ? dnnl_f32 : dnnl_bf16;
    return dnnl_memory_desc_init_by_tag(md, 2, dims, t, tag) == dnnl_success;
}

static bool grow_scratch(cgs_gemm_cache *c, size_t bytes) {
    if (bytes <= c->scratch_bytes) return true;
    void *p = aligned(bytes);
    if (!p) return false;
    free(c->scratch);
    c->scratch = p;
    c->scratch_bytes = bytes;
    return true;
}

static bool create_multiply(cgs_gemm_cache *c, const cgs_product *p, bool packed,
                            dnnl_primitive_desc_t *pd) {
    dnnl_memory_desc_t a, b, bias, y;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_format_tag_t b_tag = packed ? dnnl_format_tag_any : p->b_transposed ? dnnl_ba : dnnl_ab;
    const char *name = "";
    bool ok =
        describe(&a, p->M, p->K, p->in, p->a_transposed ? dnnl_ba : dnnl_ab) &&
        describe(&b, p->K, p->N, p->in, b_tag) && describe(&y, p->M, p->N, p->out, dnnl_ab) &&
        describe(&bias, 1, p->N, CGS_F32, dnnl_ab) &&
        dnnl_matmul_desc_init(&desc, &a, &b, p->bias ? &bias : NULL, &y) == dnnl_success &&
        dnnl_primitive_attr_create(&attr) == dnnl_success &&
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success;
    if (ok && p->accumulate)
        ok = dnnl_post_ops_create(&post) == dnnl_success &&
             dnnl_post_ops_append_sum(post, 1.0f) == dnnl_success &&
             dnnl_primitive_attr_set_post_ops(attr, post) == dnnl_success;
    ok = ok && dnnl_primitive_desc_create(pd, &desc, attr, c->engine, NULL) == dnnl_success;
    if (post) dnnl_post_ops_destroy(post);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (!ok) return false;
    /* its reference code is slower than ours */
    if (dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
        strncmp(name, "ref", 3) != 0)
        return true;
    dnnl_primitive_desc_destroy(*pd);
    return false;
}

/* the reorder of B into the layout that the product chose */
static bool create_reorder(cgs_gemm_cache *c, cgs_gemm *g, const dnnl_memory_desc_t *plain,
                           const dnnl_memory_desc_t *chosen) {
    dnnl_primitive_desc_t pd;
    g->packed_data = aligned(dnnl_memory_desc_get_size(chosen));
    if (!g->packed_data ||
        dnnl_memory_create(&g->packed, chosen, c->engine, g->packed_data) != dnnl_success ||
        dnnl_reorder_primitive_desc_create(&pd, plain, c->engine, chosen, c->engine, NULL) !=
            dnnl_success)
        return false;
    bool ok = dnnl_primitive_create(&g->reorder, pd) == dnnl_success;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static bool create_onednn(cgs_gemm_cache *c, cgs_gemm *g) {
    const cgs_product *p = &g->p;
    dnnl_primitive_desc_t pd;
    dnnl_memory_desc_t a, b, y, bias;
    bool weights = !p->a_transposed;
    if (!c->onednn || p->M * p->N * p->K == 0) return false;
    if (p->in == CGS_BF16 && !multiplies_bf16()) return false;
    if (p->in == CGS_F32 && p->out == CGS_BF16) return false;
    if (!create_multiply(c, p, weights, &pd)) return false;

    const dnnl_memory_desc_t *chosen = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    bool ok = describe(&a, p->M, p->K, p->in, p->a_transposed ? dnnl_ba : dnnl_ab) &&
              describe(&b, p->K, p->N, p->in, p->b_transposed ? dnnl_ba : dnnl_ab) &&
              describe(&y, p->M, p->N, p->out, dnnl_ab) &&
              describe(&bias, 1, p->N, CGS_F32, dnnl_ab) &&
              dnnl_primitive_create(&g->multiply, pd) == dnnl_success &&
              dnnl_memory_create(&g->A, &a, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
              dnnl_memory_create(&g->B, &b, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
              dnnl_memory_create(&g->C, &y, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
              dnnl_memory_create(&g->bias, &bias, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
              dnnl_memory_create(&g->scratch, pad, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
              grow_scratch(c, dnnl_memory_desc_get_size(pad));
    if (ok && !dnnl_memory_desc_equal(&b, chosen)) ok = create_reorder(c, g, &b, chosen);
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static void destroy_onednn(cgs_gemm *g) {
    dnnl_memory_t memory[] = {g->C, g->A, g->B, g->bias, g->packed, g->scratch};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i]) dnnl_memory_destroy(memory[i]);
    if (g->multiply) dnnl_primitive_destroy(g->multiply);
    if (g->reorder) dnnl_primitive_destroy(g->reorder);
    free(g->packed_data);
    g->multiply = NULL;
}

static void run_onednn(cgs_gemm_cache *c, cgs_gemm *g, void *C, const void *A, const void *B,
                       const float *bias, cgs_kept *kept) {
    dnnl_memory_t packed = kept && kept->from == B ? kept->packed : g->packed;
    dnnl_memory_set_data_handle(g->A, (void *)(uintptr_t)A);
    dnnl_memory_set_data_handle(g->B, (void *)(uintptr_t)B);
    dnnl_memory_set_data_handle(g->C, C);
    dnnl_memory_set_data_handle(g->scratch, c->scratch);
    if (g->reorder && !(packed != g->packed && kept->fresh)) {
        dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, g->B}, {DNNL_ARG_TO, packed}};
        dnnl_primitive_execute(g->reorder, c->stream, 2, args);
        if (packed != g->packed) kept->fresh = true;
    }
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, g->A},
                              {DNNL_ARG_WEIGHTS, g->reorder ? packed : g->B},
                              {DNNL_ARG_DST, g->C},
                              {DNNL_ARG_SCRATCHPAD, g->scratch},
                              {DNNL_ARG_BIAS, g->bias}};
    if (bias) dnnl_memory_set_data_handle(g->bias, (void *)(uintptr_t)bias);
    dnnl_primitive_execute(g->multiply, c->stream, bias ? 5 : 4, args);
}

#endif /* CGS_WITH_ONEDNN */

/* ---- all of them ------------------------------------------------------------------------- */

cgs_status cgs_gemm_cache_create(cgs_gemm_cache **out, bool onednn) {
    cgs_gemm_cache *c = *out = calloc(1, sizeof *c);
    if (!c) return cgs_fail(CGS_ENOMEM, "no memory for matrix products");
#ifdef CGS_WITH_ONEDNN
    c->onednn = onednn;
    if (dnnl_engine_create(&c->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags) != dnnl_success) {
        cgs_gemm_cache_destroy(c);
        *out = NULL;
        return cgs_fail(CGS_EDEVICE, "oneDNN has no CPU engine");
    }
#else
    (void)onednn;
#endif
    return CGS_OK;
}

void cgs_gemm_cache_destroy(cgs_gemm_cache *c) {
    if (!c) return;
    while (c->first) {
        cgs_gemm *g = c->first;
        c->first = g->next;
#ifdef CGS_WITH_ONEDNN
        destroy_onednn(g);
#endif
        free(g->tiles);
        free(g);
    }
#ifdef CGS_WITH_ONEDNN
    if (c->stream) dnnl_stream_destroy(c->stream);
    if (c->engine) dnnl_engine_destroy(c->engine);
    free(c->scratch);
#endif
    free(c);
}

static bool same(const cgs_product *a, const cgs_product *b) {
    return a->M == b->M && a->N == b->N && a->K == b->K && a->in == b->in && a->out == b->out &&
           a->a_transposed == b->a_transposed && a->b_transposed == b->b_transposed &&
           a->bias == b->bias && a->accumulate == b->accumulate;
}

cgs_status cgs_gemm_prepare(cgs_device *d, const cgs_product *p, cgs_gemm **out) {
    cgs_gemm_cache *c = cgs_cpu_of(d)->gemms;
    for (cgs_gemm *g = c->first; g; g = g->next)
        if (same(&g->p, p)) {
            *out = g;
            return CGS_OK;
        }
    cgs_gemm *g = *out = calloc(1, sizeof *g);
    if (!g)
        return cgs_fail(CGS_ENOMEM, "no memory for a %zu x %zu x %zu product", p->M, p->N, p->K);
    g->p = *p;
    g->next = c->first;
    c->first = g;
    const cgs_cpu *cpu = cgs_cpu_of(d);
    if (by_tiles(cpu, p)) {
        g->tiles = aligned(cpu->table->tiles_words(p) * sizeof *g->tiles);
        return g->tiles ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for a product by tiles");
    }
#ifdef CGS_WITH_ONEDNN
    if (!create_onednn(c, g)) destroy_onednn(g);
#endif
    return CGS_OK;
}

/* bytes of B as this product wants it, 0 when it reads B as it is */
static size_t packed_bytes(const cgs_gemm *g) {
    if (g->tiles) return g->p.a_transposed ? 0 : g->p.K * g->p.N * cgs_dtype_size(g->p.in);
#ifdef CGS_WITH_ONEDNN
    const dnnl_memory_desc_t *layout;
    if (g->reorder && dnnl_memory_get_memory_desc(g->packed, &layout) == dnnl_success)
        return dnnl_memory_desc_get_size(layout);
#endif
    return 0;
}

static bool same_layout(const cgs_kept *k, const cgs_gemm *g) {
    if (k->transposed != g->p.b_transposed || k->tiles != (g->tiles != NULL)) return false;
#ifdef CGS_WITH_ONEDNN
    const dnnl_memory_desc_t *layout;
    if (!g->tiles)
        return dnnl_memory_get_memory_desc(g->packed, &layout) == dnnl_success &&
               dnnl_memory_desc_equal(&k->layout, layout);
#endif
    return true;
}

cgs_status cgs_gemm_keep(cgs_device *d, cgs_gemm *g, const void *B, cgs_kept **out) {
    cgs_gemm_cache *c = cgs_cpu_of(d)->gemms;
    size_t bytes = packed_bytes(g);
    *out = NULL;
    if (bytes == 0) return CGS_OK;
    for (cgs_kept *k = c->kept; k; k = k->next)
        if (k->from == B && same_layout(k, g)) {
            k->users++;
            *out = k;
            return CGS_OK;
        }
    cgs_kept *k = calloc(1, sizeof *k);
    void *data = aligned(bytes);
    if (!k || !data) {
        free(k);
        free(data);
        return cgs_fail(CGS_ENOMEM, "no memory for reordered weights");
    }
    *k = (cgs_kept){.from = B,
                    .bytes = g->p.K * g->p.N * cgs_dtype_size(g->p.in),
                    .users = 1,
                    .transposed = g->p.b_transposed,
                    .next = c->kept,
                    .data = data,
                    .tiles = g->tiles != NULL};
    c->kept = k;
    *out = k;
#ifdef CGS_WITH_ONEDNN
    const dnnl_memory_desc_t *layout;
    if (!g->tiles) {
        if (dnnl_memory_get_memory_desc(g->packed, &layout) == dnnl_success &&
            dnnl_memory_create(&k->packed, layout, c->engine, data) == dnnl_success) {
            k->layout = *layout;
            return CGS_OK;
        }
        cgs_gemm_drop(d, k);
        *out = NULL;
        return cgs_fail(CGS_EDEVICE, "oneDNN refused memory for reordered weights");
    }
#endif
    return CGS_OK;
}

void cgs_gemm_drop(cgs_device *d, cgs_kept *k) {
    if (!k || --k->users > 0) return;
    cgs_kept **at = &cgs_cpu_of(d)->gemms->kept;
    while (*at != k) at = &(*at)->next;
    *at = k->next;
#ifdef CGS_WITH_ONEDNN
    if (k->packed) dnnl_memory_destroy(k->packed);
#endif
    free(k->data);
    free(k);
}

void cgs_gemm_changed(cgs_device *d, const void *p, size_t bytes) {
    uintptr_t first = (uintptr_t)p;
    for (cgs_kept *k = cgs_cpu_of(d)->gemms->kept; k; k = k->next) {
        uintptr_t from = (uintptr_t)k->from;
        if (first < from + k->bytes && from < first + bytes) k->fresh = false;
    }
}

void cgs_gemm_run(cgs_device *d, cgs_gemm *g, void *C, const void *A, const void *B,
                  const float *bias, cgs_kept *kept) {
    cgs_cpu *cpu = cgs_cpu_of(d);
    if (g->p.M * g->p.N == 0) return;
    if (g->tiles) {
        run_tiles(d, g, C, A, B, bias, kept);
        cgs_meet();
        return;
    }
#ifdef CGS_WITH_ONEDNN
    if (g->multiply) {
        if (cgs_member() == 0) run_onednn(cpu->gemms, g, C, A, B, bias, kept);
        cgs_meet();
        return;
    }
#endif
    cpu->table->product(d, &g->p, C, A, B, bias);
    cgs_meet();
}

int cgs_bench_gemm_side(const cgs_device *d) {
    if (!strcmp(d->ops->name, "ref")) return 128;
    return !strcmp(d->ops->name, "cpu") ? 2048 : 4096;
}

/* other devices: a linear map through their table, on numbers that are not zero */
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
