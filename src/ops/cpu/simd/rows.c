/* rows.c - moving rows: take, join and repeat. */
#include "ops/cpu/simd/simd.h"

/* n elements of a tensor to another place, converting where the types differ */
static void move(const cgs_tensor *to, size_t to_at, const cgs_tensor *from, size_t from_at,
                 size_t n) {
    size_t size = cgs_dtype_size(to->dtype);
    if (to->dtype == from->dtype) {
        memcpy((char *)to->data + to_at * size, (const char *)from->data + from_at * size,
               n * size);
        return;
    }
    for (size_t at = 0; at < n; at += CHUNK) {
        float buf[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        row_done(to->data, to->dtype, to_at + at, len, data_in(from, from_at + at, len, buf));
    }
}

/* the gradient of n elements of the result, from `from` on, to those of input k at `to` */
static void move_back(const cgs_record *r, int k, size_t to, size_t from, size_t n) {
    for (size_t at = 0; at < n; at += CHUNK) {
        float buf[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        give_done(r, k, to + at, len, grad_in(r, from + at, len, buf));
    }
}

/* ---- take: x (B,T,D) -> x[:, t0 : t0+n] ------------------------------------------------------ */

void CGS_FN(take_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], n = (size_t)r->out->dim[1],
           B = cgs_rows(x) / T;
    size_t t0 = (size_t)r->arg.take.t0;
    CGS_SHARE (b, B) move(r->out, b * n * D, x, (b * T + t0) * D, n * D);
}

void CGS_FN(take_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    const cgs_tensor *x = r->in[0];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], n = (size_t)r->out->dim[1],
           B = cgs_rows(x) / T;
    size_t t0 = (size_t)r->arg.take.t0, size = cgs_dtype_size(x->dtype);
    CGS_SHARE (b, B) {
        if (!r->accumulate[0]) {
            char *row = (char *)x->grad + b * T * D * size;
            memset(row, 0, t0 * D * size);
            memset(row + (t0 + n) * D * size, 0, (T - t0 - n) * D * size);
        }
        move_back(r, 0, (b * T + t0) * D, b * n * D, n * D);
    }
}

/* ---- join: x (B,T,D), y (B,U,D) -> (B,T+U,D) ---------------------------------------------------
 */

void CGS_FN(join_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], U = (size_t)y->dim[1], V = T + U,
           B = cgs_rows(r->out) / V;
    CGS_SHARE (b, B) {
        move(r->out, b * V * D, x, b * T * D, T * D);
        move(r->out, (b * V + T) * D, y, b * U * D, U * D);
    }
}

void CGS_FN(join_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1];
    size_t D = (size_t)cgs_cols(x), T = (size_t)x->dim[1], U = (size_t)y->dim[1], V = T + U,
           B = cgs_rows(r->out) / V;
    CGS_SHARE (b, B) {
        if (cgs_wants(r, 0)) move_back(r, 0, b * T * D, b * V * D, T * D);
        if (cgs_wants(r, 1)) move_back(r, 1, b * U * D, (b * V + T) * D, U * D);
    }
}

/* ---- repeat: x (B,...) -> every block `times` times --------------------------------------------
 */

void CGS_FN(repeat_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    size_t K = (size_t)r->arg.repeat.times, B = (size_t)x->dim[0];
    size_t n = B ? cgs_numel(x) / B : 0;
    CGS_SHARE (b, B * K) move(r->out, b * n, x, b / K * n, n);
}

void CGS_FN(repeat_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    const cgs_tensor *x = r->in[0];
    size_t K = (size_t)r->arg.repeat.times, B = (size_t)x->dim[0];
    size_t n = B ? cgs_numel(x) / B : 0;
    CGS_SHARE (b, B)
        for (size_t at = 0; at < n; at += CHUNK) {
            size_t len = min_size(CHUNK, n - at);
            float sum[CHUNK] = {0}, buf[CHUNK];
            for (size_t k = 0; k < K; k++) {
                const float *pg = grad_in(r, (b * K + k) * n + at, len, buf);
#pragma omp simd
                for (size_t i = 0; i < len; i++) sum[i] += pg[i];
            }
            give_done(r, 0, b * n + at, len, sum);
        }
}
