/* backend.c - the fast CPU backend: its table, memory, and the preparation of records. */
#define _GNU_SOURCE /* madvise */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/arena.h"
#include "core/cpu.h"
#include "core/team.h"
#include "ops/cpu/gemm.h"

/* ---- instruction sets ---------------------------------------------------------------- */

/* the best first; those after "base" are for tests only */
typedef struct instruction_set {
    const char *name;
    const cgs_cpu_table *table;
    cgs_tiles tiles;
    cgs_isa needs;
} instruction_set;
#if defined __x86_64__
#define TABLE(name) &cgs_cpu_table_##name
#else
#define TABLE(name) NULL /* not compiled for this architecture */
#endif
static const instruction_set sets[] = {
    {"amx", TABLE(v4), CGS_TILES_AMX, CGS_ISA_AMX},
    {"v4", TABLE(v4), CGS_TILES_NONE, CGS_ISA_V4},
    {"v3", TABLE(v3), CGS_TILES_NONE, CGS_ISA_V3},
    {"base", &cgs_cpu_table_base, CGS_TILES_NONE, CGS_ISA_BASE},
    {"v4 tiles", TABLE(v4), CGS_TILES_PLAIN, CGS_ISA_V4},
};
enum { SETS = sizeof sets / sizeof sets[0] };

static bool supported(const instruction_set *s) {
    const cgs_cpu_answer *a = cgs_cpu_ask();
    return s->needs <= a->own && (!s->tiles || a->bf16);
}

static void use(cgs_cpu *c, const instruction_set *s) {
    c->isa = s->name;
    c->table = s->table;
    c->tiles = s->tiles;
    c->pairs = s->needs >= CGS_ISA_V4 && cgs_cpu_ask()->bf16;
}

cgs_status cgs_cpu_limit_isa(cgs_device *d, const char *isa, bool products) {
    cgs_cpu *c = cgs_cpu_of(d);
    for (size_t i = 0; i < SETS; i++) {
        if (strcmp(sets[i].name, isa)) continue;
        if (!supported(&sets[i]))
            return cgs_fail(CGS_EDEVICE, "\"%s\" cannot be used here (%s)", isa,
                            cgs_cpu_ask()->reason);
        cgs_gemm_cache_destroy(c->gemms);
        c->gemms = NULL;
        use(c, &sets[i]);
        return cgs_gemm_cache_create(&c->gemms, products, d->threads);
    }
    return cgs_fail(CGS_EARG, "unknown instruction set \"%.20s\"", isa);
}

const char *cgs_cpu_isa(const cgs_device *d) { return cgs_cpu_of(d)->isa; }

/* ---- memory ---------------------------------------------------------------------------- */

/* An update walks through gigabytes, and with small pages it waits for their addresses. */
#define HUGE_PAGE ((size_t)2 << 20)

static cgs_status alloc(cgs_device *d, void **p, size_t bytes) {
    (void)d;
    size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : CGS_ALIGN;
    size_t size = (bytes ? (bytes - 1) / align + 1 : 1) * align;
    *p = size >= bytes ? aligned_alloc(align, size) : NULL;
    if (!*p) return cgs_fail(CGS_ENOMEM, "no memory for %zu bytes", bytes);
#if defined MADV_HUGEPAGE
    if (align == HUGE_PAGE) madvise(*p, size, MADV_HUGEPAGE); /* where it cannot, nothing is lost */
#endif
    memset(*p, 0, size);
    return CGS_OK;
}

static void release(cgs_device *d, void *p) {
    (void)d;
    free(p);
}

static cgs_status upload(cgs_device *d, void *dst, const void *src, size_t bytes) {
    if (bytes) memcpy(dst, src, bytes);
    cgs_gemm_changed(d, dst, bytes);
    return CGS_OK;
}

static cgs_status download(cgs_device *d, void *dst, const void *src, size_t bytes) {
    (void)d;
    if (bytes) memcpy(dst, src, bytes);
    return CGS_OK;
}

static cgs_status sync_cpu(cgs_device *d) {
    (void)d;
    return CGS_OK;
}

