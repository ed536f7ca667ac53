/* test_store.c - model directories and weight files: every spelling loads the same
 * numbers, and whatever does not fit is named. */
#include "test_io.h"

#include <math.h>

#include "golden.h"
#include "io/png.h"
#include "io/safetensors.h"
#include "model/config_json.h"
#include "model/spelling.h"
#include "torch_made.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CGS_OK) fail_msg("%s: %s", #call, cgs_last_error());                         \
    } while (0)

/* the call fails with that code and a sentence that holds the words */
#define REFUSED(call, code, words)                                                                 \
    do {                                                                                           \
        cgs_status rc_ = (call);                                                                   \
        if (rc_ != (code) || !strstr(cgs_last_error(), words))                                     \
            fail_msg("%s: status %d, \"%s\", expected \"%s\"", #call, (int)rc_,                    \
                     rc_ == CGS_OK ? "" : cgs_last_error(), words);                                \
    } while (0)

static cgs_device device;

static cgs_lewm *golden_model(const char *preset, int action_dim) {
    cgs_lewm_config c;
    cgs_lewm *m;
    OK(cgs_lewm_preset(&c, preset));
    c.action_dim = action_dim;
    OK(cgs_lewm_create(&m, &c, &device, false));
    OK(golden_fill_params(&m->params));
    m->base.batches_tracked = 7;
    return m;
}

static cgs_model_card some_card(void) {
    cgs_model_card card = cgs_card_default();
    strcpy(card.method, "lewm-cgs");
    strcpy(card.env, "pusht");
    strcpy(card.dataset, "a \"quoted\" name.h5");
    card.dataset_bytes = 123456789012;
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
    return card;
}

static void check_same(const cgs_lewm *a, const cgs_lewm *b) {
    assert_memory_equal(&a->config, &b->config, sizeof a->config);
    assert_int_equal(a->base.batches_tracked, b->base.batches_tracked);
    assert_int_equal(a->params.trainable, b->params.trainable);
    assert_memory_equal(a->params.values, b->params.values, a->params.trainable * sizeof(float));
    assert_memory_equal(a->params.bf16, b->params.bf16, a->params.trainable * sizeof(uint16_t));
    assert_memory_equal(a->params.statistics, b->params.statistics,
                        a->params.stats * sizeof(float));
}

static void test_directory(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2), *back;
    cgs_model_card card = some_card(), seen;
    m->config.class_bits = 32; /* no tensor shows it */
    OK(cgs_model_save(in_scratch("dir"), m, &card));
    OK(cgs_model_load(&back, &seen, in_scratch("dir"), &device, false));
    check_same(m, back);
    assert_memory_equal(&card, &seen, sizeof card);
    cgs_lewm_destroy(back);
    OK(cgs_model_load(&back, NULL, in_scratch("dir"), &device, true));
    check_same(m, back);
    cgs_lewm_destroy(back);
    cgs_lewm_destroy(m);
}

/* ---- files that differ from a good one --------------------------------------------- */

/* the tensors of a file, in memory, free to be changed; room for a few more */
typedef struct variant {
    cgs_save list[512];
    char name[512][160];
    void *data[512]; /* what list points to */
    size_t count;
} variant;

static void variant_free(variant *v) {
    for (size_t i = 0; i < v->count; i++) free(v->data[i]);
    free(v);
}

static variant *variant_of(const char *path) {
    variant *v = calloc(1, sizeof *v);
    cgs_weights *w;
    assert_non_null(v);
    OK(cgs_weights_open(&w, path));
    assert_true(w->count < 500);
    for (v->count = 0; v->count < w->count; v->count++) {
        const cgs_weight *e = &w->entry[v->count];
        cgs_save *s = &v->list[v->count];
        strcpy(v->name[v->count], e->name);
        v->data[v->count] = malloc(e->bytes);
        OK(cgs_weights_read(e, v->data[v->count]));
        *s = (cgs_save){.name = v->name[v->count], .type = e->type, .rank = e->rank};
        memcpy(s->dim, e->dim, sizeof s->dim);
        s->data = v->data[v->count];
    }
    cgs_weights_close(w);
    return v;
}

