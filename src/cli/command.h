/* command.h - the command line as text, for files that say how they were made. */
#ifndef CGS_CLI_COMMAND_H
#define CGS_CLI_COMMAND_H

#include <stddef.h>

/* "cgs VERB WORD ...", words with spaces or quotes in single quotes; cut at the end of the
 * buffer.  Returns the buffer. */
const char *cgs_command_text(char *out, size_t size, const char *verb, int argc, char **argv);

#endif /* CGS_CLI_COMMAND_H */
