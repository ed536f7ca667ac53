/* decoder.c - see decoder.h. */
#include "model/decoder.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "model/params_file.h"

#define FORMAT "cgs-decoder"
#define EPS 1e-5f
#define DIM(...) ((const int[]){__VA_ARGS__})

static int patches(const cgs_decoder_card *c) {
    return (c->image / c->patch) * (c->image / c->patch);
}

static void declare_linear(cgs_params *p, cgs_affine *a, int in, int out, const char *name) {
    float bound = 1.0f / sqrtf((float)in);
    cgs_param_declare(p, &a->w, CGS_INIT_UNIFORM, bound, 2, DIM(out, in), "%s.weight", name);
    cgs_param_declare(p, &a->b, CGS_INIT_ZERO, 0, 1, DIM(out), "%s.bias", name);
}

static void declare_norm(cgs_params *p, cgs_affine *a, int n, const char *name) {
    cgs_param_declare(p, &a->w, CGS_INIT_ONE, 0, 1, DIM(n), "%s.weight", name);
    cgs_param_declare(p, &a->b, CGS_INIT_ZERO, 0, 1, DIM(n), "%s.bias", name);
}

static void declare(cgs_decoder *p) {
    const cgs_decoder_card *c = &p->card;
    cgs_params *a = &p->params;
    int W = c->width, P = patches(c);
    char name[64];
    declare_linear(a, &p->in, c->latent, P * W, "in");
    cgs_param_declare(a, &p->pos, CGS_INIT_NORMAL, 0.02f, 2, DIM(P, W), "pos");
    for (int i = 0; i < c->layers; i++) {
        cgs_vit_layer *l = &p->layer[i];
        struct {
            cgs_affine *a;
            int in, out;
            const char *name;
        } part[] = {{&l->qkv, W, 3 * W, "qkv"},
                    {&l->out, W, W, "out"},
                    {&l->fc1, W, 4 * W, "fc1"},
                    {&l->fc2, 4 * W, W, "fc2"}};
        snprintf(name, sizeof name, "layers.%d.norm1", i);
        declare_norm(a, &l->norm1, W, name);
        snprintf(name, sizeof name, "layers.%d.norm2", i);
        declare_norm(a, &l->norm2, W, name);
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "layers.%d.%s", i, part[k].name);
            declare_linear(a, part[k].a, part[k].in, part[k].out, name);
        }
    }
    declare_norm(a, &p->final_norm, W, "norm");
    /* starts as the mean image for every latent */
    int pixels = 3 * c->patch * c->patch;
    cgs_param_declare(a, &p->out.w, CGS_INIT_ZERO, 0, 2, DIM(pixels, W), "out.weight");
    cgs_param_declare(a, &p->out.b, CGS_INIT_ZERO, 0, 1, DIM(pixels), "out.bias");
    cgs_param_declare(a, &p->mean, CGS_INIT_ZERO, 0, 2, DIM(P, pixels), "mean");
}

static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear_f32(t, x, &a->w, &a->b);
}

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_layernorm(t, x, &a->w, &a->b, EPS);
}

cgs_tensor *cgs_decoder_forward(cgs_tape *t, cgs_decoder *p, cgs_tensor *z) {
    const cgs_decoder_card *c = &p->card;
    int B = z->dim[0], P = patches(c), W = c->width;
    cgs_tensor *x = cgs_reshape(t, affine(t, z, &p->in), 3, DIM(B, P, W));
    x = cgs_add_pos(t, x, &p->pos);
    for (int i = 0; i < c->layers; i++) {
        cgs_vit_layer *l = &p->layer[i];
        cgs_tensor *a =
            cgs_attention(t, affine(t, norm(t, x, &l->norm1), &l->qkv), c->heads, false, 1, 0, 0);
        x = cgs_add(t, x, affine(t, a, &l->out));
        cgs_tensor *h = cgs_activate_f32(t, affine(t, norm(t, x, &l->norm2), &l->fc1), CGS_GELU);
        x = cgs_add(t, x, affine(t, h, &l->fc2));
    }
    x = cgs_add_pos(t, affine(t, norm(t, x, &p->final_norm), &p->out), &p->mean);
    return cgs_reshape(t, x, 2, DIM(B * P, 3 * c->patch * c->patch));
}

