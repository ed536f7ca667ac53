/* backbone.c - the forward pass of the frozen ViT, its tensors, and positions of any grid. */
#include "model/backbone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

#define EPS 1e-6f
#define STD 0.02f
#define DIM(...)                                                                                   \
    (const int[]) { __VA_ARGS__ }

static const float HALF[3] = {0.5f, 0.5f, 0.5f};
static const float IMAGENET_MEAN[3] = {0.485f, 0.456f, 0.406f};
static const float IMAGENET_STD[3] = {0.229f, 0.224f, 0.225f};

/* ---- forward ----------------------------------------------------------------------- */

cgs_tensor *cgs_backbone_tokens(cgs_tape *t, cgs_backbone *b, cgs_tensor *frames, bool cls_only) {
    const cgs_backbone_config *c = &b->config;
    const float *mean = b->view.imagenet ? IMAGENET_MEAN : HALF;
    const float *std = b->view.imagenet ? IMAGENET_STD : HALF;
    cgs_tensor *x = cgs_patchify_resized(t, frames, b->view.size, c->patch, mean, std);
    x = cgs_linear(t, x, &b->patch.w, &b->patch.b);
    x = cgs_tokens(t, x, &b->cls, b->used_memory ? &b->used : &b->pos);
    for (int i = 0; i < c->layers; i++)
        x = cgs_vit_layer_forward(t, &b->layer[i], x, c->heads, EPS,
                                  cls_only && i + 1 == c->layers);
    return cgs_layernorm(t, x, &b->norm.w, &b->norm.b, EPS);
}

/* ---- tensors ----------------------------------------------------------------------- */

static void linear(cgs_params *p, cgs_affine *a, int out, int in, const char *name, int i) {
    cgs_param_declare(p, &a->w, CGS_INIT_NORMAL, STD, 2, DIM(out, in), "blocks.%d.%s.weight", i,
                      name);
    cgs_param_declare(p, &a->b, CGS_INIT_ZERO, 0, 1, DIM(out), "blocks.%d.%s.bias", i, name);
}

static void norm(cgs_params *p, cgs_affine *a, int n, const char *name, int i) {
    cgs_param_declare(p, &a->w, CGS_INIT_ONE, 0, 1, DIM(n), "blocks.%d.%s.weight", i, name);
    cgs_param_declare(p, &a->b, CGS_INIT_ZERO, 0, 1, DIM(n), "blocks.%d.%s.bias", i, name);
}

/* runs twice: to measure, then to bind */
static void declare(cgs_backbone *b) {
    cgs_params *p = &b->params;
    const cgs_backbone_config *c = &b->config;
    int D = c->width, k = c->patch;
    cgs_param_declare(p, &b->cls, CGS_INIT_NORMAL, STD, 3, DIM(1, 1, D), "cls_token");
    cgs_param_declare(p, &b->pos, CGS_INIT_NORMAL, STD, 3, DIM(1, c->grid * c->grid + 1, D),
                      "pos_embed");
    cgs_param_declare(p, &b->patch.w, CGS_INIT_NORMAL, STD, 4, DIM(D, 3, k, k),
                      "patch_embed.proj.weight");
    cgs_param_declare(p, &b->patch.b, CGS_INIT_ZERO, 0, 1, DIM(D), "patch_embed.proj.bias");
    for (int i = 0; i < c->layers; i++) {
        cgs_vit_layer *l = &b->layer[i];
        norm(p, &l->norm1, D, "norm1", i);
        linear(p, &l->qkv, 3 * D, D, "attn.qkv", i);
        linear(p, &l->out, D, D, "attn.proj", i);
        norm(p, &l->norm2, D, "norm2", i);
        linear(p, &l->fc1, c->mlp, D, "mlp.fc1", i);
        linear(p, &l->fc2, D, c->mlp, "mlp.fc2", i);
        /* stored in files; 1 once they are multiplied into the weights; not trained */
        for (int s = 0; s < 2; s++)
            cgs_param_statistic(p, &b->scale[2 * i + s], CGS_INIT_ONE, D, "blocks.%d.ls%d.gamma", i,
                                s + 1);
    }
    cgs_param_declare(p, &b->norm.w, CGS_INIT_ONE, 0, 1, DIM(D), "norm.weight");
    cgs_param_declare(p, &b->norm.b, CGS_INIT_ZERO, 0, 1, DIM(D), "norm.bias");
}

