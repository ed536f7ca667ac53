/* planners.c - see planners.h. */
#include "cli/planners.h"

#include <stdio.h>

const char *cgs_planner_help(char *out, size_t size, const char *initial, unsigned without) {
    char names[CGS_PLANNER_NAMES];
    snprintf(out, size, "%s (%.20s)", cgs_planner_names(names, sizeof names, without), initial);
    return out;
}

const char *cgs_planner_reads(char *out, size_t size, const cgs_planner_kind *kind) {
    const cgs_planner_setting *s;
    const char *between = "reads ";
    size_t used = 0;
    for (int i = 0; used < size && (s = cgs_planner_setting_at(i)); i++)
        if (kind->reads & s->bit) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", between, s->key);
            between = ", ";
        }
    if (!used) snprintf(out, size, "reads nothing");
    return out;
}
