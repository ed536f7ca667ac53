/* device.c - opening a backend by name. */
#include <string.h>

#include "core/threads.h"
#include "ops/ops.h"

static const cgs_backend *const backends[] = {&cgs_backend_cpu, &cgs_backend_ref};

cgs_status cgs_device_open(cgs_device *d, const char *name, int threads) {
    *d = (cgs_device){0};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (!strcmp(backends[i]->name, name)) d->ops = backends[i];
    if (!d->ops)
        return cgs_fail(CGS_EDEVICE, "no device is called \"%.40s\" in this build", name);
    cgs_set_threads(threads);
    d->threads = cgs_threads();
    cgs_status rc = d->ops->open(d);
    if (rc != CGS_OK) d->ops = NULL;
    return rc;
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
