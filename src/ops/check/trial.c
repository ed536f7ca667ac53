/* trial.c - building, filling and running one operation. */
#include "ops/check/trial.h"

#include <stdlib.h>

#include "core/rng.h"
#include "ops/check/cases.h"

/* ---- leaves --------------------------------------------------------------------- */

static cgs_tensor *fail(cgs_op_trial *t, cgs_status status) {
    if (t->status == CGS_OK) t->status = status;
    return NULL;
}

static void fill(cgs_op_leaf *l, uint64_t stream, bool coarse) {
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, stream);
    size_t n = cgs_numel(l->x);
    for (size_t i = 0; i < n; i++) {
        float u = cgs_rng_f32(&r), v = l->low + (l->high - l->low) * u;
        if (l->fill == CGS_FILL_AWAY && cgs_rng_u64(&r) & 1) v = -v;
        if (l->fill == CGS_FILL_COIN) v = u < 0.5f ? l->low : l->high;
        if (l->fill == CGS_FILL_BYTES) v = (float)(int)(256 * u);
        l->value[i] = coarse ? cgs_bf16_to_f32(cgs_f32_to_bf16(v)) : v;
    }
}

/* memory for a tensor that the tape does not own: data, gradient, rounded copy */
static cgs_status place_outside(cgs_op_trial *t, cgs_tensor *x) {
    const cgs_backend *ops = t->device->ops;
    void *p;
    x->outside = true;
    CGS_TRY(ops->alloc(t->device, &x->data, cgs_bytes(x)));
    if (x->wants_grad) CGS_TRY(ops->alloc(t->device, &x->grad, cgs_bytes(x)));
    if (t->act == CGS_BF16) {
        CGS_TRY(ops->alloc(t->device, &p, cgs_numel(x) * sizeof(uint16_t)));
        x->bf16 = p;
    }
    return CGS_OK;
}

static cgs_tensor *add_leaf(cgs_op_trial *t, const char *name, cgs_dtype dtype, float low,
                            float high, cgs_fill how, int rank, const int *dim, bool outside,
                            bool grad) {
    if (t->leaves == CGS_MAX_LEAVES)
        return fail(t, cgs_fail(CGS_EARG, "trial: more than %d leaves", CGS_MAX_LEAVES));
    cgs_op_leaf *l = &t->leaf[t->leaves++];
    *l = (cgs_op_leaf){.fill = how, .low = low, .high = high};
    if (outside) {
        l->x = &l->own;
        l->own = (cgs_tensor){.name = name, .rank = rank, .dtype = dtype, .wants_grad = grad};
        for (int i = 0; i < rank; i++) l->own.dim[i] = dim[i];
        cgs_status rc = place_outside(t, l->x);
        if (rc != CGS_OK) fail(t, rc);
    } else {
        l->x = cgs_input(t->tape, name, dtype, rank, dim);
        if (grad) cgs_require_grad(t->tape, l->x);
    }
    l->value = malloc(cgs_numel(l->x) * sizeof *l->value);
    if (!l->value) fail(t, cgs_fail(CGS_ENOMEM, "trial: no memory for %s", name));
    return l->x;
}

cgs_tensor *cgs_op_trial_input(cgs_op_trial *t, const char *name, cgs_dtype dtype, float low,
                               float high, cgs_fill how, int rank, const int *dim) {
    return add_leaf(t, name, dtype, low, high, how, rank, dim, false, true);
}

cgs_tensor *cgs_op_trial_constant(cgs_op_trial *t, const char *name, cgs_dtype dtype, float low,
                                  float high, cgs_fill how, int rank, const int *dim) {
    return add_leaf(t, name, dtype, low, high, how, rank, dim, false, false);
}

cgs_tensor *cgs_op_trial_parameter(cgs_op_trial *t, const char *name, float low, float high,
                                   int rank, const int *dim) {
    return add_leaf(t, name, CGS_F32, low, high, CGS_FILL_UNIFORM, rank, dim, true, true);
}

