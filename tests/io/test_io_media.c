/* test_io_media.c - images, animations and event files.  The GIF decoder and the checksum here are
 * independent implementations, so that they can disagree with the library. */
#include "test_io.h"

#include <dirent.h>
#include <math.h>
#include <png.h>
#include <zlib.h>

#include "io/events.h"
#include "io/gif.h"
#include "io/png.h"

/* ---- PNG ----------------------------------------------------------------------- */

/* an image with smooth colours, or with few */
static void paint(uint8_t *rgb, int width, int height, int phase, bool smooth) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *p = rgb + 3 * ((size_t)y * (size_t)width + (size_t)x);
            bool disc = (x - 20 - phase) * (x - 20 - phase) + (y - 16) * (y - 16) < 64;
            p[0] = disc ? 250 : smooth ? (uint8_t)(x * 4) : 245;
            p[1] = disc ? (uint8_t)(40 + (smooth ? y : 0)) : smooth ? (uint8_t)(y * 5) : 245;
            p[2] = disc ? 30 : smooth ? (uint8_t)(x + y) : (uint8_t)(x % 16 * 10);
        }
}

static void png_round_trip(void **state) {
    (void)state;
    const char *path = in_scratch("a.png");
    uint8_t rgb[37 * 23 * 3], *back, *encoded;
    paint(rgb, 37, 23, 0, true);
    assert_int_equal(cgs_png_write(path, rgb, 37, 23), CGS_OK);
    int width, height;
    assert_int_equal(cgs_png_read(path, &back, &width, &height), CGS_OK);
    assert_int_equal(width, 37);
    assert_int_equal(height, 23);
    assert_memory_equal(back, rgb, sizeof rgb);
    free(back);

    /* the same image is the same file, and the one in memory */
    bytes first = read_bytes(path);
    assert_int_equal(cgs_png_write(path, rgb, 37, 23), CGS_OK);
    check_old_file(path, &first);
    size_t n;
    assert_int_equal(cgs_png_encode(rgb, 37, 23, &encoded, &n), CGS_OK);
    assert_int_equal(n, first.n);
    assert_memory_equal(encoded, first.data, n);
    free(encoded);
    drop(&first);
    assert_int_equal(cgs_png_write(path, rgb, 0, 23), CGS_EARG);
    assert_int_equal(cgs_png_write(path, rgb, 37, 1 << 20), CGS_EARG);
    assert_int_equal(cgs_png_write(in_scratch("no/such"), rgb, 37, 23), CGS_EIO);
}

/* writes rows of any kind with libpng; row_bytes of data for each of 4 rows */
static void write_kind(const char *path, int width, int depth, int colour, int interlace,
                       const uint8_t *rows, size_t row_bytes) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)width, 4, depth, colour, interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_color palette[4] = {{1, 2, 3}, {40, 50, 60}, {255, 0, 0}, {0, 9, 255}};
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_byte alpha[2] = {0, 128};
        png_set_PLTE(png, info, palette, 4);
        png_set_tRNS(png, info, alpha, 2, NULL);
    }
    png_write_info(png, info);
    png_bytep row[4];
    for (int i = 0; i < 4; i++) row[i] = (png_bytep)rows + (size_t)i * row_bytes;
    png_write_image(png, row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(f);
}

static void check_pixel(const char *path, int x, int y, int r, int g, int b) {
    uint8_t *rgb;
    int width, height;
    if (cgs_png_read(path, &rgb, &width, &height) != CGS_OK) fail_msg("%s", cgs_last_error());
    const uint8_t *p = rgb + 3 * (y * width + x);
    if (p[0] != r || p[1] != g || p[2] != b)
        fail_msg("%s: pixel (%d, %d) is %d %d %d", path, x, y, p[0], p[1], p[2]);
    free(rgb);
}

