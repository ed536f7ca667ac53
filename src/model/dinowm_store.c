/* dinowm_store.c - see dinowm_store.h; files are untrusted. */
#include "model/dinowm_store.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "model/config_json.h"
#include "model/params_file.h"

#define VERSION 1
#define CONFIG_LIMIT ((size_t)1 << 20)

/* ---- writing ----------------------------------------------------------------------- */

static bool write_sizes(cJSON *to, const cgs_dinowm_config *c) {
    bool ok = true;
    for (int i = 0; ok && i < cgs_dinowm_field_count; i++) {
        char text[CGS_TEXT_MAX];
        cgs_config_format(&cgs_dinowm_fields[i], c, text, sizeof text);
        ok = cgs_dinowm_fields[i].kind == CGS_KIND_text
                 ? cJSON_AddStringToObject(to, cgs_dinowm_fields[i].key, text) != NULL
                 : cJSON_AddRawToObject(to, cgs_dinowm_fields[i].key, text) != NULL;
    }
    return ok;
}

static cgs_status write_config(const char *path, const cgs_dinowm *m, const cgs_model_card *card,
                               const cgs_dinowm_card *more) {
    CGS_TRY(cgs_card_check(card, m->config.action_dim));
    cJSON *root = cJSON_CreateObject(), *ours = NULL, *to = NULL;
    bool ok = root && (ours = cJSON_AddObjectToObject(root, "cgs")) &&
              cJSON_AddNumberToObject(ours, "version", VERSION) &&
              cJSON_AddStringToObject(ours, "family", "dinowm") &&
              (to = cJSON_AddObjectToObject(ours, "sizes")) && write_sizes(to, &m->config) &&
              (to = cJSON_AddObjectToObject(ours, "card")) &&
              cgs_card_json_write(to, card, m->config.action_dim) &&
              cJSON_AddStringToObject(ours, "backbone", more->origin) &&
              (to = cJSON_AddObjectToObject(ours, "proprio")) &&
              cJSON_AddStringToObject(to, "column", more->column);
    cJSON *mean = cJSON_CreateDoubleArray(more->proprio_mean, more->proprio_dim);
    cJSON *std = cJSON_CreateDoubleArray(more->proprio_std, more->proprio_dim);
    ok = ok && cJSON_AddItemToObject(to, "mean", mean) && cJSON_AddItemToObject(to, "std", std);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    cgs_status rc = text ? cgs_write_file(path, text, strlen(text))
                         : cgs_fail(CGS_ENOMEM, "%s: no memory for its text", path);
    cJSON_free(text);
    return rc;
}

static cgs_status copy_file(const char *from, const char *to) {
    enum { PIECE = 1 << 20 };
    cgs_newfile n;
    FILE *f = fopen(from, "rb");
    char *piece = malloc(PIECE);
    cgs_status rc = CGS_OK;
    if (!f) rc = cgs_fail(CGS_EIO, "%s: %s", from, strerror(errno));
    if (rc == CGS_OK && !piece) rc = cgs_fail(CGS_ENOMEM, "%s: no memory to copy it", from);
    if (rc == CGS_OK && (rc = cgs_newfile_open(&n, to)) == CGS_OK) {
        size_t got;
        while ((got = fread(piece, 1, PIECE, f)) > 0) fwrite(piece, 1, got, n.f);
        if (ferror(f)) {
            cgs_newfile_abandon(&n);
            rc = cgs_fail(CGS_EIO, "%s: %s", from, strerror(errno));
        } else {
            rc = cgs_newfile_commit(&n);
        }
    }
    free(piece);
    if (f) fclose(f);
    return rc;
}

cgs_status cgs_dinowm_save(const char *dir, const cgs_dinowm *m, const cgs_model_card *card,
                           const cgs_dinowm_card *more, const char *backbone) {
    char path[4096];
    CGS_TRY(cgs_make_dirs(dir));
    if (backbone) {
        CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_BACKBONE_FILE));
        CGS_TRY(copy_file(backbone, path));
    }
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_WEIGHTS_FILE));
    CGS_TRY(cgs_params_save(&m->params, path, NULL, 0));
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_CONFIG_FILE));
    return write_config(path, m, card, more);
}

