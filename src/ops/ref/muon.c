/* muon.c - a step of Muon for one matrix after another, in double. */
#include <math.h>
#include <stdlib.h>

#include "ops/ref/ref.h"

/* C (n,m) = A (n,k) B (k,m), or A B^T of B (m,k) */
static void product(double *C, const double *A, const double *B, bool transposed, int n, int k,
                    int m) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += A[i * k + l] * (transposed ? B[j * k + l] : B[l * m + j]);
            C[i * m + j] = sum;
        }
}

/* X (r,c) with singular values that are nearly equal */
static void equalise(double *X, int r, int c, double *work) {
    double *A = work, *AA = A + r * r, *Y = AA + r * r, squares = 0;
    for (int i = 0; i < r * c; i++) squares += X[i] * X[i];
    for (int i = 0; i < r * c; i++) X[i] /= sqrt(squares) + 1e-7;
    for (int s = 0; s < CGS_MUON_STEPS; s++) {
        product(A, X, X, true, r, c, r);
        product(AA, A, A, false, r, r, r);
        for (int i = 0; i < r * r; i++)
            A[i] = (double)CGS_MUON_B * A[i] + (double)CGS_MUON_C * AA[i];
        product(Y, A, X, false, r, r, c);
        for (int i = 0; i < r * c; i++) X[i] = (double)CGS_MUON_A * X[i] + Y[i];
    }
}

void cgs_ref_muon(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count, float *p,
                  const float *g, float *m, uint16_t *bf16, float *unused) {
    (void)d;
    (void)unused;
    for (int q = 0; q < count; q++) {
        int r = list[q].rows, c = list[q].columns;
        size_t n = (size_t)r * (size_t)c, squares = (size_t)r * (size_t)r;
        double *X = malloc((2 * n + 2 * squares) * sizeof *X);
        float *P = p + list[q].first, *M = m + list[q].first;
        const float *G = g + list[q].first;
        if (!X) abort();
        for (size_t i = 0; i < n; i++) {
            double gi = (double)a->clip_scale * G[i], beta = a->beta;
            double mi = beta * M[i] + (1 - beta) * gi;
            M[i] = (float)mi;
            X[i] = beta * mi + (1 - beta) * gi;
        }
        equalise(X, r, c, X + n);
        double size = (double)CGS_MUON_SIZE * sqrt(r > c ? r : c) * a->lr;
        for (size_t i = 0; i < n; i++) {
            P[i] = (float)(P[i] * (1 - (double)a->lr * a->weight_decay) - size * X[i]);
            if (bf16) bf16[list[q].first + i] = cgs_f32_to_bf16(P[i]);
        }
        free(X);
    }
}
