/* device.c - opening a backend by name. */
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/environment.h"
#include "core/log.h"
#include "core/threads.h"
#include "ops/ops.h"

static const cgs_backend *const backends[] = {
    &cgs_backend_cpu,
    &cgs_backend_ref,
#ifdef CGS_WITH_CUDA
    &cgs_backend_cuda,
#endif
};

#ifdef CGS_WITH_CUDA
#define NAMES "cuda (cuda:1, cuda:2, ...), cpu and ref"
#else
#define NAMES "cpu and ref"
#endif

const char *cgs_device_names(void) { return NAMES; }

/* "cuda:1" is the backend "cuda" with index 1; only GPUs have an index */
static const cgs_backend *find(const char *name, int *index) {
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    *index = 0;
    if (colon) {
        char *end;
        long n = strtol(colon + 1, &end, 10);
        if (strncmp(name, "cuda", length) || colon[1] < '0' || colon[1] > '9' || *end || n > 1024)
            return NULL;
        *index = (int)n;
    }
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strlen(backends[i]->name) == length && !strncmp(backends[i]->name, name, length))
            return backends[i];
    return NULL;
}

cgs_status cgs_device_open(cgs_device *d, const char *name, int threads) {
    *d = (cgs_device){0};
    CGS_TRY(cgs_cpu_check());
    if (!strcmp(name, "auto")) {
        int index;
        cgs_status rc = find("cuda", &index) ? cgs_device_open(d, "cuda", threads) : CGS_EDEVICE;
        if (rc == CGS_OK || rc == CGS_EARG) return rc; /* a GPU is there, whatever is wrong */
        if (find("cuda", &index)) cgs_log(CGS_DEBUG, "using the CPU: %s", cgs_last_error());
        return cgs_device_open(d, "cpu", threads);
    }
    d->ops = find(name, &d->index);
    if (!d->ops && !strncmp(name, "cuda", 4))
        return cgs_fail(CGS_EDEVICE, "%.40s: %s", name,
                        find("cuda", &d->index)
                            ? "GPUs are called cuda, cuda:0, cuda:1, ..."
                            : "this program was built without CUDA; it has " NAMES);
    if (!d->ops)
        return cgs_fail(CGS_EDEVICE, "this build has no device \"%.40s\": it has " NAMES, name);
    if (threads < 0 || threads > CGS_THREADS_MOST)
        return cgs_fail(CGS_EARG, "%d threads: 0 (one per core) to %d are possible", threads,
                        CGS_THREADS_MOST);
    cgs_set_threads(threads);
    d->threads = cgs_threads();
    cgs_status rc = d->ops->open(d);
    if (rc != CGS_OK) {
        d->ops = NULL;
        return rc;
    }
    const char *off = cgs_environment(CGS_ENV_VARIANTS_OFF);
    if (off && d->ops->without) rc = d->ops->without(d, off);
    if (rc != CGS_OK) cgs_device_close(d);
    return rc;
}

cgs_status cgs_device_without(cgs_device *d, const char *names) {
    if (d->ops->without) return d->ops->without(d, names);
    return cgs_fail(CGS_EARG, "%s has no variants that can be turned off", d->ops->name);
}

void cgs_device_close(cgs_device *d) {
    if (d->ops) d->ops->close(d);
    *d = (cgs_device){0};
}

const char *cgs_op_name(cgs_opcode op) {
    static const char *const names[] = {
#define X(name, reads_in, reads_out) #name,
        CGS_OPS(X)
#undef X
    };
    return op >= 0 && op < CGS_OP_COUNT ? names[op] : "?";
}
