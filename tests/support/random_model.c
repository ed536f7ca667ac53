/* random_model.c - see random_model.h. */
#include "random_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/rng.h"

cgs_status random_model(cgs_lewm **out, cgs_device *d, uint64_t seed) {
    cgs_lewm_config c;
    CGS_TRY(cgs_lewm_preset(&c, "small"));
    return random_model_of(out, &c, d, seed);
}

cgs_status random_model_of(cgs_lewm **out, const cgs_lewm_config *c, cgs_device *d, uint64_t seed) {
    CGS_TRY(cgs_lewm_create(out, c, d, false));
    CGS_TRY(cgs_params_init(&(*out)->params, seed));
    cgs_params *p = &(*out)->params;
    for (int i = 0; i < p->count; i++) {
        const cgs_param *e = &p->list[i];
        bool ada = strstr(e->name, "adaLN"), action = !strncmp(e->name, "action_encoder", 14);
        bool proj = !strcmp(e->name, "pred_proj.net.3.weight"); /* latents of about unit size */
        bool sharp = !strcmp(e->name, "projector.net.0.weight");
        bool vit = e->init == CGS_INIT_NORMAL && e->rank > 1 && !strncmp(e->name, "encoder", 7);
        if (!ada && !proj && !vit && !sharp && !(action && e->rank > 1)) continue;
        double fan_in = (double)e->count / e->dim[0];
        double scale = ada || vit ? 0.1 : (sharp ? 40 : proj ? 4 : 2) / sqrt(fan_in);
        float *v = malloc(e->count * sizeof *v);
        if (!v) return cgs_fail(CGS_ENOMEM, "%s: no memory", e->name);
        cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_TEST, (uint64_t)i);
        for (size_t k = 0; k < e->count; k++) v[k] = (float)(scale * cgs_rng_normal(&r));
        cgs_status rc = cgs_param_write(p, e, v);
        free(v);
        CGS_TRY(rc);
    }
    cgs_params_round(p);
    return CGS_OK;
}

cgs_status random_model_dir(const char *dir, const char *env, const char *dataset, uint64_t seed) {
    cgs_device d;
    cgs_lewm *m = NULL;
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = random_model(&m, &d, seed);
    cgs_model_card card = cgs_card_default();
    snprintf(card.method, sizeof card.method, "random");
    snprintf(card.env, sizeof card.env, "%s", env);
    snprintf(card.env_version, sizeof card.env_version, "1");
    snprintf(card.split, sizeof card.split, "episode");
    card.train_fraction = 0.5;
    card.seed = 7;
    for (int i = 0; i < 2; i++) {
        card.action_mean[i] = 0.1 * (i + 1);
        card.action_std[i] = 0.5 + 0.1 * i;
    }
    struct stat st;
    if (dataset && stat(dataset, &st) == 0) {
        const char *slash = strrchr(dataset, '/');
        snprintf(card.dataset, sizeof card.dataset, "%s", slash ? slash + 1 : dataset);
        card.dataset_bytes = (int64_t)st.st_size;
    }
    if (rc == CGS_OK) rc = cgs_model_save(dir, m, &card);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    return rc;
}