static void png_kinds(void **state) {
    (void)state;
    const char *path = in_scratch("kind.png");
    uint8_t rows[4 * 32];
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (uint8_t)i;
    write_kind(path, 8, 8, PNG_COLOR_TYPE_GRAY, 0, rows, 8);
    check_pixel(path, 3, 2, 19, 19, 19);
    write_kind(path, 4, 8, PNG_COLOR_TYPE_RGB_ALPHA, 0, rows, 16);
    check_pixel(path, 2, 1, 24, 25, 26);
    write_kind(path, 4, 8, PNG_COLOR_TYPE_GRAY_ALPHA, 0, rows, 8);
    check_pixel(path, 2, 1, 12, 12, 12);
    write_kind(path, 4, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7, rows, 12);
    check_pixel(path, 3, 3, 45, 46, 47);
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (uint8_t)(i / 2 * 3); /* v * 257 */
    write_kind(path, 4, 16, PNG_COLOR_TYPE_RGB, 0, rows, 24);
    check_pixel(path, 1, 0, 9, 12, 15);
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = 0x1B; /* 0 1 2 3 */
    write_kind(path, 8, 2, PNG_COLOR_TYPE_PALETTE, 0, rows, 2);
    check_pixel(path, 5, 0, 40, 50, 60);
    check_pixel(path, 3, 3, 0, 9, 255);
    write_kind(path, 8, 1, PNG_COLOR_TYPE_GRAY, 0, rows, 1); /* 00011011 */
    check_pixel(path, 2, 0, 0, 0, 0);
    check_pixel(path, 3, 0, 255, 255, 255);
}

static bool try_png(const char *path) {
    uint8_t *rgb;
    int width, height;
    cgs_status rc = cgs_png_read(path, &rgb, &width, &height);
    assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
    assert_true((rc == CGS_OK) == (rgb != NULL));
    if (rc == CGS_OK) assert_true(width == 9 && height == 4);
    free(rgb);
    return rc == CGS_OK;
}

static void png_damaged(void **state) {
    (void)state;
    const char *path = in_scratch("damaged.png");
    uint8_t rgb[9 * 4 * 3];
    paint(rgb, 9, 4, 0, true);
    assert_int_equal(cgs_png_write(path, rgb, 9, 4), CGS_OK);
    damage(path, try_png);

    /* sizes that only the checksum agrees with */
    static const uint32_t SIZES[][2] = {
        {0, 4}, {9, 0}, {16385, 4}, {0x7FFFFFFF, 0x7FFFFFFF}, {16384, 16384}, {9, 5}, {10, 4}};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        bytes b = read_bytes(path);
        for (int k = 0; k < 8; k++)
            b.data[16 + k] = (unsigned char)(SIZES[i][k / 4] >> (24 - 8 * (k % 4)));
        uint32_t crc = (uint32_t)crc32(0, b.data + 12, 17);
        for (int k = 0; k < 4; k++) b.data[29 + k] = (unsigned char)(crc >> (24 - 8 * k));
        const char *lie = in_scratch("lie.png");
        write_bytes(lie, &b);
        drop(&b);
        uint8_t *out;
        int width, height;
        assert_int_equal(cgs_png_read(lie, &out, &width, &height), CGS_EFORMAT);
        assert_non_null(strstr(cgs_last_error(), lie));
    }
    uint8_t *out;
    int width, height;
    assert_int_equal(cgs_png_read(in_scratch("missing"), &out, &width, &height), CGS_EIO);
}

/* ---- GIF ----------------------------------------------------------------------- */

typedef struct player {
    bytes file;
    size_t at;
    int width, height, frames, delay[64];
    uint8_t *screen[64]; /* (height, width, 3) after each frame */
} player;

static unsigned take(player *p, int n) {
    unsigned v = 0;
    for (int i = 0; i < n; i++) {
        assert_true(p->at < p->file.n);
        v |= (unsigned)p->file.data[p->at++] << 8 * i;
    }
    return v;
}

