/* numpy_rng.c - SeedSequence, PCG64 and the integer algorithms of numpy.random.Generator. */
#include "core/numpy_rng.h"

#include <stdlib.h>
#include <string.h>

/* ---- SeedSequence: a seed becomes a pool of four words, the pool becomes a state ---- */

enum { POOL = 4 };
#define INIT_A UINT32_C(0x43b0d7e5)
#define MULT_A UINT32_C(0x931e8875)
#define INIT_B UINT32_C(0x8b51f9dd)
#define MULT_B UINT32_C(0x58f38ded)
#define MIX_L UINT32_C(0xca01f9dd)
#define MIX_R UINT32_C(0x4973f715)

/* `h` carries over from call to call: equal words hash differently by position */
static uint32_t hash_word(uint32_t v, uint32_t *h, uint32_t mult) {
    v ^= *h;
    *h *= mult;
    v *= *h;
    return v ^ v >> 16;
}

static uint32_t mix_words(uint32_t x, uint32_t y) {
    uint32_t r = MIX_L * x - MIX_R * y;
    return r ^ r >> 16;
}

static void seed_words(uint64_t seed, uint64_t out[4]) {
    /* absent entropy words hash as zero, so a short seed needs no special case */
    const uint32_t entropy[POOL] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};
    uint32_t pool[POOL], h = INIT_A, g = INIT_B, half[8];
    for (int i = 0; i < POOL; i++) pool[i] = hash_word(entropy[i], &h, MULT_A);
    for (int src = 0; src < POOL; src++)
        for (int dst = 0; dst < POOL; dst++)
            if (src != dst) pool[dst] = mix_words(pool[dst], hash_word(pool[src], &h, MULT_A));
    for (int i = 0; i < 8; i++) half[i] = hash_word(pool[i % POOL], &g, MULT_B);
    for (int i = 0; i < 4; i++) out[i] = (uint64_t)half[2 * i + 1] << 32 | half[2 * i];
}

/* ---- PCG64 on 128-bit numbers held as {high, low} ---------------------------------- */

static void add128(uint64_t a[2], const uint64_t b[2]) {
    uint64_t low = a[1] + b[1];
    a[0] += b[0] + (low < a[1]);
    a[1] = low;
}

/* high and low half of a 64 x 64 bit product */
static void mul64(uint64_t a, uint64_t b, uint64_t out[2]) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
    uint64_t middle = (p00 >> 32) + (uint32_t)p01 + (uint32_t)p10;
    out[0] = p11 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
    out[1] = middle << 32 | (uint32_t)p00;
}

static void step(cgs_numpy_rng *r) {
    static const uint64_t mult[2] = {UINT64_C(2549297995355413924), UINT64_C(4865540595714422341)};
    uint64_t product[2];
    mul64(r->state[1], mult[1], product);
    product[0] += r->state[0] * mult[1] + r->state[1] * mult[0];
    add128(product, r->inc);
    memcpy(r->state, product, sizeof product);
}

cgs_numpy_rng cgs_numpy_rng_create(uint64_t seed) {
    uint64_t w[4];
    seed_words(seed, w);
    cgs_numpy_rng r = {.inc = {w[2] << 1 | w[3] >> 63, w[3] << 1 | 1}};
    step(&r);
    add128(r.state, w);
    step(&r);
    return r;
}

uint64_t cgs_numpy_u64(cgs_numpy_rng *r) {
    step(r);
    uint64_t x = r->state[0] ^ r->state[1];
    unsigned turn = (unsigned)(r->state[0] >> 58);
    return x >> turn | x << (-turn & 63);
}

