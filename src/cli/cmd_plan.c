/* cmd_plan.c - cgs plan: plans one episode and prints costs per iteration, the outcome, and an
 * animation of the rollout beside the goal. */
#include <cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/lists.h"
#include "cli/planners.h"
#include "cli/verbs.h"
#include "core/build.h"
#include "core/file.h"
#include "eval/curvature.h"
#include "eval/evaluate.h"
#include "eval/prior_weight.h"
#include "eval/recorded_image.h"
#include "eval/shared_starts.h"
#include "eval/solver.h"
#include "io/gif.h"
#include "plan/planners.h"
#include "rollout/held_out.h"

enum { GAP = 4, PIECES = 12 };

typedef struct job {
    const char *model, *env, *data, *planner, *history, *gif, *device, *precision;
    char command[4096];
    int samples, iters, horizon, execute, budget, goal_offset, threads, delay;
    double tau;
    int episode, step; /* of the dataset; -1: the first start of the seed */
    uint64_t seed;
    bool json, held_out;
    cgs_words words; /* plan.key=value */
} job;

typedef struct watcher {
    const job *j;
    int side, solves;
    uint8_t *canvas; /* (side, 2 * side + GAP, 3): now, goal */
    uint8_t *now;    /* (side, side, 3) */
    cgs_gif *gif;    /* or NULL */
} watcher;

static void put(watcher *w, const uint8_t *frame, int x0) {
    size_t row = (size_t)(2 * w->side + GAP) * 3, line = (size_t)w->side * 3;
    for (size_t y = 0; y < (size_t)w->side; y++)
        memcpy(w->canvas + y * row + (size_t)x0 * 3, frame + y * line, line);
}

static cgs_status on_step(void *user, const cgs_env_batch *envs, int step) {
    watcher *w = user;
    if (w->j->json) {
        printf("{\"step\":%d,\"state\":[", step);
        for (int i = 0; i < envs->cls->state_dim; i++)
            printf("%s%.17g", i ? "," : "", envs->state[i]);
        printf("],\"success\":%s}\n", step > 0 && envs->success[0] ? "true" : "false");
    }
    if (!w->gif) return CGS_OK;
    CGS_TRY(cgs_env_render(envs->env[0], w->side, w->now));
    put(w, w->now, 0);
    return cgs_gif_add(w->gif, w->canvas, w->j->delay);
}

static void on_solved(void *user, const cgs_plan_problem *q, const cgs_plan_result *r,
                      const int *active) {
    watcher *w = user;
    (void)q;
    (void)active;
    w->solves++;
    if (w->j->json) {
        printf("{\"solve\":%d,\"seconds\":%.6g,\"lowest\":[", w->solves, r->times.total);
        for (int i = 0; i < r->iterations; i++) printf("%s%.9g", i ? "," : "", (double)r->best[i]);
        printf("],\"mean\":[");
        for (int i = 0; i < r->iterations; i++) printf("%s%.9g", i ? "," : "", (double)r->mean[i]);
        printf("]}\n");
        return;
    }
    printf("solve %d: %.3f s (sampling %.3f, rollouts %.3f, update %.3f)\n", w->solves,
           r->times.total, r->times.sample, r->times.cost, r->times.update);
    if (r->iterations) printf("  %9s %14s %14s\n", "iteration", "lowest cost", "mean cost");
    int every = r->iterations / PIECES + 1;
    for (int i = 0; i < r->iterations; i++)
        if (i % every == 0 || i + 1 == r->iterations)
            printf("  %9d %14.4f %14.4f\n", i + 1, (double)r->best[i], (double)r->mean[i]);
}

/* ---- the start --------------------------------------------------------------------- */

static cgs_status choose(const job *j, const cgs_loaded_model *s, const cgs_source *src,
                         cgs_starts *starts) {
    if (j->episode >= 0) {
        if (j->episode >= src->episodes || j->step < 0 ||
            j->step + j->goal_offset >= src->ep_len[j->episode])
            return cgs_fail(CGS_EARG,
                            "%s: episode %d has no step %d with a goal %d rows later (%d rows)",
                            src->path, j->episode, j->step, j->goal_offset,
                            j->episode < src->episodes ? src->ep_len[j->episode] : 0);
        starts->start = malloc(sizeof *starts->start);
        if (!starts->start) return cgs_fail(CGS_ENOMEM, "no memory for a start");
        starts->rule = (cgs_start_rule){.count = 1, .goal_offset = j->goal_offset};
        starts->count = 1;
        starts->start[0] = (cgs_start){j->episode, j->step, src->ep_offset[j->episode] + j->step};
        return CGS_OK;
    }
    cgs_start_rule rule = {
        .count = 1, .goal_offset = j->goal_offset, .seed = j->seed, .held_out = j->held_out};
    return cgs_shared_starts(starts, s, 1, src, &rule);
}

