/* threads.c - the size of the OpenMP pool, the clock, and peak memory. */
#define _GNU_SOURCE
#include "core/threads.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static int cores(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

void cgs_set_threads(int n) {
    if (n <= 0) n = cores();
#ifdef _OPENMP
    omp_set_num_threads(n);
#endif
}

int cgs_threads(void) {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
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
