/* cache.c - see cache.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "data/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/file.h"
#include "core/log.h"
#include "data/checksum.h"

enum { PATH = 4096 };

cgs_status cgs_cache_beside(char *out, size_t size, const char *dataset, const char *suffix) {
    if ((size_t)snprintf(out, size, "%s.%s", dataset, suffix) >= size)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", dataset);
    return CGS_OK;
}

static bool folder_can_be_written(const char *file) {
    const char *slash = strrchr(file, '/');
    if (!slash) return access(".", W_OK) == 0;
    char *folder = strndup(file, slash == file ? 1 : (size_t)(slash - file));
    bool can = folder && access(folder, W_OK) == 0;
    free(folder);
    return can;
}

static cgs_status usual_folder(char *out, size_t size, const char *dataset) {
    const char *own = cgs_environment(CGS_ENV_CACHE), *cache = cgs_environment(CGS_ENV_XDG_CACHE),
               *home = cgs_environment(CGS_ENV_HOME);
    int length = own     ? snprintf(out, size, "%s", own)
                 : cache ? snprintf(out, size, "%s/cgs", cache)
                 : home  ? snprintf(out, size, "%s/.cache/cgs", home)
                         : -1;
    if (length < 0)
        return cgs_fail(CGS_EIO,
                        "%s: its folder cannot be written; say with --cache DIR or CGS_CACHE where "
                        "what is made from it may lie",
                        dataset);
    return (size_t)length < size ? CGS_OK : cgs_fail(CGS_EARG, "%.64s...: path is too long", out);
}

cgs_status cgs_cache_place(char *out, size_t size, const char *dataset, const char *suffix,
                           const char *folder) {
    char usual[PATH];
    bool asked = folder;
    if (!asked && folder_can_be_written(dataset))
        return cgs_cache_beside(out, size, dataset, suffix);
    if (!asked) CGS_TRY(usual_folder(usual, sizeof usual, dataset));
    if (!asked) folder = usual;
    CGS_TRY(cgs_make_dirs(folder));
    char *full = realpath(dataset, NULL);
    const char *path = full ? full : dataset, *slash = strrchr(dataset, '/');
    unsigned hash = (unsigned)cgs_checksum(path, strlen(path));
    free(full);
    int length =
        snprintf(out, size, "%s/%s-%08x.%s", folder, slash ? slash + 1 : dataset, hash, suffix);
    if ((size_t)length >= size) return cgs_fail(CGS_EARG, "%.64s...: path is too long", folder);
    cgs_log(CGS_INFO, "%s: %s%s", dataset,
            asked ? "cached in " : "its folder cannot be written; cached in ", out);
    return CGS_OK;
}
