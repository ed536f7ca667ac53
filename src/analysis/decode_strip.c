/* decode_strip.c - a model's prediction of its plan beside what then happened; see decode.h.
 *
 * Episodes run in the ordinary closed loop.  An observer keeps the frame of every model step and
 * the plan of every solve; afterwards each plan is rolled out from the frame it was made at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decode.h"
#include "eval/episode.h"
#include "eval/recorded_image.h"
#include "eval/shared_starts.h"
#include "eval/temperature.h"
#include "plan/planners.h"
#include "rollout/held_out.h"
#include "rollout/rollout.h"

enum { GAP = 2, SOLVES_MAX = 64 };

cgs_strip_options cgs_strip_defaults(void) {
    return (cgs_strip_options){.planner = "mppi",
                               .samples = 128,
                               .iters = 30,
                               .horizon = 5,
                               .budget = 50,
                               .goal_offset = 25,
                               .episodes = 16};
}

void cgs_strips_free(cgs_strip strip[2]) {
    for (int i = 0; i < 2; i++) {
        free(strip[i].rgb);
        strip[i] = (cgs_strip){0};
    }
}

typedef struct film {
    int E, S, steps, skip, H, A; /* steps: model steps that are kept, the start included */
    uint8_t *sim;                /* (E, steps, S, S, 3) */
    int *solved_at;              /* (E, SOLVES_MAX) model step of each solve */
    int *solves;                 /* (E) */
    float *plan;                 /* (E, SOLVES_MAX, H, A) */
    int now;                     /* model steps that were carried out */
} film;

static void film_free(film *f) {
    free(f->sim);
    free(f->solved_at);
    free(f->solves);
    free(f->plan);
}

static uint8_t *frame_of(const film *f, int e, int step) {
    size_t image = (size_t)f->S * (size_t)f->S * 3;
    return f->sim + ((size_t)e * (size_t)f->steps + (size_t)step) * image;
}

static void on_solved(void *user, const cgs_plan_problem *q, const cgs_plan_result *r,
                      const int *active) {
    film *f = user;
    size_t n = (size_t)f->H * (size_t)f->A;
    for (int i = 0; i < q->E; i++) {
        int e = active[i], k = f->solves[e];
        if (k >= SOLVES_MAX) continue;
        f->solved_at[e * SOLVES_MAX + k] = f->now;
        memcpy(f->plan + ((size_t)e * SOLVES_MAX + (size_t)k) * n, r->plan + (size_t)i * n,
               n * sizeof *f->plan);
        f->solves[e]++;
    }
}

static cgs_status on_step(void *user, const cgs_env_batch *envs, int step) {
    film *f = user;
    int at = (step + f->skip - 1) / f->skip; /* an episode may end within a model step */
    f->now = step / f->skip;
    if (at >= f->steps) return CGS_OK;
    for (int e = 0; e < envs->count && e < f->E; e++)
        CGS_TRY(cgs_env_render(envs->env[e], f->S, frame_of(f, e, at)));
    return CGS_OK;
}

static cgs_status film_make(film *f, const cgs_loaded_model *s, const cgs_strip_options *o) {
    const cgs_lewm_config *c = &s->lewm->config;
    *f = (film){.E = o->episodes,
                .S = c->image_size,
                .skip = c->frameskip,
                .steps = o->budget / c->frameskip + 1,
                .H = o->horizon,
                .A = cgs_lewm_action_block(c)};
    size_t E = (size_t)f->E, solves = E * SOLVES_MAX;
    f->sim = calloc(E * (size_t)f->steps, (size_t)f->S * (size_t)f->S * 3);
    f->solved_at = calloc(solves, sizeof *f->solved_at);
    f->solves = calloc(E, sizeof *f->solves);
    f->plan = calloc(solves * (size_t)f->H * (size_t)f->A, sizeof *f->plan);
    if (!f->sim || !f->solved_at || !f->solves || !f->plan)
        return cgs_fail(CGS_ENOMEM, "no memory for %d episodes", f->E);
    return CGS_OK;
}

/* imagined latents of the first `frames` model steps: z (frames, D).  Step 0 and every step at
 * which a plan was made is encoded, the others follow from the plans. */