static cgs_status check(const cgs_backbone_config *c, const cgs_backbone_view *v) {
    if (c->heads < 1 || c->width % c->heads)
        return cgs_fail(CGS_EARG, "backbone: %d heads do not divide its width %d", c->heads,
                        c->width);
    if (v->size < c->patch || v->size % c->patch)
        return cgs_fail(CGS_EARG,
                        "model.backbone.size: %d pixels is no multiple of the backbone's patch %d",
                        v->size, c->patch);
    return CGS_OK;
}

cgs_status cgs_backbone_create(cgs_backbone **out, const cgs_backbone_config *c,
                               const cgs_backbone_view *v, cgs_device *d, bool training) {
    *out = NULL;
    CGS_TRY(check(c, v));
    cgs_backbone *b = calloc(1, sizeof *b);
    if (!b) return cgs_fail(CGS_ENOMEM, "backbone: no memory");
    b->config = *c;
    b->view = *v;
    b->layer = calloc((size_t)c->layers, sizeof *b->layer);
    b->scale = calloc((size_t)c->layers * 2, sizeof *b->scale);
    cgs_status rc = b->layer && b->scale ? CGS_OK : cgs_fail(CGS_ENOMEM, "backbone: no memory");
    if (rc == CGS_OK) {
        declare(b);
        rc = cgs_params_bind(&b->params, d, training);
    }
    if (rc == CGS_OK) {
        declare(b);
        *out = b;
    } else {
        cgs_backbone_destroy(b);
    }
    return rc;
}

void cgs_backbone_destroy(cgs_backbone *b) {
    if (!b) return;
    if (b->used_memory) b->params.device->ops->release(b->params.device, b->used_memory);
    cgs_params_free(&b->params);
    free(b->layer);
    free(b->scale);
    free(b);
}

/* ---- positions --------------------------------------------------------------------- */

/* weights of the taps -1, 0, 1, 2 at a fraction in [0, 1): cubic convolution, a = -0.75 */
static void cubic(double at, double w[4]) {
    const double a = -0.75;
    for (int i = 0; i < 4; i++) {
        double x = fabs(at + 1 - i);
        w[i] = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                      : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
}

static int clamp(int v, int most) { return v < 0 ? 0 : v > most ? most : v; }

void cgs_interpolate_positions(const float *table, int from, int to, int D, bool hub, float *out) {
    size_t d = (size_t)D;
    memcpy(out, table, d * sizeof *out);
    if (from == to) {
        memcpy(out, table, ((size_t)from * (size_t)from + 1) * d * sizeof *out);
        return;
    }
    /* torch-hub's code passes a scale factor that is a little too large, HuggingFace's a size */
    double step = from / (to + (hub ? 0.1 : 0));
    for (int y = 0; y < to; y++)
        for (int x = 0; x < to; x++) {
            double sy = (y + 0.5) * step - 0.5, sx = (x + 0.5) * step - 0.5, wy[4], wx[4];
            int fy = (int)floor(sy), fx = (int)floor(sx);
            cubic(sy - fy, wy);
            cubic(sx - fx, wx);
            float *to_row = out + (1 + (size_t)y * (size_t)to + (size_t)x) * d;
            for (size_t k = 0; k < d; k++) {
                double sum = 0;
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) {
                        int row = clamp(fy - 1 + i, from - 1) * from + clamp(fx - 1 + j, from - 1);
                        sum += wy[i] * wx[j] * table[(1 + (size_t)row) * d + k];
                    }
                to_row[k] = (float)sum;
            }
        }
}

