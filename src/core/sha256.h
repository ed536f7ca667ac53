/* sha256.h - SHA-256 (FIPS 180-4), which names a file so that anybody can check it: sha256sum. */
#ifndef CGS_CORE_SHA256_H
#define CGS_CORE_SHA256_H

#include <stddef.h>

#include "core/status.h"

/* out: (65) lower-case hexadecimal digits */
void cgs_sha256(const void *data, size_t bytes, char *out);
cgs_status cgs_sha256_file(const char *path, char *out);

#endif /* CGS_CORE_SHA256_H */