static cgs_status imagine(const film *f, cgs_loaded_model *s, int e, int frames, float *z) {
    size_t D = (size_t)s->lewm->config.width, n = (size_t)f->H * (size_t)f->A;
    cgs_rollout_config c = {
        .episodes = 1, .context = 1, .horizon = f->H, .samples = 1, .group = 1, .act = s->act};
    cgs_rollout *r = NULL;
    float *from = malloc(((size_t)f->H + 1) * D * sizeof *from), *ahead = from + D;
    cgs_status rc = from ? cgs_rollout_create(&r, s->lewm, &c)
                         : cgs_fail(CGS_ENOMEM, "no memory for imagined frames");
    for (int k = 0; rc == CGS_OK && k < f->solves[e]; k++) {
        int at = f->solved_at[e * SOLVES_MAX + k];
        if (at >= frames) break;
        rc = cgs_encoder_run(s->encoder, frame_of(f, e, at), 1, from);
        if (rc == CGS_OK) rc = cgs_rollout_set(r, 1, from, NULL, NULL);
        if (rc == CGS_OK)
            rc = cgs_rollout_imagine(r, f->plan + ((size_t)e * SOLVES_MAX + (size_t)k) * n, 1, 1,
                                     ahead);
        if (k == 0) memcpy(z, from, D * sizeof *z);
        for (int h = 0; h < f->H && at + 1 + h < frames; h++)
            memcpy(z + (size_t)(at + 1 + h) * D, ahead + (size_t)h * D, D * sizeof *z);
    }
    cgs_rollout_destroy(r);
    free(from);
    return rc;
}

static void put(cgs_strip *t, const uint8_t *frame, int S, int column, int row) {
    int x0 = column * (S + GAP), y0 = row * (S + GAP);
    for (int y = 0; y < S; y++)
        memcpy(t->rgb + ((size_t)(y0 + y) * (size_t)t->width + (size_t)x0) * 3,
               frame + (size_t)y * (size_t)S * 3, (size_t)S * 3);
}

static cgs_status draw(cgs_strip *t, const film *f, cgs_loaded_model *s, cgs_decoder *p, int e,
                       const cgs_outcome *o, const uint8_t *goal) {
    size_t D = (size_t)s->lewm->config.width, image = (size_t)f->S * (size_t)f->S * 3;
    int used = o->success ? (o->first + f->skip - 1) / f->skip : o->actions / f->skip;
    t->frames = used + 1 < f->steps ? used + 1 : f->steps;
    t->success = o->success;
    t->width = (t->frames + 1) * (f->S + GAP) - GAP;
    t->height = 2 * f->S + GAP;
    t->rgb = malloc((size_t)t->width * (size_t)t->height * 3);
    float *z = calloc((size_t)t->frames + 1, D * sizeof *z);
    uint8_t *seen = malloc(((size_t)t->frames + 1) * image);
    cgs_status rc = t->rgb && z && seen ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for a strip");
    if (rc == CGS_OK) rc = imagine(f, s, e, t->frames, z);
    if (rc == CGS_OK) rc = cgs_encoder_run(s->encoder, goal, 1, z + (size_t)t->frames * D);
    if (rc == CGS_OK) rc = cgs_decoder_run(p, z, t->frames + 1, seen);
    if (rc == CGS_OK) {
        memset(t->rgb, 150, (size_t)t->width * (size_t)t->height * 3);
        double sum = 0;
        for (int k = 0; k <= t->frames; k++) {
            const uint8_t *above = k < t->frames ? frame_of(f, e, k) : goal;
            const uint8_t *below = seen + (size_t)k * image;
            put(t, above, f->S, k, 0);
            put(t, below, f->S, k, 1);
            for (size_t i = 0; k < t->frames && i < image; i++)
                sum += fabs((double)above[i] - below[i]);
        }
        t->pixel_error = sum / ((double)t->frames * (double)image);
        t->found = true;
    }
    free(z);
    free(seen);
    return rc;
}

