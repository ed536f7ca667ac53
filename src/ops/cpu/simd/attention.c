/* attention.c - softmax(q k^T / sqrt(width)) v for all heads, forward and backward.
 *   qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,T,heads*width);  saved: lse (B,heads,T), the log of each row's sum of exp
 *
 * One task is one head of one batch element: its q, k and v are copied as f32 into the thread's
 * scratch, which fits L2, and the scores exist only for a few query rows at a time.  Backward
 * computes them again from lse.  Windows of a few tokens take a path without tiles, one task for
 * all heads of a batch element. */
#include "ops/cpu/simd/attention.h"

enum { SHORT = CGS_SHORT_WINDOW }; /* tokens of the longest window without tiles */

/* p = exp(p - max), 0 from n to end; returns the sum and leaves the maximum */
static float softmax_row(float *p, size_t n, size_t end, float *top) {
    float max = row_max(p, n), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        float e = fast_exp_below_88(p[j] - max);
        p[j] = e;
        sum += e;
    }
    for (size_t j = n; j < end; j++) p[j] = 0;
    *top = max;
    return sum;
}

/* to (rows, ld) = factor times rows of W elements, zero-padded */
static void load(float *to, size_t ld, size_t rows, const void *p, cgs_dtype type, size_t at,
                 size_t row, const head *h, float factor) {
    for (size_t t = 0; t < rows; t++, to += ld) {
        size_t n = t < h->T ? h->W : 0;
        const float *from = n ? row_in(p, type, at + t * row, n, to) : to;
#pragma omp simd
        for (size_t i = 0; i < n; i++) to[i] = factor * from[i];
        for (size_t i = n; i < ld; i++) to[i] = 0;
    }
}

/* to (W, Tc) = the transpose of T rows of W elements, zero-padded */
static void load_transposed(float *to, const void *p, cgs_dtype type, size_t at, size_t row,
                            const head *h, float *buf) {
    for (size_t t0 = 0; t0 < h->Tc; t0 += 8) {
        load(buf, h->W, 8, p, type, at + t0 * row, row,
             &(head){.T = t0 < h->T ? h->T - t0 : 0, .W = h->W}, 1.0f);
        for (size_t i = 0; i < h->W; i++)
            for (size_t t = 0; t < 8; t++) to[i * h->Tc + t0 + t] = buf[t * h->W + i];
    }
}

/* ---- long sequences: tiles
 * ------------------------------------------------------------------------ */

static void long_forward(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = head_of(r, b, hd);
    float *lse = (float *)r->saved[0]->data + h.index;
    float *q = thread_scratch(d);  /* (Tr,W) */
    float *kt = q + h.Tr * h.W;    /* (W,Tc) */
    float *v = kt + h.W * h.Tc;    /* (T,Wc) */
    float *s = v + h.T * h.Wc;     /* (QUERIES,Tc) */
    float *o = s + QUERIES * h.Tc; /* (QUERIES,Wc) */
    load(q, h.W, h.Tr, x->data, x->dtype, h.in, h.in_row, &h, h.scale);
    load_transposed(kt, x->data, x->dtype, h.in + h.all, h.in_row, &h, s);
    load(v, h.Wc, h.T, x->data, x->dtype, h.in + 2 * h.all, h.in_row, &h, 1.0f);
    for (size_t i0 = 0; i0 < h.T; i0 += QUERIES) {
        size_t n = min_size(QUERIES, h.T - i0), rows = round_up(n, TILE_M);
        size_t seen = visible(r, h.T, i0 + n - 1);
        tiles(s, h.Tc, q + i0 * h.W, h.W, 1, kt, h.Tc, rows, round_up(seen, TILE_N), h.W, false);
        float inverse[QUERIES];
        for (size_t i = 0; i < n; i++) {
            float top, *p = s + i * h.Tc;
            size_t mine = visible(r, h.T, i0 + i);
            float sum = softmax_row(p, mine, seen, &top);
            lse[i0 + i] = top + fast_log(sum);
            inverse[i] = 1.0f / sum;
            if (r->arg.attention.dropout > 0) drop_row(r, &h, i0 + i, p, mine);
        }
        tiles(o, h.Wc, s, h.Tc, 1, v, h.Wc, rows, h.Wc, seen, false);
        for (size_t i = 0; i < n; i++) {
            float *row = o + i * h.Wc;
#pragma omp simd
            for (size_t k = 0; k < h.W; k++) row[k] *= inverse[i];
            row_done(y->data, y->dtype, h.out + (i0 + i) * h.all, h.W, row);
        }
    }
}

