/* attend_first.c - attention of token 0 alone.
 *   own (B,1,heads*width) q, or (B,1,3*heads*width) q, k and v of token 0 in place of all's
 *   all (B,T,2*heads*width) k and v, or (B,T,3*heads*width) a q that is not read, k and v
 *   out (B,1,heads*width), in own's type;  saved: lse (B,heads) */
#include "ops/ref/ref.h"

/* one head of one batch element */
typedef struct head {
    size_t T, width, part;
    size_t out, lse;               /* first element of the result; the head's sum */
    size_t own, own_row;           /* first element of q, elements of a row */
    size_t all, all_row, all_skip; /* first element of row 0, ...; elements before k */
    double *p, *ds;                /* (T) */
} head;

size_t cgs_ref_attend_first_scratch(const cgs_record *r) {
    return 2 * (size_t)r->in[1]->dim[1] * sizeof(double);
}

static head head_of(const cgs_record *r, size_t b, size_t h) {
    size_t T = (size_t)r->in[1]->dim[1], width = (size_t)r->arg.attend_first.width;
    size_t heads = (size_t)r->arg.attend_first.heads, part = heads * width;
    size_t own_row = (size_t)cgs_cols(r->in[0]), all_row = (size_t)cgs_cols(r->in[1]);
    double *p = r->impl;
    return (head){.T = T,
                  .width = width,
                  .part = part,
                  .out = b * part + h * width,
                  .lse = b * heads + h,
                  .own = b * own_row + h * width,
                  .own_row = own_row,
                  .all = b * T * all_row + h * width,
                  .all_row = all_row,
                  .all_skip = all_row - 2 * part,
                  .p = p,
                  .ds = p + T};
}

static bool is_own(const head *h, size_t j) { return j == 0 && h->own_row > h->part; }

/* where column c of part 0 (k) or 1 (v) of token j is, and in which input */
static size_t place(const head *h, size_t part, size_t j, size_t c, int *in) {
    *in = !is_own(h, j);
    size_t k = *in ? h->all + j * h->all_row + h->all_skip : h->own + h->part;
    return k + part * h->part + c;
}
static double element(const cgs_record *r, const head *h, size_t part, size_t j, size_t c) {
    int in;
    size_t at = place(h, part, j, c, &in);
    return get(r->in[in], at);
}

static double score(const cgs_record *r, const head *h, size_t j) {
    double sum = 0;
    for (size_t c = 0; c < h->width; c++) sum += get(r->in[0], h->own + c) * element(r, h, 0, j, c);
    return sum / sqrt((double)h->width);
}

void cgs_ref_attend_first_forward(const cgs_record *r) {
    size_t heads = (size_t)r->arg.attend_first.heads, B = (size_t)r->out->dim[0];
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        double top = -INFINITY, sum = 0;
        for (size_t j = 0; j < h.T; j++) top = fmax(top, h.p[j] = score(r, &h, j));
        for (size_t j = 0; j < h.T; j++) sum += h.p[j] = exp(h.p[j] - top);
        for (size_t c = 0; c < h.width; c++) {
            double y = 0;
            for (size_t j = 0; j < h.T; j++) y += h.p[j] * element(r, &h, 1, j, c);
            set(r->out, h.out + c, y / sum);
        }
        set(r->saved[0], h.lse, top + log(sum));
    }
}

/* dv = p dout,  dp = dout v,  ds = p (dp - sum p dp),  dq = ds k,  dk = ds q */
void cgs_ref_attend_first_backward(const cgs_record *r) {
    size_t heads = (size_t)r->arg.attend_first.heads, B = (size_t)r->out->dim[0];
    give_nothing(r, 1); /* to what is not read of it */
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        double row_dot = 0, scale = 1 / sqrt((double)h.width);
        for (size_t j = 0; j < h.T; j++) {
            h.p[j] = exp(score(r, &h, j) - get(r->saved[0], h.lse));
            h.ds[j] = 0;
            for (size_t c = 0; c < h.width; c++)
                h.ds[j] += out_grad(r, h.out + c) * element(r, &h, 1, j, c);
            row_dot += h.p[j] * h.ds[j];
        }
        for (size_t j = 0; j < h.T; j++) h.ds[j] = scale * h.p[j] * (h.ds[j] - row_dot);
        for (size_t c = 0; c < h.width; c++) {
            double q = get(r->in[0], h.own + c), g = out_grad(r, h.out + c), dq = 0;
            for (size_t j = 0; j < h.T; j++) {
                int in;
                size_t k = place(&h, 0, j, c, &in), v = place(&h, 1, j, c, &in);
                dq += h.ds[j] * get(r->in[in], k);
                if (!cgs_wants(r, in)) continue;
                give(r, in, k, h.ds[j] * q);
                give(r, in, v, h.p[j] * g);
            }
            if (cgs_wants(r, 0)) give(r, 0, h.own + c, dq);
        }
    }
}

/* the probability of token j, and how the score behind it changes */
static double score_tangent(const cgs_record *r, const head *h, cgs_lanes l, size_t j,
                            double ds[CGS_LANES]) {
    double scale = 1 / sqrt((double)h->width);
    for (size_t p = 0; p < l.count; p++) ds[p] = 0;
    for (size_t c = 0; c < h->width; c++) {
        int in;
        size_t k = place(h, 0, j, c, &in);
        sum_tangent(ds, r, r->in[0], l, h->own + c, scale * get(r->in[in], k));
        sum_tangent(ds, r, r->in[in], l, k, scale * get(r->in[0], h->own + c));
    }
    return exp(score(r, h, j) - get(r->saved[0], h->lse));
}

/* dout = p dv + sum of p (ds - mean) v, the mean weighted by p */
void cgs_ref_attend_first_tangent(const cgs_record *r, cgs_lanes l) {
    size_t heads = (size_t)r->arg.attend_first.heads, B = (size_t)r->out->dim[0];
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        double ds[CGS_LANES], mean[CGS_LANES] = {0};
        for (size_t c = 0; c < h.width; c++) clear_tangent(r, l, h.out + c);
        for (size_t j = 0; j < h.T; j++) {
            double p = score_tangent(r, &h, l, j, ds);
            for (size_t k = 0; k < l.count; k++) mean[k] += p * ds[k];
        }
        for (size_t j = 0; j < h.T; j++) {
            double p = score_tangent(r, &h, l, j, ds);
            for (size_t c = 0; c < h.width; c++) {
                int in;
                size_t v = place(&h, 1, j, c, &in);
                float *to = tangent_at(r, r->out, l, h.out + c);
                push(r, l, h.out + c, p, in, v);
                for (size_t k = 0; k < l.count; k++)
                    to[k] += (float)(p * (ds[k] - mean[k]) * get(r->in[in], v));
            }
        }
    }
}
