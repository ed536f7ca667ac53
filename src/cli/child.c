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

/* in the child; never returns.  errors: -1 leaves them where the parent's go */
static void become(char *const *word, int count, int log, int errors, pid_t parent) {
    char **argv = calloc((size_t)count + 2, sizeof *argv);
    prctl(PR_SET_PDEATHSIG,
          SIGTERM); /* asks the child to save its work and exit when the parent is killed */
    if (!argv || getppid() != parent || dup2(log, STDOUT_FILENO) < 0) _exit(127);
    if (errors >= 0 && dup2(errors, STDERR_FILENO) < 0) _exit(127);
    argv[0] = (char *)"cgs";
    for (int i = 0; i < count; i++) argv[i + 1] = word[i];
    execv("/proc/self/exe", argv);
    _exit(127);
}

static cgs_status open_log(int *fd, const char *path, int how) {
    *fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
    return *fd < 0 ? cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno)) : CGS_OK;
}

cgs_status cgs_child_start(cgs_child *c, char *const *word, const char *log, const char *errors) {
    int count = 0, out, err = -1;
    while (word[count]) count++;
    *c = (cgs_child){0};
    CGS_TRY(open_log(&out, log, O_APPEND));
    cgs_status rc = errors ? open_log(&err, errors, O_TRUNC) : CGS_OK;
    pid_t parent = getpid(), child = -1;
    if (rc == CGS_OK) {
        child = fork();
        if (child == 0) become(word, count, out, err, parent);
        if (child < 0) rc = cgs_fail(CGS_EIO, "cannot start a process: %s", strerror(errno));
    }
    close(out);
    if (err >= 0) close(err);
    c->pid = child;
    return rc;
}

cgs_status cgs_child_look(cgs_child *c, bool *ended, cgs_child_end *end) {
    int status;
    pid_t got = waitpid(c->pid, &status, WNOHANG);
    *ended = got == c->pid;
    if (got < 0 && errno != EINTR) return cgs_fail(CGS_EIO, "waiting: %s", strerror(errno));
    if (!*ended) return CGS_OK;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    *end = ok             ? CGS_CHILD_OK
           : stopped      ? CGS_CHILD_STOPPED
           : c->timed_out ? CGS_CHILD_TIMEOUT
                          : CGS_CHILD_FAILED;
    return CGS_OK;
}

bool cgs_child_signalled(void) {
    bool was = to_pass_on;
    to_pass_on = 0;
    return was;
}

void cgs_child_stop(cgs_child *c) {
    if (!c->timed_out) kill(c->pid, SIGTERM);
}

void cgs_child_time_out(cgs_child *c) {
    if (c->timed_out || stopped) return;
    c->timed_out = true;
    kill(c->pid, SIGINT);
}

void cgs_child_pause(void) {
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

cgs_status cgs_child_run(char *const *word, const char *log, cgs_child_end *end) {
    cgs_child c;
    bool ended;
    CGS_TRY(cgs_child_start(&c, word, log, NULL));
    for (;;) {
        CGS_TRY(cgs_child_look(&c, &ended, end));
        if (ended) return CGS_OK;
        if (cgs_child_signalled()) cgs_child_stop(&c);
        cgs_child_pause();
    }
}