static int variant_find(const variant *v, const char *name) {
    for (size_t i = 0; i < v->count; i++)
        if (!strcmp(v->name[i], name)) return (int)i;
    fail_msg("no tensor %s", name);
    return -1;
}

static void variant_add(variant *v, const char *name, int64_t n) {
    size_t i = v->count++;
    strcpy(v->name[i], name);
    v->data[i] = calloc((size_t)n, sizeof(float));
    v->list[i] = (cgs_save){.name = v->name[i], .type = CGS_W_F32, .rank = 1, .dim = {n}};
    v->list[i].data = v->data[i];
}

static void variant_drop(variant *v, const char *name) {
    int i = variant_find(v, name);
    size_t last = --v->count;
    free(v->data[i]);
    v->list[i] = v->list[last];
    strcpy(v->name[i], v->name[last]);
    v->list[i].name = v->name[i];
    v->data[i] = v->data[last];
}

static float *variant_values(variant *v, const char *name) {
    return v->data[variant_find(v, name)];
}

static const char *variant_save(const variant *v, const char *name) {
    const char *path = in_scratch(name);
    OK(cgs_safetensors_write(path, v->list, v->count, NULL, 0));
    return path;
}

/* Transformers 5.x spelling, written down here a second time on purpose */
static void spell_later(variant *v, bool norms_too) {
    static const char *const pairs[][2] = {
        {"attention.attention.query", "attention.q_proj"},
        {"attention.attention.key", "attention.k_proj"},
        {"attention.attention.value", "attention.v_proj"},
        {"attention.output.dense", "attention.o_proj"},
        {"intermediate.dense", "mlp.fc1"},
        {"output.dense", "mlp.fc2"},
        {"layernorm_before", "layernorm_before"},
        {"layernorm_after", "layernorm_after"},
    };
    for (size_t i = 0; i < v->count; i++) {
        int layer, used = 0;
        char part[96];
        if (sscanf(v->name[i], "encoder.encoder.layer.%d.%95s%n", &layer, part, &used) != 2)
            continue;
        char *tail = strrchr(part, '.');
        *tail = '\0';
        for (int k = 0; k < (norms_too ? 8 : 6); k++)
            if (!strcmp(part, pairs[k][0]))
                snprintf(v->name[i], sizeof v->name[i], "encoder.layers.%d.%s.%s", layer,
                         pairs[k][1], tail + 1);
    }
}

/* ---- every spelling loads the same ------------------------------------------------- */

/* a file without a description loads into a model of known sizes */
static void check_loads(const char *path, const cgs_lewm *want, int ignored) {
    cgs_lewm *m;
    int seen = -1;
    OK(cgs_lewm_create(&m, &want->config, &device, false));
    OK(cgs_lewm_load_weights(m, path, &seen));
    assert_int_equal(seen, ignored);
    check_same(want, m);
    cgs_lewm_destroy(m);
}

static void test_spellings(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2);
    const char *plain = in_scratch("plain.safetensors");
    OK(cgs_lewm_save_weights(m, plain, NULL));
    check_loads(plain, m, 0);
    for (int norms = 0; norms < 2; norms++) {
        variant *v = variant_of(plain);
        spell_later(v, norms);
        int renamed = 0;
        for (size_t i = 0; i < v->count; i++)
            renamed += !strncmp(v->name[i], "encoder.layers.", 15);
        assert_int_equal(renamed, m->config.encoder_layers * (norms ? 16 : 12));
        check_loads(variant_save(v, "later.safetensors"), m, 0);
        for (size_t i = 0; i < v->count; i++) { /* and behind a prefix */
            char name[160];
            snprintf(name, sizeof name, "model.%.150s", v->name[i]);
            strcpy(v->name[i], name);
        }
        variant_add(v, "sigreg.t", 17);
        variant_add(v, "model.sigreg.phi", 17);
        variant_add(v, "callbacks_probe.weight", 3);
        check_loads(variant_save(v, "prefix.safetensors"), m, 3);
        variant_free(v);
    }
    cgs_lewm_destroy(m);
}

