/* onednn.c - matrix products by oneDNN: at the top the differences of versions 2 and 3, then their
 * common API. */
#include "ops/cpu/onednn.h"

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/environment.h"

/* returns on failure; the caller releases what exists by then */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        dnnl_status_t status_ = (call);                                                            \
        if (status_ != dnnl_success) return status_;                                               \
    } while (0)

/* ---- versions 2 and 3 ------------------------------------------------------------------ */

/* layout: owned by who made it; const_layout: borrowed from a primitive or an owner */
#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t layout;
typedef const_dnnl_memory_desc_t const_layout;

static dnnl_status_t layout_create(layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag) {
    return dnnl_memory_desc_create_with_tag(out, 2, dims, type, tag);
}

static dnnl_status_t layout_create_apart(layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                         const dnnl_dims_t strides) {
    return dnnl_memory_desc_create_with_strides(out, 2, dims, type, strides);
}

static void layout_destroy(layout l) {
    if (l) dnnl_memory_desc_destroy(l);
}

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_layout A,
                                   const_layout B, const_layout bias, const_layout C,
                                   const_dnnl_primitive_attr_t attr) {
    return dnnl_matmul_primitive_desc_create(out, engine, A, B, bias, C, attr);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post) {
    return dnnl_post_ops_append_sum(post, 1.0f, 0, dnnl_data_type_undef);
}

#else

typedef dnnl_memory_desc_t *layout;
typedef const dnnl_memory_desc_t *const_layout;

static dnnl_status_t layout_create(layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag) {
    *out = malloc(sizeof **out);
    return *out ? dnnl_memory_desc_init_by_tag(*out, 2, dims, type, tag) : dnnl_out_of_memory;
}

static dnnl_status_t layout_create_apart(layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                         const dnnl_dims_t strides) {
    *out = malloc(sizeof **out);
    return *out ? dnnl_memory_desc_init_by_strides(*out, 2, dims, type, strides)
                : dnnl_out_of_memory;
}

static void layout_destroy(layout l) { free(l); }

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_layout A,
                                   const_layout B, const_layout bias, const_layout C,
                                   const_dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t desc;
    TRY(dnnl_matmul_desc_init(&desc, A, B, bias, C));
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post) {
    return dnnl_post_ops_append_sum(post, 1.0f);
}

#endif

void cgs_onednn_version(char *text, size_t size) {
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
}

/* the limit in oneDNN's own environment variable, if it is one */
static unsigned requested(void) {
    static const struct {
        const char *word;
        unsigned isa;
    } words[] = {{"SSE41", dnnl_cpu_isa_sse41},
                 {"AVX", dnnl_cpu_isa_avx},
                 {"AVX2", dnnl_cpu_isa_avx2},
                 {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
                 {"AVX512_CORE_VNNI", dnnl_cpu_isa_avx512_core_vnni}};
    const char *limit = cgs_environment(CGS_ENV_ONEDNN_ISA);
    if (!limit) limit = cgs_environment(CGS_ENV_DNNL_ISA);
    for (size_t i = 0; limit && i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i].word, limit)) return words[i].isa;
    return ~0u;
}

bool cgs_onednn_limit(cgs_isa most) {
    static const unsigned highest[CGS_ISA_AMX] = {[CGS_ISA_BASE] = dnnl_cpu_isa_sse41,
                                                  [CGS_ISA_V3] = dnnl_cpu_isa_avx2,
                                                  [CGS_ISA_V4] = dnnl_cpu_isa_avx512_core_bf16};
    if (most == CGS_ISA_AMX) return true;
    /* each set's bits contain those of the lower ones; asking oneDNN which it would take counts as
     * a use
     * */
    if (dnnl_set_max_cpu_isa((dnnl_cpu_isa_t)(highest[most] & requested())) == dnnl_success)
        return true;
    return !((unsigned)dnnl_get_effective_cpu_isa() & ~highest[most]);
}

/* Debian's oneDNN runs on OpenMP, whose header not every compiler has. */
void omp_set_num_threads(int n);
int omp_get_max_threads(void);

