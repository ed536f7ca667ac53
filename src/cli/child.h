/* child.h - runs verbs of this program as child processes, one or several at a time. */
#ifndef CGS_CLI_CHILD_H
#define CGS_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/status.h"

typedef enum cgs_child_end {
    CGS_CHILD_OK,
    CGS_CHILD_FAILED,  /* the reason is among its errors              */
    CGS_CHILD_STOPPED, /* by Ctrl-C or a signal to this process     */
    CGS_CHILD_TIMEOUT  /* cgs_child_time_out asked it to stop        */
} cgs_child_end;

typedef struct cgs_child {
    pid_t pid;
    bool timed_out;
} cgs_child;

/* Starts `cgs word...` (NULL at the end).  What it prints goes to the end of the file `log`; its
 * errors and its progress bar to the file `errors`, or, where that is NULL, to the terminal.  It
 * does not outlive this process. */
cgs_status cgs_child_start(cgs_child *c, char *const *word, const char *log, const char *errors);
/* Does not wait; *end is set when it has ended. */
cgs_status cgs_child_look(cgs_child *c, bool *ended, cgs_child_end *end);
/* Asks it to save its work and exit: after a signal to this process, or when its time is up. */
void cgs_child_stop(cgs_child *c);
void cgs_child_time_out(cgs_child *c);
void cgs_child_pause(void); /* between two looks */

/* Starts one, with its errors on the terminal, and waits for it. */
cgs_status cgs_child_run(char *const *word, const char *log, cgs_child_end *end);

/* Signals that ask to stop set a flag; call before the first start. */
void cgs_child_catch(void);
bool cgs_child_stopped(void);
/* True once after a signal that reached this process alone: the children are to be asked. */
bool cgs_child_signalled(void);

#endif /* CGS_CLI_CHILD_H */
