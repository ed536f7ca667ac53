/* tangent.c - forward mode: tangents by groups of directions, each a piece of its own.
 *
 * Products are where the time goes, and they are this backend's; everything else is the
 * reference's, whose loops run over the directions and so are vectors too. */
#include "core/team.h"
#include "ops/cpu/cpu.h"
#include "ops/ref/ref.h"

typedef void tangent_fn(const cgs_record *r, cgs_lanes l);

static tangent_fn *const of[CGS_OP_COUNT] = {
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_ref_##name##_tangent,
    CGS_OPS(X)
#undef X
};

typedef struct job {
    cgs_device *d;
    const cgs_record *r;
} job;

static cgs_lanes group(const cgs_record *r, size_t i) {
    size_t first = i * CGS_LANES, left = (size_t)r->directions - first;
    return (cgs_lanes){first, left < CGS_LANES ? left : CGS_LANES};
}

static void push_groups(void *context) {
    const job *j = context;
    size_t groups = ((size_t)j->r->directions + CGS_LANES - 1) / CGS_LANES;
    if (j->r->op == CGS_OP_linear) {
        CGS_SHARE (i, groups * cgs_rows(j->r->in[0])) {
            cgs_lanes l = group(j->r, i % groups);
            cgs_cpu_of(j->d)->table->linear_tangent(j->d, j->r, i / groups, l.first, l.count);
        }
    } else {
        CGS_QUEUE (i, groups) of[j->r->op](j->r, group(j->r, i));
    }
}

void cgs_cpu_tangent(cgs_device *d, const cgs_record *r) {
    enum { FEW = 4096 }; /* values: waking helpers costs more than it gains */
    job j = {d, r};
    size_t values = cgs_numel(r->out) * (size_t)r->directions;
    if (r->op == CGS_OP_linear) values *= (size_t)cgs_cols(r->in[0]) / 4;
    cgs_together(values > FEW ? d->threads : 1, push_groups, &j);
}
