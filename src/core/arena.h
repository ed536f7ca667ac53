/* arena.h - one allocation for many arrays, in two passes over the same code:
 *
 *   base == NULL  measure: every call only adds to `used`
 *   base != NULL  bind:    every call hands out memory
 *
 * A module writes its layout once, as a function that takes an arena, so the measured size and the
 * binding cannot disagree. */
#ifndef CGS_CORE_ARENA_H
#define CGS_CORE_ARENA_H

#include <stddef.h>

#include "core/status.h"

#define CGS_ALIGN ((size_t)256)

typedef struct cgs_arena {
    unsigned char *base;
    size_t used, size;
} cgs_arena;

static inline size_t cgs_align_up(size_t bytes) {
    return (bytes + CGS_ALIGN - 1) / CGS_ALIGN * CGS_ALIGN;
}

static inline void *cgs_arena_take(cgs_arena *a, size_t bytes) {
    size_t at = cgs_align_up(a->used);
    a->used = at + bytes;
    if (a->base == NULL) return NULL;
    return a->used <= a->size ? a->base + at : NULL;
}

#define CGS_TAKE(a, type, count) ((type *)cgs_arena_take((a), (size_t)(count) * sizeof(type)))

/* Allocates the `used` bytes that a measuring pass found, zeroed and aligned,
 * and rewinds the arena for the binding pass. */
cgs_status cgs_arena_bind(cgs_arena *a, const char *what);
void cgs_arena_free(cgs_arena *a);

#endif /* CGS_CORE_ARENA_H */
