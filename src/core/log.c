/* log.c - the replaceable log sink. */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static void default_sink(void *user, int level, const char *line) {
    (void)user;
    if (level >= CGS_WARN) fprintf(stderr, "cgs: %s\n", line);
}

static cgs_log_fn sink = default_sink;
static void *sink_user;

void cgs_set_log(cgs_log_fn fn, void *user) {
    sink = fn ? fn : default_sink;
    sink_user = user;
}

void cgs_log(int level, const char *format, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    sink(sink_user, level, line);
}
