/* cmd_eval.c - cgs eval: goal-reaching success with intervals, sweeps and comparisons. */
#include <string.h>

#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/planners.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "cli/verbs.h"
#include "eval/summary.h"
#include "plan/planners.h"

static void on_progress(void *user, const char *what, double done, double total) {
    cgs_progress *bar = user;
    char note[64];
    bar->total = total;
    snprintf(note, sizeof note, "%s: %.0f of %.0f episodes", what, done, total);
    cgs_progress_update(bar, done, note);
}

static bool on_stop(void *user) {
    (void)user;
    return cgs_interrupted();
}

/* "mppi K=128 I=30 tau=4" */
static void plan_text(const cgs_plan_config *p, char *out, size_t size) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(p->kind.s);
    const cgs_planner_setting *s;
    size_t used = (size_t)snprintf(out, size, "%.20s", p->kind.s);
    for (int i = 0; kind && used < size && (s = cgs_planner_setting_at(i)); i++)
        if (cgs_planner_shows(kind, s, p) && *s->label)
            used += (size_t)snprintf(out + used, size - used, s->whole ? " %s=%.0f" : " %s=%g",
                                     s->label, s->value(p));
}

/* percent, the model's cost, size of actions, milliseconds */
static void first_text(const cgs_summary_row *r, char *out, size_t size) {
    const cgs_first_plans *f = &r->first;
    if (f->successes < 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%5.1f  %8.4g  %5.2f  %.3g %.3g", 100.0 * f->successes / r->episodes,
                 f->cost, f->size, 1e3 * f->p50, 1e3 * f->p99);
}

static const char *short_name(const char *dir) {
    const char *slash = strrchr(dir, '/');
    return slash && slash[1] ? slash + 1 : dir;
}

static const char *const sweeps[] = {"K", "I", "tau", "rollouts"};

static void print_tables(const cgs_evaluation *e, const cgs_summary *s, const cgs_texts *models) {
    char text[96], first[96];
    printf("%-20s %-32s %8s  %-17s %-15s %10s  %s\n", "model", "planner", "success",
           "mean +- sd (seeds)", "95% interval", "s/episode",
           "first plan: success, cost, size, ms p50 p99");
    for (int i = 0; i < s->rows; i++) {
        const cgs_summary_row *r = &s->row[i];
        plan_text(r->plan, text, sizeof text);
        first_text(r, first, sizeof first);
        printf("%-20.20s %-32s %4d/%-4d %6.1f +- %4.1f (%d)  [%5.1f, %5.1f] %10.3f  %s%s%s%s\n",
               short_name(models->item[r->model]), text, r->successes, r->episodes, r->mean, r->sd,
               r->seeds, r->wilson.low, r->wilson.high, r->seconds, first,
               *e->backbone[r->model] ? "  (" : "", e->backbone[r->model],
               *e->backbone[r->model] ? " backbone)" : "");
    }
    if (s->areas) printf("\narea under a sweep, in percent\n");
    for (int i = 0; i < s->areas; i++) {
        const cgs_summary_area *a = &s->area[i];
        printf("%-20.20s %-10s over %s = %g ... %g (%d points): %.1f\n",
               short_name(models->item[a->model]), a->plan->kind.s, sweeps[a->over], a->low,
               a->high, a->points, a->nauc);
    }
    if (s->pairs) printf("\npaired on the same starts: second minus first\n");
    for (int i = 0; i < s->pairs; i++) {
        const cgs_summary_pair *p = &s->pair[i];
        plan_text(p->plan, text, sizeof text);
        printf("%-20.20s %-20.20s %-32s %+6.1f [%+5.1f, %+5.1f]  p = %.3g  (only second %d, only "
               "first %d, of %d)\n",
               short_name(models->item[p->a]), short_name(models->item[p->b]), text,
               100 * p->paired.difference, 100 * p->paired.newcombe.low,
               100 * p->paired.newcombe.high, p->paired.p, p->paired.only_a, p->paired.only_b,
               p->paired.n);
    }
}

