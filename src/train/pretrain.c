/* pretrain.c - see pretrain.h. */
#include "train/pretrain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "train/checkpoint.h"
#include "train/optimiser.h"
#include "train/schedule.h"
#include "train/views.h"

#define DIM(...) ((const int[]){__VA_ARGS__})

enum { SAME_CLS, SAME_PATCH, SPREAD_CLS, SPREAD_PATCH, TERMS, EMBED = 64, PROJECTIONS = 256 };

cgs_pretrain_options cgs_pretrain_defaults(void) {
    return (cgs_pretrain_options){.size = "paper",
                                  .updates = 2000,
                                  .batch = 64,
                                  .lr = 5e-4,
                                  .sigreg = 0.05,
                                  .precision = "f32",
                                  .checkpoint_every = 250};
}

/* two layers on top of tokens, for training only.  Batch norm between them amplifies the small
 * differences of an untrained network: without it all frames look the same to SIGReg, whose
 * gradient vanishes there. */
typedef struct head {
    cgs_affine in, norm, out;
    cgs_tensor mean, var;
} head;

typedef struct pretrainer {
    const cgs_pretrain_options *o;
    cgs_views data;
    cgs_backbone *net;
    cgs_params params; /* of the heads */
    head cls, patch;
    cgs_tape *tape;
    cgs_tensor *frames;  /* (2*batch, S, S, 3): first views, then second ones */
    cgs_tensor *weights; /* (TERMS) */
    cgs_tensor *term[TERMS], *total;
    uint8_t *views; /* (2*batch, S, S, 3) */
    char checkpoint[4096];
    int done; /* updates */
} pretrainer;

/* ---- model ------------------------------------------------------------------------- */

static void declare_head(cgs_params *p, head *h, int D, const char *name) {
    float bound = 1.0f / sqrtf((float)D);
    cgs_param_declare(p, &h->in.w, CGS_INIT_UNIFORM, bound, 2, DIM(2 * D, D), "%s.0.weight", name);
    cgs_param_declare(p, &h->in.b, CGS_INIT_ZERO, 0, 1, DIM(2 * D), "%s.0.bias", name);
    cgs_param_declare(p, &h->norm.w, CGS_INIT_ONE, 0, 1, DIM(2 * D), "%s.1.weight", name);
    cgs_param_declare(p, &h->norm.b, CGS_INIT_ZERO, 0, 1, DIM(2 * D), "%s.1.bias", name);
    cgs_param_statistic(p, &h->mean, CGS_INIT_ZERO, 2 * D, "%s.1.running_mean", name);
    cgs_param_statistic(p, &h->var, CGS_INIT_ONE, 2 * D, "%s.1.running_var", name);
    bound = 1.0f / sqrtf(2 * (float)D);
    cgs_param_declare(p, &h->out.w, CGS_INIT_UNIFORM, bound, 2, DIM(EMBED, 2 * D), "%s.2.weight",
                      name);
    cgs_param_declare(p, &h->out.b, CGS_INIT_ZERO, 0, 1, DIM(EMBED), "%s.2.bias", name);
}

static cgs_status make_model(pretrainer *p, cgs_device *d) {
    cgs_backbone_config c = CGS_VIT_S14;
    cgs_backbone_view v = {.image_size = p->data.side, .size = 196, .hub = true};
    if (!strcmp(p->o->size, "small")) {
        c = (cgs_backbone_config){96, 4, 3, 384, 8, 8};
        v.size = 64;
    } else if (strcmp(p->o->size, "paper") != 0) {
        return cgs_fail(CGS_EARG, "unknown size preset \"%.40s\": use paper or small", p->o->size);
    }
    c.grid = v.size / c.patch;
    CGS_TRY(cgs_backbone_create(&p->net, &c, &v, d, true));
    snprintf(p->net->origin, sizeof p->net->origin, CGS_STAND_IN);
    for (int run = 0; run < 2; run++) { /* to measure, then to bind */
        declare_head(&p->params, &p->cls, c.width, "cls");
        declare_head(&p->params, &p->patch, c.width, "patch");
        if (run == 0) CGS_TRY(cgs_params_bind(&p->params, d, true));
    }
    CGS_TRY(cgs_params_init(&p->net->params, p->o->seed));
    return cgs_params_init(&p->params, p->o->seed + 1);
}

