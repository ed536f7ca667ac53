/* png.c - libpng, with its errors mapped to cgs_status.
 *
 * libpng reports an error by a long jump.  Whatever must survive the jump lives in a
 * struct that the jumping function only points to, so no local variable is at risk. */
#include "io/png.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

#define MAX_SIDE 16384
#define MAX_PIXELS ((size_t)64 << 20)
#define MAX_FILE ((size_t)1 << 30)

typedef struct coder {
    const char *path; /* for messages */
    png_structp png;
    png_infop info;
    char why[128];
    /* encoded bytes: what is read, or what was written */
    uint8_t *data;
    size_t bytes, at, capacity;
    /* pixels */
    uint8_t *rgb; /* (height, width, 3) */
    png_bytep *row;
    int width, height;
} coder;

static void on_error(png_structp png, png_const_charp message) {
    coder *c = png_get_error_ptr(png);
    snprintf(c->why, sizeof c->why, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message; /* a damaged gamma chunk is no reason to refuse an image */
}

static void take_bytes(png_structp png, png_bytep to, size_t n) {
    coder *c = png_get_io_ptr(png);
    if (c->bytes - c->at < n) png_error(png, "the file ends too early");
    memcpy(to, c->data + c->at, n);
    c->at += n;
}

static void give_bytes(png_structp png, png_bytep from, size_t n) {
    coder *c = png_get_io_ptr(png);
    if (n > c->capacity - c->bytes) {
        size_t capacity = 2 * c->capacity + n + 4096;
        uint8_t *more = realloc(c->data, capacity);
        if (!more) png_error(png, "no memory for the encoded image");
        c->data = more;
        c->capacity = capacity;
    }
    memcpy(c->data + c->bytes, from, n);
    c->bytes += n;
}

static void flush_nothing(png_structp png) { (void)png; }

static int alloc_rows(coder *c) {
    size_t line = (size_t)c->width * 3;
    c->row = malloc((size_t)c->height * sizeof *c->row);
    if (!c->rgb) c->rgb = malloc(line * (size_t)c->height);
    if (!c->row || !c->rgb) return 0;
    for (int y = 0; y < c->height; y++) c->row[y] = c->rgb + line * (size_t)y;
    return 1;
}

/* ---- reading ------------------------------------------------------------------- */

static int decode(coder *c) {
    if (setjmp(png_jmpbuf(c->png))) return 0;
    png_set_user_limits(c->png, MAX_SIDE, MAX_SIDE);
    png_set_chunk_cache_max(c->png, 128);
    png_set_chunk_malloc_max(c->png, 8 << 20);
    png_set_read_fn(c->png, c, take_bytes);
    png_read_info(c->png, c->info);

    png_uint_32 width = png_get_image_width(c->png, c->info);
    png_uint_32 height = png_get_image_height(c->png, c->info);
    if ((size_t)width * height > MAX_PIXELS) png_error(c->png, "too many pixels");
    c->width = (int)width;
    c->height = (int)height;

    png_set_expand(c->png);
    png_set_scale_16(c->png);
    png_set_strip_alpha(c->png);
    png_set_gray_to_rgb(c->png);
    png_set_interlace_handling(c->png);
    png_read_update_info(c->png, c->info);
    if (png_get_rowbytes(c->png, c->info) != (size_t)width * 3)
        png_error(c->png, "the rows are not RGB");
    if (!alloc_rows(c)) png_error(c->png, "no memory for the image");
    png_read_image(c->png, c->row);
    png_read_end(c->png, NULL);
    return 1;
}

cgs_status cgs_png_read(const char *path, uint8_t **rgb, int *width, int *height) {
    coder c = {.path = path};
    *rgb = NULL;
    CGS_TRY(cgs_read_file(path, MAX_FILE, (char **)&c.data, &c.bytes));
    cgs_status rc = CGS_OK;
    if (c.bytes < 8 || png_sig_cmp(c.data, 0, 8) != 0) {
        rc = cgs_fail(CGS_EFORMAT, "%s: not a PNG file", path);
        goto done;
    }
    c.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &c, on_error, on_warning);
    if (c.png) c.info = png_create_info_struct(c.png);
    if (!c.info) {
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory to read it", path);
        goto done;
    }
    if (!decode(&c)) {
        rc = cgs_fail(CGS_EFORMAT, "%s: %s", path, c.why);
        goto done;
    }
    *rgb = c.rgb;
    *width = c.width;
    *height = c.height;
    c.rgb = NULL;
done:
    png_destroy_read_struct(&c.png, &c.info, NULL);
    free(c.row);
    free(c.rgb);
    free(c.data);
    return rc;
}

/* ---- writing ------------------------------------------------------------------- */

static int encode(coder *c) {
    if (setjmp(png_jmpbuf(c->png))) return 0;
    png_set_write_fn(c->png, c, give_bytes, flush_nothing);
    png_set_IHDR(c->png, c->info, (png_uint_32)c->width, (png_uint_32)c->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    /* settings that do not depend on the image or on the defaults of a libpng version */
    png_set_compression_level(c->png, 6);
    png_set_compression_strategy(c->png, 0);
    png_set_filter(c->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_write_info(c->png, c->info);
    png_write_image(c->png, c->row);
    png_write_end(c->png, NULL);
    return 1;
}

cgs_status cgs_png_encode(const uint8_t *rgb, int width, int height, uint8_t **data,
                          size_t *bytes) {
    coder c = {.rgb = (uint8_t *)rgb, .width = width, .height = height}; /* only read */
    *data = NULL;
    *bytes = 0;
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE)
        return cgs_fail(CGS_EARG, "an image of %d x %d pixels cannot be written as PNG", width,
                        height);
    cgs_status rc = CGS_OK;
    c.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &c, on_error, on_warning);
    if (c.png) c.info = png_create_info_struct(c.png);
    if (!c.info || !alloc_rows(&c)) {
        rc = cgs_fail(CGS_ENOMEM, "no memory to write an image of %d x %d", width, height);
    } else if (!encode(&c)) {
        rc = cgs_fail(CGS_ENOMEM, "an image of %d x %d: %s", width, height, c.why);
    } else {
        *data = c.data;
        *bytes = c.bytes;
        c.data = NULL;
    }
    png_destroy_write_struct(&c.png, &c.info);
    free(c.row);
    free(c.data);
    return rc;
}

cgs_status cgs_png_write(const char *path, const uint8_t *rgb, int width, int height) {
    uint8_t *data;
    size_t bytes;
    cgs_status rc = cgs_png_encode(rgb, width, height, &data, &bytes);
    if (rc != CGS_OK) return cgs_fail_in(rc, path);
    rc = cgs_write_file(path, data, bytes);
    free(data);
    return rc;
}