/* LZW: n indices out of blocks */
static void unpack(player *p, uint8_t *index, size_t n) {
    static uint16_t prefix[4096];
    static uint8_t last[4096], stack[4097];
    unsigned depth = take(p, 1), clear = 1u << depth, next = clear + 2, old = 4096;
    unsigned width = depth + 1, bits = 0, have = 0, left = 0, first = 0;
    size_t done = 0;
    for (unsigned i = 0; i < clear; i++) last[i] = (uint8_t)i;
    for (;;) {
        while (have < width) {
            if (left == 0) left = take(p, 1);
            assert_true(left > 0); /* the stop code must come first */
            bits |= take(p, 1) << have;
            have += 8;
            left--;
        }
        unsigned code = bits & ((1u << width) - 1), top = 0;
        bits >>= width;
        have -= width;
        if (code == clear) {
            next = clear + 2;
            width = depth + 1;
            old = 4096;
            continue;
        }
        if (code == clear + 1) break;
        assert_true(code < next || (code == next && old != 4096));
        unsigned c = code;
        if (code == next) {
            stack[top++] = (uint8_t)first;
            c = old;
        }
        for (; c >= clear; c = prefix[c]) stack[top++] = last[c];
        first = last[c];
        stack[top++] = (uint8_t)first;
        if (old != 4096 && next < 4096) {
            prefix[next] = (uint16_t)old;
            last[next++] = (uint8_t)first;
            if (next == 1u << width && width < 12) width++;
        }
        old = code;
        assert_true(done + top <= n);
        while (top) index[done++] = stack[--top];
    }
    assert_int_equal(done, n);
    assert_int_equal(left, 0);
    assert_int_equal(take(p, 1), 0);
}

static player play(const char *path) {
    player p = {.file = read_bytes(path)};
    assert_memory_equal(p.file.data, "GIF89a", 6);
    p.at = 6;
    p.width = (int)take(&p, 2);
    p.height = (int)take(&p, 2);
    assert_int_equal(take(&p, 3) & 0x80, 0);
    assert_memory_equal(p.file.data + p.at, "\x21\xFF\x0BNETSCAPE2.0\x03\x01\0\0\0", 19);
    p.at += 19;
    size_t bytes_n = (size_t)p.width * (size_t)p.height * 3;
    unsigned tag;
    while ((tag = take(&p, 1)) != 0x3B) {
        assert_int_equal(tag, 0x21);
        assert_int_equal(take(&p, 3), 0x0404F9); /* control, 4 bytes, keep the frame */
        p.delay[p.frames] = (int)take(&p, 2);
        assert_int_equal(take(&p, 2), 0);
        assert_int_equal(take(&p, 1), 0x2C);
        size_t x0 = take(&p, 2), y0 = take(&p, 2), w = take(&p, 2), h = take(&p, 2);
        unsigned flags = take(&p, 1);
        assert_int_equal(flags & 0xF8, 0x80);
        assert_true(w > 0 && h > 0 && x0 + w <= (size_t)p.width && y0 + h <= (size_t)p.height);
        const uint8_t *palette = p.file.data + p.at;
        unsigned colours = 2u << (flags & 7);
        p.at += 3 * (size_t)colours;
        uint8_t *index = malloc(w * h), *screen = calloc(bytes_n, 1);
        if (p.frames) memcpy(screen, p.screen[p.frames - 1], bytes_n);
        unpack(&p, index, w * h);
        for (size_t i = 0; i < w * h; i++) {
            assert_true(index[i] < colours);
            memcpy(screen + 3 * ((y0 + i / w) * (size_t)p.width + x0 + i % w),
                   palette + 3 * (size_t)index[i], 3);
        }
        free(index);
        p.screen[p.frames++] = screen;
        assert_true(p.frames < 64);
    }
    assert_int_equal(p.at, p.file.n);
    return p;
}

static void stop(player *p) {
    for (int i = 0; i < p->frames; i++) free(p->screen[i]);
    drop(&p->file);
}

static void gif_exact(void **state) {
    (void)state;
    const char *path = in_scratch("few.gif");
    enum { W = 224, H = 200, N = 5 };
    static uint8_t rgb[N][W * H * 3];
    cgs_gif *g;
    assert_int_equal(cgs_gif_open(&g, path, W, H), CGS_OK);
    for (int i = 0; i < N; i++) {
        paint(rgb[i], W, H, i == 3 ? 6 : 3 * i, false); /* frame 3 repeats frame 2 */
        assert_int_equal(cgs_gif_add(g, rgb[i], 10 + i), CGS_OK);
        assert_false(cgs_file_exists(path)); /* until it is whole */
    }
    assert_int_equal(cgs_gif_close(g), CGS_OK);
    player p = play(path);
    assert_int_equal(p.frames, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(p.delay[i], 10 + i);
        assert_memory_equal(p.screen[i], rgb[i], sizeof rgb[i]);
    }
    stop(&p);
}

