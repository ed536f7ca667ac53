/* refine.c - candidates, proposal updates and the Adam step.
 *
 * Sums over candidates run in double and in a fixed order: threads divide episodes and
 * coordinates, never the terms of one sum. */
#include "plan/refine.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "core/team.h"
#include "core/threads.h"

/* below this many values helpers cost more than they save */
#define SHARED_FROM ((int64_t)4096)
/* coordinates one task sums at a time: their accumulators stay in registers */
#define TILE 16

uint64_t cgs_plan_key(uint64_t seed, uint64_t episode, uint64_t solve, uint64_t iteration) {
    uint64_t key = cgs_rng_stream(seed, CGS_STREAM_PLAN, episode).key;
    return cgs_rng_at(key, (solve << 32) + iteration);
}

void cgs_noise_filter(double *filter, int actions, double exponent) {
    const double pi = 3.14159265358979323846;
    double squares = 0;
    for (int d = 0; d < actions; d++) {
        filter[d] = 1; /* frequency 0, as large as frequency 1 */
        for (int f = 1; 2 * f <= actions; f++)
            filter[d] += (2 * f == actions ? 1 : 2) * pow(f, -exponent / 2) *
                         cos(2 * pi * (double)((int64_t)f * d % actions) / actions);
        squares += filter[d] * filter[d];
    }
    for (int d = 0; d < actions; d++) filter[d] /= sqrt(squares);
}

/* the noise of a candidate, which begins as zeros */
static void draw_filtered(const cgs_noise *noise, uint64_t key, uint64_t candidate, float *e) {
    int T = noise->actions, channels = noise->channels;
    for (int s = 0; s < T; s++)
        for (int c = 0; c < channels; c++) {
            uint64_t j = (uint64_t)s * (uint64_t)channels + (uint64_t)c;
            double white = cgs_rng_normal_at(key, (candidate << 32) + j);
            for (int t = 0; t < T; t++)
                e[t * channels + c] += (float)(noise->filter[(t - s + T) % T] * white);
        }
}

static void draw_shaped(const cgs_noise *noise, uint64_t key, uint64_t candidate, const float *mean,
                        const float *spread, int n, float *plan) {
    bool mirrored = noise->mirror && candidate % 2 == 0;
    if (mirrored) candidate--;
    memset(plan, 0, sizeof(float) * (size_t)n);
    if (noise->filter)
        draw_filtered(noise, key, candidate, plan);
    else
        for (int j = 0; j < n; j++)
            plan[j] = cgs_rng_normal_at(key, (candidate << 32) + (uint64_t)j);
    for (int j = 0; j < n; j++) plan[j] = mean[j] + spread[j] * (mirrored ? -plan[j] : plan[j]);
}

static void draw(uint64_t key, uint64_t candidate, const float *mean, const float *spread, int n,
                 float *plan) {
    for (int j = 0; j < n; j++)
        plan[j] = mean[j] + spread[j] * cgs_rng_normal_at(key, (candidate << 32) + (uint64_t)j);
}

/* what the threads share; arrays as in refine.h */
typedef struct proposal {
    int E, K, n, M;
    const uint64_t *key;
    const cgs_noise *noise;
    float *plans;
    const float *cost;
    float tau, ess;
    int *order;
    double *weight;
    float *mean, *spread;
} proposal;

static void together(int64_t values, cgs_job *work, proposal *p) {
    cgs_together(values >= SHARED_FROM ? cgs_threads() : 1, work, p);
}

static void sample_rows(void *context) {
    const proposal *p = context;
    CGS_SHARE (r, (size_t)p->E * (size_t)p->K) {
        size_t e = r / (size_t)p->K, k = r % (size_t)p->K, n = (size_t)p->n;
        if (k == 0)
            memcpy(p->plans + r * n, p->mean + e * n, sizeof(float) * n);
        else if (p->noise && (p->noise->mirror || p->noise->filter))
            draw_shaped(p->noise, p->key[e], k, p->mean + e * n, p->spread + e * n, p->n,
                        p->plans + r * n);
        else
            draw(p->key[e], k, p->mean + e * n, p->spread + e * n, p->n, p->plans + r * n);
    }
}

