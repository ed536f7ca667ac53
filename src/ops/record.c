/* record.c - the operations as a model calls them: check shapes, append a record.
 *
 * Nothing runs here.  A tensor wants a gradient iff one of the inputs does, so planning with frozen
 * models and training share this code. */
#include <stdio.h>

#include "ops/tape_internal.h"

/* "(16, 257, 192) bf16", for messages */
static const char *shape(const cgs_tensor *x, char out[96]) {
    if (!x) return "nothing";
    int at = snprintf(out, 96, "(");
    for (int i = 0; i < x->rank && at < 80; i++)
        at += snprintf(out + at, (size_t)(96 - at), i ? ", %d" : "%d", x->dim[i]);
    snprintf(out + at, (size_t)(96 - at), ") %s",
             x->dtype == CGS_F32    ? "f32"
             : x->dtype == CGS_BF16 ? "bf16"
                                    : "u8");
    return out;
}

static cgs_tensor *misfit(cgs_tape *t, const char *op, const cgs_tensor *a, const cgs_tensor *b) {
    char sa[96], sb[96];
    if (t->status != CGS_OK) return &t->nothing;
    return tape_fail(
        t, cgs_fail(CGS_EARG, "%s: shapes %s and %s do not fit", op, shape(a, sa), shape(b, sb)));
}

#define CHECK(condition, op, a, b)                                                                 \
    if (t->status != CGS_OK || !(condition)) return misfit(t, op, a, b)

static bool same_shape(const cgs_tensor *a, const cgs_tensor *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

/* on a frozen tape a parameter is recorded as a constant with the same memory */
static cgs_tensor *as_recorded(cgs_tape *t, cgs_tensor *x) {
    if (!x || !t->frozen || !x->outside || !x->wants_grad) return x;
    cgs_tensor *constant = tape_new_tensor(t, x->dtype, x->rank, x->dim, -1);
    if (constant == &t->nothing) return constant;
    *constant = *x;
    constant->wants_grad = false;
    constant->grad = NULL;
    return constant;
}

/* appends a record with these inputs and makes its output */
static cgs_record *append(cgs_tape *t, cgs_opcode op, cgs_dtype dtype, int rank, const int *dim,
                          cgs_tensor *a, cgs_tensor *b, cgs_tensor *c) {
    cgs_record *r = tape_new_record(t, op);
    if (!r) return NULL;
    cgs_tensor *out = tape_new_tensor(t, dtype, rank, dim, t->records - 1);
    cgs_tensor *in[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        r->in[i] = as_recorded(t, in[i]);
        out->wants_grad |= r->in[i] && r->in[i]->wants_grad;
    }
    r->out = out;
    return r;
}

static void save(cgs_tape *t, cgs_record *r, int slot, cgs_dtype dtype, int rank, const int *dim) {
    r->saved[slot] = tape_new_tensor(t, dtype, rank, dim, t->records - 1);
}

#define APPEND(r, ...)                                                                             \
    cgs_record *r = append(__VA_ARGS__);                                                           \
    if (!r) return &t->nothing

static const int scalar_dim[1] = {1};

cgs_tensor *cgs_input(cgs_tape *t, const char *name, cgs_dtype dtype, int rank, const int *dim) {
    if (t->status != CGS_OK) return &t->nothing;
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] <= 0 || n > SIZE_MAX / 16 / (size_t)dim[i])
            return tape_fail(t,
                             cgs_fail(CGS_EARG, "input %s: dimension %d is %d", name, i, dim[i]));
        n *= (size_t)dim[i];
    }
    cgs_tensor *x = tape_new_tensor(t, dtype, rank, dim, -1);
    x->name = name;
    x->keep = true;
    return x;
}

void cgs_require_grad(cgs_tape *t, cgs_tensor *x) {
    if (t->status == CGS_OK) x->wants_grad = true;
}

void cgs_seed(cgs_tape *t, cgs_tensor *x) {
    if (t->status != CGS_OK || !x->wants_grad) return;
    cgs_tensor *root = tape_root(cgs_keep(x));
    ((tape_node *)(void *)root)->seeded = true; /* a tensor is its node's first member */
    t->seeded = true;
}

cgs_tensor *cgs_keep(cgs_tensor *x) {
    tape_root(x)->keep = true;
    return x;
}

cgs_tensor *cgs_reshape(cgs_tape *t, cgs_tensor *x, int rank, const int *dim) {
    size_t n = 1;
    for (int i = 0; i < rank; i++) n *= (size_t)dim[i];
    CHECK(n == cgs_numel(x), "reshape", x, NULL);
    cgs_tensor *y = tape_new_tensor(t, x->dtype, rank, dim, -1);
    y->view_of = x;
    y->wants_grad = x->wants_grad;
    y->outside = x->outside;
    return y;
}

