/* child.c - see child.h.
 *
 * A terminal sends Ctrl-C to parent and child alike, kill only to the process it names.  The parent
 * therefore forwards only signals sent to it alone: a second signal would kill the child before it
 * has saved its work. */
#define _GNU_SOURCE
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/threads.h"

static volatile sig_atomic_t stopped, to_pass_on;

static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)context;
    if (stopped) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    stopped = 1;
    if (info->si_code == SI_USER) to_pass_on = 1;
}

void cgs_child_catch(void) {
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool cgs_child_stopped(void) { return stopped; }

/* in the child; never returns */
static void become(char *const *word, int count, int log, pid_t parent) {
    char **argv = calloc((size_t)count + 2, sizeof *argv);
    prctl(PR_SET_PDEATHSIG,
          SIGTERM); /* asks the child to save its work and exit when the parent is killed */
    if (!argv || getppid() != parent || dup2(log, STDOUT_FILENO) < 0) _exit(127);
    argv[0] = (char *)"cgs";
    for (int i = 0; i < count; i++) argv[i + 1] = word[i];
    execv("/proc/self/exe", argv);
    _exit(127);
}

static cgs_status wait_for(pid_t child, double deadline, cgs_child_end *end) {
    bool timed_out = false;
    for (;;) {
        int status;
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got < 0 && errno != EINTR) return cgs_fail(CGS_EIO, "waiting: %s", strerror(errno));
        if (got == child) {
            bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            *end = ok          ? CGS_CHILD_OK
                   : stopped   ? CGS_CHILD_STOPPED
                   : timed_out ? CGS_CHILD_TIMEOUT
                               : CGS_CHILD_FAILED;
            return CGS_OK;
        }
        if (to_pass_on) {
            to_pass_on = 0;
            if (!timed_out) kill(child, SIGTERM);
        }
        if (deadline > 0 && !timed_out && !stopped && cgs_now() > deadline) {
            timed_out = true;
            kill(child, SIGINT);
        }
        struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
}

cgs_status cgs_child_run(char *const *word, const char *log, double deadline, cgs_child_end *end) {
    int count = 0;
    while (word[count]) count++;
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return cgs_fail(CGS_EIO, "%s: %s", log, strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(word, count, fd, parent);
    close(fd);
    if (child < 0) return cgs_fail(CGS_EIO, "cannot start a process: %s", strerror(errno));
    return wait_for(child, deadline, end);
}
