/* prior_fit.c - see prior_fit.h. */
#include "train/prior_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/windows.h"
#include "model/gaussian_head.h"
#include "train/optimiser.h"
#include "train/prediction_error.h"
#include "train/prior_pairs.h"

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_prior_fit_config, kind, name, initial, low, high, key, doc)
static const cgs_field fields[] = {CGS_PRIOR_FIT_CONFIG(ROW)};
#undef ROW

cgs_section cgs_prior_fit_section(cgs_prior_fit_config *c) {
    return (cgs_section){fields, (int)(sizeof fields / sizeof fields[0]), c};
}

/* what a fit works with */
typedef struct fitting {
    const cgs_prior_fit_config *c;
    cgs_loaded_model *s;
    cgs_prior_fit_observer watch;
    void *user;
    cgs_prior_kind kind;
    bool spread;
    cgs_prior_pairs m;
} fitting;

/* a tape over one batch, with its loss */
typedef struct step {
    cgs_tape *tape;
    cgs_tensor *in, *out;
    cgs_tensor *target, *loss; /* without a spread: their squared error is part of the tape */
    float *pairs, *targets;    /* (batch, 2D), (batch, n) */
    float *given, *gradient;   /* (batch, outputs) with a spread: the loss is taken on the host */
    int batch;
} step;

static void step_free(step *s) {
    cgs_tape_destroy(s->tape);
    free(s->pairs);
    free(s->targets);
    free(s->given);
    free(s->gradient);
}

static cgs_status step_build(step *s, cgs_prior *p, int batch) {
    int n = cgs_prior_values(&p->card), outputs = cgs_prior_outputs(&p->card);
    const int in[2] = {batch, 2 * p->card.width}, out[2] = {batch, n};
    size_t rows = (size_t)batch;
    s->batch = batch;
    s->pairs = malloc(rows * (size_t)in[1] * sizeof *s->pairs);
    s->targets = malloc(rows * (size_t)n * sizeof *s->targets);
    s->given = malloc(rows * (size_t)outputs * sizeof *s->given);
    s->gradient = malloc(rows * (size_t)outputs * sizeof *s->gradient);
    if (!s->pairs || !s->targets || !s->given || !s->gradient)
        return cgs_fail(CGS_ENOMEM, "prior: no memory for a batch");
    CGS_TRY(cgs_tape_create(&s->tape, p->params.device, CGS_F32));
    s->in = cgs_input(s->tape, "pair", CGS_F32, 2, in);
    if (p->card.spread) {
        s->out = cgs_prior_forward(s->tape, p, s->in);
        cgs_seed(s->tape, s->out);
        return cgs_tape_finish(s->tape, NULL);
    }
    s->target = cgs_input(s->tape, "target", CGS_F32, 2, out);
    s->loss = cgs_keep(cgs_mse(s->tape, cgs_prior_forward(s->tape, p, s->in), s->target));
    return cgs_tape_finish(s->tape, s->loss);
}

/* the likelihood of a batch, and its gradient for the tape */
static cgs_status step_likelihood(step *s, int n, double *loss) {
    double weight = 1 / ((double)s->batch * n), sum = 0;
    cgs_device *d = cgs_tape_device(s->tape);
    size_t outputs = 2 * (size_t)n;
    CGS_TRY(cgs_tensor_read(s->tape, s->out, s->given));
    for (size_t i = 0; i < (size_t)s->batch; i++)
        sum += cgs_gaussian_loss(s->given + i * outputs, s->targets + i * (size_t)n, n, weight,
                                 s->gradient + i * outputs);
    *loss = sum * weight;
    return d->ops->upload(d, s->out->grad, s->gradient,
                          (size_t)s->batch * outputs * sizeof *s->gradient);
}

/* runs the tape forward on pairs order[0 .. batch) */
static cgs_status step_forward(step *s, const cgs_prior_pairs *m, const int64_t *order,
                               double *loss) {
    size_t D = (size_t)m->D, n = (size_t)m->n;
    for (int i = 0; i < s->batch; i++) {
        float *to = s->pairs + (size_t)i * 2 * D;
        memcpy(to, cgs_prior_pair_start(m, 0, order[i]), D * sizeof *to);
        memcpy(to + D, cgs_prior_pair_end(m, 0, order[i]), D * sizeof *to);
        memcpy(s->targets + (size_t)i * n, m->plan[0] + (size_t)order[i] * n, n * sizeof *to);
    }
    CGS_TRY(cgs_tensor_write(s->tape, s->in, s->pairs));
    if (s->target) CGS_TRY(cgs_tensor_write(s->tape, s->target, s->targets));
    cgs_tape_forward(s->tape);
    float v;
    if (s->loss) {
        CGS_TRY(cgs_tensor_read(s->tape, s->loss, &v));
        *loss = v;
    } else {
        CGS_TRY(step_likelihood(s, m->n, loss));
    }
    if (!isfinite(*loss)) return cgs_fail(CGS_ENUMERIC, "prior: the loss is %g", *loss);
    return CGS_OK;
}

