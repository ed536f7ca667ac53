/* features.h - a frozen network's features of every image of a dataset, computed once.
 *
 * One memory-mapped file with one row of bytes per row of the dataset.  It belongs to one network
 * (a hash of its weights and input) and to one dataset (name, size and time of the file); a file of
 * others is rebuilt.
 *
 * It is written as PATH.part, which keeps its rows when the writer is killed: the next writer
 * appends after the last complete row.  Two writers of the same file wait for each other. */
#ifndef CGS_DATA_FEATURES_H
#define CGS_DATA_FEATURES_H

#include "core/file.h"
#include "data/source.h"

typedef struct cgs_features cgs_features;

typedef struct cgs_features_key {
    uint64_t network;    /* hash */
    const char *dataset; /* path of the file with the images */
    int64_t rows;
    size_t row_bytes;
} cgs_features_key;

/* CGS_EIO when there is no file; CGS_EFORMAT when it belongs to another network or dataset, or is
 * damaged. */
cgs_status cgs_features_open(cgs_features **out, const char *path, const cgs_features_key *key);
void cgs_features_close(cgs_features *f);
/* Row `row`, after verifying its checksum: out (row_bytes). */
cgs_status cgs_features_read(const cgs_features *f, int64_t row, void *out);

/* Writing: begin, then the rows from `written` on in order, then commit; or pause, which leaves
 * them for the next begin. */
typedef struct cgs_features_writer {
    FILE *file;
    char path[4096], part[4112];
    cgs_features_key key;
    int64_t written;
} cgs_features_writer;
/* Waits for another writer.  Afterwards the file may exist: check before computing anything. */
cgs_status cgs_features_begin(cgs_features_writer *w, const char *path,
                              const cgs_features_key *key);
cgs_status cgs_features_append(cgs_features_writer *w, const void *rows, int count);
cgs_status cgs_features_commit(cgs_features_writer *w);
void cgs_features_pause(cgs_features_writer *w);

#endif /* CGS_DATA_FEATURES_H */
