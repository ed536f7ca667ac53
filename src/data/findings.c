/* findings.c - see findings.h. */
#include "data/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void keep(cgs_sentence *list, int *count, const char *format, va_list ap) {
    cgs_sentence one;
    vsnprintf(one.s, sizeof one.s, format, ap);
    for (int i = 0; i < *count && i < CGS_FINDINGS; i++)
        if (!strcmp(one.s, list[i].s)) return; /* seen from another side */
    if (*count < CGS_FINDINGS) list[*count] = one;
    ++*count;
}

void cgs_findings_problem(cgs_findings *f, cgs_status code, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    keep(f->problem, &f->problems, format, ap);
    va_end(ap);
    if (f->problems == 1) f->code = code;
}

void cgs_findings_remark(cgs_findings *f, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    keep(f->remark, &f->remarks, format, ap);
    va_end(ap);
}

cgs_status cgs_findings_failure(cgs_findings *f, cgs_status rc, const char *path) {
    if (rc == CGS_OK || rc == CGS_ENOMEM || rc == CGS_ESTOPPED) return rc;
    const char *error = cgs_last_error();
    size_t n = strlen(path); /* the report begins with it */
    bool named = !strncmp(error, path, n) && !strncmp(error + n, ": ", 2);
    cgs_findings_problem(f, rc, "%s", named ? error + n + 2 : error);
    return CGS_OK;
}

cgs_status cgs_findings_report(const cgs_findings *f, const char *path) {
    if (f->problems == 0) return CGS_OK;
    if (f->problems == 1) return cgs_fail(f->code, "%s: %s", path, f->problem[0].s);
    char all[900];
    size_t used = 0;
    for (int i = 0; i < f->problems && i < CGS_FINDINGS; i++) {
        if (used + strlen(f->problem[i].s) + 40 > sizeof all) {
            snprintf(all + used, sizeof all - used, "; and %d more", f->problems - i);
            break;
        }
        used += (size_t)snprintf(all + used, sizeof all - used, "%s(%d) %s", i ? "; " : "", i + 1,
                                 f->problem[i].s);
    }
    return cgs_fail(f->code, "%s: %d problems: %s", path, f->problems, all);
}