/* ---- the episode ------------------------------------------------------------------- */

static cgs_status settings(const job *j, const cgs_loaded_model *s, cgs_dataset *data,
                           const cgs_env_class *env, cgs_plan_config *p) {
    const cgs_model *m = s->model;
    double tau = j->tau;
    *p = cgs_plan_defaults();
    snprintf(p->kind.s, sizeof p->kind.s, "%s", j->planner);
    p->K = j->samples;
    p->iters = j->iters;
    p->H = j->horizon;
    p->seed = j->seed;
    p->A = cgs_model_action_block(m);
    p->frameskip = m->frameskip;
    cgs_section tuning = cgs_plan_tuning(p);
    for (int i = 0; i < j->words.count; i++)
        CGS_TRY(cgs_config_assign(&tuning, 1, j->words.word[i]));
    if (tau == CGS_TAU_MEASURED) {
        double curvature = 0;
        cgs_status measured = cgs_model_curvature(&curvature, s, data, env, p);
        CGS_TRY(cgs_curvature_tau(p, measured, curvature, s));
    } else {
        CGS_TRY(cgs_choose_tau(p, tau, m, env->id));
    }
    CGS_TRY(cgs_choose_gamma(p, s));
    return cgs_plan_check(p);
}

static cgs_status open_gif(watcher *w, cgs_dataset *data, const cgs_env_class *env,
                           const cgs_start *s) {
    cgs_recorded_images images;
    if (!w->j->gif) return CGS_OK;
    size_t frame = (size_t)w->side * (size_t)w->side * 3;
    w->now = malloc(frame);
    w->canvas = malloc(frame * 2 + (size_t)w->side * GAP * 3);
    if (!w->now || !w->canvas) return cgs_fail(CGS_ENOMEM, "%s: no memory", w->j->gif);
    memset(w->canvas, 255, frame * 2 + (size_t)w->side * GAP * 3);
    cgs_status rc = cgs_recorded_images_open(&images, data, env);
    if (rc == CGS_OK)
        rc = cgs_recorded_images_read(&images, s->row - s->step, s->step + w->j->goal_offset,
                                      w->now);
    cgs_recorded_images_close(&images);
    if (rc != CGS_OK) return rc;
    put(w, w->now, w->side + GAP);
    return cgs_gif_open(&w->gif, w->j->gif, 2 * w->side + GAP, w->side);
}

/* what the animation shows, beside it: x.gif has x.json */
static cgs_status describe(const job *j, const cgs_outcome *o, const cgs_start *s,
                           const cgs_loaded_model *model, const cgs_env_class *env) {
    char path[4096], title[128];
    const char *slash = strrchr(j->gif, '/'), *dot = strrchr(j->gif, '.');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - j->gif) : (int)strlen(j->gif);
    if (snprintf(path, sizeof path, "%.*s.json", stem, j->gif) >= (int)sizeof path)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", j->gif);
    snprintf(title, sizeof title, "episode %lld from step %lld", (long long)s->episode,
             (long long)s->step);
    cJSON *d = cJSON_CreateObject();
    cJSON_AddStringToObject(d, "format", "cgs-plan");
    cJSON_AddNumberToObject(d, "version", 1);
    cJSON_AddStringToObject(d, "command", j->command);
    cJSON_AddStringToObject(d, "code_commit", cgs_commit());
    cJSON_AddStringToObject(d, "env", env->id);
    cgs_document_env(d, env->id);
    cJSON_AddStringToObject(d, "title", title);
    cJSON_AddStringToObject(d, "method", model->card.method);
    cJSON_AddStringToObject(d, "planner", j->planner);
    cJSON_AddNumberToObject(d, "episode", (double)s->episode);
    cJSON_AddNumberToObject(d, "step", (double)s->step);
    cJSON_AddBoolToObject(d, "success", o->success);
    cJSON_AddNumberToObject(d, "actions", o->actions);
    char *text = cJSON_Print(d);
    cJSON_Delete(d);
    if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = cgs_write_file(path, text, strlen(text));
    cJSON_free(text);
    return rc;
}

