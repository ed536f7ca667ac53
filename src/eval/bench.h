/* bench.h - speed measurements that return numbers; printing is the caller's. */
#ifndef CGS_EVAL_BENCH_H
#define CGS_EVAL_BENCH_H

#include "core/status.h"

/* Gets one result: what was measured, the median of five runs, its unit. */
typedef void (*cgs_bench_fn)(void *user, const char *name, double value, const char *unit);

/* Physics and pictures of every environment on one core, then collection on all.
 * seconds: of one run.  scratch: a file name that does not exist yet, for the collection,
 * removed afterwards; NULL skips it. */
cgs_status cgs_bench_env(double seconds, const char *scratch, cgs_bench_fn fn, void *user);

#endif /* CGS_EVAL_BENCH_H */
