/* build.h - which build runs; stored in datasets, checkpoints and results. */
#ifndef CGS_CORE_BUILD_H
#define CGS_CORE_BUILD_H

const char *cgs_commit(void); /* abbreviated commit, or "unknown" */

#endif /* CGS_CORE_BUILD_H */