static cgs_tensor *embed(cgs_tape *t, head *h, cgs_tensor *x) {
    x = cgs_linear_f32(t, x, &h->in.w, &h->in.b);
    x = cgs_batchnorm(t, x, &h->norm.w, &h->norm.b, &h->mean, &h->var, true);
    return cgs_linear_f32(t, cgs_activate(t, x, CGS_GELU), &h->out.w, &h->out.b);
}

/* maps the two halves of tokens (2B, n, D) through a head: their distance, and SIGReg of all */
static void compare(pretrainer *p, head *h, cgs_tensor *tokens, int same, uint64_t key) {
    cgs_tape *t = p->tape;
    int F = tokens->dim[0], n = tokens->dim[1];
    cgs_tensor *z = cgs_reshape(t, embed(t, h, tokens), 3, DIM(1, F * n, EMBED));
    cgs_tensor *first = cgs_take(t, z, 0, F * n / 2),
               *second = cgs_take(t, z, F * n / 2, F * n / 2);
    p->term[same] = cgs_keep(cgs_mse(t, first, second));
    z = cgs_reshape(t, z, 3, DIM(F * n, 1, EMBED));
    p->term[same + SPREAD_CLS] =
        cgs_keep(cgs_sigreg(t, z, cgs_directions(t, PROJECTIONS, EMBED, key)));
}

static cgs_status make_tape(pretrainer *p, cgs_device *d) {
    bool bf16 = !strcmp(p->o->precision, "bf16");
    if (!bf16 && strcmp(p->o->precision, "f32") != 0)
        return cgs_fail(CGS_EARG, "precision \"%.20s\" is not f32 or bf16", p->o->precision);
    CGS_TRY(cgs_tape_create(&p->tape, d, bf16 ? CGS_BF16 : CGS_F32));
    cgs_tape *t = p->tape;
    int F = 2 * p->o->batch, S = p->data.side;
    p->frames = cgs_input(t, "frames", CGS_U8, 4, DIM(F, S, S, 3));
    p->weights = cgs_input(t, "weights", CGS_F32, 1, DIM(TERMS));
    cgs_tensor *tokens = cgs_backbone_tokens(t, p->net, p->frames, false);
    int P = tokens->dim[1] - 1;
    cgs_rng r = cgs_rng_stream(p->o->seed, CGS_STREAM_SIGREG, 0);
    compare(p, &p->cls, cgs_take(t, tokens, 0, 1), SAME_CLS, r.key);
    compare(p, &p->patch, cgs_take(t, tokens, 1, P), SAME_PATCH, cgs_mix64(r.key));
    p->total = cgs_keep(cgs_weighted_sum(t, p->weights, p->term, TERMS));
    CGS_TRY(cgs_tape_finish(t, p->total));
    /* SIGReg's gradient at one token does not fall with the number of tokens, that of a mean does
     */
    const float lambda = (float)p->o->sigreg, w[TERMS] = {1, 1, lambda, lambda / (float)P};
    return cgs_tensor_write(t, p->weights, w);
}

/* ---- updates ----------------------------------------------------------------------- */

static cgs_status update(pretrainer *p, int n, cgs_device *d, double value[TERMS + 1]) {
    const cgs_pretrain_options *o = p->o;
    cgs_params *all[] = {&p->net->params, &p->params};
    CGS_TRY(cgs_views_make(&p->data, o->seed, (uint64_t)n, o->batch, p->views));
    CGS_TRY(d->ops->upload(d, p->frames->data, p->views, cgs_bytes(p->frames)));
    cgs_tape_set_step(p->tape, (uint64_t)n);
    cgs_tape_forward(p->tape);
    cgs_tape_backward(p->tape);
    CGS_TRY(d->ops->sync(d));
    double squares = 0;
    for (int i = 0; i < 2; i++) squares += d->ops->sum_squares(d, all[i]->grads, all[i]->trainable);
    for (int i = 0; i <= TERMS; i++) {
        float v;
        CGS_TRY(cgs_tensor_read(p->tape, i < TERMS ? p->term[i] : p->total, &v));
        value[i] = v;
    }
    if (!isfinite(squares) || !isfinite(value[TERMS]))
        return cgs_fail(CGS_ENUMERIC, "update %d: loss %g, gradient norm %g; a lower --lr may help",
                        n, value[TERMS], sqrt(squares));
    double lr = cgs_learning_rate(o->lr, 0.05, (uint64_t)n + 1, (uint64_t)o->updates + 1);
    cgs_adamw a = cgs_adamw_usual((float)lr, 1e-3f, (uint64_t)n + 1);
    a.clip_scale = (float)cgs_clip_scale(sqrt(squares), 1);
    for (int i = 0; i < 2; i++) cgs_adamw_apply(all[i], &a, 0, all[i]->trainable);
    return d->ops->sync(d);
}

