/* loading.c - environments from elsewhere: shared libraries, and tables of the program.
 *
 * Code that was never run before may crash, hang, exit or print.  So the table is opened and tested
 * in a child process first; what it learned comes back in memory that both see. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/sha256.h"
#include "env/self_test.h"

enum { SECONDS = 60 }; /* for the test of an environment, which takes a tenth of one */

#define SYMBOL "cgs_plug_in"

/* what is to be tested: a library, or a table that is here already */
typedef struct candidate {
    const char *path; /* NULL: the table */
    const cgs_env_class *table;
} candidate;

/* what a child reports */
typedef struct report {
    char stage[64]; /* the function that is being called */
    bool finished;
    cgs_status status;
    char text[512];
} report;

static cgs_status open_table(candidate *c) {
    if (!c->path) return CGS_OK;
    void *library = dlopen(c->path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return cgs_fail(CGS_EFORMAT, "cannot be loaded: %.300s", dlerror());
    c->table = dlsym(library, SYMBOL);
    if (!c->table)
        return cgs_fail(CGS_EFORMAT, "exports no \"" SYMBOL "\", so it is no environment");
    return CGS_OK;
}

static cgs_status examine(candidate *c, char *stage, bool call) {
    cgs_env_class copy;
    snprintf(stage, 64, "loading");
    CGS_TRY(open_table(c));
    snprintf(stage, 64, "the table");
    CGS_TRY(cgs_env_check_table(&copy, c->table));
    return call ? cgs_env_self_test(&copy, stage) : CGS_OK;
}

static void restrain(void) {
    const struct rlimit time = {SECONDS, SECONDS}, none = {0, 0};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &none);
    alarm(SECONDS); /* or it waits for something */
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
}

static void in_child(candidate *c, report *r) {
    restrain();
    r->status = examine(c, r->stage, true);
    if (r->status != CGS_OK) snprintf(r->text, sizeof r->text, "%s", cgs_last_error());
    r->finished = true;
    _exit(0); /* not through its destructors */
}

static cgs_status judge(const report *r, int status) {
    if (r->finished) return r->status == CGS_OK ? CGS_OK : cgs_fail(r->status, "%s", r->text);
    if (!WIFSIGNALED(status))
        return cgs_fail(CGS_EFORMAT, "ended the process in its test (in %s)", r->stage);
    int sig = WTERMSIG(status);
    if (sig == SIGALRM || sig == SIGXCPU)
        return cgs_fail(CGS_EFORMAT, "did not come back within %d seconds (in %s)", SECONDS,
                        r->stage);
    return cgs_fail(CGS_EFORMAT, "crashed in its test: %s (in %s)", strsignal(sig), r->stage);
}

static cgs_status try_in_child(candidate *c) {
    char stage[64];
    report *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) return cgs_fail(CGS_ENOMEM, "no memory for its test");
    fflush(NULL); /* or the child writes again what is buffered */
    pid_t pid = fork();
    if (pid == 0) in_child(c, r);
    cgs_status rc = CGS_OK;
    int status = 0;
    if (pid < 0) { /* no processes: its test is the first thing that happens here */
        rc = examine(c, stage, true);
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        rc = judge(r, status);
    }
    munmap(r, sizeof *r);
    return rc;
}

static cgs_status add(candidate *c, const cgs_env_origin *origin) {
    char stage[64];
    cgs_env_class copy;
    CGS_TRY(try_in_child(c));
    CGS_TRY(examine(c, stage, false));
    CGS_TRY(cgs_env_check_table(&copy, c->table));
    return cgs_env_register(&copy, origin);
}

cgs_status cgs_env_add(const cgs_env_class *table) {
    candidate c = {.table = table};
    cgs_env_origin none = {"", ""};
    if (!table) return cgs_fail(CGS_EARG, "environment: no table");
    return add(&c, &none);
}

/* an environment with these bytes is here already */
static const cgs_env_class *loaded_before(const char *sha256) {
    for (int i = 0; i < cgs_env_count(); i++)
        if (!strcmp(cgs_env_origin_of(cgs_env_at(i)).sha256, sha256)) return cgs_env_at(i);
    return NULL;
}

cgs_status cgs_env_load(const char *path, const char **id) {
    candidate c = {.path = path};
    cgs_env_origin origin;
    struct stat s;
    if (!path || !strchr(path, '/'))
        return cgs_fail(CGS_EARG, "%.200s: a plug-in is named by a path with a slash",
                        path ? path : "NULL");
    if (stat(path, &s)) return cgs_fail(CGS_EIO, "%.300s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return cgs_fail(CGS_EFORMAT, "%.300s: not a file", path);
    snprintf(origin.file, sizeof origin.file, "%.127s", strrchr(path, '/') + 1);
    CGS_TRY(cgs_sha256_file(path, origin.sha256));
    const cgs_env_class *known = loaded_before(origin.sha256);
    if (!known) {
        cgs_status rc = add(&c, &origin);
        if (rc != CGS_OK) return cgs_fail_in(rc, path);
        known = loaded_before(origin.sha256);
    }
    if (id) *id = known->id;
    return CGS_OK;
}
