/* planners.h - the table of planners in help texts. */
#ifndef CGS_CLI_PLANNERS_H
#define CGS_CLI_PLANNERS_H

#include "plan/planners.h"

/* The help of an option that takes planners: "a, b or c (INITIAL)", those that need nothing of
 * `without` (CGS_NEEDS_...).  Completion reads the names from it. */
enum { CGS_PLANNER_HELP = CGS_PLANNER_NAMES + 32 };
const char *cgs_planner_help(char *out, size_t size, const char *initial, unsigned without);

/* "reads samples, iters, sigma, tau"; "reads nothing" where the planner has no settings. */
enum { CGS_PLANNER_READS = 128 };
const char *cgs_planner_reads(char *out, size_t size, const cgs_planner_kind *kind);

#endif /* CGS_CLI_PLANNERS_H */
