/* machine.h - what a bug report needs: program, libraries, processor, devices, threads. */
#ifndef CGS_CLI_MACHINE_H
#define CGS_CLI_MACHINE_H

#include <cJSON.h>

#include "core/status.h"

cgs_status cgs_machine_describe(cJSON *to);

#endif /* CGS_CLI_MACHINE_H */