/* backbone: origin of the model's frozen features, or "" */
static void print_outcome(const job *j, const cgs_outcome *o, const cgs_start *s,
                          const cgs_env_class *env, const char *backbone) {
    if (j->json) {
        printf("{\"episode\":%lld,\"start\":%lld,\"success\":%s,\"actions\":%d,\"solves\":%d,"
               "\"reached\":%.9g,\"seconds\":%.6g%s%s%s}\n",
               (long long)s->episode, (long long)s->step, o->success ? "true" : "false", o->actions,
               o->solves, (double)o->reached, o->seconds, backbone[0] ? ",\"backbone\":\"" : "",
               backbone, backbone[0] ? "\"" : "");
        return;
    }
    printf("episode %lld from step %lld: ", (long long)s->episode, (long long)s->step);
    if (o->success)
        printf("reached the goal after %d actions", o->first);
    else
        printf("did not reach the goal in %d actions", o->actions);
    printf(" (%s); latent distance^2 at the end %.4f\n",
           env->predicate[CGS_JUDGE_OFFICIAL].sentence, (double)o->reached);
    if (backbone[0]) printf("frozen backbone: %s\n", backbone);
    if (j->gif) printf("%s: left the rollout, right the goal\n", j->gif);
}

static cgs_status load_prior(const job *j, cgs_prior **prior, const cgs_plan_config *c,
                             const cgs_loaded_model *s, const cgs_source *data, cgs_device *d) {
    cgs_prior_kind kind = cgs_solver_prior_kind(c);
    if (j->held_out) CGS_TRY(cgs_prior_without_held_out(s, data, kind));
    return cgs_prior_load(prior, s->dir, kind, s->weights, d);
}

static cgs_status play(const job *j, cgs_device *d, cgs_dataset *data, cgs_loaded_model *s) {
    const cgs_env_class *env;
    cgs_history history;
    cgs_starts starts = {0};
    cgs_start_states cases = {0};
    cgs_prior *prior = NULL;
    cgs_loop *loop = NULL;
    cgs_outcome outcome;
    watcher w = {.j = j, .side = s->model->image_size};
    CGS_TRY(cgs_dataset_env(data, j->env, &env));
    CGS_TRY(cgs_env_can_plan(env));
    CGS_TRY(cgs_loaded_model_fits(s, env, cgs_dataset_source(data)));
    CGS_TRY(cgs_history_parse(&history, j->history));
    cgs_loop_config c = {.model = s->model,
                         .encoder = s->encoder,
                         .env = env,
                         .scale = s->scale,
                         .proprio = s->proprio,
                         .history = history,
                         .success = cgs_success_of(s),
                         .act = s->act,
                         .budget = j->budget,
                         .execute = j->execute,
                         .batch = 1,
                         .watch = {.solved = on_solved, .stepped = on_step, .user = &w}};
    CGS_TRY(settings(j, s, data, env, &c.plan));
    cgs_status rc = choose(j, s, cgs_dataset_source(data), &starts);
    if (rc == CGS_OK && cgs_planner_kind_of(j->planner)->needs & CGS_NEEDS_PRIOR)
        rc = load_prior(j, &prior, &c.plan, s, cgs_dataset_source(data), d);
    c.prior = prior;
    if (rc == CGS_OK)
        rc = cgs_start_states_build(&cases, data, env, &starts, s->encoder, s->model, &s->scale,
                                    &s->proprio, cgs_history_context(history, s->model));
    if (rc == CGS_OK) rc = cgs_loop_create(&loop, &c);
    if (rc == CGS_OK) rc = open_gif(&w, data, env, &starts.start[0]);
    if (rc == CGS_OK) rc = cgs_loop_run(loop, &cases, &outcome);
    if (rc == CGS_OK && w.gif) rc = cgs_gif_add(w.gif, w.canvas, 100); /* hold the last frame */
    if (rc == CGS_OK && w.gif) {
        rc = cgs_gif_close(w.gif);
        w.gif = NULL;
        if (rc == CGS_OK) rc = describe(j, &outcome, &starts.start[0], s, env);
    }
    if (rc == CGS_OK) print_outcome(j, &outcome, &starts.start[0], env, s->dino.origin);
    cgs_gif_abandon(w.gif);
    free(w.now);
    free(w.canvas);
    cgs_loop_destroy(loop);
    cgs_start_states_free(&cases);
    cgs_starts_free(&starts);
    cgs_prior_destroy(prior);
    return rc;
}

