/* status.c - the thread's last error sentence. */
#include "core/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[1024] = "no error";

cgs_status cgs_fail(cgs_status code, const char *format, ...) {
    /* format into a second buffer: an argument may be the old sentence itself */
    char next[sizeof last_error];
    va_list ap;
    va_start(ap, format);
    vsnprintf(next, sizeof next, format, ap);
    va_end(ap);
    memcpy(last_error, next, sizeof last_error);
    return code;
}

cgs_status cgs_fail_in(cgs_status code, const char *prefix) {
    return cgs_fail(code, "%s: %s", prefix, last_error);
}

const char *cgs_last_error(void) { return last_error; }

const char *cgs_status_name(cgs_status s) {
    switch (s) {
    case CGS_OK: return "ok";
    case CGS_EARG: return "argument";
    case CGS_ENOMEM: return "memory";
    case CGS_EIO: return "input/output";
    case CGS_EFORMAT: return "format";
    case CGS_EDEVICE: return "device";
    case CGS_ENUMERIC: return "not finite";
    case CGS_ESTOPPED: return "stopped";
    }
    return "unknown";
}

const char *cgs_version(void) { return CGS_VERSION; }

static pthread_mutex_t failures = PTHREAD_MUTEX_INITIALIZER;

void cgs_failure_note(cgs_failure *f, cgs_status code) {
    if (code == CGS_OK) return;
    pthread_mutex_lock(&failures);
    if (f->code == CGS_OK) {
        f->code = code;
        snprintf(f->sentence, sizeof f->sentence, "%s", cgs_last_error());
    }
    pthread_mutex_unlock(&failures);
}

bool cgs_failure_any(cgs_failure *f) {
    pthread_mutex_lock(&failures);
    bool any = f->code != CGS_OK;
    pthread_mutex_unlock(&failures);
    return any;
}

cgs_status cgs_failure_report(const cgs_failure *f) {
    return f->code == CGS_OK ? CGS_OK : cgs_fail(f->code, "%s", f->sentence);
}
