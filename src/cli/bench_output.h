/* bench_output.h - what becomes of the figures of cgs bench: lines on the terminal or in JSON, a
 * file of them, and ratios to those of an earlier file. */
#ifndef CGS_CLI_BENCH_OUTPUT_H
#define CGS_CLI_BENCH_OUTPUT_H

#include "bench/bench.h"
#include "bench/figures.h"
#include "core/file.h"

typedef struct cgs_bench_output {
    const char *bench; /* what is being measured */
    bool json;
    const char *compare; /* file of earlier figures, or NULL */
    cgs_conditions conditions;
    cgs_figures before;
    int compared, differ;
    bool saves;
    cgs_newfile file;
    cgs_status rc; /* of the figures so far */
} cgs_bench_output;

/* Reads the earlier figures and opens the file of the new ones, before anything is measured; both
 * names may be NULL. */
cgs_status cgs_bench_output_open(cgs_bench_output *o, const cgs_device *d, const char *save,
                                 const char *compare);
/* A cgs_bench_fn; user: the output. */
void cgs_bench_output_add(void *user, const char *name, cgs_measured m, const char *unit);
/* Prints what runs the device's matrix products. */
void cgs_bench_output_choices(cgs_bench_output *o, const cgs_device *d);
/* rc: of the measurements.  A file is written only when all of them succeeded. */
cgs_status cgs_bench_output_close(cgs_bench_output *o, cgs_status rc);

#endif /* CGS_CLI_BENCH_OUTPUT_H */
