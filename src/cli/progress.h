/* progress.h - progress with time left, on standard error: a bar as wide as the terminal, or, where
 * there is none, a line now and then (CGS_PROGRESS). */
#ifndef CGS_CLI_PROGRESS_H
#define CGS_CLI_PROGRESS_H

#include <stdbool.h>

typedef struct cgs_progress {
    const char *label;
    double total, start, last_draw;
    double every; /* seconds between two drawings */
    bool on, bar;
} cgs_progress;

/* quiet silences it */
void cgs_progress_begin(cgs_progress *p, const char *label, double total, bool quiet);
/* note: a short text after the bar, or NULL */
void cgs_progress_update(cgs_progress *p, double done, const char *note);
void cgs_progress_end(cgs_progress *p);

/* Work in phases: another phase starts another bar. */
typedef struct cgs_phases {
    cgs_progress bar;
    const char *phase;
    bool quiet;
} cgs_phases;
/* Returns false when the work is to stop, after Ctrl-C. */
bool cgs_phases_update(cgs_phases *p, const char *phase, double done, double total,
                       const char *note);
/* The same as a callback for the library, without a note; phases: a cgs_phases. */
bool cgs_on_phase(void *phases, const char *phase, double done, double total);

/* From here on informational log lines go to standard error, not only warnings. */
void cgs_show_log(void);
bool cgs_wants_debug(void); /* CGS_LOG=debug: everything, also timings */

#endif /* CGS_CLI_PROGRESS_H */
