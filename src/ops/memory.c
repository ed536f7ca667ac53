/* memory.c - placement of a tape's tensors in memory.
 *
 * Time runs over 2n moments: record i runs forward at moment i and, if it is active,
 * backward at 2n-1-i.  Each buffer (a tensor's data, its tangents, or its gradient) is needed
 * during one interval of moments; two buffers may share memory iff their intervals are disjoint.
 * Buffers are placed largest first at the lowest offset that is free during their whole interval:
 * simple, and within a few per cent of the peak in practice.
 *
 * Fused records (before, next) run at the moments of both.
 *
 * What exists only within a segment (segments.c) is placed in the same way inside a lane.
 *
 * The residual stream: x' = x + y passes its gradient through unchanged, so x shares the gradient
 * buffer of x' and nothing is copied. */
#include <limits.h>
#include <stdlib.h>

#include "core/arena.h"
#include "ops/tape_internal.h"

typedef struct span {
    int first, last;
} span;

typedef struct buffer {
    span when;
    size_t bytes, offset;
    int node; /* whose */
    enum { DATA, GRADIENT, TANGENT } what;
} buffer;

/* planning data of one tape tensor */
typedef struct usage {
    span data, grad;
    int grad_of;     /* node whose gradient buffer this one uses (normally itself) */
    bool grad_begun; /* a contribution has been seen, walking backward */
} usage;

bool tape_backward_reads_in(const cgs_record *r, int i) {
    static const unsigned mask[] = {
#define X(name, reads_in, reads_out) reads_in,
        CGS_OPS(X)
#undef X
    };
    /* a product needs its input only for the gradient of its weights */
    if (r->op == CGS_OP_linear && i == 0) return r->in[1]->wants_grad;
    return mask[r->op] >> i & 1;
}

bool tape_backward_reads_out(const cgs_record *r) {
    static const bool reads[] = {
#define X(name, reads_in, reads_out) reads_out,
        CGS_OPS(X)
#undef X
    };
    return reads[r->op];
}

/* a tape's tensor is a member of its node */
int tape_node_of(const cgs_tape *t, const cgs_tensor *x) {
    for (int c = 0; c < t->node_room; c++) {
        const tape_node *first = t->node_chunks[c];
        const tape_node *n = (const tape_node *)(const void *)x; /* tensor is its first member */
        if (n >= first && n < first + TAPE_CHUNK) return c * TAPE_CHUNK + (int)(n - first);
    }
    return -1; /* a parameter: external memory */
}

static bool passes_gradient_through(const cgs_record *r) {
    return r->op == CGS_OP_add || r->op == CGS_OP_gate_add;
}

/* marks the records between the loss and what wants a gradient */
static void find_active(cgs_tape *t, bool *leads_to_loss /* (nodes) */) {
    if (!t->loss && !t->seeded) return;
    if (t->loss) leads_to_loss[tape_node_of(t, tape_root(t->loss))] = true;
    for (int i = 0; i < t->nodes; i++) leads_to_loss[i] |= tape_node_at(t, i)->seeded;
    for (int i = t->records - 1; i >= 0; i--) {
        const cgs_record *r = tape_record(t, i);
        int out = tape_node_of(t, tape_root(r->out));
        t->active[i] = r->out->wants_grad && leads_to_loss[out];
        for (int k = 0; t->active[i] && k < CGS_MAX_IN; k++) {
            int n = r->in[k] ? tape_node_of(t, tape_root(r->in[k])) : -1;
            if (n >= 0 && r->in[k]->wants_grad) leads_to_loss[n] = true;
        }
    }
}

static void extend(span *s, int moment) {
    if (moment < s->first) s->first = moment;
    if (moment > s->last) s->last = moment;
}

/* ... and the moments of the records fused with r */
static void extend_all(span *s, const cgs_record *r, int moment, bool backward) {
    extend(s, moment);
    if (r->next) extend(s, backward ? moment - 1 : moment + 1);
    if (r->before) extend(s, backward ? moment + 1 : moment - 1);
}

static void find_lifetimes(cgs_tape *t, usage *use, int end) {
    for (int i = 0; i < t->nodes; i++) {
        use[i].data = use[i].grad = (span){INT_MAX, -1};
        use[i].grad_of = i;
        cgs_tensor *x = &tape_node_at(t, i)->tensor;
        if (x->keep) use[i].data.last = end;
        if (tape_node_at(t, i)->producer < 0) use[i].data = (span){0, end};
    }
    for (int i = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        int back = end - 1 - i, out = tape_node_of(t, tape_root(r->out));
        extend_all(&use[out].data, r, i, false);
        if (t->active[i] && tape_backward_reads_out(r)) extend_all(&use[out].data, r, back, true);
        for (int k = 0; k < CGS_MAX_IN; k++) {
            int n = r->in[k] ? tape_node_of(t, tape_root(r->in[k])) : -1;
            if (n < 0) continue;
            extend_all(&use[n].data, r, i, false);
            if (t->active[i] && tape_backward_reads_in(r, k))
                extend_all(&use[n].data, r, back, true);
        }
        for (int k = 0; k < CGS_MAX_SAVED; k++) {
            int n = r->saved[k] ? tape_node_of(t, r->saved[k]) : -1;
            if (n < 0) continue;
            extend_all(&use[n].data, r, i, false);
            if (t->active[i]) extend_all(&use[n].data, r, back, true);
        }
    }
}