/* one colour, two colours, and 256: every depth of palette and code */
static void gif_depths(void **state) {
    (void)state;
    const char *path = in_scratch("depth.gif");
    static uint8_t rgb[64 * 64 * 3];
    cgs_rng r = cgs_rng_stream(2, CGS_STREAM_TEST, 0);
    for (int colours = 1; colours <= 256; colours = colours < 4 ? colours + 1 : 2 * colours) {
        for (int i = 0; i < 64 * 64; i++) {
            int c = (int)cgs_rng_below(&r, (uint64_t)colours);
            rgb[3 * i] = (uint8_t)c;
            rgb[3 * i + 1] = (uint8_t)(255 - c);
            rgb[3 * i + 2] = 7;
        }
        cgs_gif *g;
        assert_int_equal(cgs_gif_open(&g, path, 64, 64), CGS_OK);
        assert_int_equal(cgs_gif_add(g, rgb, 0), CGS_OK);
        assert_int_equal(cgs_gif_close(g), CGS_OK);
        player p = play(path);
        assert_memory_equal(p.screen[0], rgb, sizeof rgb);
        stop(&p);
    }
    /* the smallest image */
    cgs_gif *g;
    assert_int_equal(cgs_gif_open(&g, path, 1, 1), CGS_OK);
    assert_int_equal(cgs_gif_add(g, rgb, 65535), CGS_OK);
    assert_int_equal(cgs_gif_close(g), CGS_OK);
    player p = play(path);
    assert_memory_equal(p.screen[0], rgb, 3);
    stop(&p);
}

static void gif_reduced(void **state) {
    (void)state;
    const char *path = in_scratch("many.gif");
    enum { W = 64, H = 50 };
    static uint8_t rgb[2][W * H * 3];
    bytes first = {0};
    for (int turn = 0; turn < 2; turn++) {
        cgs_gif *g;
        assert_int_equal(cgs_gif_open(&g, path, W, H), CGS_OK);
        for (int i = 0; i < 2; i++) {
            paint(rgb[i], W, H, 9 * i, true);
            assert_int_equal(cgs_gif_add(g, rgb[i], 5), CGS_OK);
        }
        assert_int_equal(cgs_gif_close(g), CGS_OK);
        if (turn)
            check_old_file(path, &first); /* the same frames, the same bytes */
        else
            first = read_bytes(path);
    }
    drop(&first);
    player p = play(path);
    for (int i = 0; i < 2; i++) {
        double square = 0;
        int worst = 0;
        for (size_t k = 0; k < sizeof rgb[i]; k++) {
            int d = abs(p.screen[i][k] - rgb[i][k]);
            square += d * d;
            if (d > worst) worst = d;
        }
        double rms = sqrt(square / sizeof rgb[i]);
        printf("    frame %d: root mean square error %.2f of 255, worst %d\n", i, rms, worst);
        assert_true(rms < 6 && worst < 32);
    }
    stop(&p);

    /* colours that fill most of the image survive exactly among many that do not */
    static uint8_t mixed[W * H * 3];
    for (int i = 0; i < W * H; i++) {
        static const uint8_t FLAT[3][3] = {{17, 34, 51}, {200, 100, 50}, {255, 255, 255}};
        memcpy(mixed + 3 * i, i % 5 ? FLAT[i % 3] : rgb[0] + 3 * i, 3);
    }
    cgs_gif *g;
    assert_int_equal(cgs_gif_open(&g, path, W, H), CGS_OK);
    assert_int_equal(cgs_gif_add(g, mixed, 5), CGS_OK);
    assert_int_equal(cgs_gif_close(g), CGS_OK);
    p = play(path);
    for (int i = 0; i < W * H; i++)
        if (i % 5) assert_memory_equal(p.screen[0] + 3 * i, mixed + 3 * i, 3);
    stop(&p);
}

