/* prior.c - see prior.h. */
#include "model/prior.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "model/gaussian_head.h"
#include "model/params_file.h"

#define FORMAT "cgs-prior"
#define VERSION 2        /* a behaviour-cloning prior without a spread is written as version 1 */
#define MAX_SIZE 65536.0 /* of any layer */

enum { LAYERS = 3 };

/* by kind: names, files, and what fits it */
static const struct {
    const char *name, *card, *weights, *fit;
} kinds[CGS_PRIOR_KINDS] = {
    {"behaviour", "prior.json", "prior.safetensors", ""},
    {"inverse", "inverse.json", "inverse.safetensors", "--kind inverse "},
};

const char *cgs_prior_kind_name(cgs_prior_kind k) { return kinds[k].name; }

cgs_status cgs_prior_kind_parse(cgs_prior_kind *k, const char *name) {
    for (int i = 0; i < CGS_PRIOR_KINDS; i++)
        if (!strcmp(name, kinds[i].name)) {
            *k = (cgs_prior_kind)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "kind of a prior: \"%.40s\" is not behaviour or inverse", name);
}

int cgs_prior_values(const cgs_prior_card *c) { return c->horizon * c->block; }

int cgs_prior_outputs(const cgs_prior_card *c) { return (c->spread ? 2 : 1) * cgs_prior_values(c); }

/* inputs and outputs of the layers: 2D, hidden, hidden, H*A or twice that */
static void sizes(const cgs_prior_card *c, int n[LAYERS + 1]) {
    n[0] = 2 * c->width;
    n[1] = n[2] = c->hidden;
    n[3] = cgs_prior_outputs(c);
}

static void declare(cgs_prior *p) {
    int n[LAYERS + 1];
    sizes(&p->card, n);
    for (int i = 0; i < LAYERS; i++) {
        float bound = 1.0f / sqrtf((float)n[i]);
        const int w[2] = {n[i + 1], n[i]}, b[1] = {n[i + 1]};
        cgs_param_declare(&p->params, &p->layer[i].w, CGS_INIT_UNIFORM, bound, 2, w,
                          "layers.%d.weight", i);
        cgs_param_declare(&p->params, &p->layer[i].b, CGS_INIT_UNIFORM, bound, 1, b,
                          "layers.%d.bias", i);
    }
    if (p->card.spread)
        cgs_param_statistic(&p->params, &p->factor, CGS_INIT_ONE, cgs_prior_values(&p->card),
                            "spread.factor");
}

cgs_tensor *cgs_prior_forward(cgs_tape *t, cgs_prior *p, cgs_tensor *pair) {
    cgs_tensor *x = pair;
    for (int i = 0; i < LAYERS; i++) {
        x = cgs_linear_f32(t, x, &p->layer[i].w, &p->layer[i].b);
        if (i + 1 < LAYERS) x = cgs_activate_f32(t, x, CGS_GELU);
    }
    return x;
}

static cgs_status build(cgs_prior *p, cgs_device *d, bool training) {
    int n[LAYERS + 1];
    sizes(&p->card, n);
    declare(p);
    CGS_TRY(cgs_params_bind(&p->params, d, training));
    declare(p);
    int widest = n[0] > n[LAYERS] ? n[0] : n[LAYERS];
    p->rows = malloc(CGS_PRIOR_ROWS * (size_t)widest * sizeof *p->rows);
    p->host_factor = malloc((size_t)cgs_prior_values(&p->card) * sizeof *p->host_factor);
    if (!p->rows || !p->host_factor) return cgs_fail(CGS_ENOMEM, "prior: no memory");
    for (int i = 0; i < cgs_prior_values(&p->card); i++) p->host_factor[i] = 1;
    CGS_TRY(cgs_tape_create(&p->tape, d, CGS_F32));
    cgs_tape_freeze_parameters(p->tape);
    const int dim[2] = {CGS_PRIOR_ROWS, n[0]};
    p->in = cgs_input(p->tape, "pair", CGS_F32, 2, dim);
    p->out = cgs_keep(cgs_prior_forward(p->tape, p, p->in));
    return cgs_tape_finish(p->tape, NULL);
}

