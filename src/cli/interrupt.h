/* interrupt.h - Ctrl-C and SIGTERM, obeyed within a second. */
#ifndef CGS_CLI_INTERRUPT_H
#define CGS_CLI_INTERRUPT_H

#include <stdbool.h>

/* The first signal sets a flag instead of killing the process, so that a long verb can leave a
 * resumable state; a second one kills.  What has not ended after most of a second is ended: files
 * are written whole or not at all, so what was finished is kept. */
void cgs_catch_interrupt(void);
/* The same for work that is lost unless it is saved, as an update of a training: it is waited for,
 * and the waiting is said. */
void cgs_catch_interrupt_to_save(void);

/* Was a signal caught? */
bool cgs_interrupted(void);

#endif /* CGS_CLI_INTERRUPT_H */
