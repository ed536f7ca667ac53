/* sigreg.c - random directions, and the distance of projections onto them from a normal
 * distribution.
 *
 * y = z A^T is one matrix product into shared scratch.  For each y one sine and cosine of y times
 * the knots' spacing is computed; those of its multiples follow by angle addition, so nothing of
 * size (B,P,17) exists.  Backward recomputes y, replaces it by its gradient in place and multiplies
 * by A. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/simd/simd.h"

enum { KNOTS = CGS_SIGREG_KNOTS, LANES = 64 };

#define SPACING (3.0 / (KNOTS - 1))

/* the window exp(-t_k^2 / 2) and the weight of knot k: the window times the trapezoid
 * rule, doubled for the negative half */
static void knots(float phi[KNOTS], float weight[KNOTS]) {
    for (int k = 0; k < KNOTS; k++) {
        double t = SPACING * k, window = exp(-t * t / 2);
        phi[k] = (float)window;
        weight[k] = (float)((k == 0 || k == KNOTS - 1 ? 1 : 2) * SPACING * window);
    }
}

/* ---- directions: random unit rows (P,D) --------------------------------------------------------
 */

void CGS_FN(directions_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *out = r->out;
    size_t P = cgs_rows(out), D = (size_t)cgs_cols(out);
    uint64_t key = CGS_DROPOUT_KEY(r->arg.directions.key, *r->step);
    CGS_SHARE (p, P) {
        float *v = thread_scratch(d); /* (D) */
        double square = 0;
        for (size_t i = 0; i < D; i++) {
            v[i] = cgs_rng_normal_at(key, p * D + i);
            square += (double)v[i] * v[i];
        }
        for (size_t i = 0; i < D; i++) v[i] = (float)(v[i] / sqrt(square));
        row_done(out->data, out->dtype, p * D, D, v);
    }
}

void CGS_FN(directions_backward)(cgs_device *d, const cgs_record *r) {
    (void)d;
    (void)r; /* nothing goes in */
}

/* ---- sigreg ------------------------------------------------------------------------------------
 */

/* f32 copies of z and A where they are not f32, and y: (B*T,P) */
typedef struct projections {
    float *y;
    const float *A;
    float *dz; /* (B*T,D), for backward */
} projections;

/* complete after a barrier */
static const float *all_f32(const cgs_tensor *x, float *copy) {
    if (x->dtype == CGS_F32) return x->data;
    SHARE_CHUNKS (at, cgs_numel(x))
        widen(copy + at, (const uint16_t *)x->data + at, min_size(CHUNK, cgs_numel(x) - at));
    return copy;
}

static projections project(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0], *A = r->in[1];
    const cgs_cpu_sigreg *s = r->impl;
    size_t rows = cgs_rows(z), P = cgs_rows(A);
    float *y = (float *)cgs_cpu_of(d)->shared, *zc = y + rows * P, *Ac = zc + cgs_numel(z);
    projections p = {y, all_f32(A, Ac), zc};
    const float *left = all_f32(z, zc);
    cgs_meet();
    cgs_gemm_run(d, s->forward, y, left, p.A, NULL, NULL);
    return p;
}

