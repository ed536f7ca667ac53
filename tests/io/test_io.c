/* test_io.c - weight lists and safetensors: round trips, hand-made files, damaged files. */
#include "test_io.h"

#include <math.h>

#include "io/safetensors.h"

/* a file from header text and payload size; payload byte i is i */
static const char *handmade(const char *json, size_t payload) {
    const char *path = in_scratch("hand.safetensors");
    bytes b = {0};
    put_le(&b, strlen(json), 8);
    put_str(&b, json);
    for (size_t i = 0; i < payload; i++) put_le(&b, i, 1);
    write_bytes(path, &b);
    drop(&b);
    return path;
}

static void round_trip(void **state) {
    (void)state;
    const char *path = in_scratch("all.safetensors");
    double f64[3] = {1 + 0x1p-24, -2.5, 1e300};
    float f32[6] = {0, -1, 2, 3.25f, 1e-40f, INFINITY};
    uint16_t f16[4] = {0x3C00, 0x0001, 0xFBFF, 0x8000}, bf16[2] = {0x3F80, 0xC000};
    int64_t i64 = 1234567;
    int32_t i32[2] = {-5, 16777217};
    int16_t i16[2] = {-300, 300};
    int8_t i8[3] = {-128, 0, 127};
    uint8_t u8[5] = {0, 1, 2, 254, 255}, truth[3] = {0, 1, 7};
    cgs_save t[] = {
        {"truth", CGS_W_BOOL, 1, {3}, truth},
        {"f64", CGS_W_F64, 1, {3}, f64},
        {"encoder.f32", CGS_W_F32, 2, {2, 3}, f32},
        {"f16", CGS_W_F16, 3, {1, 4, 1}, f16},
        {"bf16", CGS_W_BF16, 1, {2}, bf16},
        {"num_batches_tracked", CGS_W_I64, 0, {0}, &i64},
        {"i32", CGS_W_I32, 1, {2}, i32},
        {"i16", CGS_W_I16, 1, {2}, i16},
        {"i8", CGS_W_I8, 1, {3}, i8},
        {"u8 \"odd\" \xC3\xA9", CGS_W_U8, 8, {1, 1, 1, 5, 1, 1, 1, 1}, u8},
        {"empty", CGS_W_F32, 3, {4, 0, INT64_C(1) << 50}, NULL},
    };
    const size_t n = sizeof t / sizeof t[0];
    cgs_meta meta[] = {{"format", "cgs"}, {"note", "two\nlines, \"quoted\""}};
    assert_int_equal(cgs_safetensors_write(path, t, n, meta, 2), CGS_OK);

    cgs_weights *w;
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_string_equal(w->format, "safetensors");
    assert_int_equal(w->count, n);
    assert_string_equal(cgs_weights_meta(w, "format"), "cgs");
    assert_string_equal(cgs_weights_meta(w, "note"), "two\nlines, \"quoted\"");
    assert_null(cgs_weights_meta(w, "else"));
    assert_null(cgs_weights_find(w, "encoder"));
    for (size_t i = 0; i < n; i++) {
        const cgs_weight *e = cgs_weights_find(w, t[i].name);
        assert_non_null(e);
        assert_int_equal(e->type, t[i].type);
        assert_int_equal(e->rank, t[i].rank);
        for (int k = 0; k < e->rank; k++) assert_int_equal(e->dim[k], t[i].dim[k]);
        assert_int_equal(e->offset % e->element, 0); /* every tensor lies aligned */
        unsigned char raw[64];
        assert_true(e->bytes <= sizeof raw);
        assert_int_equal(cgs_weights_read(e, raw), CGS_OK);
        if (e->bytes) assert_memory_equal(raw, t[i].data, e->bytes);
    }
    float out[8];
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "f64"), out), CGS_OK);
    assert_true(out[0] == 1.0f && out[1] == -2.5f && isinf(out[2])); /* ties to even */
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "encoder.f32"), out), CGS_OK);
    assert_memory_equal(out, f32, sizeof f32);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "f16"), out), CGS_OK);
    assert_true(out[0] == 1 && out[1] == 0x1p-24f && out[2] == -65504 && signbit(out[3]));
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "bf16"), out), CGS_OK);
    assert_true(out[0] == 1 && out[1] == -2);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "num_batches_tracked"), out), CGS_OK);
    assert_true(out[0] == 1234567);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "i32"), out), CGS_OK);
    assert_true(out[0] == -5 && out[1] == 16777216);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "i16"), out), CGS_OK);
    assert_true(out[0] == -300 && out[1] == 300);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "i8"), out), CGS_OK);
    assert_true(out[0] == -128 && out[2] == 127);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, t[9].name), out), CGS_OK);
    assert_true(out[0] == 0 && out[4] == 255);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "truth"), out), CGS_OK);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 1);
    char text[CGS_SHAPE_TEXT];
    assert_string_equal(cgs_weights_shape(cgs_weights_find(w, "empty"), text),
                        "[4,0,1125899906842624]");
    assert_string_equal(cgs_weights_shape(cgs_weights_find(w, "num_batches_tracked"), text), "[]");
    cgs_weights_close(w);

    /* the payload begins at a multiple of 8, and a second write gives the same bytes */
    bytes b = read_bytes(path);
    assert_int_equal(b.data[0] % 8, 0);
    assert_int_equal(b.data[8], '{');
    assert_int_equal(cgs_safetensors_write(path, t, n, meta, 2), CGS_OK);
    check_old_file(path, &b);
    drop(&b);
}

