/* theory_model.c - see theory_model.h. */
#include "analysis/theory_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/linear_system.h"
#include "analysis/linearise.h"

void cgs_model_theory_free(cgs_model_theory *m) {
    free(m->drift);
    *m = (cgs_model_theory){0};
}

enum { READ = 8 }; /* frames encoded at a time */

/* recorded steps: a frame, and the actions that left it */
typedef struct steps {
    cgs_loaded_model *s;
    cgs_dataset *data;
    const cgs_source *src;
    int D, block, frameskip, count;
    int64_t possible; /* rows with a whole block after them */
    uint8_t *frames;  /* (READ, S, S, 3) */
    float *z, *a;     /* (count, D), (count, block) */
} steps;

static cgs_status steps_open(steps *r, cgs_loaded_model *s, cgs_dataset *data, int count) {
    const cgs_lewm_config *c = &s->lewm->config;
    *r = (steps){.s = s,
                 .data = data,
                 .src = cgs_dataset_source(data),
                 .D = c->width,
                 .block = cgs_lewm_action_block(c),
                 .frameskip = c->frameskip,
                 .count = count};
    if (r->src->pixels < 0 || r->src->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: images and actions are needed", r->src->path);
    if (r->src->height != c->image_size || r->src->width != c->image_size)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d",
                        r->src->path, r->src->height, r->src->width, c->image_size, c->image_size);
    if (r->src->action_dim != c->action_dim)
        return cgs_fail(CGS_EARG, "%s: actions of %d numbers, the model takes %d", r->src->path,
                        r->src->action_dim, c->action_dim);
    for (int e = 0; e < r->src->episodes; e++)
        if (r->src->ep_len[e] > r->frameskip) r->possible += r->src->ep_len[e] - r->frameskip;
    if (r->possible < 1)
        return cgs_fail(CGS_EARG, "%s: no episode is longer than the %d rows of a block",
                        r->src->path, r->frameskip);
    r->frames = malloc((size_t)READ * (size_t)c->image_size * (size_t)c->image_size * 3);
    r->z = malloc((size_t)count * (size_t)(r->D + r->block) * sizeof *r->z);
    if (!r->frames || !r->z) return cgs_fail(CGS_ENOMEM, "no memory for %d frames", count);
    r->a = r->z + (size_t)count * (size_t)r->D;
    return CGS_OK;
}

static void steps_close(steps *r) {
    free(r->frames);
    free(r->z);
}

static int64_t row_of(const steps *r, int64_t k) {
    for (int e = 0;; e++) {
        int64_t here = r->src->ep_len[e] - r->frameskip;
        if (here > 0 && k < here) return r->src->ep_offset[e] + k;
        if (here > 0) k -= here;
    }
}

static cgs_status read_actions(steps *r, int64_t row, float *to) {
    const cgs_action_scale *scale = &r->s->scale;
    CGS_TRY(cgs_dataset_read_rows(r->data, "action", row, r->frameskip, to));
    for (int i = 0; i < r->block; i++) {
        int channel = i % scale->dim;
        if (!isfinite(to[i]))
            return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", r->src->path, channel,
                            (long long)(row + i / scale->dim), (double)to[i]);
        to[i] = (float)((to[i] - scale->mean[channel]) / scale->std[channel]);
    }
    return CGS_OK;
}

static cgs_status steps_read(steps *r, cgs_rng *rng) {
    size_t frame = (size_t)r->src->height * (size_t)r->src->width * 3;
    for (int k = 0; k < r->count; k += READ) {
        int n = r->count - k < READ ? r->count - k : READ;
        for (int i = 0; i < n; i++) {
            int64_t row = row_of(r, (int64_t)cgs_rng_below(rng, (uint64_t)r->possible));
            row = cgs_source_drawn(r->src, row);
            CGS_TRY(r->src->read_pixels(r->src->self, row, 1, 1, r->frames + (size_t)i * frame));
            CGS_TRY(read_actions(r, row, r->a + (size_t)(k + i) * (size_t)r->block));
        }
        CGS_TRY(cgs_encoder_run(r->s->encoder, r->frames, n, r->z + (size_t)k * (size_t)r->D));
    }
    return CGS_OK;
}

/* second moment of [z; a] */
static void coverage(cgs_model_theory *m, const steps *r, cgs_work *w) {
    int n = r->D + r->block;
    m->frames = r->count;
    cgs_mat x = cgs_mat_new(w, n, 1), cov = cgs_mat_new(w, n, n), values, v;
    for (int k = 0; k < r->count; k++) {
        for (int i = 0; i < n; i++)
            x.x[i] = i < r->D ? r->z[k * r->D + i] : r->a[k * r->block + i - r->D];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) CGS_AT(cov, i, j) += x.x[i] * x.x[j] / r->count;
    }
    cgs_eigen(w, cov, &values, &v);
    m->rho_bar = values.x[0];
    m->rho = fmax(values.x[n - 1], 0);
}

/* of B restricted to blocks whose primitive actions are all the same */
static double even_moves(const cgs_system *s, cgs_work *w, int dim) {
    cgs_mat sum = cgs_mat_new(w, s->d, dim);
    for (int i = 0; i < s->d; i++)
        for (int j = 0; j < s->da; j++) CGS_AT(sum, i, j % dim) += CGS_AT(s->B, i, j);
    cgs_mat v = cgs_singular(w, sum);
    return pow(v.x[dim - 1] / v.x[0], 2);
}

