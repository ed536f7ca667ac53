/* journal.h - an append-only file of records, from which a killed process loses at most
 * the record it was writing.
 *
 *   head    "cgsjrnl1", u64 length, u64 checksum, that many bytes of text
 *   record  u64 mark, u64 rows, u64 bytes, u64 checksum of the bytes,
 *           u64 checksum of the four words before, then the bytes
 *
 * Opening one again walks the records, checks every checksum, cuts the file after the
 * last whole record and goes on from there. */
#ifndef CGS_DATA_JOURNAL_H
#define CGS_DATA_JOURNAL_H

#include <stdint.h>

#include "core/status.h"

typedef struct cgs_journal {
    int fd;
    char path[4112];
    uint64_t end;      /* bytes that are whole records                    */
    uint64_t unsynced; /* bytes written since the last fsync              */
    double synced_at;
    int64_t count;    /* records */
    int64_t capacity; /* of the arrays below */
    uint64_t *offset; /* (count) where the bytes of a record begin       */
    uint64_t *bytes;  /* (count) */
    int64_t *rows;    /* (count) */
} cgs_journal;

/* Begins a journal, or continues one whose head is the same text.  Another head, or
 * another process at work on it, is an error. */
cgs_status cgs_journal_open(cgs_journal *j, const char *path, const char *head);
void cgs_journal_close(cgs_journal *j);

/* Appends a record; on failure the journal is as it was. */
cgs_status cgs_journal_add(cgs_journal *j, int64_t rows, const void *data, size_t bytes);

/* Reads record i into out (bytes[i]) and checks it. */
cgs_status cgs_journal_read(cgs_journal *j, int64_t i, void *out);

#endif /* CGS_DATA_JOURNAL_H */
