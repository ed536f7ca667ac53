/* test_io_torch.c - torch zip files: some made by torch itself (tests/golden), the rest
 * made here byte by byte, because torch refuses to write what a hostile file holds. */
#include "test_io.h"

#include "io/pickle.h"
#include "torch_made.h"

/* wraps a pickle and the storages "0" (24 floats 0, 1, ...) and "1" (bytes 0..15) */
static const char *save_pickle(const bytes *p, bool zip64) {
    const char *path = in_scratch("made.pt");
    float floats[24];
    uint8_t raw[16];
    for (int i = 0; i < 24; i++) floats[i] = (float)i;
    for (int i = 0; i < 16; i++) raw[i] = (uint8_t)i;
    zip z = {.zip64 = zip64};
    zip_add(&z, "archive/data.pkl", p->data, p->n);
    zip_add(&z, "archive/byteorder", "little", 6);
    zip_add(&z, "archive/data/0", floats, sizeof floats);
    zip_add(&z, "archive/data/1", raw, sizeof raw);
    zip_add(&z, "archive/version", "3\n", 2);
    zip_save(&z, path);
    return path;
}

static const spec PLAIN = {"torch\nFloatStorage", "0", 24, 0, 2, {2, 3}, {3, 1}};

/* a state dict of one tensor "x" */
static const char *save_one(const spec *t) {
    bytes p = {0};
    put_str(&p, "\x80\x02}");
    p_text(&p, "x");
    p_tensor(&p, t);
    put_str(&p, "s.");
    const char *path = save_pickle(&p, false);
    drop(&p);
    return path;
}

/* ---- checks -------------------------------------------------------------------- */

static void check_tensor(const cgs_weights *w, const char *name, const char *shape,
                         const float *want) {
    const cgs_weight *e = cgs_weights_find(w, name);
    if (!e) fail_msg("%s: no tensor %s", w->path, name);
    char text[CGS_SHAPE_TEXT];
    assert_string_equal(cgs_weights_shape(e, text), shape);
    float out[64];
    assert_true(e->count <= 64);
    if (cgs_weights_to_f32(e, out) != CGS_OK) fail_msg("%s", cgs_last_error());
    for (size_t i = 0; i < e->count; i++)
        if (out[i] != want[i]) fail_msg("%s[%zu] = %g, want %g", name, i, out[i], want[i]);
}

/* first, first + 1, ... */
static void check_run(const cgs_weights *w, const char *name, const char *shape, float first) {
    float want[64];
    for (int i = 0; i < 64; i++) want[i] = first + (float)i;
    check_tensor(w, name, shape, want);
}

static cgs_weights *open_ok(const char *path) {
    cgs_weights *w;
    if (cgs_weights_open(&w, path) != CGS_OK) fail_msg("%s", cgs_last_error());
    assert_string_equal(w->format, "torch");
    return w;
}

/* in tests/golden, beside the folder of this source file */
static const char *golden(const char *name) {
    static char path[512];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*s/../golden/%s", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".", name);
    return path;
}

