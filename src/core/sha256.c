/* sha256.c - see sha256.h. */
#include "core/sha256.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64 };

/* the first 32 bits of the fractions of the cube roots of the first 64 primes */
static const uint32_t K[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

typedef struct hash {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char part[BLOCK]; /* the bytes % BLOCK that fill no block yet */
} hash;

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void take_block(hash *s, const unsigned char *p) {
    uint32_t w[ROUNDS], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t one =
            v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + choice + K[i] + w[i];
        uint32_t two = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + majority;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static hash begin(void) {
    return (hash){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                        0x1f83d9ab, 0x5be0cd19}};
}

static void take(hash *s, const unsigned char *p, size_t n) {
    size_t have = s->bytes % BLOCK;
    s->bytes += n;
    while (have + n >= BLOCK) {
        size_t more = BLOCK - have;
        memcpy(s->part + have, p, more);
        take_block(s, s->part);
        p += more;
        n -= more;
        have = 0;
    }
    memcpy(s->part + have, p, n);
}

static void end(hash *s, char *out) {
    static const unsigned char padding[BLOCK] = {0x80};
    unsigned char length[8];
    uint64_t bits = s->bytes * 8;
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    take(s, padding, 1 + (BLOCK + 55 - s->bytes % BLOCK) % BLOCK);
    take(s, length, sizeof length);
    for (int i = 0; i < 8; i++) snprintf(out + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

void cgs_sha256(const void *data, size_t bytes, char *out) {
    hash s = begin();
    take(&s, data, bytes);
    end(&s, out);
}

cgs_status cgs_sha256_file(const char *path, char *out) {
    unsigned char piece[1 << 14];
    hash s = begin();
    FILE *f = fopen(path, "rb");
    if (!f) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) take(&s, piece, n);
    cgs_status rc = ferror(f) ? cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno)) : CGS_OK;
    fclose(f);
    if (rc == CGS_OK) end(&s, out);
    return rc;
}
