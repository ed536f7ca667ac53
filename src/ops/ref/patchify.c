/* patchify.c - frames to rows of normalised patches, the input of the patch embedding.
 *   frames u8 (F,S,S,3), resized to (F,R,R,3) -> (F*P, 3*p*p), P = (R/p)^2 patches row by row,
 *   and inside a patch channel, then row, then column: the order of a convolution's weights. */
#include "ops/ref/ref.h"

/* the value of channel c at (y, x) of frame f after resizing, in 0 .. 255 */
static double pixel(const cgs_record *r, size_t f, int y, int x, size_t c) {
    int S = r->in[0]->dim[1], R = r->arg.patchify.size;
    double sum = 0, weight = 0;
    for (int i = cgs_resize_first(S, R, y); i < S && cgs_resize_weight(S, R, y, i); i++)
        for (int j = cgs_resize_first(S, R, x); j < S && cgs_resize_weight(S, R, x, j); j++) {
            double w = (double)cgs_resize_weight(S, R, y, i) * cgs_resize_weight(S, R, x, j);
            sum += w * get(r->in[0], ((f * (size_t)S + (size_t)i) * (size_t)S + (size_t)j) * 3 + c);
            weight += w;
        }
    return sum / weight;
}

void cgs_ref_patchify_forward(const cgs_record *r) {
    size_t F = (size_t)r->in[0]->dim[0], at = 0;
    int p = r->arg.patchify.patch, side = r->arg.patchify.size / p;
    for (size_t f = 0; f < F; f++)
        for (int row = 0; row < side; row++)
            for (int col = 0; col < side; col++)
                for (size_t c = 0; c < 3; c++)
                    for (int y = 0; y < p; y++)
                        for (int x = 0; x < p; x++) {
                            double v = pixel(r, f, row * p + y, col * p + x, c) / 255.0;
                            set(r->out, at++,
                                (v - r->arg.patchify.mean[c]) / r->arg.patchify.std[c]);
                        }
}

/* bytes have no gradient */
void cgs_ref_patchify_backward(const cgs_record *r) { (void)r; }

void cgs_ref_patchify_tangent(const cgs_record *r, cgs_lanes l) {
    (void)r;
    (void)l;
}