static void made_by_torch(void **state) {
    (void)state;
    cgs_weights *w = open_ok(golden("torch_state.pt"));
    assert_int_equal(w->count, 10);
    check_run(w, "f32", "[2,3]", 0);
    check_run(w, "f16", "[5]", 100);
    check_run(w, "bf16", "[4]", 0);
    float transposed[24];
    for (int i = 0; i < 24; i++) transposed[i] = 300 + (float)(i % 4 * 6 + i / 4);
    check_tensor(w, "transposed", "[6,4]", transposed);
    check_tensor(w, "slice", "[2,3]", (float[]){306, 308, 310, 312, 314, 316});
    check_tensor(w, "scalar", "[]", (float[]){7});
    check_tensor(w, "empty", "[0,3]", NULL);
    check_tensor(w, "expanded", "[3,1]", (float[]){5, 5, 5});
    check_tensor(w, "flag", "[2]", (float[]){1, 0});
    check_run(w, "f64", "[3]", 200);
    int64_t seven;
    assert_int_equal(cgs_weights_read(cgs_weights_find(w, "scalar"), &seven), CGS_OK);
    assert_int_equal(seven, 7);
    cgs_weights_close(w);

    w = open_ok(golden("torch_lightning.ckpt"));
    assert_int_equal(w->count, 2);
    check_run(w, "a.weight", "[2,2]", 0);
    check_run(w, "a.bias", "[2]", 100);
    cgs_weights_close(w);

    w = open_ok(golden("torch_module.ckpt"));
    static const char *const NAMES[] = {
        "kept",          "fc.weight",         "fc.bias",          "norm.weight",
        "norm.bias",     "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
        "inner.0.weight"};
    assert_int_equal(w->count, 9); /* in the order of state_dict() */
    for (int i = 0; i < 9; i++) assert_string_equal(w->entry[i].name, NAMES[i]);
    check_run(w, "kept", "[2]", 500);
    check_run(w, "fc.weight", "[2,3]", 0);
    check_run(w, "fc.bias", "[2]", 100);
    check_run(w, "inner.0.weight", "[1,2]", 200);
    check_tensor(w, "norm.running_var", "[2]", (float[]){1, 1});
    check_tensor(w, "norm.num_batches_tracked", "[]", (float[]){0});
    cgs_weights_close(w);

    w = open_ok(golden("torch_mapping.pth"));
    assert_int_equal(w->count, 9);
    check_run(w, "predictor.fc.weight", "[2,3]", 0);
    cgs_weights_close(w);

    w = open_ok(golden("torch_tensor.pth"));
    assert_int_equal(w->count, 1);
    check_run(w, "tensor", "[3,2]", 0);
    cgs_weights_close(w);

    check_refused(golden("torch_legacy.pt"), "legacy torch file");
}

/* the layout of a large state dict: groups of SETITEMS, memo numbers above 255, BUILD */
static void many_groups(void **state) {
    (void)state;
    for (int zip64 = 0; zip64 < 2; zip64++) {
        bytes p = {0};
        char name[32];
        put_str(&p, "\x80\x02");
        p_ordered(&p);
        put_str(&p, "q");
        put_le(&p, 0, 1);
        for (int i = 0; i < 2500; i++) {
            if (i % 1000 == 0) put_str(&p, "(");
            snprintf(name, sizeof name, "layer.%d.weight", i);
            p_text(&p, name);
            put_str(&p, "r");
            put_le(&p, (uint64_t)i + 1, 4);
            spec t = {"torch\nFloatStorage", "0", 24, i % 24, 1, {1}, {1}};
            p_tensor(&p, &t);
            if (i % 1000 == 999 || i == 2499) put_str(&p, "u");
        }
        put_str(&p, "}");
        p_text(&p, "_metadata");
        p_ordered(&p);
        put_str(&p, "sb.");
        cgs_weights *w = open_ok(save_pickle(&p, zip64));
        assert_int_equal(w->count, 2500);
        check_tensor(w, "layer.2499.weight", "[1]", (float[]){2499 % 24});
        check_tensor(w, "layer.1000.weight", "[1]", (float[]){1000 % 24});
        cgs_weights_close(w);
        drop(&p);
    }
}