cgs_tensor *cgs_op_trial_state(cgs_op_trial *t, const char *name, float low, float high, int rank,
                               const int *dim) {
    cgs_tensor *x = add_leaf(t, name, CGS_F32, low, high, CGS_FILL_UNIFORM, rank, dim, true, false);
    if (x) t->leaf[t->leaves - 1].state = true;
    return x;
}

/* ---- the loss -------------------------------------------------------------------- */

/* sum x*weight, with weights that every element type holds exactly */
static cgs_tensor *project(cgs_op_trial *t, cgs_tensor *x) {
    cgs_op_leaf *p = &t->probe[t->probes++];
    int n = (int)cgs_numel(x), row[2] = {1, n};
    *p = (cgs_op_leaf){.x = &p->own};
    p->own = (cgs_tensor){.name = "probe", .rank = 2, .dim = {1, n}};
    cgs_status rc = place_outside(t, p->x);
    p->value = malloc((size_t)n * sizeof *p->value);
    if (rc != CGS_OK || !p->value) {
        fail(t, rc != CGS_OK ? rc : cgs_fail(CGS_ENOMEM, "trial: no memory for a projection"));
        return x;
    }
    cgs_rng r = cgs_rng_stream(2, CGS_STREAM_TEST, (uint64_t)t->probes);
    for (int i = 0; i < n; i++) p->value[i] = ((float)cgs_rng_below(&r, 128) - 63.5f) / 64;
    return cgs_linear_f32(t->tape, cgs_reshape(t->tape, x, 2, row), p->x, NULL);
}

static cgs_tensor *make_loss(cgs_op_trial *t, bool twice) {
    cgs_tensor *terms[CGS_MAX_LEAVES + 1] = {project(t, t->out)};
    int count = 1, leaves = t->leaves;
    for (int i = 0; i < leaves && twice; i++)
        if (t->leaf[i].x->wants_grad) terms[count++] = project(t, t->leaf[i].x);
    if (count == 1) return terms[0];
    /* 1 or 1/2: incoming gradients stay exact in every element type */
    cgs_tensor *w =
        cgs_op_trial_constant(t, "term weights", CGS_F32, 0.5f, 1, CGS_FILL_COIN, 1, &count);
    return w ? cgs_weighted_sum(t->tape, w, terms, count) : terms[0];
}

/* ---- life ------------------------------------------------------------------------- */

static cgs_status write_leaf(cgs_op_trial *t, cgs_op_leaf *l) {
    CGS_TRY(cgs_tensor_write(t->tape, l->x, l->value));
    if (l->x->bf16) t->device->ops->round_bf16(t->device, l->x->bf16, l->x->data, cgs_numel(l->x));
    return CGS_OK;
}

/* random, between -1 and 1 */
static cgs_status write_changes(cgs_op_trial *t, cgs_op_leaf *l, uint64_t stream) {
    size_t n = cgs_numel(l->x) * (size_t)t->directions;
    if (!l->x->tangent) return CGS_OK;
    l->tangent = malloc(n * sizeof *l->tangent);
    if (!l->tangent) return cgs_fail(CGS_ENOMEM, "trial: no memory for changes");
    cgs_rng r = cgs_rng_stream(4, CGS_STREAM_TEST, stream);
    for (size_t i = 0; i < n; i++) l->tangent[i] = 2 * cgs_rng_f32(&r) - 1;
    return cgs_tensor_write_tangent(t->tape, l->x, l->tangent);
}

static cgs_status build(cgs_op_trial *t, const cgs_op_case *c, bool twice, bool coarse) {
    CGS_TRY(cgs_tape_create(&t->tape, t->device, t->act));
    t->out = c->build(t, c->n);
    if (t->status != CGS_OK) return t->status;
    cgs_keep(t->out);
    t->record = cgs_tape_record(t->tape, cgs_tape_records(t->tape) - 1);
    t->gradient = t->out->wants_grad;
    cgs_tape_directions(t->tape, t->directions);
    cgs_tensor *loss = make_loss(t, twice);
    if (t->status != CGS_OK) return t->status;
    CGS_TRY(cgs_tape_finish(t->tape, t->gradient ? loss : NULL));
    if (t->record->op != c->op)
        return cgs_fail(CGS_EARG, "the case ends with %s", cgs_op_name(t->record->op));
    cgs_tape_set_step(t->tape, 3);
    for (int i = 0; i < t->leaves; i++) {
        fill(&t->leaf[i], (uint64_t)i, coarse);
        CGS_TRY(write_leaf(t, &t->leaf[i]));
        CGS_TRY(write_changes(t, &t->leaf[i], (uint64_t)i));
    }
    for (int i = 0; i < t->probes; i++) CGS_TRY(write_leaf(t, &t->probe[i]));
    return CGS_OK;
}

