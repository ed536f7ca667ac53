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

typedef struct cgs_column_spec {
    const char *name;
    cgs_column_type dtype; /* f32, f64, i32, i64 or u8 */
    int rank;              /* of one row */
    int64_t shape[CGS_COLUMN_RANK];
} cgs_column_spec;

typedef struct cgs_writer cgs_writer;

/* The index columns (ep_len, ep_offset, episode_idx, step_idx) are added by the writer. */
cgs_status cgs_writer_create(cgs_writer **out, const char *path, const cgs_column_spec *columns,
                             int column_count);
void cgs_writer_destroy(cgs_writer *w);

/* Attributes, before begin.  The writer adds code_version and code_commit itself. */
cgs_status cgs_writer_text(cgs_writer *w, const char *name, const char *value);
cgs_status cgs_writer_integer(cgs_writer *w, const char *name, uint64_t value);
cgs_status cgs_writer_real(cgs_writer *w, const char *name, double value);

/* Starts or continues the recording; *episodes: how many it has already.  A NAME.part with other
 * columns or attributes, or an existing NAME, is an error. */
cgs_status cgs_writer_begin(cgs_writer *w, int64_t *episodes);

/* Adds an episode of `rows` rows: T actions make T + 1 rows, and the last row of a
 * floating "action" column must be NaN.  data[c]: (rows, shape of column c), in the
 * column's number type. */
cgs_status cgs_writer_add(cgs_writer *w, int rows, const void *const *data);

/* The same in two halves.  Packing is most of the work (deflate) and does not touch the writer. */
typedef struct cgs_episode {
    int rows;
    uint8_t *bytes; /* (capacity) the first `size` are used; zero the struct before its first use */
    size_t size, capacity;
} cgs_episode;
cgs_status cgs_writer_pack(const cgs_writer *w, int rows, const void *const *data, cgs_episode *e);
cgs_status cgs_writer_put(cgs_writer *w, const cgs_episode *e);
void cgs_episode_free(cgs_episode *e);

/* Writes NAME from all episodes added so far and removes NAME.part. */
cgs_status cgs_writer_finish(cgs_writer *w);

#endif /* CGS_DATA_WRITER_H */
