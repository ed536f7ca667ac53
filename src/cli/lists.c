/* lists.c - see lists.h. */
#include "cli/lists.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/temperature.h"

cgs_status cgs_list_texts(cgs_texts *out, const char *option, const cgs_words *words) {
    out->count = 0;
    for (int i = 0; i < words->count; i++) {
        char *rest = words->word[i];
        while (rest) {
            char *item = rest;
            rest = strchr(rest, ',');
            if (rest) *rest++ = '\0';
            if (!*item) return cgs_fail(CGS_EARG, "--%s: empty value in the list", option);
            if (out->count == CGS_LIST_MAX)
                return cgs_fail(CGS_EARG, "--%s: more than %d values", option, CGS_LIST_MAX);
            out->item[out->count++] = item;
        }
    }
    return CGS_OK;
}

cgs_status cgs_list_ints(int *out, int *count, const char *option, int low,
                         const cgs_words *words) {
    cgs_texts t;
    CGS_TRY(cgs_list_texts(&t, option, words));
    *count = t.count;
    for (int i = 0; i < t.count; i++) {
        char *end;
        errno = 0;
        long v = strtol(t.item[i], &end, 10);
        if (*end || errno || v < low || v > INT_MAX)
            return cgs_fail(CGS_EARG, "--%s wants whole numbers from %d to %d, got \"%.80s\"",
                            option, low, INT_MAX, t.item[i]);
        out[i] = (int)v;
    }
    return CGS_OK;
}

cgs_status cgs_list_taus(double *out, int *count, const char *option, const cgs_words *words) {
    cgs_texts t;
    CGS_TRY(cgs_list_texts(&t, option, words));
    *count = t.count;
    for (int i = 0; i < t.count; i++) {
        char *end;
        out[i] = strtod(t.item[i], &end);
        bool finite = !*end && isfinite(out[i]);
        if (!strcmp(t.item[i], "auto"))
            out[i] = CGS_TAU_MEASURED;
        else if (!finite)
            return cgs_fail(CGS_EARG, "--%s wants numbers or auto, got \"%.80s\"", option,
                            t.item[i]);
    }
    return CGS_OK;
}

cgs_status cgs_list_u64(uint64_t *out, int *count, const char *option, const cgs_words *words) {
    cgs_texts t;
    CGS_TRY(cgs_list_texts(&t, option, words));
    *count = t.count;
    for (int i = 0; i < t.count; i++) {
        char *end;
        errno = 0;
        out[i] = strtoull(t.item[i], &end, 10);
        if (*end || errno || t.item[i][0] == '-')
            return cgs_fail(CGS_EARG, "--%s wants whole numbers of at least 0, got \"%.80s\"",
                            option, t.item[i]);
    }
    return CGS_OK;
}
