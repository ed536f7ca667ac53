/* status.h - how every module reports a failure: a code and one sentence.
 *
 * The sentence names the file, key or shape and the value seen.  It lives in thread-local storage,
 * so nobody owns it, and it stays until the next failure of the same thread. */
#ifndef CGS_CORE_STATUS_H
#define CGS_CORE_STATUS_H

#include <stdbool.h>

#include "cgs/cgs.h"

/* Stores the sentence and returns the code, so that callers write
 *     return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno)); */
cgs_status cgs_fail(cgs_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prepends "prefix: " to the stored sentence, where the caller knows the file and the callee only
 * knew the key. Returns the code it was given. */
cgs_status cgs_fail_in(cgs_status code, const char *prefix);

/* The first failure among threads that work together: carries the sentence of the thread that
 * failed to the one that waits for them.  Zeroed at first. */
typedef struct cgs_failure {
    cgs_status code;
    char sentence[512];
} cgs_failure;
void cgs_failure_note(cgs_failure *f, cgs_status code); /* by any thread, also with CGS_OK */
bool cgs_failure_any(cgs_failure *f);                   /* likewise */
cgs_status cgs_failure_report(const cgs_failure *f);    /* when they are done */

#define CGS_TRY(call)                                                                              \
    do {                                                                                           \
        cgs_status try_status_ = (call);                                                           \
        if (try_status_ != CGS_OK) return try_status_;                                             \
    } while (0)

#endif /* CGS_CORE_STATUS_H */
