/* dense.c - see dense.h. */
#include "plan/dense.h"

#include <math.h>

/* A pivot below this share of the largest: its candidate lies in the span of the others, as far as
 * differences of floats can tell. */
#define DEPENDENT 1e-11
enum { LANES = 8, SWEEPS = 30 };

double cgs_plan_dot(const float *a, const float *b, size_t n) {
    double lane[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += (double)a[i + l] * b[i + l];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    for (; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

void cgs_plan_factorise(double *S, size_t m) {
    double largest = 0;
    for (size_t i = 0; i < m; i++) largest = fmax(largest, S[i * m + i]);
    for (size_t j = 0; j < m; j++) {
        double pivot = S[j * m + j];
        for (size_t k = 0; k < j; k++) pivot -= S[j * m + k] * S[j * m + k];
        double inverse = pivot > DEPENDENT * largest ? 1 / sqrt(pivot) : 0;
        for (size_t i = j + 1; i < m; i++) {
            double sum = S[i * m + j];
            for (size_t k = 0; k < j; k++) sum -= S[i * m + k] * S[j * m + k];
            S[i * m + j] = sum * inverse;
        }
        S[j * m + j] = inverse;
    }
}

void cgs_plan_solve_factored(const double *S, double *x, size_t m) {
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= S[i * m + k] * x[k];
        x[i] *= S[i * m + i];
    }
    for (size_t i = m; i-- > 0;) {
        for (size_t k = i + 1; k < m; k++) x[i] -= S[k * m + i] * x[k];
        x[i] *= S[i * m + i];
    }
}

/* turns rows and columns i and j of S so that their common element vanishes, and rows of V along */
static void turn(double *S, double *V, size_t m, size_t i, size_t j) {
    double apart = (S[j * m + j] - S[i * m + i]) / (2 * S[i * m + j]);
    double t = (apart < 0 ? -1 : 1) / (fabs(apart) + sqrt(apart * apart + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < m; k++) {
        double a = S[k * m + i], b = S[k * m + j];
        S[k * m + i] = c * a - s * b;
        S[k * m + j] = s * a + c * b;
    }
    for (size_t k = 0; k < m; k++) {
        double a = S[i * m + k], b = S[j * m + k], u = V[i * m + k], v = V[j * m + k];
        S[i * m + k] = c * a - s * b;
        S[j * m + k] = s * a + c * b;
        V[i * m + k] = c * u - s * v;
        V[j * m + k] = s * u + c * v;
    }
}

/* by turning one pair after the other, until all others are rounding */
void cgs_plan_eigen(double *S, double *V, double *value, size_t m) {
    double size = 0;
    for (size_t i = 0; i < m * m; i++) {
        V[i] = i % (m + 1) == 0;
        size += S[i] * S[i];
    }
    for (int sweep = 0, turned = 1; turned && sweep < SWEEPS; sweep++) {
        turned = 0;
        for (size_t i = 0; i < m; i++)
            for (size_t j = i + 1; j < m; j++) {
                if (S[i * m + j] * S[i * m + j] <= 1e-30 * size) continue;
                turn(S, V, m, i, j);
                turned = 1;
            }
    }
    for (size_t i = 0; i < m; i++) value[i] = S[i * m + i];
}
