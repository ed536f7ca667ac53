/* views.c - see views.h. */
#include "train/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/rng.h"
#include "core/team.h"

static void note_identity(cgs_views *v, const char *path, const cgs_source *s) {
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t used = strlen(v->identity);
    snprintf(v->identity + used, sizeof v->identity - used, "%s%.200s %lld bytes %lld rows",
             used ? "; " : "", slash ? slash + 1 : path,
             stat(path, &st) == 0 ? (long long)st.st_size : 0, (long long)s->rows);
}

cgs_status cgs_views_open(cgs_views *v, const char *const *data, int count, const char *cache) {
    *v = (cgs_views){0};
    if (count < 1) return cgs_fail(CGS_EARG, "pretrain: no dataset");
    v->packed = calloc((size_t)count, sizeof(cgs_packed *));
    if (!v->packed) return cgs_fail(CGS_ENOMEM, "pretrain: no memory");
    v->count = count;
    for (int i = 0; i < count; i++) {
        CGS_TRY(cgs_packed_of(&v->packed[i], data[i], cache, 0));
        const cgs_source *s = cgs_packed_source(v->packed[i]);
        if (i == 0) v->side = s->height;
        if (s->height != v->side || s->width != v->side)
            return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, those of %s have %d", s->path,
                            s->width, s->height, data[0], v->side);
        v->rows += s->rows;
        note_identity(v, data[i], s);
    }
    return v->rows > 0 ? CGS_OK : cgs_fail(CGS_EARG, "%s: no frames", data[0]);
}

void cgs_views_close(cgs_views *v) {
    for (int i = 0; i < v->count; i++) cgs_packed_close(v->packed[i]);
    free(v->packed);
    *v = (cgs_views){0};
}

static cgs_status read_frame(const cgs_views *v, int64_t row, uint8_t *out) {
    for (int i = 0; i < v->count; i++) {
        const cgs_source *s = cgs_packed_source(v->packed[i]);
        if (row >= s->rows) {
            row -= s->rows;
            continue;
        }
        int e = s->pixels_every > 1 ? cgs_source_episode(s, row) : -1;
        if (e >= 0) row -= (row - s->ep_offset[e]) % s->pixels_every; /* other rows are black */
        return s->read_pixels(s->self, row, 1, 1, out);
    }
    return cgs_fail(CGS_EARG, "pretrain: no such frame");
}

static void augment(uint8_t *frame, int S, cgs_rng *r) {
    float gain[3], shift[3];
    float contrast = (float)cgs_rng_range(r, 0.7, 1.3), light = (float)cgs_rng_range(r, -30, 30);
    for (int c = 0; c < 3; c++) {
        gain[c] = contrast * (float)cgs_rng_range(r, 0.9, 1.1);
        shift[c] = light + 128 * (1 - contrast);
    }
    for (int i = 0; i < S * S; i++)
        for (int c = 0; c < 3; c++) {
            float v = gain[c] * frame[3 * i + c] + shift[c];
            frame[3 * i + c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    int h = (int)cgs_rng_range(r, 0, S / 4.0), w = (int)cgs_rng_range(r, 0, S / 4.0);
    int y0 = (int)cgs_rng_range(r, 0, S - h), x0 = (int)cgs_rng_range(r, 0, S - w);
    uint8_t grey = (uint8_t)cgs_rng_range(r, 64, 192);
    for (int y = y0; y < y0 + h; y++)
        memset(frame + ((size_t)y * (size_t)S + (size_t)x0) * 3, grey, (size_t)w * 3);
}

typedef struct making {
    const cgs_views *v;
    uint64_t seed, first;
    size_t frame, batch;
    uint8_t *out;
} making;

static void make_pairs(void *context) {
    const making *m = context;
    CGS_SHARE (i, m->batch) {
        cgs_rng r = cgs_rng_stream(m->seed, CGS_STREAM_DATA, m->first + i);
        uint8_t *one = m->out + i * m->frame, *other = m->out + (m->batch + i) * m->frame;
        (void)cgs_rng_f64(&r); /* chose the frame */
        memcpy(other, one, m->frame);
        augment(one, m->v->side, &r);
        augment(other, m->v->side, &r);
    }
}

cgs_status cgs_views_make(const cgs_views *v, uint64_t seed, uint64_t update, int batch,
                          uint8_t *out) {
    size_t frame = (size_t)v->side * (size_t)v->side * 3, B = (size_t)batch;
    uint64_t first = (UINT64_C(1) << 32) + update * B;
    for (size_t i = 0; i < B; i++) {
        cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_DATA, first + i);
        CGS_TRY(read_frame(v, (int64_t)(cgs_rng_f64(&r) * (double)v->rows), out + i * frame));
    }
    making m = {v, seed, first, frame, B, out};
    cgs_together(0, make_pairs, &m);
    return CGS_OK;
}