/* Scratch is used only inside one operation, so growing may discard its contents. */
static cgs_status grow(cgs_device *d, unsigned char **p, size_t *have, size_t need, size_t copies) {
    need = cgs_align_up(need);
    if (need <= *have) return CGS_OK;
    void *fresh;
    CGS_TRY(alloc(d, &fresh, need * copies));
    free(*p);
    *p = fresh;
    *have = need;
    return CGS_OK;
}

static cgs_status need_thread(cgs_device *d, size_t bytes) {
    cgs_cpu *c = cgs_cpu_of(d);
    return grow(d, &c->thread, &c->thread_bytes, bytes, (size_t)d->threads);
}
static cgs_status need_shared(cgs_device *d, size_t bytes) {
    cgs_cpu *c = cgs_cpu_of(d);
    return grow(d, &c->shared, &c->shared_bytes, bytes, 1);
}

static void close_cpu(cgs_device *d) {
    cgs_cpu *c = cgs_cpu_of(d);
    if (!c) return;
    cgs_gemm_cache_destroy(c->gemms);
    free(c->thread);
    free(c->shared);
    free(c);
    d->impl = NULL;
}

static cgs_status open_cpu(cgs_device *d) {
    cgs_cpu *c = d->impl = calloc(1, sizeof *c);
    if (!c) return cgs_fail(CGS_ENOMEM, "no memory for the cpu device");
    size_t best = 0;
    while (!supported(&sets[best])) best++;
    use(c, &sets[best]);
    cgs_status rc = cgs_gemm_cache_create(&c->gemms, true, d->threads);
    size_t most = 0;
    for (size_t i = 0; i < SETS; i++)
        if (sets[i].table && sets[i].table->product_scratch() > most)
            most = sets[i].table->product_scratch();
    if (rc == CGS_OK) rc = need_thread(d, most);
    if (rc != CGS_OK) close_cpu(d);
    return rc;
}

/* ---- records ----------------------------------------------------------------------------- */

/* whether backward runs, once memory is planned */
static bool trains(const cgs_record *r) { return r->out->grad; }

/* Weights that a tape does not train stay constant over its runs. */
static bool constant_weights(const cgs_record *r, bool backward) {
    return !r->in[1]->wants_grad || !backward;
}

/* the pieces in which all gradients are made in one pass, or none */
static cgs_cpu_pieces joint_pieces(const cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    bool bf16 = x->dtype == CGS_BF16 && y->dtype == CGS_BF16;
    if (!bf16 || !W->wants_grad || r->batch_invariant) return (cgs_cpu_pieces){0};
    return cgs_gemm_joint(d, cgs_rows(x), (size_t)cgs_cols(x), (size_t)cgs_cols(y));
}

/* Rows of a tape with constant weights may be a few of many (plans of a batch), and they get the
 * same bits in any.  Large layers that are trained run in chunks, too. */
static cgs_product forward_product(const cgs_device *d, const cgs_record *r, bool backward) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    return (cgs_product){.M = cgs_rows(x),
                         .N = (size_t)cgs_cols(y),
                         .K = (size_t)cgs_cols(x),
                         .in = x->dtype,
                         .out = x->dtype == CGS_BF16 ? y->dtype : CGS_F32,
                         .b_transposed = true,
                         .bias = r->in[2],
                         .batch_invariant = constant_weights(r, backward) || r->batch_invariant,
                         .in_chunks = joint_pieces(d, r).pieces > 0};
}

static bool separable(cgs_device *d, const cgs_record *r, bool backward) {
    if (r->op != CGS_OP_linear) return true;
    cgs_product p = forward_product(d, r, backward);
    bool may = constant_weights(r, backward) || p.in_chunks;
    return r->in[1]->bf16 && may && cgs_gemm_separable(d, &p);
}

/* Rows in a run of a layer's gradients: equal runs, so that the last one is not short. */
static size_t run_of(size_t n, bool same) {
    size_t runs = (n + CGS_CPU_LINEAR_ROWS - 1) / CGS_CPU_LINEAR_ROWS;
    return same && n >= 2 * CGS_CPU_LINEAR_ROWS ? ((n + runs - 1) / runs + 31) / 32 * 32 : n;
}

/* A GELU and the layer that reads it: backward of the layer is backward of both.  Forward leaves
 * GELU's slope where its input was. */