/* With M the dropout factors: dv = (P M)^T dout, dP = M (dout v^T), dS = P (dP - rowsum(P dP)), dq
 * = dS k, dk = dS^T q, and q carries 1/sqrt(width).  Rows of P are divided by their sums again: the
 * error of lse is equal for all keys, and where tokens are alike it would outweigh their
 * differences. */
static void long_backward(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = head_of(r, b, hd);
    const float *lse = (const float *)r->saved[0]->data + h.index;
    size_t tall = h.Tr * h.Wc;
    float *q = thread_scratch(d), *g = q + tall, *k = g + tall; /* (Tr,Wc): q, dout, k */
    float *dk = k + tall, *dv = dk + tall;                      /* (Tr,Wc) */
    float *kt = dv + tall, *vt = kt + h.W * h.Tc;               /* (W,Tc)  */
    float *s = vt + h.W * h.Tc;                                 /* (QUERIES,Tc): scores, P M */
    float *ds = s + QUERIES * h.Tc + TILE_M;                    /* (QUERIES,Tc): dP, dS */
    float *dq = ds + QUERIES * h.Tc + TILE_M;                   /* (QUERIES,Wc) */
    load(q, h.Wc, h.Tr, x->data, x->dtype, h.in, h.in_row, &h, h.scale);
    load(k, h.Wc, h.Tr, x->data, x->dtype, h.in + h.all, h.in_row, &h, 1.0f);
    load(g, h.Wc, h.Tr, y->grad, y->dtype, h.out, h.all, &h, 1.0f);
    load_transposed(kt, x->data, x->dtype, h.in + h.all, h.in_row, &h, s);
    load_transposed(vt, x->data, x->dtype, h.in + 2 * h.all, h.in_row, &h, s);
    memset(dk, 0, 2 * tall * sizeof *dk);
    for (size_t i0 = 0; i0 < h.T; i0 += QUERIES) {
        size_t n = min_size(QUERIES, h.T - i0), rows = round_up(n, TILE_M);
        size_t seen = visible(r, h.T, i0 + n - 1), cols = round_up(seen, TILE_N);
        tiles(s, h.Tc, q + i0 * h.Wc, h.Wc, 1, kt, h.Tc, rows, cols, h.W, false);
        tiles(ds, h.Tc, g + i0 * h.Wc, h.Wc, 1, vt, h.Tc, rows, cols, h.W, false);
        for (size_t i = 0; i < n; i++) {
            float *p = s + i * h.Tc, *dp = ds + i * h.Tc, top = lse[i0 + i];
            size_t mine = visible(r, h.T, i0 + i);
            float all = 0, sum = 0;
            if (r->arg.attention.dropout > 0) drop_row(r, &h, i0 + i, dp, mine);
#pragma omp simd reduction(+ : all, sum)
            for (size_t j = 0; j < mine; j++) {
                p[j] = fast_exp_below_88(p[j] - top);
                all += p[j];
                sum += p[j] * dp[j];
            }
            float share = 1.0f / all;
            sum *= share;
#pragma omp simd
            for (size_t j = 0; j < mine; j++) {
                p[j] *= share;
                dp[j] = p[j] * (dp[j] - sum);
            }
            if (r->arg.attention.dropout > 0) drop_row(r, &h, i0 + i, p, mine);
            for (size_t j = mine; j < h.Tc; j++) p[j] = dp[j] = 0;
        }
        size_t keys = round_up(seen, TILE_M);
        tiles(dv, h.Wc, s, 1, h.Tc, g + i0 * h.Wc, h.Wc, keys, h.Wc, n, true);
        tiles(dk, h.Wc, ds, 1, h.Tc, q + i0 * h.Wc, h.Wc, keys, h.Wc, n, true);
        tiles(dq, h.Wc, ds, h.Tc, 1, k, h.Wc, rows, h.Wc, seen, false);
        for (size_t i = 0; i < n; i++) {
            float *row = dq + i * h.Wc;
#pragma omp simd
            for (size_t c = 0; c < h.W; c++) row[c] *= h.scale;
            give_done(r, 0, h.in + (i0 + i) * h.in_row, h.W, row);
        }
    }
    for (size_t t = 0; t < h.T; t++) {
        give_done(r, 0, h.in + h.all + t * h.in_row, h.W, dk + t * h.Wc);
        give_done(r, 0, h.in + 2 * h.all + t * h.in_row, h.W, dv + t * h.Wc);
    }
}