static void views(void **state) {
    (void)state;
    bytes p = {0};
    put_str(&p, "\x80\x02}(");
    const struct {
        const char *name;
        spec t;
    } V[] = {
        {"plain", PLAIN},
        {"transposed", {"torch\nFloatStorage", "0", 24, 0, 2, {6, 4}, {1, 6}}},
        {"late", {"torch\nFloatStorage", "0", 24, 23, 0, {0}, {0}}},
        {"diagonal", {"torch\nFloatStorage", "0", 24, 1, 1, {4}, {7}}},
        {"window", {"torch\nFloatStorage", "0", 24, 0, 2, {3, 3}, {1, 1}}}, /* overlaps itself */
        {"ones", {"torch\nFloatStorage", "0", 24, 2, 3, {1, 2, 1}, {999, 1, 77}}},
        {"shorts", {"torch\nShortStorage", "1", 8, 1, 2, {2, 2}, {1, 2}}},
        {"none", {"torch\nFloatStorage", "0", 24, 0, 2, {0, 5}, {5, 1}}},
    };
    for (size_t i = 0; i < sizeof V / sizeof V[0]; i++) {
        p_text(&p, V[i].name);
        p_tensor(&p, &V[i].t);
    }
    /* the third kind of tensor names its dtype and has bytes for a storage */
    p_text(&p, "third");
    put_str(&p, "ctorch._utils\n_rebuild_tensor_v3\n((");
    p_text(&p, "storage");
    put_str(&p, "ctorch.storage\nUntypedStorage\n");
    p_text(&p, "1");
    p_text(&p, "cpu");
    p_int(&p, 16);
    put_str(&p, "tQ");
    p_int(&p, 1);
    p_tuple(&p, (int64_t[]){3}, 1);
    p_tuple(&p, (int64_t[]){2}, 1);
    put_str(&p, "\x89"
                "ccollections\nOrderedDict\n)Rctorch\nuint8\ntR");
    put_str(&p, "u.");
    cgs_weights *w = open_ok(save_pickle(&p, false));
    drop(&p);
    check_run(w, "plain", "[2,3]", 0);
    float transposed[24];
    for (int i = 0; i < 24; i++) transposed[i] = (float)(i % 4 * 6 + i / 4);
    check_tensor(w, "transposed", "[6,4]", transposed);
    check_tensor(w, "late", "[]", (float[]){23});
    check_tensor(w, "diagonal", "[4]", (float[]){1, 8, 15, 22});
    check_tensor(w, "window", "[3,3]", (float[]){0, 1, 2, 1, 2, 3, 2, 3, 4});
    check_tensor(w, "ones", "[1,2,1]", (float[]){2, 3});
    check_tensor(w, "shorts", "[2,2]", (float[]){0x0302, 0x0706, 0x0504, 0x0908});
    check_tensor(w, "none", "[0,5]", NULL);
    check_tensor(w, "third", "[3]", (float[]){1, 3, 5});
    cgs_weights_close(w);
}

/* protocol 4, as Python 3 writes it by default: frames, STACK_GLOBAL, MEMOIZE */
static void protocol_four(void **state) {
    (void)state;
    bytes p = {0};
    put_str(&p, "\x80\x04\x95");
    put_le(&p, 1000, 8);
    put_str(&p,
            "}\x94(\x8C\x01x\x94\x8C\x0Ctorch._utils\x94\x8C\x12_rebuild_tensor_v2\x94\x93\x94((");
    put_str(&p, "\x8C\x07storage\x94\x8C\x05torch\x94\x8C\x0C"
                "FloatStorage\x94\x93\x94");
    put_str(&p, "\x8C\x01"
                "0\x94\x8C\x03"
                "cpu\x94K\x18t\x94QK\x04K\x02K\x02\x86\x94K\x06K\x01\x86\x94\x89");
    put_str(&p, "}\x94t\x94R\x94\x8C\x05other\x94h\x01\x8C\x04tags\x94\x8F\x94(K\x01K\x02\x90u.");
    cgs_weights *w = open_ok(save_pickle(&p, false));
    drop(&p);
    assert_int_equal(w->count, 1);
    check_tensor(w, "x", "[2,2]", (float[]){4, 5, 10, 11});
    cgs_weights_close(w);
}