static void no_tensors(void **state) {
    (void)state;
    const char *path = in_scratch("none.safetensors");
    cgs_weights *w;
    assert_int_equal(cgs_safetensors_write(path, NULL, 0, NULL, 0), CGS_OK);
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_int_equal(w->count, 0);
    assert_null(cgs_weights_find(w, "a"));
    cgs_weights_close(w);
}

/* more elements than one piece of a converting read */
static void large(void **state) {
    (void)state;
    const char *path = in_scratch("large.safetensors");
    enum { N = 100003 };
    int16_t *in = malloc(N * sizeof *in);
    float *out = malloc(N * sizeof *out);
    for (int i = 0; i < N; i++) in[i] = (int16_t)(i * 7);
    cgs_save t = {"x", CGS_W_I16, 1, {N}, in};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_OK);
    cgs_weights *w;
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_int_equal(cgs_weights_to_f32(&w->entry[0], out), CGS_OK);
    for (int i = 0; i < N; i++) assert_true(out[i] == in[i]);

    /* the file shrinks while it is open */
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(cgs_weights_to_f32(&w->entry[0], out), CGS_EFORMAT);
    cgs_weights_close(w);
    free(in);
    free(out);
}

/* all 65536 half-precision numbers, against their definition */
static void every_half(void **state) {
    (void)state;
    const char *path = in_scratch("half.safetensors");
    uint16_t *in = malloc(65536 * sizeof *in);
    float *out = malloc(65536 * sizeof *out);
    for (int i = 0; i < 65536; i++) in[i] = (uint16_t)i;
    cgs_save t = {"x", CGS_W_F16, 1, {65536}, in};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_OK);
    cgs_weights *w;
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_int_equal(cgs_weights_to_f32(&w->entry[0], out), CGS_OK);
    for (int i = 0; i < 65536; i++) {
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double want = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31) want = fraction ? NAN : INFINITY;
        if (isnan(want))
            assert_true(isnan(out[i]));
        else
            assert_true(out[i] == (i >> 15 ? -want : want));
        assert_int_equal(!!signbit(out[i]), i >> 15);
    }
    cgs_weights_close(w);
    free(in);
    free(out);
}

#define T(dtype, shape, span)                                                                      \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" span "}"

static void handmade_files(void **state) {
    (void)state;
    /* one that another program could have written: spaces, line ends, unknown fields */
    const char *path = handmade(
        "{ \"b\" : {\"shape\":[2],\"data_offsets\":[4,6],\"dtype\":\"U8\",\"more\":[{}]},\n"
        "\"a\":" T("I32", "[]", "[0,4]") ",\"__metadata__\":{}}   \n  ",
        6);
    cgs_weights *w;
    float out[2];
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_int_equal(w->count, 2);
    assert_string_equal(w->entry[0].name, "b"); /* the order of the file */
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "b"), out), CGS_OK);
    assert_true(out[0] == 4 && out[1] == 5);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "a"), out), CGS_OK);
    assert_true(out[0] == 0x03020100);
    cgs_weights_close(w);

    /* types that can be listed and measured, but not converted */
    path =
        handmade("{\"x\":" T("F8_E4M3", "[2]", "[0,2]") ",\"y\":" T("F4", "[4]", "[2,4]") "}", 4);
    assert_int_equal(cgs_weights_open(&w, path), CGS_OK);
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "x"), out), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "F8_E4M3"));
    assert_int_equal(cgs_weights_to_f32(cgs_weights_find(w, "y"), out), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "F4"));
    cgs_weights_close(w);
}

