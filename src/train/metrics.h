/* metrics.h - metrics of a training run: metrics.jsonl is authoritative, one line per event; the
 * CSV and the event file come from the same calls. */
#ifndef CGS_TRAIN_METRICS_H
#define CGS_TRAIN_METRICS_H

#include "train/train.h"

typedef struct cgs_metrics cgs_metrics;

/* resume_step: lines of later steps are dropped (that work is repeated); 0 starts empty files. */
cgs_status cgs_metrics_open(cgs_metrics **out, const char *dir, uint64_t resume_step);
cgs_status cgs_metrics_step(cgs_metrics *m, const cgs_step_info *info);
cgs_status cgs_metrics_validation(cgs_metrics *m, uint64_t step, const cgs_validation *v);
cgs_status cgs_metrics_close(cgs_metrics *m); /* accepts NULL */

#endif /* CGS_TRAIN_METRICS_H */
