/* config_json.c - reading and writing config.json; files are untrusted. */
#include "model/config_json.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define WHOLE_MAX 0x1p53 /* whole numbers up to here are exact in JSON */

/* ---- upstream's fields ------------------------------------------------------------- */

/* section, key, the size it claims */
static const struct {
    const char *section, *key, *size;
} UPSTREAM[] = {
    {"encoder", "patch_size", "model.patch"},
    {"encoder", "image_size", "model.image_size"},
    {"encoder", "hidden_size", "model.width"},
    {"encoder", "num_hidden_layers", "model.encoder.layers"},
    {"encoder", "num_attention_heads", "model.encoder.heads"},
    {"encoder", "intermediate_size", "model.encoder.mlp"},
    {"predictor", "num_frames", "model.history"},
    {"predictor", "depth", "model.predictor.layers"},
    {"predictor", "heads", "model.predictor.heads"},
    {"predictor", "mlp_dim", "model.predictor.mlp"},
    {"predictor", "dim_head", "model.predictor.head_width"},
    {"predictor", "input_dim", "model.width"},
    {"predictor", "hidden_dim", "model.width"},
    {"predictor", "output_dim", "model.width"},
    {"predictor", "dropout", "model.predictor.dropout"},
    {"action_encoder", "input_dim", CGS_SIZE_ACTION_BLOCK},
    {"action_encoder", "emb_dim", "model.width"},
    {"action_encoder", "smoothed_dim", "model.action.smooth"},
    {"projector", "input_dim", "model.width"},
    {"projector", "hidden_dim", "model.projector.hidden"},
    {"projector", "output_dim", "model.width"},
    {"pred_proj", "input_dim", "model.width"},
    {"pred_proj", "hidden_dim", "model.projector.hidden"},
    {"pred_proj", "output_dim", "model.width"},
};
#define UPSTREAM_COUNT ((int)(sizeof UPSTREAM / sizeof UPSTREAM[0]))

/* encoders that upstream knows by name */
static const struct {
    const char *name;
    int width, layers, heads, mlp;
} ENCODERS[] = {
    {"tiny", 192, 12, 3, 768},
    {"small", 384, 12, 6, 1536},
    {"base", 768, 12, 12, 3072},
    {"large", 1024, 24, 16, 4096},
};
#define ENCODER_COUNT ((int)(sizeof ENCODERS / sizeof ENCODERS[0]))

/* keys of the encoder that a size name implies, and that may override it */
static bool named_size(const char *key) {
    return !strcmp(key, "hidden_size") || !strcmp(key, "num_hidden_layers") ||
           !strcmp(key, "num_attention_heads") || !strcmp(key, "intermediate_size");
}

/* ---- the card's fields ------------------------------------------------------------- */

typedef enum card_kind { CARD_TEXT, CARD_REAL, CARD_WHOLE, CARD_SEED } card_kind;