cgs_status cgs_prior_create(cgs_prior **out, const cgs_prior_card *card, cgs_device *d,
                            bool training) {
    *out = NULL;
    if (card->width < 1 || card->hidden < 1 || card->horizon < 1 || card->block < 1)
        return cgs_fail(CGS_EARG, "prior: width %d, hidden %d, horizon %d, block %d are impossible",
                        card->width, card->hidden, card->horizon, card->block);
    cgs_prior *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "prior: no memory");
    p->card = *card;
    cgs_status rc = build(p, d, training);
    if (rc != CGS_OK) {
        cgs_prior_destroy(p);
        return rc;
    }
    *out = p;
    return CGS_OK;
}

void cgs_prior_destroy(cgs_prior *p) {
    if (!p) return;
    cgs_tape_destroy(p->tape);
    cgs_params_free(&p->params);
    free(p->rows);
    free(p->host_factor);
    free(p);
}

/* mean and spread of one plan from the outputs of the head */
static void take(const cgs_prior *p, const float *out, float *plan, float *spread) {
    size_t n = (size_t)cgs_prior_values(&p->card);
    memcpy(plan, out, n * sizeof *plan);
    for (size_t i = 0; spread && i < n; i++)
        spread[i] = p->card.spread
                        ? (float)(p->host_factor[i] * exp(0.5 * cgs_log_variance(out[n + i])))
                        : 1;
}

cgs_status cgs_prior_plan(cgs_prior *p, const float *z, const float *goal, int E, float *plan,
                          float *spread) {
    size_t D = (size_t)p->card.width, n = (size_t)cgs_prior_values(&p->card);
    for (int at = 0; at < E; at += CGS_PRIOR_ROWS) {
        int count = E - at < CGS_PRIOR_ROWS ? E - at : CGS_PRIOR_ROWS;
        for (int i = 0; i < CGS_PRIOR_ROWS; i++) {
            size_t e = (size_t)(at + (i < count ? i : count - 1));
            memcpy(p->rows + (size_t)i * 2 * D, z + e * D, D * sizeof *z);
            memcpy(p->rows + (size_t)i * 2 * D + D, goal + e * D, D * sizeof *z);
        }
        CGS_TRY(cgs_tensor_write(p->tape, p->in, p->rows));
        cgs_tape_forward(p->tape);
        CGS_TRY(cgs_tensor_read(p->tape, p->out, p->rows));
        for (int i = 0; i < count; i++) {
            size_t e = (size_t)(at + i);
            take(p, p->rows + (size_t)i * (size_t)cgs_prior_outputs(&p->card), plan + e * n,
                 spread ? spread + e * n : NULL);
        }
    }
    return CGS_OK;
}

cgs_status cgs_prior_calibrate(cgs_prior *p, const float *factor) {
    int n = cgs_prior_values(&p->card);
    for (int i = 0; i < n; i++)
        if (!isfinite(factor[i]) || !(factor[i] > 0))
            return cgs_fail(CGS_EFORMAT, "prior: the factor of the spread of value %d is %g", i,
                            (double)factor[i]);
    memmove(p->host_factor, factor, (size_t)n * sizeof *factor);
    return cgs_param_write(&p->params, cgs_params_find(&p->params, "spread.factor"), factor);
}

/* ---- files ------------------------------------------------------------------------- */

/* what version 1 does not have */
static bool write_kind(cJSON *j, const cgs_prior_card *c) {
    return cJSON_AddStringToObject(j, "kind", kinds[c->kind].name) &&
           cJSON_AddStringToObject(j, "spread", c->spread ? "learned" : "unit") &&
           cJSON_AddNumberToObject(j, "likelihood", c->likelihood);
}

