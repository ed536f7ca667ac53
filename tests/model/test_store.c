/* test_store.c - model directories, files that carry their description, and config.json: what is
 * read back is what was stored, and damage is found. */
#include "test_io.h"

#include <math.h>

#include "expect.h"
#include "golden.h"
#include "io/png.h"
#include "model/config_json.h"
#include "model/tensor_names.h"
#include "stored_model.h"

static cgs_device device;

static cgs_model_card some_card(void) {
    cgs_model_card card = cgs_card_default();
    strcpy(card.method, "lewm-cgs");
    strcpy(card.env, "pusht");
    strcpy(card.dataset, "a \"quoted\" name.h5");
    card.dataset_bytes = 123456789012;
    card.dataset_episodes = 4000;
    card.stats_rows = 4321;
    card.action_mean[0] = 0.1;
    card.action_mean[1] = -1.0 / 3;
    card.action_std[0] = 0.25;
    card.action_std[1] = 2.0 / 3;
    card.cgs_weight = 0.5;
    card.seed = UINT64_MAX;
    card.updates = 100;
    card.schedule_updates = 1000;
    card.train_fraction = 0.9;
    strcpy(card.split, "episode");
    card.prediction_horizon = 5;
    card.prediction_variance = 0.1;
    card.plan_variance = 1.0 / 3;
    return card;
}

static void test_directory(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device), *back;
    cgs_model_card card = some_card(), seen;
    m->config.class_bits = 32; /* no tensor shows it */
    OK(cgs_model_save(in_scratch("dir"), m, &card));
    OK(cgs_model_load(&back, &seen, in_scratch("dir"), &device, false));
    check_same_model(m, back);
    assert_memory_equal(&card, &seen, sizeof card);
    cgs_lewm_destroy(back);
    OK(cgs_model_load(&back, NULL, in_scratch("dir"), &device, true));
    check_same_model(m, back);
    cgs_lewm_destroy(back);
    cgs_lewm_destroy(m);
}

/* A card of a model whose prediction error was not measured, as all older ones are, says nothing
 * of it; measuring writes the card alone; impossible variances are refused. */
static void test_prediction_error(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device), *back;
    cgs_model_card card = some_card(), seen;
    char *text, config[256];
    size_t n;
    card.prediction_horizon = 0;
    card.prediction_variance = card.plan_variance = 0;
    OK(cgs_model_save(in_scratch("plain"), m, &card));
    snprintf(config, sizeof config, "%s", in_scratch("plain/config.json"));
    OK(cgs_read_file(config, 1 << 20, &text, &n));
    assert_null(strstr(text, "prediction"));
    free(text);
    OK(cgs_model_load(&back, &seen, in_scratch("plain"), &device, false));
    assert_memory_equal(&card, &seen, sizeof card);
    cgs_lewm_destroy(back);

    card = some_card();
    OK(cgs_model_save_card(in_scratch("plain"), m, &card));
    OK(cgs_model_load(&back, &seen, in_scratch("plain"), &device, false));
    assert_memory_equal(&card, &seen, sizeof card);
    check_same_model(m, back);
    cgs_lewm_destroy(back);

    static const double bad[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        card.prediction_variance = bad[i];
        REFUSED(cgs_model_save_card(in_scratch("plain"), m, &card), CGS_EFORMAT, "impossible");
    }
    cgs_lewm_destroy(m);
}

/* ---- one file that carries its description ----------------------------------------- */

static void test_export(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device), *back;
    cgs_model_card card = some_card(), seen;
    const char *path = in_scratch("export.safetensors");
    OK(cgs_lewm_save_weights(m, path, &card));
    cgs_import how = {0};
    OK(cgs_model_import(&back, &seen, &how, path, &device, false));
    check_same_model(m, back);
    assert_memory_equal(&card, &seen, sizeof card);
    assert_true(how.has_card);
    assert_string_equal(how.guessed, "");
    cgs_lewm_destroy(back);

    /* without it, what shapes do not determine is guessed and reported */
    OK(cgs_lewm_save_weights(m, path, NULL));
    OK(cgs_model_import(&back, &seen, &how, path, &device, false));
    assert_false(how.has_card);
    assert_string_equal(how.guessed,
                        "model.frameskip, model.predictor.head_width, model.encoder.heads");
    assert_int_equal(back->config.predictor_heads, 2); /* the model had 4 of 32 */
    cgs_lewm_destroy(back);
    how = (cgs_import){.action_dim = 10};
    OK(cgs_model_import(&back, &seen, &how, path, &device, false));
    assert_int_equal(back->config.frameskip, 1);
    cgs_lewm_destroy(back);
    how = (cgs_import){.action_dim = 3};
    REFUSED(cgs_model_import(&back, &seen, &how, path, &device, false), CGS_EFORMAT,
            "the action block is 10");
    cgs_lewm_destroy(m);
}