static cgs_status plan(const job *j) {
    cgs_device d;
    cgs_dataset *data = NULL;
    cgs_loaded_model s;
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    if (rc == CGS_OK) rc = cgs_loaded_model_open_any(&s, j->model, &d, j->precision, 1, data);
    if (rc == CGS_OK) {
        rc = play(j, &d, data, &s);
        cgs_loaded_model_close(&s);
    }
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *xml = NULL;
    job j = {.planner = "mppi",
             .history = "native",
             .device = "auto",
             .samples = 128,
             .iters = 30,
             .horizon = 5,
             .budget = 50,
             .goal_offset = 25,
             .delay = 8,
             .episode = -1};
    char planners[CGS_PLANNER_HELP];
    cgs_words taus = {0};
    double tau[CGS_LIST_MAX];
    int tau_count = 0;
    cgs_planner_help(planners, sizeof planners, j.planner, 0);
    const cgs_opt opts[] = {
        {"model", "DIR", "model directory", OPT_STR, &j.model, true},
        {"data", "F.h5", "dataset to take start and goal from", OPT_STR, &j.data, true},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &j.env, false},
        {"model-xml", "FILE", "MuJoCo scene to use instead of the built-in one", OPT_STR, &xml,
         false},
        {"planner", "P", planners, OPT_STR, &j.planner, false},
        {"samples", "N", "candidates K per iteration (128)", OPT_COUNT, &j.samples, false},
        {"iters", "N", "iterations I (30)", OPT_COUNT, &j.iters, false},
        {"tau", "T", "temperature, or auto: from the model's curvature (by environment)", OPT_LIST,
         &taus, false},
        {"history", "H", "native, dataset or online (native)", OPT_STR, &j.history, false},
        {"horizon", "N", "action blocks per plan (5)", OPT_COUNT, &j.horizon, false},
        {"execute", "N", "action blocks executed before replanning (all)", OPT_INT, &j.execute,
         false},
        {"budget", "N", "most actions per episode (50)", OPT_COUNT, &j.budget, false},
        {"goal-offset", "N", "rows from start to goal (25)", OPT_COUNT, &j.goal_offset, false},
        {"episode", "E", "episode of the dataset (drawn)", OPT_INT, &j.episode, false},
        {"step", "T", "row of the episode to start from (0)", OPT_INT, &j.step, false},
        {"held-out", NULL, "draw from episodes held out of training", OPT_FLAG, &j.held_out, false},
        {"seed", "S", "seed of the start and the candidates (0)", OPT_U64, &j.seed, false},
        {"gif", "x.gif", "animation to write: the rollout beside the goal", OPT_STR, &j.gif, false},
        {"delay", "N", "hundredths of a second per frame (8)", OPT_INT, &j.delay, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "f32 or bf16 (as trained)", OPT_STR, &j.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.threads, false},
        {"json", NULL, "print solves, steps and outcome as JSON lines", OPT_FLAG, &j.json, false},
    };
    cgs_command_text(j.command, sizeof j.command, self->name, argc, argv);
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &j.words);
    if (rc == CGS_OK) rc = cgs_env_option(&j.env);
    if (rc == CGS_OK && xml) rc = cgs_env_use_model(j.env, xml);
    if (rc == CGS_OK) rc = cgs_list_taus(tau, &tau_count, "tau", &taus);
    if (rc == CGS_OK && tau_count > 1)
        rc = cgs_fail(CGS_EARG, "--tau: %d temperatures, one is planned with", tau_count);
    if (tau_count == 1) j.tau = tau[0];
    if (rc == CGS_OK) rc = plan(&j);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_plan = {
    "plan", "--model DIR --data F.h5 [--planner P] [--gif x.gif] [plan.key=value ...]",
    "plans one episode: costs per iteration, outcome, animation",
    "Start and goal are rows of the dataset as in cgs eval.  The first plan sees the recorded\n"
    "frame, later ones what the environment renders.\n"
    "  cgs plan --model runs/cgs --data tworooms.h5 --planner cem --gif episode.gif",
    run};
