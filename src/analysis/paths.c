/* paths.c - see paths.h. */
#include "analysis/paths.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cgs_unit_rows(double *x, int n, int k) {
    for (int i = 0; i < n; i++, x += k) {
        double sum = 0;
        for (int j = 0; j < k; j++) sum += x[j] * x[j];
        double scale = sqrt(sum) < 1e-8 ? 0 : 1 / sqrt(sum);
        for (int j = 0; j < k; j++) x[j] *= scale;
    }
}

void cgs_add_up(const double *step, int n, int k, double *path) {
    for (int j = 0; j < k; j++) path[j] = 0;
    for (int i = 0; i < n * k; i++) path[k + i] = path[i] + step[i];
}

void cgs_rotate_rows(const double *x, int n, int kx, const double *W, int ky, double *out) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < ky; j++) {
            double sum = 0;
            for (int a = 0; a < kx; a++) sum += x[i * kx + a] * W[a * ky + j];
            out[i * ky + j] = sum;
        }
}

cgs_status cgs_procrustes(const double *x, int kx, const double *y, int ky, int n, double *W) {
    int r = kx < ky ? kx : ky;
    size_t X = (size_t)kx, Y = (size_t)ky, R = (size_t)r;
    double *C = calloc(X * Y + X * R + R * Y + 2 * R, sizeof *C);
    if (!C) return cgs_fail(CGS_ENOMEM, "alignment: no memory for %d x %d", kx, ky);
    double *U = C + X * Y, *Vt = U + X * R, *s = Vt + R * Y, *work = s + R;
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t a = 0; a < X; a++)
            for (size_t b = 0; b < Y; b++) C[a * Y + b] += x[i * X + a] * y[i * Y + b];
    int info = LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'S', 'S', kx, ky, C, ky, s, U, r, Vt, ky, work);
    memset(W, 0, X * Y * sizeof *W);
    for (size_t k = 0; info == 0 && k < R && s[k] > 1e-9 * s[0]; k++)
        for (size_t a = 0; a < X; a++)
            for (size_t b = 0; b < Y; b++) W[a * Y + b] += U[a * R + k] * Vt[k * Y + b];
    bool nothing = !(s[0] > 0);
    free(C);
    if (info != 0) return cgs_fail(CGS_ENUMERIC, "alignment: LAPACK says %d", info);
    if (nothing) return cgs_fail(CGS_ENUMERIC, "alignment: nothing moves");
    return CGS_OK;
}

cgs_status cgs_principal_axes(const double *x, int n, int k, int d, double *axes) {
    size_t K = (size_t)k;
    if (d > k || n < 2) return cgs_fail(CGS_EARG, "%d axes of %d points of %d numbers", d, n, k);
    double *C = calloc(K * K + 2 * K, sizeof *C), *mean = C + K * K, *value = mean + K;
    if (!C) return cgs_fail(CGS_ENOMEM, "principal axes: no memory");
    for (int i = 0; i < n; i++)
        for (size_t a = 0; a < K; a++) mean[a] += x[(size_t)i * K + a] / n;
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t a = 0; a < K; a++)
            for (size_t b = 0; b <= a; b++)
                C[a * K + b] += (x[i * K + a] - mean[a]) * (x[i * K + b] - mean[b]);
    int info = LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'L', k, C, k, value);
    for (int j = 0; j < d && info == 0; j++) {
        const double *v = C + (k - 1 - j); /* columns, ascending */
        size_t largest = 0;
        for (size_t a = 1; a < K; a++)
            if (fabs(v[a * K]) > fabs(v[largest * K])) largest = a;
        double sign = v[largest * K] < 0 ? -1 : 1;
        for (size_t a = 0; a < K; a++) axes[a * (size_t)d + (size_t)j] = sign * v[a * K];
    }
    free(C);
    return info ? cgs_fail(CGS_ENUMERIC, "principal axes: LAPACK says %d", info) : CGS_OK;
}

/* path (n, k) less its mean, which is returned in mean (k) */
static void centre(double *path, int n, int k, double *mean) {
    for (int j = 0; j < k; j++) {
        mean[j] = 0;
        for (int i = 0; i < n; i++) mean[j] += path[i * k + j] / n;
        for (int i = 0; i < n; i++) path[i * k + j] -= mean[j];
    }
}

cgs_status cgs_align_paths(const double *a, int ka, const double *z, int kz, int n, int d,
                           bool rigid, double *action, double *latent) {
    size_t P = (size_t)n + 1, A = (size_t)ka, Z = (size_t)kz;
    double *all = malloc((2 * P * A + P * Z + Z * A + A * (size_t)d + A + Z) * sizeof *all);
    if (!all) return cgs_fail(CGS_ENOMEM, "paths: no memory");
    double *pa = all, *rotated = pa + P * A, *pz = rotated + P * A, *W = pz + P * Z;
    double *axes = W + Z * A, *mean_a = axes + A * (size_t)d, *mean_z = mean_a + A;
    cgs_add_up(a, n, ka, pa);
    cgs_add_up(z, n, kz, pz);
    cgs_status rc = cgs_principal_axes(pa, n + 1, ka, d, axes);
    if (rc == CGS_OK && rigid) {
        double *centred = rotated; /* the action path for the fit, before it is overwritten */
        memcpy(centred, pa, P * A * sizeof *centred);
        centre(centred, n + 1, ka, mean_a);
        centre(pz, n + 1, kz, mean_z);
        rc = cgs_procrustes(pz, kz, centred, ka, n + 1, W);
    } else if (rc == CGS_OK) {
        rc = cgs_procrustes(z, kz, a, ka, n, W);
    }
    if (rc == CGS_OK) {
        cgs_rotate_rows(pz, n + 1, kz, W, ka, rotated);
        for (size_t i = 0; rigid && i < P * A; i++) rotated[i] += mean_a[i % A];
        cgs_rotate_rows(pa, n + 1, ka, axes, d, action);
        cgs_rotate_rows(rotated, n + 1, ka, axes, d, latent);
    }
    free(all);
    return rc;
}