static cgs_status save_card(const char *path, const cgs_prior_card *c) {
    bool first = c->kind == CGS_PRIOR_BEHAVIOUR && !c->spread;
    char model[24], seed[24];
    snprintf(model, sizeof model, "%016llx", (unsigned long long)c->model);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
    cJSON *j = cJSON_CreateObject();
    char *text = NULL;
    if (j && cJSON_AddStringToObject(j, "format", FORMAT) &&
        cJSON_AddNumberToObject(j, "version", first ? 1 : VERSION) &&
        cJSON_AddStringToObject(j, "model", model) &&
        cJSON_AddNumberToObject(j, "width", c->width) &&
        cJSON_AddNumberToObject(j, "hidden", c->hidden) &&
        cJSON_AddNumberToObject(j, "horizon", c->horizon) &&
        cJSON_AddNumberToObject(j, "block", c->block) && cJSON_AddStringToObject(j, "seed", seed) &&
        cJSON_AddNumberToObject(j, "updates", (double)c->updates) &&
        cJSON_AddNumberToObject(j, "pairs", (double)c->pairs) &&
        cJSON_AddNumberToObject(j, "validation_pairs", (double)c->validation_pairs) &&
        cJSON_AddNumberToObject(j, "loss", c->loss) &&
        cJSON_AddNumberToObject(j, "validation_loss", c->validation_loss) &&
        cJSON_AddNumberToObject(j, "zero_loss", c->zero_loss) && (first || write_kind(j, c)) &&
        cJSON_AddItemToObject(j, "split", cgs_split_record_json(&c->split)))
        text = cJSON_Print(j);
    cJSON_Delete(j);
    if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = cgs_write_file(path, text, strlen(text));
    cJSON_free(text);
    return rc;
}

cgs_status cgs_prior_save(const char *dir, const cgs_prior *p) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, dir, kinds[p->card.kind].weights));
    CGS_TRY(cgs_params_save(&p->params, path, NULL, 0));
    CGS_TRY(cgs_path_join(path, sizeof path, dir, kinds[p->card.kind].card));
    return save_card(path, &p->card);
}

static cgs_status number(const char *path, const cJSON *j, const char *key, double low, double high,
                         double *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= low && v->valuedouble <= high))
        return cgs_fail(CGS_EFORMAT, "%s: \"%s\" is not a number in %g ... %g", path, key, low,
                        high);
    *out = v->valuedouble;
    return CGS_OK;
}

static cgs_status text_u64(const char *path, const cJSON *j, const char *key, int base,
                           uint64_t *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    char *end = NULL;
    if (cJSON_IsString(v) && v->valuestring[0] != '-') *out = strtoull(v->valuestring, &end, base);
    if (!end || *end || end == v->valuestring)
        return cgs_fail(CGS_EFORMAT, "%s: \"%s\" is not a whole number in quotes", path, key);
    return CGS_OK;
}

static cgs_status parse_kind(const char *path, const cJSON *j, cgs_prior_card *c) {
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "kind"));
    const char *spread = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "spread"));
    if (!kind || cgs_prior_kind_parse(&c->kind, kind) != CGS_OK)
        return cgs_fail(CGS_EFORMAT, "%s: \"kind\" is not behaviour or inverse", path);
    c->spread = spread && !strcmp(spread, "learned");
    if (!c->spread && (!spread || strcmp(spread, "unit")))
        return cgs_fail(CGS_EFORMAT, "%s: \"spread\" is not unit or learned", path);
    return number(path, j, "likelihood", -1e30, 1e30, &c->likelihood);
}

