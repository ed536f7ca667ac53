/* tokens.c - frames to patches, patches to tokens, and positions. */
#include "ops/cpu/simd/simd.h"

/* ---- patchify ---------------------------------------------------------------------------- */

/* one row of a patch: pixels x0 .. x0+p-1 of row y, resized; to: (3, p*p) at its first pixel */
static void resized_row(const cgs_record *r, const uint8_t *frame, int y, int x0, float *to) {
    int S = r->in[0]->dim[1], R = r->arg.patchify.size, p = r->arg.patchify.patch;
    int first_y = cgs_resize_first(S, R, y);
    for (int x = 0; x < p; x++) {
        int first_x = cgs_resize_first(S, R, x0 + x), wy, wx;
        int64_t sum[3] = {0}, weight = 0; /* whole numbers: nothing is rounded before the end */
        for (int i = first_y; i < S && (wy = cgs_resize_weight(S, R, y, i)) != 0; i++)
            for (int j = first_x; j < S && (wx = cgs_resize_weight(S, R, x0 + x, j)) != 0; j++) {
                const uint8_t *from = frame + ((size_t)i * (size_t)S + (size_t)j) * 3;
                int64_t w = (int64_t)wy * wx;
                for (int c = 0; c < 3; c++) sum[c] += w * from[c];
                weight += w;
            }
        for (int c = 0; c < 3; c++) {
            double v = (double)sum[c] / (255.0 * (double)weight);
            to[(c * p) * p + x] = (float)((v - r->arg.patchify.mean[c]) / r->arg.patchify.std[c]);
        }
    }
}

static void patchify_resized(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *out = r->out;
    size_t S = (size_t)r->in[0]->dim[1], p = (size_t)r->arg.patchify.patch;
    size_t side = (size_t)r->arg.patchify.size / p, rows = cgs_rows(out);
    CGS_SHARE (row, rows) {
        float *buf = thread_scratch(d); /* (3*p*p) */
        float *po = row_to(out->data, out->dtype, row * 3 * p * p, buf);
        const uint8_t *frame = (const uint8_t *)r->in[0]->data + row / (side * side) * S * S * 3;
        for (size_t y = 0; y < p; y++)
            resized_row(r, frame, (int)(row / side % side * p + y), (int)(row % side * p),
                        po + y * p);
        row_done(out->data, out->dtype, row * 3 * p * p, 3 * p * p, po);
    }
}

/* A byte has 256 values, so normalisation is a table for each colour. */
void CGS_FN(patchify_forward)(cgs_device *d, const cgs_record *r) {
    const uint8_t *frames = r->in[0]->data; /* (F, S, S, 3) */
    const cgs_tensor *out = r->out;         /* (F*P, 3*p*p), columns (colour, y, x) */
    size_t S = (size_t)r->arg.patchify.size, p = (size_t)r->arg.patchify.patch, side = S / p;
    size_t rows = cgs_rows(out);
    if (r->in[0]->dim[1] != r->arg.patchify.size) {
        patchify_resized(d, r);
        return;
    }
    float value[3][256];
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            value[c][v] = ((float)v / 255.0f - r->arg.patchify.mean[c]) / r->arg.patchify.std[c];
    CGS_SHARE (row, rows) {
        float *buf = thread_scratch(d); /* (3*p*p) */
        size_t f = row / (side * side), py = row / side % side, px = row % side;
        float *po = row_to(out->data, out->dtype, row * 3 * p * p, buf);
        for (size_t y = 0; y < p; y++) {
            const uint8_t *from = frames + ((f * S + py * p + y) * S + px * p) * 3;
            float *to = po + y * p;
            for (size_t x = 0; x < p; x++) {
                to[x] = value[0][from[3 * x]];
                to[p * p + x] = value[1][from[3 * x + 1]];
                to[2 * p * p + x] = value[2][from[3 * x + 2]];
            }
        }
        row_done(out->data, out->dtype, row * 3 * p * p, 3 * p * p, po);
    }
}

