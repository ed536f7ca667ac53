/* tape.c - a tape's life: create, finish, run forward, run backward, destroy. */
#include <stdio.h>
#include <stdlib.h>

#include "core/threads.h"
#include "ops/tape_internal.h"

cgs_status cgs_tape_create(cgs_tape **out, cgs_device *d, cgs_dtype act) {
    cgs_tape *t = calloc(1, sizeof *t);
    *out = t;
    if (!t) return cgs_fail(CGS_ENOMEM, "tape: no memory");
    t->device = d;
    t->act = act;
    t->nothing = (cgs_tensor){.name = "nothing", .rank = 1, .dim = {1}};
    return CGS_OK;
}

void cgs_tape_destroy(cgs_tape *t) {
    if (!t) return;
    const cgs_backend *ops = t->device->ops;
    for (int i = 0; i < 2; i++)
        if (t->pass[i]) ops->forget(t->device, t->pass[i]);
    for (int i = 0; t->finished && i < t->records; i++)
        ops->unprepare(t->device, tape_record(t, i));
    if (t->memory) ops->release(t->device, t->memory);
    for (int i = 0; i < t->record_room; i++) free(t->record_chunks[i]);
    for (int i = 0; i < t->node_room; i++) free(t->node_chunks[i]);
    free(t->record_chunks);
    free(t->node_chunks);
    free(t->active);
    tape_free_segments(t);
    free(t);
}

cgs_tensor *tape_fail(cgs_tape *t, cgs_status status) {
    if (t->status == CGS_OK) {
        t->status = status;
        snprintf(t->error, sizeof t->error, "%s", cgs_last_error());
    }
    return &t->nothing;
}

/* makes space for one more element of a chunked list */
static bool grow(void ***chunks, int *capacity, int count, size_t element) {
    if (count < *capacity * TAPE_CHUNK) return true;
    void **more = realloc(*chunks, (size_t)(*capacity + 1) * sizeof *more);
    if (!more) return false;
    *chunks = more;
    more[*capacity] = calloc(TAPE_CHUNK, element);
    if (!more[*capacity]) return false;
    (*capacity)++;
    return true;
}

cgs_record *tape_new_record(cgs_tape *t, cgs_opcode op) {
    void **chunks = (void **)t->record_chunks;
    bool ok = grow(&chunks, &t->record_room, t->records, sizeof(cgs_record));
    t->record_chunks = (cgs_record **)chunks;
    if (!ok) {
        tape_fail(t, cgs_fail(CGS_ENOMEM, "tape: no memory for record %d", t->records));
        return NULL;
    }
    cgs_record *r = tape_record(t, t->records++);
    r->op = op;
    r->step = &t->step;
    r->batch_invariant = t->batch_invariant;
    return r;
}

cgs_tensor *tape_new_tensor(cgs_tape *t, cgs_dtype dtype, int rank, const int *dim, int producer) {
    void **chunks = (void **)t->node_chunks;
    bool ok = grow(&chunks, &t->node_room, t->nodes, sizeof(tape_node));
    t->node_chunks = (tape_node **)chunks;
    if (!ok) return tape_fail(t, cgs_fail(CGS_ENOMEM, "tape: no memory for tensor %d", t->nodes));
    tape_node *n = tape_node_at(t, t->nodes++);
    n->producer = producer;
    n->segment = -1;
    n->tensor.dtype = dtype;
    n->tensor.rank = rank;
    for (int i = 0; i < rank; i++) n->tensor.dim[i] = dim[i];
    return &n->tensor;
}

/* marks the adjacent records that the backend fuses */
static void join_records(cgs_tape *t) {
    const cgs_backend *ops = t->device->ops;
    if (!ops->joins) return;
    for (int i = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        for (int k = 0; k < CGS_MAX_IN; k++)
            if (r->in[k] && !tape_root(r->in[k])->outside)
                ((tape_node *)(void *)tape_root(r->in[k]))->readers++;
    }
    for (int i = 0; i < t->records; i++) {
        cgs_record *r = tape_record(t, i);
        const cgs_tensor *x = r->in[0] ? tape_root(r->in[0]) : NULL;
        if (!x || x->outside || x->keep) continue;
        const tape_node *n = (const tape_node *)(const void *)x;
        r->alone = n->readers == 1 && n->producer >= 0 && t->directions == 0;
    }
    for (int i = 0; i + 1 < t->records; i++) {
        cgs_record *first = tape_record(t, i), *second = tape_record(t, i + 1);
        bool reads = false;
        for (int k = 0; k < CGS_MAX_IN; k++)
            reads |= second->in[k] && tape_root(second->in[k]) == first->out;
        const tape_node *between = (const tape_node *)(const void *)first->out;
        bool alone = between->readers == 1 && !first->out->keep;
        if (!reads || !ops->joins(t->device, first, second, alone)) continue;
        first->next = second;
        second->before = first;
    }
}

/* ---- what nobody reads --------------------------------------------------------------------- */