/* ---- short sequences: all heads of a batch element together ---------------------------------- */

/* One batch element as f32, and for the current token the probabilities of each head: (T,heads),
 * heads innermost, so that exponentials are vectors over heads. */
typedef struct window {
    size_t T, H, W, all;
    const float *x;   /* (T, 3*all): q, k, v of each token */
    const float *dy;  /* (T, all), for backward            */
    float *p, *dp;    /* (T,H) */
    float *top, *sum; /* (H)   */
    float *dx;        /* (T, 3*all), for backward          */
    float scale;
} window;

static size_t short_scratch(const cgs_record *r) {
    size_t T = (size_t)r->in[0]->dim[1], H = (size_t)r->arg.attention.heads;
    size_t all = H * (size_t)r->arg.attention.width;
    return (7 * T * all + 2 * T * H + 2 * H + all) * sizeof(float);
}

static window window_of(const cgs_device *d, const cgs_record *r, size_t b) {
    size_t T = (size_t)r->in[0]->dim[1], H = (size_t)r->arg.attention.heads;
    size_t W = (size_t)r->arg.attention.width, all = H * W;
    float *at = thread_scratch(d);
    window w = {.T = T, .H = H, .W = W, .all = all, .scale = (float)(1 / sqrt((double)W))};
    w.x = data_in(r->in[0], b * T * 3 * all, T * 3 * all, at);
    w.dx = at + 3 * T * all;
    float *dy = w.dx + 3 * T * all;
    if (r->out->grad) w.dy = grad_in(r, b * T * all, T * all, dy);
    w.p = dy + T * all;
    w.dp = w.p + T * H;
    w.top = w.dp + T * H;
    w.sum = w.top + H;
    return w;
}

/* for each head the dot product of its parts of two rows, times scale */
static void head_dots(float *to, const window *w, const float *a, const float *b, float scale) {
    for (size_t h = 0; h < w->H; h++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (size_t i = h * w->W; i < (h + 1) * w->W; i++) s += a[i] * b[i];
        to[h] = scale * s;
    }
}
/* row += each head's factor times its part of x */
static void head_add(float *row, const window *w, const float *factor, const float *x) {
    for (size_t h = 0; h < w->H; h++) {
        float f = factor[h];
#pragma omp simd
        for (size_t i = h * w->W; i < (h + 1) * w->W; i++) row[i] += f * x[i];
    }
}

/* dropout factors of token i, n tokens seen, on (n,H) */
static void head_drop(const cgs_record *r, const window *w, size_t b, size_t i, size_t n,
                      float *p) {
    float rate = r->arg.attention.dropout, scale = 1.0f / (1.0f - rate);
    if (rate <= 0) return;
    uint64_t key = CGS_DROPOUT_KEY(r->arg.attention.key, *r->step);
    for (size_t j = 0; j < n; j++) {
#pragma omp simd
        for (size_t h = 0; h < w->H; h++) {
            uint64_t index = ((b * w->H + h) * w->T + i) * w->T + j;
            float keep = cgs_to_f32(cgs_rng_at(key, index)) >= rate ? scale : 0.0f;
            p[j * w->H + h] *= keep;
        }
    }
}

