/* arena.c - allocation behind the two-pass arena. */
#include "core/arena.h"

#include <stdlib.h>
#include <string.h>

cgs_status cgs_arena_bind(cgs_arena *a, const char *what) {
    size_t bytes = cgs_align_up(a->used ? a->used : 1);
    unsigned char *p = aligned_alloc(CGS_ALIGN, bytes);
    if (!p) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu bytes", what, bytes);
    memset(p, 0, bytes);
    *a = (cgs_arena){.base = p, .used = 0, .size = bytes};
    return CGS_OK;
}

void cgs_arena_free(cgs_arena *a) {
    free(a->base);
    *a = (cgs_arena){0};
}
