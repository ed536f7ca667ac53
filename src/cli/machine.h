/* machine.h - what a bug report needs: program, libraries, processor, devices, threads. */
#ifndef CGS_CLI_MACHINE_H
#define CGS_CLI_MACHINE_H

#include <cJSON.h>
#include <stdbool.h>

#include "core/status.h"

cgs_status cgs_machine_describe(cJSON *to);

/* The name of the processor, or of the first GPU if `gpu` and the system names one. */
void cgs_machine_processor(char *out, size_t size, bool gpu);

#endif /* CGS_CLI_MACHINE_H */
