/* attention.c - softmax(q k^T / sqrt(width)) v, one head at a time.
 *   qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,T,heads*width);  saved: lse (B,heads,T), the log of each row's sum of exp
 * Causal: token i sees token j iff j/block <= i/block.  Dropout acts on the
 * probabilities.  Backward recomputes them from lse. */
#include "ops/ref/ref.h"

/* one head: where its matrices are, and scratch for two (T,T) matrices */
typedef struct head {
    size_t T, width, in_row, out_row;
    size_t q, k, v, out; /* first elements */
    size_t lse;          /* first element, also the index of row 0 in dropout's count */
    float *P, *S;        /* (T,T) */
} head;

size_t cgs_ref_attention_scratch(const cgs_record *r) {
    size_t T = (size_t)r->in[0]->dim[1];
    return 2 * T * T * sizeof(float);
}

static head head_of(const cgs_record *r, size_t b, size_t h) {
    size_t T = (size_t)r->in[0]->dim[1], heads = (size_t)r->arg.attention.heads;
    size_t width = (size_t)r->arg.attention.width, all = heads * width;
    size_t q = b * T * 3 * all + h * width;
    float *scratch = r->impl;
    return (head){T,
                  width,
                  3 * all,
                  all,
                  q,
                  q + all,
                  q + 2 * all,
                  b * T * all + h * width,
                  (b * heads + h) * T,
                  scratch,
                  scratch + T * T};
}

static cgs_ref_matrix part(const cgs_tensor *x, size_t at, size_t row) {
    return (cgs_ref_matrix){x->data, x->dtype, at, row, 1};
}
static cgs_ref_matrix square(const float *p, size_t T) {
    return (cgs_ref_matrix){p, CGS_F32, 0, T, 1};
}

static bool sees(const cgs_record *r, size_t i, size_t j) {
    size_t block = r->arg.attention.block > 0 ? (size_t)r->arg.attention.block : 1;
    return !r->arg.attention.causal || j / block <= i / block;
}

/* 1/(1-p) or 0 for the probability that token i gives to token j */
static double kept(const cgs_record *r, const head *h, size_t i, size_t j) {
    if (r->arg.attention.dropout <= 0) return 1;
    uint64_t key = CGS_DROPOUT_KEY(r->arg.attention.key, *r->step);
    return keep_factor(key, (h->lse + i) * h->T + j, r->arg.attention.dropout);
}

/* S = q k^T / sqrt(width) */
static void scores(const cgs_record *r, const head *h) {
    cgs_ref_target S = {h->S, CGS_F32, 0, h->T, 1 / sqrt((double)h->width), NULL, false};
    cgs_ref_product(S, part(r->in[0], h->q, h->in_row), transposed(part(r->in[0], h->k, h->in_row)),
                    h->T, h->T, h->width);
}

void cgs_ref_attention_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], heads = (size_t)r->arg.attention.heads;
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        scores(r, &h);
        for (size_t i = 0; i < h.T; i++) {
            const float *s = h.S + i * h.T;
            double top = -INFINITY, sum = 0;
            for (size_t j = 0; j < h.T; j++)
                if (sees(r, i, j)) top = fmax(top, s[j]);
            for (size_t j = 0; j < h.T; j++)
                if (sees(r, i, j)) sum += exp(s[j] - top);
            for (size_t j = 0; j < h.T; j++) {
                double p = sees(r, i, j) ? exp(s[j] - top) / sum : 0;
                h.P[i * h.T + j] = (float)(p * kept(r, &h, i, j));
            }
            set(r->saved[0], h.lse + i, top + log(sum));
        }
        cgs_ref_target out = {r->out->data, r->out->dtype, h.out, h.out_row, 1, NULL, false};
        cgs_ref_product(out, square(h.P, h.T), part(r->in[0], h.v, h.in_row), h.T, h.width, h.T);
    }
}

/* With M the dropout factors and P the probabilities: out = (P M) v, so
 *   dv = (P M)^T dout,  dP = M (dout v^T),  dS = P (dP - rowsum(P dP)),
 *   dq = dS k / sqrt(width),  dk = dS^T q / sqrt(width) */
