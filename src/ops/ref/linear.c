/* linear.c - y = x W^T + b.
 *   x (n,k), W (m,k), b (m) or NULL, y (n,m)
 * When x is bf16 the products use the rounded copy of W, if it has one. */
#include "ops/ref/ref.h"

static cgs_ref_matrix weights(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    size_t k = (size_t)cgs_cols(x);
    if (x->dtype == CGS_BF16 && W->bf16) return (cgs_ref_matrix){W->bf16, CGS_BF16, 0, k, 1};
    return (cgs_ref_matrix){W->data, W->dtype, 0, k, 1};
}

void cgs_ref_linear_forward(const cgs_record *r) {
    cgs_tensor *x = r->in[0], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_ref_target to = {y->data, y->dtype, 0, m, 1, r->in[2], false};
    cgs_ref_product(to, (cgs_ref_matrix){x->data, x->dtype, 0, k, 1}, transposed(weights(r)), n, m,
                    k);
}

void cgs_ref_linear_backward(const cgs_record *r) {
    cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_ref_matrix dy = {y->grad, y->dtype, 0, m, 1};
    if (cgs_wants(r, 0)) { /* dx = dy W */
        cgs_ref_target dx = {x->grad, x->dtype, 0, k, 1, NULL, r->accumulate[0]};
        cgs_ref_product(dx, dy, weights(r), n, k, m);
    }
    if (cgs_wants(r, 1)) { /* dW = dy^T x */
        cgs_ref_target dW = {W->grad, W->dtype, 0, k, 1, NULL, r->accumulate[1]};
        cgs_ref_product(dW, transposed(dy), (cgs_ref_matrix){x->data, x->dtype, 0, k, 1}, m, k, n);
    }
    if (cgs_wants(r, 2))
        for (size_t j = 0; j < m; j++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++) sum += out_grad(r, i * m + j);
            give(r, 2, j, sum);
        }
}

/* the f32 weights, as tangents are f32 */
void cgs_ref_linear_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(r->out);
    for (size_t i = 0; i < n * m; i++) {
        double sum[CGS_LANES] = {0};
        for (size_t j = 0; j < k; j++)
            sum_tangent(sum, r, x, l, i / m * k + j, get(W, i % m * k + j));
        set_tangent(r, l, i, sum);
    }
}