static void short_forward(cgs_device *d, const cgs_record *r, size_t b) {
    window w = window_of(d, r, b);
    float *lse = (float *)r->saved[0]->data + b * w.H * w.T, *out = w.sum + w.H; /* (all) */
    for (size_t i = 0; i < w.T; i++) {
        size_t n = visible(r, w.T, i);
        for (size_t j = 0; j < n; j++)
            head_dots(w.p + j * w.H, &w, w.x + i * 3 * w.all, w.x + j * 3 * w.all + w.all, w.scale);
        for (size_t h = 0; h < w.H; h++) w.top[h] = w.p[h];
        for (size_t j = 1; j < n; j++) {
            const float *p = w.p + j * w.H;
#pragma omp simd
            for (size_t h = 0; h < w.H; h++) w.top[h] = p[h] > w.top[h] ? p[h] : w.top[h];
        }
        memset(w.sum, 0, w.H * sizeof *w.sum);
        for (size_t j = 0; j < n; j++) {
            float *p = w.p + j * w.H;
#pragma omp simd
            for (size_t h = 0; h < w.H; h++) {
                p[h] = fast_exp_below_88(p[h] - w.top[h]);
                w.sum[h] += p[h];
            }
        }
#pragma omp simd
        for (size_t h = 0; h < w.H; h++) {
            lse[h * w.T + i] = w.top[h] + fast_log(w.sum[h]);
            w.sum[h] = 1.0f / w.sum[h];
        }
        head_drop(r, &w, b, i, n, w.p);
        memset(out, 0, w.all * sizeof *out);
        for (size_t j = 0; j < n; j++) {
            float *p = w.p + j * w.H;
            for (size_t h = 0; h < w.H; h++) p[h] *= w.sum[h];
            head_add(out, &w, p, w.x + j * 3 * w.all + 2 * w.all);
        }
        row_done(r->out->data, r->out->dtype, (b * w.T + i) * w.all, w.all, out);
    }
}

/* Without gradients and dropout: no lse, no queries that nobody reads, and no scores where a token
 * sees only itself.  W is a constant wherever this is called, so that a head's part of a row is a
 * few vectors. */
static inline __attribute__((always_inline)) void infer_window(const cgs_record *r, const window *w,
                                                               size_t b, size_t W, float *out) {
    size_t H = w->H, all = H * W;
    for (size_t i = (size_t)r->arg.attention.unread; i < w->T; i++) {
        size_t n = visible(r, w->T, i);
        const float *q = w->x + i * 3 * all, *k = w->x + all, *v = k + all;
        if (n == 1) {
            row_done(r->out->data, r->out->dtype, (b * w->T + i) * all, all, v);
            continue;
        }
        for (size_t j = 0; j < n; j++)
            for (size_t h = 0; h < H; h++) {
                float s = 0;
#pragma omp simd reduction(+ : s)
                for (size_t c = 0; c < W; c++) s += q[h * W + c] * k[j * 3 * all + h * W + c];
                w->p[j * H + h] = w->scale * s;
            }
        for (size_t h = 0; h < H; h++) w->top[h] = w->p[h];
        for (size_t j = 1; j < n; j++) {
            const float *p = w->p + j * H;
#pragma omp simd
            for (size_t h = 0; h < H; h++) w->top[h] = p[h] > w->top[h] ? p[h] : w->top[h];
        }
        memset(w->sum, 0, H * sizeof *w->sum);
        for (size_t j = 0; j < n; j++) {
            float *p = w->p + j * H;
#pragma omp simd
            for (size_t h = 0; h < H; h++) {
                p[h] = fast_exp_below_88(p[h] - w->top[h]);
                w->sum[h] += p[h];
            }
        }
#pragma omp simd
        for (size_t h = 0; h < H; h++) w->sum[h] = 1.0f / w->sum[h];
        memset(out, 0, all * sizeof *out);
        for (size_t h = 0; h < H; h++)
            for (size_t j = 0; j < n; j++) {
                float p = w->p[j * H + h] * w->sum[h];
                const float *from = v + j * 3 * all + h * W;
#pragma omp simd
                for (size_t c = 0; c < W; c++) out[h * W + c] += p * from[c];
            }
        row_done(r->out->data, r->out->dtype, (b * w->T + i) * all, all, out);
    }
}

static void infer_forward(cgs_device *d, const cgs_record *r, size_t b) {
    window w = window_of(d, r, b);
    float *out = w.sum + w.H; /* (all) */
    switch (w.W) {
    case 64: infer_window(r, &w, b, 64, out); break;
    case 32: infer_window(r, &w, b, 32, out); break;
    default: infer_window(r, &w, b, w.W, out);
    }
}

