/* temperature.c - see temperature.h. */
#include "eval/temperature.h"

#include <math.h>
#include <string.h>

#include "plan/planners.h"

/* of the candidates, that count where no temperature is known: as many as are cem's elites */
#define SHARE 0.25f

static const struct {
    const char *family, *env;
    float tau;
} known[] = {
    {"lewm", "pusht", 4},
    {"lewm", "cube", 64},
    {"lewm", "tworooms", 128},
    {"lewm", "reacher", 64},
    {"dinowm", "pusht", 0.015f},
    {"dinowm", "wall", 5e-6f},
    {"dinowm", "pointmaze-umaze", 1e-3f},
    {"dinowm", "pointmaze-medium", 3e-3f},
};

float cgs_family_tau(const char *family, const char *env) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].family, family) && !strcmp(known[i].env, env)) return known[i].tau;
    return 0;
}

float cgs_model_tau(const cgs_model *m, const char *env) {
    return cgs_family_tau(m->cls->family, env);
}

cgs_status cgs_choose_tau(cgs_plan_config *c, double given, const cgs_model *m, const char *env) {
    const cgs_planner_kind *kind;
    CGS_TRY(cgs_planner_kind_find(&kind, c->kind.s));
    c->tau = given != 0 ? (float)given : cgs_model_tau(m, env);
    if (given != 0 || c->tau > 0) return CGS_OK;
    if (kind->reads & CGS_READS_TAU && !(c->ess > 0)) c->ess = fmaxf(1, SHARE * (float)c->K);
    c->tau = 1; /* not read, but settings are checked as a whole */
    return CGS_OK;
}
