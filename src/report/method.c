/* method.c - see method.h. */
#include "report/method.h"

#include <stdio.h>
#include <string.h>

#include "plan/planners.h"
#include "report/plot.h"

/* presets, in the spelling of the settings and of the paper */
static const struct {
    const char *preset, *family, *name;
    cgs_role role;
    int style;
} methods[] = {
    {"lewm", "lewm", "LeWM", CGS_ROLE_PLAIN, CGS_STYLE_PLAIN},
    {"lewm-ts", "lewm", "LeWM+TS", CGS_ROLE_TS, CGS_STYLE_TS},
    {"lewm-cgs", "lewm", "LeWM+CGS", CGS_ROLE_CGS, CGS_STYLE_CGS},
    {"lewm-cgs-transition", "lewm", "LeWM+CGS (transition)", CGS_ROLE_OTHER, CGS_STYLE_OTHER},
    {"lewm-cgs-xyz-all", "lewm", "LeWM+CGS (XYZ, all)", CGS_ROLE_OTHER, CGS_STYLE_OTHER},
    {"lewm-cgs-full", "lewm", "LeWM+CGS (full)", CGS_ROLE_OTHER, CGS_STYLE_OTHER + 1},
    {"dinowm-cls", "dinowm-cls", "DINO-WM CLS", CGS_ROLE_PLAIN, CGS_STYLE_PLAIN},
    {"dinowm-cls-ts", "dinowm-cls", "DINO-WM CLS+TS", CGS_ROLE_TS, CGS_STYLE_TS},
    {"dinowm-cls-cgs", "dinowm-cls", "DINO-WM CLS+CGS", CGS_ROLE_CGS, CGS_STYLE_CGS},
    {"dinowm-patch", "dinowm-patch", "DINO-WM patch", CGS_ROLE_PLAIN, CGS_STYLE_PLAIN},
    {"dinowm-patch-ts", "dinowm-patch", "DINO-WM patch+TS", CGS_ROLE_TS, CGS_STYLE_TS},
    {"dinowm-patch-cgs", "dinowm-patch", "DINO-WM patch+CGS", CGS_ROLE_CGS, CGS_STYLE_CGS},
};
enum { METHODS = sizeof methods / sizeof *methods };

static int find(const char *method) {
    for (int i = 0; i < METHODS; i++)
        if (!strcmp(methods[i].preset, method)) return i;
    return -1;
}

cgs_role cgs_method_role(const char *method, char *family) {
    int i = find(method);
    snprintf(family, 64, "%.63s", i < 0 ? method : methods[i].family);
    return i < 0 ? CGS_ROLE_OTHER : methods[i].role;
}

void cgs_method_name(const char *method, char *out, size_t size) {
    int i = find(method);
    snprintf(out, size, "%s", i < 0 ? method : methods[i].name);
}

int cgs_method_style(const char *method) {
    int i = find(method);
    if (i >= 0) return methods[i].style;
    /* others: the same name always looks the same */
    unsigned h = 0;
    for (const char *p = method; *p; p++) h = 31 * h + (unsigned char)*p;
    return CGS_STYLE_OTHER + 2 + (int)(h % (CGS_STYLES - CGS_STYLE_OTHER - 2));
}

int cgs_style_apart(int style, const int *taken, int count) {
    bool used[CGS_STYLES] = {false};
    for (int i = 0; i < count; i++) used[taken[i] % CGS_STYLES] = true;
    if (!used[style]) return style;
    for (int s = CGS_STYLE_OTHER; s < CGS_STYLES; s++)
        if (!used[s]) return s;
    return style;
}

const char *cgs_planner_name(const char *planner) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(planner);
    return kind ? kind->title : planner;
}

const char *cgs_env_name(const char *env) {
    static const char *const names[][2] = {{"pusht", "PushT"},
                                           {"tworooms", "TwoRooms"},
                                           {"cube", "Cube"},
                                           {"reacher", "Reacher"},
                                           {"wall", "Wall"},
                                           {"pointmaze-umaze", "PointMaze U"},
                                           {"pointmaze-medium", "PointMaze medium"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], env)) return names[i][1];
    return env;
}