/* what training with Lightning leaves: {"epoch": 3, "state_dict": {"model.x": tensor, ...}} */
static void save_lightning(const char *from, const char *to) {
    variant *v = variant_of(from);
    zip z = {0};
    bytes p = {0};
    put_str(&p, "\x80\x02}(");
    p_text(&p, "epoch");
    p_int(&p, 3);
    p_text(&p, "state_dict");
    p_ordered(&p);
    put_str(&p, "(");
    for (size_t i = 0; i < v->count; i++) {
        const cgs_save *t = &v->list[i];
        char name[200], key[24];
        int64_t step = 1;
        snprintf(name, sizeof name, "model.%s", v->name[i]);
        snprintf(key, sizeof key, "%zu", i);
        spec e = {t->type == CGS_W_I64 ? "torch\nLongStorage" : "torch\nFloatStorage", key,
                  .rank = t->rank};
        for (int k = t->rank - 1; k >= 0; k--) {
            e.dim[k] = t->dim[k];
            e.stride[k] = step;
            step *= t->dim[k];
        }
        e.elements = step;
        p_text(&p, name);
        p_tensor(&p, &e);
    }
    put_str(&p, "uu.");
    zip_add(&z, "archive/data.pkl", p.data, p.n);
    for (size_t i = 0; i < v->count; i++) {
        char member[40];
        size_t n = v->list[i].type == CGS_W_I64 ? 8 : 4;
        for (int k = 0; k < v->list[i].rank; k++) n *= (size_t)v->list[i].dim[k];
        snprintf(member, sizeof member, "archive/data/%zu", i);
        zip_add(&z, member, v->data[i], n);
    }
    zip_add(&z, "archive/version", "3\n", 2);
    zip_save(&z, to);
    drop(&p);
    variant_free(v);
}

static void test_torch(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2);
    const char *plain = in_scratch("plain.safetensors"), *ckpt = in_scratch("last.ckpt");
    OK(cgs_lewm_save_weights(m, plain, NULL));
    save_lightning(plain, ckpt);
    check_loads(ckpt, m, 0);
    cgs_lewm_destroy(m);
}

static void test_types(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2);
    const char *plain = in_scratch("plain.safetensors");
    OK(cgs_lewm_save_weights(m, plain, NULL));
    variant *v = variant_of(plain);
    for (size_t i = 0; i < v->count; i++) {
        cgs_save *s = &v->list[i];
        if (s->type != CGS_W_F32) continue;
        size_t n = 1;
        for (int k = 0; k < s->rank; k++) n *= (size_t)s->dim[k];
        double *wide = malloc(n * sizeof *wide);
        for (size_t k = 0; k < n; k++) wide[k] = ((float *)v->data[i])[k];
        free(v->data[i]);
        s->data = v->data[i] = wide;
        s->type = CGS_W_F64;
    }
    check_loads(variant_save(v, "wide.safetensors"), m, 0);
    variant_free(v);
    cgs_lewm_destroy(m);
}

/* ---- the published names, shapes and counts ---------------------------------------- */

typedef struct listed {
    const char *name, *shape;
} listed;

static int check_listed(const cgs_weights *w, int layers, const char *before, const listed *list,
                        int n) {
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < n; k++) {
            char name[160], shape[CGS_SHAPE_TEXT];
            if (layers > 1)
                snprintf(name, sizeof name, "%s%d.%s", before, i, list[k].name);
            else
                snprintf(name, sizeof name, "%s%s", before, list[k].name);
            const cgs_weight *e = cgs_weights_find(w, name);
            if (!e) fail_msg("%s is missing", name);
            if (strcmp(cgs_weights_shape(e, shape), list[k].shape) != 0)
                fail_msg("%s: shape %s, expected %s", name, shape, list[k].shape);
            assert_string_equal(e->type_name, strstr(name, "num_batches") ? "I64" : "F32");
        }
    return layers * n;
}
#define LISTED(w, layers, before, list)                                                            \
    check_listed(w, layers, before, list, (int)(sizeof list / sizeof list[0]))

