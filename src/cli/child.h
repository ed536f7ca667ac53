/* child.h - runs a verb of this program as a child process. */
#ifndef CGS_CLI_CHILD_H
#define CGS_CLI_CHILD_H

#include <stdbool.h>

#include "core/status.h"

typedef enum cgs_child_end {
    CGS_CHILD_OK,
    CGS_CHILD_FAILED,  /* the reason is on standard error             */
    CGS_CHILD_STOPPED, /* by Ctrl-C or a signal to this process     */
    CGS_CHILD_TIMEOUT  /* the deadline passed, and it was asked to stop */
} cgs_child_end;

/* Runs `cgs word...` (NULL at the end).  What it prints goes to the end of the file `log`; its
 * progress bar to the terminal.  At `deadline` (cgs_now; 0: none) it is asked to stop, as by
 * Ctrl-C.  It does not outlive this process. */
cgs_status cgs_child_run(char *const *word, const char *log, double deadline, cgs_child_end *end);

/* Signals that ask to stop are forwarded once; call before the first cgs_child_run. */
void cgs_child_catch(void);
bool cgs_child_stopped(void);

#endif /* CGS_CLI_CHILD_H */
