/* short_float.c - see short_float.h. */
#include "core/short_float.h"

#include <stdio.h>
#include <stdlib.h>

const char *cgs_short_float(char *out, size_t size, float v) {
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(out, size, "%.*g", digits, (double)v);
        if (strtof(out, NULL) == v) break;
    }
    return out;
}