void CGS_FN(sigreg_forward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    size_t runs = (P + LANES - 1) / LANES;
    float *saved = r->saved[0]->data; /* (T,P,34) */
    float phi[KNOTS], weight[KNOTS];
    knots(phi, weight);
    const float *y = project(d, r).y;
    CGS_SHARE (task, T * runs) {
        size_t t = task / runs, p0 = task % runs * LANES, n = min_size(LANES, P - p0);
        float C[KNOTS][LANES] = {{0}}, S[KNOTS][LANES] = {{0}};
        for (size_t b = 0; b < B; b++) {
            const float *row = y + (b * T + t) * P + p0;
            float c1[LANES], s1[LANES], c[LANES], s[LANES];
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                fast_sincos((float)SPACING * row[i], &s1[i], &c1[i]);
                c[i] = c1[i];
                s[i] = s1[i];
            }
            for (int k = 1; k < KNOTS; k++) {
#pragma omp simd
                for (size_t i = 0; i < n; i++) {
                    float ck = c[i], sk = s[i];
                    C[k][i] += ck;
                    S[k][i] += sk;
                    c[i] = ck * c1[i] - sk * s1[i];
                    s[i] = sk * c1[i] + ck * s1[i];
                }
            }
        }
        for (size_t i = 0; i < n; i++) {
            float *to = saved + (t * P + p0 + i) * 2 * KNOTS;
            to[0] = 1;
            to[KNOTS] = 0;
            for (int k = 1; k < KNOTS; k++) {
                to[k] = C[k][i] / (float)B;
                to[KNOTS + k] = S[k][i] / (float)B;
            }
        }
    }
    cgs_meet();
    if (cgs_member() != 0) return;
    double sum = 0;
    for (size_t i = 0; i < T * P; i++)
        for (int k = 1; k < KNOTS; k++) {
            double c = (double)saved[i * 2 * KNOTS + (size_t)k] - phi[k];
            double s = saved[i * 2 * KNOTS + KNOTS + (size_t)k];
            sum += weight[k] * (c * c + s * s);
        }
    float loss = (float)((double)B * sum / (double)(T * P));
    row_done(r->out->data, r->out->dtype, 0, 1, &loss);
}

void CGS_FN(sigreg_backward)(cgs_device *d, const cgs_record *r) {
    give_zero(r, 1);
    if (!cgs_wants(r, 0)) return;
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    size_t runs = (P + LANES - 1) / LANES, n_z = cgs_numel(r->in[0]);
    const float *saved = r->saved[0]->data; /* (T,P,34) */
    const cgs_cpu_sigreg *impl = r->impl;
    float phi[KNOTS], weight[KNOTS], g;
    knots(phi, weight);
    float factor = (float)(2.0 * *grad_in(r, 0, 1, &g) / (double)(T * P));
    projections pr = project(d, r);
    CGS_SHARE (task, T * runs) {
        size_t t = task / runs, p0 = task % runs * LANES, n = min_size(LANES, P - p0);
        /* factors of cos(k y) and sin(k y), one lane per direction */
        float fc[KNOTS][LANES], fs[KNOTS][LANES];
        for (size_t i = 0; i < n; i++) {
            const float *at = saved + (t * P + p0 + i) * 2 * KNOTS;
            for (int k = 1; k < KNOTS; k++) {
                float w = factor * weight[k] * (float)(SPACING * k);
                fc[k][i] = w * at[KNOTS + k];
                fs[k][i] = w * (phi[k] - at[k]);
            }
        }
        for (size_t b = 0; b < B; b++) {
            float *row = pr.y + (b * T + t) * P + p0;
            float c1[LANES], s1[LANES], c[LANES], s[LANES], dy[LANES];
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                fast_sincos((float)SPACING * row[i], &s1[i], &c1[i]);
                c[i] = c1[i];
                s[i] = s1[i];
                dy[i] = 0;
            }
            for (int k = 1; k < KNOTS; k++) {
#pragma omp simd
                for (size_t i = 0; i < n; i++) {
                    float ck = c[i], sk = s[i];
                    dy[i] += fc[k][i] * ck + fs[k][i] * sk;
                    c[i] = ck * c1[i] - sk * s1[i];
                    s[i] = sk * c1[i] + ck * s1[i];
                }
            }
            memcpy(row, dy, n * sizeof *row);
        }
    }
    cgs_meet();
    cgs_gemm_run(d, impl->dz, pr.dz, pr.y, pr.A, NULL, NULL);
    SHARE_CHUNKS (at, n_z) give_done(r, 0, at, min_size(CHUNK, n_z - at), pr.dz + at);
}
