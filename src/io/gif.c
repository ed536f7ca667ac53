/* gif.c - the GIF89a container and its LZW compression.
 *
 *   header, logical screen, NETSCAPE2.0 loop, then for each frame: graphic control
 *   (delay), image descriptor with a local palette, LZW codes in blocks of 255 bytes */
#include "io/gif.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "io/palette.h"

#define MAX_SIDE 16384
#define MAX_PIXELS ((size_t)64 << 20)
#define CODES 4096
#define SLOTS 16384 /* of the LZW table; at most CODES are used */

struct cgs_gif {
    cgs_newfile file;
    int width, height, frames;
    bool failed;
    cgs_quantizer *colours;
    uint8_t *shown; /* (height, width, 3) the frame before                */
    uint8_t *part;  /* (height, width, 3) the rectangle that changed      */
    uint8_t *index; /* (height, width)    and its place in the palette    */

    /* LZW: a string is a shorter string and one more byte */
    uint32_t key[SLOTS]; /* prefix << 8 | byte, plus one; 0 is free */
    uint16_t code[SLOTS];
    uint32_t bits;
    int bit_count, block;
    uint8_t buffer[255];
};

cgs_status cgs_gif_open(cgs_gif **out, const char *path, int width, int height) {
    *out = NULL;
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE ||
        (size_t)width * (size_t)height > MAX_PIXELS)
        return cgs_fail(CGS_EARG, "%s: %d x %d pixels cannot be a GIF", path, width, height);
    size_t pixels = (size_t)width * (size_t)height;
    cgs_gif *g = calloc(1, sizeof *g);
    if (!g) return cgs_fail(CGS_ENOMEM, "%s: no memory for its frames", path);
    g->width = width;
    g->height = height;
    g->shown = malloc(pixels * 3);
    g->part = malloc(pixels * 3);
    g->index = malloc(pixels);
    cgs_status rc = cgs_quantizer_create(&g->colours, pixels);
    if (rc == CGS_OK && (!g->shown || !g->part || !g->index))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its frames", path);
    if (rc == CGS_OK) rc = cgs_newfile_open(&g->file, path);
    if (rc != CGS_OK) {
        cgs_gif_abandon(g);
        return rc;
    }
    *out = g;
    return CGS_OK;
}

void cgs_gif_abandon(cgs_gif *g) {
    if (!g) return;
    cgs_newfile_abandon(&g->file);
    cgs_quantizer_destroy(g->colours);
    free(g->shown);
    free(g->part);
    free(g->index);
    free(g);
}

/* ---- LZW ----------------------------------------------------------------------- */

static void flush_block(cgs_gif *g) {
    if (g->block == 0) return;
    fputc(g->block, g->file.f);
    fwrite(g->buffer, 1, (size_t)g->block, g->file.f);
    g->block = 0;
}

static void put_code(cgs_gif *g, unsigned code, int width) {
    g->bits |= (uint32_t)code << g->bit_count;
    g->bit_count += width;
    while (g->bit_count >= 8) {
        g->buffer[g->block++] = (uint8_t)g->bits;
        if (g->block == 255) flush_block(g);
        g->bits >>= 8;
        g->bit_count -= 8;
    }
}

static void compress(cgs_gif *g, size_t n, int depth) {
    const unsigned clear = 1u << depth, stop = clear + 1;
    unsigned next = stop + 1, prefix = g->index[0];
    int width = depth + 1;
    fputc(depth, g->file.f);
    g->bits = 0;
    g->bit_count = g->block = 0;
    memset(g->key, 0, sizeof g->key);
    put_code(g, clear, width);
    for (size_t i = 1; i < n; i++) {
        uint32_t key = (prefix << 8 | g->index[i]) + 1;
        size_t at = key * 2654435761u >> 18; /* 14 bits */
        while (g->key[at] && g->key[at] != key) at = (at + 1) % SLOTS;
        if (g->key[at]) {
            prefix = g->code[at];
            continue;
        }
        put_code(g, prefix, width);
        prefix = g->index[i];
        if (next < CODES) {
            g->key[at] = key;
            g->code[at] = (uint16_t)next;
            /* the decoder learns a code one step later, so it widens one step later too */
            if (next++ == 1u << width && width < 12) width++;
        } else {
            put_code(g, clear, width);
            memset(g->key, 0, sizeof g->key);
            next = stop + 1;
            width = depth + 1;
        }
    }
    put_code(g, prefix, width);
    if (next == 1u << width && width < 12) width++;
    put_code(g, stop, width);
    if (g->bit_count > 0) put_code(g, 0, 8 - g->bit_count);
    flush_block(g);
    fputc(0, g->file.f);
}

