/* store.c - reading and writing a model's weights, and model directories.
 *
 * Reading checks every name and shape before any value, and sizes come from the shapes in the file,
 * so a file cannot request more memory than it fills. */
#include "model/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/build.h"
#include "core/file.h"
#include "io/kind.h"
#include "io/safetensors.h"
#include "model/config_json.h"
#include "model/params_file.h"
#include "model/sizes.h"
#include "model/tensor_names.h"

#define CONFIG_LIMIT ((size_t)1 << 20)
/* metadata of our safetensors files */
#define META_CHECKSUM "cgs.crc32" /* of all bytes after the header, eight hex digits */
#define META_CONFIG "cgs.config"  /* a config.json */

static const char *const COUNTERS[] = {"projector.net.1.num_batches_tracked",
                                       "pred_proj.net.1.num_batches_tracked"};

/* ---- the card ---------------------------------------------------------------------- */

cgs_model_card cgs_card_default(void) {
    cgs_model_card card = {.method = "imported", .std_divisor = "rows", .precision = "f32"};
    snprintf(card.code_version, sizeof card.code_version, "%s", cgs_version());
    snprintf(card.code_commit, sizeof card.code_commit, "%s", cgs_commit());
    return card;
}

bool cgs_card_has_statistics(const cgs_model_card *card) { return card->action_std[0] > 0; }

cgs_status cgs_card_check(const cgs_model_card *card, int action_dim) {
    const double single[] = {card->sigreg_weight, card->ts_weight, card->cgs_weight,
                             card->train_fraction};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        if (!isfinite(single[i]))
            return cgs_fail(CGS_EFORMAT, "model card: a weight or fraction is not finite");
    if (!(card->prediction_variance >= 0 && card->prediction_variance <= 1e30) ||
        !(card->plan_variance >= 0 && card->plan_variance <= 1e30))
        return cgs_fail(CGS_EFORMAT, "model card: variances of %g and %g are impossible",
                        card->prediction_variance, card->plan_variance);
    for (int i = 0; i < CGS_CARD_ACTIONS; i++) {
        double mean = card->action_mean[i], std = card->action_std[i];
        bool known = cgs_card_has_statistics(card) && i < action_dim;
        if (!isfinite(mean) || !isfinite(std) || (known && std <= 0))
            return cgs_fail(CGS_EFORMAT, "model card: action %d has mean %g and deviation %g", i,
                            mean, std);
        if (!known && (mean != 0 || std != 0))
            return cgs_fail(CGS_EFORMAT, "model card: statistics of action %d, the model has %d", i,
                            action_dim);
    }
    return CGS_OK;
}

/* ---- writing weights --------------------------------------------------------------- */

/* The counters come first, as they are wider: so the list is in the order of the file. */
static cgs_status gather(const cgs_lewm *m, cgs_save *list, float *values, const int64_t *counter) {
    for (int i = 0; i < 2; i++)
        list[i] = (cgs_save){.name = COUNTERS[i], .type = CGS_W_I64, .data = counter};
    for (int i = 0; i < m->params.count; i++) {
        const cgs_param *e = &m->params.list[i];
        CGS_TRY(cgs_param_read(&m->params, e, values));
        for (size_t k = 0; k < e->count; k++)
            if (!isfinite(values[k]))
                return cgs_fail(CGS_ENUMERIC, "%s[%zu] is %g", e->name, k, (double)values[k]);
        cgs_save *s = &list[2 + i];
        *s = (cgs_save){.name = e->name, .type = CGS_W_F32, .rank = e->rank, .data = values};
        for (int k = 0; k < e->rank; k++) s->dim[k] = e->dim[k];
        values += e->count;
    }
    return CGS_OK;
}