/* what validation says of a head */
typedef struct judgement {
    double error;      /* mean squared */
    double likelihood; /* mean of log spread + half the squared distance in spreads */
    double *square;    /* (n) NULL, or sums over pairs of squared distances in spreads */
} judgement;

static void judge(const float *plan, const float *spread, const float *want, size_t n,
                  judgement *out) {
    for (size_t i = 0; i < n; i++) {
        double away = (double)plan[i] - want[i], ratio = away / spread[i];
        out->error += away * away;
        out->likelihood += log(spread[i]) + 0.5 * ratio * ratio;
        if (out->square) out->square[i] += ratio * ratio;
    }
}

/* over all validation pairs, through the head itself */
static cgs_status validate(cgs_prior *p, const cgs_prior_pairs *m, judgement *out) {
    size_t D = (size_t)m->D, n = (size_t)m->n;
    float *z = malloc(CGS_PRIOR_ROWS * 2 * (D + n) * sizeof *z);
    if (!z) return cgs_fail(CGS_ENOMEM, "prior: no memory");
    float *goal = z + CGS_PRIOR_ROWS * D, *plan = goal + CGS_PRIOR_ROWS * D;
    float *spread = plan + CGS_PRIOR_ROWS * n;
    cgs_status rc = CGS_OK;
    out->error = out->likelihood = 0;
    for (int64_t at = 0; at < m->count[1] && rc == CGS_OK; at += CGS_PRIOR_ROWS) {
        int rows = m->count[1] - at < CGS_PRIOR_ROWS ? (int)(m->count[1] - at) : CGS_PRIOR_ROWS;
        for (int i = 0; i < rows; i++) {
            memcpy(z + (size_t)i * D, cgs_prior_pair_start(m, 1, at + i), D * sizeof *z);
            memcpy(goal + (size_t)i * D, cgs_prior_pair_end(m, 1, at + i), D * sizeof *z);
        }
        rc = cgs_prior_plan(p, z, goal, rows, plan, spread);
        for (size_t i = 0; rc == CGS_OK && i < (size_t)rows; i++)
            judge(plan + i * n, spread + i * n, m->plan[1] + ((size_t)at + i) * n, n, out);
    }
    free(z);
    out->error /= (double)m->count[1] * (double)n;
    out->likelihood /= (double)m->count[1] * (double)n;
    return rc;
}

/* how much wider than it says a spread has to be, at least and at most */
#define LEAST_FACTOR 0.1
#define MOST_FACTOR 10.0

/* Makes the validation pairs' mean squared distance in spreads 1 for each value of a plan. */
static cgs_status calibrate(cgs_prior *p, const cgs_prior_pairs *m) {
    size_t n = (size_t)m->n;
    judgement j = {.square = calloc(n, sizeof *j.square)};
    float *factor = malloc(n * sizeof *factor);
    cgs_status rc =
        j.square && factor ? validate(p, m, &j) : cgs_fail(CGS_ENOMEM, "prior: no memory");
    for (size_t i = 0; rc == CGS_OK && i < n; i++)
        factor[i] =
            (float)fmin(fmax(sqrt(j.square[i] / (double)m->count[1]), LEAST_FACTOR), MOST_FACTOR);
    if (rc == CGS_OK) rc = cgs_prior_calibrate(p, factor);
    free(factor);
    free(j.square);
    return rc;
}

static double zero_error(const cgs_prior_pairs *m) {
    double sum = 0;
    size_t n = (size_t)m->count[1] * (size_t)m->n;
    for (size_t i = 0; i < n; i++) sum += (double)m->plan[1][i] * m->plan[1][i];
    return sum / (double)n;
}

static bool tell(fitting *f, double done, double total, double loss, double best) {
    return !f->watch || f->watch(f->user, "fit", done, total, loss, best);
}

