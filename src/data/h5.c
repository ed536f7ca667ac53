/* h5.c - the lock, error messages and child-process test of libhdf5. */
#include "data/h5.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgs/cgs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cgs_h5_lock(void) {
    pthread_mutex_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

void cgs_h5_unlock(void) { pthread_mutex_unlock(&lock); }

/* walking upwards, the first record is the innermost one, which has the cause */
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

bool cgs_h5_object_type(hid_t group, const char *name, H5O_type_t *type) {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t object;
    herr_t rc = H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT);
#else
    H5O_info_t object;
    herr_t rc = H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT);
#endif
    if (rc >= 0) *type = object.type;
    return rc >= 0;
}

static void drop_line(void *user, int level, const char *line) {
    (void)user, (void)level, (void)line;
}

enum { TRIAL_DONE = 0 };

int cgs_h5_try_in_child(void (*attempt)(void *user), void *user, unsigned seconds) {
    cgs_h5_lock(); /* so that no other thread is inside libhdf5 at the fork */
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit limit = {seconds, seconds}, none = {0, 0};
        setrlimit(RLIMIT_CPU, &limit);
        setrlimit(RLIMIT_CORE, &none);
        alarm(20 * seconds);          /* a sanitizer's allocator may have been locked at the fork */
        cgs_set_log(drop_line, NULL); /* the parent will report the same */
        cgs_h5_unlock();
        attempt(user);
        _exit(TRIAL_DONE);
    }
    cgs_h5_unlock();
    if (pid < 0) return 0;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return 0;
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? 0 : WTERMSIG(status);
    return WEXITSTATUS(status) == TRIAL_DONE ? 0 : SIGABRT; /* a sanitizer ended it */
}
