/* build.c - the commit is compiled into this file alone, so that nothing else is rebuilt. */
#include "core/build.h"

#ifndef CGS_COMMIT
#define CGS_COMMIT "unknown"
#endif

#if defined __clang__
#define COMPILER "clang " __clang_version__
#elif defined __GNUC__
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined __has_feature
#define WATCHED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define WATCHED 1
#else
#define WATCHED 0
#endif

const char *cgs_commit(void) { return CGS_COMMIT; }
const char *cgs_compiler(void) { return COMPILER; }
bool cgs_sanitized(void) { return WATCHED; }