cgs_tensor *cgs_part(cgs_tape *t, const cgs_tensor *x, int first, int count) {
    CHECK(x->outside && x->rank > 0 && first >= 0 && count > 0 && first + count <= x->dim[0],
          "part", x, NULL);
    cgs_tensor *y = tape_new_tensor(t, x->dtype, x->rank, x->dim, -1);
    if (y == &t->nothing) return y;
    size_t before = cgs_numel(x) / (size_t)x->dim[0] * (size_t)first;
    *y = *x;
    y->dim[0] = count;
    y->data = (char *)x->data + before * cgs_dtype_size(x->dtype);
    if (x->grad) y->grad = (char *)x->grad + before * cgs_dtype_size(x->dtype);
    if (x->bf16) y->bf16 = x->bf16 + before;
    return y;
}

cgs_tensor *cgs_stop_gradient(cgs_tape *t, cgs_tensor *x) {
    cgs_tensor *y = cgs_reshape(t, x, x->rank, x->dim);
    if (t->status == CGS_OK) y->wants_grad = false;
    return y;
}

cgs_tensor *cgs_patchify(cgs_tape *t, cgs_tensor *frames, int patch, const float mean[3],
                         const float std[3]) {
    return cgs_patchify_resized(t, frames, frames->dim[1], patch, mean, std);
}

cgs_tensor *cgs_patchify_resized(cgs_tape *t, cgs_tensor *frames, int size, int patch,
                                 const float mean[3], const float std[3]) {
    CHECK(frames->rank == 4 && frames->dtype == CGS_U8 && frames->dim[3] == 3 &&
              frames->dim[1] == frames->dim[2] && frames->dim[1] <= 8192 && patch > 0 && size > 0 &&
              size <= 8192 && size % patch == 0,
          "patchify", frames, NULL);
    int side = size / patch;
    int dim[2] = {frames->dim[0] * side * side, 3 * patch * patch};
    APPEND(r, t, CGS_OP_patchify, t->act, 2, dim, frames, NULL, NULL);
    r->arg.patchify.size = size;
    r->arg.patchify.patch = patch;
    for (int c = 0; c < 3; c++) {
        r->arg.patchify.mean[c] = mean[c];
        r->arg.patchify.std[c] = std[c];
    }
    return r->out;
}

cgs_tensor *cgs_unfold(cgs_tape *t, cgs_tensor *x) {
    int side = 1;
    while (x->rank == 3 && side * side < x->dim[1]) side++;
    CHECK(x->rank == 3 && side * side == x->dim[1], "unfold", x, NULL);
    int dim[3] = {x->dim[0], x->dim[1], 9 * x->dim[2]};
    APPEND(r, t, CGS_OP_unfold, t->act, 3, dim, x, NULL, NULL);
    r->arg.unfold.side = side;
    return r->out;
}