void cgs_plan_sample(const uint64_t *key, const cgs_noise *noise, const float *mean,
                     const float *spread, int E, int K, int n, float *plans) {
    proposal p = {.E = E, .K = K, .n = n, .key = key, .noise = noise, .plans = plans};
    p.mean = (float *)(uintptr_t)mean;
    p.spread = (float *)(uintptr_t)spread;
    together((int64_t)E * K * n, sample_rows, &p);
}

void cgs_plan_product(float *spread, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        spread[i] = (float)(spread[i] / sqrt(1 + (double)spread[i] * spread[i]));
}

void cgs_plan_perturb(const uint64_t *key, const float *mean, const float *spread, int E, int n,
                      float *plans) {
    for (int64_t e = 0; e < E; e++) draw(key[e], 1, mean + e * n, spread + e * n, n, plans + e * n);
}

/* the order of candidates: by cost, then by index, so that no two are equal */
static int after(const float *cost, int a, int b) {
    return cost[a] > cost[b] || (cost[a] == cost[b] && a > b);
}

/* restores the heap (largest first) below position i */
static void sift(int *heap, int size, int i, const float *cost) {
    int moving = heap[i];
    for (int child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && after(cost, heap[child + 1], heap[child])) child++;
        if (!after(cost, heap[child], moving)) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* Puts the M first candidates, sorted, into order[0 .. M-1]: a heap of the M best seen,
 * then heap sort.  (qsort would do, but may allocate.) */
static void select_elites(const float *cost, int K, int M, int *order) {
    for (int k = 0; k < M; k++) order[k] = k;
    for (int i = M / 2 - 1; i >= 0; i--) sift(order, M, i, cost);
    for (int k = M; k < K; k++)
        if (after(cost, order[0], k)) {
            order[0] = k;
            sift(order, M, 0, cost);
        }
    for (int size = M - 1; size > 0; size--) {
        int last = order[size];
        order[size] = order[0];
        order[0] = last;
        sift(order, size, 0, cost);
    }
}

/* refits `width` coordinates of one episode; plans, mean and spread begin at the first */
static void refit_tile(const float *plans, const int *order, int n, int M, int width, float *mean,
                       float *spread) {
    double sum[TILE] = {0}, square[TILE] = {0};
    for (int k = 0; k < M; k++) {
        const float *plan = plans + (int64_t)order[k] * n;
        for (int j = 0; j < width; j++) sum[j] += plan[j];
    }
    for (int j = 0; j < width; j++) sum[j] /= M;
    for (int k = 0; k < M && M > 1; k++) {
        const float *plan = plans + (int64_t)order[k] * n;
        for (int j = 0; j < width; j++) square[j] += (plan[j] - sum[j]) * (plan[j] - sum[j]);
    }
    for (int j = 0; j < width; j++) {
        mean[j] = (float)sum[j];
        if (M > 1) spread[j] = (float)sqrt(square[j] / (M - 1));
    }
}

/* Sums over candidates stay whole: threads divide episodes, then tiles of coordinates. */
static void refit_tiles(void *context) {
    const proposal *p = context;
    int tiles = (p->n + TILE - 1) / TILE;
    int64_t K = p->K, n = p->n;
    CGS_QUEUE (e, (size_t)p->E)
        select_elites(p->cost + (int64_t)e * K, p->K, p->M, p->order + (int64_t)e * K);
    cgs_meet();
    CGS_SHARE (t, (size_t)p->E * (size_t)tiles) {
        int64_t e = (int64_t)t / tiles;
        int at = (int)((int64_t)t % tiles) * TILE, width = p->n - at < TILE ? p->n - at : TILE;
        refit_tile(p->plans + e * K * n + at, p->order + e * K, p->n, p->M, width,
                   p->mean + e * n + at, p->spread + e * n + at);
    }
}

void cgs_plan_refit(const float *plans, const float *cost, int E, int K, int n, int M, int *order,
                    float *mean, float *spread) {
    proposal p = {.E = E,
                  .K = K,
                  .n = n,
                  .M = M,
                  .cost = cost,
                  .order = order,
                  .mean = mean,
                  .spread = spread,
                  .plans = (float *)(uintptr_t)plans};
    together((int64_t)E * (M * n > K ? M * n : K), refit_tiles, &p);
}

static float lowest_of(const float *cost, int K) {
    float lowest = cost[0];
    for (int k = 1; k < K; k++) lowest = cost[k] < lowest ? cost[k] : lowest;
    return lowest;
}

double cgs_plan_temperature(const float *cost, int K, double ess) {
    float lowest = lowest_of(cost, K), highest = lowest;
    for (int k = 1; k < K; k++) highest = cost[k] > highest ? cost[k] : highest;
    double range = (double)highest - lowest, low = -40, high = 40; /* of its logarithm by range */
    if (!(range > 0)) return 1; /* all weights are equal at any temperature */
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2, tau = range * exp(middle), sum = 0, squares = 0;
        for (int k = 0; k < K; k++) {
            double w = exp(-((double)cost[k] - lowest) / tau);
            sum += w;
            squares += w * w;
        }
        if (sum * sum < ess * squares)
            low = middle;
        else
            high = middle;
    }
    return range * exp((low + high) / 2);
}

