/* threads.h - how many threads loops and matrix products use (one OpenMP pool). */
#ifndef CGS_CORE_THREADS_H
#define CGS_CORE_THREADS_H

/* Sets the number of threads; 0 means one per core the process may use. */
void cgs_set_threads(int n);
int cgs_threads(void);

/* Seconds on a clock that never jumps. */
double cgs_now(void);

#endif /* CGS_CORE_THREADS_H */