void cgs_ref_attention_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    if (!cgs_wants(r, 0)) return;
    size_t B = (size_t)x->dim[0], heads = (size_t)r->arg.attention.heads;
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        cgs_ref_matrix dout = {y->grad, y->dtype, h.out, h.out_row, 1};
        cgs_ref_target to = {x->grad, x->dtype, 0, h.in_row, 1, NULL, r->accumulate[0]};

        scores(r, &h);
        for (size_t i = 0; i < h.T; i++)
            for (size_t j = 0; j < h.T; j++) {
                float *s = h.S + i * h.T + j; /* becomes P */
                *s = sees(r, i, j) ? (float)exp(*s - (double)get(r->saved[0], h.lse + i)) : 0;
                h.P[i * h.T + j] = (float)(*s * kept(r, &h, i, j));
            }
        to.at = h.v;
        cgs_ref_product(to, transposed(square(h.P, h.T)), dout, h.T, h.width, h.T);

        float *dS = h.P; /* P M is no longer needed */
        cgs_ref_target dP = {dS, CGS_F32, 0, h.T, 1, NULL, false};
        cgs_ref_product(dP, dout, transposed(part(x, h.v, h.in_row)), h.T, h.T, h.width);
        for (size_t i = 0; i < h.T; i++) {
            float *ds = dS + i * h.T;
            const float *p = h.S + i * h.T;
            double sum = 0;
            for (size_t j = 0; j < h.T; j++) sum += p[j] * (ds[j] * kept(r, &h, i, j));
            for (size_t j = 0; j < h.T; j++)
                ds[j] = (float)(p[j] * (ds[j] * kept(r, &h, i, j) - sum));
        }
        to.scale = 1 / sqrt((double)h.width);
        to.at = h.q;
        cgs_ref_product(to, square(dS, h.T), part(x, h.k, h.in_row), h.T, h.width, h.T);
        to.at = h.k;
        cgs_ref_product(to, transposed(square(dS, h.T)), part(x, h.q, h.in_row), h.T, h.width, h.T);
    }
}

/* one probability before dropout, from lse, and how the score behind it changes */
static double score_tangent(const cgs_record *r, const head *h, cgs_lanes l, size_t i, size_t j,
                            double ds[CGS_LANES]) {
    const cgs_tensor *x = r->in[0];
    double scale = 1 / sqrt((double)h->width), score = 0;
    for (size_t p = 0; p < l.count; p++) ds[p] = 0;
    for (size_t c = 0; c < h->width; c++) {
        size_t q = h->q + i * h->in_row + c, k = h->k + j * h->in_row + c;
        score += scale * get(x, q) * get(x, k);
        sum_tangent(ds, r, x, l, q, scale * get(x, k));
        sum_tangent(ds, r, x, l, k, scale * get(x, q));
    }
    return exp(score - get(r->saved[0], h->lse + i));
}

/* dout = (M P) dv + sum of M P (ds - mean) v, the mean weighted by P */
static void row_tangent(const cgs_record *r, const head *h, cgs_lanes l, size_t i) {
    double ds[CGS_LANES], mean[CGS_LANES] = {0};
    for (size_t c = 0; c < h->width; c++) clear_tangent(r, l, h->out + i * h->out_row + c);
    for (size_t j = 0; j < h->T; j++) {
        if (!sees(r, i, j)) continue;
        double p = score_tangent(r, h, l, i, j, ds);
        for (size_t k = 0; k < l.count; k++) mean[k] += p * ds[k];
    }
    for (size_t j = 0; j < h->T; j++) {
        if (!sees(r, i, j)) continue;
        double p = score_tangent(r, h, l, i, j, ds) * kept(r, h, i, j);
        for (size_t c = 0; c < h->width; c++) {
            size_t at = h->out + i * h->out_row + c, v = h->v + j * h->in_row + c;
            float *to = tangent_at(r, r->out, l, at);
            push(r, l, at, p, 0, v);
            for (size_t k = 0; k < l.count; k++)
                to[k] += (float)(p * (ds[k] - mean[k]) * get(r->in[0], v));
        }
    }
}

void cgs_ref_attention_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->in[0]->dim[0], heads = (size_t)r->arg.attention.heads;
    for (size_t bh = 0; bh < B * heads; bh++) {
        head h = head_of(r, bh / heads, bh % heads);
        for (size_t i = (size_t)r->arg.attention.unread; i < h.T; i++) row_tangent(r, &h, l, i);
    }
}
