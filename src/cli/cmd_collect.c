/* cmd_collect.c - cgs collect: records offline image-action data and prints what it covers. */
#include <math.h>
#include <string.h>

#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "collect/collect.h"
#include "collect/coverage.h"
#include "core/threads.h"
#include "env/env.h"

/* published numbers; NAN where the paper gives none */
typedef struct published {
    const char *env, *moves;
    double short_move; /* the success distance, for the share of short moves */
    double shortest, longest, mean_length, mean[2], std[2], terminated, median, brief;
} published;

static const published PUBLISHED[] = {
    {"pusht", "block", 20, 49, 246, 125, {-0.0087, 0.0068}, {0.2019, 0.2002}, NAN, NAN, NAN},
    {"tworooms", "agent", 16, NAN, 101, 92.1, {NAN, NAN}, {NAN, NAN}, NAN, 41.3, 0.09},
    {"wall", "dot", 4.5, 50, 50, 50, {0.0006, 0.0015}, {0.4395, 0.4684}, NAN, NAN, NAN},
    {"pointmaze-umaze", "ball", 0.5, 100, 100, 100, {NAN, NAN}, {NAN, NAN}, NAN, NAN, NAN},
    {"pointmaze-medium", "ball", 0.5, 100, 100, 100, {NAN, NAN}, {NAN, NAN}, NAN, NAN, NAN},
    {"reacher", "pair of joints", 0.05, 201, 201, 201, {0, 0}, {0.5767, 0.5767}, NAN, NAN, NAN},
    {"cube", "block", 0.04, 201, 201, 201, {NAN, NAN}, {NAN, NAN}, NAN, NAN, NAN},
};
static const published UNKNOWN = {"",         "agent",    0,   NAN, NAN, NAN,
                                  {NAN, NAN}, {NAN, NAN}, NAN, NAN, NAN};

static const published *published_of(const char *env) {
    for (int i = 0; i < CGS_COUNT(PUBLISHED); i++)
        if (!strcmp(PUBLISHED[i].env, env)) return &PUBLISHED[i];
    return &UNKNOWN;
}

static void row(const char *name, double here, double there, int digits) {
    char a[32] = "-", b[32] = "-";
    if (!isnan(here)) snprintf(a, sizeof a, "%.*f", digits, here);
    if (!isnan(there)) snprintf(b, sizeof b, "%.*f", digits, there);
    printf("  %-40s %12s %12s\n", name, a, b);
}

static void print_coverage(const cgs_coverage *c, const published *p) {
    char name[64];
    printf("  %-40s %12s %12s\n", "", "this file", "published");
    row("shortest episode, rows", c->shortest, p->shortest, 0);
    row("longest episode", c->longest, p->longest, 0);
    row("mean episode", c->mean_length, p->mean_length, 1);
    for (int i = 0; i < 2 && !isnan(c->action_mean[i]); i++) {
        snprintf(name, sizeof name, "action %d, mean", i);
        row(name, c->action_mean[i], p->mean[i], 4);
        snprintf(name, sizeof name, "action %d, standard deviation", i);
        row(name, c->action_std[i], p->std[i], 4);
    }
    if (!isnan(c->terminated))
        row("share of episodes that reached a target", c->terminated, p->terminated, 3);
    if (!isnan(c->contact)) row("share of steps in contact", c->contact, NAN, 3);
    snprintf(name, sizeof name, "%s moves in %d steps, mean", p->moves, CGS_COVERAGE_SPAN);
    int digits = p->short_move < 1 ? 3 : 1; /* metres and radians, or pixels */
    row(name, c->move_mean, NAN, digits);
    snprintf(name, sizeof name, "%s moves in %d steps, median", p->moves, CGS_COVERAGE_SPAN);
    row(name, c->move_median, p->median, digits);
    snprintf(name, sizeof name, "share of those below %g", p->short_move);
    row(name, c->move_short, p->brief, 3);
    if (!isnan(c->turn_mean)) row("block turns in 25 steps, mean radians", c->turn_mean, NAN, 2);
}

static void json_number(const char *key, double v) {
    if (isnan(v))
        printf(",\"%s\":null", key);
    else
        printf(",\"%s\":%.6g", key, v);
}

static void print_json(const cgs_coverage *c, const cgs_collect_options *o,
                       const cgs_collect_result *r) {
    printf("{\"env\":\"%s\",\"policy\":\"%s\",\"seed\":%llu,\"episodes\":%d,\"rows\":%lld", o->env,
           r->policy, (unsigned long long)o->seed, c->episodes, (long long)c->rows);
    json_number("frames_per_second", r->seconds > 0 ? (double)r->frames / r->seconds : NAN);
    json_number("dropped", (double)r->dropped);
    json_number("shortest", c->shortest);
    json_number("longest", c->longest);
    json_number("mean_length", c->mean_length);
    json_number("action_mean_0", c->action_mean[0]);
    json_number("action_mean_1", c->action_mean[1]);
    json_number("action_std_0", c->action_std[0]);
    json_number("action_std_1", c->action_std[1]);
    json_number("terminated", c->terminated);
    json_number("contact", c->contact);
    json_number("move_mean", c->move_mean);
    json_number("move_median", c->move_median);
    json_number("move_short", c->move_short);
    json_number("turn_mean", c->turn_mean);
    printf("}\n");
}

