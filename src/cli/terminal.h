/* terminal.h - what the terminal is: its size and its characters. */
#ifndef CGS_CLI_TERMINAL_H
#define CGS_CLI_TERMINAL_H

#include <stdbool.h>

/* The size of a descriptor's terminal; 0 x 0 when it is not a terminal or does not tell. */
void cgs_terminal_size(int fd, int *width, int *height);
/* Is the locale's encoding UTF-8? */
bool cgs_terminal_utf8(void);

#endif /* CGS_CLI_TERMINAL_H */