void CGS_FN(patchify_backward)(cgs_device *d, const cgs_record *r) {
    (void)d;
    (void)r; /* bytes have no gradient */
}

/* ---- positions ------------------------------------------------------------------------------ */

/* out[row] = x[row] + pos[t] */
static void add_position(const cgs_record *r, const cgs_tensor *x, size_t x_row,
                         const cgs_tensor *pos, size_t t, size_t out_row, size_t D, float *buf) {
    const cgs_tensor *out = r->out;
    const float *px = data_in(x, x_row * D, D, buf), *pp = data_in(pos, t * D, D, buf + D);
    float *po = row_to(out->data, out->dtype, out_row * D, buf + 2 * D);
#pragma omp simd
    for (size_t i = 0; i < D; i++) po[i] = px[i] + pp[i];
    row_done(out->data, out->dtype, out_row * D, D, po);
}

/* sum = the gradient of the result at rows t, t + T, t + 2T, ..., in this order */
static void sum_over_batch(const cgs_record *r, float *sum, size_t B, size_t T, size_t t, size_t D,
                           float *buf) {
    memset(sum, 0, D * sizeof *sum);
    for (size_t b = 0; b < B; b++) {
        const float *pg = grad_in(r, (b * T + t) * D, D, buf);
#pragma omp simd
        for (size_t i = 0; i < D; i++) sum[i] += pg[i];
    }
}

/* x (F*P,D), cls (D), pos (P+1,D) -> (F,P+1,D) */
void CGS_FN(tokens_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *cls = r->in[1], *pos = r->in[2];
    size_t D = (size_t)cgs_cols(r->out), T = cgs_rows(pos), n = cgs_rows(r->out);
    CGS_SHARE (row, n) {
        size_t f = row / T, t = row % T;
        float *buf = thread_scratch(d); /* 3 of (D) */
        if (t == 0)
            add_position(r, cls, 0, pos, 0, row, D, buf);
        else
            add_position(r, x, f * (T - 1) + t - 1, pos, t, row, D, buf);
    }
}

void CGS_FN(tokens_backward)(cgs_device *d, const cgs_record *r) {
    size_t D = (size_t)cgs_cols(r->out), T = cgs_rows(r->in[2]), F = cgs_rows(r->out) / T;
    bool want_x = cgs_wants(r, 0), want_cls = cgs_wants(r, 1), want_pos = cgs_wants(r, 2);
    CGS_SHARE (t, T) {
        float *buf = thread_scratch(d); /* 2 of (D) */
        if (want_pos || (want_cls && t == 0)) {
            sum_over_batch(r, buf, F, T, t, D, buf + D);
            if (want_pos) give_done(r, 2, t * D, D, buf);
            if (want_cls && t == 0) give_done(r, 1, 0, D, buf);
        }
        if (want_x && t > 0)
            for (size_t f = 0; f < F; f++)
                give_done(r, 0, (f * (T - 1) + t - 1) * D, D, grad_in(r, (f * T + t) * D, D, buf));
    }
}

/* x (B,T,D), pos (>=T,D) */
void CGS_FN(add_pos_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *pos = r->in[1];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], n = cgs_rows(x);
    CGS_SHARE (row, n) add_position(r, x, row, pos, row % T, row, D, thread_scratch(d));
}

void CGS_FN(add_pos_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], n = cgs_rows(x);
    if (cgs_wants(r, 1)) {
        give_zero(r, 1);
        CGS_SHARE (t, T) {
            float *buf = thread_scratch(d); /* 2 of (D) */
            sum_over_batch(r, buf, n / T, T, t, D, buf + D);
            add_to(r->in[1]->grad, r->in[1]->dtype, t * D, D, buf);
        }
        cgs_meet();
    }
    if (!cgs_wants(r, 0) || x->grad == r->out->grad) return;
    CGS_SHARE (row, n) give_done(r, 0, row * D, D, grad_in(r, row * D, D, thread_scratch(d)));
}
