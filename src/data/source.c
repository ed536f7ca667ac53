/* source.c - looking things up in a source, reading many pictures, and the names of number types.
 */
#include "data/source.h"

#include <string.h>

int cgs_source_find(const cgs_source *s, const char *name) {
    for (int i = 0; i < s->column_count; i++)
        if (!strcmp(s->columns[i].name, name) && s->columns[i].dtype != CGS_COL_OTHER &&
            s->columns[i].rows == s->rows)
            return i;
    return -1;
}

int cgs_source_episode(const cgs_source *s, int64_t row) {
    /* offsets need not be in order, so this cannot be a bisection */
    for (int e = 0; e < s->episodes; e++)
        if (row >= s->ep_offset[e] && row - s->ep_offset[e] < s->ep_len[e]) return e;
    return -1;
}

static const struct {
    const char *name;
    size_t size;
} types[] = {[CGS_COL_OTHER] = {"text", 0}, [CGS_COL_F32] = {"f32", 4}, [CGS_COL_F64] = {"f64", 8},
             [CGS_COL_I8] = {"i8", 1},      [CGS_COL_U8] = {"u8", 1},   [CGS_COL_I16] = {"i16", 2},
             [CGS_COL_U16] = {"u16", 2},    [CGS_COL_I32] = {"i32", 4}, [CGS_COL_U32] = {"u32", 4},
             [CGS_COL_I64] = {"i64", 8},    [CGS_COL_U64] = {"u64", 8}};

size_t cgs_column_type_size(cgs_column_type t) { return types[t].size; }
const char *cgs_column_type_name(cgs_column_type t) { return types[t].name; }

int64_t cgs_source_drawn(const cgs_source *s, int64_t row) {
    int e = cgs_source_episode(s, row);
    return e < 0 ? -1 : row - (row - s->ep_offset[e]) % s->pixels_every;
}

cgs_status cgs_source_pictures(const cgs_source *s, const int64_t *row, int count, uint8_t *out) {
    size_t frame = (size_t)s->height * (size_t)s->width * 3;
    cgs_failure failure = {0};
#pragma omp parallel for schedule(dynamic, 4)
    for (int i = 0; i < count; i++)
        cgs_failure_note(&failure, s->read_pixels(s->self, row[i], 1, 1, out + (size_t)i * frame));
    return cgs_failure_report(&failure);
}