static bool joins(cgs_device *d, const cgs_record *first, const cgs_record *second, bool alone) {
    return alone && first->op == CGS_OP_activation && first->arg.activation.kind == CGS_GELU &&
           first->alone && first->in[0]->dtype == CGS_BF16 && first->in[0]->wants_grad &&
           second->op == CGS_OP_linear && second->in[0] == first->out &&
           joint_pieces(d, second).pieces > 0;
}

static cgs_status prepare_linear(cgs_device *d, cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_cpu_linear *l = r->impl = calloc(1, sizeof *l);
    if (!l) return cgs_fail(CGS_ENOMEM, "no memory for a linear layer");
    /* copies of x, W, dx and the result in another type, or partial sums of the bias */
    size_t result = n > CGS_CPU_ROW_BLOCKS ? n * m : CGS_CPU_ROW_BLOCKS * m;
    bool mixed = x->dtype != y->dtype;
    size_t floats = mixed ? result + 2 * n * k + 2 * k * m : CGS_CPU_ROW_BLOCKS * m + 2 * k * m;
    CGS_TRY(need_shared(d, floats * sizeof(float)));
    const void *used = x->dtype == CGS_BF16 ? (const void *)W->bf16 : W->data;
    cgs_product p = forward_product(d, r, trains(r));
    bool constant = constant_weights(r, trains(r)), alone = p.batch_invariant;
    cgs_product longest = {.K = k > m ? k : m};
    CGS_TRY(need_thread(d, cgs_cpu_of(d)->table->tiles_scratch(&longest)));
    CGS_TRY(cgs_gemm_prepare(d, &p, &l->forward));
    cgs_dtype type = x->dtype == CGS_BF16 ? y->dtype : CGS_F32; /* of backward */
    bool same = type == x->dtype && type == y->dtype;
    /* weights that no run changes are read in bf16; those that training changes were rounded for
     * forward, and training's bits are those of products in f32 */
    l->mixed_dx = constant && W->bf16 && x->dtype == CGS_BF16 && y->dtype == CGS_F32;
    l->pieces = joint_pieces(d, r);
    bool joint = l->pieces.pieces > 0;
    l->run = joint ? n : run_of(n, same);
    if (joint) {
        const cgs_cpu_table *table = cgs_cpu_of(d)->table;
        floats += table->linear_pairs_words(l->pieces.pieces, k, m);
        CGS_TRY(need_shared(d, floats * sizeof(float)));
        floats = table->linear_pairs_thread_words(l->pieces.run, k, m);
        CGS_TRY(need_thread(d, floats * sizeof(float)));
    }
    for (int i = 0; i < 4; i++) {
        int tail = i / 2, accumulate = i % 2;
        size_t rows = tail ? n % l->run : l->run;
        if (rows == 0) continue;
        cgs_product dx = {.M = rows,
                          .N = k,
                          .K = m,
                          .in = type,
                          .out = type,
                          .accumulate = accumulate,
                          .joint = joint,
                          .batch_invariant = alone};
        cgs_product dW = {.M = m,
                          .N = k,
                          .K = rows,
                          .in = type,
                          .out = CGS_F32,
                          .a_transposed = true,
                          .accumulate = accumulate,
                          .joint = joint};
        if (x->wants_grad && !l->mixed_dx)
            CGS_TRY(cgs_gemm_prepare(d, &dx, &l->back[tail].dx[accumulate]));
        if (W->wants_grad) CGS_TRY(cgs_gemm_prepare(d, &dW, &l->back[tail].dW[accumulate]));
    }
    if (!used) return CGS_OK;
    if (constant || p.in_chunks) CGS_TRY(cgs_gemm_prepack(d, l->forward, used, &l->W_forward));
    if (constant && x->wants_grad && type == x->dtype && n > 0)
        CGS_TRY(cgs_gemm_prepack(d, l->back[0].dx[r->accumulate[0]], used, &l->W_dx));
    return CGS_OK;
}

static cgs_status prepare_sigreg(cgs_device *d, cgs_record *r) {
    const cgs_tensor *z = r->in[0], *A = r->in[1];
    size_t n = cgs_rows(z), P = cgs_rows(A), D = (size_t)cgs_cols(z);
    cgs_cpu_sigreg *s = r->impl = calloc(1, sizeof *s);
    if (!s) return cgs_fail(CGS_ENOMEM, "no memory for SIGReg");
    CGS_TRY(need_shared(d, (n * P + n * D + P * D) * sizeof(float)));
    cgs_product y = {.M = n, .N = P, .K = D, .b_transposed = true};
    cgs_product dz = {.M = n, .N = D, .K = P};
    CGS_TRY(cgs_gemm_prepare(d, &y, &s->forward));
    return cgs_gemm_prepare(d, &dz, &s->dz);
}

