/* source.c - looking things up in a source, reading many images, and the names of number types.
 */
#include "data/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/team.h"

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

const char *cgs_column_describe(const cgs_column *c, char *text) {
    size_t used = (size_t)snprintf(text, CGS_COLUMN_TEXT, "\"%s\" %s (%" PRId64, c->name,
                                   cgs_column_type_name(c->dtype), c->rows);
    for (int k = 0; k < c->rank && k < CGS_COLUMN_RANK && used < CGS_COLUMN_TEXT; k++)
        used += (size_t)snprintf(text + used, CGS_COLUMN_TEXT - used, ", %" PRId64, c->shape[k]);
    if (used < CGS_COLUMN_TEXT) snprintf(text + used, CGS_COLUMN_TEXT - used, ")");
    return text;
}

int64_t cgs_source_drawn(const cgs_source *s, int64_t row) {
    int e = cgs_source_episode(s, row);
    return e < 0 ? -1 : row - (row - s->ep_offset[e]) % s->pixels_every;
}

typedef struct reading {
    const cgs_source *s;
    const int64_t *row;
    int count;
    uint8_t *out;
    cgs_failure failure;
} reading;

static void read_images(void *context) {
    reading *r = context;
    size_t frame = (size_t)r->s->height * (size_t)r->s->width * 3;
    CGS_QUEUE (i, (size_t)r->count)
        cgs_failure_note(&r->failure,
                         r->s->read_pixels(r->s->self, r->row[i], 1, 1, r->out + i * frame));
}

cgs_status cgs_source_images(const cgs_source *s, const int64_t *row, int count, uint8_t *out) {
    reading r = {.s = s, .row = row, .count = count, .out = out};
    cgs_together(0, read_images, &r);
    return cgs_failure_report(&r.failure);
}
