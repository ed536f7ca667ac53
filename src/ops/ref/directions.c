/* directions.c - random unit rows (P,D), new ones each update: normal draws, each row
 * divided by its length. */
#include "ops/ref/ref.h"

void cgs_ref_directions_forward(const cgs_record *r) {
    size_t P = cgs_rows(r->out), D = (size_t)cgs_cols(r->out);
    uint64_t key = CGS_DROPOUT_KEY(r->arg.directions.key, *r->step);
    for (size_t p = 0; p < P; p++) {
        double square = 0;
        for (size_t d = 0; d < D; d++) {
            double v = cgs_rng_normal_at(key, p * D + d);
            square += v * v;
        }
        for (size_t d = 0; d < D; d++)
            set(r->out, p * D + d, cgs_rng_normal_at(key, p * D + d) / sqrt(square));
    }
}

/* nothing goes in */
void cgs_ref_directions_backward(const cgs_record *r) { (void)r; }

void cgs_ref_directions_tangent(const cgs_record *r, cgs_lanes l) {
    (void)r;
    (void)l;
}