static void hostile(void **state) {
    (void)state;
    static const struct {
        const char *pickle, *word;
    } FILES[] = {
        /* a call where a tensor is expected, in each place and each encoding */
        {"\x80\x02"
         "cposix\nsystem\n(X\4\0\0\0trueEtR.",
         "instruction"},
        {"\x80\x02"
         "cos\nsystem\n\x8C\x04true\x85R.",
         "refuses to load os.system"},
        {"\x80\x02}\x8C\x01x"
         "cposix\nsystem\n\x8C\x04true\x85Rs.",
         "refuses to load posix.system (x)"},
        {"\x80\x04}\x8C\x01x\x8C\x02os\x8C\x06system\x93\x8C\x04true\x85Rs.",
         "refuses to load os.system (x)"},
        {"\x80\x02}\x8C\x0Astate_dict}\x8C\x01x"
         "cbuiltins\neval\n\x8C\x01"
         "1\x85Rss.",
         "refuses to load builtins.eval (x)"},
        {"\x80\x02}\x8C\x01x"
         "cevil\nThing\n)\x81}\x8C\x01y"
         "K\1sbs.",
         "refuses to load evil.Thing (x)"},
        {"\x80\x02}\x8C\x01x"
         "ctorch._utils\n_rebuild_tensor_v2\n("
         "ctorch.storage\n_load_from_bytes\n)RK\1))\x89NtRs.",
         "refuses to load torch.storage._load_from_bytes (x)"},
        {"\x80\x02}\x8C\x01x"
         "ctorch._utils\n_rebuild_tensor_v2\n)Rs.",
         "refuses to load torch._utils._rebuild_tensor_v2 (x)"},
        {"\x80\x02"
         "ccopyreg\n_reconstructor\n"
         "cevil\nModule\ncbuiltins\nobject\nN\x87R}(\x8C\x0B"
         "_parameters}\x8C\x01w"
         "cos\nremove\n\x8C\x01y\x85Rs\x8C\x08_modules}ub.",
         "refuses to load os.remove (w)"},
        {"\x80\x02"
         "ccopyreg\n_reconstructor\n"
         "cevil\nModule\ncbuiltins\nobject\nN\x87R.",
         "refuses to load evil.Module"},
        /* nothing to load */
        {"\x80\x02}.", "no tensors"},
        {"\x80\x02N.", "no tensors"},
        {"\x80\x02}(K\1K\2\x8C\x01x\x8C\x01yu.", "no tensors"},
        {"\x80\x02"
         "cos\nsystem\n.",
         "no tensors"},
        /* damaged streams */
        {"", "ends inside"},
        {"\x80\x01N.", "protocol"},
        {"\x80\x02.", "stack is empty"},
        {"\x80\x02(.", "stack is empty"},
        {"\x80\x02(K\1.", "no tensors"},
        {"\x80\x02R.", "stack is empty"},
        {"\x80\x02K\1K\2R.", "argument tuple"},
        {"\x80\x02t.", "mark is missing"},
        {"\x80\x02}K\1s.", "stack is empty"},
        {"\x80\x02}(K\1u.", "no value"},
        {"\x80\x02K\1(K\1e.", "holds none"},
        {"\x80\x02}K\1"
         "a.",
         "holds none"},
        {"\x80\x02K\1K\2"
         "b.",
         "plain value"},
        {"\x80\x02h\7.", "memo number"},
        {"\x80\x02Nr\xFF\xFF\xFF\xFF.", "memo number"},
        {"\x80\x02X\xFF\xFF\xFF\x7Fx.", "longer than"},
        {"\x80\x02\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFx.", "longer than"},
        {"\x80\x02"
         "cos\nsystem",
         "no name"},
        {"\x80\x02K\1K\2\x93.", "no name"},
        {"\x80\x02"
         "ccollections\nOrderedDict\n]K\1"
         "a\x85R.",
         "pairs"},
        {"\x80\x02\xFE.", "unknown instruction 0xfe"},
        {"\x80\x02(cos\nsystem\n\x8C\x04trueo.", "unknown instruction 0x6f"},
        {"\x80\x02(\x8C\x04trueios\nsystem\n.", "unknown instruction 0x69"},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        bytes p = {0};
        put_str(&p, FILES[i].pickle);
        check_refused(save_pickle(&p, false), FILES[i].word);
        drop(&p);
    }
}