/* ---- reading ----------------------------------------------------------------------- */

static cgs_status read_sizes(cgs_dinowm_config *c, const cJSON *sizes, const char *path) {
    cgs_section section = {cgs_dinowm_fields, cgs_dinowm_field_count, c};
    cgs_config_defaults(&section, 1);
    const cJSON *v;
    if (!cJSON_IsObject(sizes)) return cgs_fail(CGS_EFORMAT, "%s: cgs.sizes is missing", path);
    cJSON_ArrayForEach(v, sizes) {
        char text[64];
        snprintf(text, sizeof text, "%.9g", v->valuedouble);
        if (!cJSON_IsString(v) && !cJSON_IsNumber(v))
            return cgs_fail(CGS_EFORMAT, "%s: %.60s: expected a number or a word", path, v->string);
        cgs_status rc =
            cgs_config_set(&section, 1, v->string, cJSON_IsString(v) ? v->valuestring : text);
        if (rc != CGS_OK) {
            cgs_fail_in(rc, path);
            return CGS_EFORMAT;
        }
    }
    return CGS_OK;
}

static cgs_status read_list(const cJSON *list, double *out, int count, const char *path,
                            const char *key) {
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count)
        return cgs_fail(CGS_EFORMAT, "%s: cgs.proprio.%s: expected %d numbers", path, key, count);
    for (int i = 0; i < count; i++) {
        const cJSON *v = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
            return cgs_fail(CGS_EFORMAT, "%s: cgs.proprio.%s[%d] is no finite number", path, key,
                            i);
        out[i] = v->valuedouble;
    }
    return CGS_OK;
}

static cgs_status read_more(cgs_dinowm_card *more, const cJSON *ours, int dim, const char *path) {
    const cJSON *p = cJSON_GetObjectItemCaseSensitive(ours, "proprio");
    const cJSON *origin = cJSON_GetObjectItemCaseSensitive(ours, "backbone");
    const cJSON *column = cJSON_GetObjectItemCaseSensitive(p, "column");
    if (!cJSON_IsString(origin) || !cJSON_IsString(column))
        return cgs_fail(CGS_EFORMAT, "%s: cgs.backbone and cgs.proprio.column must be texts", path);
    cgs_backbone_origin(more->origin, origin->valuestring);
    snprintf(more->column, sizeof more->column, "%.63s", column->valuestring);
    more->proprio_dim = dim;
    CGS_TRY(read_list(cJSON_GetObjectItemCaseSensitive(p, "mean"), more->proprio_mean, dim, path,
                      "mean"));
    CGS_TRY(
        read_list(cJSON_GetObjectItemCaseSensitive(p, "std"), more->proprio_std, dim, path, "std"));
    for (int i = 0; i < dim; i++)
        if (!(more->proprio_std[i] > 0))
            return cgs_fail(CGS_EFORMAT, "%s: cgs.proprio.std[%d] is %g, not positive", path, i,
                            more->proprio_std[i]);
    return CGS_OK;
}

static cgs_status parse(const char *path, cJSON **root) {
    char *text;
    size_t bytes;
    CGS_TRY(cgs_read_file(path, CONFIG_LIMIT, &text, &bytes));
    *root = cgs_is_utf8(text, bytes) ? cJSON_ParseWithLength(text, bytes) : NULL;
    free(text);
    return *root ? CGS_OK : cgs_fail(CGS_EFORMAT, "%s: not valid JSON", path);
}

static const cJSON *ours_of(const cJSON *root) {
    const cJSON *ours = cJSON_GetObjectItemCaseSensitive(root, "cgs");
    const cJSON *family = cJSON_GetObjectItemCaseSensitive(ours, "family");
    return cJSON_IsString(family) && !strcmp(family->valuestring, "dinowm") ? ours : NULL;
}