/* The only reader of what record i makes, if that is the next record and reads it directly. */
static const cgs_record *only_reader(const cgs_tape *t, int i) {
    const cgs_record *r = tape_record(t, i), *reader = NULL;
    if (r->out->keep) return NULL;
    for (int j = i + 1; j < t->records; j++)
        for (int k = 0; k < CGS_MAX_IN; k++) {
            cgs_tensor *x = tape_record(t, j)->in[k];
            if (!x || tape_root(x) != r->out) continue;
            if (j > i + 1 || x != r->out) return NULL;
            reader = tape_record(t, j);
        }
    return reader;
}

/* Of how many tokens at the beginning of x (B,T,3*all), made by record i, nobody reads queries. */
static int unread_queries(const cgs_tape *t, int i, const cgs_tensor *x) {
    int least = x->dim[1];
    if (x->keep || x->view_of) return 0;
    for (int j = i + 1; j < t->records; j++)
        for (int k = 0; k < CGS_MAX_IN; k++) {
            const cgs_record *r = tape_record(t, j);
            int mine = 0;
            if (!r->in[k] || tape_root(r->in[k]) != x) continue;
            if (r->op == CGS_OP_join && r->in[k] == x) {
                mine = unread_queries(t, j, r->out) - (k == 1 ? r->in[0]->dim[1] : 0);
            } else if (r->op == CGS_OP_attention && r->in[k] == x) {
                bool first = r->arg.attention.causal && r->arg.attention.block == 1;
                bool infers = !r->out->wants_grad && r->arg.attention.dropout <= 0 &&
                              x->dim[1] <= CGS_SHORT_WINDOW;
                if (infers)
                    mine = r->arg.attention.unread > first ? r->arg.attention.unread : first;
            }
            if (mine < least) least = mine;
        }
    return least < 0 ? 0 : least;
}

/* Of a window that grows often the last token only is read, and in any the first sees no other. */
static void find_unread(cgs_tape *t) {
    for (int i = 0; i < t->records; i++) {
        cgs_record *r = tape_record(t, i);
        const cgs_record *take = r->op == CGS_OP_attention ? only_reader(t, i) : NULL;
        if (take && take->op == CGS_OP_take) r->arg.attention.unread = take->arg.take.t0;
    }
    for (int i = 0; i < t->records; i++) {
        cgs_record *r = tape_record(t, i);
        if (r->op != CGS_OP_linear || r->out->rank != 3 || r->out->wants_grad) continue;
        int unread = unread_queries(t, i, r->out);
        if (unread == 0) continue;
        r->arg.linear.tokens = r->out->dim[1];
        r->arg.linear.unread = unread;
        r->arg.linear.columns = r->out->dim[2] / 3;
    }
}

cgs_status cgs_tape_finish(cgs_tape *t, cgs_tensor *loss) {
    if (t->status != CGS_OK) return cgs_fail(t->status, "%s", t->error);
    if (t->finished) return cgs_fail(CGS_EARG, "tape: finished twice");
    if (loss && (cgs_numel(loss) != 1 || loss->dtype != CGS_F32 || !loss->wants_grad))
        return cgs_fail(CGS_EARG, "tape: the loss must be one f32 number that depends on "
                                  "something with a gradient");
    if (t->directions && !cgs_tape_pushes(t->device))
        return cgs_fail(CGS_EDEVICE, "tape: %s cannot push tangents", t->device->ops->name);
    t->loss = loss;
    join_records(t);
    find_unread(t);
    CGS_TRY(tape_plan_memory(t));
    for (int i = 0; i < t->records; i++) {
        cgs_status rc = t->device->ops->prepare(t->device, tape_record(t, i));
        if (rc != CGS_OK) {
            while (i-- > 0) t->device->ops->unprepare(t->device, tape_record(t, i));
            return rc;
        }
    }
    t->finished = true;
    if (loss) {
        const float one = 1.0f;
        CGS_TRY(t->device->ops->upload(t->device, loss->grad, &one, sizeof one));
    }
    return CGS_OK;
}

static void call_forward(void *tape) {
    const cgs_tape *t = tape;
    for (int i = 0, s = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        if (s < t->segments && t->segment[s].first == i) {
            t->device->ops->forward_segment(t->device, &t->segment[s], NULL);
            i += t->segment[s++].records - 1;
        } else {
            t->device->ops->forward[r->op](t->device, r);
        }
    }
}

static void call_backward(void *tape) {
    const cgs_tape *t = tape;
    for (int i = t->records - 1; i >= 0; i--) {
        const cgs_record *r = tape_record(t, i);
        if (t->active[i]) t->device->ops->backward[r->op](t->device, r);
    }
}

static void run(cgs_tape *t, int direction, void (*calls)(void *)) {
    const cgs_backend *ops = t->device->ops;
    if (ops->run)
        ops->run(t->device, &t->pass[direction], t->step, calls, t);
    else
        calls(t);
}

void cgs_tape_forward(cgs_tape *t) { run(t, 0, call_forward); }
void cgs_tape_backward(cgs_tape *t) { run(t, 1, call_backward); }

bool cgs_tape_pushes(const cgs_device *d) { return d->ops->tangent[0] != NULL; }