/* ---- config.json ------------------------------------------------------------------- */

static const char PUBLISHED[] =
    "{\"_target_\":\"somewhere.LeWM\",\"encoder\":{\"_target_\":7,\"size\":\"tiny\","
    "\"patch_size\":14,\"image_size\":224,\"pretrained\":false,\"use_mask_token\":false},"
    "\"predictor\":{\"num_frames\":3,\"input_dim\":192,\"hidden_dim\":192,\"output_dim\":192,"
    "\"depth\":6,\"heads\":16,\"mlp_dim\":2048,\"dim_head\":64,\"dropout\":0.1,\"emb_dropout\":0.0}"
    ","
    "\"action_encoder\":{\"input_dim\":10,\"emb_dim\":192},"
    "\"projector\":{\"input_dim\":192,\"output_dim\":192,\"hidden_dim\":2048,"
    "\"norm_fn\":{\"_target_\":\"torch.nn.BatchNorm1d\",\"_partial_\":true}},"
    "\"pred_proj\":{\"input_dim\":192,\"output_dim\":192,\"hidden_dim\":2048}}";

/* what the shapes of the paper model say */
static cgs_sizes paper_shapes(void) {
    static cgs_sizes s;
    if (s.block) return s;
    cgs_lewm *m = golden_model("paper", 2, &device);
    const char *path = in_scratch("paper.safetensors");
    cgs_weights *w;
    cgs_named_weights c;
    OK(cgs_lewm_save_weights(m, path, NULL));
    OK(cgs_weights_open(&w, path));
    OK(cgs_named_weights_make(&c, w));
    OK(cgs_sizes_from_tensors(&s, &c, path));
    cgs_named_weights_free(&c);
    cgs_weights_close(w);
    cgs_lewm_destroy(m);
    return s;
}

static cgs_status read_json(const char *text, size_t n, cgs_lewm_config *out) {
    cgs_sizes s = paper_shapes();
    cgs_model_card card = {0};
    CGS_TRY(cgs_config_json_read(&s, &card, text, n, "a.json"));
    CGS_TRY(cgs_sizes_settle(&s, NULL, 0));
    CGS_TRY(cgs_card_check(&card, s.config.action_dim));
    if (out) *out = s.config;
    return CGS_OK;
}

/* PUBLISHED with one place replaced */
static cgs_status read_changed(const char *from, const char *to) {
    char text[sizeof PUBLISHED + 256];
    const char *at = strstr(PUBLISHED, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - PUBLISHED), PUBLISHED, to,
             at + strlen(from));
    return read_json(text, strlen(text), NULL);
}

static void test_upstream_config(void **state) {
    (void)state;
    cgs_lewm_config c, paper;
    OK(cgs_lewm_preset(&paper, "paper"));
    OK(read_json(PUBLISHED, strlen(PUBLISHED), &c));
    assert_memory_equal(&c, &paper, sizeof c);
    OK(read_json("{}", 2, &c));
    assert_memory_equal(&c, &paper, sizeof c);

    REFUSED(read_changed("\"depth\":6", "\"depth\":7"), CGS_EFORMAT,
            "a.json: predictor.depth says 7");
    REFUSED(read_changed("\"depth\":6", "\"depth\":6,\"depth\":5"), CGS_EFORMAT, "says 5");
    REFUSED(read_changed("\"depth\":6", "\"depth\":6.5"), CGS_EFORMAT,
            "a whole number in 1 ... 64");
    REFUSED(read_changed("\"depth\":6", "\"depth\":1e999"), CGS_EFORMAT, "predictor.depth");
    REFUSED(read_changed("\"depth\":6", "\"depth\":-6"), CGS_EFORMAT, "predictor.depth");
    REFUSED(read_changed("\"depth\":6", "\"depth\":\"6\""), CGS_EFORMAT, "expected a number");
    REFUSED(read_changed("\"depth\":6", "\"depth\":{}"), CGS_EFORMAT, "expected a number");
    REFUSED(read_changed("\"heads\":16", "\"heads\":8"), CGS_EFORMAT, "predictor.heads says 8");
    REFUSED(read_changed("\"heads\":16", "\"heads\":48"), CGS_EFORMAT, "heads");
    REFUSED(read_changed("tiny", "huge"), CGS_EFORMAT, "unknown encoder \"huge\"");
    REFUSED(read_changed("tiny", "base"), CGS_EFORMAT, "encoder.size says 768");
    REFUSED(read_changed("emb_dropout\":0.0", "emb_dropout\":0.1"), CGS_EFORMAT, "emb_dropout");
    REFUSED(read_changed("\"input_dim\":10", "\"input_dim\":25"), CGS_EFORMAT, "says 25");
    OK(read_changed("\"depth\":6,", ""));
    OK(read_changed("\"_target_\":7", "\"_anything\":[1,2]"));
    /* a name with one of its sizes given beside it */
    OK(read_changed("\"size\":\"tiny\"", "\"size\":\"tiny\",\"num_attention_heads\":3"));
    REFUSED(read_changed("\"size\":\"tiny\"", "\"size\":\"tiny\",\"num_hidden_layers\":2"),
            CGS_EFORMAT, "num_hidden_layers says 2");
    REFUSED(read_json("[]", 2, NULL), CGS_EFORMAT, "not a JSON object");
    REFUSED(read_json("{} {}", 5, NULL), CGS_EFORMAT, "text after");
    REFUSED(read_json("{\"cgs\":1}", 9, NULL), CGS_EFORMAT, "cgs is not an object");
    REFUSED(read_json("{\"a\":\"\xFF\"}", 9, NULL), CGS_EFORMAT, "UTF-8");
    char deep[4096];
    memset(deep, '[', sizeof deep);
    REFUSED(read_json(deep, sizeof deep, NULL), CGS_EFORMAT, "not valid JSON");
}