static cgs_status settings(cgs_plan_config *p, const cgs_strip_options *o, const cgs_model *m,
                           const cgs_env_class *env) {
    const cgs_planner_kind *kind;
    *p = cgs_plan_defaults();
    CGS_TRY(cgs_planner_kind_find(&kind, o->planner));
    if (kind->needs & CGS_NEEDS_PRIOR)
        return cgs_fail(CGS_EARG, "strips are drawn with planners without a prior, not %s",
                        o->planner);
    snprintf(p->kind.s, sizeof p->kind.s, "%s", o->planner);
    p->K = o->samples;
    p->iters = o->iters;
    p->H = o->horizon;
    p->seed = o->seed;
    CGS_TRY(cgs_choose_tau(p, o->tau, m, env->id));
    return cgs_plan_check(p);
}

static cgs_status pick(cgs_strip strip[2], const film *f, cgs_loaded_model *s, cgs_decoder *p,
                       cgs_dataset *data, const cgs_env_class *env, const cgs_starts *starts,
                       const cgs_outcome *outcome) {
    size_t image = (size_t)f->S * (size_t)f->S * 3;
    uint8_t *goal = malloc(image);
    if (!goal) return cgs_fail(CGS_ENOMEM, "no memory for a goal");
    cgs_recorded_images recorded;
    cgs_status rc = cgs_recorded_images_open(&recorded, data, env);
    for (int e = 0; e < starts->count && rc == CGS_OK; e++) {
        cgs_strip *t = &strip[outcome[e].success];
        if (t->found) continue;
        const cgs_start *at = &starts->start[e];
        rc = cgs_recorded_images_read(&recorded, at->row - at->step,
                                      at->step + starts->rule.goal_offset, goal);
        if (rc == CGS_OK) rc = draw(t, f, s, p, e, &outcome[e], goal);
        t->episode = (int)at->episode;
        t->step = (int)at->step;
    }
    cgs_recorded_images_close(&recorded);
    free(goal);
    return rc;
}

cgs_status cgs_strips_draw(cgs_strip strip[2], cgs_loaded_model *s, cgs_decoder *p,
                           cgs_dataset *data, const cgs_strip_options *o) {
    const cgs_env_class *env;
    const cgs_source *src = cgs_dataset_source(data);
    cgs_starts starts = {0};
    cgs_start_states cases = {0};
    cgs_loop *loop = NULL;
    film f = {0};
    memset(strip, 0, 2 * sizeof *strip);
    if (o->episodes < 1 || o->budget < s->lewm->config.frameskip)
        return cgs_fail(CGS_EARG, "%d episodes of %d actions: at least 1 of each", o->episodes,
                        o->budget);
    CGS_TRY(cgs_dataset_env(data, o->env, &env));
    CGS_TRY(cgs_env_can_plan(env));
    CGS_TRY(cgs_loaded_model_fits(s, env, src));
    cgs_loop_config c = {.model = s->model,
                         .encoder = s->encoder,
                         .env = env,
                         .scale = s->scale,
                         .history = CGS_HISTORY_NATIVE,
                         .act = s->act,
                         .budget = o->budget,
                         .batch = o->episodes,
                         .watch = {.solved = on_solved, .stepped = on_step, .user = &f}};
    CGS_TRY(settings(&c.plan, o, s->model, env));
    const cgs_start_rule rule = {.count = o->episodes,
                                 .goal_offset = o->goal_offset,
                                 .seed = o->seed,
                                 .held_out = o->held_out};
    cgs_outcome *outcome = calloc((size_t)o->episodes, sizeof *outcome);
    cgs_status rc = outcome ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for outcomes");
    if (rc == CGS_OK && o->held_out)
        rc = cgs_fitted_without_held_out(&p->card.split, s, src, "decoder", "decode --updates N");
    if (rc == CGS_OK) rc = cgs_shared_starts(&starts, s, 1, src, &rule);
    if (rc == CGS_OK) rc = film_make(&f, s, o);
    if (rc == CGS_OK)
        rc = cgs_start_states_build(&cases, data, env, &starts, s->encoder, s->model, &s->scale,
                                    NULL, 1);
    if (rc == CGS_OK) rc = cgs_loop_create(&loop, &c);
    if (rc == CGS_OK) rc = cgs_loop_run(loop, &cases, outcome);
    if (rc == CGS_OK) rc = pick(strip, &f, s, p, data, env, &starts, outcome);
    cgs_loop_destroy(loop);
    cgs_start_states_free(&cases);
    cgs_starts_free(&starts);
    free(outcome);
    film_free(&f);
    return rc;
}