static void gif_arguments(void **state) {
    (void)state;
    cgs_gif *g;
    uint8_t rgb[3] = {0};
    const char *path = in_scratch("none.gif");
    assert_int_equal(cgs_gif_open(&g, path, 0, 5), CGS_EARG);
    assert_null(g);
    assert_int_equal(cgs_gif_open(&g, path, 70000, 5), CGS_EARG);
    assert_int_equal(cgs_gif_open(&g, in_scratch("no/such.gif"), 1, 1), CGS_EIO);
    assert_null(g);
    assert_int_equal(cgs_gif_open(&g, path, 1, 1), CGS_OK);
    assert_int_equal(cgs_gif_close(g), CGS_EARG); /* no frame */
    assert_int_equal(cgs_gif_open(&g, path, 1, 1), CGS_OK);
    assert_int_equal(cgs_gif_add(g, rgb, -1), CGS_EARG);
    cgs_gif_abandon(g);
    assert_false(cgs_file_exists(path));
    assert_int_equal(cgs_gif_close(NULL), CGS_OK);
}

/* ---- event files --------------------------------------------------------------- */

static uint32_t crc32c(const uint8_t *p, size_t n) {
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
            table[i] = c;
        }
    uint32_t c = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) c = table[(c ^ p[i]) & 255] ^ c >> 8;
    return c ^ 0xFFFFFFFFu;
}

static uint64_t number(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static void check_crc(const uint8_t *p, size_t n) {
    uint32_t c = crc32c(p, n);
    assert_int_equal((uint32_t)number(p + n, 4), (uint32_t)((c >> 15 | c << 17) + 0xA282EAD8u));
}

/* the next message of a file */
static bytes record(const bytes *file, size_t *at) {
    assert_true(*at + 16 <= file->n);
    size_t n = number(file->data + *at, 8);
    check_crc(file->data + *at, 8);
    assert_true(n <= file->n - *at - 16);
    check_crc(file->data + *at + 12, n);
    bytes b = {.data = file->data + *at + 12, .n = n};
    *at += 16 + n;
    return b;
}

/* the fields of a message that we know of, by number */
typedef struct fields {
    uint64_t value[8]; /* varint, fixed32 or fixed64 */
    bytes part[8];
    bool has[8];
} fields;

static fields parse(bytes b) {
    fields f = {0};
    for (size_t at = 0; at < b.n;) {
        unsigned key = b.data[at++], field = key >> 3, wire = key & 7;
        assert_true(field > 0 && field < 8 && !f.has[field]);
        f.has[field] = true;
        uint64_t v = 0;
        if (wire == 0 || wire == 2)
            for (int shift = 0;; shift += 7) {
                assert_true(at < b.n && shift < 64);
                v |= (uint64_t)(b.data[at] & 127) << shift;
                if (!(b.data[at++] & 128)) break;
            }
        size_t n = wire == 1 ? 8 : wire == 5 ? 4 : wire == 2 ? v : 0;
        assert_true(wire == 0 || wire == 1 || wire == 2 || wire == 5);
        assert_true(n <= b.n - at);
        f.value[field] = wire == 0 || wire == 2 ? v : number(b.data + at, (int)n);
        f.part[field] = (bytes){.data = b.data + at, .n = n};
        at += n;
    }
    return f;
}

static void check_event(bytes message, double wall_time, uint64_t step) {
    fields f = parse(message);
    double t;
    memcpy(&t, &f.value[1], sizeof t);
    assert_true(f.has[1] && t == wall_time);
    assert_int_equal(f.value[2], step);
}

static void check_scalar(bytes message, double wall_time, uint64_t step, const char *tag,
                         float value) {
    check_event(message, wall_time, step);
    fields f = parse(message), v = parse(parse(f.part[5]).part[1]);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    assert_true(f.has[5] && v.has[1] && v.has[2]);
    assert_int_equal(v.part[1].n, strlen(tag));
    assert_memory_equal(v.part[1].data, tag, strlen(tag));
    assert_int_equal(v.value[2], bits);
}

static int count_files(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, "events.out.tfevents.", 20) == 0;
    closedir(d);
    return n;
}

