/* segments.c - runs of records of a forward pass that a chunk of batch elements goes through at a
 * time.
 *
 * Record by record, each operation reads and writes the activations of the whole batch, and every
 * member of a team waits for the others after it.  In a segment each member takes a chunk of the
 * batch through all records alone, and what exists only between them lives in the member's lane,
 * which has the size of a chunk and stays in its L2 cache.
 *
 * A record belongs to a segment if each batch element's results depend on that element alone and,
 * as the backend confirms, have the same bits whichever others are computed with it.  So neither
 * the size of a chunk nor whether there are segments at all changes a bit.
 *
 * A segment ends where linear layers begin to have another number of rows per element (all tokens,
 * then the last one only), because the chunk that suits a cache is another one there. */
#include <stdlib.h>

#include "ops/tape_internal.h"

/* a chunk's linear layers have about ROWS rows, few enough for L2 and enough not to wait for
 * weights; where that leaves threads without work, fewer, but at least LEAST */
enum { ROWS = 48, LEAST = 8, LINEARS = 2 };

/* which inputs are by batch elements, the others being parameters; 0: not separable */
static const unsigned char by_element[CGS_OP_COUNT] = {
    [CGS_OP_patchify] = 1,  [CGS_OP_unfold] = 1,       [CGS_OP_linear] = 1,
    [CGS_OP_tokens] = 1,    [CGS_OP_add_pos] = 1,      [CGS_OP_add] = 3,
    [CGS_OP_layernorm] = 1, [CGS_OP_modulate] = 3,     [CGS_OP_gate_add] = 7,
    [CGS_OP_attention] = 1, [CGS_OP_attend_first] = 3, [CGS_OP_activation] = 1,
    [CGS_OP_batchnorm] = 1, [CGS_OP_take] = 1,         [CGS_OP_join] = 3,
};

/* the batch of a tape: the first dimension of its first result with three */
static int elements_of(const cgs_tape *t) {
    for (int i = 0; i < t->records; i++) {
        const cgs_record *r = tape_record(t, i);
        if (by_element[r->op] && r->out->rank >= 3) return r->out->dim[0];
    }
    return 0;
}

/* how the record's tensors consist of n elements each; false if they do not */
static bool share_out(cgs_record *r, int n, cgs_share share[CGS_SLOTS]) {
    if (!by_element[r->op]) return false;
    if (r->op == CGS_OP_attention && r->arg.attention.dropout > 0) return false;
    if (r->op == CGS_OP_batchnorm && r->arg.batchnorm.training) return false;
    for (int k = 0; k < CGS_SLOTS; k++) {
        cgs_tensor *x = *cgs_record_slot(r, k);
        bool input = k < CGS_MAX_IN, apart = !input || by_element[r->op] >> k & 1;
        share[k] = (cgs_share){0};
        if (!x) continue;
        if (tape_root(x)->outside == apart) return false;
        if (!apart || (k > CGS_MAX_IN && r->op == CGS_OP_batchnorm)) continue;
        if (x->rank < 1 || x->dim[0] % n) return false;
        share[k] = (cgs_share){.each = cgs_bytes(x) / (size_t)n, .dim = x->dim[0] / n};
    }
    return true;
}

/* elements at a time, 0 where threads would be idle */
static int chunk_of(int elements, int rows, int threads) {
    int most = ROWS / rows > 1 ? ROWS / rows : 1, chunks = (elements + most - 1) / most;
    if (elements < threads || elements / threads * rows < LEAST) return 0;
    if (most > 1) chunks = (chunks + threads - 1) / threads * threads;
    return (elements + chunks - 1) / chunks;
}

static void add_segment(cgs_tape *t, int first, int end, int linears, int elements, int rows) {
    int threads = t->device->threads, chunk = rows ? chunk_of(elements, rows, threads) : 0;
    if (linears < LINEARS || !chunk) return;
    t->segment[t->segments++] = (cgs_segment){.record = t->in_order + first,
                                              .share = t->share + first,
                                              .first = first,
                                              .records = end - first,
                                              .elements = elements,
                                              .chunk = chunk,
                                              .lanes = threads};
}

