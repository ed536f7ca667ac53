/* expect.h - a call of the library that must succeed, and one that must be refused with a sentence
 * that says why.  Include it after cmocka.h. */
#ifndef CGS_TESTS_EXPECT_H
#define CGS_TESTS_EXPECT_H

#include <string.h>

#include "core/status.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CGS_OK) fail_msg("%s: %s", #call, cgs_last_error());                         \
    } while (0)

/* the call fails with this code and a sentence that names this */
#define REFUSED(call, code, word)                                                                  \
    do {                                                                                           \
        assert_int_equal((call), (code));                                                          \
        if (!strstr(cgs_last_error(), (word)))                                                     \
            fail_msg("\"%s\" does not mention \"%s\"", cgs_last_error(), word);                    \
    } while (0)

#endif /* CGS_TESTS_EXPECT_H */