/* our own text, damaged in every way: refused or read, never a crash */
static void test_damaged_config(void **state) {
    (void)state;
    cgs_lewm_config paper, c;
    cgs_model_card card = some_card();
    char *text;
    OK(cgs_lewm_preset(&paper, "paper"));
    OK(cgs_config_json_write(&text, &paper, &card));
    size_t n = strlen(text), accepted = 0;
    OK(read_json(text, n, &c));
    assert_memory_equal(&c, &paper, sizeof c);
    for (size_t i = 0; i < n; i++)
        if (read_json(text, i, NULL) == CGS_OK) fail_msg("accepted when cut to %zu bytes", i);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] ^= (char)(1 << bit);
            cgs_status rc = read_json(text, n, NULL);
            assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
            accepted += rc == CGS_OK;
            text[i] ^= (char)(1 << bit);
        }
    printf("    %zu bytes: %zu of %zu damaged texts were still valid\n", n, accepted, 8 * n);
    free(text);

    /* what a card must not hold */
    card.action_std[1] = 0;
    REFUSED(cgs_config_json_write(&text, &paper, &card), CGS_EFORMAT, "action 1");
    card = some_card();
    card.action_mean[2] = 1;
    REFUSED(cgs_config_json_write(&text, &paper, &card), CGS_EFORMAT, "action 2");
    card = some_card();
    card.cgs_weight = NAN;
    REFUSED(cgs_config_json_write(&text, &paper, &card), CGS_EFORMAT, "not finite");
}

/* ---- damage ------------------------------------------------------------------------ */

/* flipped bits and cut files, which have a checksum to be found out by */
static void test_damaged(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device), *out;
    cgs_model_card card = some_card();
    OK(cgs_model_save(in_scratch("dir"), m, &card));
    const char *path = in_scratch("dir/model.safetensors");
    bytes b = read_bytes(path);
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_INIT, 0);
    for (int i = 0; i < 40; i++) {
        size_t at = i < 20 ? cgs_rng_u64(&r) % b.n : cgs_rng_u64(&r) % 4096;
        unsigned char old = b.data[at];
        b.data[at] ^= (unsigned char)(1 << cgs_rng_u64(&r) % 8);
        write_bytes(path, &b);
        cgs_status rc = cgs_model_load(&out, NULL, in_scratch("dir"), &device, false);
        if (rc == CGS_OK) check_same_model(m, out); /* a space of the padding, nothing else */
        cgs_lewm_destroy(out);
        b.data[at] = old;
        path = in_scratch("dir/model.safetensors");
    }
    b.data[b.n - 1] ^= 1;
    write_bytes(path, &b);
    REFUSED(cgs_model_load(&out, NULL, in_scratch("dir"), &device, false), CGS_EFORMAT, "damaged");
    b.data[b.n - 1] ^= 1;
    for (size_t cut = 0; cut < b.n; cut += b.n / 17) {
        bytes part = {.data = b.data, .n = cut};
        write_bytes(in_scratch("dir/model.safetensors"), &part);
        cgs_status rc = cgs_model_load(&out, NULL, in_scratch("dir"), &device, false);
        if (rc == CGS_OK) fail_msg("accepted when cut to %zu bytes", cut);
    }
    write_bytes(in_scratch("dir/model.safetensors"), &b);
    OK(cgs_model_load(&out, NULL, in_scratch("dir"), &device, false));
    cgs_lewm_destroy(out);
    assert_int_equal(unlink(in_scratch("dir/config.json")), 0);
    REFUSED(cgs_model_load(&out, NULL, in_scratch("dir"), &device, false), CGS_EIO, "config.json");
    REFUSED(cgs_model_load(&out, NULL, in_scratch("nowhere"), &device, false), CGS_EIO, "nowhere");
    drop(&b);
    cgs_lewm_destroy(m);
}