/* tensors that reach out of their storage, or storages that are not there */
static void lying_tensors(void **state) {
    (void)state;
    static const struct {
        spec t;
        const char *word;
    } LIES[] = {
        {{"torch\nFloatStorage", "0", 24, 0, 1, {25}, {1}}, "reaches beyond the 24"},
        {{"torch\nFloatStorage", "0", 24, 20, 1, {5}, {1}}, "reaches beyond"},
        {{"torch\nFloatStorage", "0", 24, 24, 0, {0}, {0}}, "reaches beyond"},
        {{"torch\nFloatStorage", "0", 24, 0, 2, {2, 2}, {23, 1}}, "reaches beyond"},
        {{"torch\nFloatStorage", "0", 24, INT64_MAX, 1, {2}, {1}}, "reaches beyond"},
        {{"torch\nFloatStorage", "0", 24, 1, 2, {3, 2}, {INT64_MAX, INT64_MAX}}, "reaches beyond"},
        {{"torch\nFloatStorage", "0", 24, 0, 1, {INT64_MAX}, {0}}, "too large"},
        {{"torch\nFloatStorage", "0", 24, 0, 2, {INT64_C(1) << 40, INT64_C(1) << 40}, {0, 0}},
         "too large"},
        {{"torch\nFloatStorage", "0", 24, -1, 1, {2}, {1}}, "negative"},
        {{"torch\nFloatStorage", "0", 24, 0, 1, {-2}, {1}}, "negative"},
        {{"torch\nFloatStorage", "0", 24, 8, 1, {2}, {-1}}, "negative"},
        {{"torch\nFloatStorage", "0", 24, 0, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}}, "dimensions"},
        {{"torch\nFloatStorage", "0", 25, 0, 1, {2}, {1}}, "claims 25 elements"},
        {{"torch\nDoubleStorage", "0", 24, 0, 1, {2}, {1}}, "claims 24 elements"},
        {{"torch\nFloatStorage", "0", INT64_MAX, 0, 1, {2}, {1}}, "claims"},
        {{"torch\nFloatStorage", "0", -1, 0, 1, {2}, {1}}, "not described"},
        {{"torch\nFloatStorage", "7", 24, 0, 1, {2}, {1}}, "no member archive/data/7"},
        {{"torch\nFloatStorage", "../data.pkl", 4, 0, 1, {2}, {1}}, "no member"},
        {{"torch\nQInt8Storage", "0", 24, 0, 1, {2}, {1}}, "refuses to load torch.QInt8Storage"},
    };
    for (size_t i = 0; i < sizeof LIES / sizeof LIES[0]; i++)
        check_refused(save_one(&LIES[i].t), LIES[i].word);

    /* a shape that a stride of zero makes larger than the file is listed, not loaded */
    spec huge = {"torch\nFloatStorage", "0", 24, 0, 1, {INT64_C(1) << 40}, {0}};
    cgs_weights *w = open_ok(save_one(&huge));
    assert_int_equal(w->entry[0].count, (size_t)1 << 40);
    cgs_weights_close(w);
}

/* a graph that holds itself, and one whose paths double with every level */
static void endless_graphs(void **state) {
    (void)state;
    bytes p = {0};
    put_str(&p, "\x80\x02}q");
    put_le(&p, 0, 1);
    p_text(&p, "x");
    put_str(&p, "h");
    put_le(&p, 0, 1);
    put_str(&p, "s.");
    check_refused(save_pickle(&p, false), "nested too deeply");
    p.n = 0;
    put_str(&p, "\x80\x02}");
    for (int i = 0; i < 40; i++) {
        put_str(&p, "q");
        put_le(&p, (uint64_t)i, 1);
        put_str(&p, "0}(\x8C\x01"
                    "ah");
        put_le(&p, (uint64_t)i, 1);
        put_str(&p, "\x8C\x01"
                    "bh");
        put_le(&p, (uint64_t)i, 1);
        put_str(&p, "u");
    }
    put_str(&p, ".");
    check_refused(save_pickle(&p, false), "nested too deeply");
    drop(&p);
}