static void test_published(void **state) {
    (void)state;
    static const listed embeddings[] = {
        {"embeddings.cls_token", "[1,1,192]"},
        {"embeddings.position_embeddings", "[1,257,192]"},
        {"embeddings.patch_embeddings.projection.weight", "[192,3,14,14]"},
        {"embeddings.patch_embeddings.projection.bias", "[192]"},
        {"layernorm.weight", "[192]"},
        {"layernorm.bias", "[192]"},
    };
    static const listed vit[] = {
        {"attention.attention.query.weight", "[192,192]"},
        {"attention.attention.query.bias", "[192]"},
        {"attention.attention.key.weight", "[192,192]"},
        {"attention.attention.key.bias", "[192]"},
        {"attention.attention.value.weight", "[192,192]"},
        {"attention.attention.value.bias", "[192]"},
        {"attention.output.dense.weight", "[192,192]"},
        {"attention.output.dense.bias", "[192]"},
        {"intermediate.dense.weight", "[768,192]"},
        {"intermediate.dense.bias", "[768]"},
        {"output.dense.weight", "[192,768]"},
        {"output.dense.bias", "[192]"},
        {"layernorm_before.weight", "[192]"},
        {"layernorm_before.bias", "[192]"},
        {"layernorm_after.weight", "[192]"},
        {"layernorm_after.bias", "[192]"},
    };
    static const listed predictor[] = {
        {"pos_embedding", "[1,3,192]"},
        {"transformer.norm.weight", "[192]"},
        {"transformer.norm.bias", "[192]"},
    };
    static const listed block[] = {
        {"attn.norm.weight", "[192]"},         {"attn.norm.bias", "[192]"},
        {"attn.to_qkv.weight", "[3072,192]"},  {"attn.to_out.0.weight", "[192,1024]"},
        {"attn.to_out.0.bias", "[192]"},       {"mlp.net.0.weight", "[192]"},
        {"mlp.net.0.bias", "[192]"},           {"mlp.net.1.weight", "[2048,192]"},
        {"mlp.net.1.bias", "[2048]"},          {"mlp.net.4.weight", "[192,2048]"},
        {"mlp.net.4.bias", "[192]"},           {"adaLN_modulation.1.weight", "[1152,192]"},
        {"adaLN_modulation.1.bias", "[1152]"},
    };
    static const listed action[] = {
        {"patch_embed.bias", "[10]"},    {"embed.0.weight", "[768,10]"}, {"embed.0.bias", "[768]"},
        {"embed.2.weight", "[192,768]"}, {"embed.2.bias", "[192]"},
    };
    static const listed projector[] = {
        {"net.0.weight", "[2048,192]"},
        {"net.0.bias", "[2048]"},
        {"net.1.weight", "[2048]"},
        {"net.1.bias", "[2048]"},
        {"net.1.running_mean", "[2048]"},
        {"net.1.running_var", "[2048]"},
        {"net.1.num_batches_tracked", "[]"},
        {"net.3.weight", "[192,2048]"},
        {"net.3.bias", "[192]"},
    };
    static const listed pusht[] = {{"patch_embed.weight", "[10,10,1]"}};
    static const listed cube[] = {{"patch_embed.weight", "[10,25,1]"}};
    for (int dim = 2; dim <= 5; dim += 3) {
        cgs_lewm *m = golden_model("paper", dim);
        assert_int_equal(cgs_params_learnable(&m->params), dim == 2 ? 18034478 : 18034628);
        const char *path = in_scratch("paper.safetensors");
        OK(cgs_lewm_save_weights(m, path, NULL));
        cgs_weights *w;
        OK(cgs_weights_open(&w, path));
        assert_int_equal(w->count, 303);
        int n = LISTED(w, 1, "encoder.", embeddings) +
                LISTED(w, 12, "encoder.encoder.layer.", vit) +
                LISTED(w, 1, "predictor.", predictor) +
                LISTED(w, 6, "predictor.transformer.layers.", block) +
                LISTED(w, 1, "action_encoder.", action) + LISTED(w, 1, "projector.", projector) +
                LISTED(w, 1, "pred_proj.", projector);
        n += dim == 2 ? LISTED(w, 1, "action_encoder.", pusht)
                      : LISTED(w, 1, "action_encoder.", cube);
        assert_int_equal(n, 303);
        int64_t batches;
        OK(cgs_weights_read(cgs_weights_find(w, "pred_proj.net.1.num_batches_tracked"), &batches));
        assert_int_equal(batches, 7);
        cgs_weights_close(w);
        /* all its sizes are in its shapes or are what one guesses */
        cgs_lewm_config c;
        OK(cgs_lewm_infer_config(&c, path));
        assert_memory_equal(&c, &m->config, sizeof c);
        cgs_lewm_destroy(m);
    }
}