void cgs_tape_directions(cgs_tape *t, int directions) {
    t->directions = directions;
    t->one_by_one = directions > 0; /* a record's tangents come right after its result */
}

void cgs_tape_push(cgs_tape *t) {
    const cgs_backend *ops = t->device->ops;
    for (int i = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        ops->forward[r->op](t->device, r);
        if (r->out->tangent) ops->tangent[r->op](t->device, r);
    }
}

void cgs_tape_forward_timed(cgs_tape *t, double *seconds) {
    cgs_device *d = t->device;
    for (int i = 0, s = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        if (s < t->segments && t->segment[s].first == i) {
            d->ops->forward_segment(d, &t->segment[s], seconds + i);
            i += t->segment[s++].records - 1;
            continue;
        }
        double begun = cgs_now();
        d->ops->forward[r->op](d, r);
        d->ops->sync(d);
        seconds[i] += cgs_now() - begun;
    }
}

void cgs_tape_one_by_one(cgs_tape *t) { t->one_by_one = true; }
int cgs_tape_segments(const cgs_tape *t) { return t->segments; }

void cgs_tape_freeze_parameters(cgs_tape *t) { t->frozen = true; }
cgs_dtype cgs_tape_set_act(cgs_tape *t, cgs_dtype act) {
    cgs_dtype before = t->act;
    t->act = act;
    return before;
}
void cgs_tape_batch_invariant(cgs_tape *t) { t->batch_invariant = true; }
void cgs_tape_set_step(cgs_tape *t, uint64_t step) { t->step = step; }
size_t cgs_tape_memory(const cgs_tape *t) { return t->bytes; }
int cgs_tape_records(const cgs_tape *t) { return t->records; }
const cgs_record *cgs_tape_record(const cgs_tape *t, int i) { return tape_record(t, i); }
cgs_device *cgs_tape_device(const cgs_tape *t) { return t->device; }
cgs_dtype cgs_tape_act(const cgs_tape *t) { return t->act; }

static cgs_status read_any(cgs_tape *t, const cgs_tensor *x, const void *from, float *out) {
    if (!from) return cgs_fail(CGS_EARG, "tensor %s: nothing to read", x->name ? x->name : "?");
    size_t n = cgs_numel(x);
    const cgs_backend *ops = t->device->ops;
    CGS_TRY(ops->sync(t->device));
    if (x->dtype == CGS_F32) return ops->download(t->device, out, from, n * 4);
    /* narrow types are loaded into the tail of the output and widened from the front */
    unsigned char *tail = (unsigned char *)out + n * (4 - cgs_dtype_size(x->dtype));
    CGS_TRY(ops->download(t->device, tail, from, cgs_bytes(x)));
    for (size_t i = 0; i < n; i++) {
        if (x->dtype == CGS_BF16) {
            uint16_t h;
            memcpy(&h, tail + 2 * i, 2);
            out[i] = cgs_bf16_to_f32(h);
        } else {
            out[i] = (float)tail[i];
        }
    }
    return CGS_OK;
}

cgs_status cgs_tensor_read(cgs_tape *t, const cgs_tensor *x, float *out) {
    return read_any(t, x, x->data, out);
}

cgs_status cgs_tensor_read_grad(cgs_tape *t, const cgs_tensor *x, float *out) {
    return read_any(t, x, x->grad, out);
}

static size_t tangent_bytes(const cgs_tape *t, const cgs_tensor *x) {
    return cgs_numel(x) * (size_t)t->directions * sizeof(float);
}

static cgs_status no_tangent(const cgs_tensor *x) {
    return cgs_fail(CGS_EARG, "tensor %s: no tangents", x->name ? x->name : "?");
}

cgs_status cgs_tensor_read_tangent(cgs_tape *t, const cgs_tensor *x, float *out) {
    if (!x->tangent) return no_tangent(x);
    CGS_TRY(t->device->ops->sync(t->device));
    return t->device->ops->download(t->device, out, x->tangent, tangent_bytes(t, x));
}

cgs_status cgs_tensor_write_tangent(cgs_tape *t, cgs_tensor *x, const float *values) {
    if (!x->tangent) return no_tangent(x);
    return t->device->ops->upload(t->device, x->tangent, values, tangent_bytes(t, x));
}

cgs_status cgs_tensor_write(cgs_tape *t, cgs_tensor *x, const float *values) {
    size_t n = cgs_numel(x);
    const cgs_backend *ops = t->device->ops;
    if (x->dtype == CGS_F32) return ops->upload(t->device, x->data, values, n * 4);
    /* narrow types piece by piece: a step writes its inputs, and allocates nothing */
    enum { PIECE = 4096 };
    uint16_t narrow[PIECE];
    size_t each = cgs_dtype_size(x->dtype);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < count; i++) {
            if (x->dtype == CGS_BF16)
                narrow[i] = cgs_f32_to_bf16(values[at + i]);
            else
                ((unsigned char *)narrow)[i] = (unsigned char)values[at + i];
        }
        unsigned char *to = (unsigned char *)x->data + at * each;
        CGS_TRY(ops->upload(t->device, to, narrow, count * each));
    }
    return CGS_OK;
}