cgs_status cgs_lewm_save_weights(const cgs_lewm *m, const char *path, const cgs_model_card *card) {
    size_t total = 0, count = (size_t)m->params.count + 2;
    for (int i = 0; i < m->params.count; i++) total += m->params.list[i].count;
    cgs_save *list = calloc(count, sizeof *list);
    float *values = malloc(total * sizeof *values);
    const int64_t counter = (int64_t)m->base.batches_tracked;
    char *config = NULL;
    cgs_status rc =
        list && values ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory for the weights", path);
    if (rc == CGS_OK && card) rc = cgs_config_json_write(&config, &m->config, card);
    if (rc == CGS_OK) {
        rc = gather(m, list, values, &counter);
        if (rc != CGS_OK) cgs_fail_in(rc, path);
    }
    if (rc == CGS_OK) {
        uLong crc = crc32(0, NULL, 0);
        for (int i = 0; i < 2; i++)
            crc = crc32(crc, (const unsigned char *)&counter, sizeof counter);
        crc = crc32_z(crc, (const unsigned char *)values, total * sizeof *values);
        char digits[16];
        snprintf(digits, sizeof digits, "%08lx", crc);
        /* "format" is checked by upstream's loaders */
        const cgs_meta meta[] = {{"format", "pt"}, {META_CHECKSUM, digits}, {META_CONFIG, config}};
        rc = cgs_safetensors_write(path, list, count, meta, config ? 3 : 2);
    }
    free(config);
    free(values);
    free(list);
    return rc;
}

/* ---- reading weights --------------------------------------------------------------- */

cgs_status cgs_weights_checksum(cgs_checksum_state *state, const cgs_weights *w) {
    const char *want = cgs_weights_meta(w, META_CHECKSUM);
    *state = CGS_CHECKSUM_NONE;
    if (!want || strcmp(w->format, "safetensors") != 0) return CGS_OK;
    uint64_t bytes = 0; /* the payload is everything after the header */
    for (size_t i = 0; i < w->count; i++) bytes += w->entry[i].bytes;
    enum { PIECE = 1 << 20 };
    unsigned char *piece = malloc(PIECE);
    if (!piece) return cgs_fail(CGS_ENOMEM, "%s: no memory to check it", w->path);
    uLong crc = crc32(0, NULL, 0);
    cgs_status rc = CGS_OK;
    for (uint64_t at = w->file_bytes - bytes; rc == CGS_OK && at < w->file_bytes;) {
        size_t n = w->file_bytes - at < PIECE ? (size_t)(w->file_bytes - at) : PIECE;
        rc = cgs_weights_pread(w, at, piece, n);
        if (rc == CGS_OK) crc = crc32_z(crc, piece, n);
        at += n;
    }
    free(piece);
    char digits[16];
    snprintf(digits, sizeof digits, "%08lx", crc);
    *state = strcmp(digits, want) ? CGS_CHECKSUM_WRONG : CGS_CHECKSUM_GOOD;
    return rc;
}

/* Every tensor of the model is there with its shape, and nothing else is. */
static cgs_status check_names(const cgs_lewm *m, const cgs_named_weights *c, const char *path) {
    int missing = 0;
    const char *first = NULL;
    for (int i = 0; i < m->params.count + 2; i++) {
        const cgs_param *e = i < m->params.count ? &m->params.list[i] : NULL;
        const char *name = e ? e->name : COUNTERS[i - m->params.count];
        const cgs_weight *w = cgs_named_weights_find(c, "%s", name);
        if (!w) {
            if (missing++ == 0) first = name;
            continue;
        }
        char seen[CGS_SHAPE_TEXT], want[CGS_SHAPE_TEXT];
        if (e && !cgs_param_same_shape(e, w))
            return cgs_fail(CGS_EFORMAT, "%s: %s: shape %s, the model needs %s", path, name,
                            cgs_weights_shape(w, seen), cgs_param_shape(e, want));
        if (!e && (w->type != CGS_W_I64 || w->count != 1))
            return cgs_fail(CGS_EFORMAT, "%s: %s: %s %s, expected one I64", path, name,
                            w->type_name, cgs_weights_shape(w, seen));
    }
    if (missing)
        return cgs_fail(CGS_EFORMAT, "%s: %s is missing%s", path, first,
                        missing > 1 ? ", and others are" : "");
    for (int i = 0; i < c->count; i++) {
        const char *name = c->list[i].name;
        if (cgs_params_find(&m->params, name) || !strcmp(name, COUNTERS[0]) ||
            !strcmp(name, COUNTERS[1]))
            continue;
        return cgs_fail(CGS_EFORMAT, "%s: tensor \"%.200s\" is no part of LeWM with these sizes",
                        path, c->list[i].weight->name);
    }
    return CGS_OK;
}