/* ---- one file that carries its description ----------------------------------------- */

static void test_export(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2), *back;
    cgs_model_card card = some_card(), seen;
    const char *path = in_scratch("export.safetensors");
    OK(cgs_lewm_save_weights(m, path, &card));
    cgs_import how = {0};
    OK(cgs_model_import(&back, &seen, &how, path, &device, false));
    check_same(m, back);
    assert_memory_equal(&card, &seen, sizeof card);
    assert_true(how.has_card);
    assert_string_equal(how.guessed, "");
    cgs_lewm_destroy(back);

    /* without it, what shapes cannot show is guessed and told */
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
    cgs_lewm *m = golden_model("paper", 2);
    const char *path = in_scratch("paper.safetensors");
    cgs_weights *w;
    cgs_catalogue c;
    OK(cgs_lewm_save_weights(m, path, NULL));
    OK(cgs_weights_open(&w, path));
    OK(cgs_catalogue_make(&c, w));
    OK(cgs_sizes_from_tensors(&s, &c, path));
    cgs_catalogue_free(&c);
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
    REFUSED(read_changed("tiny", "huge"), CGS_EFORMAT, "no encoder is called \"huge\"");
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

/* our own text, damaged in every way: refused or read, never more */
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

/* ---- files that must be refused ---------------------------------------------------- */

typedef struct hostile {
    const char *what; /* for the reader of a failure */
    void (*change)(variant *v);
    const char *words;
    cgs_status code;
} hostile;

static void no_bias(variant *v) { variant_drop(v, "projector.net.3.bias"); }
static void no_counter(variant *v) { variant_drop(v, "pred_proj.net.1.num_batches_tracked"); }
static void no_cls(variant *v) { variant_drop(v, "encoder.embeddings.cls_token"); }
static void one_more(variant *v) { variant_add(v, "encoder.pooler.dense.bias", 96); }
static void twice(variant *v) { variant_add(v, "encoder.layers.1.attention.q_proj.bias", 96); }
static void short_bias(variant *v) {
    v->list[variant_find(v, "encoder.encoder.layer.2.output.dense.bias")].dim[0] = 95;
}
static void flat_pos(variant *v) {
    cgs_save *s = &v->list[variant_find(v, "encoder.embeddings.position_embeddings")];
    s->rank = 2;
    s->dim[0] = s->dim[1];
    s->dim[1] = s->dim[2];
}
static void odd_pos(variant *v) {
    v->list[variant_find(v, "encoder.embeddings.position_embeddings")].dim[1] -= 2;
}
static void turned(variant *v) {
    cgs_save *s = &v->list[variant_find(v, "predictor.transformer.layers.1.attn.to_qkv.weight")];
    int64_t rows = s->dim[0];
    s->dim[0] = s->dim[1];
    s->dim[1] = rows;
}
static void not_a_number(variant *v) {
    variant_values(v, "predictor.transformer.layers.2.mlp.net.1.weight")[5] = NAN;
}
static void infinite(variant *v) {
    variant_values(v, "projector.net.1.running_mean")[3] = INFINITY;
}
static void negative(variant *v) { variant_values(v, "projector.net.1.running_var")[9] = -1e-3f; }
static void no_layer(variant *v) {
    for (size_t i = 0; i < v->count;) {
        char name[160];
        strcpy(name, v->name[i]);
        if (!strncmp(name, "encoder.encoder.layer.2.", 24))
            variant_drop(v, name);
        else
            i++;
    }
}
static void no_layers(variant *v) {
    variant_drop(v, "predictor.transformer.layers.0.mlp.net.4.weight");
}
static void float_counter(variant *v) {
    cgs_save *s = &v->list[variant_find(v, "projector.net.1.num_batches_tracked")];
    s->type = CGS_W_F32;
}
static void wide_counter(variant *v) {
    int i = variant_find(v, "projector.net.1.num_batches_tracked");
    free(v->data[i]);
    v->list[i].data = v->data[i] = calloc(2, sizeof(int64_t));
    v->list[i].rank = 1;
    v->list[i].dim[0] = 2;
}
static void minus_counter(variant *v) {
    *(int64_t *)v->data[variant_find(v, "pred_proj.net.1.num_batches_tracked")] = -1;
}
static void tiny_width(variant *v) {
    v->list[variant_find(v, "encoder.embeddings.patch_embeddings.projection.weight")].dim[0] = 4;
}
static void empty(variant *v) {
    cgs_save *s = &v->list[variant_find(v, "action_encoder.patch_embed.weight")];
    s->dim[1] = 0;
}

