/* resample.c - images at another size, in integer arithmetic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "env/raster.h"

static cgs_status make(cgs_resample *r, int from, int to, int taps) {
    memset(r, 0, sizeof *r);
    if (from < 16 || from > CGS_RESAMPLE_MAX)
        return cgs_fail(CGS_EARG, "cannot resample an image of %d pixels", from);
    r->from = from;
    r->to = to;
    r->taps = taps;
    r->first = calloc((size_t)to, sizeof *r->first);
    r->weight = calloc((size_t)to * (size_t)taps, sizeof *r->weight);
    if (r->first && r->weight) return CGS_OK;
    cgs_resample_free(r);
    return cgs_fail(CGS_ENOMEM, "no memory to bring images from %d to %d pixels", from, to);
}

void cgs_resample_free(cgs_resample *r) {
    free(r->first);
    free(r->weight);
    memset(r, 0, sizeof *r);
}

cgs_status cgs_resample_bilinear(cgs_resample *r, int from, int to) {
    CGS_TRY(make(r, from, to, 2));
    r->bilinear = true;
    r->weight_sum = 2048;
    double scale = (double)from / to;
    for (int i = 0; i < to; i++) {
        float at = (float)((i + 0.5) * scale - 0.5);
        int k = (int)floorf(at);
        float share = at - (float)k;
        if (k < 0) k = 0, share = 0;
        if (k >= from - 1) k = from - 2, share = 1;
        r->first[i] = k;
        r->weight[2 * i] = (int)nearbyintf((1 - share) * 2048);
        r->weight[2 * i + 1] = (int)nearbyintf(share * 2048);
    }
    return CGS_OK;
}

cgs_status cgs_resample_area(cgs_resample *r, int from, int to) {
    CGS_TRY(make(r, from, to, (from + to - 1) / to + 1));
    /* in units of 1/(from to): input k covers [k to, (k+1) to), output i [i from, (i+1) from) */
    r->weight_sum = from;
    for (int i = 0; i < to; i++) {
        int lo = i * from, hi = lo + from, k = lo / to;
        r->first[i] = k;
        for (int t = 0; t < r->taps && (k + t) * to < hi; t++) {
            int a = (k + t) * to, b = a + to;
            r->weight[i * r->taps + t] = (b < hi ? b : hi) - (a > lo ? a : lo);
        }
        /* the last output may have fewer inputs than taps: keep reads inside the image */
        if (k + r->taps > from) {
            int shift = k + r->taps - from;
            int *w = r->weight + i * r->taps;
            memmove(w + shift, w, (size_t)(r->taps - shift) * sizeof *w);
            memset(w, 0, (size_t)shift * sizeof *w);
            r->first[i] = k - shift;
        }
    }
    return CGS_OK;
}

void cgs_resample_touched(const cgs_resample *r, int *lo, int *hi) {
    int a = 0, b = r->to - 1;
    while (a < r->to && r->first[a] + r->taps - 1 < *lo) a++;
    while (b >= 0 && r->first[b] > *hi) b--;
    *lo = a;
    *hi = b;
}

void cgs_resample_needed(const cgs_resample *r, int *lo, int *hi) {
    *lo = r->first[*lo];
    *hi = r->first[*hi] + r->taps - 1;
}

static void run_bilinear(const cgs_resample *r, const uint8_t *in, int channels, cgs_box out,
                         uint8_t *rgb) {
    for (int j = out.y0; j <= out.y1; j++) {
        const uint8_t *row = in + (size_t)r->first[j] * (size_t)r->from * (size_t)channels;
        const uint8_t *next = row + (size_t)r->from * (size_t)channels;
        int v0 = r->weight[2 * j], v1 = r->weight[2 * j + 1];
        uint8_t *to = rgb + ((size_t)j * (size_t)r->to + (size_t)out.x0) * 3;
        for (int i = out.x0; i <= out.x1; i++) {
            size_t at = (size_t)r->first[i] * (size_t)channels;
            int h0 = r->weight[2 * i], h1 = r->weight[2 * i + 1];
            for (int k = 0; k < 3; k++) {
                size_t a = at + (size_t)k, b = a + (size_t)channels;
                int upper = row[a] * h0 + row[b] * h1, lower = next[a] * h0 + next[b] * h1;
                /* the rounding order of 8-bit resizing with 11-bit weights */
                *to++ =
                    (uint8_t)((((v0 * (upper >> 4)) >> 16) + ((v1 * (lower >> 4)) >> 16) + 2) >> 2);
            }
        }
    }
}

static void run_area(const cgs_resample *r, const uint8_t *in, int channels, cgs_box out,
                     uint8_t *rgb) {
    int whole = r->weight_sum * r->weight_sum;
    size_t stride = (size_t)r->from * (size_t)channels;
    size_t begin = (size_t)r->first[out.x0] * (size_t)channels;
    size_t end = (size_t)(r->first[out.x1] + r->taps) * (size_t)channels;
    int column[CGS_RESAMPLE_MAX * 4]; /* one output row, still at full width */
    for (int j = out.y0; j <= out.y1; j++) {
        memset(column + begin, 0, (end - begin) * sizeof *column);
        for (int t = 0; t < r->taps; t++) {
            int v = r->weight[j * r->taps + t];
            if (v == 0) continue;
            const uint8_t *row = in + (size_t)(r->first[j] + t) * stride;
            for (size_t k = begin; k < end; k++) column[k] += v * row[k];
        }
        uint8_t *to = rgb + ((size_t)j * (size_t)r->to + (size_t)out.x0) * 3;
        for (int i = out.x0; i <= out.x1; i++) {
            const int *h = r->weight + i * r->taps;
            const int *p = column + (size_t)r->first[i] * (size_t)channels;
            int sum[3] = {0, 0, 0};
            for (int t = 0; t < r->taps; t++, p += channels)
                for (int k = 0; k < 3; k++) sum[k] += h[t] * p[k];
            for (int k = 0; k < 3; k++) *to++ = (uint8_t)((sum[k] + whole / 2) / whole);
        }
    }
}

void cgs_resample_run(const cgs_resample *r, const uint8_t *in, int channels, cgs_box out,
                      uint8_t *rgb) {
    if (r->bilinear)
        run_bilinear(r, in, channels, out, rgb);
    else
        run_area(r, in, channels, out, rgb);
}

cgs_status cgs_scaled_image_draw(cgs_scaled_image *s, void (*draw)(const void *what, uint8_t *rgb),
                                 const void *what, int native, int side, uint8_t *rgb) {
    if (side == native) {
        draw(what, rgb);
        return CGS_OK;
    }
    if (!s->native) s->native = malloc((size_t)native * (size_t)native * 3);
    if (!s->native)
        return cgs_fail(CGS_ENOMEM, "no memory for an image of %d x %d", native, native);
    if (s->shrink.to != side) {
        cgs_resample_free(&s->shrink);
        CGS_TRY(cgs_resample_area(&s->shrink, native, side));
    }
    draw(what, s->native);
    cgs_resample_run(&s->shrink, s->native, 3, (cgs_box){0, 0, side - 1, side - 1}, rgb);
    return CGS_OK;
}

void cgs_scaled_image_free(cgs_scaled_image *s) {
    cgs_resample_free(&s->shrink);
    free(s->native);
}
