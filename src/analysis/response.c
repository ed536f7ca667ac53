/* response.c - see response.h. */
#include "analysis/response.h"

#include <math.h>
#include <stdlib.h>

#include "env/portable.h"

static void direction(int j, double q[2]) {
    cgs_sincos(2 * CGS_PI * j / CGS_DIRECTIONS, &q[1], &q[0]);
}

void cgs_response_ideal(double *heat) {
    for (int j = 0; j < CGS_DIRECTIONS; j++)
        for (int k = 0; k < CGS_DIRECTIONS; k++) {
            double a[2], b[2];
            direction(j, a);
            direction(k, b);
            heat[j * CGS_DIRECTIONS + k] = a[0] * b[0] + a[1] * b[1];
        }
}

cgs_status cgs_response_cosines(const double *r, int D, double *heat) {
    double norm[CGS_DIRECTIONS];
    for (int j = 0; j < CGS_DIRECTIONS; j++) {
        norm[j] = 0;
        for (int i = 0; i < D; i++) norm[j] += r[j * D + i] * r[j * D + i];
        norm[j] = sqrt(norm[j]);
        if (!(norm[j] > 0))
            return cgs_fail(CGS_ENUMERIC, "the predicted end does not respond to direction %d", j);
    }
    for (int j = 0; j < CGS_DIRECTIONS; j++)
        for (int k = 0; k < CGS_DIRECTIONS; k++) {
            double sum = 0;
            for (int i = 0; i < D; i++) sum += r[j * D + i] * r[k * D + i];
            heat[j * CGS_DIRECTIONS + k] = sum / (norm[j] * norm[k]);
        }
    return CGS_OK;
}

double cgs_response_error(const double *heat, const double *ideal) {
    double sum = 0;
    for (int i = 0; i < CGS_HEAT; i++) sum += (heat[i] - ideal[i]) * (heat[i] - ideal[i]);
    return sqrt(sum / CGS_HEAT);
}

void cgs_response_plans(const float *plan, int n, const double *U, float *plans) {
    for (int i = 0; i < n; i++) plans[i] = plan[i];
    for (int j = 0; j < CGS_DIRECTIONS; j++) {
        double q[2];
        direction(j, q);
        for (int i = 0; i < n; i++)
            plans[(j + 1) * n + i] =
                (float)(plan[i] + CGS_RESPONSE_STEP * (U[2 * i] * q[0] + U[2 * i + 1] * q[1]));
    }
}

cgs_status cgs_response_heat_of(const double *J, int D, int n, const double *U, double *heat) {
    double *r = malloc((size_t)CGS_DIRECTIONS * (size_t)D * sizeof *r);
    if (!r) return cgs_fail(CGS_ENOMEM, "response: no memory");
    for (int i = 0; i < D; i++) {
        double move[2] = {0, 0}, q[2];
        for (int k = 0; k < n; k++)
            for (int c = 0; c < 2; c++) move[c] += J[i * n + k] * U[2 * k + c];
        for (int j = 0; j < CGS_DIRECTIONS; j++) {
            direction(j, q);
            r[j * D + i] = move[0] * q[0] + move[1] * q[1];
        }
    }
    cgs_status rc = cgs_response_cosines(r, D, heat);
    free(r);
    return rc;
}

cgs_status cgs_response_heat(cgs_terminal *t, const float *z, const float *plan, const double *U,
                             double *heat) {
    int n = cgs_terminal_plan_size(t), D = cgs_terminal_width(t), rows = CGS_DIRECTIONS + 1;
    float *plans = malloc((size_t)rows * (size_t)(n + D) * sizeof *plans);
    double *r = malloc((size_t)CGS_DIRECTIONS * (size_t)D * sizeof *r);
    cgs_status rc = plans && r ? CGS_OK : cgs_fail(CGS_ENOMEM, "response: no memory");
    if (rc == CGS_OK) {
        cgs_response_plans(plan, n, U, plans);
        rc = cgs_terminal_predict(t, z, plans, rows, plans + rows * n);
    }
    if (rc == CGS_OK) {
        const float *end = plans + rows * n; /* (rows, D) */
        for (int i = 0; i < CGS_DIRECTIONS * D; i++) r[i] = (double)end[D + i] - end[i % D];
        rc = cgs_response_cosines(r, D, heat);
    }
    free(plans);
    free(r);
    return rc;
}
