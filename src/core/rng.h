/* rng.h - counter-based random numbers.
 *
 * The n-th draw of a stream is a pure function of (key, n): CPU and GPU give the
 * same bits, threads need no locks, and a checkpoint stores two integers.  Each
 * consumer of randomness has its own stream, named by purpose, so that adding a
 * consumer never shifts another.
 *
 * Normal draws invert the normal distribution function with plain IEEE additions,
 * multiplications, divisions and square roots, so they too are the same bits on
 * every machine (libm's log and cos are not: they pick code by CPU). */
#ifndef CGS_CORE_RNG_H
#define CGS_CORE_RNG_H

#include <stdint.h>

typedef enum cgs_purpose {
    CGS_STREAM_DATA = 1, /* shuffling and splits            */
    CGS_STREAM_INIT,     /* weight initialisation           */
    CGS_STREAM_DROPOUT,
    CGS_STREAM_SIGREG, /* projection directions           */
    CGS_STREAM_PLAN,   /* planner candidates              */
    CGS_STREAM_ENV,    /* environment resets              */
    CGS_STREAM_POLICY, /* behaviour policies              */
    CGS_STREAM_PRIOR,  /* behaviour-cloning training      */
    CGS_STREAM_STATS,  /* bootstrap                       */
    CGS_STREAM_TEST,
    CGS_STREAM_THEORY /* systems and samples of the theory */
} cgs_purpose;

typedef struct cgs_rng {
    uint64_t key, n;
} cgs_rng;

static inline uint64_t cgs_mix64(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The stream of a purpose; `index` separates episodes, layers, workers... */
static inline cgs_rng cgs_rng_stream(uint64_t seed, cgs_purpose purpose, uint64_t index) {
    uint64_t key = cgs_mix64(cgs_mix64(cgs_mix64(seed) ^ (uint64_t)purpose) ^ index);
    return (cgs_rng){key, 0};
}

/* The n-th draw of a stream without advancing it. */
static inline uint64_t cgs_rng_at(uint64_t key, uint64_t n) {
    return cgs_mix64(key ^ cgs_mix64(n));
}

static inline uint64_t cgs_rng_u64(cgs_rng *r) { return cgs_rng_at(r->key, r->n++); }

/* 64 random bits to a uniform in [0, 1): 24 bits, every value exact in a float */
static inline float cgs_to_f32(uint64_t bits) { return (float)(bits >> 40) * 0x1p-24f; }
/* ... and to a uniform in (0, 1) with 53 bits */
static inline double cgs_to_f64(uint64_t bits) { return ((double)(bits >> 11) + 0.5) * 0x1p-53; }

static inline float cgs_rng_f32(cgs_rng *r) { return cgs_to_f32(cgs_rng_u64(r)); }
static inline double cgs_rng_f64(cgs_rng *r) { return cgs_to_f64(cgs_rng_u64(r)); }
static inline double cgs_rng_range(cgs_rng *r, double lo, double hi) {
    return lo + (hi - lo) * cgs_rng_f64(r);
}

/* A whole number in [0, n), n >= 1, without bias. */
uint64_t cgs_rng_below(cgs_rng *r, uint64_t n);

/* The standard normal quantile of p in (0, 1), to about 1e-15 relative. */
double cgs_normal_quantile(double p);

static inline double cgs_rng_normal(cgs_rng *r) { return cgs_normal_quantile(cgs_rng_f64(r)); }
static inline float cgs_rng_normal_at(uint64_t key, uint64_t n) {
    return (float)cgs_normal_quantile(cgs_to_f64(cgs_rng_at(key, n)));
}

#endif /* CGS_CORE_RNG_H */
