/* writer.h - recording a dataset, episode by episode.
 *
 *   cgs_writer_create      name and columns
 *   cgs_writer_text, ...   attributes of the file
 *   cgs_writer_begin       opens NAME.part, or continues it; tells how many episodes it has
 *   cgs_writer_add         one finished episode; or, where several threads make episodes,
 *   cgs_writer_pack        validates and compresses it into an entry, in any of them, and
 *   cgs_writer_put         appends that entry, one thread at a time
 *   cgs_writer_finish      makes NAME from NAME.part
 *   cgs_writer_destroy     without finish: NAME.part stays, to be continued
 *
 * See writer.c for what a crash leaves. */
#ifndef CGS_DATA_WRITER_H
#define CGS_DATA_WRITER_H

#include "data/source.h"

/* The public header has the rest of what is listed above. */

/* cgs_writer_add in two halves.  Packing is most of the work (deflate) and does not touch the
 * writer. */
typedef struct cgs_episode {
    int rows;
    uint8_t *bytes; /* (capacity) the first `size` are used; zero the struct before its first use */
    size_t size, capacity;
} cgs_episode;
cgs_status cgs_writer_pack(const cgs_writer *w, int rows, const void *const *data, cgs_episode *e);
cgs_status cgs_writer_put(cgs_writer *w, const cgs_episode *e);
void cgs_episode_free(cgs_episode *e);

#endif /* CGS_DATA_WRITER_H */
