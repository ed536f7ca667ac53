/* bench_architectures.c - what a solve costs through LeWM and through DINO-WM with one token a
 * frame and with many. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/rng.h"
#include "core/statistics.h"
#include "plan/planners.h"
#include "rollout/rollout.h"

enum { H = 5, MAX_RUNS = 100 };

static const struct {
    const char *method, *family;
} architectures[CGS_ARCHITECTURES] = {
    {"lewm", "lewm"}, {"dinowm-cls", "cls"}, {"dinowm-patch", "patch"}};
static const char *const planners[CGS_TIMED_PLANNERS] = {"cem", "mppi", "gd"};

static cgs_status time_solves(cgs_planner *solver, cgs_rollout *r, int E, int runs,
                              cgs_solve_time *out) {
    double seconds[MAX_RUNS];
    cgs_plan_result result;
    cgs_plan_problem q = {.E = E,
                          .cost = cgs_rollout_cost,
                          .gradient = cgs_rollout_gradient,
                          .ctx = r,
                          .on_device = cgs_rollout_device_scorer(r)};
    CGS_TRY(cgs_planner_solve(solver, &q,
                              &result)); /* warm-up: builds the device program, fills caches */
    for (int run = 0; run < runs; run++) {
        CGS_TRY(cgs_planner_solve(solver, &q, &result));
        seconds[run] = result.times.total / E;
    }
    out->seconds = cgs_median(seconds, runs);
    out->least = out->most = seconds[0];
    for (int run = 1; run < runs; run++) {
        if (seconds[run] < out->least) out->least = seconds[run];
        if (seconds[run] > out->most) out->most = seconds[run];
    }
    return CGS_OK;
}

static cgs_status measure(cgs_model *m, cgs_dtype act, const cgs_timing_work *w,
                          const char *planner, cgs_solve_time *out) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(planner);
    bool gradient = kind->needs & CGS_NEEDS_GRADIENT;
    int E = gradient ? w->episodes : 1;
    cgs_plan_config p = cgs_plan_defaults();
    strcpy(p.kind.s, planner);
    p.K = w->samples;
    p.iters = w->iters;
    p.gd_steps = w->gd_steps;
    p.H = H;
    p.A = cgs_model_action_block(m);
    cgs_rollout_config c = {.episodes = E,
                            .context = 1,
                            .horizon = H,
                            .samples = cgs_planner_candidates(kind, &p),
                            .gradient = gradient,
                            .group = E == 1,
                            .act = act};
    size_t n = (size_t)E * (size_t)m->width;
    float *z = malloc(2 * n * sizeof *z);
    cgs_planner *solver = NULL;
    cgs_rollout *r = NULL;
    cgs_status rc = z ? CGS_OK : cgs_fail(CGS_ENOMEM, "bench: no memory");
    if (rc == CGS_OK) {
        cgs_rng random = cgs_rng_stream(0, CGS_STREAM_TEST, 0);
        for (size_t i = 0; i < 2 * n; i++) z[i] = (float)cgs_rng_normal(&random);
        rc = cgs_rollout_create_any(&r, m, &c);
    }
    if (rc == CGS_OK) rc = cgs_planner_create(&solver, &p, E);
    if (rc == CGS_OK) rc = cgs_planner_use_device(solver, m->params->device);
    if (rc == CGS_OK) rc = cgs_rollout_set(r, E, z, NULL, z + n);
    *out = (cgs_solve_time){.planner = planner, .episodes = E};
    if (rc == CGS_OK) rc = time_solves(solver, r, E, w->runs, out);
    cgs_planner_destroy(solver);
    cgs_rollout_destroy(r);
    free(z);
    return rc;
}

cgs_status cgs_bench_architectures(cgs_device *d, const char *size, cgs_dtype act,
                                   const cgs_timing_work *w,
                                   cgs_architecture_time out[CGS_ARCHITECTURES]) {
    if (w->samples < 1 || w->iters < 1 || w->gd_steps < 1 || w->episodes < 1 || w->runs < 1 ||
        w->runs > MAX_RUNS)
        return cgs_fail(CGS_EARG,
                        "%d samples, %d iterations, %d steps, %d episodes and 1 ... %d runs are "
                        "needed; there are %d runs",
                        w->samples, w->iters, w->gd_steps, w->episodes, MAX_RUNS, w->runs);
    for (int i = 0; i < CGS_ARCHITECTURES; i++) {
        cgs_model *m;
        cgs_bench_target target = {architectures[i].family, size};
        CGS_TRY(cgs_bench_model(&m, target, false, d)); /* planning needs no backbone */
        out[i] = (cgs_architecture_time){.method = architectures[i].method,
                                         .parameters = cgs_params_learnable(m->params),
                                         .latent = m->width};
        cgs_status rc = CGS_OK;
        for (int k = 0; k < CGS_TIMED_PLANNERS && rc == CGS_OK; k++)
            rc = measure(m, act, w, planners[k], &out[i].solve[k]);
        cgs_model_destroy(m);
        CGS_TRY(rc);
    }
    return CGS_OK;
}