static cgs_status descend(fitting *f, cgs_prior *p, step *s, int64_t *order, float *best_values) {
    const cgs_prior_fit_config *c = f->c;
    const cgs_prior_pairs *m = &f->m;
    cgs_prior_card *card = &p->card;
    int64_t batches = m->count[0] / c->batch;
    double loss = NAN, mean = 0, best = INFINITY;
    int stale = 0, since = 0;
    for (int u = 0; u < c->updates && stale < c->patience; u++) {
        int64_t k = u % batches;
        if (k == 0)
            cgs_epoch_order(cgs_rng_stream(c->seed, CGS_STREAM_PRIOR, 1).key,
                            (uint64_t)(u / batches), m->count[0], order);
        CGS_TRY(step_forward(s, m, order + k * c->batch, &loss));
        const cgs_adamw a = cgs_adamw_usual(c->lr, c->weight_decay, (uint64_t)u + 1);
        CGS_TRY(cgs_descend(s->tape, &p->params, &a));
        mean += loss;
        since++;
        if ((u + 1) % c->every == 0 || u + 1 == c->updates) {
            judgement j = {0};
            CGS_TRY(validate(p, m, &j));
            stale++;
            double score = card->spread ? j.likelihood : j.error;
            if (score < best) {
                stale = 0;
                best = score;
                card->validation_loss = j.error;
                card->likelihood = j.likelihood;
                card->loss = mean / since;
                card->updates = (uint64_t)u + 1;
                CGS_TRY(cgs_params_keep(&p->params, best_values));
            }
            mean = since = 0;
        }
        if (!tell(f, u + 1, c->updates, loss, best)) break;
    }
    if (!isfinite(best)) return cgs_fail(CGS_ESTOPPED, "stopped before the first validation");
    return cgs_params_restore(&p->params, best_values);
}

static cgs_status fit(fitting *f, cgs_prior **out) {
    const cgs_prior_pairs *m = &f->m;
    cgs_prior_card card = {.kind = f->kind,
                           .spread = f->spread,
                           .width = m->D,
                           .hidden = f->c->hidden,
                           .horizon = f->c->horizon,
                           .block = cgs_lewm_action_block(&f->s->lewm->config),
                           .model = f->s->weights,
                           .seed = f->c->seed,
                           .split = m->used.of.split,
                           .pairs = m->count[0],
                           .validation_pairs = m->count[1],
                           .zero_loss = zero_error(m)};
    step s = {0};
    CGS_TRY(cgs_prior_create(out, &card, f->s->lewm->params.device, true));
    cgs_status rc = cgs_params_init(&(*out)->params, f->c->seed);
    int64_t *order = malloc((size_t)m->count[0] * sizeof *order);
    float *best = malloc((*out)->params.trainable * sizeof *best);
    if (rc == CGS_OK && (!order || !best)) rc = cgs_fail(CGS_ENOMEM, "prior: no memory");
    if (rc == CGS_OK) rc = step_build(&s, *out, f->c->batch);
    if (rc == CGS_OK) rc = descend(f, *out, &s, order, best);
    if (rc == CGS_OK && card.spread) rc = calibrate(*out, m);
    step_free(&s);
    free(order);
    free(best);
    return rc;
}

static cgs_status read_choices(fitting *f) {
    const char *spread = f->c->spread.s;
    CGS_TRY(cgs_prior_kind_parse(&f->kind, f->c->kind.s));
    f->spread = !strcmp(spread, "learned");
    if (f->spread || !strcmp(spread, "unit")) return CGS_OK;
    return cgs_fail(CGS_EARG, "prior.spread: \"%.40s\" is not unit or learned", spread);
}

cgs_status cgs_prior_fit(cgs_prior **out, cgs_loaded_model *s, cgs_dataset *data,
                         const cgs_prior_fit_config *c, cgs_prior_fit_observer watch, void *user) {
    fitting f = {.c = c, .s = s, .watch = watch, .user = user};
    *out = NULL;
    CGS_TRY(read_choices(&f));
    cgs_status rc = cgs_prior_pairs_make(&f.m, s, data, c, watch, user);
    if (rc == CGS_OK) rc = cgs_prediction_error(s, &f.m, c);
    if (rc == CGS_OK && f.kind == CGS_PRIOR_INVERSE)
        rc = cgs_prior_pairs_imagine(&f.m, s, c, watch, user);
    if (rc == CGS_OK) rc = fit(&f, out);
    cgs_prior_pairs_free(&f.m);
    if (rc != CGS_OK) {
        cgs_prior_destroy(*out);
        *out = NULL;
    }
    return rc;
}
