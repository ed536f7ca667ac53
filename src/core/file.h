/* file.h - whole files, read with a size limit and written so that a crash leaves either the old
 * file or the new one, never half of it. */
#ifndef CGS_CORE_FILE_H
#define CGS_CORE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* Reads a file of at most `limit` bytes into malloc'd memory that ends with an
 * extra NUL byte.  The caller frees *data. */
cgs_status cgs_read_file(const char *path, size_t limit, char **data, size_t *bytes);

/* Maps a file of at least `least` bytes for reading; a shorter one, and what is no file, is
 * CGS_EFORMAT.  The caller unmaps. */
cgs_status cgs_map_file(const char *path, size_t least, const uint8_t **map, size_t *bytes);

/* Writes a whole file or none of it: temporary name, fsync, rename. */
cgs_status cgs_write_file(const char *path, const void *data, size_t bytes);

/* The same for a file written piece by piece: open, write, then commit (fsync
 * and rename into place) or abandon (delete).  Both close f and free the object.
 * Opening waits while another program, or thread, writes the same file. */
typedef struct cgs_newfile {
    FILE *f;
    char path[4096], tmp[4112];
} cgs_newfile;
cgs_status cgs_newfile_open(cgs_newfile *n, const char *path);
cgs_status cgs_newfile_commit(cgs_newfile *n);
void cgs_newfile_abandon(cgs_newfile *n);

/* Puts a finished file in the place of another: fsync, rename, fsync of the directory.
 * On failure tmp is deleted. */
cgs_status cgs_replace_file(const char *tmp, const char *path);

/* Creates a directory and its parents; fine if it exists. */
cgs_status cgs_make_dirs(const char *path);
bool cgs_file_exists(const char *path);

/* "dir/name" into a fixed buffer; CGS_EARG when it does not fit. */
cgs_status cgs_path_join(char *out, size_t size, const char *dir, const char *name);

#endif /* CGS_CORE_FILE_H */