static void short_backward(cgs_device *d, const cgs_record *r, size_t b) {
    window w = window_of(d, r, b);
    size_t H = w.H, row = 3 * w.all;
    const float *lse = (const float *)r->saved[0]->data + b * H * w.T;
    memset(w.dx, 0, w.T * row * sizeof *w.dx);
    for (size_t i = 0; i < w.T; i++) {
        size_t n = visible(r, w.T, i);
        const float *q = w.x + i * row, *g = w.dy + i * w.all;
        for (size_t j = 0; j < n; j++) {
            float *p = w.p + j * H;
            head_dots(p, &w, q, w.x + j * row + w.all, w.scale);
            head_dots(w.dp + j * H, &w, g, w.x + j * row + 2 * w.all, 1.0f);
#pragma omp simd
            for (size_t h = 0; h < H; h++) p[h] = fast_exp_below_88(p[h] - lse[h * w.T + i]);
        }
        head_drop(r, &w, b, i, n, w.dp);
        memset(w.sum, 0, H * sizeof *w.sum);
        for (size_t j = 0; j < n * H; j++) w.sum[j % H] += w.p[j] * w.dp[j];
        for (size_t j = 0; j < n; j++) {
            float *p = w.p + j * H, *dp = w.dp + j * H;
#pragma omp simd
            for (size_t h = 0; h < H; h++) dp[h] = w.scale * p[h] * (dp[h] - w.sum[h]);
        }
        head_drop(r, &w, b, i, n, w.p);
        for (size_t j = 0; j < n; j++) {
            float *dxj = w.dx + j * row;
            head_add(w.dx + i * row, &w, w.dp + j * H, w.x + j * row + w.all);
            head_add(dxj + w.all, &w, w.dp + j * H, q);
            head_add(dxj + 2 * w.all, &w, w.p + j * H, g);
        }
    }
    give_done(r, 0, b * w.T * row, w.T * row, w.dx);
}

size_t CGS_FN(attention_scratch)(const cgs_record *r) {
    head h = head_of(r, 0, 0);
    if (h.T <= SHORT) return short_scratch(r);
    size_t tall = h.Tr * h.Wc, wide = h.W * h.Tc;
    size_t block = QUERIES * (2 * h.Tc + h.Wc) + 2 * TILE_M;
    size_t bytes = (5 * tall + 2 * wide + block) * sizeof(float);
    size_t pairs = CGS_FN(attention_pairs_scratch)(r);
    return bytes > pairs ? bytes : pairs;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

/* the variant of bf16 products, or NULL for f32 tiles */
static const pairs_variant *by_pairs(const cgs_device *d, const cgs_record *r) {
    bool bf16 = r->in[0]->dtype == CGS_BF16 && r->out->dtype == CGS_BF16;
    return bf16 ? CGS_FN(pairs_variant)(d) : NULL;
}

void CGS_FN(attention_forward)(cgs_device *d, const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1];
    size_t heads = (size_t)r->arg.attention.heads;
    const pairs_variant *variant = by_pairs(d, r);
    if (T <= SHORT) {
        bool infers = !r->out->wants_grad && r->arg.attention.dropout <= 0;
        CGS_SHARE (b, B) {
            if (infers)
                infer_forward(d, r, b);
            else
                short_forward(d, r, b);
        }
        return;
    }
    CGS_SHARE (task, B * heads) {
        if (variant)
            CGS_FN(attention_pairs_forward)(d, r, variant, task / heads, task % heads);
        else
            long_forward(d, r, task / heads, task % heads);
    }
}

void CGS_FN(attention_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1];
    size_t heads = (size_t)r->arg.attention.heads;
    const pairs_variant *variant = by_pairs(d, r);
    if (T <= SHORT) {
        CGS_SHARE (b, B) short_backward(d, r, b);
        return;
    }
    CGS_SHARE (task, B * heads) {
        if (variant)
            CGS_FN(attention_pairs_backward)(d, r, variant, task / heads, task % heads);
        else
            long_backward(d, r, task / heads, task % heads);
    }
}