static cgs_status prepare(cgs_device *d, cgs_record *r) {
    const cgs_tensor *out = r->out, *x = r->in[0] ? r->in[0] : out;
    r->impl = NULL;
    /* row-wise operations: a few rows of the widest tensor */
    size_t widest = (size_t)cgs_cols(out);
    for (int i = 0; i < CGS_MAX_IN; i++)
        if (r->in[i] && (size_t)cgs_cols(r->in[i]) > widest) widest = (size_t)cgs_cols(r->in[i]);
    CGS_TRY(need_thread(d, (r->directions ? 16 : 4) * widest * sizeof(float)));
    switch (r->op) {
    case CGS_OP_linear: return prepare_linear(d, r);
    case CGS_OP_sigreg: return prepare_sigreg(d, r);
    case CGS_OP_layernorm: return need_shared(d, 2 * CGS_CPU_ROW_BLOCKS * widest * sizeof(float));
    case CGS_OP_mse: return need_shared(d, CGS_CPU_ROW_BLOCKS * sizeof(double));
    case CGS_OP_attention: return need_thread(d, cgs_cpu_of(d)->table->attention_scratch(r));
    case CGS_OP_attend_first: { /* two numbers per token, and four rows of a head */
        size_t width = (size_t)r->arg.attend_first.width;
        return need_thread(d, (2 * (size_t)r->in[1]->dim[1] + 4 * width) * sizeof(float));
    }
    case CGS_OP_straighten:
    case CGS_OP_cgs: {
        size_t T = (size_t)x->dim[1];
        CGS_TRY(need_shared(d, 2 * (size_t)x->dim[0] * sizeof(double)));
        return need_thread(d, 4 * T * widest * sizeof(float) + (3 * T + 1) * T * sizeof(double));
    }
    default: return CGS_OK;
    }
}

