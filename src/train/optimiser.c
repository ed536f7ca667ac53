/* optimiser.c - see optimiser.h. */
#include "train/optimiser.h"

#include <stdlib.h>
#include <string.h>

cgs_adamw cgs_adamw_usual(float lr, float weight_decay, uint64_t step) {
    return (cgs_adamw){.lr = lr,
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .eps = 1e-8f,
                       .weight_decay = weight_decay,
                       .clip_scale = 1,
                       .step = step};
}

void cgs_adamw_apply(cgs_params *p, const cgs_adamw *a, size_t first, size_t count) {
    p->device->ops->adamw(p->device, a, p->values + first, p->grads + first, p->moment1 + first,
                          p->moment2 + first, p->bf16 + first, count);
}

cgs_status cgs_descend(cgs_tape *t, cgs_params *p, const cgs_adamw *a) {
    cgs_tape_backward(t);
    cgs_adamw_apply(p, a, 0, p->trainable);
    return p->device->ops->sync(p->device);
}

/* ---- a model in training ---------------------------------------------------------------- */

static bool is_matrix(const cgs_param *e) { return e->trainable && e->rank == 2; }

/* Appends what lies between two ends, if anything does. */
static void add_gap(cgs_optimiser *o, size_t first, size_t end, int group) {
    if (first < end) o->gap[o->gaps++] = (struct cgs_gap){first, end - first, group};
}

/* Fills the gaps, and list (entries at most) with the matrices; returns the scratch they need. */
static uint64_t divide(cgs_optimiser *o, const cgs_group *group, int groups, cgs_matrix *list,
                       int *matrices) {
    const cgs_params *p = o->params;
    uint64_t work = 0;
    *matrices = 0;
    for (int k = 0; k < groups; k++) {
        size_t at = group[k].first, end = at + group[k].count;
        o->first_matrix[k] = *matrices;
        for (int i = 0; o->muon && i < p->count; i++) { /* entries ascend */
            const cgs_param *e = &p->list[i];
            if (!is_matrix(e) || e->offset < group[k].first || e->offset >= end) continue;
            add_gap(o, at, e->offset, k);
            at = e->offset + e->count;
            list[(*matrices)++] = (cgs_matrix){e->offset, work, e->dim[0], e->dim[1]};
            work += cgs_muon_work(e->dim[0], e->dim[1]);
        }
        add_gap(o, at, end, k);
        o->first_matrix[k + 1] = *matrices;
    }
    return work;
}

cgs_status cgs_optimiser_open(cgs_optimiser *o, cgs_params *p, const char *kind,
                              const cgs_group *group, int groups) {
    *o = (cgs_optimiser){.params = p, .muon = !strcmp(kind, "muon")};
    if (!o->muon && strcmp(kind, "adamw") != 0)
        return cgs_fail(CGS_EARG, "optim.kind: \"%.20s\" is not recipe, adamw or muon", kind);
    const cgs_backend *ops = p->device->ops;
    cgs_matrix *list = malloc(((size_t)p->count + 1) * sizeof *list);
    o->gap = malloc(((size_t)p->count + CGS_GROUPS) * sizeof *o->gap);
    cgs_status rc = list && o->gap ? CGS_OK : cgs_fail(CGS_ENOMEM, "optimiser: no memory");
    if (rc == CGS_OK) {
        int n;
        uint64_t work = divide(o, group, groups, list, &n);
        size_t bytes = (size_t)n * sizeof *list;
        if (n > 0) rc = ops->alloc(p->device, (void **)&o->matrix, bytes);
        if (n > 0 && rc == CGS_OK) rc = ops->upload(p->device, o->matrix, list, bytes);
        if (n > 0 && rc == CGS_OK)
            rc = ops->alloc(p->device, (void **)&o->work, work * sizeof *o->work);
    }
    free(list);
    return rc;
}

void cgs_optimiser_close(cgs_optimiser *o) {
    if (o->matrix) o->params->device->ops->release(o->params->device, o->matrix);
    if (o->work) o->params->device->ops->release(o->params->device, o->work);
    free(o->gap);
    *o = (cgs_optimiser){0};
}

void cgs_optimiser_step(cgs_optimiser *o, cgs_adamw a, const cgs_group *group, const float *rate) {
    cgs_params *p = o->params;
    for (int i = 0; i < o->gaps; i++) {
        a.lr = rate[o->gap[i].group];
        a.weight_decay = group[o->gap[i].group].weight_decay;
        cgs_adamw_apply(p, &a, o->gap[i].first, o->gap[i].count);
    }
    for (int k = 0; o->matrix && k < CGS_GROUPS; k++) {
        int first = o->first_matrix[k], n = o->first_matrix[k + 1] - first;
        if (n <= 0) continue;
        cgs_muon m = {.lr = rate[k],
                      .beta = a.beta1,
                      .weight_decay = group[k].weight_decay,
                      .clip_scale = a.clip_scale};
        p->device->ops->muon(p->device, &m, o->matrix + first, n, p->values, p->grads, p->moment1,
                             p->bf16, o->work);
    }
}