static cgs_status parse_card(const char *path, const cJSON *j, cgs_prior_card *c) {
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(j, "format");
    double v[10], version = 1;
    if (!cJSON_IsString(format) || strcmp(format->valuestring, FORMAT))
        return cgs_fail(CGS_EFORMAT, "%s: not a prior (\"format\" is not \"%s\")", path, FORMAT);
    CGS_TRY(number(path, j, "version", 1, VERSION, &version));
    CGS_TRY(number(path, j, "width", 1, MAX_SIZE, &v[0]));
    CGS_TRY(number(path, j, "hidden", 1, MAX_SIZE, &v[1]));
    CGS_TRY(number(path, j, "horizon", 1, 4096, &v[2]));
    CGS_TRY(number(path, j, "block", 1, 4096, &v[3]));
    CGS_TRY(number(path, j, "updates", 0, 0x1p53, &v[4]));
    CGS_TRY(number(path, j, "pairs", 0, 0x1p53, &v[5]));
    CGS_TRY(number(path, j, "validation_pairs", 0, 0x1p53, &v[6]));
    CGS_TRY(number(path, j, "loss", 0, 1e30, &v[7]));
    CGS_TRY(number(path, j, "validation_loss", 0, 1e30, &v[8]));
    CGS_TRY(number(path, j, "zero_loss", 0, 1e30, &v[9]));
    *c = (cgs_prior_card){.width = (int)v[0],
                          .hidden = (int)v[1],
                          .horizon = (int)v[2],
                          .block = (int)v[3],
                          .updates = (uint64_t)v[4],
                          .pairs = (int64_t)v[5],
                          .validation_pairs = (int64_t)v[6],
                          .loss = v[7],
                          .validation_loss = v[8],
                          .zero_loss = v[9]};
    if (version > 1) CGS_TRY(parse_kind(path, j, c));
    CGS_TRY(cgs_split_record_parse(&c->split, path, cJSON_GetObjectItemCaseSensitive(j, "split")));
    CGS_TRY(text_u64(path, j, "seed", 10, &c->seed));
    return text_u64(path, j, "model", 16, &c->model);
}

static cgs_status read_card(const char *path, cgs_prior_card *c) {
    char *text;
    size_t bytes;
    CGS_TRY(cgs_read_file(path, 1 << 20, &text, &bytes));
    cJSON *j = cJSON_ParseWithLength(text, bytes);
    cgs_status rc = j ? parse_card(path, j, c) : cgs_fail(CGS_EFORMAT, "%s: not JSON", path);
    cJSON_Delete(j);
    free(text);
    return rc;
}

cgs_status cgs_prior_load_card(cgs_prior_card *card, const char *dir, cgs_prior_kind kind) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, dir, kinds[kind].card));
    if (!cgs_file_exists(path))
        return cgs_fail(CGS_EIO, "%s: the model has no prior; cgs prior %s--model %s fits one",
                        path, kinds[kind].fit, dir);
    CGS_TRY(read_card(path, card));
    if (card->kind == kind) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: is a prior of the kind \"%s\"", path, kinds[card->kind].name);
}

/* what the file says of the spread, to the host */
static cgs_status read_factor(cgs_prior *p, const char *path) {
    const cgs_param *e = cgs_params_find(&p->params, "spread.factor");
    if (!e) return CGS_OK;
    CGS_TRY(cgs_param_read(&p->params, e, p->host_factor));
    cgs_status rc = cgs_prior_calibrate(p, p->host_factor);
    return rc == CGS_OK ? rc : cgs_fail_in(rc, path);
}

cgs_status cgs_prior_load(cgs_prior **out, const char *dir, cgs_prior_kind kind, uint64_t model,
                          cgs_device *d) {
    char path[4096];
    cgs_prior_card card;
    *out = NULL;
    CGS_TRY(cgs_prior_load_card(&card, dir, kind));
    CGS_TRY(cgs_path_join(path, sizeof path, dir, kinds[kind].card));
    if (card.model != model)
        return cgs_fail(CGS_EFORMAT,
                        "%s: the prior was fitted to weights %016llx, the model has %016llx", path,
                        (unsigned long long)card.model, (unsigned long long)model);
    CGS_TRY(cgs_prior_create(out, &card, d, false));
    cgs_status rc = cgs_path_join(path, sizeof path, dir, kinds[kind].weights);
    if (rc == CGS_OK) rc = cgs_params_load(&(*out)->params, path);
    if (rc == CGS_OK) rc = read_factor(*out, path);
    if (rc != CGS_OK) {
        cgs_prior_destroy(*out);
        *out = NULL;
    }
    return rc;
}