/* ---- the run ----------------------------------------------------------------------- */

static void settings_text(const cgs_pretrain_options *o, char text[512]) {
    snprintf(text, 512,
             "size = %.40s\nupdates = %d\nbatch = %d\nlr = %.9g\nsigreg = %.9g\nseed = %llu\n"
             "precision = %.20s\n",
             o->size, o->updates, o->batch, o->lr, o->sigreg, (unsigned long long)o->seed,
             o->precision);
}

static cgs_status save(pretrainer *p) {
    char text[512];
    cgs_params *const all[] = {&p->net->params, &p->params};
    settings_text(p->o, text);
    cgs_checkpoint c = {.step = (uint64_t)p->done,
                        .batches_tracked = (uint64_t)p->done,
                        .config = text,
                        .identity = p->data.identity};
    return cgs_checkpoint_save(p->checkpoint, all, 2, &c);
}

static cgs_status resume_or_start(pretrainer *p) {
    char text[512];
    cgs_params *const all[] = {&p->net->params, &p->params};
    cgs_checkpoint c;
    if (!cgs_file_exists(p->checkpoint)) return CGS_OK;
    if (!p->o->resume)
        return cgs_fail(CGS_EARG, "%s exists: continue it with --resume or choose another file",
                        p->checkpoint);
    settings_text(p->o, text);
    CGS_TRY(cgs_checkpoint_load(p->checkpoint, all, 2, &c));
    cgs_status rc = cgs_checkpoint_fits(&c, p->checkpoint, text, p->data.identity);
    if (rc == CGS_OK && c.step > (uint64_t)p->o->updates)
        rc = cgs_fail(CGS_EFORMAT, "%s: %llu updates of %d", p->checkpoint,
                      (unsigned long long)c.step, p->o->updates);
    if (rc == CGS_OK) {
        p->done = (int)c.step;
        cgs_log(CGS_INFO, "continuing after update %d", p->done);
    }
    cgs_checkpoint_free(&c);
    return rc;
}

static cgs_status make_updates(pretrainer *p, cgs_device *d) {
    const cgs_pretrain_options *o = p->o;
    while (p->done < o->updates) {
        double value[TERMS + 1];
        CGS_TRY(update(p, p->done, d, value));
        p->done++;
        bool last = p->done == o->updates;
        if (last || p->done % o->checkpoint_every == 0) CGS_TRY(save(p));
        bool go_on = !o->watch ||
                     o->watch(o->user, p->done, value[TERMS], value[SAME_CLS], value[SPREAD_CLS]);
        if (!go_on && !last) {
            CGS_TRY(save(p));
            return cgs_fail(CGS_ESTOPPED, "stopped after update %d; continue with --resume",
                            p->done);
        }
    }
    return CGS_OK;
}

static cgs_status run(pretrainer *p, const char *out, cgs_device *d) {
    const cgs_pretrain_options *o = p->o;
    if (o->batch < 2 || o->updates < 1 || o->checkpoint_every < 1)
        return cgs_fail(CGS_EARG,
                        "pretrain: %d frames per update, %d updates, a checkpoint every %d",
                        o->batch, o->updates, o->checkpoint_every);
    if (snprintf(p->checkpoint, sizeof p->checkpoint, "%s.checkpoint", out) >=
        (int)sizeof p->checkpoint)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", out);
    CGS_TRY(cgs_views_open(&p->data, o->data, o->count, o->cache));
    CGS_TRY(make_model(p, d));
    CGS_TRY(make_tape(p, d));
    p->views = malloc(cgs_bytes(p->frames));
    if (!p->views) return cgs_fail(CGS_ENOMEM, "pretrain: no memory for %d frames", 2 * o->batch);
    CGS_TRY(resume_or_start(p));
    CGS_TRY(make_updates(p, d));
    return cgs_backbone_save(p->net, out);
}

cgs_status cgs_pretrain(const cgs_pretrain_options *o, const char *out, cgs_device *d) {
    pretrainer p = {.o = o};
    cgs_status rc = run(&p, out, d);
    cgs_tape_destroy(p.tape);
    cgs_backbone_destroy(p.net);
    cgs_params_free(&p.params);
    cgs_views_close(&p.data);
    free(p.views);
    return rc;
}
