/* interrupt.c - see interrupt.h.
 *
 * The handler may do next to nothing, so a thread waits for its sign and then looks whether the
 * program has ended. */
#define _GNU_SOURCE
#include "cli/interrupt.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/made_dirs.h"

enum { PATIENCE = 800 }; /* milliseconds, from the signal to the end */

static volatile sig_atomic_t interrupted;
static atomic_bool saves;
static sem_t sign;

static void on_signal(int sig) {
    if (interrupted) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    interrupted = 1;
    sem_post(&sign);
}

static void *see_to_it(void *unused) {
    struct timespec patience = {.tv_nsec = PATIENCE * 1000000L};
    while (sem_wait(&sign) != 0)
        ;
    nanosleep(&patience, NULL);
    if (saves) {
        fputs("cgs: stopping, and saving what there is; a second signal ends the program at once\n",
              stderr);
        return unused;
    }
    fputs("cgs: stopped; what was finished is kept, and the same command goes on from there\n",
          stderr);
    cgs_remove_empty_dirs();
    _exit(1);
}

static void catch_both(void) {
    struct sigaction a = {.sa_handler = on_signal};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void cgs_catch_interrupt(void) {
    pthread_t thread;
    sigset_t all, before;
    static bool done;
    if (done || sem_init(&sign, 0, 0) != 0) return; /* signals kill, as they do by default */
    sigfillset(&all);                               /* signals are for the other threads */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool watched = pthread_create(&thread, NULL, see_to_it, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!watched) return;
    pthread_detach(thread);
    done = true;
    catch_both();
}

void cgs_catch_interrupt_to_save(void) {
    saves = true;
    cgs_catch_interrupt();
}

bool cgs_interrupted(void) { return interrupted; }
