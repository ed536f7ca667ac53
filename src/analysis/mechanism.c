/* mechanism.c - see mechanism.h. */
#include "analysis/mechanism.h"

#include <math.h>

#include "analysis/jacobian.h"
#include "core/rng.h"
#include "core/team.h"

enum { MAX_DIRECTIONS = 8 };

const int cgs_budgets[CGS_BUDGETS] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

cgs_status cgs_normalised_spectrum(const double *G, int q, double *lambda) {
    double ascending[MAX_DIRECTIONS], trace = 0;
    if (q < 1 || q > MAX_DIRECTIONS)
        return cgs_fail(CGS_EARG, "%d directions, 1 to %d are possible", q, MAX_DIRECTIONS);
    for (int i = 0; i < q; i++) trace += G[i * q + i];
    if (!(trace > 0) || !isfinite(trace))
        return cgs_fail(CGS_ENUMERIC, "the response to all %d directions together is %g", q, trace);
    CGS_TRY(cgs_symmetric_eigen(G, q, ascending, NULL));
    for (int i = 0; i < q; i++) lambda[i] = fmax(0, ascending[q - 1 - i]) * q / trace;
    return CGS_OK;
}

double cgs_contraction_limit(const double *lambda, int q) { return 1 / (1 + lambda[q - 1]); }

/* |weighted mean of the first K draws - u*| for each budget */
static void contract(const double *lambda, int q, cgs_rng rng, double *error) {
    double cost[CGS_DRAWS], u[CGS_DRAWS][MAX_DIRECTIONS];
    for (int k = 0; k < CGS_DRAWS; k++) {
        cost[k] = 0;
        for (int i = 0; i < q; i++) {
            u[k][i] = cgs_rng_normal(&rng);
            double d = u[k][i] - (i == q - 1);
            cost[k] += lambda[i] * d * d;
        }
    }
    double low = cost[0], mass = 0, sum[MAX_DIRECTIONS] = {0};
    for (int k = 0, b = 0; k < CGS_DRAWS; k++) {
        if (cost[k] < low) { /* weights are relative to the lowest cost so far */
            double scale = exp((cost[k] - low) / CGS_MECHANISM_TAU);
            mass *= scale;
            for (int i = 0; i < q; i++) sum[i] *= scale;
            low = cost[k];
        }
        double w = exp((low - cost[k]) / CGS_MECHANISM_TAU);
        mass += w;
        for (int i = 0; i < q; i++) sum[i] += w * u[k][i];
        if (k + 1 == cgs_budgets[b]) {
            double square = 0;
            for (int i = 0; i < q; i++) {
                double d = sum[i] / mass - (i == q - 1);
                square += d * d;
            }
            error[b++] = sqrt(square);
        }
    }
}

typedef struct contraction {
    const double *lambda;
    int q;
    uint64_t seed, anchor;
    _Atomic int count[CGS_BUDGETS];
} contraction;

static void count_progress(void *context) {
    contraction *c = context;
    CGS_SHARE (b, CGS_BATCHES) {
        double error[CGS_BUDGETS];
        contract(c->lambda, c->q,
                 cgs_rng_stream(c->seed, CGS_STREAM_PLAN, c->anchor * CGS_BATCHES + b), error);
        for (int k = 0; k < CGS_BUDGETS; k++) c->count[k] += error[k] < 1;
    }
}

void cgs_progress_probability(const double *lambda, int q, uint64_t seed, uint64_t anchor,
                              double *p) {
    contraction c = {.lambda = lambda, .q = q, .seed = seed, .anchor = anchor};
    cgs_together(0, count_progress, &c);
    for (int k = 0; k < CGS_BUDGETS; k++) p[k] = (double)c.count[k] / CGS_BATCHES;
}
