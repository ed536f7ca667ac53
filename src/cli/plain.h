/* plain.h - untrusted text: parsing its numbers, printing it without control characters. */
#ifndef CGS_CLI_PLAIN_H
#define CGS_CLI_PLAIN_H

#include <stdio.h>

#include "core/status.h"

/* Comma-separated finite numbers up to the end of a text, of which the first `capacity` go to out;
 * *count says how many there were.  what: the name of the text in messages. */
cgs_status cgs_parse_numbers(const char *text, const char *what, int capacity, double *out,
                             int *count);

/* Prints a text with control characters as '?': a file must not control the terminal. */
void cgs_print_plain(const char *text, FILE *to);

#endif /* CGS_CLI_PLAIN_H */
