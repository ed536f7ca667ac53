/* h5.c - lock, silence and last words of libhdf5. */
#include "data/h5.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cgs_h5_lock(void) {
    pthread_mutex_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

void cgs_h5_unlock(void) { pthread_mutex_unlock(&lock); }

/* the first record met walking upwards is the innermost one, which knows the cause */
static herr_t take_first(unsigned n, const H5E_error2_t *e, void *user) {
    if (n == 0 && e->desc) snprintf(user, 160, "%s", e->desc);
    return 0;
}

const char *cgs_h5_reason(void) {
    static _Thread_local char text[160];
    snprintf(text, sizeof text, "unknown cause");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
    return text;
}
