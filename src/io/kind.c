/* kind.c - see kind.h. */
#include "io/kind.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 128 };

typedef struct mark {
    size_t at;
    const char *bytes;
    size_t count;
    const char *what;
} mark;

#define HDF5 "\x89HDF\r\n\x1a\n"

static const mark marks[] = {
    {0, HDF5, 8, "an HDF5 file: cgs data info describes it"},
    {8, "{", 1, "a safetensors file, weights of a model: cgs info describes it"},
    {0, "\x89PNG", 4, "a PNG picture"},
    {0, "GIF8", 4, "a GIF picture"},
    {0, "\xff\xd8\xff", 3, "a JPEG picture"},
    {4, "ftyp", 4, "a video: cgs data convert reads folders of them"},
    {0, "\x1a\x45\xdf\xa3", 4, "a video: cgs data convert reads folders of them"},
    {0, "PAR1", 4, "a Parquet file: cgs data convert reads the LeRobot dataset that it belongs to"},
    {0, "\x93NUMPY", 6, "a NumPy array"},
    {0, "\x1f\x8b", 2, "compressed by gzip"},
    {0, "\x28\xb5\x2f\xfd", 4, "compressed by zstd"},
    {0, "\x80\x02", 2, "a pickle, perhaps weights of an old PyTorch"},
    {0,
     "\x7f"
     "ELF",
     4, "a program or a library"},
};

/* the first member's name tells archives apart */
static const char *kind_of_zip(const uint8_t *head, size_t n) {
    size_t length = n > 30 ? head[26] | (size_t)head[27] << 8 : 0;
    if (length > 4 && 30 + length <= n && !memcmp(head + 30 + length - 4, ".npy", 4))
        return "an archive of NumPy (.npz): cgs data convert reads it";
    return "a zip file, perhaps weights of PyTorch: cgs info describes it";
}

static bool is_text(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!head[i] || (head[i] < 32 && !strchr("\t\r\n", head[i]))) return false;
    return true;
}

static const char *kind_of_folder(const char *path) {
    char config[4096];
    bool fits = (size_t)snprintf(config, sizeof config, "%s/config.json", path) < sizeof config;
    return fits && access(config, F_OK) == 0 ? "a model directory: cgs info describes it"
                                             : "a folder";
}

/* the first bytes; 0 of an empty file and of one that cannot be read */
static size_t read_head(const char *path, uint8_t head[HEAD]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    ssize_t n = fd >= 0 ? read(fd, head, HEAD) : 0;
    if (fd >= 0) close(fd);
    return n > 0 ? (size_t)n : 0;
}

const char *cgs_file_kind(const char *path) {
    uint8_t head[HEAD];
    struct stat st;
    if (stat(path, &st) != 0) return "of an unknown kind";
    if (S_ISDIR(st.st_mode)) return kind_of_folder(path);
    if (!S_ISREG(st.st_mode)) return "a device or a pipe";
    size_t n = read_head(path, head);
    if (n == 0) return st.st_size ? "of an unknown kind" : "empty";
    if (n > 4 && !memcmp(head, "PK\3\4", 4)) return kind_of_zip(head, n);
    bool text = is_text(head, n); /* which may have any letter anywhere */
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const mark *m = &marks[i];
        if (m->at > 0 && text) continue;
        if (m->at + m->count <= n && !memcmp(head + m->at, m->bytes, m->count)) return m->what;
    }
    if (!text) return "of an unknown kind";
    return head[0] == '{' || head[0] == '[' ? "JSON" : "text";
}

bool cgs_file_is_hdf5(const char *path) {
    uint8_t head[HEAD];
    return read_head(path, head) >= 8 && !memcmp(head, HDF5, 8);
}
