/* lists.h - options that hold several values: "--samples 16 64 256" or "--samples 16,64,256". */
#ifndef CGS_CLI_LISTS_H
#define CGS_CLI_LISTS_H

#include <stdint.h>

#include "cli/options.h"

enum { CGS_LIST_MAX = 256 };

typedef struct cgs_texts {
    const char *item[CGS_LIST_MAX];
    int count;
} cgs_texts;

/* Splits words at commas, in place.  option: its name, for messages. */
cgs_status cgs_list_texts(cgs_texts *out, const char *option, const cgs_words *words);
/* The same as whole numbers from low on; count 0 when the option was not given.  out:
 * (CGS_LIST_MAX) */
cgs_status cgs_list_ints(int *out, int *count, const char *option, int low, const cgs_words *words);
/* The same as temperatures: numbers, or "auto" for CGS_TAU_MEASURED. */
cgs_status cgs_list_taus(double *out, int *count, const char *option, const cgs_words *words);
cgs_status cgs_list_u64(uint64_t *out, int *count, const char *option, const cgs_words *words);

#endif /* CGS_CLI_LISTS_H */
