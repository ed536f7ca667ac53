/* instructions.h - the instruction set that the user requests. */
#ifndef CGS_CLI_INSTRUCTIONS_H
#define CGS_CLI_INSTRUCTIONS_H

#include "core/status.h"

/* Removes "--isa SET" or "--isa=SET" from the front of the arguments, applies it to this process
 * and its children, and checks that it (or CGS_ISA) is available. */
cgs_status cgs_take_isa(int *argc, char ***argv);

/* Applies it to LAPACK's library too; may re-execute the program with the same arguments. */
void cgs_limit_lapack(char **argv);

#endif /* CGS_CLI_INSTRUCTIONS_H */