/* what the judge asks for, where it is not silent */
static void print_protocol(const cgs_evaluation *e, const char *protocol, bool json) {
    cgs_judge j;
    if (!protocol || cgs_judge_parse(&j, protocol) != CGS_OK) return;
    printf(json ? "{\"kind\":\"protocol\",\"protocol\":\"%s\",\"success\":\"%s%s\"}\n"
                : "%s protocol: %s%s\n\n",
           protocol, e->env->predicate[j].sentence,
           j == CGS_JUDGE_STRICT ? ", at the end of the budget" : "");
}

static void json_plan(const cgs_plan_config *p) {
    printf("\"planner\":\"%s\",\"samples\":%d,\"iters\":%d,\"tau\":%.9g", p->kind.s, p->K, p->iters,
           (double)p->tau);
}

static void json_text(const char *s) {
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') putchar('\\');
        if ((unsigned char)*s < 32)
            printf("\\u%04x", (unsigned)*s);
        else
            putchar(*s);
    }
    putchar('"');
}

static void print_json(const cgs_evaluation *e, const cgs_summary *s, const cgs_texts *models) {
    for (int i = 0; i < s->rows; i++) {
        const cgs_summary_row *r = &s->row[i];
        printf("{\"kind\":\"rate\",\"model\":");
        json_text(models->item[r->model]);
        if (*e->backbone[r->model]) printf(",\"backbone\":\"%s\"", e->backbone[r->model]);
        printf(",");
        json_plan(r->plan);
        printf(",\"seeds\":%d,\"episodes\":%d,\"successes\":%d,\"mean\":%.6g,\"sd\":%.6g,"
               "\"low\":%.6g,\"high\":%.6g,\"seconds\":%.6g",
               r->seeds, r->episodes, r->successes, r->mean, r->sd, r->wilson.low, r->wilson.high,
               r->seconds);
        if (r->first.successes >= 0)
            printf(",\"first_plan\":{\"successes\":%d,\"cost\":%.6g,\"size\":%.6g,"
                   "\"seconds\":[%.6g,%.6g]}",
                   r->first.successes, r->first.cost, r->first.size, r->first.p50, r->first.p99);
        printf("}\n");
    }
    for (int i = 0; i < s->areas; i++) {
        const cgs_summary_area *a = &s->area[i];
        printf("{\"kind\":\"nauc\",\"model\":");
        json_text(models->item[a->model]);
        printf(",\"planner\":\"%s\",\"over\":\"%s\",\"points\":%d,\"low\":%.6g,\"high\":%.6g,"
               "\"nauc\":%.6g}\n",
               a->plan->kind.s, sweeps[a->over], a->points, a->low, a->high, a->nauc);
    }
    for (int i = 0; i < s->pairs; i++) {
        const cgs_summary_pair *p = &s->pair[i];
        printf("{\"kind\":\"comparison\",\"first\":");
        json_text(models->item[p->a]);
        printf(",\"second\":");
        json_text(models->item[p->b]);
        printf(",");
        json_plan(p->plan);
        printf(",\"n\":%d,\"only_second\":%d,\"only_first\":%d,\"difference\":%.6g,\"low\":%.6g,"
               "\"high\":%.6g,\"bootstrap_low\":%.6g,\"bootstrap_high\":%.6g,\"p\":%.6g}\n",
               p->paired.n, p->paired.only_a, p->paired.only_b, 100 * p->paired.difference,
               100 * p->paired.newcombe.low, 100 * p->paired.newcombe.high,
               100 * p->paired.bootstrap.low, 100 * p->paired.bootstrap.high, p->paired.p);
    }
}