static void event_file(void **state) {
    (void)state;
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xE3069283);
    const char *dir = in_scratch("run/events");
    char long_tag[1025];
    memset(long_tag, 't', 1024);
    long_tag[1024] = '\0';
    cgs_events *e;
    assert_int_equal(cgs_events_open(&e, dir, 0, 1700000000.25), CGS_OK);
    assert_int_equal(cgs_events_scalar(e, 1, "loss/pred", 0.5f, 1700000001.5), CGS_OK);
    assert_int_equal(cgs_events_scalar(e, INT64_C(1) << 40, "lr", -0.0f, 1700000002), CGS_OK);
    assert_int_equal(cgs_events_scalar(e, 300, long_tag, NAN, 1700000003), CGS_OK);
    assert_int_equal(cgs_events_scalar(e, 1, "", 0, 0), CGS_EARG);
    assert_int_equal(cgs_events_flush(e), CGS_OK);

    char path[512];
    snprintf(path, sizeof path, "%s", cgs_events_path(e));
    bytes b = read_bytes(path); /* a viewer reads while we write */
    size_t at = 0;
    bytes head = record(&b, &at);
    check_event(head, 1700000000.25, 0);
    assert_memory_equal(parse(head).part[3].data, "brain.Event:2", 13);
    assert_false(parse(head).has[5]);
    check_scalar(record(&b, &at), 1700000001.5, 1, "loss/pred", 0.5f);
    check_scalar(record(&b, &at), 1700000002, UINT64_C(1) << 40, "lr", -0.0f);
    check_scalar(record(&b, &at), 1700000003, 300, long_tag, NAN);
    assert_int_equal(at, b.n);
    drop(&b);
    assert_int_equal(cgs_events_close(e), CGS_OK);

    /* a resumed run: a new file, even in the same second, that takes over at its step */
    assert_int_equal(cgs_events_open(&e, dir, 200, 1700000000.5), CGS_OK);
    assert_string_not_equal(cgs_events_path(e), path);
    b = read_bytes(cgs_events_path(e));
    at = 0;
    record(&b, &at);
    bytes start = record(&b, &at);
    check_event(start, 1700000000.5, 200);
    assert_int_equal(parse(parse(start).part[7]).value[1], 1);
    assert_int_equal(at, b.n);
    drop(&b);
    assert_int_equal(cgs_events_close(e), CGS_OK);
    assert_int_equal(count_files(dir), 2);
    assert_int_equal(cgs_events_close(NULL), CGS_OK);
}

/* ---- a full disk --------------------------------------------------------------- */

static void full_disk(void **state) {
    (void)state;
    static uint8_t rgb[64 * 64 * 3];
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)cgs_rng_u64(&r);
    const char *png = in_scratch("disk.png"), *gif = in_scratch("disk.gif");
    const char *dir = in_scratch("full");
    cgs_gif *g;
    assert_int_equal(cgs_png_write(png, rgb, 8, 8), CGS_OK);
    assert_int_equal(cgs_gif_open(&g, gif, 8, 8), CGS_OK);
    assert_int_equal(cgs_gif_add(g, rgb, 1), CGS_OK);
    assert_int_equal(cgs_gif_close(g), CGS_OK);
    bytes old_png = read_bytes(png), old_gif = read_bytes(gif);

    for (long limit = 0; limit < 4000; limit += 997) {
        limit_files(limit);
        assert_int_equal(cgs_png_write(png, rgb, 64, 64), CGS_EIO);
        assert_non_null(strstr(cgs_last_error(), png));
        /* the failure may show when a frame is added or when the file is closed */
        assert_int_equal(cgs_gif_open(&g, gif, 64, 64), CGS_OK);
        cgs_status added = cgs_gif_add(g, rgb, 1);
        assert_true(added == CGS_OK || added == CGS_EIO);
        assert_int_equal(cgs_gif_close(g), CGS_EIO);
        assert_non_null(strstr(cgs_last_error(), gif));

        cgs_events *e;
        cgs_status rc = cgs_events_open(&e, dir, 0, 1);
        for (int i = 0; rc == CGS_OK && i < 200; i++) {
            rc = cgs_events_scalar(e, i, "a tag of some length", 1, 1);
            if (rc == CGS_OK) rc = cgs_events_flush(e);
        }
        assert_int_equal(rc, CGS_EIO);
        if (e) assert_int_equal(cgs_events_close(e), CGS_EIO);
        limit_files(-1);
        check_old_file(png, &old_png);
        check_old_file(gif, &old_gif);
    }
    drop(&old_png);
    drop(&old_gif);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_round_trip), cmocka_unit_test(png_kinds),
        cmocka_unit_test(png_damaged),    cmocka_unit_test(gif_exact),
        cmocka_unit_test(gif_depths),     cmocka_unit_test(gif_reduced),
        cmocka_unit_test(gif_arguments),  cmocka_unit_test(event_file),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
