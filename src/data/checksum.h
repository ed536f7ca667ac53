/* checksum.h - a fast 64-bit checksum for this project's files.
 *
 * Each 8-byte word goes through invertible steps, so a change inside one word always changes the
 * result; other changes go unnoticed with probability 2^-64.  It protects against damage, not
 * against forgery. */
#ifndef CGS_DATA_CHECKSUM_H
#define CGS_DATA_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/rng.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files of this project are little endian and are read in place"
#endif

static inline uint64_t cgs_checksum(const void *data, size_t bytes) {
    const unsigned char *p = data;
    uint64_t h = UINT64_C(0x5bd1e995973ca5f3), w;
    size_t n = bytes;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = (h ^ w) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    w = 0;
    if (n) memcpy(&w, p, n);
    return cgs_mix64((h ^ w) * UINT64_C(0x9E3779B97F4A7C15) ^ bytes);
}

#endif /* CGS_DATA_CHECKSUM_H */