static cgs_status interpolate(cgs_backbone *b) {
    int side = b->view.size / b->config.patch, D = b->config.width;
    size_t n = ((size_t)side * (size_t)side + 1) * (size_t)D;
    cgs_device *d = b->params.device;
    const cgs_param *e = cgs_params_find(&b->params, "pos_embed");
    float *table = malloc(e->count * sizeof *table), *out = malloc(n * sizeof *out);
    cgs_status rc = table && out ? cgs_param_read(&b->params, e, table)
                                 : cgs_fail(CGS_ENOMEM, "backbone: no memory for positions");
    if (rc == CGS_OK) cgs_interpolate_positions(table, b->config.grid, side, D, b->view.hub, out);
    if (rc == CGS_OK && !b->used_memory) rc = d->ops->alloc(d, &b->used_memory, n * sizeof *out);
    if (rc == CGS_OK) rc = d->ops->upload(d, b->used_memory, out, n * sizeof *out);
    b->used = (cgs_tensor){.name = "positions",
                           .rank = 2,
                           .dim = {side * side + 1, D},
                           .keep = true,
                           .outside = true,
                           .data = b->used_memory};
    free(table);
    free(out);
    return rc;
}

/* ---- layer scale ------------------------------------------------------------------- */

/* row i of a parameter times by[i] */
static cgs_status scale_rows(cgs_params *p, const float *by, const char *fmt, int layer) {
    char name[CGS_PARAM_NAME];
    snprintf(name, sizeof name, fmt, layer);
    const cgs_param *e = cgs_params_find(p, name);
    size_t rows = (size_t)e->dim[0], cols = e->count / rows;
    float *v = malloc(e->count * sizeof *v);
    cgs_status rc = v ? cgs_param_read(p, e, v) : cgs_fail(CGS_ENOMEM, "backbone: no memory");
    for (size_t i = 0; rc == CGS_OK && i < e->count; i++) v[i] *= by[i / cols];
    if (rc == CGS_OK) rc = cgs_param_write(p, e, v);
    free(v);
    return rc;
}

static cgs_status fold(cgs_backbone *b, int i, int which, float *by) {
    static const char *const weight[] = {"blocks.%d.attn.proj.weight", "blocks.%d.mlp.fc2.weight"};
    static const char *const bias[] = {"blocks.%d.attn.proj.bias", "blocks.%d.mlp.fc2.bias"};
    char name[CGS_PARAM_NAME];
    snprintf(name, sizeof name, "blocks.%d.ls%d.gamma", i, which + 1);
    const cgs_param *e = cgs_params_find(&b->params, name);
    CGS_TRY(cgs_param_read(&b->params, e, by));
    CGS_TRY(scale_rows(&b->params, by, weight[which], i));
    CGS_TRY(scale_rows(&b->params, by, bias[which], i));
    for (int k = 0; k < b->config.width; k++) by[k] = 1;
    return cgs_param_write(&b->params, e, by);
}

cgs_status cgs_backbone_settle(cgs_backbone *b) {
    float *by = malloc((size_t)b->config.width * sizeof *by);
    cgs_status rc = by ? CGS_OK : cgs_fail(CGS_ENOMEM, "backbone: no memory");
    for (int i = 0; rc == CGS_OK && i < 2 * b->config.layers; i++) rc = fold(b, i / 2, i % 2, by);
    free(by);
    if (rc == CGS_OK) rc = interpolate(b);
    if (rc == CGS_OK) cgs_params_round(&b->params);
    return rc;
}

cgs_status cgs_backbone_hash(const cgs_backbone *b, uint64_t *hash) {
    CGS_TRY(cgs_params_checksum(&b->params, hash));
    const int view[] = {b->view.image_size, b->view.size, b->view.hub, b->view.imagenet,
                        b->config.heads};
    for (size_t i = 0; i < sizeof view / sizeof view[0]; i++)
        *hash = cgs_mix64(*hash ^ (uint64_t)view[i]);
    return CGS_OK;
}