static void lies(void **state) {
    (void)state;
    static const struct {
        const char *json;
        size_t payload;
        const char *word; /* in the message */
    } FILES[] = {
        {"{\"x\":" T("F32", "[2]", "[0,8]") "}", 7, "data_offsets 0..8"},
        {"{\"x\":" T("F32", "[2]", "[0,8]") "}", 9, "last 1 bytes"},
        {"{\"x\":" T("F32", "[3]", "[0,8]") "}", 8, "needs 12 bytes"},
        {"{\"x\":" T("F8_E5M2", "[3]", "[0,8]") "}", 8, "needs 3 bytes"},
        {"{\"x\":" T("F32", "[2]", "[8,0]") "}", 8, "data_offsets 8..0"},
        {"{\"x\":" T("F32", "[2]", "[-8,0]") "}", 8, "data_offsets"},
        {"{\"x\":" T("F32", "[2]", "[0.5,8.5]") "}", 9, "data_offsets"},
        {"{\"x\":" T("F32", "[2]", "[0]") "}", 8, "data_offsets"},
        {"{\"x\":" T("F32", "[2]", "[0,8,8]") "}", 8, "data_offsets"},
        {"{\"x\":" T("F32", "[2]", "[0,1e300]") "}", 8, "data_offsets"},
        {"{\"x\":" T("F32", "[2]", "[0,\"8\"]") "}", 8, "data_offsets"},
        {"{\"x\":" T("U8", "[2]", "[0,2]") ",\"y\":" T("U8", "[2]", "[1,3]") "}", 3,
         "y overlaps x"},
        {"{\"x\":" T("U8", "[2]", "[0,2]") ",\"y\":" T("U8", "[2]", "[0,2]") "}", 2, "overlaps"},
        {"{\"x\":" T("U8", "[2]", "[0,2]") ",\"y\":" T("U8", "[0]", "[1,1]") "}", 2,
         "y overlaps x"},
        {"{\"x\":" T("U8", "[2]", "[0,2]") ",\"y\":" T("U8", "[2]", "[3,5]") "}", 5, "before y"},
        {"{\"x\":" T("U8", "[2]", "[2,4]") "}", 4, "2 bytes before x"},
        {"{\"x\":" T("U8", "[1]", "[0,1]") ",\"x\":" T("U8", "[1]", "[1,2]") "}", 2, "twice"},
        {"{\"x\":" T("U8", "[4294967296,4294967296,4294967296]", "[0,0]") "}", 0, "too large"},
        {"{\"x\":" T("F64", "[2305843009213693952]", "[0,0]") "}", 0, "not a count"},
        {"{\"x\":" T("F64", "[9007199254740992,512]", "[0,0]") "}", 0, "too large"},
        {"{\"x\":" T("U8", "[-1]", "[0,0]") "}", 0, "not a count"},
        {"{\"x\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "more than 8"},
        {"{\"x\":" T("U8", "2", "[0,2]") "}", 2, "not an object of"},
        {"{\"x\":[\"U8\",[2],[0,2]]}", 2, "not an object of"},
        {"{\"x\":5}", 0, "not an object of"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[2]}}", 2, "not an object of"},
        {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
         "not an object of"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "not a string"},
        {"{\"__metadata__\":[]}", 0, "not one object"},
        {"{\"x\\u0000y\":" T("U8", "[2]", "[0,2]") "}", 2, "NUL"},
        {"{\"\xFF\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"},
        {"{\"\xC0\x80\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"},
        {"{\"\xED\xA0\x80\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"},
        {"{\"x\":" T("U8", "[2]", "[0,2]") "} x", 2, "text after"},
        {"{\"x\":" T("U8", "[2]", "[0,2]"), 2, "not valid JSON"},
        {"{", 0, "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        check_refused(handmade(FILES[i].json, FILES[i].payload), FILES[i].word);

    /* lengths of the header that the file does not have */
    const char *path = in_scratch("length.safetensors");
    const uint64_t LENGTHS[] = {3, 1000, UINT64_C(100) << 20, UINT64_C(1) << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
        bytes b = {0};
        put_le(&b, LENGTHS[i], 8);
        put_str(&b, "{}");
        write_bytes(path, &b);
        drop(&b);
        check_refused(path, "header claims");
    }
    /* a list of a million nothings: deep or long JSON is refused, not followed */
    bytes deep = {0};
    put_le(&deep, 500000, 8);
    put_str(&deep, "{\"x\":");
    while (deep.n < 500008) put_str(&deep, "[");
    write_bytes(path, &deep);
    drop(&deep);
    check_refused(path, "not valid JSON");
    bytes wide = {0};
    put_le(&wide, 9000000, 8);
    put_str(&wide, "{\"x\":[0");
    while (wide.n < 9000007) put_str(&wide, ",0");
    put_str(&wide, "]");
    write_bytes(path, &wide);
    drop(&wide);
    check_refused(path, "values");
}

static void other_files(void **state) {
    (void)state;
    const char *path = in_scratch("other");
    bytes b = {0};
    write_bytes(path, &b);
    check_refused(path, "neither");
    put_str(&b, "\x89HDF\r\n\x1A\n and so on");
    write_bytes(path, &b);
    drop(&b);
    check_refused(path, "89 48 44 46");
    cgs_weights *w;
    assert_int_equal(cgs_weights_open(&w, in_scratch("missing")), CGS_EIO);
    assert_int_equal(cgs_weights_open(&w, scratch), CGS_EIO); /* a folder */
    cgs_weights_close(NULL);
}

static void bad_arguments(void **state) {
    (void)state;
    const char *path = in_scratch("args.safetensors");
    uint8_t x = 0;
    cgs_save two[2] = {{"a", CGS_W_U8, 0, {0}, &x}, {"a", CGS_W_U8, 0, {0}, &x}};
    assert_int_equal(cgs_safetensors_write(path, two, 2, NULL, 0), CGS_EARG);
    cgs_save t = {"__metadata__", CGS_W_U8, 0, {0}, &x};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_EARG);
    t.name = "\xFF";
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_EARG);
    t = (cgs_save){"a", CGS_W_U8, 1, {3}, NULL};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_EARG);
    t = (cgs_save){"a", CGS_W_OTHER, 0, {0}, &x};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_EARG);
    t = (cgs_save){"a", CGS_W_U8, 9, {0}, &x};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_EARG);
    t = (cgs_save){"a", CGS_W_U8, 0, {0}, &x};
    assert_int_equal(cgs_safetensors_write(path, &t, 1, &(cgs_meta){"k", "\xFF"}, 1), CGS_EARG);
    assert_false(cgs_file_exists(path));
    assert_int_equal(cgs_safetensors_write(in_scratch("no/such/folder"), &t, 1, NULL, 0), CGS_EIO);
}

