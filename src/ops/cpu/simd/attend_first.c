/* attend_first.c - what attention gives token 0, whose own q, k and v come apart from the others'.
 *   own (B,1,3*heads*width) f32, qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,1,heads*width) f32;  saved: lse (B,heads)
 *
 * One task is one head of one batch element.  Every key and value is read once, and backward needs
 * no scores kept: with the result at hand the sum of p dp is that of dout and out. */
#include "ops/cpu/simd/simd.h"

/* one head of one batch element */
typedef struct head {
    size_t T, W, all, row;
    size_t others, own, lse; /* first elements: q of token 0 in qkv, q in own */
    const float *q;          /* (W), and k and v of token 0 at `all` and 2 `all` behind */
    float scale;
    float *p;     /* (T) */
    float *k, *v; /* (W), room for one of each as f32 */
} head;

static head head_of(const cgs_device *d, const cgs_record *r, size_t b, size_t h) {
    size_t T = (size_t)r->in[1]->dim[1], W = (size_t)r->arg.attend_first.width;
    size_t heads = (size_t)r->arg.attend_first.heads, all = heads * W, row = 3 * all;
    size_t own = b * row + h * W;
    float *room = thread_scratch(d);
    return (head){.T = T,
                  .W = W,
                  .all = all,
                  .row = row,
                  .others = b * T * row + h * W,
                  .own = own,
                  .lse = b * heads + h,
                  .q = (const float *)r->in[0]->data + own,
                  .scale = (float)(1 / sqrt((double)W)),
                  .p = room,
                  .k = room + T,
                  .v = room + T + W};
}

/* part 1 (k) or 2 (v) of token j */
static const float *token(const cgs_record *r, const head *h, int part, size_t j, float *room) {
    size_t at = (size_t)part * h->all;
    return j ? data_in(r->in[1], h->others + j * h->row + at, h->W, room) : h->q + at;
}

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
/* y += f x */
static void add_times(float *y, float f, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}
static void set_times(float *y, float f, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = f * x[i];
}

static void forward(const cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    head h = head_of(d, r, b, hd);
    float *y = (float *)r->out->data + b * h.all + hd * h.W, top = -INFINITY, sum = 0;
    for (size_t j = 0; j < h.T; j++) {
        h.p[j] = h.scale * dot(h.q, token(r, &h, 1, j, h.k), h.W);
        top = h.p[j] > top ? h.p[j] : top;
    }
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < h.T; j++) {
        h.p[j] = fast_exp_below_88(h.p[j] - top);
        sum += h.p[j];
    }
    memset(y, 0, h.W * sizeof *y);
    for (size_t j = 0; j < h.T; j++) add_times(y, h.p[j], token(r, &h, 2, j, h.v), h.W);
    set_times(y, 1.0f / sum, y, h.W);
    ((float *)r->saved[0]->data)[h.lse] = top + fast_log(sum);
}

/* dv = p dout,  dp = dout v,  ds = p (dp - dout out),  dq = ds k,  dk = ds q */
static void backward(const cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    head h = head_of(d, r, b, hd);
    size_t at = b * h.all + hd * h.W;
    const float *g = (const float *)r->out->grad + at;
    float along = dot(g, (const float *)r->out->data + at, h.W);
    float lse = ((const float *)r->saved[0]->data)[h.lse], *dq = h.v + h.W, *give = dq + h.W;
    memset(dq, 0, h.W * sizeof *dq);
    for (size_t j = 0; j < h.T; j++) {
        const float *k = token(r, &h, 1, j, h.k), *v = token(r, &h, 2, j, h.v);
        float p = fast_exp_below_88(h.scale * dot(h.q, k, h.W) - lse);
        float ds = h.scale * p * (dot(g, v, h.W) - along);
        int in = j > 0;
        size_t to = (j ? h.others + j * h.row : h.own) + h.all;
        add_times(dq, ds, k, h.W);
        if (!wants(r, in)) continue;
        set_times(give, ds, h.q, h.W);
        give_done(r, in, to, h.W, give);
        set_times(give, p, g, h.W);
        give_done(r, in, to + h.all, h.W, give);
    }
    if (wants(r, 0)) give_done(r, 0, h.own, h.W, dq);
}

void CGS_FN(attend_first_forward)(cgs_device *d, const cgs_record *r) {
    size_t heads = (size_t)r->arg.attend_first.heads, n = (size_t)r->out->dim[0] * heads;
    PARALLEL(d, cgs_numel(r->in[1]))
    for (size_t i = 0; i < n; i++) forward(d, r, i / heads, i % heads);
}

void CGS_FN(attend_first_backward)(cgs_device *d, const cgs_record *r) {
    size_t heads = (size_t)r->arg.attend_first.heads, n = (size_t)r->out->dim[0] * heads;
    give_zero(r, 1); /* the q of qkv and its row 0 */
    PARALLEL(d, cgs_numel(r->in[1]))
    for (size_t i = 0; i < n; i++) backward(d, r, i / heads, i % heads);
}
