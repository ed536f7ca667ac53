/* crash.c - see crash.h.
 *
 * The message is prepared in advance, as a signal handler may do little more than write. */
#define _GNU_SOURCE
#include "cli/crash.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/build.h"
#include "core/cpu.h"

#define SHOWS "shows whether the set has to do with it"
static struct {
    int number;
    const char *what, *advice;
    char sentence[400];
} signals[] = {{SIGILL, "SIGILL, an instruction that the processor refuses", "lowers the set", ""},
               {SIGSEGV, "SIGSEGV, memory that is not there", SHOWS, ""},
               {SIGBUS, "SIGBUS, memory that cannot be reached", SHOWS, ""},
               {SIGFPE, "SIGFPE, arithmetic that is not possible", SHOWS, ""}};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

/* a stack that has run out is no place for a handler */
static char stack[1 << 16];

static void explain(int number) {
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number != number) continue;
        ssize_t written = write(STDERR_FILENO, signals[i].sentence, strlen(signals[i].sentence));
        (void)written;
    }
    signal(number, SIG_DFL);
    raise(number); /* re-raised when the handler returns: exit status and core dump are the signal's
                    */
}

void cgs_crash_explain(const char *verb) {
    if (cgs_sanitized()) return; /* whose own reports say more */
    const cgs_cpu_answer *cpu = cgs_cpu_ask();
    char advice[128] = "";
    const char *lower = cpu->own > CGS_ISA_BASE ? cgs_isa_name((cgs_isa)(cpu->own - 1)) : NULL;
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    for (int i = 0; i < SIGNALS; i++) {
        if (lower)
            snprintf(advice, sizeof advice, "CGS_ISA=%s in front of the command %s; ", lower,
                     signals[i].advice);
        snprintf(
            signals[i].sentence, sizeof signals[i].sentence,
            "cgs %s: ended by %s (instruction set %s, libraries %s); %sa report of this should "
            "hold what `cgs info` prints\n",
            verb, signals[i].what, cgs_isa_name(cpu->own),
            cpu->libraries == CGS_ISA_AMX ? "as they choose" : cgs_isa_name(cpu->libraries),
            advice);
        struct sigaction a = {.sa_handler = explain, .sa_flags = SA_ONSTACK};
        sigaction(signals[i].number, &a, NULL);
    }
}
