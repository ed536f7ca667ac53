/* loaded_model.c - see loaded_model.h. */
#include "rollout/loaded_model.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "data/stats.h"

enum { CPU_FRAMES = 8, GPU_FRAMES = 64 }; /* fewer leave a GPU waiting for launches */

static cgs_status precision_of(const char *name, cgs_dtype *act) {
    if (!strcmp(name, "f32"))
        *act = CGS_F32;
    else if (!strcmp(name, "bf16"))
        *act = CGS_BF16;
    else
        return cgs_fail(CGS_EARG, "precision \"%.20s\" is not f32 or bf16", name);
    return CGS_OK;
}

const char *cgs_loaded_model_precision(const cgs_loaded_model *s) {
    return s->act == CGS_F32 ? "f32" : "bf16";
}

/* a model without statistics (an imported one) takes those of the data */
static cgs_status action_scale(cgs_loaded_model *s, cgs_dataset *data) {
    int dim = s->model->action_dim;
    cgs_stats st;
    if (cgs_card_has_statistics(&s->card)) {
        memcpy(s->mean, s->card.action_mean, sizeof s->mean);
        memcpy(s->std, s->card.action_std, sizeof s->std);
    } else if (data) {
        CGS_TRY(cgs_stats_compute(&st, cgs_dataset_source(data), "action"));
        for (int i = 0; i < dim && i < st.dims; i++) {
            s->mean[i] = st.mean[i];
            s->std[i] = st.std_population[i];
        }
    } else {
        return cgs_fail(CGS_EFORMAT,
                        "%s: the model says nothing about mean and deviation of its actions",
                        s->dir);
    }
    s->scale = (cgs_action_scale){dim, s->model->frameskip, s->mean, s->std};
    return CGS_OK;
}

static cgs_status load(cgs_loaded_model *s, cgs_device *d) {
    if (!cgs_dinowm_is_dir(s->dir)) {
        CGS_TRY(cgs_model_load(&s->lewm, &s->card, s->dir, d, false));
        s->model = &s->lewm->base;
        return CGS_OK;
    }
    cgs_dinowm *m;
    CGS_TRY(cgs_dinowm_load(&m, &s->card, &s->dino, s->dir, d, false));
    s->model = &m->base;
    s->proprio = (cgs_proprio_scale){s->dino.proprio_dim, s->dino.column, s->dino.proprio_mean,
                                     s->dino.proprio_std};
    return CGS_OK;
}

cgs_status cgs_weights_identity(cgs_model *m, uint64_t *out) {
    CGS_TRY(cgs_params_checksum(m->params, out));
    if (m->cls == &cgs_lewm_class) return CGS_OK;
    uint64_t frozen; /* what is frozen belongs to a model too */
    CGS_TRY(cgs_backbone_hash(cgs_dinowm_of(m)->backbone, &frozen));
    *out = cgs_mix64(*out ^ frozen);
    return CGS_OK;
}

static cgs_status open(cgs_loaded_model *s, cgs_device *d, const char *precision, int frames,
                       cgs_dataset *data) {
    CGS_TRY(load(s, d));
    if (!precision) precision = s->card.precision[0] ? s->card.precision : "f32";
    CGS_TRY(precision_of(precision, &s->act));
    CGS_TRY(cgs_weights_identity(s->model, &s->weights));
    if (data && cgs_dataset_source(data)->action_dim != s->model->action_dim)
        return cgs_fail(CGS_EARG, "%s: the model was trained for actions of %d numbers, %s has %d",
                        s->dir, s->model->action_dim, cgs_dataset_source(data)->path,
                        cgs_dataset_source(data)->action_dim);
    CGS_TRY(action_scale(s, data));
    if (frames == CGS_FRAMES_BY_DEVICE)
        frames = d->ops->kind == CGS_DEVICE_GPU ? GPU_FRAMES : CPU_FRAMES;
    return cgs_encoder_create(&s->encoder, s->model, s->act, frames);
}

cgs_status cgs_loaded_model_open(cgs_loaded_model *s, const char *dir, cgs_device *d,
                                 const char *precision, int frames, cgs_dataset *data) {
    memset(s, 0, sizeof *s);
    if (cgs_dinowm_is_dir(dir))
        return cgs_fail(CGS_EARG, "%s: a DINO-WM model; this works on LeWM alone", dir);
    return cgs_loaded_model_open_any(s, dir, d, precision, frames, data);
}