static cgs_tensor *linear(cgs_tape *t, cgs_tensor *x, cgs_tensor *W, cgs_tensor *b,
                          cgs_dtype dtype) {
    CHECK(W->rank == 2 && cgs_cols(x) == W->dim[1], "linear", x, W);
    CHECK(!b || (int)cgs_numel(b) == W->dim[0], "linear", W, b);
    int dim[CGS_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dim[i] = x->dim[i];
    dim[x->rank - 1] = W->dim[0];
    APPEND(r, t, CGS_OP_linear, dtype, x->rank, dim, x, W, b);
    return r->out;
}

cgs_tensor *cgs_linear(cgs_tape *t, cgs_tensor *x, cgs_tensor *W, cgs_tensor *b) {
    return linear(t, x, W, b, t->act);
}
cgs_tensor *cgs_linear_f32(cgs_tape *t, cgs_tensor *x, cgs_tensor *W, cgs_tensor *b) {
    return linear(t, x, W, b, CGS_F32);
}

cgs_tensor *cgs_tokens(cgs_tape *t, cgs_tensor *x, cgs_tensor *cls, cgs_tensor *pos) {
    int D = cgs_cols(x), P = (int)cgs_rows(pos) - 1;
    CHECK(P > 0 && cgs_cols(pos) == D && cgs_rows(x) % (size_t)P == 0, "tokens", x, pos);
    CHECK((int)cgs_numel(cls) == D, "tokens", x, cls);
    int dim[3] = {(int)(cgs_rows(x) / (size_t)P), P + 1, D};
    APPEND(r, t, CGS_OP_tokens, CGS_F32, 3, dim, x, cls, pos);
    return r->out;
}

cgs_tensor *cgs_add_pos(cgs_tape *t, cgs_tensor *x, cgs_tensor *pos) {
    CHECK(x->rank == 3 && cgs_cols(pos) == x->dim[2] && (int)cgs_rows(pos) >= x->dim[1], "add_pos",
          x, pos);
    APPEND(r, t, CGS_OP_add_pos, CGS_F32, 3, x->dim, x, pos, NULL);
    return r->out;
}

cgs_tensor *cgs_add(cgs_tape *t, cgs_tensor *x, cgs_tensor *y) {
    CHECK(same_shape(x, y), "add", x, y);
    APPEND(r, t, CGS_OP_add, x->dtype, x->rank, x->dim, x, y, NULL);
    return r->out;
}

static cgs_tensor *layernorm(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b, float eps,
                             cgs_dtype dtype) {
    CHECK(!w == !b && (!w || ((int)cgs_numel(w) == cgs_cols(x) && cgs_numel(b) == cgs_numel(w))),
          "layernorm", x, w);
    APPEND(r, t, CGS_OP_layernorm, dtype, x->rank, x->dim, x, w, b);
    r->arg.layernorm.eps = eps;
    int n[1] = {(int)cgs_rows(x)};
    save(t, r, 0, CGS_F32, 1, n);
    save(t, r, 1, CGS_F32, 1, n);
    return r->out;
}

/* the affine norm feeds a product; the plain one is modulated first and stays f32 */
cgs_tensor *cgs_layernorm(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b, float eps) {
    return layernorm(t, x, w, b, eps, w ? t->act : x->dtype);
}
cgs_tensor *cgs_layernorm_f32(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b, float eps) {
    return layernorm(t, x, w, b, eps, CGS_F32);
}

/* m (B, Tm, C) conditions x (B, T, D): token (b, i) uses row (b, t0 + i) */
static bool rowmap(const cgs_tensor *x, const cgs_tensor *m, int t0, cgs_rowmap *map) {
    if (x->rank != 3 || m->rank != 3 || x->dim[0] != m->dim[0]) return false;
    *map = (cgs_rowmap){x->dim[1], m->dim[1], t0};
    return t0 >= 0 && t0 + x->dim[1] <= m->dim[1];
}

cgs_tensor *cgs_modulate(cgs_tape *t, cgs_tensor *x, cgs_tensor *m, int shift, int scale, int t0) {
    cgs_rowmap map;
    int D = cgs_cols(x), C = cgs_cols(m);
    CHECK(rowmap(x, m, t0, &map) && shift >= 0 && scale >= 0 && shift + D <= C && scale + D <= C,
          "modulate", x, m);
    APPEND(r, t, CGS_OP_modulate, x->dtype, 3, x->dim, x, m, NULL);
    r->arg.modulate.rows = map;
    r->arg.modulate.shift = shift;
    r->arg.modulate.scale = scale;
    return r->out;
}

cgs_tensor *cgs_gate_add(cgs_tape *t, cgs_tensor *x, cgs_tensor *y, cgs_tensor *m, int gate,
                         int t0) {
    cgs_rowmap map;
    CHECK(same_shape(x, y), "gate_add", x, y);
    CHECK(rowmap(x, m, t0, &map) && gate >= 0 && gate + cgs_cols(x) <= cgs_cols(m), "gate_add", x,
          m);
    APPEND(r, t, CGS_OP_gate_add, x->dtype, 3, x->dim, x, y, m);
    r->arg.gate_add.rows = map;
    r->arg.gate_add.gate = gate;
    return r->out;
}

cgs_tensor *cgs_attention(cgs_tape *t, cgs_tensor *qkv, int heads, bool causal, int block,
                          float dropout, uint64_t key) {
    CHECK(qkv->rank == 3 && heads > 0 && block > 0 && cgs_cols(qkv) % (3 * heads) == 0, "attention",
          qkv, NULL);
    int B = qkv->dim[0], T = qkv->dim[1], dim[3] = {B, T, cgs_cols(qkv) / 3};
    APPEND(r, t, CGS_OP_attention, t->act, 3, dim, qkv, NULL, NULL);
    r->arg.attention.heads = heads;
    r->arg.attention.width = dim[2] / heads;
    r->arg.attention.causal = causal;
    r->arg.attention.block = block;
    r->arg.attention.dropout = dropout;
    r->arg.attention.key = key;
    int lse[3] = {B, heads, T};
    save(t, r, 0, CGS_F32, 3, lse);
    if (t->device->ops->attention_residual && t->act == CGS_BF16 && r->out->wants_grad)
        save(t, r, 1, CGS_BF16, 3, dim);
    return r->out;
}

cgs_tensor *cgs_attend_first(cgs_tape *t, cgs_tensor *own, cgs_tensor *all, int heads) {
    /* q or qkv beside kv or qkv: the ratio of their columns says which */
    int columns = 0;
    for (int parts = 1; parts <= 3; parts += 2)
        for (int others = 2; others <= 3; others++)
            if (cgs_cols(own) * others == cgs_cols(all) * parts) columns = cgs_cols(own) / parts;
    CHECK(own->rank == 3 && all->rank == 3 && own->dim[0] == all->dim[0] && own->dim[1] == 1 &&
              (own->dtype == all->dtype || own->dtype == CGS_F32) && heads > 0 && columns > 0 &&
              columns % heads == 0,
          "attend_first", own, all);
    int B = own->dim[0], dim[3] = {B, 1, columns}, lse[2] = {B, heads};
    APPEND(r, t, CGS_OP_attend_first, own->dtype, 3, dim, own, all, NULL);
    r->arg.attend_first.heads = heads;
    r->arg.attend_first.width = columns / heads;
    save(t, r, 0, CGS_F32, 2, lse);
    return r->out;
}

static cgs_tensor *activate(cgs_tape *t, cgs_tensor *x, cgs_activation kind, cgs_dtype dtype) {
    CHECK(x->dtype != CGS_U8, "activation", x, NULL);
    APPEND(r, t, CGS_OP_activation, dtype, x->rank, x->dim, x, NULL, NULL);
    r->arg.activation.kind = kind;
    return r->out;
}

cgs_tensor *cgs_activate(cgs_tape *t, cgs_tensor *x, cgs_activation kind) {
    return activate(t, x, kind, t->act);
}
cgs_tensor *cgs_activate_f32(cgs_tape *t, cgs_tensor *x, cgs_activation kind) {
    return activate(t, x, kind, CGS_F32);
}

cgs_tensor *cgs_dropout(cgs_tape *t, cgs_tensor *x, float p, uint64_t key) {
    CHECK(p >= 0 && p < 1, "dropout", x, NULL);
    if (p == 0) return x;
    APPEND(r, t, CGS_OP_dropout, x->dtype, x->rank, x->dim, x, NULL, NULL);
    r->arg.dropout.p = p;
    r->arg.dropout.key = key;
    return r->out;
}

cgs_tensor *cgs_batchnorm(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b,
                          cgs_tensor *running_mean, cgs_tensor *running_var, bool training) {
    int C[1] = {cgs_cols(x)};
    CHECK((int)cgs_numel(w) == C[0] && (int)cgs_numel(b) == C[0], "batchnorm", x, w);
    CHECK((int)cgs_numel(running_mean) == C[0] && (int)cgs_numel(running_var) == C[0], "batchnorm",
          x, running_mean);
    CHECK(!training || cgs_rows(x) > 1, "batchnorm (needs two rows to train)", x, NULL);
    APPEND(r, t, CGS_OP_batchnorm, x->dtype, x->rank, x->dim, x, w, b);
    r->in[3] = running_mean;
    r->in[4] = running_var;
    r->arg.batchnorm.training = training;
    r->arg.batchnorm.eps = CGS_BATCHNORM_EPS;
    r->arg.batchnorm.momentum = CGS_BATCHNORM_MOMENTUM;
    save(t, r, 0, CGS_F32, 1, C);
    save(t, r, 1, CGS_F32, 1, C);
    return r->out;
}

cgs_tensor *cgs_take(cgs_tape *t, cgs_tensor *x, int t0, int n) {
    CHECK(x->rank == 3 && t0 >= 0 && n > 0 && t0 + n <= x->dim[1], "take", x, NULL);
    if (n == x->dim[1]) return x;
    int dim[3] = {x->dim[0], n, x->dim[2]};
    APPEND(r, t, CGS_OP_take, x->dtype, 3, dim, x, NULL, NULL);
    r->arg.take.t0 = t0;
    return r->out;
}

cgs_tensor *cgs_join(cgs_tape *t, cgs_tensor *x, cgs_tensor *y) {
    CHECK(x->rank == 3 && y->rank == 3 && x->dim[0] == y->dim[0] && x->dim[2] == y->dim[2] &&
              x->dtype == y->dtype,
          "join", x, y);
    int dim[3] = {x->dim[0], x->dim[1] + y->dim[1], x->dim[2]};
    APPEND(r, t, CGS_OP_join, x->dtype, 3, dim, x, y, NULL);
    return r->out;
}

cgs_tensor *cgs_repeat(cgs_tape *t, cgs_tensor *x, int times) {
    CHECK(times > 0 && x->rank > 0, "repeat", x, NULL);
    if (times == 1) return x;
    int dim[CGS_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dim[i] = x->dim[i];
    dim[0] *= times;
    APPEND(r, t, CGS_OP_repeat, x->dtype, x->rank, dim, x, NULL, NULL);
    r->arg.repeat.times = times;
    return r->out;
}

cgs_tensor *cgs_mse(cgs_tape *t, cgs_tensor *a, cgs_tensor *b) {
    CHECK(same_shape(a, b), "mse", a, b);
    APPEND(r, t, CGS_OP_mse, CGS_F32, 1, scalar_dim, a, b, NULL);
    return r->out;
}

cgs_tensor *cgs_sqdist(cgs_tape *t, cgs_tensor *a, cgs_tensor *b) {
    size_t n = cgs_rows(a), e = cgs_rows(b);
    CHECK(cgs_cols(a) == cgs_cols(b) && e && n % e == 0, "sqdist", a, b);
    int dim[1] = {(int)n};
    APPEND(r, t, CGS_OP_sqdist, CGS_F32, 1, dim, a, b, NULL);
    r->arg.sqdist.K = (int)(n / e);
    return r->out;
}

cgs_tensor *cgs_directions(cgs_tape *t, int P, int D, uint64_t key) {
    CHECK(P > 0 && D > 0, "directions", NULL, NULL);
    int dim[2] = {P, D};
    APPEND(r, t, CGS_OP_directions, CGS_F32, 2, dim, NULL, NULL, NULL);
    r->arg.directions.key = key;
    return r->out;
}

cgs_tensor *cgs_sigreg(cgs_tape *t, cgs_tensor *z, cgs_tensor *directions) {
    CHECK(z->rank == 3 && directions->rank == 2 && z->dim[2] == directions->dim[1], "sigreg", z,
          directions);
    APPEND(r, t, CGS_OP_sigreg, CGS_F32, 1, scalar_dim, z, directions, NULL);
    int sums[3] = {z->dim[1], directions->dim[0], 2 * CGS_SIGREG_KNOTS};
    save(t, r, 0, CGS_F32, 3, sums);
    return r->out;
}

cgs_tensor *cgs_straighten(cgs_tape *t, cgs_tensor *z) {
    CHECK(z->rank == 3 && z->dim[1] >= 3, "straighten", z, NULL);
    APPEND(r, t, CGS_OP_straighten, CGS_F32, 1, scalar_dim, z, NULL, NULL);
    r->arg.straighten.min_norm = 1e-6f;
    save(t, r, 0, CGS_F32, 1, scalar_dim);
    return r->out;
}

cgs_tensor *cgs_match_geometry(cgs_tape *t, cgs_tensor *z, cgs_tensor *reference, cgs_tensor *mask,
                               bool per_window) {
    CHECK(z->rank == 3 && reference->rank == 3 && z->dim[0] == reference->dim[0] &&
              z->dim[1] == reference->dim[1] + 1 && reference->dim[1] >= 2,
          "cgs", z, reference);
    CHECK(!mask || cgs_numel(mask) == cgs_rows(reference), "cgs", reference, mask);
    APPEND(r, t, CGS_OP_cgs, CGS_F32, 1, scalar_dim, z, reference, mask);
    r->arg.cgs.min_norm = 1e-6f;
    r->arg.cgs.per_window = per_window;
    save(t, r, 0, CGS_F32, 1, scalar_dim);
    return r->out;
}

cgs_tensor *cgs_weighted_sum(cgs_tape *t, cgs_tensor *weights, cgs_tensor **terms, int n) {
    CHECK(n > 0 && n < CGS_MAX_IN && (int)cgs_numel(weights) == n, "weighted_sum", weights, NULL);
    APPEND(r, t, CGS_OP_weighted_sum, CGS_F32, 1, scalar_dim, weights, NULL, NULL);
    for (int i = 0; i < n; i++) {
        CHECK(cgs_numel(terms[i]) == 1 && terms[i]->dtype == CGS_F32, "weighted_sum", weights,
              terms[i]);
        r->in[1 + i] = terms[i];
        r->out->wants_grad |= terms[i]->wants_grad;
    }
    r->arg.weighted_sum.terms = n;
    return r->out;
}
