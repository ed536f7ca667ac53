/* gzip.h - reading a text that may be compressed: result lines shrink to a seventh. */
#ifndef CGS_IO_GZIP_H
#define CGS_IO_GZIP_H

#include <stddef.h>

#include "core/status.h"

/* As cgs_read_file; a file that gzip made is unpacked.  limit: of the unpacked bytes. */
cgs_status cgs_read_gzip(const char *path, size_t limit, char **data, size_t *bytes);

#endif /* CGS_IO_GZIP_H */
