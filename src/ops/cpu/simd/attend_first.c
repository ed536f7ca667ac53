/* attend_first.c - attention of token 0 alone.
 *   own (B,1,heads*width) q, or (B,1,3*heads*width) q, k and v of token 0 in place of all's
 *   all (B,T,2*heads*width) k and v, or (B,T,3*heads*width) a q that is not read, k and v
 *   out (B,1,heads*width), in own's type;  saved: lse (B,heads)
 *
 * One task is a head of a batch element.  Rows of bf16 are widened in registers. */
#include "ops/cpu/simd/simd.h"

/* one head of one batch element */
typedef struct head {
    size_t T, W, part;
    size_t q, out, lse; /* first elements in own, in the result and of the sums */
    size_t own;         /* k of token 0 in own, where it counts */
    size_t k, row;      /* k of row 0 in all; elements of a row */
    bool apart;         /* own has k and v of token 0 */
    float scale;
    float *p, *ds;      /* (T) */
    float *qs, *g, *dq; /* (W): q and the result's gradient in f32, the gradient of q */
    float *give;        /* (W) */
} head;

static head head_of(const cgs_device *d, const cgs_record *r, size_t task) {
    size_t H = (size_t)r->arg.attend_first.heads, W = (size_t)r->arg.attend_first.width;
    size_t T = (size_t)r->in[1]->dim[1], part = H * W, b = task / H, at = task % H * W;
    size_t own = (size_t)cgs_cols(r->in[0]), row = (size_t)cgs_cols(r->in[1]);
    float *p = thread_scratch(d), *rows = p + 2 * T;
    return (head){.T = T,
                  .W = W,
                  .part = part,
                  .q = b * own + at,
                  .out = b * part + at,
                  .lse = task,
                  .own = b * own + part + at,
                  .k = b * T * row + row - 2 * part + at,
                  .row = row,
                  .apart = own > part,
                  .scale = (float)(1 / sqrt((double)W)),
                  .p = p,
                  .ds = p + T,
                  .qs = rows,
                  .g = rows + W,
                  .dq = rows + 2 * W,
                  .give = rows + 3 * W};
}

/* the input that has token j's k, and where; v is `part` elements further */
static size_t place(const head *h, size_t j, int *in) {
    *in = !(h->apart && j == 0);
    return *in ? h->k + j * h->row : h->own;
}

static inline float dot(const float *a, const cgs_tensor *x, size_t at, size_t n) {
    float sum = 0;
    if (x->dtype == CGS_F32) {
        const float *b = (const float *)x->data + at;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    } else {
        const uint16_t *b = (const uint16_t *)x->data + at;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++) sum += a[i] * cgs_bf16_to_f32(b[i]);
    }
    return sum;
}
/* y += f x */
static inline void add_times(float *y, float f, const cgs_tensor *x, size_t at, size_t n) {
    if (x->dtype == CGS_F32) {
        const float *b = (const float *)x->data + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] += f * b[i];
    } else {
        const uint16_t *b = (const uint16_t *)x->data + at;
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] += f * cgs_bf16_to_f32(b[i]);
    }
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

static void forward(const cgs_device *d, const cgs_record *r, size_t task) {
    head h = head_of(d, r, task);
    const float *q = data_in(r->in[0], h.q, h.W, h.qs);
    float *y = row_to(r->out->data, r->out->dtype, h.out, h.give);
    int in;
    for (size_t j = 0; j < h.T; j++) {
        size_t k = place(&h, j, &in);
        h.p[j] = h.scale * dot(q, r->in[in], k, h.W);
    }
    ((float *)r->saved[0]->data)[h.lse] = softmax(h.p, h.T);
    memset(y, 0, h.W * sizeof *y);
    for (size_t j = 0; j < h.T; j++) {
        size_t k = place(&h, j, &in);
        add_times(y, h.p[j], r->in[in], k + h.part, h.W);
    }
    row_done(r->out->data, r->out->dtype, h.out, h.W, y);
}

/* dv = p dout,  dp = dout v,  ds = p (dp - sum p dp),  dq = ds k,  dk = ds q */
static void backward(const cgs_device *d, const cgs_record *r, size_t task) {
    head h = head_of(d, r, task);
    const float *q = data_in(r->in[0], h.q, h.W, h.qs), *g = grad_in(r, h.out, h.W, h.g);
    float lse = ((const float *)r->saved[0]->data)[h.lse], row_dot = 0;
    int in;
    for (size_t j = 0; j < h.T; j++) {
        size_t k = place(&h, j, &in);
        h.p[j] = fast_exp_below_88(h.scale * dot(q, r->in[in], k, h.W) - lse);
        h.ds[j] = dot(g, r->in[in], k + h.part, h.W);
        row_dot += h.p[j] * h.ds[j];
    }
    memset(h.dq, 0, h.W * sizeof *h.dq);
    for (size_t j = 0; j < h.T; j++) {
        float ds = h.scale * h.p[j] * (h.ds[j] - row_dot);
        size_t k = place(&h, j, &in);
        add_times(h.dq, ds, r->in[in], k, h.W);
        if (!cgs_wants(r, in)) continue;
        set_times(h.give, ds, q, h.W);
        give_done(r, in, k, h.W, h.give);
        set_times(h.give, h.p[j], g, h.W);
        give_done(r, in, k + h.part, h.W, h.give);
    }
    if (cgs_wants(r, 0)) give_done(r, 0, h.q, h.W, h.dq);
}

/* whether backward writes all of the gradient of `all` */
static bool writes_all(const cgs_record *r) {
    int part = cgs_cols(r->out);
    return cgs_cols(r->in[0]) == part && cgs_cols(r->in[1]) == 2 * part;
}

void CGS_FN(attend_first_forward)(cgs_device *d, const cgs_record *r) {
    CGS_SHARE (task, cgs_numel(r->saved[0])) forward(d, r, task);
}

void CGS_FN(attend_first_backward)(cgs_device *d, const cgs_record *r) {
    if (!writes_all(r)) give_zero(r, 1);
    CGS_SHARE (task, cgs_numel(r->saved[0])) backward(d, r, task);
}