/* restricts OpenMP to the calling thread; returns the number to restore */
static int alone(void) {
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

/* ---- the library ----------------------------------------------------------------------- */

struct cgs_onednn {
    dnnl_engine_t engine;
    unsigned char *scratch; /* (lanes, scratch_bytes) */
    size_t scratch_bytes;
    int lanes;
    dnnl_stream_t stream[]; /* (lanes) */
};

static void *aligned(size_t bytes) {
    return aligned_alloc(CGS_ALIGN, cgs_align_up(bytes ? bytes : 1));
}

cgs_status cgs_onednn_create(cgs_onednn **out, int lanes) {
    *out = NULL;
    cgs_onednn *o = calloc(1, sizeof *o + (size_t)lanes * sizeof(dnnl_stream_t));
    if (!o) return cgs_fail(CGS_ENOMEM, "no memory for oneDNN");
    o->lanes = lanes;
    dnnl_status_t status = dnnl_engine_create(&o->engine, dnnl_cpu, 0);
    for (int i = 0; i < lanes && status == dnnl_success; i++)
        status = dnnl_stream_create(&o->stream[i], o->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) {
        *out = o;
        return CGS_OK;
    }
    cgs_onednn_destroy(o);
    return status == dnnl_out_of_memory ? cgs_fail(CGS_ENOMEM, "no memory for oneDNN")
                                        : cgs_fail(CGS_EDEVICE, "oneDNN has no CPU engine");
}

void cgs_onednn_destroy(cgs_onednn *o) {
    if (!o) return;
    for (int i = 0; i < o->lanes; i++)
        if (o->stream[i]) dnnl_stream_destroy(o->stream[i]);
    if (o->engine) dnnl_engine_destroy(o->engine);
    free(o->scratch);
    free(o);
}

/* scratch is used only inside one run, so growing may discard its contents */
static dnnl_status_t grow_scratch(cgs_onednn *o, size_t bytes) {
    bytes = cgs_align_up(bytes);
    if (bytes <= o->scratch_bytes) return dnnl_success;
    void *p = aligned(bytes * (size_t)o->lanes);
    if (!p) return dnnl_out_of_memory;
    free(o->scratch);
    o->scratch = p;
    o->scratch_bytes = bytes;
    return dnnl_success;
}

/* ---- products --------------------------------------------------------------------------- */

/* arguments of a run; each lane has its own set */
enum { THE_A, THE_B, THE_C, THE_BIAS, THE_SCRATCH, THE_REORDER_SCRATCH, THINGS };

struct cgs_onednn_product {
    cgs_onednn *library;
    dnnl_primitive_t multiply, reorder; /* reorder: NULL when B is read as it is */
    dnnl_memory_t memory[][THINGS];     /* (lanes, THINGS) */
};

struct cgs_onednn_packed {
    void *data;
    /* shared by the lanes, which only read it: binding memory to data writes zeros into the
     * padding, so it happens once */
    dnnl_memory_t memory;
};

/* needed only until the product exists */
typedef struct making {
    layout A, B, C, bias, any; /* any: B in the layout that oneDNN prefers */
    dnnl_post_ops_t post;
    dnnl_primitive_attr_t attr, plain; /* plain: without what follows the product */
    dnnl_primitive_desc_t multiply, reorder;
} making;

static void making_end(making *m) {
    const layout layouts[] = {m->A, m->B, m->C, m->bias, m->any};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) layout_destroy(layouts[i]);
    if (m->multiply) dnnl_primitive_desc_destroy(m->multiply);
    if (m->reorder) dnnl_primitive_desc_destroy(m->reorder);
    if (m->post) dnnl_post_ops_destroy(m->post);
    if (m->attr) dnnl_primitive_attr_destroy(m->attr);
    if (m->plain) dnnl_primitive_attr_destroy(m->plain);
}

static dnnl_data_type_t type_of(cgs_dtype type) { return type == CGS_F32 ? dnnl_f32 : dnnl_bf16; }

/* `apart`: elements from one row to the next as it is stored, which is a column if transposed */
static dnnl_status_t describe(layout *out, size_t rows, size_t cols, cgs_dtype type,
                              bool transposed, size_t apart) {
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t strides = {transposed ? 1 : (dnnl_dim_t)apart,
                                 transposed ? (dnnl_dim_t)apart : 1};
    return layout_create_apart(out, dims, type_of(type), strides);
}

/* the scratchpad is the lane's: one of the library's would belong to all lanes */
static dnnl_status_t create_attr(dnnl_primitive_attr_t *out) {
    TRY(dnnl_primitive_attr_create(out));
    return dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
}

