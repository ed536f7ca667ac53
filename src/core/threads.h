/* threads.h - how many threads share a loop (core/team.h) unless a call says so; time and
 * memory of the process. */
#ifndef CGS_CORE_THREADS_H
#define CGS_CORE_THREADS_H

/* more are a mistake, not a machine */
enum { CGS_THREADS_MOST = 1024 };

/* Sets the number of threads; 0 means one per core that the process may keep busy
 * (cores.h). */
void cgs_set_threads(int n);
int cgs_threads(void);

/* Seconds on a clock that never jumps. */
double cgs_now(void);

/* Peak memory of this process so far, in bytes. */
double cgs_peak_memory(void);

#endif /* CGS_CORE_THREADS_H */