#define CARD(kind, name)                                                                           \
    { #name, kind, offsetof(cgs_model_card, name), sizeof((cgs_model_card *)0)->name }
static const struct {
    const char *key;
    card_kind kind;
    size_t offset, size;
} CARD_FIELDS[] = {
    CARD(CARD_TEXT, method),
    CARD(CARD_TEXT, env),
    CARD(CARD_TEXT, env_version),
    CARD(CARD_TEXT, dataset),
    CARD(CARD_WHOLE, dataset_bytes),
    CARD(CARD_WHOLE, dataset_episodes), /* not in older cards */
    CARD(CARD_TEXT, recipe),            /* likewise */
    CARD(CARD_TEXT, init),              /* likewise */
    CARD(CARD_WHOLE, stats_rows),
    CARD(CARD_TEXT, std_divisor),
    CARD(CARD_TEXT, precision),
    CARD(CARD_TEXT, reference),
    CARD(CARD_REAL, sigreg_weight),
    CARD(CARD_REAL, ts_weight),
    CARD(CARD_REAL, cgs_weight),
    CARD(CARD_SEED, seed),
    CARD(CARD_WHOLE, updates),
    CARD(CARD_WHOLE, schedule_updates),
    CARD(CARD_REAL, train_fraction),
    CARD(CARD_TEXT, split),
    CARD(CARD_TEXT, code_version),
    CARD(CARD_TEXT, code_commit),
    CARD(CARD_WHOLE, prediction_horizon), /* these three only where they were measured */
    CARD(CARD_REAL, prediction_variance),
    CARD(CARD_REAL, plan_variance),
};
#define CARD_COUNT ((int)(sizeof CARD_FIELDS / sizeof CARD_FIELDS[0]))

/* ---- writing ----------------------------------------------------------------------- */

/* The nearest short decimal of a setting: 0.1, not the 0.100000001 that a float holds. */
static double size_of(const cgs_lewm_config *c, const char *key) {
    if (!strcmp(key, CGS_SIZE_ACTION_BLOCK)) return cgs_lewm_action_block(c);
    char text[64] = "";
    for (int i = 0; i < cgs_lewm_field_count; i++)
        if (!strcmp(cgs_lewm_fields[i].key, key))
            cgs_config_format(&cgs_lewm_fields[i], c, text, sizeof text);
    double exact = strtod(text, NULL), v = exact;
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, exact);
        v = strtod(text, NULL);
        if ((float)v == (float)exact) break;
        v = exact;
    }
    return v;
}

static const char *encoder_name(const cgs_lewm_config *c) {
    for (int i = 0; i < ENCODER_COUNT; i++)
        if (c->width == ENCODERS[i].width && c->encoder_layers == ENCODERS[i].layers &&
            c->encoder_heads == ENCODERS[i].heads && c->encoder_mlp == ENCODERS[i].mlp)
            return ENCODERS[i].name;
    return NULL;
}

/* the classes that upstream builds its sections with */
static const struct {
    const char *section, *target;
} TARGETS[] = {
    {"encoder", "stable_pretraining.backbone.utils.vit_hf"},
    {"predictor", "stable_worldmodel.wm.lewm.module.Predictor"},
    {"action_encoder", "stable_worldmodel.wm.lewm.module.Embedder"},
    {"projector", "stable_worldmodel.wm.lewm.module.MLP"},
    {"pred_proj", "stable_worldmodel.wm.lewm.module.MLP"},
};

static bool write_norm(cJSON *section) {
    cJSON *norm = cJSON_AddObjectToObject(section, "norm_fn");
    return norm && cJSON_AddStringToObject(norm, "_target_", "torch.nn.BatchNorm1d") &&
           cJSON_AddBoolToObject(norm, "_partial_", true);
}

static bool write_section(cJSON *to, const char *name, const cgs_lewm_config *c) {
    const char *encoder = strcmp(name, "encoder") ? NULL : encoder_name(c);
    bool ok = !encoder || cJSON_AddStringToObject(to, "size", encoder);
    for (int i = 0; ok && i < UPSTREAM_COUNT; i++)
        if (!strcmp(UPSTREAM[i].section, name) && !(encoder && named_size(UPSTREAM[i].key)))
            ok = cJSON_AddNumberToObject(to, UPSTREAM[i].key, size_of(c, UPSTREAM[i].size));
    if (ok && !strcmp(name, "encoder"))
        ok = cJSON_AddBoolToObject(to, "pretrained", false) &&
             cJSON_AddBoolToObject(to, "use_mask_token", false);
    if (ok && !strcmp(name, "predictor")) ok = cJSON_AddNumberToObject(to, "emb_dropout", 0);
    if (ok && !strcmp(name, "action_encoder") && c->action_hidden % c->width == 0)
        ok = cJSON_AddNumberToObject(to, "mlp_scale", c->action_hidden / c->width);
    if (ok && (!strcmp(name, "projector") || !strcmp(name, "pred_proj"))) ok = write_norm(to);
    return ok;
}