static void measure(cgs_model_theory *m, int i, cgs_system *s, cgs_work *w, int dim) {
    size_t mark = cgs_work_mark(w);
    cgs_facts f;
    cgs_mat singular = cgs_singular(w, s->B);
    double sum = cgs_dot(singular, singular), last = singular.x[s->da - 1];
    s->c = sum / s->da;
    cgs_facts_derive(&f, s, w);
    m->drift[i] = f.drift;
    m->mixed[i] = f.mixed / sqrt(f.c);
    m->control[i] = f.control / f.c;
    m->isotropy[i] = pow(last / singular.x[0], 2);
    m->moves[i] = even_moves(s, w, dim);
    m->eps[i] = f.eps;
    m->gap[i] = f.gap;
    m->xi[i] = f.xi;
    m->eps_below_one += f.eps < 1;
    m->xi_below_one += f.eps < 1 && f.xi < 1;
    cgs_work_release(w, mark);
}

static double mean_of(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

static void say(cgs_model_theory *m) {
    int n = m->anchors;
    const char *largest = "drift |D|^2";
    double drift = 0, mixed = mean_of(m->mixed, n), control = mean_of(m->control, n);
    for (int i = 0; i < n; i++) drift += m->drift[i] * m->drift[i] / n;
    if (mixed > drift && mixed > control) largest = "mixed defect |D^T B|/sqrt(c)";
    if (control > drift && control > mixed) largest = "control |B^T B - cI|/c";
    char theorem[160];
    if (m->xi_below_one == n)
        snprintf(theorem, sizeof theorem, "Theorem 4.4 applies at every anchor");
    else if (m->xi_below_one)
        snprintf(theorem, sizeof theorem, "Theorem 4.4 applies at those %d", m->xi_below_one);
    else
        snprintf(theorem, sizeof theorem,
                 "Theorem 4.4 gives no bound; the local Hessian itself is %.2g from the ideal",
                 mean_of(m->gap, n));
    snprintf(m->holds, sizeof m->holds,
             "eps < 1 at %d of %d anchors and xi_%d < 1 at %d, most of it from %s: %s. Coverage: "
             "rho %.2g, rho_bar %.2g over %d frames.",
             m->eps_below_one, n, m->H, m->xi_below_one, largest, theorem, m->rho, m->rho_bar,
             m->frames);
}

static cgs_status run(cgs_model_theory *m, steps *r, cgs_linearise *l, cgs_work *w, uint64_t seed,
                      cgs_model_theory_watch watch, void *user) {
    int D = r->D, block = r->block;
    cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_THEORY, UINT64_C(1) << 42);
    CGS_TRY(steps_read(r, &rng));
    coverage(m, r, w);
    cgs_work_release(w, 0);
    cgs_system s = {.d = D, .da = block, .H = m->H, .sigma = 1, .tau = 1, .alpha = 0.25};
    s.A = cgs_mat_new(w, D, D);
    s.B = cgs_mat_new(w, D, block);
    s.cov = cgs_identity(w, D + block);
    s.z0 = cgs_mat_new(w, D, 1);
    s.goal = cgs_mat_new(w, D, 1);
    for (int i = 0; i < m->anchors; i++) {
        const float *z = r->z + (size_t)i * (size_t)D, *a = r->a + (size_t)i * (size_t)block;
        CGS_TRY(cgs_linearise_at(l, z, a, s.A.x, s.B.x));
        if (i < 4) { /* the derivatives themselves, against differences */
            double error;
            CGS_TRY(cgs_linearise_check(l, z, a, s.A.x, s.B.x, seed + (uint64_t)i, &error));
            m->difference = fmax(m->difference, error);
        }
        measure(m, i, &s, w, r->s->scale.dim);
        if (w->failed)
            return cgs_fail(CGS_ENUMERIC, "anchor %d: the linearisation has no singular values", i);
        if (watch && !watch(user, r->s->dir, i + 1, m->anchors))
            return cgs_fail(CGS_ESTOPPED, "stopped after %d anchors", i + 1);
    }
    say(m);
    return CGS_OK;
}

cgs_status cgs_model_theory_measure(cgs_model_theory *m, cgs_loaded_model *s, cgs_dataset *data,
                                    int anchors, int horizon, uint64_t seed,
                                    cgs_model_theory_watch watch, void *user) {
    *m = (cgs_model_theory){.anchors = anchors,
                            .H = horizon,
                            .D = s->lewm->config.width,
                            .block = cgs_lewm_action_block(&s->lewm->config)};
    size_t n = (size_t)anchors;
    double **const column[] = {&m->drift, &m->mixed, &m->control, &m->isotropy,
                               &m->moves, &m->eps,   &m->gap,     &m->xi};
    m->drift = malloc(8 * n * sizeof *m->drift);
    if (!m->drift) return cgs_fail(CGS_ENOMEM, "no memory for %d anchors", anchors);
    for (size_t i = 1; i < 8; i++) *column[i] = m->drift + i * n;
    steps r;
    cgs_linearise *l = NULL;
    cgs_work w = {0};
    int side = m->D + m->block, plan = horizon * m->block;
    /* anchors are the first of the frames whose second moment is taken */
    cgs_status rc = steps_open(&r, s, data, anchors > 4 * side ? anchors : 4 * side);
    if (rc == CGS_OK) rc = cgs_linearise_create(&l, s->lewm);
    if (rc == CGS_OK) rc = cgs_work_create(&w, 60, side > plan ? side : plan);
    if (rc == CGS_OK) rc = run(m, &r, l, &w, seed, watch, user);
    cgs_work_destroy(&w);
    cgs_linearise_destroy(l);
    steps_close(&r);
    return rc;
}