/* Chunks of a segment are at different records at a time, so what it shares with others is needed
 * all along. */
static void extend_to_segments(cgs_tape *t, usage *use) {
    for (int s = 0; s < t->segments; s++) {
        const cgs_segment *g = &t->segment[s];
        for (int i = 0; i < g->records; i++)
            for (int k = 0; k < CGS_SLOTS; k++) {
                cgs_tensor *x = *cgs_record_slot(g->record[i], k);
                int n = x ? tape_node_of(t, tape_root(x)) : -1;
                if (n < 0 || tape_node_at(t, n)->segment >= 0) continue;
                extend(&use[n].data, g->first);
                extend(&use[n].data, g->first + g->records - 1);
            }
    }
}

/* what has been written of the parameters' gradients, as disjoint runs of bytes */
typedef struct written {
    const char *from;
    size_t bytes;
} written;

/* Whether a parameter's gradient, or that of a part, was written before; notes it if not. */
static cgs_status find_outside(const cgs_tensor *x, written *list, int *count, bool *before) {
    const char *from = x->grad;
    size_t bytes = cgs_bytes(x), covered = 0;
    for (int i = 0; i < *count; i++) {
        const char *end = list[i].from + list[i].bytes;
        const char *low = from > list[i].from ? from : list[i].from;
        const char *high = from + bytes < end ? from + bytes : end;
        if (low < high) covered += (size_t)(high - low);
    }
    *before = covered > 0;
    if (covered == 0) list[(*count)++] = (written){from, bytes};
    if (covered == 0 || covered == bytes) return CGS_OK;
    return cgs_fail(CGS_EARG, "tape: a part of %s is read after the whole",
                    x->name ? x->name : "a parameter");
}

/* walks backward once: first contributions overwrite, later ones add */
static cgs_status find_gradients(cgs_tape *t, usage *use, int end, written *seen) {
    if (t->loss) {
        int loss = tape_node_of(t, tape_root(t->loss));
        use[loss].grad = (span){0, end}; /* holds the constant 1 */
        use[loss].grad_begun = true;
    }
    for (int i = 0; i < t->nodes; i++)
        if (tape_node_at(t, i)->seeded) {
            use[i].grad = (span){0, end};
            use[i].grad_begun = true;
        }
    int seen_count = 0;
    for (int i = t->records - 1; i >= 0; i--) {
        cgs_record *r = tape_record(t, i);
        if (!t->active[i]) continue;
        int back = end - 1 - i, out = tape_node_of(t, tape_root(r->out));
        extend_all(&use[use[out].grad_of].grad, r, back, true);
        for (int k = 0; k < CGS_MAX_IN; k++) {
            if (!r->in[k] || !r->in[k]->wants_grad) continue;
            cgs_tensor *x = tape_root(r->in[k]);
            if (x->outside) {
                CGS_TRY(find_outside(x, seen, &seen_count, &r->accumulate[k]));
                continue;
            }
            int n = tape_node_of(t, x);
            r->accumulate[k] = use[n].grad_begun;
            cgs_tensor *y = tape_root(r->out);
            if (!use[n].grad_begun && k == 0 && passes_gradient_through(r) && !x->keep &&
                !y->keep && x->dtype == y->dtype && tape_node_at(t, n)->producer >= 0)
                use[n].grad_of = use[out].grad_of;
            use[n].grad_begun = true;
            extend_all(&use[use[n].grad_of].grad, r, back, true);
            if (x->keep || tape_node_at(t, n)->producer < 0) extend(&use[use[n].grad_of].grad, end);
        }
    }
    return CGS_OK;
}

static int by_size(const void *a, const void *b) {
    const buffer *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->node != y->node) return x->node - y->node; /* a total order: the same plan every time */
    return (int)x->what - (int)y->what;
}

static bool overlap(span a, span b) { return a.first <= b.last && b.first <= a.last; }

/* lowest offset that does not overlap a placed buffer in time and space */
static size_t lowest_free(const buffer *placed, int count, const buffer *b) {
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const buffer *p = &placed[i];
            if (!overlap(p->when, b->when)) continue;
            if (offset + b->bytes <= p->offset || offset >= p->offset + p->bytes) continue;
            offset = p->offset + p->bytes;
            moved = true;
        }
    }
    return offset;
}

