/* run_config.c - presets: sizes, and the paper's methods with their weights. */
#include <string.h>

#include "train/train.h"

#define ROW(kind, name, initial, low, high, key, doc) \
    CGS_CONFIG_ROW(cgs_train_config, kind, name, initial, low, high, key, doc)
static const cgs_field train_fields[] = {CGS_TRAIN_CONFIG(ROW)};
#undef ROW

void cgs_run_sections(cgs_run_config *c, cgs_section sections[2]) {
    sections[0] = (cgs_section){cgs_lewm_fields, cgs_lewm_field_count, &c->model};
    sections[1] = (cgs_section){train_fields, sizeof train_fields / sizeof train_fields[0],
                                &c->train};
}

cgs_status cgs_run_preset(cgs_run_config *c, const char *size) {
    cgs_section sections[2];
    cgs_run_sections(c, sections);
    cgs_config_defaults(sections, 2);
    CGS_TRY(cgs_lewm_preset(&c->model, size));
    if (!strcmp(size, "small")) { /* short runs on two cores: fewer directions, higher rate */
        c->train.projections = 256;
        c->train.batch = 64;
        c->train.lr = 1e-3f;
    }
    return CGS_OK;
}

/* lambda of TS and CGS, selected per environment in the paper */
static const struct {
    const char *env;
    float ts, cgs;
} weights[] = {{"pusht", 0.01f, 0.01f}, {"cube", 0.1f, 0.5f}, {"tworooms", 0.5f, 0.5f},
               {"reacher", 0.1f, 0.5f}, {"", 0.1f, 0.5f}};

cgs_status cgs_run_method(cgs_run_config *c, const char *method, const char *env) {
    static const struct {
        const char *name, *reference;
        bool ts, cgs;
    } methods[] = {{"lewm", "action", false, false},
                   {"lewm-ts", "action", true, false},
                   {"lewm-cgs", NULL, false, true}, /* grasp-active XYZ on Cube, else the action */
                   {"lewm-cgs-transition", "transition", false, true},
                   {"lewm-cgs-xyz-all", "xyz", false, true},
                   {"lewm-cgs-full", "full", false, true}};
    size_t w = 0, m = 0;
    while (*weights[w].env && strcmp(weights[w].env, env) != 0) w++;
    while (m < sizeof methods / sizeof methods[0] && strcmp(methods[m].name, method) != 0) m++;
    if (m == sizeof methods / sizeof methods[0])
        return cgs_fail(CGS_EARG, "no method is called \"%.40s\"; there are lewm, lewm-ts, lewm-cgs, "
                                  "lewm-cgs-transition, lewm-cgs-xyz-all and lewm-cgs-full", method);
    const char *reference = methods[m].reference;
    if (!reference) reference = !strcmp(env, "cube") ? "xyz-grasp" : "action";
    c->train.ts_weight = methods[m].ts ? weights[w].ts : 0;
    c->train.cgs_weight = methods[m].cgs ? weights[w].cgs : 0;
    strcpy(c->train.reference.s, reference);
    strcpy(c->train.method.s, method);
    return CGS_OK;
}
