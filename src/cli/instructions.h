/* instructions.h - the instruction set that a person asks for. */
#ifndef CGS_CLI_INSTRUCTIONS_H
#define CGS_CLI_INSTRUCTIONS_H

#include "core/status.h"

/* Takes "--isa SET" or "--isa=SET" off the front of the arguments, for this process and those that
 * it starts, and checks that it (or CGS_ISA) can be obeyed. */
cgs_status cgs_take_isa(int *argc, char ***argv);

/* Makes LAPACK's library obey, too; may start the program anew, with the same arguments. */
void cgs_limit_lapack(char **argv);

#endif /* CGS_CLI_INSTRUCTIONS_H */