static cgs_status read_counter(cgs_lewm *m, const cgs_weight *w) {
    int64_t n;
    CGS_TRY(cgs_weights_read(w, &n));
    if (n < 0) return cgs_fail(CGS_EFORMAT, "%s: %s is %" PRId64, w->owner->path, w->name, n);
    /* one counter serves both: they count the same updates */
    if ((uint64_t)n > m->base.batches_tracked) m->base.batches_tracked = (uint64_t)n;
    return CGS_OK;
}

static cgs_status load(cgs_lewm *m, const cgs_weights *w, const cgs_named_weights *c) {
    CGS_TRY(check_names(m, c, w->path));
    cgs_checksum_state state;
    CGS_TRY(cgs_weights_checksum(&state, w));
    if (state == CGS_CHECKSUM_WRONG)
        return cgs_fail(CGS_EFORMAT, "%s: damaged, its tensors do not have the checksum %.16s",
                        w->path, cgs_weights_meta(w, META_CHECKSUM));
    for (int i = 0; i < m->params.count; i++) {
        const cgs_param *e = &m->params.list[i];
        CGS_TRY(cgs_param_fill(&m->params, e, cgs_named_weights_find(c, "%s", e->name)));
    }
    cgs_status rc = CGS_OK;
    m->base.batches_tracked = 0;
    for (int i = 0; rc == CGS_OK && i < 2; i++)
        rc = read_counter(m, cgs_named_weights_find(c, "%s", COUNTERS[i]));
    if (rc == CGS_OK) cgs_params_round(&m->params);
    return rc;
}

cgs_status cgs_lewm_load_weights(cgs_lewm *m, const char *path, int *ignored) {
    cgs_weights *w;
    cgs_named_weights c = {0};
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = cgs_named_weights_make(&c, w);
    if (rc == CGS_OK) rc = load(m, w, &c);
    if (ignored) *ignored = c.ignored;
    cgs_named_weights_free(&c);
    cgs_weights_close(w);
    return rc;
}

cgs_status cgs_lewm_infer_config(cgs_lewm_config *out, const char *weights_path) {
    cgs_weights *w;
    cgs_named_weights c = {0};
    cgs_sizes s = {0};
    CGS_TRY(cgs_weights_open(&w, weights_path));
    cgs_status rc = cgs_named_weights_make(&c, w);
    if (rc == CGS_OK) rc = cgs_sizes_from_tensors(&s, &c, weights_path);
    if (rc == CGS_OK) {
        rc = cgs_sizes_settle(&s, NULL, 0);
        if (rc != CGS_OK) cgs_fail_in(rc, weights_path);
    }
    if (rc == CGS_OK) *out = s.config;
    cgs_named_weights_free(&c);
    cgs_weights_close(w);
    return rc;
}

/* ---- models ------------------------------------------------------------------------ */

/* A file that lost its last layers looks like a smaller model.  Where nothing but shapes tells the
 * number of layers, it is compared with that of models of the same width. */
static void doubt_layers(cgs_import *how, const cgs_lewm_config *c) {
    static const struct {
        int width, encoder, predictor;
    } usual[] = {{96, 4, 3}, {192, 12, 6}, {384, 12, 6}, {768, 12, 6}, {1024, 24, 6}};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i].width == c->width &&
            (c->encoder_layers < usual[i].encoder || c->predictor_layers < usual[i].predictor))
            snprintf(how->doubt, sizeof how->doubt,
                     "it has %d encoder and %d predictor layers, models of width %d usually %d and "
                     "%d: are the last ones missing?",
                     c->encoder_layers, c->predictor_layers, c->width, usual[i].encoder,
                     usual[i].predictor);
}

