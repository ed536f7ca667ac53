/* events.h - scalars for TensorBoard.
 *
 * One file per run of the program: a resumed run opens a new file in the same folder, and its first
 * event tells the reader to discard later steps of the old file. */
#ifndef CGS_IO_EVENTS_H
#define CGS_IO_EVENTS_H

#include <stdint.h>

#include "core/status.h"

typedef struct cgs_events cgs_events;

/* Creates dir/events.out.tfevents.SECONDS.HOST.PID.N, a name that is not taken.
 * first_step: where this run starts; 0 for a new one.  wall_time: seconds since 1970. */
cgs_status cgs_events_open(cgs_events **out, const char *dir, int64_t first_step, double wall_time);

cgs_status cgs_events_scalar(cgs_events *e, int64_t step, const char *tag, float value,
                             double wall_time);

/* Flushes to the operating system, so that a viewer sees the values. */
cgs_status cgs_events_flush(cgs_events *e);

/* The path of the file.  Borrowed. */
const char *cgs_events_path(const cgs_events *e);

/* Flushes and frees; accepts NULL. */
cgs_status cgs_events_close(cgs_events *e);

#endif /* CGS_IO_EVENTS_H */