static void cut(cgs_tape *t) {
    int n = elements_of(t), first = 0, linears = 0, rows = 0;
    for (int i = 0; n > 0 && i <= t->records; i++) {
        cgs_record *r = i < t->records ? tape_record(t, i) : NULL;
        bool fits = r && share_out(r, n, t->share[i]) &&
                    t->device->ops->separable(t->device, r, t->active[i]);
        bool linear = fits && r->op == CGS_OP_linear;
        int mine = linear ? (int)(cgs_rows(r->in[0]) / (size_t)n) : 0;
        if (!fits || (rows && linear && mine != rows)) {
            add_segment(t, first, i, linears, n, rows);
            first = fits ? i : i + 1;
            linears = rows = 0;
        }
        linears += linear;
        if (linear) rows = mine;
    }
}

/* whether backward reads what slot k of record i has */
static bool needed_later(const cgs_tape *t, int i, int k) {
    const cgs_record *r = tape_record(t, i);
    if (!t->active[i] || k > CGS_MAX_IN) return t->active[i];
    return k < CGS_MAX_IN ? tape_backward_reads_in(r, k) : tape_backward_reads_out(r);
}

/* A node that only one segment uses is in its lanes. */
static void mark_lanes(cgs_tape *t) {
    enum { UNUSED = -2, SEVERAL = -1 };
    for (int i = 0; i < t->nodes; i++) tape_node_at(t, i)->segment = UNUSED;
    for (int i = 0, s = 0; i < t->records; i++) {
        while (s < t->segments && i >= t->segment[s].first + t->segment[s].records) s++;
        bool inside = s < t->segments && i >= t->segment[s].first;
        for (int k = 0; k < CGS_SLOTS; k++) {
            cgs_tensor *x = *cgs_record_slot(t->in_order[i], k);
            int at = x ? tape_node_of(t, tape_root(x)) : -1;
            if (at < 0) continue;
            tape_node *n = tape_node_at(t, at);
            if (needed_later(t, i, k))
                n->segment = SEVERAL;
            else if (n->segment == UNUSED)
                n->segment = inside ? s : SEVERAL;
            else if (n->segment != s || !inside)
                n->segment = SEVERAL;
            if (inside && k > CGS_MAX_IN && !t->share[i][k].each) n->whole = true;
        }
    }
    for (int i = 0; i < t->nodes; i++) {
        tape_node *n = tape_node_at(t, i);
        if (n->segment < 0 || n->tensor.keep || n->producer < 0) n->segment = -1;
    }
    for (int s = 0; s < t->segments; s++)
        for (int i = t->segment[s].first; i < t->segment[s].first + t->segment[s].records; i++)
            for (int k = 0; k < CGS_SLOTS; k++) {
                cgs_tensor *x = *cgs_record_slot(t->in_order[i], k);
                int at = x ? tape_node_of(t, tape_root(x)) : -1;
                if (at >= 0) t->share[i][k].lane = tape_node_at(t, at)->segment == s;
            }
}

cgs_status tape_find_segments(cgs_tape *t) {
    size_t n = (size_t)t->records;
    if (t->one_by_one || !t->device->ops->separable || n == 0) return CGS_OK;
    t->segment = calloc(n, sizeof *t->segment);
    t->in_order = calloc(n, sizeof *t->in_order);
    t->share = calloc(n, sizeof *t->share);
    if (!t->segment || !t->in_order || !t->share)
        return cgs_fail(CGS_ENOMEM, "tape: no memory for segments of %d records", t->records);
    for (int i = 0; i < t->records; i++) t->in_order[i] = tape_record(t, i);
    cut(t);
    if (t->segments) mark_lanes(t);
    return CGS_OK;
}

size_t tape_lane_bytes(const cgs_tape *t, const tape_node *n) {
    const cgs_segment *s = &t->segment[n->segment];
    size_t bytes = cgs_bytes(&n->tensor);
    return n->whole ? bytes : bytes / (size_t)s->elements * (size_t)s->chunk;
}

void tape_free_segments(cgs_tape *t) {
    free(t->segment);
    free(t->in_order);
    free(t->share);
}
