/* status.h - how every module reports a failure: a code and one sentence.
 *
 * The sentence names the file, key or shape and the value seen.  It lives in
 * thread-local storage, so it needs no ownership and survives until the next
 * failure of the same thread. */
#ifndef CGS_CORE_STATUS_H
#define CGS_CORE_STATUS_H

#include "cgs/cgs.h"

/* Stores the sentence and returns the code, so that callers write
 *     return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno)); */
cgs_status cgs_fail(cgs_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the stored sentence; used where a caller knows the
 * file and the callee only knew the key. Returns the code it was given. */
cgs_status cgs_fail_in(cgs_status code, const char *prefix);

#define CGS_TRY(call)                                   \
    do {                                                \
        cgs_status try_status_ = (call);                \
        if (try_status_ != CGS_OK) return try_status_;  \
    } while (0)

#endif /* CGS_CORE_STATUS_H */
