/* gzip.c - see gzip.h. */
#include "io/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static cgs_status read_all(gzFile f, const char *path, size_t limit, char **data, size_t *bytes) {
    size_t capacity = 1 << 16;
    for (;;) {
        char *more = realloc(*data, capacity + 1);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu bytes", path, capacity);
        *data = more;
        int n = gzread(f, more + *bytes, (unsigned)(capacity - *bytes));
        if (n < 0) {
            int code;
            const char *why = gzerror(f, &code);
            return cgs_fail(CGS_EFORMAT, "%s: %s", path, code == Z_ERRNO ? strerror(errno) : why);
        }
        *bytes += (size_t)n;
        if (*bytes > limit)
            return cgs_fail(CGS_EFORMAT, "%s: more than the %zu bytes that are expected", path,
                            limit);
        if (*bytes < capacity) break; /* its end */
        capacity *= 2;
        if (capacity > limit)
            capacity = limit + 1; /* one byte more shows that the text is too long */
    }
    (*data)[*bytes] = '\0';
    return CGS_OK;
}

cgs_status cgs_read_gzip(const char *path, size_t limit, char **data, size_t *bytes) {
    *data = NULL;
    *bytes = 0;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return cgs_fail(CGS_EIO, "%s: not a regular file", path);
    gzFile f = gzopen(path, "rb");
    if (!f) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    cgs_status rc = read_all(f, path, limit, data, bytes);
    int closed = gzclose(f);
    if (rc == CGS_OK && closed != Z_OK) /* cut short: its checksum is missing */
        rc = cgs_fail(CGS_EFORMAT, "%s: its compressed data end early", path);
    if (rc != CGS_OK) {
        free(*data);
        *data = NULL;
        *bytes = 0;
    }
    return rc;
}
