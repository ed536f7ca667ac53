/* tokens.c - puts the class token before the patches of each frame and adds positions.
 *   x (F*P,D), cls (D), pos (P+1,D) -> (F,P+1,D) */
#include "ops/ref/ref.h"

void cgs_ref_tokens_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *cls = r->in[1], *pos = r->in[2];
    size_t D = (size_t)cgs_cols(x), N = cgs_numel(pos) / D, P = N - 1, F = cgs_rows(r->out) / N;
    for (size_t f = 0; f < F; f++)
        for (size_t t = 0; t < N; t++)
            for (size_t d = 0; d < D; d++) {
                float v = t == 0 ? get(cls, d) : get(x, (f * P + t - 1) * D + d);
                set(r->out, (f * N + t) * D + d, v + get(pos, t * D + d));
            }
}

void cgs_ref_tokens_backward(const cgs_record *r) {
    size_t D = (size_t)cgs_cols(r->in[0]), N = cgs_numel(r->in[2]) / D, P = N - 1;
    size_t F = cgs_rows(r->out) / N;
    if (cgs_wants(r, 0))
        for (size_t f = 0; f < F; f++)
            for (size_t i = 0; i < P * D; i++)
                give(r, 0, f * P * D + i, out_grad(r, f * N * D + D + i));
    for (size_t i = 0; i < N * D; i++) { /* sums over frames */
        double sum = 0;
        for (size_t f = 0; f < F; f++) sum += out_grad(r, f * N * D + i);
        if (cgs_wants(r, 1) && i < D) give(r, 1, i, sum);
        if (cgs_wants(r, 2)) give(r, 2, i, sum);
    }
}

void cgs_ref_tokens_tangent(const cgs_record *r, cgs_lanes l) {
    size_t D = (size_t)cgs_cols(r->in[0]), N = cgs_numel(r->in[2]) / D;
    for (size_t i = 0; i < cgs_numel(r->out); i++) {
        size_t token = i / D % N, frame = i / D / N;
        clear_tangent(r, l, i);
        if (token) push(r, l, i, 1, 0, (frame * (N - 1) + token - 1) * D + i % D);
    }
}