bool cgs_dinowm_is_dir(const char *dir) {
    char path[4096];
    cJSON *root = NULL;
    if (cgs_path_join(path, sizeof path, dir, CGS_CONFIG_FILE) != CGS_OK) return false;
    bool is = parse(path, &root) == CGS_OK && ours_of(root) != NULL;
    cJSON_Delete(root);
    return is;
}

static cgs_status read_config(const char *path, cgs_dinowm_config *c, cgs_model_card *card,
                              cgs_dinowm_card *more) {
    cJSON *root;
    CGS_TRY(parse(path, &root));
    const cJSON *ours = ours_of(root);
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(ours, "version");
    cgs_status rc = CGS_OK;
    if (!ours || !cJSON_IsNumber(version) || version->valuedouble != VERSION)
        rc = cgs_fail(CGS_EFORMAT, "%s: not the config.json of a DINO-WM model", path);
    if (rc == CGS_OK) rc = read_sizes(c, cJSON_GetObjectItemCaseSensitive(ours, "sizes"), path);
    if (rc == CGS_OK) rc = cgs_dinowm_check(c);
    if (rc == CGS_OK)
        rc = cgs_card_json_read(card, cJSON_GetObjectItemCaseSensitive(ours, "card"), path);
    if (rc == CGS_OK) rc = cgs_card_check(card, c->action_dim);
    if (rc == CGS_OK) rc = read_more(more, ours, c->proprio_dim, path);
    cJSON_Delete(root);
    return rc;
}

/* The sizes are checked against the file before memory is allocated for them. */
static cgs_status fits_file(const cgs_dinowm_config *c, const char *path) {
    cgs_weights *w;
    char text[CGS_SHAPE_TEXT];
    CGS_TRY(cgs_weights_open(&w, path));
    const cgs_weight *pos = cgs_weights_find(w, "predictor.pos_embedding");
    int W = cgs_dinowm_channels(c) + 2 * c->embed, rows = c->history * cgs_dinowm_tokens(c);
    cgs_status rc = CGS_OK;
    if (!pos)
        rc = cgs_fail(CGS_EFORMAT, "%s: predictor.pos_embedding is missing", path);
    else if (pos->rank != 3 || pos->dim[1] != rows || pos->dim[2] != W)
        rc = cgs_fail(CGS_EFORMAT, "%s: predictor.pos_embedding has shape %s, expected [1,%d,%d]",
                      path, cgs_weights_shape(pos, text), rows, W);
    cgs_weights_close(w);
    return rc;
}

cgs_status cgs_dinowm_load(cgs_dinowm **out, cgs_model_card *card, cgs_dinowm_card *more,
                           const char *dir, cgs_device *d, bool training) {
    char config[4096], weights[4096], frozen[4096];
    cgs_dinowm_config c;
    cgs_backbone_view view;
    cgs_backbone *backbone = NULL;
    *out = NULL;
    *card = (cgs_model_card){0};
    *more = (cgs_dinowm_card){0};
    CGS_TRY(cgs_path_join(config, sizeof config, dir, CGS_CONFIG_FILE));
    CGS_TRY(cgs_path_join(weights, sizeof weights, dir, CGS_WEIGHTS_FILE));
    CGS_TRY(cgs_path_join(frozen, sizeof frozen, dir, CGS_BACKBONE_FILE));
    CGS_TRY(read_config(config, &c, card, more));
    CGS_TRY(fits_file(&c, weights));
    CGS_TRY(cgs_dinowm_view(&c, &view));
    CGS_TRY(cgs_backbone_load(&backbone, frozen, &view, d));
    cgs_status rc = cgs_dinowm_create(out, &c, backbone, d, training);
    if (rc != CGS_OK) {
        cgs_backbone_destroy(backbone);
        return rc;
    }
    rc = cgs_params_load(&(*out)->params, weights);
    if (rc != CGS_OK) {
        cgs_model_destroy(&(*out)->base);
        *out = NULL;
    }
    return rc;
}
