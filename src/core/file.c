/* file.c - reading and atomically writing whole files. */
#define _GNU_SOURCE
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/made_dirs.h"

cgs_status cgs_read_file(const char *path, size_t limit, char **data, size_t *bytes) {
    *data = NULL;
    *bytes = 0;
    FILE *f = fopen(path, "rb");
    if (!f) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));

    cgs_status rc = CGS_OK;
    char *p = NULL;
    struct stat st;
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = cgs_fail(CGS_EIO, "%s: not a regular file", path);
        goto done;
    }
    if ((uint64_t)st.st_size > limit) {
        rc = cgs_fail(CGS_EFORMAT, "%s: %lld bytes, at most %zu are expected", path,
                      (long long)st.st_size, limit);
        goto done;
    }
    p = malloc((size_t)st.st_size + 1);
    if (!p) {
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its %lld bytes", path, (long long)st.st_size);
        goto done;
    }
    if (fread(p, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        rc = cgs_fail(CGS_EIO, "%s: could not be read to its end", path);
        goto done;
    }
    p[st.st_size] = '\0';
    *data = p;
    *bytes = (size_t)st.st_size;
    p = NULL;
done:
    free(p);
    fclose(f);
    return rc;
}

cgs_status cgs_map_file(const char *path, size_t least, const uint8_t **map, size_t *bytes) {
    *map = NULL;
    *bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    cgs_status rc = CGS_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)least) {
        rc = cgs_fail(CGS_EFORMAT, "%s: it is too short", path);
    } else {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            rc = cgs_fail(CGS_EIO, "%s: cannot be mapped: %s", path, strerror(errno));
        } else {
            *map = at;
            *bytes = (size_t)st.st_size;
        }
    }
    close(fd);
    return rc;
}

/* Two programs may make the same file, as two trainings do with the packed frames of one dataset:
 * the second waits, or their bytes would mix.  The lock is on the temporary file itself.  A process
 * that gets the lock after a rename holds the finished file, and opens a new one. */
static int open_alone(const char *tmp) {
    for (;;) {
        struct stat mine, there;
        int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) return -1;
        /* some file systems have no locks; a signal ends the waiting */
        bool waited = flock(fd, LOCK_EX) == 0 || errno != EINTR;
        if (waited && (fstat(fd, &mine) != 0 || stat(tmp, &there) != 0 ||
                       mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)) {
            close(fd);
            continue;
        }
        if (waited && ftruncate(fd, 0) == 0) return fd;
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
}

cgs_status cgs_newfile_open(cgs_newfile *n, const char *path) {
    n->f = NULL;
    if (snprintf(n->path, sizeof n->path, "%s", path) >= (int)sizeof n->path)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    snprintf(n->tmp, sizeof n->tmp, "%s.tmp", n->path);
    int fd = open_alone(n->tmp);
    if (fd >= 0) n->f = fdopen(fd, "wb");
    if (n->f) return CGS_OK;
    cgs_status rc = cgs_fail(CGS_EIO, "%s: %s", n->tmp, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

/* Here and below the file is unlinked before the lock is released. */
void cgs_newfile_abandon(cgs_newfile *n) {
    if (!n->f) return;
    unlink(n->tmp);
    fclose(n->f);
    n->f = NULL;
}

/* a rename survives a power cut only once its directory is on disk too */
static void sync_parent(const char *path) {
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash == dir)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        strcpy(dir, ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

cgs_status cgs_newfile_commit(cgs_newfile *n) {
    errno = 0;
    bool failed = ferror(n->f) || fflush(n->f) != 0 || fsync(fileno(n->f)) != 0 ||
                  rename(n->tmp, n->path) != 0;
    if (failed) {
        cgs_status rc =
            cgs_fail(CGS_EIO, "%s: %s", n->path, errno ? strerror(errno) : "write failed");
        cgs_newfile_abandon(n);
        return rc;
    }
    fclose(n->f); /* everything is on disk already */
    n->f = NULL;
    sync_parent(n->path);
    return CGS_OK;
}

cgs_status cgs_replace_file(const char *tmp, const char *path) {
    int fd = open(tmp, O_RDONLY);
    bool failed = fd < 0 || fsync(fd) != 0 || rename(tmp, path) != 0;
    cgs_status rc = failed ? cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno)) : CGS_OK;
    if (fd >= 0) close(fd);
    if (failed)
        unlink(tmp);
    else
        sync_parent(path);
    return rc;
}

cgs_status cgs_write_file(const char *path, const void *data, size_t bytes) {
    cgs_newfile n;
    CGS_TRY(cgs_newfile_open(&n, path));
    if (bytes) fwrite(data, 1, bytes, n.f); /* commit looks at ferror */
    return cgs_newfile_commit(&n);
}

cgs_status cgs_make_dirs(const char *path) {
    char part[4096];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        if (mkdir(part, 0777) == 0)
            cgs_note_made_dir(part);
        else if (errno != EEXIST)
            return cgs_fail(CGS_EIO, "%s: %s", part, strerror(errno));
        if (!end) break;
        *p = end;
    }
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return cgs_fail(CGS_EIO, "%s: not a directory", path);
    return CGS_OK;
}

bool cgs_file_exists(const char *path) { return access(path, F_OK) == 0; }

cgs_status cgs_path_join(char *out, size_t size, const char *dir, const char *name) {
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/";
    if ((size_t)snprintf(out, size, "%s%s%s", dir, slash, name) >= size)
        return cgs_fail(CGS_EARG, "%.64s/%s: path is too long", dir, name);
    return CGS_OK;
}
