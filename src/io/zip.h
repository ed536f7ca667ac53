/* zip.h - the members of a zip file.
 *
 * Only what torch and npz files need: members are stored as they are, or, where the caller allows
 * it, deflated; sizes and offsets come from the central directory, ZIP64 records are supported. The
 * file is open as weights; members are read with cgs_weights_pread. */
#ifndef CGS_IO_ZIP_H
#define CGS_IO_ZIP_H

#include <stdbool.h>

#include "io/weights.h"

typedef struct cgs_zip_member {
    const char *name;
    uint64_t header; /* place of its local header */
    uint64_t offset; /* offset of its bytes; 0 until cgs_zip_find looked it up */
    uint64_t bytes;  /* of the contents */
    uint64_t packed; /* in the file: the same unless deflated */
    bool deflated;
    uint32_t crc;
    int range; /* for the caller; -1 at first */
} cgs_zip_member;

typedef struct cgs_zip {
    const cgs_weights *file;
    cgs_zip_member *member; /* (count), sorted by name */
    size_t count;
    bool may_deflate;
    uint64_t end;         /* members lie before this byte */
    unsigned char *names; /* the central directory, which holds the names */
} cgs_zip;

/* Reads the central directory; deflated members are refused unless allowed.  Fine to close after a
 * failure. */
cgs_status cgs_zip_open(cgs_zip *z, const cgs_weights *file, bool may_deflate);
void cgs_zip_close(cgs_zip *z);

/* Finds a member and the offset of its bytes; *out is NULL when there is none of that name.  The
 * member is borrowed from z. */
cgs_status cgs_zip_find(cgs_zip *z, const char *name, cgs_zip_member **out);

#endif /* CGS_IO_ZIP_H */