static bool write_upstream(cJSON *root, const cgs_lewm_config *c) {
    bool ok = cJSON_AddStringToObject(root, "_target_", "stable_worldmodel.wm.lewm.LeWM");
    for (size_t i = 0; ok && i < sizeof TARGETS / sizeof TARGETS[0]; i++) {
        cJSON *section = cJSON_AddObjectToObject(root, TARGETS[i].section);
        ok = section && cJSON_AddStringToObject(section, "_target_", TARGETS[i].target) &&
             write_section(section, TARGETS[i].section, c);
    }
    return ok;
}

/* File names need not be UTF-8, but JSON must be. */
static bool write_text(cJSON *to, const char *key, const char *text) {
    char plain[256];
    snprintf(plain, sizeof plain, "%s", text);
    if (!cgs_is_utf8(plain, strlen(plain)))
        for (char *p = plain; *p; p++)
            if ((unsigned char)*p >= 0x80) *p = '?';
    return cJSON_AddStringToObject(to, key, plain);
}

bool cgs_card_json_write(cJSON *to, const cgs_model_card *card, int action_dim) {
    bool ok = true;
    for (int i = 0; ok && i < CARD_COUNT; i++) {
        const char *key = CARD_FIELDS[i].key;
        const void *at = (const char *)card + CARD_FIELDS[i].offset;
        char digits[24];
        if (CARD_FIELDS[i].offset >= offsetof(cgs_model_card, prediction_horizon) &&
            !card->prediction_horizon)
            continue;
        switch (CARD_FIELDS[i].kind) {
        case CARD_TEXT: ok = write_text(to, key, at); break;
        case CARD_REAL: ok = cJSON_AddNumberToObject(to, key, *(const double *)at); break;
        case CARD_WHOLE: ok = cJSON_AddNumberToObject(to, key, (double)*(const int64_t *)at); break;
        case CARD_SEED: /* as text: not every 64-bit seed survives a JSON number */
            snprintf(digits, sizeof digits, "%llu", (unsigned long long)*(const uint64_t *)at);
            ok = cJSON_AddStringToObject(to, key, digits);
            break;
        }
    }
    if (!ok || !cgs_card_has_statistics(card)) return ok;
    cJSON *mean = cJSON_CreateDoubleArray(card->action_mean, action_dim);
    cJSON *std = cJSON_CreateDoubleArray(card->action_std, action_dim);
    return mean && std && cJSON_AddItemToObject(to, "action_mean", mean) &&
           cJSON_AddItemToObject(to, "action_std", std);
}

cgs_status cgs_config_json_write(char **text, const cgs_lewm_config *c,
                                 const cgs_model_card *card) {
    *text = NULL;
    CGS_TRY(cgs_card_check(card, c->action_dim));
    cJSON *root = cJSON_CreateObject(), *ours = NULL, *sizes = NULL, *to = NULL;
    bool ok = root && write_upstream(root, c) && (ours = cJSON_AddObjectToObject(root, "cgs")) &&
              cJSON_AddNumberToObject(ours, "version", VERSION) &&
              (sizes = cJSON_AddObjectToObject(ours, "sizes")) &&
              (to = cJSON_AddObjectToObject(ours, "card"));
    for (int i = 0; ok && i < cgs_lewm_field_count; i++)
        ok = cJSON_AddNumberToObject(sizes, cgs_lewm_fields[i].key,
                                     size_of(c, cgs_lewm_fields[i].key));
    char *json = ok && cgs_card_json_write(to, card, c->action_dim) ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (json) *text = strdup(json);
    cJSON_free(json);
    return *text ? CGS_OK : cgs_fail(CGS_ENOMEM, "config.json: no memory for its text");
}

/* ---- reading ----------------------------------------------------------------------- */

static cgs_status not_a(const char *what, const char *expected) {
    return cgs_fail(CGS_EFORMAT, "%s: expected %s", what, expected);
}

static cgs_status claim(cgs_sizes *s, const char *size, const cJSON *v, double scale,
                        const char *what) {
    if (!cJSON_IsNumber(v)) return not_a(what, "a number");
    return cgs_sizes_claim(s, size, v->valuedouble * scale, what);
}

