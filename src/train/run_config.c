/* run_config.c - presets: sizes, and the paper's methods with their weights. */
#include <string.h>

#include "train/method.h"
#include "train/train.h"

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_train_config, kind, name, initial, low, high, key, doc)
static const cgs_field train_fields[] = {CGS_TRAIN_CONFIG(ROW)};
#undef ROW

bool cgs_run_is_dinowm(const cgs_run_config *c) {
    return !strncmp(c->train.method.s, "dinowm-", 7);
}

void cgs_run_sections(cgs_run_config *c, cgs_section sections[2]) {
    sections[0] = cgs_run_is_dinowm(c)
                      ? (cgs_section){cgs_dinowm_fields, cgs_dinowm_field_count, &c->dino}
                      : (cgs_section){cgs_lewm_fields, cgs_lewm_field_count, &c->model};
    sections[1] =
        (cgs_section){train_fields, sizeof train_fields / sizeof train_fields[0], &c->train};
}

cgs_status cgs_run_preset(cgs_run_config *c, const char *size) {
    cgs_section sections[2];
    memset(c, 0, sizeof *c);
    cgs_run_sections(c, sections);
    cgs_config_defaults(sections, 2);
    CGS_TRY(cgs_lewm_preset(&c->model, size));
    CGS_TRY(cgs_dinowm_preset(&c->dino, size));
    if (!strcmp(size,
                "small")) { /* short runs on two cores: fewer directions, higher learning rate */
        c->train.projections = 256;
        c->train.batch = 64;
        c->train.lr = 1e-3f;
        strcpy(c->train.recipe.s, "robust");
    }
    return CGS_OK;
}

/* lambda of TS and CGS, selected per environment in the paper */
static const struct {
    const char *env;
    float ts, cgs;
} weights[] = {{"pusht", 0.01f, 0.01f},
               {"cube", 0.1f, 0.5f},
               {"tworooms", 0.5f, 0.5f},
               {"reacher", 0.1f, 0.5f},
               {"", 0.1f, 0.5f}};

/* DINO-WM: the paper's optimiser; lambdas are published for CGS on PushT alone */
static void dinowm_method(cgs_run_config *c, const cgs_method *m, const char *env) {
    bool small = c->train.batch == 64; /* of the small preset: short runs, higher rates */
    strcpy(c->dino.tokens.s, m->family + strlen("dinowm-"));
    /* in other tasks the model gets proprioception, the cost does not */
    c->dino.proprio_cost = !strcmp(env, "pusht") || !*env ? 1 : 0;
    c->train.ts_weight = m->role == CGS_ROLE_TS ? 0.1f : 0;
    c->train.cgs_weight = m->role == CGS_ROLE_CGS ? 0.1f : 0;
    c->train.sigreg_weight = 0;
    c->train.batch = 32;
    c->train.epochs = 2;
    c->train.lr = 5e-4f;
    c->train.weight_decay = 1e-2f;
    c->train.head_lr = m->role == CGS_ROLE_PLAIN ? 1e-6f : 1e-5f;
    if (small) c->train.head_lr *= 10;
    strcpy(c->train.schedule.s, "constant");
    strcpy(c->train.recipe.s, "published");
}

static void lewm_method(cgs_run_config *c, const cgs_method *m, const char *env) {
    size_t w = 0;
    while (*weights[w].env && strcmp(weights[w].env, env) != 0) w++;
    bool shaped = m->role == CGS_ROLE_CGS || m->role == CGS_ROLE_OTHER;
    c->train.ts_weight = m->role == CGS_ROLE_TS ? weights[w].ts : 0;
    c->train.cgs_weight = shaped ? weights[w].cgs : 0;
}

cgs_status cgs_run_method(cgs_run_config *c, const char *method, const char *env) {
    const cgs_method *m = cgs_method_find(method);
    if (!m)
        return cgs_fail(CGS_EARG,
                        "unknown method \"%.40s\": use lewm, lewm-ts, lewm-cgs, "
                        "lewm-cgs-transition, lewm-cgs-xyz-all, lewm-cgs-full, and "
                        "dinowm-patch and dinowm-cls, each alone or with -ts or -cgs",
                        method);
    if (!strcmp(m->family, "lewm"))
        lewm_method(c, m, env);
    else
        dinowm_method(c, m, env);
    const char *own = !strcmp(env, "cube") ? "xyz-grasp" : "action";
    strcpy(c->train.reference.s, m->reference ? m->reference : own);
    strcpy(c->train.method.s, m->name);
    return CGS_OK;
}

cgs_status cgs_run_backbone(cgs_run_config *c, const char *file) {
    cgs_backbone_config b;
    cgs_backbone_view view;
    char origin[64];
    if (strlen(file) >= sizeof c->train.backbone.s)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", file);
    CGS_TRY(cgs_dinowm_view(&c->dino, &view));
    CGS_TRY(cgs_backbone_inspect(file, &b, origin, &view));
    strcpy(c->train.backbone.s, file);
    c->dino.features = b.width;
    c->dino.patch = b.patch;
    c->dino.size = view.size;
    strcpy(c->dino.pixels.s, view.imagenet ? "imagenet" : "half");
    return CGS_OK;
}
