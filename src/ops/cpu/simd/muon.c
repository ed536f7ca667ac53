/* muon.c - a step of Muon: each matrix belongs to one thread.
 *
 * Work is (X, Y, A, B): X lies on its side if that makes it short, (s, l) with s <= l.  The
 * products keep a few rows of the result in registers; X X^T is a product of X with its transposed
 * copy, which is Y. */
#include "ops/cpu/simd/simd.h"

enum { ROWS = 6, COLUMNS = 32 };

/* C (n,m) = scale A (n,k) B (k,m) + own Z (n,m); Z may be NULL */
static void product(float *C, const float *A, const float *B, float scale, const float *Z,
                    float own, size_t n, size_t k, size_t m) {
    for (size_t i0 = 0; i0 < n; i0 += ROWS)
        for (size_t j0 = 0; j0 < m; j0 += COLUMNS) {
            float sum[ROWS][COLUMNS] = {{0}};
            size_t rows = min_size(ROWS, n - i0), columns = min_size(COLUMNS, m - j0);
            if (rows == ROWS && columns == COLUMNS) {
                for (size_t l = 0; l < k; l++)
                    for (size_t i = 0; i < ROWS; i++) {
                        float a = A[(i0 + i) * k + l];
#pragma omp simd
                        for (size_t j = 0; j < COLUMNS; j++) sum[i][j] += a * B[l * m + j0 + j];
                    }
            } else {
                for (size_t l = 0; l < k; l++)
                    for (size_t i = 0; i < rows; i++) {
                        float a = A[(i0 + i) * k + l];
                        for (size_t j = 0; j < columns; j++) sum[i][j] += a * B[l * m + j0 + j];
                    }
            }
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < columns; j++) {
                    size_t at = (i0 + i) * m + j0 + j;
                    C[at] = scale * sum[i][j] + (Z ? own * Z[at] : 0);
                }
        }
}

/* to (c,r) = from (r,c)^T */
static void transpose(float *to, const float *from, size_t r, size_t c) {
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < c; j++) to[j * r + i] = from[i * c + j];
}

/* X (s,l) with singular values that are nearly equal; returns where: X or Y */
static float *equalise(float *X, float *Y, float *A, float *B, size_t s, size_t l) {
    double squares = 0;
    for (size_t i = 0; i < s * l; i++) squares += (double)X[i] * X[i];
    float one = (float)(1 / (sqrt(squares) + 1e-7));
    for (size_t i = 0; i < s * l; i++) X[i] *= one;
    for (int step = 0; step < CGS_MUON_STEPS; step++) {
        transpose(Y, X, s, l);
        product(A, X, Y, 1, NULL, 0, s, l, s);
        product(B, A, A, CGS_MUON_C, A, CGS_MUON_B, s, s, s);
        product(Y, B, X, 1, X, CGS_MUON_A, s, s, l);
        float *keep = X;
        X = Y;
        Y = keep;
    }
    return X;
}

static void step(const cgs_muon *a, const cgs_matrix *q, float *p, const float *g, float *m,
                 uint16_t *bf16, float *work) {
    size_t r = (size_t)q->rows, c = (size_t)q->columns, n = r * c, s = r < c ? r : c;
    float *X = work, *Y = X + n, *A = Y + n, *B = A + s * s;
    bool tall = r > c;
    float *U = tall ? Y : X; /* the direction as it is stored */
    float beta = a->beta, rest = (float)(1.0 - (double)beta), clip = a->clip_scale;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float gi = clip * g[i], mi = beta * m[i] + rest * gi;
        m[i] = mi;
        U[i] = beta * mi + rest * gi;
    }
    if (tall) transpose(X, U, r, c);
    float *end = equalise(X, Y, A, B, s, n / s);
    if (tall) {
        float *other = end == X ? Y : X;
        transpose(other, end, c, r);
        end = other;
    }
    float keep = (float)(1.0 - (double)a->lr * a->weight_decay);
    float size = (float)((double)CGS_MUON_SIZE * sqrt((double)(n / s)) * a->lr);
#pragma omp simd
    for (size_t i = 0; i < n; i++) p[i] = p[i] * keep - size * end[i];
    if (bf16) narrow(bf16, p, n);
}

void CGS_FN(muon)(const cgs_muon *a, const cgs_matrix *list, int count, float *p, const float *g,
                  float *m, uint16_t *bf16, float *work) {
    CGS_QUEUE (i, (size_t)count) {
        const cgs_matrix *q = list + i;
        step(a, q, p + q->first, g + q->first, m + q->first, bf16 ? bf16 + q->first : NULL,
             work + q->work);
    }
}
