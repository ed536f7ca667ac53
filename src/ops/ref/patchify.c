/* patchify.c - frames to rows of normalised patches, the input of the patch embedding.
 *   frames u8 (F,S,S,3) -> (F*P, 3*p*p), P = (S/p)^2 patches row by row, and inside a
 *   patch channel, then row, then column: the order of a convolution's weights. */
#include "ops/ref/ref.h"

void cgs_ref_patchify_forward(const cgs_record *r) {
    size_t F = (size_t)r->in[0]->dim[0], S = (size_t)r->arg.patchify.size;
    size_t p = (size_t)r->arg.patchify.patch, side = S / p, at = 0;
    for (size_t f = 0; f < F; f++)
        for (size_t row = 0; row < side; row++)
            for (size_t col = 0; col < side; col++)
                for (size_t c = 0; c < 3; c++)
                    for (size_t y = 0; y < p; y++)
                        for (size_t x = 0; x < p; x++) {
                            size_t pixel = (f * S + row * p + y) * S + col * p + x;
                            float v = get(r->in[0], pixel * 3 + c) / 255.0f;
                            set(r->out, at++,
                                (v - r->arg.patchify.mean[c]) / r->arg.patchify.std[c]);
                        }
}

/* bytes have no gradient */
void cgs_ref_patchify_backward(const cgs_record *r) { (void)r; }
