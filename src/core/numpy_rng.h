/* numpy_rng.h - NumPy's numpy.random.default_rng(seed), draw for draw.
 *
 * Published evaluations chose their start states with it, so the same starts need the
 * same generator: SeedSequence hashes the seed, PCG64 (XSL-RR) produces 64 bits per step,
 * whole numbers come from Lemire's multiplication on 32 bits.  Everything else in cgs
 * draws from core/rng.h. */
#ifndef CGS_CORE_NUMPY_RNG_H
#define CGS_CORE_NUMPY_RNG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_numpy_rng {
    uint64_t state[2], inc[2]; /* 128-bit numbers, high half first */
    bool has_half;             /* a 64-bit output is used as two 32-bit draws, low half first */
    uint32_t half;
} cgs_numpy_rng;

/* default_rng(seed) */
cgs_numpy_rng cgs_numpy_rng_create(uint64_t seed);

uint64_t cgs_numpy_u64(cgs_numpy_rng *r);
uint32_t cgs_numpy_u32(cgs_numpy_rng *r);
/* random(): a double in [0, 1) */
double cgs_numpy_random(cgs_numpy_rng *r);
/* integers(0, last + 1): a whole number in [0, last] */
uint64_t cgs_numpy_bounded(cgs_numpy_rng *r, uint64_t last);

/* shuffle(data) for a one-dimensional array. */
void cgs_numpy_shuffle(cgs_numpy_rng *r, int64_t *data, int64_t n);
/* permutation(n) into out (n). */
void cgs_numpy_permutation(cgs_numpy_rng *r, int64_t *out, int64_t n);
/* choice(population, size, replace=False) into out (size), in NumPy's order. */
cgs_status cgs_numpy_choice(cgs_numpy_rng *r, int64_t population, int64_t size, int64_t *out);

#endif /* CGS_CORE_NUMPY_RNG_H */