static dnnl_status_t create_multiply(making *m, dnnl_engine_t engine, const cgs_product *p,
                                     const cgs_product *whole, const_layout like) {
    const dnnl_dims_t B = {(dnnl_dim_t)p->K, (dnnl_dim_t)p->N};
    TRY(describe(&m->A, p->M, p->K, p->in, p->a_transposed, p->a_transposed ? whole->M : whole->K));
    TRY(describe(&m->B, p->K, p->N, p->in, p->b_transposed, p->b_transposed ? whole->K : whole->N));
    TRY(describe(&m->C, p->M, p->N, p->out, false, whole->N));
    TRY(describe(&m->bias, 1, p->N, CGS_F32, false, p->N));
    TRY(layout_create(&m->any, B, type_of(p->in), dnnl_format_tag_any));
    TRY(create_attr(&m->attr));
    TRY(create_attr(&m->plain));
    if (p->accumulate) {
        TRY(dnnl_post_ops_create(&m->post));
        TRY(append_sum(m->post));
        TRY(dnnl_primitive_attr_set_post_ops(m->attr, m->post));
    }
    /* products that sum over rows read both factors as they are (gemm.c says why) */
    TRY(matmul_create(&m->multiply, engine, m->A,
                      like              ? like
                      : p->a_transposed ? m->B
                                        : m->any,
                      p->bias ? m->bias : NULL, m->C, m->attr));
    /* its reference code is slower than ours, and below AVX-512 its code for few rows, or for the
     * last ones, sums in another order than that for many; "brg" does not */
    const char *name = "", *required = p->batch_invariant ? "brg" : "";
    TRY(dnnl_primitive_desc_query(m->multiply, dnnl_query_impl_info_str, 0, &name));
    bool fits = strncmp(name, "ref", 3) && !strncmp(name, required, strlen(required));
    return fits ? dnnl_success : dnnl_unimplemented;
}

/* owned by the primitive */
static const_layout layout_of(dnnl_primitive_t primitive, dnnl_query_t which) {
    const_dnnl_primitive_desc_t pd;
    if (dnnl_primitive_get_primitive_desc(primitive, &pd) != dnnl_success) return NULL;
    return dnnl_primitive_desc_query_md(pd, which, 0);
}

static dnnl_status_t create_lane(cgs_onednn_product *g, int lane, const making *m) {
    const const_layout of[THINGS] = {
        [THE_A] = m->A,
        [THE_B] = m->B,
        [THE_C] = m->C,
        [THE_BIAS] = m->bias,
        [THE_SCRATCH] = layout_of(g->multiply, dnnl_query_scratchpad_md),
        [THE_REORDER_SCRATCH] = layout_of(g->reorder, dnnl_query_scratchpad_md)};
    for (int i = 0; i < THINGS; i++)
        if (of[i])
            TRY(dnnl_memory_create(&g->memory[lane][i], of[i], g->library->engine,
                                   DNNL_MEMORY_NONE));
    return dnnl_success;
}

static dnnl_status_t create(cgs_onednn_product *g, making *m, const cgs_product *p,
                            const cgs_product *whole, const cgs_onednn_product *like) {
    cgs_onednn *o = g->library;
    const_layout wanted = like ? layout_of(like->multiply, dnnl_query_weights_md) : NULL;
    TRY(create_multiply(m, o->engine, p, whole, wanted));
    TRY(dnnl_primitive_create(&g->multiply, m->multiply));
    const_layout B = layout_of(g->multiply, dnnl_query_weights_md);
    if (!dnnl_memory_desc_equal(m->B, B)) {
        TRY(dnnl_reorder_primitive_desc_create(&m->reorder, m->B, o->engine, B, o->engine,
                                               m->plain));
        TRY(dnnl_primitive_create(&g->reorder, m->reorder));
        TRY(grow_scratch(
            o, dnnl_memory_desc_get_size(layout_of(g->reorder, dnnl_query_scratchpad_md))));
    }
    TRY(grow_scratch(o,
                     dnnl_memory_desc_get_size(layout_of(g->multiply, dnnl_query_scratchpad_md))));
    for (int i = 0; i < o->lanes; i++) TRY(create_lane(g, i, m));
    return dnnl_success;
}

