/* refine.c - candidates, proposal updates and the Adam step.
 *
 * Sums over candidates run in double and in a fixed order: parallel loops divide
 * episodes and coordinates, never the terms of one sum. */
#include "plan/refine.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

/* below this many values a parallel region costs more than it saves */
#define PARALLEL_FROM ((int64_t)4096)
/* coordinates one task sums at a time: their accumulators stay in registers */
#define TILE 16

uint64_t cgs_plan_key(uint64_t seed, uint64_t episode, uint64_t solve, uint64_t iteration) {
    uint64_t key = cgs_rng_stream(seed, CGS_STREAM_PLAN, episode).key;
    return cgs_rng_at(key, (solve << 32) + iteration);
}

static void draw(uint64_t key, uint64_t candidate, const float *mean, const float *spread, int n,
                 float *plan) {
    for (int j = 0; j < n; j++)
        plan[j] = mean[j] + spread[j] * cgs_rng_normal_at(key, (candidate << 32) + (uint64_t)j);
}

void cgs_plan_sample(const uint64_t *key, const float *mean, const float *spread, int E, int K,
                     int n, float *plans) {
    int64_t rows = (int64_t)E * K;
#pragma omp parallel for schedule(static) if (rows * n >= PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        int64_t e = r / K, k = r % K;
        float *plan = plans + r * n;
        if (k == 0)
            memcpy(plan, mean + e * n, sizeof(float) * (size_t)n);
        else
            draw(key[e], (uint64_t)k, mean + e * n, spread + e * n, n, plan);
    }
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

void cgs_plan_refit(const float *plans, const float *cost, int E, int K, int n, int M, int *order,
                    float *mean, float *spread) {
    int tiles = (n + TILE - 1) / TILE;
#pragma omp parallel for schedule(static) if (E > 1 && (int64_t)E * K >= PARALLEL_FROM)
    for (int64_t e = 0; e < E; e++) select_elites(cost + e * K, K, M, order + e * K);
#pragma omp parallel for schedule(static) if ((int64_t)E * M * n >= PARALLEL_FROM)
    for (int64_t t = 0; t < (int64_t)E * tiles; t++) {
        int64_t e = t / tiles;
        int at = (int)(t % tiles) * TILE, width = n - at < TILE ? n - at : TILE;
        refit_tile(plans + e * K * n + at, order + e * K, n, M, width, mean + e * n + at,
                   spread + e * n + at);
    }
}

/* weights of one episode, with sum 1 */
static void weigh(const float *cost, int K, float tau, double *weight) {
    float lowest = cost[0];
    for (int k = 1; k < K; k++) lowest = cost[k] < lowest ? cost[k] : lowest;
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

void cgs_plan_reweight(const float *plans, const float *cost, int E, int K, int n, float tau,
                       double *weight, float *mean) {
    int tiles = (n + TILE - 1) / TILE;
#pragma omp parallel for schedule(static) if (E > 1 && (int64_t)E * K >= PARALLEL_FROM)
    for (int64_t e = 0; e < E; e++) weigh(cost + e * K, K, tau, weight + e * K);
#pragma omp parallel for schedule(static) if ((int64_t)E * K * n >= PARALLEL_FROM)
    for (int64_t t = 0; t < (int64_t)E * tiles; t++) {
        int64_t e = t / tiles;
        int at = (int)(t % tiles) * TILE, width = n - at < TILE ? n - at : TILE;
        average_tile(plans + e * K * n + at, weight + e * K, K, n, width, mean + e * n + at);
    }
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