static cgs_status check(const cgs_decoder_card *c) {
    if (c->latent < 1 || c->image < 1 || c->patch < 1 || c->image % c->patch)
        return cgs_fail(CGS_EARG, "decoder: latents of %d, images of %d, patches of %d pixels",
                        c->latent, c->image, c->patch);
    if (c->latent > 4096 || c->image > 1024 || c->width > 4096)
        return cgs_fail(CGS_EARG, "decoder: latents of %d, images of %d, width %d are too large",
                        c->latent, c->image, c->width);
    if (c->width < 1 || c->heads < 1 || c->width % c->heads)
        return cgs_fail(CGS_EARG, "decoder: width %d is no multiple of %d heads", c->width,
                        c->heads);
    if (c->layers < 0 || c->layers > CGS_DECODER_LAYERS)
        return cgs_fail(CGS_EARG, "decoder: %d layers, at most %d", c->layers, CGS_DECODER_LAYERS);
    return CGS_OK;
}

static cgs_status build(cgs_decoder *p, cgs_device *d, bool training) {
    const cgs_decoder_card *c = &p->card;
    size_t per_image = (size_t)c->image * (size_t)c->image * 3;
    declare(p);
    CGS_TRY(cgs_params_bind(&p->params, d, training));
    declare(p);
    p->rows = calloc(CGS_DECODER_ROWS * (size_t)c->latent, sizeof *p->rows);
    p->pixels = malloc(CGS_DECODER_ROWS * per_image * sizeof *p->pixels);
    if (!p->rows || !p->pixels) return cgs_fail(CGS_ENOMEM, "decoder: no memory");
    CGS_TRY(cgs_tape_create(&p->tape, d, CGS_F32));
    cgs_tape_freeze_parameters(p->tape);
    p->z = cgs_input(p->tape, "z", CGS_F32, 2, DIM(CGS_DECODER_ROWS, c->latent));
    p->patches = cgs_keep(cgs_decoder_forward(p->tape, p, p->z));
    return cgs_tape_finish(p->tape, NULL);
}

cgs_status cgs_decoder_create(cgs_decoder **out, const cgs_decoder_card *card, cgs_device *d,
                              bool training) {
    *out = NULL;
    CGS_TRY(check(card));
    cgs_decoder *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "decoder: no memory");
    p->card = *card;
    cgs_status rc = build(p, d, training);
    if (rc != CGS_OK) {
        cgs_decoder_destroy(p);
        return rc;
    }
    *out = p;
    return CGS_OK;
}

void cgs_decoder_destroy(cgs_decoder *p) {
    if (!p) return;
    cgs_tape_destroy(p->tape);
    cgs_params_free(&p->params);
    free(p->rows);
    free(p->pixels);
    free(p);
}

cgs_status cgs_decoder_set_mean(cgs_decoder *p, const float *pixels) {
    CGS_TRY(cgs_param_write(&p->params, cgs_params_find(&p->params, "mean"), pixels));
    cgs_params_round(&p->params);
    return CGS_OK;
}

/* the inverse of cgs_patchify, for one image */
static void assemble(const cgs_decoder_card *c, const float *v, uint8_t *rgb) {
    int S = c->image, p = c->patch, side = S / p;
    for (int row = 0; row < side; row++)
        for (int col = 0; col < side; col++)
            for (int k = 0; k < 3; k++)
                for (int y = 0; y < p; y++)
                    for (int x = 0; x < p; x++) {
                        float value = (*v++ * cgs_image_std[k] + cgs_image_mean[k]) * 255;
                        size_t at = ((size_t)(row * p + y) * (size_t)S + (size_t)(col * p + x)) * 3;
                        rgb[at + (size_t)k] = (uint8_t)(fminf(fmaxf(value, 0), 255) + 0.5f);
                    }
}

cgs_status cgs_decoder_run(cgs_decoder *p, const float *z, int n, uint8_t *rgb) {
    size_t D = (size_t)p->card.latent, S = (size_t)p->card.image, image = S * S * 3;
    for (int at = 0; at < n; at += CGS_DECODER_ROWS) {
        int count = n - at < CGS_DECODER_ROWS ? n - at : CGS_DECODER_ROWS;
        memcpy(p->rows, z + (size_t)at * D, (size_t)count * D * sizeof *z);
        CGS_TRY(cgs_tensor_write(p->tape, p->z, p->rows));
        cgs_tape_forward(p->tape);
        CGS_TRY(cgs_tensor_read(p->tape, p->patches, p->pixels));
        for (size_t i = 0; i < (size_t)count; i++)
            assemble(&p->card, p->pixels + i * image, rgb + ((size_t)at + i) * image);
    }
    return CGS_OK;
}

/* ---- files ------------------------------------------------------------------------- */

