/* text.h - growing text: pages and drawings are appended piece by piece.
 *
 * A failure (no memory) sticks: later calls do nothing, and one check at the end reports it.
 * Untrusted text goes through cgs_text_escape, which removes markup, control characters and invalid
 * UTF-8. */
#ifndef CGS_IO_TEXT_H
#define CGS_IO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

typedef struct cgs_text {
    char *s; /* NUL-terminated; NULL while empty */
    size_t used, capacity;
    bool failed;
} cgs_text;

void cgs_text_free(cgs_text *t);
void cgs_text_put(cgs_text *t, const char *s);
void cgs_text_bytes(cgs_text *t, const char *s, size_t n);
void cgs_text_printf(cgs_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text for HTML and XML content or quoted attributes; at most 4096 characters of it. */
void cgs_text_escape(cgs_text *t, const char *s);
/* The same for plain text: on one line, no control character, valid UTF-8. */
void cgs_text_line(cgs_text *t, const char *s);
void cgs_text_base64(cgs_text *t, const void *data, size_t n);

/* CGS_ENOMEM, naming the text, if anything failed. */
cgs_status cgs_text_check(const cgs_text *t, const char *what);

#endif /* CGS_IO_TEXT_H */