static void test_hostile(void **state) {
    (void)state;
    static const hostile list[] = {
        {"a missing bias", no_bias, "projector.net.3.bias is missing", CGS_EFORMAT},
        {"a missing counter", no_counter, "num_batches_tracked is missing", CGS_EFORMAT},
        {"a missing token", no_cls, "cls_token is missing", CGS_EFORMAT},
        {"one more", one_more, "\"encoder.pooler.dense.bias\" is no part", CGS_EFORMAT},
        {"two spellings", twice, "are one tensor", CGS_EFORMAT},
        {"a short bias", short_bias, "layer.2.output.dense.bias: shape [95], the model needs [96]",
         CGS_EFORMAT},
        {"flat positions", flat_pos, "position_embeddings: shape [65,96]", CGS_EFORMAT},
        {"odd positions", odd_pos, "63 positions", CGS_EFORMAT},
        {"a turned matrix", turned, "to_qkv.weight: shape [96,384], the model needs [384,96]",
         CGS_EFORMAT},
        {"not a number", not_a_number, "layers.2.mlp.net.1.weight[5] is", CGS_ENUMERIC},
        {"infinite", infinite, "projector.net.1.running_mean[3] is inf", CGS_ENUMERIC},
        {"a negative variance", negative, "running_var[9] is -0.001", CGS_EFORMAT},
        {"a missing layer", no_layer, "\"encoder.encoder.layer.3.", CGS_EFORMAT},
        {"no first layer", no_layers, "mlp.net.4.weight", CGS_EFORMAT},
        {"a float counter", float_counter, "F32 [], expected one I64", CGS_EFORMAT},
        {"two counters", wide_counter, "I64 [2], expected one I64", CGS_EFORMAT},
        {"a negative counter", minus_counter, "num_batches_tracked is -1", CGS_EFORMAT},
        {"too small a width", tiny_width, "expected a whole number in 8", CGS_EFORMAT},
        {"an empty tensor", empty, "patch_embed.weight: 0, expected", CGS_EFORMAT},
    };
    cgs_lewm *m = golden_model("small", 2), *out;
    const char *good = in_scratch("good.safetensors");
    OK(cgs_lewm_save_weights(m, good, NULL));
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        /* in_scratch forgets old paths */
        variant *v = variant_of(in_scratch("good.safetensors"));
        list[i].change(v);
        const char *path = variant_save(v, "bad.safetensors");
        cgs_import how = {0};
        cgs_status rc = cgs_model_import(&out, NULL, &how, path, &device, false);
        if (rc != list[i].code || !strstr(cgs_last_error(), list[i].words) ||
            !strstr(cgs_last_error(), path))
            fail_msg("%s: status %d, \"%s\", expected \"%s\"", list[i].what, (int)rc,
                     rc == CGS_OK ? "" : cgs_last_error(), list[i].words);
        assert_null(out);
        /* and into a model that exists */
        rc = cgs_lewm_load_weights(m, path, NULL);
        if (rc == CGS_OK) fail_msg("%s: was loaded into a model", list[i].what);
        variant_free(v);
    }
    cgs_lewm_destroy(m);
}

/* flipped bits and cut files, which have a checksum to be found out by */
static void test_damaged(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2), *out;
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
        if (rc == CGS_OK) check_same(m, out); /* a space of the padding, nothing else */
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
    cgs_lewm *m = golden_model("small", 2), *out;
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

/* ---- material for tests/cli_weights.sh --------------------------------------------- */

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
        cmocka_unit_test(test_directory),       cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_torch),           cmocka_unit_test(test_types),
        cmocka_unit_test(test_published),       cmocka_unit_test(test_export),
        cmocka_unit_test(test_upstream_config), cmocka_unit_test(test_damaged_config),
        cmocka_unit_test(test_hostile),         cmocka_unit_test(test_damaged),
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
