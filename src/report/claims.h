/* claims.h - which of the paper's claims hold, over training seeds and starts.
 *
 * A claim is "CGS is above LeWM" or "CGS is above TS" with one planner at K = 128 in one
 * environment.  It is confirmed where the interval over training seeds and starts (core/mixed.h)
 * lies above zero, reversed where it lies below, and not confirmed otherwise; with one training
 * seed nothing is said about seeds. */
#ifndef CGS_REPORT_CLAIMS_H
#define CGS_REPORT_CLAIMS_H

#include "report/tables.h"

/* Writes Markdown from whatever the runs (count) hold. */
cgs_status cgs_claims_write(const cgs_tables_run *run, int count, const char *path);

#endif /* CGS_REPORT_CLAIMS_H */
