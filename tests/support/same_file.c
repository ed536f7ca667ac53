/* same_file.c - see same_file.h. */
#include "same_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/file.h"
#include "expect.h"

void same_file(const char *a, const char *b) {
    char *x, *y;
    size_t nx, ny;
    OK(cgs_read_file(a, (size_t)1 << 30, &x, &nx));
    OK(cgs_read_file(b, (size_t)1 << 30, &y, &ny));
    assert_int_equal(nx, ny);
    assert_memory_equal(x, y, nx);
    free(x);
    free(y);
}