static cgs_status create(cgs_op_trial *t, const cgs_op_case *c, bool twice, bool coarse) {
    cgs_status rc = build(t, c, twice, coarse);
    if (rc == CGS_OK) return CGS_OK;
    cgs_fail_in(rc, c->name);
    cgs_op_trial_destroy(t);
    return rc;
}

cgs_status cgs_op_trial_create(cgs_op_trial *t, const cgs_op_case *c, cgs_device *d, cgs_dtype act,
                               bool twice, bool coarse) {
    *t = (cgs_op_trial){.device = d, .act = act};
    return create(t, c, twice, coarse);
}

cgs_status cgs_op_trial_create_pushing(cgs_op_trial *t, const cgs_op_case *c, cgs_device *d,
                                       cgs_dtype act, int directions) {
    *t = (cgs_op_trial){.device = d, .act = act, .directions = directions};
    return create(t, c, false, true);
}

static void drop(cgs_op_trial *t, cgs_op_leaf *l) {
    const cgs_backend *ops = t->device->ops;
    free(l->value);
    free(l->tangent);
    if (l->own.data) ops->release(t->device, l->own.data);
    if (l->own.grad) ops->release(t->device, l->own.grad);
    if (l->own.bf16) ops->release(t->device, l->own.bf16);
}

void cgs_op_trial_destroy(cgs_op_trial *t) {
    cgs_tape_destroy(t->tape);
    for (int i = 0; i < t->leaves; i++) drop(t, &t->leaf[i]);
    for (int i = 0; i < t->probes; i++) drop(t, &t->probe[i]);
    *t = (cgs_op_trial){0};
}

cgs_status cgs_op_trial_run(cgs_op_trial *t) {
    cgs_tape_forward(t->tape);
    if (t->gradient) cgs_tape_backward(t->tape);
    return t->device->ops->sync(t->device);
}

/* ---- poison ----------------------------------------------------------------------- */

/* all bits set is NaN in f32 and bf16 */
static cgs_status poison(cgs_op_trial *t, void *p, size_t bytes) {
    unsigned char bad[4096];
    memset(bad, 0xff, sizeof bad);
    for (size_t at = 0; p && at < bytes; at += sizeof bad) {
        size_t n = bytes - at < sizeof bad ? bytes - at : sizeof bad;
        CGS_TRY(t->device->ops->upload(t->device, (unsigned char *)p + at, bad, n));
    }
    return CGS_OK;
}

cgs_status cgs_op_trial_poison(cgs_op_trial *t) {
    int records = cgs_tape_records(t->tape);
    const cgs_record *last = cgs_tape_record(t->tape, records - 1);
    for (int i = 0; i < records; i++) {
        const cgs_record *r = cgs_tape_record(t->tape, i);
        CGS_TRY(poison(t, r->out->data, cgs_bytes(r->out)));
        /* the loss's own gradient is the constant 1 that backward starts from */
        if (r != last) CGS_TRY(poison(t, r->out->grad, cgs_bytes(r->out)));
        CGS_TRY(
            poison(t, r->out->tangent, cgs_numel(r->out) * (size_t)t->directions * sizeof(float)));
        for (int k = 0; k < CGS_MAX_SAVED; k++)
            if (r->saved[k]) CGS_TRY(poison(t, r->saved[k]->data, cgs_bytes(r->saved[k])));
        for (int k = 0; k < CGS_MAX_IN; k++)
            if (r->in[k]) CGS_TRY(poison(t, r->in[k]->grad, cgs_bytes(r->in[k])));
    }
    return CGS_OK;
}
