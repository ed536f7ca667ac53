/* request.c - see request.h. */
#include "train/request.h"

#include <string.h>

#include "data/accept.h"
#include "data/dataset.h"

/* what the data decide: sizes of actions and proprioception, which of the paper's weights apply */
static cgs_status fit_to_data(cgs_run_config *c, const char *data, const char *method) {
    cgs_dataset *d;
    CGS_TRY(cgs_dataset_open(&d, data));
    const char *env = cgs_dataset_attribute(d, "env");
    const cgs_source *s = cgs_dataset_source(d);
    int proprio = cgs_source_find(s, "proprio");
    if (s->action_dim > 0 && s->action_dim <= CGS_MAX_ACTIONS)
        c->model.action_dim = c->dino.action_dim = s->action_dim;
    if (proprio >= 0) c->dino.proprio_dim = (int)s->columns[proprio].values;
    cgs_status rc = cgs_run_method(c, method, env ? env : "");
    cgs_dataset_close(d);
    return rc;
}

/* the settings of a new run, before those that are given one by one */
static cgs_status begin(cgs_run_config *c, const cgs_train_request *q) {
    char method[64] = "lewm-cgs";
    if (q->init && !q->size)
        CGS_TRY(cgs_run_like(c, q->init, method, sizeof method));
    else
        CGS_TRY(cgs_run_preset(c, q->size ? q->size : "paper"));
    return fit_to_data(c, q->data, q->method ? q->method : method);
}

/* A preset contradicts a stored run that has more of the other preset's sizes. */
static cgs_status check_size(const cgs_run_config *c, const cgs_train_request *q) {
    static const char *const presets[] = {"paper", "small"};
    int alike[2] = {0}, given = -1;
    for (int i = 0; i < 2; i++) {
        cgs_lewm_config preset;
        CGS_TRY(cgs_lewm_preset(&preset, presets[i]));
        if (!strcmp(q->size, presets[i])) given = i;
        alike[i] += preset.image_size == c->model.image_size;
        alike[i] += preset.width == c->model.width;
        alike[i] += preset.encoder_layers == c->model.encoder_layers;
    }
    cgs_lewm_config unknown;
    if (given < 0) return cgs_lewm_preset(&unknown, q->size);
    if (cgs_run_is_dinowm(c) || alike[given] >= alike[1 - given]) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s was made with --size %s", q->out, presets[1 - given]);
}

/* A resumed run has its stored settings; what the request says must not contradict them. */
static cgs_status go_on(cgs_run_config *c, const cgs_train_request *q) {
    const char *made = c->train.method.s;
    if (q->method && strcmp(q->method, made) != 0)
        return cgs_fail(CGS_EARG, "%s was made with --method %s", q->out, made);
    return q->size ? check_size(c, q) : CGS_OK;
}

cgs_status cgs_train_settle(cgs_run_config *c, const cgs_train_request *q) {
    cgs_section sections[2];
    bool stored = false;
    if (q->resume) CGS_TRY(cgs_run_stored(c, q->out, &stored));
    CGS_TRY(stored ? go_on(c, q) : begin(c, q));
    if (q->backbone) CGS_TRY(cgs_run_backbone(c, q->backbone));
    cgs_run_sections(c, sections);
    if (q->config) CGS_TRY(cgs_config_read(sections, 2, q->config));
    for (int i = 0; i < q->setting_count; i++)
        CGS_TRY(cgs_config_assign(sections, 2, q->settings[i]));
    if (q->precision) CGS_TRY(cgs_config_set(sections, 2, "train.precision", q->precision));
    return q->init ? cgs_config_set(sections, 2, "train.init", q->init) : CGS_OK;
}
