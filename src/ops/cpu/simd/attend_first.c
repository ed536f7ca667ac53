/* attend_first.c - attention of token 0, whose q, k and v are separate from the others'.
 *   own (B,1,3*heads*width) f32, qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,1,heads*width) f32;  saved: lse (B,heads)
 *
 * One task is one batch element: the keys and values of a token are contiguous over all heads, and
 * are read once.  Backward stores no scores: the sum of p dp equals the dot product of dout and
 * out. */
#include "ops/cpu/simd/simd.h"

/* one batch element */
typedef struct window {
    size_t T, H, W, all;
    size_t own, others; /* first elements: q in own, k of token 0 in qkv */
    const float *q;     /* (all), followed by k and v of token 0 */
    float scale;
    float *p;    /* (H,T) */
    float *kv;   /* (2 all), those of one token as f32 */
    float *give; /* (2 all), their gradient */
    float *dq;   /* (all) */
} window;

static window window_of(const cgs_device *d, const cgs_record *r, size_t b) {
    size_t T = (size_t)r->in[1]->dim[1], H = (size_t)r->arg.attend_first.heads;
    size_t W = (size_t)r->arg.attend_first.width, all = H * W;
    float *p = thread_scratch(d), *kv = p + H * T;
    return (window){.T = T,
                    .H = H,
                    .W = W,
                    .all = all,
                    .own = b * 3 * all,
                    .others = b * T * 3 * all + all,
                    .q = (const float *)r->in[0]->data + b * 3 * all,
                    .scale = (float)(1 / sqrt((double)W)),
                    .p = p,
                    .kv = kv,
                    .give = kv + 2 * all,
                    .dq = kv + 4 * all};
}

/* n numbers of token j: its k from 0 on, its v from `all` on */
static const float *token(const cgs_record *r, const window *w, size_t j, size_t from, size_t n) {
    if (j == 0) return w->q + w->all + from;
    return data_in(r->in[1], w->others + j * 3 * w->all + from, n, w->kv);
}

static inline float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
/* y += f x */
static inline void add_times(float *y, float f, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}
static inline void set_times(float *y, float f, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = f * x[i];
}

/* scores become probabilities; returns their lse */
static float softmax(float *p, size_t n) {
    float top = p[0], sum = 0;
    for (size_t j = 1; j < n; j++) top = p[j] > top ? p[j] : top;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        p[j] = fast_exp_below_88(p[j] - top);
        sum += p[j];
    }
    set_times(p, 1.0f / sum, p, n);
    return top + fast_log(sum);
}

static void forward(const cgs_device *d, const cgs_record *r, size_t b) {
    window w = window_of(d, r, b);
    float *y = (float *)r->out->data + b * w.all, *lse = (float *)r->saved[0]->data + b * w.H;
    for (size_t j = 0; j < w.T; j++) {
        const float *k = token(r, &w, j, 0, w.all);
        for (size_t h = 0, at = 0; h < w.H; h++, at += w.W)
            w.p[h * w.T + j] = w.scale * dot(w.q + at, k + at, w.W);
    }
    for (size_t h = 0; h < w.H; h++) lse[h] = softmax(w.p + h * w.T, w.T);
    memset(y, 0, w.all * sizeof *y);
    for (size_t j = 0; j < w.T; j++) {
        const float *v = token(r, &w, j, w.all, w.all);
        for (size_t h = 0, at = 0; h < w.H; h++, at += w.W)
            add_times(y + at, w.p[h * w.T + j], v + at, w.W);
    }
}

/* dv = p dout,  dp = dout v,  ds = p (dp - dout out),  dq = ds k,  dk = ds q */
static void backward(const cgs_device *d, const cgs_record *r, size_t b) {
    window w = window_of(d, r, b);
    const float *g = (const float *)r->out->grad + b * w.all;
    const float *y = (const float *)r->out->data + b * w.all;
    const float *lse = (const float *)r->saved[0]->data + b * w.H;
    float *row_dot = w.p; /* (H) */
    for (size_t h = 0; h < w.H; h++) row_dot[h] = dot(g + h * w.W, y + h * w.W, w.W);
    memset(w.dq, 0, w.all * sizeof *w.dq);
    for (size_t j = 0; j < w.T; j++) {
        const float *k = token(r, &w, j, 0, 2 * w.all), *v = k + w.all;
        for (size_t h = 0, at = 0; h < w.H; h++, at += w.W) {
            float p = fast_exp_below_88(w.scale * dot(w.q + at, k + at, w.W) - lse[h]);
            float ds = w.scale * p * (dot(g + at, v + at, w.W) - row_dot[h]);
            add_times(w.dq + at, ds, k + at, w.W);
            set_times(w.give + at, ds, w.q + at, w.W);
            set_times(w.give + w.all + at, p, g + at, w.W);
        }
        size_t to = j ? w.others + j * 3 * w.all : w.own + w.all;
        if (cgs_wants(r, j > 0)) give_done(r, j > 0, to, 2 * w.all, w.give);
    }
    if (cgs_wants(r, 0)) give_done(r, 0, w.own, w.all, w.dq);
}

void CGS_FN(attend_first_forward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0];
    CGS_SHARE (b, B) forward(d, r, b);
}

void CGS_FN(attend_first_backward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0];
    give_zero(r, 1); /* the q of qkv and its row 0 */
    CGS_SHARE (b, B) backward(d, r, b);
}