static void unprepare(cgs_device *d, cgs_record *r) {
    if (r->op == CGS_OP_linear && r->impl) {
        cgs_cpu_linear *l = r->impl;
        cgs_gemm_drop(d, l->W_forward);
        cgs_gemm_drop(d, l->W_dx);
    }
    free(r->impl);
    r->impl = NULL;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* elements below which waking the helpers costs more than it gains */
#define SMALL 16384

/* runs work on n elements with as many threads as pay off */
static void together(const cgs_device *d, size_t n, cgs_job *work, void *context) {
    cgs_together(n > SMALL ? d->threads : 1, work, context);
}

typedef struct operation {
    cgs_device *d;
    const cgs_record *r;
    cgs_op_fn run;
} operation;

static void run_operation(void *context) {
    const operation *o = context;
    o->run(o->d, o->r);
}

/* approximate number of elements an operation reads, with repetitions */
static size_t elements(const cgs_device *d, const cgs_record *r) {
    size_t most = cgs_numel(r->out);
    for (int i = 0; i < CGS_MAX_IN; i++)
        if (r->in[i] && cgs_numel(r->in[i]) > most) most = cgs_numel(r->in[i]);
    switch (r->op) {
    case CGS_OP_linear: { /* an instruction multiplies 32 pairs: a layer has to be larger */
        bool pairs = cgs_cpu_of(d)->pairs && r->in[0]->dtype == CGS_BF16;
        return cgs_numel(r->out) * (size_t)cgs_cols(r->in[0]) / (pairs ? 16 : 1);
    }
    case CGS_OP_attention: return most * (size_t)r->in[0]->dim[1];
    case CGS_OP_sigreg: return cgs_rows(r->in[0]) * cgs_rows(r->in[1]);
    case CGS_OP_directions: return most * 16;
    default: return most;
    }
}

static void run_record(cgs_device *d, const cgs_record *r, cgs_op_fn run) {
    operation o = {d, r, run};
    together(d, elements(d, r), run_operation, &o);
    if (r->op != CGS_OP_linear) return;
    const cgs_cpu_linear *l = r->impl;
    cgs_gemm_settle(l->W_forward);
    cgs_gemm_settle(l->W_dx);
}

static void forward(cgs_device *d, const cgs_record *r) {
    run_record(d, r, cgs_cpu_of(d)->table->forward[r->op]);
}
static void backward(cgs_device *d, const cgs_record *r) {
    run_record(d, r, cgs_cpu_of(d)->table->backward[r->op]);
}

/* operations on all parameters at once */
typedef struct sweep {
    const cgs_cpu_table *table;
    const cgs_adamw *how;
    float *p, *m, *v;
    const float *g;
    uint16_t *bf16;
    size_t n;
    double part[CGS_CPU_ROW_BLOCKS];
} sweep;

static void square_all(void *context) {
    sweep *s = context;
    s->table->sum_squares(s->g, s->n, s->part);
}
static void step_all(void *context) {
    const sweep *s = context;
    s->table->adamw(s->how, s->p, s->g, s->m, s->v, s->bf16, s->n);
}
static void round_all(void *context) {
    const sweep *s = context;
    s->table->round_bf16(s->bf16, s->g, s->n);
}

static double sum_squares(cgs_device *d, const float *x, size_t n) {
    sweep s = {.table = cgs_cpu_of(d)->table, .g = x, .n = n};
    double sum = 0;
    together(d, n, square_all, &s);
    for (int i = 0; i < CGS_CPU_ROW_BLOCKS; i++) sum += s.part[i];
    return sum;
}
static void adamw(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                  uint16_t *bf16, size_t n) {
    sweep s = {.table = cgs_cpu_of(d)->table,
               .how = a,
               .p = p,
               .m = m,
               .v = v,
               .g = g,
               .bf16 = bf16,
               .n = n};
    together(d, n, step_all, &s);
    cgs_gemm_changed(d, p, n * sizeof *p);
    if (bf16) cgs_gemm_changed(d, bf16, n * sizeof *bf16);
}
static void round_bf16(cgs_device *d, uint16_t *to, const float *from, size_t n) {
    sweep s = {.table = cgs_cpu_of(d)->table, .g = from, .bf16 = to, .n = n};
    together(d, n, round_all, &s);
    cgs_gemm_changed(d, to, n * sizeof *to);
}

typedef struct muon_sweep {
    const cgs_cpu_table *table;
    const cgs_muon *how;
    const cgs_matrix *list;
    int count;
    float *p, *m, *work;
    const float *g;
    uint16_t *bf16;
} muon_sweep;

static void muon_all(void *context) {
    const muon_sweep *s = context;
    s->table->muon(s->how, s->list, s->count, s->p, s->g, s->m, s->bf16, s->work);
}

static void muon(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count, float *p,
                 const float *g, float *m, uint16_t *bf16, float *work) {
    muon_sweep s = {.table = cgs_cpu_of(d)->table,
                    .how = a,
                    .list = list,
                    .count = count,
                    .p = p,
                    .m = m,
                    .work = work,
                    .g = g,
                    .bf16 = bf16};
    size_t products = 0;
    for (int i = 0; i < count; i++) products += (size_t)list[i].rows * (size_t)list[i].columns;
    together(d, 1000 * products, muon_all, &s);
    for (int i = 0; i < count; i++) {
        size_t n = (size_t)list[i].rows * (size_t)list[i].columns;
        cgs_gemm_changed(d, p + list[i].first, n * sizeof *p);
        if (bf16) cgs_gemm_changed(d, bf16 + list[i].first, n * sizeof *bf16);
    }
}

const cgs_backend cgs_backend_cpu = {
    .name = "cpu",
    .kind = CGS_DEVICE_CPU,
    .open = open_cpu,
    .close = close_cpu,
    .alloc = alloc,
    .release = release,
    .upload = upload,
    .download = download,
    .sync = sync_cpu,
    .joins = joins,
    .prepare = prepare,
    .unprepare = unprepare,
    .separable = separable,
    .forward_segment = cgs_cpu_forward_segment,
#define X(name, reads_in, reads_out) [CGS_OP_##name] = forward,
    .forward = {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = backward,
    .backward = {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_cpu_tangent,
    .tangent = {CGS_OPS(X)},
#undef X
    .sum_squares = sum_squares,
    .adamw = adamw,
    .round_bf16 = round_bf16,
    .muon = muon,
};