/* a disk that is full leaves what was there; a model with a NaN is not written */
static void test_refused_writes(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device), *out;
    cgs_model_card card = some_card();
    OK(cgs_model_save(in_scratch("dir"), m, &card));
    bytes weights = read_bytes(in_scratch("dir/model.safetensors"));
    bytes config = read_bytes(in_scratch("dir/config.json"));
    m->base.batches_tracked = 8;
    for (long limit = 0; limit < (long)weights.n; limit += (long)weights.n / 5) {
        limit_files(limit);
        cgs_status rc = cgs_model_save(in_scratch("dir"), m, &card);
        limit_files(-1);
        if (rc == CGS_OK) fail_msg("saved with room for %ld bytes", limit);
        check_old_file(in_scratch("dir/model.safetensors"), &weights);
        check_old_file(in_scratch("dir/config.json"), &config);
    }
    const cgs_param *e = cgs_params_find(&m->params, "projector.net.3.bias");
    float v[96] = {[7] = NAN};
    OK(cgs_param_write(&m->params, e, v));
    REFUSED(cgs_model_save(in_scratch("dir"), m, &card), CGS_ENUMERIC, "projector.net.3.bias[7]");
    check_old_file(in_scratch("dir/model.safetensors"), &weights);
    OK(cgs_model_load(&out, NULL, in_scratch("dir"), &device, false));
    assert_int_equal(out->base.batches_tracked, 7);
    cgs_lewm_destroy(out);
    drop(&weights);
    drop(&config);
    cgs_lewm_destroy(m);
}

/* ---- material for tests/cli/cli_weights.sh --------------------------------------------- */

static cgs_status write_frame(const char *dir, const char *name, uint32_t frame) {
    enum { S = 224, N = S * S * 3 };
    static uint8_t rgb[N];
    char path[4096];
    for (uint32_t i = 0; i < N; i++) rgb[i] = (uint8_t)(golden_bits("pixels", frame * N + i) >> 24);
    CGS_TRY(cgs_path_join(path, sizeof path, dir, name));
    return cgs_png_write(path, rgb, S, S);
}

static cgs_status write_plan(const char *dir) {
    char path[4096];
    cgs_newfile file;
    CGS_TRY(cgs_path_join(path, sizeof path, dir, "plan.txt"));
    CGS_TRY(cgs_newfile_open(&file, path));
    fprintf(file.f, "# two candidates, five blocks of ten\n");
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 50; i++)
            fprintf(file.f, "%.9g%s", (double)(float)golden_unit("plan", k * 50 + i),
                    i < 49 ? "," : "\n");
    return cgs_newfile_commit(&file);
}

/* the golden model as upstream would store it, its start and goal frames and its plan */
static cgs_status write_golden(const char *dir) {
    char path[4096];
    cgs_lewm_config c;
    cgs_lewm *m = NULL;
    CGS_TRY(cgs_make_dirs(dir));
    CGS_TRY(cgs_lewm_preset(&c, "paper"));
    CGS_TRY(cgs_lewm_create(&m, &c, &device, false));
    m->base.batches_tracked = 7;
    cgs_status rc = golden_fill_params(&m->params);
    if (rc == CGS_OK) rc = cgs_path_join(path, sizeof path, dir, "golden.safetensors");
    if (rc == CGS_OK) rc = cgs_lewm_save_weights(m, path, NULL);
    cgs_lewm_destroy(m);
    CGS_TRY(rc);
    CGS_TRY(write_frame(dir, "start.png", 0));
    CGS_TRY(write_frame(dir, "goal.png", 15));
    CGS_TRY(write_plan(dir));
    CGS_TRY(cgs_path_join(path, sizeof path, dir, "upstream.json"));
    return cgs_write_file(path, PUBLISHED, strlen(PUBLISHED));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory),      cmocka_unit_test(test_prediction_error),
        cmocka_unit_test(test_export),         cmocka_unit_test(test_upstream_config),
        cmocka_unit_test(test_damaged_config), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_refused_writes),
    };
    if (cgs_device_open(&device, "cpu", 2) != CGS_OK) return 1;
    int failed;
    if (argc == 3 && !strcmp(argv[1], "--golden")) {
        failed = write_golden(argv[2]) != CGS_OK;
        if (failed) fprintf(stderr, "%s\n", cgs_last_error());
    } else {
        failed = cmocka_run_group_tests(tests, make_scratch, remove_scratch);
    }
    cgs_device_close(&device);
    return failed;
}