cgs_status cgs_loaded_model_open_any(cgs_loaded_model *s, const char *dir, cgs_device *d,
                                     const char *precision, int frames, cgs_dataset *data) {
    memset(s, 0, sizeof *s);
    s->dir = dir;
    cgs_status rc = open(s, d, precision, frames, data);
    if (rc != CGS_OK) cgs_loaded_model_close(s);
    return rc;
}

void cgs_loaded_model_close(cgs_loaded_model *s) {
    cgs_encoder_destroy(s->encoder);
    cgs_model_destroy(s->model);
    memset(s, 0, sizeof *s);
}

/* of an environment that is not here: code is loaded only where somebody asks for it by its path */
static cgs_status needs_plug_in(cgs_dataset *d, const char *name, const char *version) {
    const char *file = cgs_dataset_attribute(d, CGS_ENV_FILE);
    const char *hash = cgs_dataset_attribute(d, CGS_ENV_SHA256);
    if (!file) return CGS_EARG; /* with the sentence of whoever did not find it */
    return cgs_fail(CGS_EARG,
                    "%s was collected in %s, version %s, of the plug-in %.100s (SHA-256 %.64s): "
                    "give it by its path, --env ./%.100s",
                    cgs_dataset_source(d)->path, name, version ? version : "?", file,
                    hash ? hash : "?", file);
}

/* Versions decide; another file with the same version may just be compiled anew. */
static void compare_files(cgs_dataset *d, const cgs_env_class *env) {
    const char *recorded = cgs_dataset_attribute(d, CGS_ENV_SHA256);
    cgs_env_origin here = cgs_env_origin_of(env);
    if (recorded && strcmp(recorded, here.sha256) != 0)
        cgs_log(CGS_WARN,
                "%s was collected with another file of %s (SHA-256 %.16s..., this is %.16s...)",
                cgs_dataset_source(d)->path, env->id, recorded, here.sha256);
}

cgs_status cgs_dataset_env(cgs_dataset *d, const char *id, const cgs_env_class **env) {
    const char *path = cgs_dataset_source(d)->path;
    const char *name = cgs_dataset_attribute(d, "env");
    const char *version = cgs_dataset_attribute(d, "env_version");
    if (!id) id = name;
    if (!id) return cgs_fail(CGS_EARG, "%s does not name its environment: give --env", path);
    cgs_status found = cgs_env_find(id, env);
    if (found != CGS_OK) return name && !strcmp(name, id) ? needs_plug_in(d, id, version) : found;
    /* files from elsewhere say nothing and are believed */
    if (name && strcmp(name, id))
        return cgs_fail(CGS_EARG, "%s was collected in %s, not in %s", path, name, id);
    if (name && version && atoi(version) != (*env)->version)
        return cgs_fail(CGS_EARG, "%s was collected in version %s of %s, this is version %d", path,
                        version, id, (*env)->version);
    compare_files(d, *env);
    return CGS_OK;
}

cgs_status cgs_dataset_env_if_any(cgs_dataset *d, const char *id, const cgs_env_class **env) {
    const char *name = cgs_dataset_attribute(d, "env");
    bool known = id || cgs_dataset_attribute(d, CGS_ENV_FILE);
    if (known || (name && cgs_env_find(name, env) == CGS_OK)) return cgs_dataset_env(d, id, env);
    *env = NULL;
    return CGS_OK;
}

static cgs_status fits_env(const cgs_loaded_model *s, const cgs_env_class *env) {
    const cgs_model *m = s->model;
    if (m->action_dim != env->action_dim)
        return cgs_fail(CGS_EARG, "%s: the model was trained for actions of %d numbers, %s has %d",
                        s->dir, m->action_dim, env->id, env->action_dim);
    if (s->card.env[0] && strcmp(s->card.env, env->id))
        return cgs_fail(CGS_EARG, "%s: the model was trained in %s, not in %s", s->dir, s->card.env,
                        env->id);
    if (s->card.env[0] && s->card.env_version[0] && atoi(s->card.env_version) != env->version)
        return cgs_fail(CGS_EARG,
                        "%s: the model was trained in version %s of %s, this is version %d", s->dir,
                        s->card.env_version, env->id, env->version);
    return CGS_OK;
}

cgs_status cgs_loaded_model_fits(const cgs_loaded_model *s, const cgs_env_class *env,
                                 const cgs_source *data) {
    const cgs_model *m = s->model;
    if (env) CGS_TRY(fits_env(s, env));
    if (data && data->pixels >= 0 &&
        (data->height != m->image_size || data->width != m->image_size))
        return cgs_fail(CGS_EARG, "%s: pictures of %d x %d pixels, the model of %s sees %d x %d",
                        data->path, data->height, data->width, s->dir, m->image_size,
                        m->image_size);
    return CGS_OK;
}