static void damaged(void **state) {
    (void)state;
    const char *path = in_scratch("small.safetensors");
    float a[4] = {1, 2, 3, 4};
    int64_t n = 5;
    cgs_save t[] = {{"encoder.w", CGS_W_F32, 2, {2, 2}, a},
                    {"n", CGS_W_I64, 0, {0}, &n},
                    {"none", CGS_W_F16, 1, {0}, NULL}};
    assert_int_equal(cgs_safetensors_write(path, t, 3, &(cgs_meta){"k", "v"}, 1), CGS_OK);
    damage(path, try_weights);
}

static void full_disk(void **state) {
    (void)state;
    const char *path = in_scratch("disk.safetensors");
    static float big[65536];
    cgs_save t = {"big", CGS_W_F32, 1, {65536}, big};
    cgs_save small = {"small", CGS_W_F32, 1, {16}, big};
    assert_int_equal(cgs_safetensors_write(path, &small, 1, NULL, 0), CGS_OK);
    bytes old = read_bytes(path);
    for (long limit = 0; limit < 262144; limit += 37449) {
        limit_files(limit);
        cgs_status rc = cgs_safetensors_write(path, &t, 1, NULL, 0);
        limit_files(-1);
        assert_int_equal(rc, CGS_EIO);
        assert_non_null(strstr(cgs_last_error(), path));
        check_old_file(path, &old);
    }
    assert_int_equal(cgs_safetensors_write(path, &t, 1, NULL, 0), CGS_OK);
    assert_true(try_weights(path));
    drop(&old);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),  cmocka_unit_test(no_tensors),     cmocka_unit_test(large),
        cmocka_unit_test(every_half),  cmocka_unit_test(handmade_files), cmocka_unit_test(lies),
        cmocka_unit_test(other_files), cmocka_unit_test(bad_arguments),  cmocka_unit_test(damaged),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