cgs_status cgs_onednn_product_create(cgs_onednn_product **out, cgs_onednn *o, const cgs_product *p,
                                     const cgs_product *whole, const cgs_onednn_product *like) {
    *out = NULL;
    if (!o) return CGS_OK;
    cgs_onednn_product *g = calloc(1, sizeof *g + (size_t)o->lanes * sizeof g->memory[0]);
    if (!g)
        return cgs_fail(CGS_ENOMEM, "no memory for a %zu x %zu x %zu product", p->M, p->N, p->K);
    g->library = o;
    making m = {0};
    int threads = alone();
    dnnl_status_t status = create(g, &m, p, whole, like);
    omp_set_num_threads(threads);
    making_end(&m);
    if (status == dnnl_success) {
        *out = g;
        return CGS_OK;
    }
    cgs_onednn_product_destroy(g);
    if (status == dnnl_unimplemented) return CGS_OK;
    if (status == dnnl_out_of_memory)
        return cgs_fail(CGS_ENOMEM, "no memory for a %zu x %zu x %zu product", p->M, p->N, p->K);
    return cgs_fail(CGS_EDEVICE, "oneDNN refused a %zu x %zu x %zu product (its status %d)", p->M,
                    p->N, p->K, (int)status);
}

void cgs_onednn_product_destroy(cgs_onednn_product *g) {
    if (!g) return;
    for (int lane = 0; lane < g->library->lanes; lane++)
        for (int i = 0; i < THINGS; i++)
            if (g->memory[lane][i]) dnnl_memory_destroy(g->memory[lane][i]);
    if (g->multiply) dnnl_primitive_destroy(g->multiply);
    if (g->reorder) dnnl_primitive_destroy(g->reorder);
    free(g);
}

/* ---- the right factor --------------------------------------------------------------------- */

size_t cgs_onednn_packed_bytes(const cgs_onednn_product *g) {
    if (!g->reorder) return 0;
    return dnnl_memory_desc_get_size(layout_of(g->multiply, dnnl_query_weights_md));
}

bool cgs_onednn_same_layout(const cgs_onednn_product *a, const cgs_onednn_product *b) {
    return dnnl_memory_desc_equal(layout_of(a->multiply, dnnl_query_weights_md),
                                  layout_of(b->multiply, dnnl_query_weights_md));
}

cgs_status cgs_onednn_packed_create(cgs_onednn_packed **out, const cgs_onednn_product *g) {
    *out = NULL;
    cgs_onednn_packed *k = calloc(1, sizeof *k);
    if (k) k->data = aligned(cgs_onednn_packed_bytes(g));
    if (k && k->data) {
        int threads = alone(); /* it clears the padding */
        dnnl_memory_create(&k->memory, layout_of(g->multiply, dnnl_query_weights_md),
                           g->library->engine, k->data);
        omp_set_num_threads(threads);
    }
    if (k && k->memory) {
        *out = k;
        return CGS_OK;
    }
    cgs_onednn_packed_destroy(k);
    return cgs_fail(CGS_ENOMEM, "no memory for reordered weights");
}

void cgs_onednn_packed_destroy(cgs_onednn_packed *k) {
    if (!k) return;
    if (k->memory) dnnl_memory_destroy(k->memory);
    free(k->data);
    free(k);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static dnnl_memory_t bind(const cgs_onednn_product *g, int lane, int thing, const void *data) {
    dnnl_memory_set_data_handle(g->memory[lane][thing], (void *)(uintptr_t)data);
    return g->memory[lane][thing];
}

static dnnl_memory_t bind_scratch(const cgs_onednn_product *g, int lane, int thing) {
    const cgs_onednn *o = g->library;
    return bind(g, lane, thing, o->scratch ? o->scratch + (size_t)lane * o->scratch_bytes : NULL);
}

void cgs_onednn_pack(const cgs_onednn_product *g, int lane, cgs_onednn_packed *to, const void *B) {
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, bind(g, lane, THE_B, B)},
        {DNNL_ARG_TO, to->memory},
        {DNNL_ARG_SCRATCHPAD, bind_scratch(g, lane, THE_REORDER_SCRATCH)}};
    int threads = alone();
    dnnl_primitive_execute(g->reorder, g->library->stream[lane], 3, args);
    omp_set_num_threads(threads);
}

void cgs_onednn_run(const cgs_onednn_product *g, int lane, void *C, const void *A, const void *B,
                    const cgs_onednn_packed *packed, const float *bias) {
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, bind(g, lane, THE_A, A)},
        {DNNL_ARG_WEIGHTS, packed ? packed->memory : bind(g, lane, THE_B, B)},
        {DNNL_ARG_DST, bind(g, lane, THE_C, C)},
        {DNNL_ARG_SCRATCHPAD, bind_scratch(g, lane, THE_SCRATCH)},
        {DNNL_ARG_BIAS, bias ? bind(g, lane, THE_BIAS, bias) : NULL}};
    int threads = alone();
    dnnl_primitive_execute(g->multiply, g->library->stream[lane], bias ? 5 : 4, args);
    omp_set_num_threads(threads);
}
