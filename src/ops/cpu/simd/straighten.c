/* straighten.c - straightness of latent paths, and control-geometry straightening.
 *
 * Both look at the steps D_t = z_{t+1} - z_t of a window, their lengths and the angles between
 * them.  Windows are independent and short, so each is one task; partial sums of the loss are in
 * shared scratch until all are added in order. */
#include "ops/cpu/simd/simd.h"

static double dot(const float *a, const float *b, size_t n) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static float scalar_grad(const cgs_record *r) {
    float v;
    return *grad_in(r, 0, 1, &v);
}
static void set_loss(const cgs_record *r, double loss, double count) {
    float value = (float)loss;
    row_done(r->out->data, r->out->dtype, 0, 1, &value);
    *(float *)r->saved[0]->data = (float)count;
}

/* the steps (T-1,D) of window b */
static void steps_of(const cgs_tensor *z, size_t b, float *step, float *buf) {
    size_t T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    const float *p = data_in(z, b * T * D, T * D, buf);
#pragma omp simd
    for (size_t i = 0; i < (T - 1) * D; i++) step[i] = p[i + D] - p[i];
}

/* accumulates the gradients of the steps (T-1,D) into that of z */
static void give_steps(const cgs_record *r, size_t b, const float *dstep, float *buf) {
    size_t T = (size_t)r->in[0]->dim[1], D = (size_t)r->in[0]->dim[2];
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < D; i++)
            buf[t * D + i] =
                (t > 0 ? dstep[(t - 1) * D + i] : 0.0f) - (t < T - 1 ? dstep[t * D + i] : 0.0f);
    give_done(r, 0, b * T * D, T * D, buf);
}

/* ---- straighten: mean over valid pairs of 1 - cos(D_t, D_{t+1}) --------------------------------
 */

typedef struct corner {
    double length[2], cosine;
    bool valid;
} corner;

static corner corner_of(const cgs_record *r, const float *step, size_t D) {
    double aa = dot(step, step, D), bb = dot(step + D, step + D, D), ab = dot(step, step + D, D);
    double min = r->arg.straighten.min_norm;
    corner c = {{sqrt(aa), sqrt(bb)}, 0, sqrt(aa) > min && sqrt(bb) > min};
    if (c.valid) c.cosine = ab / (c.length[0] * c.length[1]);
    return c;
}

void CGS_FN(straighten_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0];
    size_t B = (size_t)z->dim[0], T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    double *part = (double *)cgs_cpu_of(d)->shared, sum = 0, count = 0; /* (B,2) */
    CGS_SHARE (b, B) {
        float *step = thread_scratch(d); /* 2 of (T,D) */
        part[2 * b] = part[2 * b + 1] = 0;
        if (T < 3) continue;
        steps_of(z, b, step, step + T * D);
        for (size_t t = 0; t + 2 < T; t++) {
            corner c = corner_of(r, step + t * D, D);
            if (!c.valid) continue;
            part[2 * b] += 1 - c.cosine;
            part[2 * b + 1] += 1;
        }
    }
    cgs_meet();
    if (cgs_member() != 0) return;
    for (size_t b = 0; b < B; b++) {
        sum += part[2 * b];
        count += part[2 * b + 1];
    }
    set_loss(r, count > 0 ? sum / count : 0, count);
}

void CGS_FN(straighten_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    const cgs_tensor *z = r->in[0];
    size_t B = (size_t)z->dim[0], T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    float M = *(const float *)r->saved[0]->data, g = scalar_grad(r);
    CGS_SHARE (b, B) {
        float *step = thread_scratch(d), *dstep = step + T * D, *buf = dstep + T * D;
        if (T > 1) steps_of(z, b, step, buf);
        memset(dstep, 0, T * D * sizeof *dstep);
        for (size_t t = 0; t + 2 < T; t++) {
            const float *u = step + t * D, *w = u + D;
            float *du = dstep + t * D, *dw = du + D;
            corner c = corner_of(r, u, D);
            if (!c.valid) continue;
            /* d cos / du = (w/|w| - cos u/|u|) / |u|, and the same with u and w swapped */
            float lu = (float)(1 / c.length[0]), lw = (float)(1 / c.length[1]);
            float cosine = (float)c.cosine, fu = -g * lu / M, fw = -g * lw / M;
#pragma omp simd
            for (size_t i = 0; i < D; i++) {
                du[i] += fu * (w[i] * lw - cosine * u[i] * lu);
                dw[i] += fw * (u[i] * lu - cosine * w[i] * lw);
            }
        }
        give_steps(r, b, dstep, buf);
    }
}

/* ---- cgs: mean over valid ordered pairs t != s of (Kz_ts - Ka_ts)^2 ----------------------------
 */

