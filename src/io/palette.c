/* palette.c - colour reduction by splitting boxes.
 *
 * All colours of the image start in one box.  While there are fewer than 256 boxes, the one with
 * the largest squared error along one channel is cut at its mean.  Rendered images have a few
 * colours that fill most of the area, and soft edges between them: those few weigh so much that
 * each gets its own box, and so stays exact. */
#include "io/palette.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct colour {
    uint32_t rgb; /* r << 16 | g << 8 | b */
    uint32_t count;
    uint8_t index; /* in the palette */
} colour;

typedef struct box {
    size_t begin, end; /* of the colour list */
    int channel;       /* of the largest error */
    double error;      /* weighted sum of squares about the mean, there */
    double mean[3];
} box;

struct cgs_quantizer {
    size_t slots;   /* power of two */
    uint32_t *hash; /* (slots) index of a colour + 1, 0 is free */
    colour *list;   /* (pixels) */
    size_t count;
};

static int channel_of(uint32_t rgb, int c) { return (int)(rgb >> (16 - 8 * c) & 255); }

cgs_status cgs_quantizer_create(cgs_quantizer **out, size_t pixels) {
    *out = NULL;
    cgs_quantizer *q = calloc(1, sizeof *q);
    if (q) {
        q->slots = 1024;
        while (q->slots < 2 * pixels) q->slots *= 2;
        q->hash = malloc(q->slots * sizeof *q->hash);
        q->list = malloc(pixels * sizeof *q->list);
    }
    if (!q || !q->hash || !q->list) {
        cgs_quantizer_destroy(q);
        return cgs_fail(CGS_ENOMEM, "no memory for the colours of %zu pixels", pixels);
    }
    *out = q;
    return CGS_OK;
}

void cgs_quantizer_destroy(cgs_quantizer *q) {
    if (!q) return;
    free(q->hash);
    free(q->list);
    free(q);
}

static uint32_t pack(const uint8_t *p) { return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]; }

/* the slot of a colour, or the free one where it belongs */
static uint32_t *slot_of(const cgs_quantizer *q, uint32_t rgb) {
    size_t at = (rgb * 2654435761u >> 7) & (q->slots - 1);
    while (q->hash[at] && q->list[q->hash[at] - 1].rgb != rgb) at = (at + 1) & (q->slots - 1);
    return &q->hash[at];
}

static void count_colours(cgs_quantizer *q, const uint8_t *rgb, size_t n) {
    memset(q->hash, 0, q->slots * sizeof *q->hash);
    q->count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = pack(rgb + 3 * i), *slot = slot_of(q, c);
        if (!*slot) {
            q->list[q->count] = (colour){.rgb = c};
            *slot = (uint32_t)++q->count;
        }
        q->list[*slot - 1].count++;
    }
}

static box measure(const cgs_quantizer *q, size_t begin, size_t end) {
    box b = {.begin = begin, .end = end};
    double weight = 0, sum[3] = {0}, square[3] = {0}; /* whole numbers, so exact in any order */
    for (size_t i = begin; i < end; i++) {
        double w = q->list[i].count;
        weight += w;
        for (int c = 0; c < 3; c++) {
            double v = channel_of(q->list[i].rgb, c);
            sum[c] += w * v;
            square[c] += w * v * v;
        }
    }
    for (int c = 0; c < 3; c++) {
        b.mean[c] = sum[c] / weight;
        double error = square[c] - sum[c] * b.mean[c];
        if (c > 0 && !(error > b.error)) continue;
        b.error = error;
        b.channel = c;
    }
    if (end - begin < 2) b.error = 0;
    return b;
}

/* moves colours above the mean to the end; each side gets at least one colour, as the channel with
 * the largest error has two values */
static size_t cut(cgs_quantizer *q, const box *b) {
    size_t lo = b->begin, hi = b->end;
    while (lo < hi) {
        if (channel_of(q->list[lo].rgb, b->channel) <= b->mean[b->channel]) {
            lo++;
        } else {
            colour swap = q->list[lo];
            q->list[lo] = q->list[--hi];
            q->list[hi] = swap;
        }
    }
    return lo;
}

static void cut_boxes(cgs_quantizer *q, cgs_palette *p) {
    box boxes[256];
    boxes[0] = measure(q, 0, q->count);
    int n = 1;
    while (n < 256) {
        int worst = 0;
        for (int i = 1; i < n; i++)
            if (boxes[i].error > boxes[worst].error) worst = i;
        box b = boxes[worst];
        size_t middle = cut(q, &b);
        if (middle == b.begin || middle == b.end) break; /* every box holds one colour */
        boxes[worst] = measure(q, b.begin, middle);
        boxes[n++] = measure(q, middle, b.end);
    }
    p->count = n;
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++) p->rgb[i][c] = (uint8_t)(boxes[i].mean[c] + 0.5);
        for (size_t k = boxes[i].begin; k < boxes[i].end; k++) q->list[k].index = (uint8_t)i;
    }
}

void cgs_quantize(cgs_quantizer *q, const uint8_t *rgb, size_t n, cgs_palette *p, uint8_t *index) {
    count_colours(q, rgb, n);
    bool exact = q->count <= 256;
    if (exact) {
        p->count = (int)q->count; /* in the order in which they are first seen */
        for (size_t i = 0; i < q->count; i++) {
            for (int c = 0; c < 3; c++) p->rgb[i][c] = (uint8_t)channel_of(q->list[i].rgb, c);
            q->list[i].index = (uint8_t)i;
        }
    } else {
        cut_boxes(q, p);
        /* cutting moved the colours */
        memset(q->hash, 0, q->slots * sizeof *q->hash);
        for (size_t i = 0; i < q->count; i++) *slot_of(q, q->list[i].rgb) = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < n; i++) index[i] = q->list[*slot_of(q, pack(rgb + 3 * i)) - 1].index;
}