/* weights of one episode, with sum 1 */
static void weigh(const float *cost, int K, double tau, double *weight) {
    float lowest = lowest_of(cost, K);
    double sum = 0;
    for (int k = 0; k < K; k++) sum += weight[k] = exp(-((double)cost[k] - lowest) / tau);
    for (int k = 0; k < K; k++) weight[k] /= sum;
}

static void average_tile(const float *plans, const double *weight, int K, int n, int width,
                         float *mean) {
    double sum[TILE] = {0};
    for (int64_t k = 0; k < K; k++)
        for (int j = 0; j < width; j++) sum[j] += weight[k] * plans[k * n + j];
    for (int j = 0; j < width; j++) mean[j] = (float)sum[j];
}

static void reweight_tiles(void *context) {
    const proposal *p = context;
    int tiles = (p->n + TILE - 1) / TILE;
    int64_t K = p->K, n = p->n;
    CGS_QUEUE (e, (size_t)p->E) {
        const float *cost = p->cost + (int64_t)e * K;
        double tau = p->ess > 0 ? cgs_plan_temperature(cost, p->K, p->ess) : p->tau;
        weigh(cost, p->K, tau, p->weight + (int64_t)e * K);
    }
    cgs_meet();
    CGS_SHARE (t, (size_t)p->E * (size_t)tiles) {
        int64_t e = (int64_t)t / tiles;
        int at = (int)((int64_t)t % tiles) * TILE, width = p->n - at < TILE ? p->n - at : TILE;
        average_tile(p->plans + e * K * n + at, p->weight + e * K, p->K, p->n, width,
                     p->mean + e * n + at);
    }
}

void cgs_plan_reweight(const float *plans, const float *cost, int E, int K, int n, float tau,
                       float ess, double *weight, float *mean) {
    proposal p = {.E = E,
                  .K = K,
                  .n = n,
                  .cost = cost,
                  .tau = tau,
                  .ess = ess,
                  .weight = weight,
                  .mean = mean,
                  .plans = (float *)(uintptr_t)plans};
    together((int64_t)E * K * n, reweight_tiles, &p);
}

void cgs_plan_adam(const float *grad, int64_t count, int step, double lr, float *m, float *v,
                   float *x) {
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double correct1 = 1 - pow(beta1, step), correct2 = 1 - pow(beta2, step);
    for (int64_t i = 0; i < count; i++) {
        double g = grad[i];
        m[i] = (float)(beta1 * m[i] + (1 - beta1) * g);
        v[i] = (float)(beta2 * v[i] + (1 - beta2) * g * g);
        x[i] = (float)(x[i] - lr * (m[i] / correct1) / (sqrt(v[i] / correct2) + eps));
    }
}