/* ---- frames -------------------------------------------------------------------- */

typedef struct rect {
    int x, y, width, height;
} rect;

/* the smallest rectangle outside which nothing changed; one pixel at least */
static rect changed(const cgs_gif *g, const uint8_t *rgb) {
    if (g->frames == 0) return (rect){0, 0, g->width, g->height};
    int x0 = g->width, y0 = g->height, x1 = -1, y1 = -1;
    for (int y = 0; y < g->height; y++) {
        const uint8_t *a = rgb + (size_t)y * (size_t)g->width * 3;
        const uint8_t *b = g->shown + (size_t)y * (size_t)g->width * 3;
        int left = 0, right = g->width - 1;
        while (left < g->width && memcmp(a + 3 * left, b + 3 * left, 3) == 0) left++;
        if (left == g->width) continue;
        while (memcmp(a + 3 * right, b + 3 * right, 3) == 0) right--;
        if (left < x0) x0 = left;
        if (right > x1) x1 = right;
        if (y < y0) y0 = y;
        y1 = y;
    }
    if (y1 < 0) return (rect){0, 0, 1, 1};
    return (rect){x0, y0, x1 - x0 + 1, y1 - y0 + 1};
}

static void put16(FILE *f, int v) {
    fputc(v & 255, f);
    fputc(v >> 8 & 255, f);
}

static void put_screen(cgs_gif *g) {
    FILE *f = g->file.f;
    fwrite("GIF89a", 1, 6, f);
    put16(f, g->width);
    put16(f, g->height);
    fwrite("\x70\0\0", 1, 3, f); /* 8 bits per channel, no global palette */
    fwrite("\x21\xFF\x0BNETSCAPE2.0\x03\x01\0\0\0", 1, 19, f); /* repeat forever */
}

cgs_status cgs_gif_add(cgs_gif *g, const uint8_t *rgb, int delay_cs) {
    if (delay_cs < 0 || delay_cs > 65535)
        return cgs_fail(CGS_EARG, "%s: a delay of %d hundredths of a second", g->file.path,
                        delay_cs);
    if (g->frames == 0) put_screen(g);
    rect r = changed(g, rgb);
    for (int y = 0; y < r.height; y++)
        memcpy(g->part + (size_t)y * (size_t)r.width * 3,
               rgb + ((size_t)(r.y + y) * (size_t)g->width + (size_t)r.x) * 3, (size_t)r.width * 3);
    memcpy(g->shown, rgb, (size_t)g->width * (size_t)g->height * 3);

    cgs_palette p = {0};
    size_t pixels = (size_t)r.width * (size_t)r.height;
    cgs_quantize(g->colours, g->part, pixels, &p, g->index);
    int depth = 2; /* the smallest that LZW allows */
    while (1 << depth < p.count) depth++;

    FILE *f = g->file.f;
    fwrite("\x21\xF9\x04\x04", 1, 4, f); /* leave the frame in place */
    put16(f, delay_cs);
    fwrite("\0\0\x2C", 1, 3, f);
    put16(f, r.x);
    put16(f, r.y);
    put16(f, r.width);
    put16(f, r.height);
    fputc(0x80 | (depth - 1), f); /* local palette of 2^depth colours, the rest black */
    fwrite(p.rgb, 3, (size_t)1 << depth, f);
    compress(g, pixels, depth);
    g->frames++;
    if (ferror(f)) {
        g->failed = true;
        return cgs_fail(CGS_EIO, "%s: %s", g->file.path, errno ? strerror(errno) : "write failed");
    }
    return CGS_OK;
}

cgs_status cgs_gif_close(cgs_gif *g) {
    if (!g) return CGS_OK;
    cgs_status rc = CGS_OK;
    if (g->failed) {
        rc = cgs_fail(CGS_EIO, "%s: a frame could not be written", g->file.path);
    } else if (g->frames == 0) {
        rc = cgs_fail(CGS_EARG, "%s: a GIF needs at least one frame", g->file.path);
    } else {
        fputc(0x3B, g->file.f);
        rc = cgs_newfile_commit(&g->file);
    }
    cgs_gif_abandon(g);
    return rc;
}
