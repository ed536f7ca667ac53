/* gzip.h - reading a text that may be compressed: result lines shrink sevenfold. */
#ifndef CGS_IO_GZIP_H
#define CGS_IO_GZIP_H

#include <stddef.h>

#include "core/status.h"

/* Like cgs_read_file, but decompresses gzip files.  limit: of the decompressed bytes. */
cgs_status cgs_read_gzip(const char *path, size_t limit, char **data, size_t *bytes);

#endif /* CGS_IO_GZIP_H */