/* A size name implies four sizes, except those that are given explicitly. */
static cgs_status read_encoder_name(cgs_sizes *s, const cJSON *encoder, const cJSON *v,
                                    const char *what) {
    if (!cJSON_IsString(v)) return not_a(what, "the name of a size");
    int hit = -1;
    for (int i = 0; i < ENCODER_COUNT; i++)
        if (!strcmp(v->valuestring, ENCODERS[i].name)) hit = i;
    if (hit < 0)
        return cgs_fail(CGS_EFORMAT, "%s: unknown encoder \"%.40s\"", what, v->valuestring);
    const struct {
        const char *key, *size;
        int value;
    } meant[] = {
        {"hidden_size", "model.width", ENCODERS[hit].width},
        {"num_hidden_layers", "model.encoder.layers", ENCODERS[hit].layers},
        {"num_attention_heads", "model.encoder.heads", ENCODERS[hit].heads},
        {"intermediate_size", "model.encoder.mlp", ENCODERS[hit].mlp},
    };
    for (int i = 0; i < 4; i++)
        if (!cJSON_GetObjectItemCaseSensitive(encoder, meant[i].key))
            CGS_TRY(cgs_sizes_claim(s, meant[i].size, meant[i].value, what));
    return CGS_OK;
}

/* Other members (norm_fn, pretrained, ...) do not affect sizes and are skipped. */
static cgs_status read_upstream(cgs_sizes *s, const cJSON *section, const char *file) {
    const cJSON *v;
    cJSON_ArrayForEach(v, section) {
        char what[4300];
        if (v->string[0] == '_') continue;
        snprintf(what, sizeof what, "%s: %s.%.40s", file, section->string, v->string);
        if (!strcmp(section->string, "encoder") && !strcmp(v->string, "size"))
            CGS_TRY(read_encoder_name(s, section, v, what));
        if (!strcmp(section->string, "action_encoder") && !strcmp(v->string, "mlp_scale"))
            CGS_TRY(claim(s, "model.action.hidden", v, s->config.width, what));
        if (!strcmp(section->string, "predictor") && !strcmp(v->string, "emb_dropout") &&
            (!cJSON_IsNumber(v) || v->valuedouble != 0))
            return not_a(what, "0, there is no dropout on embeddings");
        for (int i = 0; i < UPSTREAM_COUNT; i++)
            if (!strcmp(section->string, UPSTREAM[i].section) &&
                !strcmp(v->string, UPSTREAM[i].key))
                CGS_TRY(claim(s, UPSTREAM[i].size, v, 1, what));
    }
    return CGS_OK;
}

static cgs_status read_seed(const cJSON *v, uint64_t *out, const char *what) {
    if (!cJSON_IsString(v) || strspn(v->valuestring, "0123456789") != strlen(v->valuestring))
        return not_a(what, "digits in quotes");
    errno = 0;
    char *end;
    *out = strtoull(v->valuestring, &end, 10);
    return end == v->valuestring || errno ? not_a(what, "a number of 64 bits") : CGS_OK;
}

static cgs_status read_statistic(const cJSON *list, double *out, int *count, const char *what) {
    int n = 0;
    const cJSON *v;
    if (!cJSON_IsArray(list)) return not_a(what, "a list of numbers");
    cJSON_ArrayForEach(v, list) {
        if (!cJSON_IsNumber(v) || n == CGS_CARD_ACTIONS)
            return cgs_fail(CGS_EFORMAT, "%s: expected at most %d numbers", what, CGS_CARD_ACTIONS);
        out[n++] = v->valuedouble;
    }
    *count = n;
    return CGS_OK;
}

