/* architectures.h - cgs bench architectures: planning time of LeWM and DINO-WM beside the paper's.
 * */
#ifndef CGS_CLI_ARCHITECTURES_H
#define CGS_CLI_ARCHITECTURES_H

#include "bench/bench.h"

typedef struct cgs_timing_options {
    const char *size, *precision, *out; /* out: a document to write, or NULL */
    const char *command;                /* as it was typed */
    cgs_timing_work work;
    bool json;
} cgs_timing_options;

/* Measures and prints. */
cgs_status cgs_architectures(cgs_device *d, const cgs_timing_options *o);

#endif /* CGS_CLI_ARCHITECTURES_H */
