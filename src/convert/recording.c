/* recording.c - see recording.h. */
#include "convert/recording.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NAMES = 10000000 };

bool cgs_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int cgs_natural_order(const char *a, const char *b) {
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            while (*a == '0' && isdigit((unsigned char)a[1])) a++;
            while (*b == '0' && isdigit((unsigned char)b[1])) b++;
            size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
            if (m != n) return m < n ? -1 : 1;
            int order = strncmp(a, b, m);
            if (order) return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

static int by_name(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int order = cgs_natural_order(x, y);
    return order ? order : strcmp(x, y);
}

static bool ends_with(const char *name, const char *const *endings) {
    size_t n = strlen(name);
    for (; *endings; endings++) {
        size_t m = strlen(*endings);
        if (n > m && !strcmp(name + n - m, *endings)) return true;
    }
    return false;
}

cgs_status cgs_listing_read(cgs_listing *n, const char *folder, const char *const *endings) {
    *n = (cgs_listing){0};
    DIR *d = opendir(folder);
    if (!d) return cgs_fail(CGS_EIO, "%s: %s", folder, strerror(errno));
    cgs_status rc = CGS_OK;
    for (struct dirent *e; rc == CGS_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !ends_with(e->d_name, endings)) continue;
        if (n->count == MOST_NAMES)
            rc = cgs_fail(CGS_EFORMAT, "%s: more than %d files", folder, MOST_NAMES);
        if (rc == CGS_OK && (n->count & (n->count - 1)) == 0) { /* the room doubles */
            char **more = realloc(n->name, (n->count ? 2 * n->count : 1) * sizeof *more);
            if (!more)
                rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its files", folder);
            else
                n->name = more;
        }
        if (rc == CGS_OK && !(n->name[n->count] = strdup(e->d_name)))
            rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its files", folder);
        if (rc == CGS_OK) n->count++;
    }
    closedir(d);
    if (rc != CGS_OK) cgs_listing_free(n);
    if (n->count) qsort(n->name, n->count, sizeof *n->name, by_name);
    return rc;
}

void cgs_listing_free(cgs_listing *n) {
    for (size_t i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
    *n = (cgs_listing){0};
}

static const char *without_prefix(const char *name) {
    static const char *const usual[] = {"observation.", "observation/", "observations/", "obs/"};
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(usual[i]);
        if (!strncmp(name, usual[i], n) && name[n]) return name + n;
    }
    return name;
}

void cgs_recording_add(cgs_recording *r, const char *name, int values, bool wide, int *index) {
    static const char *const reserved[] = {"ep_len", "ep_offset", "episode_idx",
                                           "ep_idx", "step_idx",  "pixels"};
    char clean[CGS_COLUMN_NAME];
    *index = -1;
    if (r->columns == CGS_RECORDED_COLUMNS) return;
    if ((size_t)snprintf(clean, sizeof clean, "%s", without_prefix(name)) >= sizeof clean) return;
    for (char *p = clean; *p; p++)
        if (*p <= ' ' || *p == '/' || *p == 0x7f) *p = '_';
    for (int i = 0; i < 6; i++)
        if (!strcmp(clean, reserved[i])) return;
    for (int i = 0; i < r->columns; i++)
        if (!strcmp(clean, r->column[i].name)) return;
    *index = r->columns++;
    r->column[*index] = (cgs_recorded){.values = values, .wide = wide};
    memcpy(r->column[*index].name, clean, sizeof clean);
}

static cgs_status open_by_kind(cgs_recording *r, const cgs_choices *c) {
    static const char *const arrays[] = {".h5", ".hdf5", ".npz", NULL};
    struct stat st;
    if (stat(r->path, &st) != 0) return cgs_fail(CGS_EIO, "%s: %s", r->path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return cgs_recording_open_arrays(r, c);
    if (cgs_is_lerobot(r->path)) return cgs_recording_open_lerobot(r, c);
    cgs_listing names;
    CGS_TRY(cgs_listing_read(&names, r->path, arrays));
    bool files = names.count > 0;
    cgs_listing_free(&names);
    return files ? cgs_recording_open_arrays(r, c) : cgs_recording_open_folder(r, c);
}

cgs_status cgs_recording_open(cgs_recording **out, const char *path, const cgs_choices *choices) {
    *out = NULL;
    cgs_recording *r = calloc(1, sizeof *r);
    if (!r) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(r->path, sizeof r->path, "%.*s", (int)n, path) >= sizeof r->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    r->action = -1;
    if (rc == CGS_OK) rc = open_by_kind(r, choices);
    if (rc == CGS_OK && r->episodes < 1)
        rc = cgs_fail(CGS_EFORMAT, "%s: no episode found", r->path);
    if (rc != CGS_OK) {
        cgs_recording_close(r);
        return rc;
    }
    *out = r;
    return CGS_OK;
}

void cgs_recording_close(cgs_recording *r) {
    if (!r) return;
    if (r->self) r->close(r->self);
    free(r);
}
