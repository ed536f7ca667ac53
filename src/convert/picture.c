/* picture.c - see picture.h.  Integer arithmetic: the same bytes on every machine. */
#include "convert/picture.h"

#include <stdlib.h>
#include <string.h>

cgs_status cgs_fit_of(const char *name, cgs_fit *out) {
    static const char *const names[] = {"crop", "pad", "stretch"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *out = (cgs_fit)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "--fit \"%.40s\" is not crop, pad or stretch", name);
}

cgs_status cgs_fitter_create(cgs_fitter *f, cgs_fit fit, int side) {
    *f = (cgs_fitter){.fit = fit, .side = side};
    if (side < 8 || side > 1024)
        return cgs_fail(CGS_EARG, "--size %d is not in 8..1024 pixels", side);
    f->across = malloc((size_t)side * 3 * sizeof *f->across);
    f->sum = malloc((size_t)side * 3 * sizeof *f->sum);
    if (f->across && f->sum) return CGS_OK;
    cgs_fitter_free(f);
    return cgs_fail(CGS_ENOMEM, "no memory for pictures of %d x %d", side, side);
}

void cgs_fitter_free(cgs_fitter *f) {
    free(f->rgb);
    free(f->across);
    free(f->sum);
    *f = (cgs_fitter){0};
}

static void to_rgb(const cgs_picture *p, uint8_t *rgb) {
    const size_t n = (size_t)p->width * (size_t)p->height;
    const size_t pixel = p->planar ? 1 : (size_t)p->channels, plane = p->planar ? n : 1;
    const bool gray = p->channels == 1;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) rgb[3 * i + c] = p->data[i * pixel + (gray ? 0 : c * plane)];
}

/* a rectangle of an image, and one of as many or fewer pixels that it goes to */
typedef struct mapping {
    const uint8_t *from; /* its first pixel */
    size_t from_stride;  /* bytes from row to row */
    int from_width, from_height;
    uint8_t *to;
    size_t to_stride;
    int to_width, to_height;
} mapping;

/* Input i of n covers [i m, (i+1) m) of the common scale n m, output j of m covers [j n, (j+1) n).
 */
static int overlap(int i, int m, int j, int n) {
    int a = i * m > j * n ? i * m : j * n;
    int b = (i + 1) * m < (j + 1) * n ? (i + 1) * m : (j + 1) * n;
    return b - a;
}

static void average_row(const mapping *k, const uint8_t *row, uint32_t *out) {
    const int n = k->from_width, m = k->to_width;
    for (int j = 0; j < m; j++) {
        uint32_t sum[3] = {0, 0, 0};
        for (int i = j * n / m; i < n && i * m < (j + 1) * n; i++) {
            uint32_t weight = (uint32_t)overlap(i, m, j, n);
            for (int c = 0; c < 3; c++) sum[c] += weight * row[3 * i + c];
        }
        memcpy(out + 3 * j, sum, sizeof sum);
    }
}

static void average(const cgs_fitter *f, const mapping *k) {
    const int n = k->from_height, m = k->to_height, values = 3 * k->to_width;
    const uint64_t whole = (uint64_t)k->from_width * (uint64_t)n;
    for (int j = 0; j < m; j++) {
        memset(f->sum, 0, (size_t)values * sizeof *f->sum);
        for (int i = j * n / m; i < n && i * m < (j + 1) * n; i++) {
            uint64_t weight = (uint64_t)overlap(i, m, j, n);
            average_row(k, k->from + (size_t)i * k->from_stride, f->across);
            for (int c = 0; c < values; c++) f->sum[c] += weight * f->across[c];
        }
        for (int c = 0; c < values; c++)
            k->to[(size_t)j * k->to_stride + (size_t)c] =
                (uint8_t)((f->sum[c] + whole / 2) / whole);
    }
}

static mapping map(const cgs_fitter *f, int width, int height, uint8_t *out) {
    const int S = f->side;
    mapping k = {f->rgb, (size_t)width * 3, width, height, out, (size_t)S * 3, S, S};
    if (f->fit == CGS_FIT_CROP) {
        int side = width < height ? width : height;
        k.from += (size_t)((height - side) / 2) * k.from_stride + (size_t)((width - side) / 2) * 3;
        k.from_width = k.from_height = side;
    } else if (f->fit == CGS_FIT_PAD) {
        int longest = width > height ? width : height;
        k.to_width = (2 * S * width + longest) / (2 * longest);
        k.to_height = (2 * S * height + longest) / (2 * longest);
        if (k.to_width < 1) k.to_width = 1;
        if (k.to_height < 1) k.to_height = 1;
        k.to += (size_t)((S - k.to_height) / 2) * k.to_stride + (size_t)((S - k.to_width) / 2) * 3;
    }
    return k;
}

cgs_status cgs_fitter_run(cgs_fitter *f, const cgs_picture *p, uint8_t *out) {
    if (p->width < 1 || p->height < 1 || p->width > CGS_PICTURE_SIDE ||
        p->height > CGS_PICTURE_SIDE)
        return cgs_fail(CGS_EFORMAT, "a picture of %d x %d pixels", p->width, p->height);
    if (p->channels != 1 && p->channels != 3 && p->channels != 4)
        return cgs_fail(CGS_EFORMAT, "a picture of %d channels", p->channels);
    size_t bytes = (size_t)p->width * (size_t)p->height * 3;
    if (bytes > f->rgb_bytes) {
        uint8_t *more = realloc(f->rgb, bytes);
        if (!more) return cgs_fail(CGS_ENOMEM, "no memory for a picture");
        f->rgb = more;
        f->rgb_bytes = bytes;
    }
    to_rgb(p, f->rgb);
    memset(out, 0, (size_t)f->side * (size_t)f->side * 3);
    mapping k = map(f, p->width, p->height, out);
    average(f, &k);
    return CGS_OK;
}
