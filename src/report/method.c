/* method.c - see method.h. */
#include "report/method.h"

#include <stdio.h>
#include <string.h>

#include "plan/planners.h"
#include "report/plot.h"

cgs_role cgs_method_role(const char *method, char *family) {
    const cgs_method *m = cgs_method_find(method);
    snprintf(family, 64, "%.63s", m ? m->family : method);
    return m ? m->role : CGS_ROLE_OTHER;
}

int cgs_method_style(const char *method) {
    const cgs_method *m = cgs_method_find(method);
    if (m && m->role != CGS_ROLE_OTHER)
        return (int[]){CGS_STYLE_PLAIN, CGS_STYLE_TS, CGS_STYLE_CGS}[m->role];
    if (m) return CGS_STYLE_OTHER + !strcmp(m->reference, "full");
    /* other names: the style is a function of the name */
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