static cgs_status evaluate(cgs_eval_options *o, const cgs_texts *models, bool quiet, bool json) {
    cgs_progress bar;
    cgs_evaluation e;
    cgs_summary s = {0};
    cgs_catch_interrupt();
    cgs_progress_begin(&bar, "eval", 1, quiet);
    o->progress = on_progress;
    o->stop = on_stop;
    o->user = &bar;
    cgs_status rc = cgs_evaluate(&e, o);
    cgs_progress_end(&bar);
    if (rc == CGS_ESTOPPED)
        rc = cgs_fail(CGS_EIO, "stopped; rerun the command to resume%s",
                      o->out ? "" : " (from the beginning: no --out was given)");
    if (rc == CGS_OK) rc = cgs_summarise(&s, &e);
    int reused = 0;
    for (int i = 0; rc == CGS_OK && i < e.count; i++) reused += e.run[i].reused;
    if (rc == CGS_OK) print_protocol(&e, o->protocol, json);
    if (rc == CGS_OK && json) print_json(&e, &s, models);
    if (rc == CGS_OK && !json) {
        print_tables(&e, &s, models);
        if (reused) printf("\n%d of %d results were already in %s\n", reused, e.count, o->out);
    }
    cgs_summary_free(&s);
    cgs_evaluation_free(&e);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    static const char *const default_planner[] = {"mppi"};
    const char *xml = NULL;
    cgs_eval_options o = cgs_eval_defaults();
    cgs_words words = {0}, models = {0}, planners = {0}, samples = {0}, iters = {0}, rollouts = {0},
              taus = {0}, seeds = {0};
    const char *history = "native";
    bool quiet = false, json = false, recorded = false;
    char command[4096];
    cgs_command_text(command, sizeof command, self->name, argc, argv);
    char names[CGS_PLANNER_HELP];
    cgs_planner_help(names, sizeof names, default_planner[0], 0);
    const cgs_opt opts[] = {
        {"model", "DIR ...", "model directories; several are compared on the same starts", OPT_LIST,
         &models, true},
        {"data", "F.h5", "dataset to draw starts and goals from", OPT_STR, &o.data, true},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &o.env, false},
        {"model-xml", "FILE", "MuJoCo scene to use instead of the built-in one", OPT_STR, &xml,
         false},
        {"planner", "LIST", names, OPT_LIST, &planners, false},
        {"samples", "LIST", "candidates K per iteration (128)", OPT_LIST, &samples, false},
        {"iters", "LIST", "iterations I (30)", OPT_LIST, &iters, false},
        {"rollouts", "LIST",
         "rollouts per solve: planners choose K and I by their rules (cgs help eval)", OPT_LIST,
         &rollouts, false},
        {"tau", "LIST", "temperatures, or auto: from the model's curvature (by environment)",
         OPT_LIST, &taus, false},
        {"seeds", "LIST", "seeds of starts and planning noise (0 1 42)", OPT_LIST, &seeds, false},
        {"episodes", "N", "starts per seed (50)", OPT_COUNT, &o.episodes, false},
        {"out", "R.jsonl", "result file; results that it already holds are reused", OPT_STR, &o.out,
         false},
        {"compact", NULL, "short lines, without what happened to each episode", OPT_FLAG,
         &o.compact, false},
        {"manifest", "FILE", "list of starts to load, or to save (FILE.SEED with several seeds)",
         OPT_STR, &o.manifest, false},
        {"history", "H", "native, dataset or online (native)", OPT_STR, &history, false},
        {"protocol", "P",
         "official, or a stricter judge of starts, distances and ends: moderate, strict; adds a "
         "run "
         "of random actions",
         OPT_STR, &o.protocol, false},
        {"success", "RULE",
         "when the predicate counts, after any action, each solve, or the last action: any, solve, "
         "end (any; DINO-WM: solve; strict: end)",
         OPT_STR, &o.success, false},
        {"held-out", NULL, "only starts from episodes held out of every model's training", OPT_FLAG,
         &o.held_out, false},
        {"skip-solved", NULL, "skip starts that already satisfy the success predicate", OPT_FLAG,
         &o.skip_solved, false},
        {"whole-range", NULL, "draw from all V possible starts instead of the published V - 1",
         OPT_FLAG, &o.whole_range, false},
        {"recorded", NULL,
         "without a simulator: plans and predictions beside what was recorded, in episodes that "
         "the model never trained on; --out writes one JSON object",
         OPT_FLAG, &recorded, false},
        {"horizon", "N", "action blocks per plan (5)", OPT_COUNT, &o.horizon, false},
        {"execute", "N", "action blocks executed before replanning (all)", OPT_INT, &o.execute,
         false},
        {"budget", "N", "most actions per episode (50)", OPT_COUNT, &o.budget, false},
        {"goal-offset", "N", "rows from start to goal (25)", OPT_COUNT, &o.goal_offset, false},
        {"elites", "N", "elites to refit to (a quarter of the candidates)", OPT_INT, &o.elites,
         false},
        {"gd-steps", "N", "steps of a descent (100)", OPT_COUNT, &o.gd_steps, false},
        {"batch", "N", "episodes planned at once (50; on a GPU 512, and last bits depend on it)",
         OPT_INT, &o.batch, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &o.device, false},
        {"precision", "P", "f32 or bf16 (as trained)", OPT_STR, &o.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &o.threads, false},
        {"json", NULL, "print rates, areas and comparisons as JSON lines", OPT_FLAG, &json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &quiet, false},
    };
    static const uint64_t default_seeds[] = {0, 1, 42};
    static const int default_samples[] = {128}, default_iters[] = {30};
    cgs_texts model_list, planner_list;
    int K[CGS_LIST_MAX], I[CGS_LIST_MAX], R[CGS_LIST_MAX];
    double tau[CGS_LIST_MAX];
    uint64_t seed[CGS_LIST_MAX];
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK) rc = cgs_env_option(&o.env);
    if (rc == CGS_OK && xml) rc = cgs_env_use_model(o.env, xml);
    if (rc == CGS_OK) rc = cgs_list_texts(&model_list, "model", &models);
    if (rc == CGS_OK) rc = cgs_list_texts(&planner_list, "planner", &planners);
    if (rc == CGS_OK) rc = cgs_list_ints(K, &o.sample_count, "samples", 1, &samples);
    if (rc == CGS_OK) rc = cgs_list_ints(I, &o.iter_count, "iters", 1, &iters);
    if (rc == CGS_OK) rc = cgs_list_ints(R, &o.rollout_count, "rollouts", 1, &rollouts);
    if (rc == CGS_OK && o.rollout_count && (o.sample_count || o.iter_count))
        rc = cgs_fail(CGS_EARG, "--rollouts chooses what --samples and --iters would");
    if (rc == CGS_OK) rc = cgs_list_taus(tau, &o.tau_count, "tau", &taus);
    if (rc == CGS_OK) rc = cgs_list_u64(seed, &o.seed_count, "seeds", &seeds);
    if (rc == CGS_OK) rc = cgs_history_parse(&o.history, history);
    if (rc == CGS_OK) {
        o.models = model_list.item;
        o.model_count = model_list.count;
        o.planners = planner_list.count ? planner_list.item : default_planner;
        o.planner_count = planner_list.count ? planner_list.count : 1;
        o.samples = o.sample_count ? K : default_samples;
        o.iters = o.iter_count ? I : default_iters;
        o.rollouts = R;
        o.taus = tau;
        o.settings = words.word;
        o.setting_count = words.count;
        o.seeds = o.seed_count ? seed : default_seeds;
        if (!o.sample_count) o.sample_count = 1;
        if (!o.iter_count) o.iter_count = 1;
        if (!o.seed_count) o.seed_count = 3;
        rc = recorded ? cgs_eval_recorded(&o, command, json, quiet)
                      : evaluate(&o, &model_list, quiet, json);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_eval = {
    "eval", "--model DIR ... --data F.h5 [--planner LIST] [--samples LIST] [plan.key=value ...]",
    "goal-reaching success with 95% intervals",
    "Defaults are the published protocol: 50 starts for each of the seeds 0, 1 and 42, drawn as\n"
    "NumPy draws them; the goal is the frame 25 rows later; 50 actions in two plans of 25; an\n"
    "episode succeeds when the predicate holds after any action (DINO-WM: after a plan).  Lists,\n"
    "separated by spaces or commas, are swept in all combinations that a planner reads; what a\n"
    "planner reads and no option names is set as plan.key=value, for all planners (cgs help\n"
    "settings).  --rollouts compares planners at equal cost: of R rollouts gn makes R / 16\n"
    "iterations of 16 candidates, up to eight, mppi and cem sqrt(R) / 2 iterations.  Each "
    "combination, model and seed is one line of R.jsonl with all settings and every episode;\n"
    "rerun an interrupted command and it resumes.  Several models are compared on the same starts\n"
    "with McNemar's test.  With --recorded no environment is asked: plans are compared with the\n"
    "recorded actions, predictions with the recorded latents and with trivial ones.\n"
    "  cgs eval --model runs/lewm runs/lewm-cgs --data tworooms.h5 --planner mppi cem gd zero \\\n"
    "           --samples 1,2,4,8,16,32,64,128 --out results.jsonl",
    run};
