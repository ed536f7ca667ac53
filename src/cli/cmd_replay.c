/* cmd_replay.c - cgs replay: sets a state, applies recorded actions, prints what happens. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/env_option.h"
#include "cli/plain.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "env/env.h"
#include "io/png.h"

static cgs_status parse_numbers(const char *text, const char *what, int expected, double *out) {
    int n;
    CGS_TRY(cgs_parse_numbers(text, what, expected, out, &n));
    if (n != expected)
        return cgs_fail(CGS_EARG, "%s: %d numbers are needed, got %d", what, expected, n);
    return CGS_OK;
}

typedef struct replay {
    cgs_env *env;
    bool json, judged; /* judged: a goal was given */
    const char *frames;
    int side;
    uint8_t *rgb; /* (side, side, 3) */
} replay;

static cgs_status show(const replay *r, int step) {
    const cgs_env *e = r->env;
    const char *success = r->judged && *e->success ? "true" : "false";
    if (r->json)
        printf("{\"step\":%d,\"state\":[", step);
    else
        printf("%5d ", step);
    for (int i = 0; i < e->cls->state_dim; i++)
        printf(r->json ? "%s%.17g" : "%s%14.9f", r->json && i ? "," : "", e->state[i]);
    if (r->json)
        printf("],\"success\":%s}\n", success);
    else
        printf("%s\n", r->judged && *e->success ? "  success" : "");
    if (!r->frames) return CGS_OK;
    char name[32], path[4096];
    snprintf(name, sizeof name, "frame_%05d.png", step);
    CGS_TRY(cgs_path_join(path, sizeof path, r->frames, name));
    CGS_TRY(cgs_env_render(r->env, r->side, r->rgb));
    return cgs_png_write(path, r->rgb, r->side, r->side);
}

static cgs_status play(replay *r, char *text, const char *path) {
    cgs_env *e = r->env;
    int step = 0, line = 0;
    CGS_TRY(show(r, 0));
    for (char *p = text; p && *p;) {
        char *end = strchr(p, '\n'), what[4200];
        if (end) *end = '\0';
        snprintf(what, sizeof what, "%s:%d", path, ++line);
        p[strcspn(p, "#")] = '\0'; /* comments */
        if (p[strspn(p, " \t\r")] != '\0') {
            CGS_TRY(parse_numbers(p, what, e->cls->action_dim, e->action));
            cgs_env_step(e);
            if (*e->done)
                return cgs_fail(CGS_ENUMERIC,
                                "%s: the action leaves the range that %s can represent", what,
                                e->cls->id);
            CGS_TRY(show(r, ++step));
        }
        p = end ? end + 1 : NULL;
    }
    return CGS_OK;
}

static cgs_status replay_file(const char *id, const char *state, const char *goal,
                              const char *actions, replay *r) {
    const cgs_env_class *cls;
    double v[CGS_ENV_MAX_DIM];
    char *text = NULL;
    size_t bytes;
    CGS_TRY(cgs_env_find(id, &cls));
    CGS_TRY(cgs_read_file(actions, (size_t)256 << 20, &text, &bytes));
    cgs_status rc = parse_numbers(state, "--state", cls->state_dim, v);
    if (rc == CGS_OK) rc = cgs_env_create(&r->env, cls);
    if (rc == CGS_OK) rc = cgs_env_start(r->env, v, cls->state_dim);
    if (rc == CGS_OK && goal) {
        r->judged = true;
        rc = parse_numbers(goal, "--goal", cls->state_dim, v);
        if (rc == CGS_OK) rc = cgs_env_set_goal(r->env, v, cls->state_dim);
    }
    if (rc == CGS_OK && r->frames) {
        rc = cgs_make_dirs(r->frames);
        if (rc == CGS_OK && (r->side < 8 || r->side > CGS_ENV_MAX_SIDE))
            rc = cgs_fail(CGS_EARG, "--size: an image has 8 to %d pixels per side, not %d",
                          CGS_ENV_MAX_SIDE, r->side);
        if (rc == CGS_OK) r->rgb = malloc((size_t)r->side * (size_t)r->side * 3);
        if (rc == CGS_OK && !r->rgb) rc = cgs_fail(CGS_ENOMEM, "no memory for an image");
    }
    if (rc == CGS_OK) rc = play(r, text, actions);
    cgs_env_destroy(r->env);
    free(r->rgb);
    free(text);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *xml = NULL;
    const char *env = NULL, *state = NULL, *actions = NULL, *goal = NULL;
    replay r = {.side = 224};
    const cgs_opt opts[] = {
        {"env", "ID", CGS_ENV_OPTION_HELP, OPT_STR, &env, true},
        {"model-xml", "FILE", "MuJoCo scene to use instead of the built-in one", OPT_STR, &xml,
         false},
        {"state", "V,V,...", "the state to start from", OPT_STR, &state, true},
        {"actions", "FILE", "raw actions, comma-separated, one per line", OPT_STR, &actions, true},
        {"goal", "V,V,...", "state that success is measured against", OPT_STR, &goal, false},
        {"frames", "DIR", "also write every frame as PNG", OPT_STR, &r.frames, false},
        {"size", "N", "image size in pixels", OPT_INT, &r.side, false},
        {"json", NULL, "one JSON object per line", OPT_FLAG, &r.json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_env_option(&env);
    if (rc == CGS_OK && xml) rc = cgs_env_use_model(env, xml);
    if (rc == CGS_OK) rc = replay_file(env, state, goal, actions, &r);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_replay = {
    "replay", "--env ID --state V,V,... --actions FILE [--goal V,V,...] [--frames DIR] [--json]",
    "sets a state, applies recorded actions, prints every state",
    "Step 0 is the state as set: a new simulation whose state is set twice, as PushT's reference\n"
    "trajectories were recorded (each setting ends with one physics substep of 0.01 s, so an\n"
    "agent set with velocity v is seen at 0.01 v from there).  Without --goal success is false\n"
    "and no action ends early.",
    run};