/* One window: unit steps, their Gram matrix and its difference from that of the
 * references, 0 where a pair is not valid. */
typedef struct window {
    size_t N, D;
    double pairs;
    float *unit;    /* (N,D) unit steps, followed by scratch of (N,D) and (N+1,D) */
    double *length; /* (N) of the steps; 0 where not valid */
    double *Kz, *E; /* (N,N) */
} window;

static window window_of(const cgs_device *d, const cgs_record *r, size_t b) {
    const cgs_tensor *z = r->in[0], *ref = r->in[1], *mask = r->in[2];
    size_t N = (size_t)ref->dim[1], D = (size_t)z->dim[2], R = (size_t)ref->dim[2];
    double *at = cgs_cpu_thread(d, cgs_member()), min = r->arg.cgs.min_norm;
    window w = {N, D, 0, NULL, at, at + N, at + N + N * N};
    double *Ka = at + N + 2 * N * N; /* (N,N) */
    w.unit = (float *)(Ka + N * N);
    float *refs = w.unit + N * D; /* (N,R) */
    float *buf = refs + (N + 1) * (D > R ? D : R);
    steps_of(z, b, w.unit, buf);
    const float *pr = data_in(ref, b * N * R, N * R, refs);
    for (size_t t = 0; t < N; t++)
        for (size_t s = 0; s <= t; s++) Ka[t * N + s] = dot(pr + t * R, pr + s * R, R);
    for (size_t t = 0; t < N; t++) {
        float usable = 1;
        if (mask) usable = *data_in(mask, b * N + t, 1, &usable);
        double length = sqrt(dot(w.unit + t * D, w.unit + t * D, D));
        bool valid = usable != 0 && length >= min && sqrt(Ka[t * N + t]) >= min;
        w.length[t] = valid ? length : 0;
        float scale = valid ? (float)(1 / length) : 0.0f;
        for (size_t i = 0; i < D; i++) w.unit[t * D + i] *= scale;
    }
    for (size_t t = 0; t < N; t++)
        for (size_t s = 0; s <= t; s++) {
            bool valid = t != s && w.length[t] > 0 && w.length[s] > 0;
            double kz = valid ? dot(w.unit + t * D, w.unit + s * D, D) : 0;
            double e = valid ? kz - Ka[t * N + s] / sqrt(Ka[t * N + t] * Ka[s * N + s]) : 0;
            w.Kz[t * N + s] = w.Kz[s * N + t] = kz;
            w.E[t * N + s] = w.E[s * N + t] = e;
            w.pairs += valid ? 2 : 0;
        }
    return w;
}

void CGS_FN(cgs_forward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0];
    bool per_window = r->arg.cgs.per_window;
    double *part = (double *)cgs_cpu_of(d)->shared, sum = 0, count = 0; /* (B,2) */
    CGS_SHARE (b, B) {
        window w = window_of(d, r, b);
        double squares = 0;
        for (size_t i = 0; i < w.N * w.N; i++) squares += w.E[i] * w.E[i];
        part[2 * b] = per_window && w.pairs > 0 ? squares / w.pairs : squares;
        part[2 * b + 1] = per_window ? w.pairs > 0 : w.pairs;
    }
    cgs_meet();
    if (cgs_member() != 0) return;
    for (size_t b = 0; b < B; b++) {
        sum += part[2 * b];
        count += part[2 * b + 1];
    }
    set_loss(r, count > 0 ? sum / count : 0, count);
}

void CGS_FN(cgs_backward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0];
    double count = *(const float *)r->saved[0]->data, g = scalar_grad(r);
    give_zero(r, 1);
    give_zero(r, 2);
    if (!cgs_wants(r, 0)) return;
    CGS_SHARE (b, B) {
        window w = window_of(d, r, b);
        size_t N = w.N, D = w.D;
        float *dstep = w.unit + N * D, *buf = dstep + N * D;
        double Q = r->arg.cgs.per_window ? count * w.pairs : count;
        memset(dstep, 0, N * D * sizeof *dstep);
        for (size_t t = 0; t < N; t++) {
            if (w.length[t] == 0 || w.pairs == 0) continue;
            double row_dot = 0, factor = 4 * g / (Q * w.length[t]);
            for (size_t s = 0; s < N; s++) row_dot += w.E[t * N + s] * w.Kz[t * N + s];
            for (size_t s = 0; s < N; s++) {
                float c = (float)(factor * (s == t ? -row_dot : w.E[t * N + s]));
#pragma omp simd
                for (size_t i = 0; i < D; i++) dstep[t * D + i] += c * w.unit[s * D + i];
            }
        }
        give_steps(r, b, dstep, buf);
    }
}