static cgs_status read_card_field(cgs_model_card *card, int i, const cJSON *v, const char *what) {
    void *at = (char *)card + CARD_FIELDS[i].offset;
    bool number = cJSON_IsNumber(v) && isfinite(v->valuedouble);
    switch (CARD_FIELDS[i].kind) {
    case CARD_TEXT:
        if (!cJSON_IsString(v) || strlen(v->valuestring) >= CARD_FIELDS[i].size)
            return cgs_fail(CGS_EFORMAT, "%s: expected a text of less than %zu bytes", what,
                            CARD_FIELDS[i].size);
        memcpy(at, v->valuestring, strlen(v->valuestring) + 1);
        return CGS_OK;
    case CARD_REAL:
        if (!number) return not_a(what, "a finite number");
        *(double *)at = v->valuedouble;
        return CGS_OK;
    case CARD_WHOLE:
        if (!number || !(v->valuedouble >= 0 && v->valuedouble <= WHOLE_MAX) ||
            v->valuedouble != floor(v->valuedouble))
            return not_a(what, "a whole number of at least 0");
        *(int64_t *)at = (int64_t)v->valuedouble;
        return CGS_OK;
    case CARD_SEED: return read_seed(v, at, what);
    }
    return CGS_OK;
}

cgs_status cgs_card_json_read(cgs_model_card *card, const cJSON *from, const char *file) {
    if (!cJSON_IsObject(from)) return cgs_fail(CGS_EFORMAT, "%s: cgs.card is missing", file);
    int means = 0, stds = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, from) {
        char what[4300];
        snprintf(what, sizeof what, "%s: cgs.card.%.40s", file, v->string);
        for (int i = 0; i < CARD_COUNT; i++)
            if (!strcmp(v->string, CARD_FIELDS[i].key)) CGS_TRY(read_card_field(card, i, v, what));
        if (!strcmp(v->string, "action_mean"))
            CGS_TRY(read_statistic(v, card->action_mean, &means, what));
        if (!strcmp(v->string, "action_std"))
            CGS_TRY(read_statistic(v, card->action_std, &stds, what));
    }
    if (means != stds)
        return cgs_fail(CGS_EFORMAT, "%s: cgs.card has %d action means and %d deviations", file,
                        means, stds);
    return CGS_OK;
}

static cgs_status read_ours(cgs_sizes *s, cgs_model_card *card, const cJSON *ours,
                            const char *file) {
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(ours, "version");
    if (!cJSON_IsNumber(version) || version->valuedouble != VERSION)
        return cgs_fail(CGS_EFORMAT, "%s: cgs.version is missing or not %d", file, VERSION);
    const cJSON *sizes = cJSON_GetObjectItemCaseSensitive(ours, "sizes"), *v;
    if (!cJSON_IsObject(sizes)) return cgs_fail(CGS_EFORMAT, "%s: cgs.sizes is missing", file);
    cJSON_ArrayForEach(v, sizes) {
        char what[4300];
        if (v->string[0] == '_') continue;
        snprintf(what, sizeof what, "%s: %.60s", file, v->string);
        CGS_TRY(claim(s, v->string, v, 1, what));
    }
    return cgs_card_json_read(card, cJSON_GetObjectItemCaseSensitive(ours, "card"), file);
}

cgs_status cgs_config_json_read(cgs_sizes *s, cgs_model_card *card, const char *text, size_t bytes,
                                const char *what) {
    const char *end = NULL;
    if (!cgs_is_utf8(text, bytes))
        return cgs_fail(CGS_EFORMAT, "%s: not a text file in UTF-8", what);
    cJSON *root = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
    if (!root)
        return cgs_fail(CGS_EFORMAT, "%s: not valid JSON at byte %zu", what,
                        end ? (size_t)(end - text) : 0);
    cgs_status rc = CGS_OK;
    if (!cJSON_IsObject(root)) rc = cgs_fail(CGS_EFORMAT, "%s: not a JSON object", what);
    for (; rc == CGS_OK && end < text + bytes; end++)
        if (!strchr(" \n\r\t", *end))
            rc = cgs_fail(CGS_EFORMAT, "%s: text after the JSON object", what);
    for (const cJSON *v = root->child; rc == CGS_OK && v; v = v->next) {
        if (v->string[0] == '_') continue;
        bool ours = !strcmp(v->string, "cgs");
        if (cJSON_IsObject(v))
            rc = ours ? read_ours(s, card, v, what) : read_upstream(s, v, what);
        else if (ours)
            rc = cgs_fail(CGS_EFORMAT, "%s: cgs is not an object", what);
    }
    cJSON_Delete(root);
    return rc;
}