static void names(void **state) {
    (void)state;
    bytes p = {0};
    put_str(&p, "\x80\x02}(");
    static const char *const NAMES[] = {"model.a", "b", "sigreg.t", "callbacks_x.y", "model.sub.c"};
    for (int i = 0; i < 5; i++) {
        p_text(&p, NAMES[i]);
        p_tensor(&p, &PLAIN);
    }
    size_t keep = p.n;
    put_str(&p, "u.");
    cgs_weights *w = open_ok(save_pickle(&p, false));
    assert_int_equal(w->count, 3);
    assert_non_null(cgs_weights_find(w, "a"));
    assert_non_null(cgs_weights_find(w, "b"));
    assert_non_null(cgs_weights_find(w, "sub.c"));
    cgs_weights_close(w);

    p.n = keep; /* "model.a" and "a" would be the same */
    p_text(&p, "a");
    p_tensor(&p, &PLAIN);
    put_str(&p, "u.");
    check_refused(save_pickle(&p, false), "\"a\" occurs twice");

    p.n = keep;
    p_text(&p, "\xFFname");
    p_tensor(&p, &PLAIN);
    put_str(&p, "u.");
    check_refused(save_pickle(&p, false), "not text");

    /* a name longer than any of ours */
    p.n = keep;
    char longer[2000];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    p_text(&p, longer);
    p_tensor(&p, &PLAIN);
    put_str(&p, "u.");
    check_refused(save_pickle(&p, false), "too long");
    drop(&p);
}

static void zip_files(void **state) {
    (void)state;
    const char *path = in_scratch("odd.zip");
    zip z = {0};
    zip_add(&z, "archive/readme", "hello", 5);
    zip_save(&z, path);
    check_refused(path, "no data.pkl");

    z = (zip){.method = 8};
    zip_add(&z, "archive/data.pkl", "\x80\x02N.", 4);
    zip_save(&z, path);
    check_refused(path, "archive/data.pkl is compressed");

    z = (zip){0};
    zip_add(&z, "a/data.pkl", "\x80\x02N.", 4);
    zip_add(&z, "b/data.pkl", "\x80\x02N.", 4);
    zip_save(&z, path);
    check_refused(path, "two data.pkl");

    z = (zip){0};
    zip_add(&z, "a/data.pkl", "\x80\x02N.", 4);
    zip_add(&z, "a/data.pkl", "\x80\x02N.", 4);
    zip_save(&z, path);
    check_refused(path, "occurs twice");

    z = (zip){0};
    zip_add(&z, "a/data.pkl", "\x80\x02N.", 4);
    zip_add(&z, "a/byteorder", "big", 3);
    zip_save(&z, path);
    check_refused(path, "little endian");

    z = (zip){0};
    zip_save(&z, path);
    bytes b = read_bytes(path); /* only an end: does not begin like a torch file */
    check_refused(path, "neither");
    drop(&b);
}

/* flipped bits in a storage are seen when the tensor is read */
static void damaged_storage(void **state) {
    (void)state;
    const char *path = save_one(&PLAIN);
    bytes b = read_bytes(path);
    float seven = 7;
    for (size_t i = 0; i + 4 <= b.n; i++)
        if (memcmp(b.data + i, &seven, 4) == 0) b.data[i] ^= 1;
    write_bytes(path, &b);
    drop(&b);
    cgs_weights *w = open_ok(path);
    float out[6];
    assert_int_equal(cgs_weights_to_f32(&w->entry[0], out), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "checksum"));
    cgs_weights_close(w);
}

static void damaged_zip(void **state) {
    (void)state;
    bytes b = read_bytes(golden("torch_state.pt"));
    const char *path = in_scratch("damaged.pt");
    write_bytes(path, &b);
    damage(path, try_weights);
    drop(&b);
    damage(save_one(&PLAIN), try_weights);

    bytes p = {0}; /* 64-bit fields */
    put_str(&p, "\x80\x02");
    p_tensor(&p, &PLAIN);
    put_str(&p, ".");
    damage(save_pickle(&p, true), try_weights);
    drop(&p);
}

/* stores v at four bytes of the first entry of the zip directory */
static void patch(FILE *f, size_t entry, size_t field, uint32_t v) {
    fseek(f, (long)(entry + field), SEEK_SET);
    for (int i = 0; i < 4; i++) fputc((int)(v >> 8 * i & 255), f);
}

