/* threads.c - the size of teams, the clock, and peak memory. */
#include "core/threads.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "core/cores.h"

static atomic_int threads; /* 0: not set yet */

void cgs_set_threads(int n) { threads = n > 0 ? n : cgs_cores_ask().use; }

int cgs_threads(void) {
    if (threads == 0) cgs_set_threads(0);
    return threads;
}

double cgs_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cgs_peak_memory(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? 1024.0 * (double)u.ru_maxrss : 0;
}
