/* journal.h - an append-only file, of which a killed process loses at most the entry it was
 * writing.
 *
 *   header  "cgsjrnl1", u64 length, u64 checksum, that many bytes of text
 *   entry   u64 mark, u64 rows, u64 bytes, u64 checksum of the bytes,
 *           u64 checksum of the four words before, then the bytes
 *
 * Reopening scans the entries, verifies every checksum, truncates the file after the last complete
 * entry and continues from there. */
#ifndef CGS_DATA_JOURNAL_H
#define CGS_DATA_JOURNAL_H

#include <stdint.h>

#include "core/status.h"

typedef struct cgs_journal {
    int fd;
    char path[4112];
    uint64_t end;      /* bytes of complete entries                    */
    uint64_t unsynced; /* bytes written since the last fsync              */
    double synced_at;
    int64_t count;    /* entries */
    int64_t capacity; /* of the arrays below */
    uint64_t *offset; /* (count) where the bytes of an entry begin       */
    uint64_t *bytes;  /* (count) */
    int64_t *rows;    /* (count) */
} cgs_journal;

/* Begins a journal, or continues one with the same header.  Another header, or another process
 * writing it, is an error. */
cgs_status cgs_journal_open(cgs_journal *j, const char *path, const char *head);
void cgs_journal_close(cgs_journal *j);

/* Appends an entry; on failure the journal is unchanged. */
cgs_status cgs_journal_add(cgs_journal *j, int64_t rows, const void *data, size_t bytes);

/* Reads entry i into out (bytes[i]) and verifies it. */
cgs_status cgs_journal_read(cgs_journal *j, int64_t i, void *out);

#endif /* CGS_DATA_JOURNAL_H */