/* the same for the pickle alone, with a length and checksum that fit */
static void damaged_pickle(void **state) {
    (void)state;
    static const char *const FILES[] = {"torch_module.ckpt", "torch_lightning.ckpt"};
    for (int k = 0; k < 2; k++) {
        bytes b = read_bytes(golden(FILES[k]));
        const char *path = in_scratch("pickle.pt");
        write_bytes(path, &b);
        /* torch puts the pickle first: at byte 64, up to its data descriptor */
        unsigned char *pickle = b.data + 64;
        size_t n = 0, entry = 0, accepted = 0;
        while (memcmp(pickle + n, "PK\7\x8", 4) != 0) n++;
        while (memcmp(b.data + entry, "PK\1\2", 4) != 0) entry++;
        assert_int_equal(pickle[n - 1], '.');

        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        for (size_t cut = 0; cut < n; cut++) {
            patch(f, entry, 16, (uint32_t)crc32(0, pickle, (uInt)cut));
            patch(f, entry, 20, (uint32_t)cut);
            patch(f, entry, 24, (uint32_t)cut);
            fflush(f);
            assert_false(try_weights(path));
        }
        patch(f, entry, 20, (uint32_t)n);
        patch(f, entry, 24, (uint32_t)n);
        for (size_t i = 0; i < n; i++)
            for (int bit = 0; bit < 8; bit++) {
                pickle[i] ^= (unsigned char)(1 << bit);
                patch(f, entry, 16, (uint32_t)crc32(0, pickle, (uInt)n));
                fseek(f, (long)(64 + i), SEEK_SET);
                fputc(pickle[i], f);
                fflush(f);
                accepted += try_weights(path);
                pickle[i] ^= (unsigned char)(1 << bit);
                fseek(f, (long)(64 + i), SEEK_SET);
                fputc(pickle[i], f);
            }
        patch(f, entry, 16, (uint32_t)crc32(0, pickle, (uInt)n));
        fclose(f);
        assert_true(try_weights(path));
        printf("    %s: %zu bytes of pickle, %zu of %zu damaged ones still valid\n", FILES[k], n,
               accepted, 8 * n);
        drop(&b);
    }
}

/* programs of random instructions: most die at once, some build strange graphs */
static void random_pickles(void **state) {
    (void)state;
    static const char OPS[] = "(((}}}])NNKKsuuae0"
                              "12tbRQqhhqJXXcc\x85\x86\x87\x88\x8C\x8C\x8F\x90"
                              "\x91\x93\x94\x94\x81\x92\x8A"
                              "Gl";
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    size_t finished = 0;
    for (int k = 0; k < 60000; k++) {
        char code[96];
        size_t n = 0, length = 4 + cgs_rng_below(&r, 60);
        while (n < length) {
            char op = OPS[cgs_rng_below(&r, sizeof OPS - 1)];
            code[n++] = op;
            if (op == 'K' || op == 'q' || op == 'h') code[n++] = (char)cgs_rng_below(&r, 4);
            if (op == 'c') n += (size_t)sprintf(code + n, "a\nb\n");
            if (op == '\x8C') n += (size_t)sprintf(code + n, "\x01x");
        }
        code[n++] = '.';
        cgs_pickle p;
        cgs_status rc = cgs_pickle_read(&p, code, n);
        assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
        if (rc == CGS_OK) {
            finished++;
            assert_non_null(cgs_pkl_name(p.root));
            cgs_pkl_get(p.root, "x");
        }
        cgs_pickle_free(&p);
    }
    printf("    %zu of 60000 programs ran to their end\n", finished);
    assert_true(finished > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_by_torch),  cmocka_unit_test(many_groups),
        cmocka_unit_test(views),          cmocka_unit_test(protocol_four),
        cmocka_unit_test(hostile),        cmocka_unit_test(lying_tensors),
        cmocka_unit_test(endless_graphs), cmocka_unit_test(names),
        cmocka_unit_test(zip_files),      cmocka_unit_test(damaged_storage),
        cmocka_unit_test(damaged_zip),    cmocka_unit_test(damaged_pickle),
        cmocka_unit_test(random_pickles),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