uint32_t cgs_numpy_u32(cgs_numpy_rng *r) {
    if (r->has_half) {
        r->has_half = false;
        return r->half;
    }
    uint64_t both = cgs_numpy_u64(r);
    r->has_half = true;
    r->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

double cgs_numpy_random(cgs_numpy_rng *r) { return (double)(cgs_numpy_u64(r) >> 11) * 0x1p-53; }

/* Lemire's multiplication: the high half of draw * n, redrawing where the low half
 * would favour some results. */
static uint32_t bounded32(cgs_numpy_rng *r, uint32_t last) {
    uint32_t n = last + 1;
    uint64_t m = (uint64_t)cgs_numpy_u32(r) * n;
    if ((uint32_t)m < n) {
        uint32_t threshold = (UINT32_MAX - last) % n;
        while ((uint32_t)m < threshold) m = (uint64_t)cgs_numpy_u32(r) * n;
    }
    return (uint32_t)(m >> 32);
}

static uint64_t bounded64(cgs_numpy_rng *r, uint64_t last) {
    uint64_t n = last + 1, m[2];
    mul64(cgs_numpy_u64(r), n, m);
    if (m[1] < n) {
        uint64_t threshold = (UINT64_MAX - last) % n;
        while (m[1] < threshold) mul64(cgs_numpy_u64(r), n, m);
    }
    return m[0];
}

uint64_t cgs_numpy_bounded(cgs_numpy_rng *r, uint64_t last) {
    if (last == 0) return 0; /* draws nothing */
    if (last < UINT32_MAX) return bounded32(r, (uint32_t)last);
    if (last == UINT32_MAX) return cgs_numpy_u32(r);
    if (last == UINT64_MAX) return cgs_numpy_u64(r);
    return bounded64(r, last);
}

/* ---- shuffles and choice ----------------------------------------------------------- */

/* shuffle() draws by masking and rejection, unlike choice() */
static uint64_t masked(cgs_numpy_rng *r, uint64_t last) {
    uint64_t mask = last, v;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    if (last == 0) return 0;
    do v = (last <= UINT32_MAX ? cgs_numpy_u32(r) : cgs_numpy_u64(r)) & mask;
    while (v > last);
    return v;
}

/* swaps each element from the last down to `first` with one at or before it */
static void shuffle_from(cgs_numpy_rng *r, int64_t *data, int64_t n, int64_t first,
                         uint64_t (*draw)(cgs_numpy_rng *, uint64_t)) {
    for (int64_t i = n - 1; i >= first; i--) {
        int64_t j = (int64_t)draw(r, (uint64_t)i), keep = data[j];
        data[j] = data[i];
        data[i] = keep;
    }
}

void cgs_numpy_shuffle(cgs_numpy_rng *r, int64_t *data, int64_t n) {
    shuffle_from(r, data, n, 1, masked);
}

void cgs_numpy_permutation(cgs_numpy_rng *r, int64_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = i;
    cgs_numpy_shuffle(r, out, n);
}

/* adds v to the open-addressed set (empty slots are -1); returns whether it was there */
static bool insert(int64_t *set, uint64_t mask, int64_t v) {
    uint64_t at = (uint64_t)v & mask;
    while (set[at] != -1 && set[at] != v) at = (at + 1) & mask;
    bool present = set[at] == v;
    set[at] = v;
    return present;
}

/* Floyd's algorithm: one draw per element, whatever the population */
static cgs_status choose_floyd(cgs_numpy_rng *r, int64_t population, int64_t size, int64_t *out) {
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)size) slots *= 2;
    int64_t *set = malloc(slots * sizeof *set);
    if (!set) return cgs_fail(CGS_ENOMEM, "choice: no memory for %lld elements", (long long)size);
    for (uint64_t i = 0; i < slots; i++) set[i] = -1;
    for (int64_t j = population - size, k = 0; j < population; j++, k++) {
        out[k] = (int64_t)cgs_numpy_bounded(r, (uint64_t)j);
        if (insert(set, slots - 1, out[k])) {
            out[k] = j;
            insert(set, slots - 1, j);
        }
    }
    free(set);
    shuffle_from(r, out, size, 1, cgs_numpy_bounded);
    return CGS_OK;
}

/* a shuffle of the whole population, stopped when its last `size` places are final */
static cgs_status choose_tail(cgs_numpy_rng *r, int64_t population, int64_t size, int64_t *out) {
    int64_t *all = malloc((size_t)population * sizeof *all);
    if (!all)
        return cgs_fail(CGS_ENOMEM, "choice: no memory for a population of %lld",
                        (long long)population);
    for (int64_t i = 0; i < population; i++) all[i] = i;
    shuffle_from(r, all, population, population - size > 1 ? population - size : 1,
                 cgs_numpy_bounded);
    memcpy(out, all + (population - size), (size_t)size * sizeof *out);
    free(all);
    return CGS_OK;
}

cgs_status cgs_numpy_choice(cgs_numpy_rng *r, int64_t population, int64_t size, int64_t *out) {
    if (size < 0 || size > population || population > INT64_C(1) << 40)
        return cgs_fail(CGS_EARG, "choice: %lld distinct elements of %lld", (long long)size,
                        (long long)population);
    return population > 10000 && size > population / 50 ? choose_tail(r, population, size, out)
                                                        : choose_floyd(r, population, size, out);
}