/* places buffers, of which it changes the order; returns how many bytes they take */
static size_t place(buffer *buffers, int count) {
    size_t top = 0;
    qsort(buffers, (size_t)count, sizeof *buffers, by_size);
    for (int i = 0; i < count; i++) {
        buffers[i].offset = lowest_free(buffers, i, &buffers[i]);
        if (buffers[i].offset + buffers[i].bytes > top) top = buffers[i].offset + buffers[i].bytes;
    }
    return top;
}

/* Places what exists in lanes only: offsets in buffers from `at` on, one segment after the other.
 * Returns the end of that list. */
static int place_lanes(cgs_tape *t, const usage *use, buffer *buffers, int at) {
    size_t bytes = 0;
    for (int s = 0; s < t->segments; s++) {
        int first = at;
        for (int i = 0; i < t->nodes; i++) {
            const tape_node *n = tape_node_at(t, i);
            if (n->segment != s || n->tensor.view_of) continue;
            size_t need = tape_lane_bytes(t, n);
            buffers[at++] = (buffer){.when = use[i].data, .bytes = cgs_align_up(need), .node = i};
        }
        size_t top = place(buffers + first, at - first);
        if (top > bytes) bytes = top;
    }
    for (int s = 0; s < t->segments; s++) t->segment[s].lane_bytes = bytes;
    return at;
}

cgs_status tape_plan_memory(cgs_tape *t) {
    int end = 2 * t->records, count = 0;
    size_t nodes = (size_t)t->nodes + 1;
    cgs_status rc = CGS_OK;
    usage *use = calloc(nodes, sizeof *use);
    buffer *buffers = calloc(3 * nodes, sizeof *buffers);
    bool *leads_to_loss = calloc(nodes, sizeof *leads_to_loss);
    written *seen = calloc((size_t)t->records * CGS_MAX_IN + 1, sizeof *seen);
    t->active = calloc((size_t)t->records + 1, sizeof *t->active);
    if (!use || !buffers || !leads_to_loss || !seen || !t->active) {
        rc = cgs_fail(CGS_ENOMEM, "tape: no memory to plan %d tensors", t->nodes);
        goto done;
    }

    find_active(t, leads_to_loss);
    rc = tape_find_segments(t);
    if (rc != CGS_OK) goto done;
    find_lifetimes(t, use, end);
    extend_to_segments(t, use);
    rc = find_gradients(t, use, end, seen);
    if (rc != CGS_OK) goto done;

    for (int i = 0; i < t->records; i++) tape_record(t, i)->directions = t->directions;
    for (int i = 0; i < t->nodes; i++) {
        cgs_tensor *x = &tape_node_at(t, i)->tensor;
        if (x->view_of || x->outside) continue;
        size_t bytes = cgs_align_up(cgs_bytes(x) ? cgs_bytes(x) : 1);
        if (use[i].data.last >= 0 && tape_node_at(t, i)->segment < 0)
            buffers[count++] = (buffer){.when = use[i].data, .bytes = bytes, .node = i};
        if (use[i].grad_begun && use[i].grad_of == i)
            buffers[count++] =
                (buffer){.when = use[i].grad, .bytes = bytes, .node = i, .what = GRADIENT};
        size_t tangents = cgs_numel(x) * (size_t)t->directions * sizeof(float);
        if (x->wants_grad && tangents && use[i].data.last >= 0)
            buffers[count++] = (buffer){
                .when = use[i].data, .bytes = cgs_align_up(tangents), .node = i, .what = TANGENT};
    }
    t->bytes = place(buffers, count);
    size_t lanes = t->bytes;
    int placed = place_lanes(t, use, buffers, count);
    if (t->segments) t->bytes += (size_t)t->segment[0].lanes * t->segment[0].lane_bytes;

    rc = t->device->ops->alloc(t->device, &t->memory, t->bytes ? t->bytes : 1);
    if (rc != CGS_OK) goto done;
    for (int i = 0; i < placed; i++) {
        cgs_tensor *x = &tape_node_at(t, buffers[i].node)->tensor;
        void *at = (unsigned char *)t->memory + buffers[i].offset + (i < count ? 0 : lanes);
        switch (buffers[i].what) {
        case DATA: x->data = at; break;
        case GRADIENT: x->grad = at; break;
        case TANGENT: x->tangent = at; break;
        }
    }
    for (int i = 0; i < t->nodes; i++) {
        cgs_tensor *x = &tape_node_at(t, i)->tensor;
        if (use[i].grad_begun && use[i].grad_of != i)
            x->grad = tape_node_at(t, use[i].grad_of)->tensor.grad;
    }
    for (int i = 0; i < t->nodes; i++) {
        cgs_tensor *x = &tape_node_at(t, i)->tensor;
        if (!x->view_of) continue;
        x->data = tape_root(x)->data;
        x->grad = tape_root(x)->grad;
        x->tangent = x->wants_grad ? tape_root(x)->tangent : NULL;
        x->bf16 = tape_root(x)->bf16;
    }
done:
    free(use);
    free(buffers);
    free(leads_to_loss);
    free(seen);
    return rc;
}
