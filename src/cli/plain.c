/* plain.c - see plain.h. */
#include "cli/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cgs_status cgs_parse_numbers(const char *text, const char *what, int capacity, double *out,
                             int *count) {
    int n = 0;
    for (const char *p = text;;) {
        char *end;
        double v = strtod(p, &end);
        if (end == p) return cgs_fail(CGS_EARG, "%s: \"%.40s\" is not a number", what, p);
        if (!isfinite(v)) return cgs_fail(CGS_EARG, "%s: number %d is not finite", what, n + 1);
        if (n < capacity) out[n] = v;
        n++;
        p = end + strspn(end, " \t\r");
        if (*p == '\0') break;
        if (*p++ != ',')
            return cgs_fail(CGS_EARG, "%s: \"%.40s\" where a comma was expected", what, p - 1);
    }
    *count = n;
    return CGS_OK;
}

void cgs_print_plain(const char *text, FILE *to) {
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        /* C0, DEL, and C1 as UTF-8 encodes it */
        int steers = *p < 0x20 || *p == 0x7F || (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0);
        fputc(steers ? '?' : *p, to);
        if (steers && *p == 0xC2) p++;
    }
}
