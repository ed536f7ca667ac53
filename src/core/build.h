/* build.h - which build runs; the commit is stored in datasets, checkpoints and results. */
#ifndef CGS_CORE_BUILD_H
#define CGS_CORE_BUILD_H

#include <stdbool.h>

const char *cgs_commit(void);   /* abbreviated commit, or "unknown" */
const char *cgs_compiler(void); /* "gcc 12.2.0" */
bool cgs_sanitized(void);       /* whether a sanitizer watches */

#endif /* CGS_CORE_BUILD_H */