/* Claims of the shapes, then of whatever describes the model, then guesses. */
static cgs_status learn_sizes(cgs_sizes *s, cgs_model_card *card, cgs_import *how,
                              const cgs_weights *w, const cgs_named_weights *c) {
    CGS_TRY(cgs_sizes_from_tensors(s, c, w->path));
    const char *inside = cgs_weights_meta(w, META_CONFIG);
    if (how->config) {
        char *text;
        size_t bytes;
        CGS_TRY(cgs_read_file(how->config, CONFIG_LIMIT, &text, &bytes));
        cgs_status rc = cgs_config_json_read(s, card, text, bytes, how->config);
        free(text);
        CGS_TRY(rc);
    } else if (inside) {
        char what[4200];
        snprintf(what, sizeof what, "%s: " META_CONFIG, w->path);
        CGS_TRY(cgs_config_json_read(s, card, inside, strlen(inside), what));
    }
    cgs_status rc = CGS_OK;
    if (how->action_dim)
        rc = cgs_sizes_claim(s, "model.action_dim", how->action_dim, "the action given");
    if (rc == CGS_OK) rc = cgs_sizes_settle(s, how->guessed, sizeof how->guessed);
    if (rc == CGS_OK && !how->config && !inside) doubt_layers(how, &s->config);
    if (rc == CGS_OK) rc = cgs_card_check(card, s->config.action_dim);
    return rc == CGS_OK ? rc : cgs_fail_in(rc, how->config ? how->config : w->path);
}

cgs_status cgs_model_import(cgs_lewm **out, cgs_model_card *card, cgs_import *how,
                            const char *weights, cgs_device *d, bool training) {
    cgs_weights *w;
    cgs_named_weights c = {0};
    cgs_sizes s = {0};
    cgs_model_card seen = {0};
    *out = NULL;
    how->doubt[0] = '\0';
    CGS_TRY(cgs_weights_open(&w, weights));
    cgs_status rc = cgs_named_weights_filter(&c, w, how->ignore, how->ignores);
    if (rc == CGS_OK) rc = learn_sizes(&s, &seen, how, w, &c);
    if (rc == CGS_OK) rc = cgs_lewm_create(out, &s.config, d, training);
    if (rc == CGS_OK) rc = load(*out, w, &c);
    if (rc != CGS_OK) {
        cgs_lewm_destroy(*out);
        *out = NULL;
    }
    how->ignored = c.ignored;
    memcpy(how->some, c.some, sizeof how->some);
    how->has_card = seen.method[0] != '\0';
    if (card) *card = how->has_card ? seen : cgs_card_default();
    cgs_named_weights_free(&c);
    cgs_weights_close(w);
    return rc;
}

/* a file in its place would be named with what should lie in it */
static cgs_status look_at_dir(const char *dir) {
    struct stat st;
    if (stat(dir, &st) != 0 || S_ISDIR(st.st_mode)) return CGS_OK;
    return cgs_fail(CGS_EIO, "%s: not a model directory: it is %s", dir, cgs_file_kind(dir));
}

cgs_status cgs_model_load(cgs_lewm **out, cgs_model_card *card, const char *dir, cgs_device *d,
                          bool training) {
    char weights[4096], config[4096];
    *out = NULL;
    CGS_TRY(look_at_dir(dir));
    CGS_TRY(cgs_path_join(weights, sizeof weights, dir, CGS_WEIGHTS_FILE));
    CGS_TRY(cgs_path_join(config, sizeof config, dir, CGS_CONFIG_FILE));
    cgs_import how = {.config = config};
    return cgs_model_import(out, card, &how, weights, d, training);
}

cgs_status cgs_model_save_card(const char *dir, const cgs_lewm *m, const cgs_model_card *card) {
    char path[4096], *text = NULL;
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_CONFIG_FILE));
    CGS_TRY(cgs_config_json_write(&text, &m->config, card));
    cgs_status rc = cgs_write_file(path, text, strlen(text));
    free(text);
    return rc;
}

cgs_status cgs_model_save(const char *dir, const cgs_lewm *m, const cgs_model_card *card) {
    char path[4096];
    CGS_TRY(cgs_card_check(card, m->config.action_dim));
    CGS_TRY(cgs_make_dirs(dir));
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_WEIGHTS_FILE));
    CGS_TRY(cgs_lewm_save_weights(m, path, NULL));
    return cgs_model_save_card(dir, m, card);
}
