/* segments.c - runs a segment of a tape: members of the team take chunks of batch elements, each
 * through all records alone (ops/segments.c). */
#include <stdlib.h>

#include "core/team.h"
#include "core/threads.h"
#include "ops/cpu/gemm.h"

typedef struct chunk {
    cgs_device *d;
    const cgs_segment *s;
    int first, end; /* its elements */
    double *seconds;
} chunk;

/* the record for these elements only; x: memory for its tensors */
static cgs_record narrowed(const chunk *c, int i, cgs_tensor x[CGS_SLOTS]) {
    const cgs_segment *s = c->s;
    cgs_record r = *s->record[i];
    for (int k = 0; k < CGS_SLOTS; k++) {
        cgs_tensor **slot = cgs_record_slot(&r, k);
        const cgs_share *share = &s->share[i][k];
        if (!*slot || (!share->each && !share->lane)) continue;
        x[k] = **slot;
        *slot = &x[k];
        char *data = x[k].data;
        if (share->each) x[k].dim[0] = share->dim * (c->end - c->first);
        x[k].data = share->lane ? data + (size_t)cgs_member() * s->lane_bytes
                                : data + (size_t)c->first * share->each;
    }
    return r;
}

static void run_chunk(void *context) {
    const chunk *c = context;
    const cgs_cpu_table *table = cgs_cpu_of(c->d)->table;
    for (int i = 0; i < c->s->records; i++) {
        cgs_tensor x[CGS_SLOTS];
        cgs_record r = narrowed(c, i, x);
        double begun = c->seconds ? cgs_now() : 0;
        table->forward[r.op](c->d, &r);
        if (c->seconds) c->seconds[i] += cgs_now() - begun;
    }
}

static void run_chunks(void *context) {
    const chunk *all = context;
    const cgs_segment *s = all->s;
    size_t n = (size_t)((s->elements + s->chunk - 1) / s->chunk);
    CGS_SHARE (i, n) {
        chunk c = *all;
        c.first = (int)i * s->chunk;
        c.end = c.first + s->chunk < s->elements ? c.first + s->chunk : s->elements;
        if (c.seconds) c.seconds += cgs_member() * s->records;
        cgs_apart(run_chunk, &c);
    }
}

typedef struct packing {
    cgs_device *d;
    const cgs_cpu_linear *l;
    const void *W;
} packing;

static void pack(void *context) {
    const packing *p = context;
    cgs_gemm_refresh(p->d, p->l->forward, p->W, p->l->W_forward);
}

void cgs_cpu_forward_segment(cgs_device *d, const cgs_segment *s, double *seconds) {
    chunk all = {.d = d, .s = s};
    for (int i = 0; i < s->records; i++) {
        packing p = {d, s->record[i]->impl, s->record[i]->in[1] ? s->record[i]->in[1]->bf16 : NULL};
        if (s->record[i]->op != CGS_OP_linear || cgs_gemm_is_fresh(p.l->W_forward)) continue;
        cgs_together(d->threads, pack, &p);
        cgs_gemm_settle(p.l->W_forward);
    }
    if (!seconds) {
        cgs_together(d->threads, run_chunks, &all);
        return;
    }
    size_t n = (size_t)s->records, lanes = (size_t)s->lanes;
    all.seconds = calloc(n * lanes, sizeof *all.seconds);
    cgs_together(d->threads, run_chunks, &all);
    for (size_t i = 0; all.seconds && i < n * lanes; i++)
        seconds[i % n] += all.seconds[i] / (double)lanes;
    free(all.seconds);
}