cgs_status cgs_decoder_save(const char *dir, const cgs_decoder *p) {
    const cgs_decoder_card *c = &p->card;
    char path[4096], text[11][32];
    const char *key[11] = {"version", "latent", "image",   "patch", "width",    "layers",
                           "heads",   "model",  "updates", "loss",  "mean_loss"};
    const int whole[7] = {1, c->latent, c->image, c->patch, c->width, c->layers, c->heads};
    cgs_meta meta[13] = {{"format", FORMAT}};
    for (int i = 0; i < 7; i++) snprintf(text[i], sizeof text[i], "%d", whole[i]);
    snprintf(text[7], sizeof text[7], "%016llx", (unsigned long long)c->model);
    snprintf(text[8], sizeof text[8], "%llu", (unsigned long long)c->updates);
    snprintf(text[9], sizeof text[9], "%.9g", c->loss);
    snprintf(text[10], sizeof text[10], "%.9g", c->mean_loss);
    for (int i = 0; i < 11; i++) meta[i + 1] = (cgs_meta){key[i], text[i]};
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_DECODER_FILE));
    cJSON *record = cgs_split_record_json(&c->split);
    char *split = record ? cJSON_PrintUnformatted(record) : NULL;
    cJSON_Delete(record);
    if (!split) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    meta[12] = (cgs_meta){"split", split};
    cgs_status rc = cgs_params_save(&p->params, path, meta, 13);
    cJSON_free(split);
    return rc;
}

static cgs_status whole_number(const cgs_weights *w, const char *key, int low, int high, int *out) {
    const char *text = cgs_weights_meta(w, key);
    char *end = NULL;
    long v = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || v < low || v > high)
        return cgs_fail(CGS_EFORMAT, "%s: \"%s\" is not a whole number in %d ... %d", w->path, key,
                        low, high);
    *out = (int)v;
    return CGS_OK;
}

static cgs_status read_card(const cgs_weights *w, cgs_decoder_card *c) {
    const char *format = cgs_weights_meta(w, "format"), *model = cgs_weights_meta(w, "model");
    const char *loss = cgs_weights_meta(w, "loss"), *mean = cgs_weights_meta(w, "mean_loss");
    int version, updates;
    if (!format || strcmp(format, FORMAT))
        return cgs_fail(CGS_EFORMAT, "%s: not a decoder (\"format\" is not \"%s\")", w->path,
                        FORMAT);
    CGS_TRY(whole_number(w, "version", 1, 1, &version));
    CGS_TRY(whole_number(w, "latent", 1, 4096, &c->latent));
    CGS_TRY(whole_number(w, "image", 1, 1024, &c->image));
    CGS_TRY(whole_number(w, "patch", 1, 1024, &c->patch));
    CGS_TRY(whole_number(w, "width", 1, 4096, &c->width));
    CGS_TRY(whole_number(w, "layers", 0, CGS_DECODER_LAYERS, &c->layers));
    CGS_TRY(whole_number(w, "heads", 1, 4096, &c->heads));
    CGS_TRY(whole_number(w, "updates", 0, 1 << 30, &updates));
    c->updates = (uint64_t)updates;
    c->model = model ? strtoull(model, NULL, 16) : 0;
    c->loss = loss ? strtod(loss, NULL) : NAN;
    c->mean_loss = mean ? strtod(mean, NULL) : NAN;
    const char *split = cgs_weights_meta(w, "split");
    cJSON *j = split ? cJSON_Parse(split) : NULL;
    cgs_status rc = split && !j ? cgs_fail(CGS_EFORMAT, "%s: \"split\" is not JSON", w->path)
                                : cgs_split_record_parse(&c->split, w->path, j);
    cJSON_Delete(j);
    return rc;
}

cgs_status cgs_decoder_load(cgs_decoder **out, const char *dir, uint64_t model, cgs_device *d) {
    char path[4096];
    cgs_decoder_card card = {0};
    cgs_weights *w;
    *out = NULL;
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_DECODER_FILE));
    if (!cgs_file_exists(path))
        return cgs_fail(CGS_EIO, "%s: the model has no decoder; cgs decode --model %s fits one",
                        path, dir);
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = read_card(w, &card);
    cgs_weights_close(w);
    if (rc != CGS_OK) return rc;
    if (card.model != model)
        return cgs_fail(CGS_EFORMAT,
                        "%s: the decoder was fitted to weights %016llx, the model has %016llx",
                        path, (unsigned long long)card.model, (unsigned long long)model);
    CGS_TRY(cgs_decoder_create(out, &card, d, false));
    rc = cgs_params_load(&(*out)->params, path);
    if (rc != CGS_OK) {
        cgs_decoder_destroy(*out);
        *out = NULL;
    }
    return rc;
}