typedef struct screen {
    cgs_progress bar;
    double start;
} screen;

static void on_progress(void *user, int64_t episodes, int64_t frames) {
    screen *s = user;
    char note[48] = "";
    double seconds = cgs_now() - s->start;
    if (frames > 0 && seconds > 0)
        snprintf(note, sizeof note, "%.0f frames/s", (double)frames / seconds);
    cgs_progress_update(&s->bar, (double)episodes, note);
}

static bool on_stop(void *user) {
    (void)user;
    return cgs_interrupted();
}

static cgs_status collect(cgs_collect_options *o, int threads, bool quiet, bool json) {
    screen s = {.start = cgs_now()};
    cgs_collect_result r;
    cgs_coverage c;
    cgs_set_threads(threads);
    cgs_catch_interrupt();
    cgs_progress_begin(&s.bar, "collect", (double)o->episodes, quiet);
    o->progress = on_progress;
    o->stop = on_stop;
    o->user = &s;
    cgs_status rc = cgs_collect(o, &r);
    cgs_progress_end(&s.bar);
    if (rc == CGS_ESTOPPED) /* not a success: the dataset is not there yet */
        return cgs_fail(CGS_EIO, "stopped after %lld of %lld episodes; rerun the command to resume",
                        (long long)(r.resumed + r.episodes), (long long)o->episodes);
    if (rc != CGS_OK) return rc;
    if (quiet && !json) return CGS_OK;
    const published *p = published_of(o->env);
    CGS_TRY(cgs_coverage_compute(&c, o->out, o->env, p->short_move));
    if (!r.seeks_goal) c.terminated = NAN; /* nothing to reach */
    if (json) {
        print_json(&c, o, &r);
        return CGS_OK;
    }
    printf("%s: %s, policy %s, %d episodes, %lld rows", o->out, o->env, r.policy, c.episodes,
           (long long)c.rows);
    if (r.seconds > 0) printf(", %.0f frames/s", (double)r.frames / r.seconds);
    if (r.resumed > 0) printf(", resumed after %lld", (long long)r.resumed);
    if (r.dropped > 0) printf(", %lld failed simulations redrawn", (long long)r.dropped);
    printf("\n");
    print_coverage(&c, p);
    return CGS_OK;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_collect_options o = {.side = 224};
    int episodes = 1000, threads = 0;
    bool quiet = false, json = false;
    const cgs_opt opts[] = {
        {"env", "ID", CGS_ENV_OPTION_HELP, OPT_STR, &o.env, true},
        {"model-xml", "FILE", "MuJoCo scene to use instead of the built-in one", OPT_STR, &o.scene,
         false},
        {"out", "F.h5", "the dataset to write; it must not exist", OPT_STR, &o.out, true},
        {"episodes", "N", "episodes (1000)", OPT_COUNT, &episodes, false},
        {"policy", "P", "behaviour policy, see cgs envs (the first)", OPT_STR, &o.policy, false},
        {"size", "N", "image size in pixels (224); 0: record no images", OPT_INT, &o.side, false},
        {"every", "N", "render only rows 0, N, 2N, ... of each episode (1)", OPT_COUNT, &o.every,
         false},
        {"seed", "S", "seed (0)", OPT_U64, &o.seed, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &threads, false},
        {"json", NULL, "print the coverage of the file as one JSON object", OPT_FLAG, &json, false},
        {"quiet", NULL, "no progress bar, no table", OPT_FLAG, &quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_env_option(&o.env);
    if (rc == CGS_OK && o.scene) rc = cgs_env_use_model(o.env, o.scene);
    o.episodes = episodes;
    if (rc == CGS_OK) rc = collect(&o, threads, quiet, json);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_collect = {
    "collect", "--env ID --out F.h5 [--episodes N] [--policy P] [--size N] [--every N]",
    "records image-action data with a behaviour policy",
    "Episode e depends only on the seed and e: the file is the same for any number of threads.\n"
    "With --every equal to the frameskip of training, windows begin at rendered rows and lose\n"
    "nothing; with a frameskip of 5 only a fifth of the images is rendered and stored.\n"
    "Finished episodes are kept in F.h5.part: rerun an interrupted or killed command and it\n"
    "resumes.  At the end it prints the coverage of the file beside that of the published\n"
    "one.",
    run};
