/* cores.c - affinity and quotas.
 *
 * /proc/self/cgroup says in which group the process is, /proc/self/mountinfo where the tree of
 * groups is mounted; the limit of a group binds all groups in it. */
#define _GNU_SOURCE
#include "core/cores.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096, LINE = 4 * PATH };

/* ---- reading --------------------------------------------------------------------------------- */

/* the first line of root/folder/name, without the line end */
static bool first_line(const char *root, const char *folder, const char *name, char *out,
                       size_t size) {
    char path[3 * PATH];
    if ((size_t)snprintf(path, sizeof path, "%s%s/%s", root, folder, name) >= sizeof path)
        return false;
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool ok = fgets(out, (int)size, f) != NULL;
    fclose(f);
    if (ok) out[strcspn(out, "\n")] = '\0';
    return ok;
}

/* "max 100000" or "150000 100000": time in each period, in microseconds */
static double quota_v2(const char *root, const char *group) {
    char line[128];
    double time, period;
    if (!first_line(root, group, "cpu.max", line, sizeof line)) return 0;
    return sscanf(line, "%lf %lf", &time, &period) == 2 && time > 0 && period > 0 ? time / period
                                                                                  : 0;
}

static double quota_v1(const char *root, const char *group) {
    char time[64], period[64];
    if (!first_line(root, group, "cpu.cfs_quota_us", time, sizeof time) ||
        !first_line(root, group, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    double t = strtod(time, NULL), p = strtod(period, NULL); /* -1: no limit */
    return t > 0 && p > 0 ? t / p : 0;
}

/* ---- which groups ---------------------------------------------------------------------------- */

/* one tree of groups that can limit time: the unified one, or that of the controller "cpu" */
typedef struct tree {
    bool unified;
    char group[PATH]; /* of this process, seen from the top of the tree */
} tree;

/* "0::/path" or "4:cpu,cpuacct:/path" */
static bool parse_group(const char *line, tree *t) {
    const char *controllers = strchr(line, ':'), *path;
    if (!controllers || !(path = strchr(++controllers, ':'))) return false;
    size_t n = (size_t)(path - controllers);
    t->unified = n == 0;
    bool cpu = false;
    for (const char *w = controllers; w < path; w += strcspn(w, ",:") + 1)
        cpu = cpu || (strcspn(w, ",:") == 3 && !strncmp(w, "cpu", 3));
    snprintf(t->group, sizeof t->group, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
    return t->unified || cpu;
}

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *w = list; *w; w += strcspn(w, ",\n"), w += *w != '\0')
        if (strcspn(w, ",\n") == length && !strncmp(w, word, length)) return true;
    return false;
}

/* "31 23 0:28 /top /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw": whether this is where tree t
 * is mounted, which part of it (top) and where (at) */
static bool parse_mount(const char *line, const tree *t, char *top, char *at) {
    char type[64], options[1024];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, at) != 2 ||
        sscanf(rest, " - %63s %*s %1023s", type, options) != 2)
        return false;
    return t->unified ? !strcmp(type, "cgroup2")
                      : !strcmp(type, "cgroup") && has_word(options, "cpu");
}

static double smaller(double a, double b) { return a > 0 && (b <= 0 || a < b) ? a : b; }

/* the smallest quota from `group` up to the mount point that its path begins with */
static double walk(const char *root, const tree *t, const char *at, const char *group) {
    char path[2 * PATH];
    double least = 0;
    snprintf(path, sizeof path, "%s%s", at, strcmp(group, "/") ? group : "");
    for (;;) {
        least = smaller(t->unified ? quota_v2(root, path) : quota_v1(root, path), least);
        char *slash = strrchr(path, '/');
        if (!slash || strlen(path) <= strlen(at)) return least;
        *slash = '\0';
    }
}

static double quota_of_tree(const char *root, const tree *t) {
    char path[PATH + 32], top[PATH], at[PATH];
    static const char mounts[] = "/proc/self/mountinfo";
    double least = 0;
    if ((size_t)snprintf(path, sizeof path, "%s%s", root, mounts) >= sizeof path) return 0;
    FILE *f = fopen(path, "r");
    char *line = malloc(LINE);
    while (f && line && fgets(line, LINE, f)) {
        if (!parse_mount(line, t, top, at)) continue;
        /* a container may see a part of the tree only, or its own group as the top */
        size_t n = strcmp(top, "/") ? strlen(top) : 0;
        bool inside = !strncmp(t->group, top, n) && (t->group[n] == '/' || !t->group[n]) &&
                      !strstr(t->group, "/..");
        least = smaller(walk(root, t, at, inside ? t->group + n : ""), least);
    }
    free(line);
    if (f) fclose(f);
    return least;
}

double cgs_cores_quota(const char *root) {
    char path[PATH + 32];
    double least = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= sizeof path) return 0;
    FILE *f = fopen(path, "r");
    char *line = malloc(LINE);
    tree *t = malloc(sizeof *t);
    while (f && line && t && fgets(line, LINE, f))
        if (parse_group(line, t)) least = smaller(quota_of_tree(root, t), least);
    free(t);
    free(line);
    if (f) fclose(f);
    return least;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* a set of 1024 processors is too small for some machines, where the kernel refuses it */
static int allowed(void) {
    int n = 0;
    for (int most = CPU_SETSIZE; n == 0 && most <= CPU_SETSIZE << 6; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        if (!set) break;
        if (sched_getaffinity(0, bytes, set) == 0) n = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
    }
    return n > 0 ? n : 1;
}

cgs_cores cgs_cores_ask(void) {
    cgs_cores c = {.allowed = allowed(), .quota = cgs_cores_quota("")};
    c.use = c.allowed;
    if (c.quota > 0 && c.quota < c.allowed) c.use = c.quota < 1.5 ? 1 : (int)(c.quota + 0.5);
    return c;
}
