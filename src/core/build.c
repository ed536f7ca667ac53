/* build.c - the commit, compiled in here alone so that nothing else is rebuilt. */
#include "core/build.h"

#ifndef CGS_COMMIT
#define CGS_COMMIT "unknown"
#endif

const char *cgs_commit(void) { return CGS_COMMIT; }
