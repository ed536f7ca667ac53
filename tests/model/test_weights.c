/* test_weights.c - weight files: all tensor names load the same numbers, the published names and
 * shapes, and whatever does not fit is named. */
#include "expect.h"
#include "test_io.h"

#include <math.h>

#include "io/safetensors.h"
#include "stored_model.h"
#include "torch_made.h"

static cgs_device device;

/* ---- files that differ from a good one --------------------------------------------- */

/* the tensors of a file, in memory, to be modified; space for a few more */
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

/* Transformers 5.x names, deliberately written down a second time */
static void rename_later(variant *v, bool norms_too) {
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

/* ---- all tensor names load the same ------------------------------------------------- */

/* a file without a description loads into a model of known sizes */
static void check_loads(const char *path, const cgs_lewm *want, int ignored) {
    cgs_lewm *m;
    int seen = -1;
    OK(cgs_lewm_create(&m, &want->config, &device, false));
    OK(cgs_lewm_load_weights(m, path, &seen));
    assert_int_equal(seen, ignored);
    check_same_model(want, m);
    cgs_lewm_destroy(m);
}

static void test_tensor_names(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device);
    const char *plain = in_scratch("plain.safetensors");
    OK(cgs_lewm_save_weights(m, plain, NULL));
    check_loads(plain, m, 0);
    for (int norms = 0; norms < 2; norms++) {
        variant *v = variant_of(plain);
        rename_later(v, norms);
        int renamed = 0;
        for (size_t i = 0; i < v->count; i++)
            renamed += !strncmp(v->name[i], "encoder.layers.", 15);
        assert_int_equal(renamed, m->config.encoder_layers * (norms ? 16 : 12));
        check_loads(variant_save(v, "later.safetensors"), m, 0);
        for (size_t i = 0; i < v->count; i++) { /* and after a prefix */
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
    cgs_lewm *m = golden_model("small", 2, &device);
    const char *plain = in_scratch("plain.safetensors"), *ckpt = in_scratch("last.ckpt");
    OK(cgs_lewm_save_weights(m, plain, NULL));
    save_lightning(plain, ckpt);
    check_loads(ckpt, m, 0);
    cgs_lewm_destroy(m);
}

static void test_types(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2, &device);
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
        cgs_lewm *m = golden_model("paper", dim, &device);
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
    cgs_lewm *m = golden_model("small", 2, &device), *out;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_names), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_published),
        cmocka_unit_test(test_hostile),
    };
    if (cgs_device_open(&device, "cpu", 2) != CGS_OK) return 1;
    int failed = cmocka_run_group_tests(tests, make_scratch, remove_scratch);
    cgs_device_close(&device);
    return failed;
}
