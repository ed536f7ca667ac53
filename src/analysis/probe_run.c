/* probe_run.c - see probe_run.h. */
#include "analysis/probe_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "core/log.h"
#include "core/threads.h"
#include "train/method.h"

enum { BATCH = 16, FRAMESKIP = 5 };

cgs_probe_options cgs_probe_defaults(void) {
    cgs_probe_options o = {.episodes = 200, .device = "auto", .precision = "f32"};
    cgs_section s = cgs_probe_section(&o.config);
    cgs_config_defaults(&s, 1);
    return o;
}

void cgs_probe_result_free(cgs_probe_result *r) {
    cgs_motion_free(&r->motion);
    free(r->latent);
    memset(r, 0, sizeof *r);
}

void cgs_model_names(int models, const char *const *dirs, char method[][64], char name[][128]) {
    for (int i = 0; i < models; i++) {
        const char *title = cgs_method_title(method[i]);
        int same = 0;
        for (int k = 0; k < models; k++) same += !strcmp(method[i], method[k]);
        const char *slash = strrchr(dirs[i], '/');
        const char *last = slash && slash[1] ? slash + 1 : dirs[i];
        if (same > 1)
            snprintf(name[i], 128, "%.50s (%.70s)", title, last);
        else
            snprintf(name[i], 128, "%.120s", title);
    }
}

/* ---- what to probe ------------------------------------------------------------------ */

/* whether some target is none of the environment's: then columns are probed */
static bool names_a_column(const cgs_probe_options *o, const cgs_env_class *env,
                           const cgs_source *data) {
    cgs_target t[CGS_MAX_TARGETS];
    int n = env ? cgs_env_targets(env, t) : 0;
    for (int k = 0; k < o->target_count; k++) {
        bool found = false;
        for (int i = 0; i < n; i++) found = found || !strcmp(t[i].name, o->targets[k]);
        if (!found && cgs_source_find(data, o->targets[k]) >= 0) return true;
    }
    return false;
}

/* The columns that never change are not probed, and named. */
static cgs_status choose_columns(cgs_probe_result *r, const cgs_source *data) {
    int used = 0;
    for (int t = 0; t < r->motion.targets; t++) {
        r->requested[t] = cgs_motion_varies(&r->motion, t);
        used += r->requested[t];
        if (!r->requested[t])
            cgs_log(CGS_WARN,
                    "%s: column \"%s\" is not probed: it does not change, or is not finite",
                    data->path, r->motion.target[t].name);
    }
    return used ? CGS_OK : cgs_fail(CGS_EARG, "%s: no column changes", data->path);
}

static cgs_status choose_targets(cgs_probe_result *r, const cgs_probe_options *o,
                                 const cgs_env_class *env) {
    cgs_target t[CGS_MAX_TARGETS];
    int n = cgs_env_targets(env, t);
    char known[400] = "";
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        r->requested[i] = o->target_count == 0;
        int wrote = snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", t[i].name);
        if (wrote > 0 && used + (size_t)wrote < sizeof known) used += (size_t)wrote;
    }
    for (int k = 0; k < o->target_count; k++) {
        bool found = false;
        for (int i = 0; i < n; i++)
            if (!strcmp(t[i].name, o->targets[k])) r->requested[i] = found = true;
        if (!found)
            return cgs_fail(CGS_EARG, "%s has no target \"%.60s\"; it has: %s", env->id,
                            o->targets[k], known);
    }
    return CGS_OK;
}

/* ---- models ------------------------------------------------------------------------- */

typedef struct job {
    const cgs_probe_options *o;
    cgs_probe_result *r;
    const cgs_env_class *env;
    cgs_dataset *data;
    cgs_device device;
    cgs_loaded_model loaded[CGS_ANALYSIS_MODELS];
    int opened;
    double *change[CGS_ANALYSIS_MODELS]; /* (rows, D) */
    int D[CGS_ANALYSIS_MODELS];
    const char *phase;
} job;

static bool tell(job *j, const char *what, double done, double total) {
    return !j->o->progress || j->o->progress(j->o->user, what, done, total);
}

static bool on_latents(void *user, const char *dir, double done, double total) {
    (void)dir;
    return tell(user, "encode", done, total);
}

static bool on_nets(void *user, int done, int total) {
    job *j = user;
    return tell(j, j->phase, done, total);
}

static cgs_status open_models(job *j, int *frameskip) {
    const cgs_probe_options *o = j->o;
    *frameskip = FRAMESKIP;
    for (int i = 0; i < o->model_count; i++) {
        cgs_loaded_model *s = &j->loaded[i];
        CGS_TRY(cgs_loaded_model_open(s, o->models[i], &j->device, o->precision, BATCH, j->data));
        j->opened = i + 1;
        CGS_TRY(cgs_loaded_model_fits(s, j->env, cgs_dataset_source(j->data)));
        if (i > 0 && s->lewm->config.frameskip != *frameskip)
            return cgs_fail(CGS_EARG, "%s: frameskip %d, %s has %d; they cannot be compared",
                            o->models[i], s->lewm->config.frameskip, o->models[0], *frameskip);
        *frameskip = s->lewm->config.frameskip;
        memcpy(j->r->method[i], s->card.method, sizeof s->card.method);
    }
    cgs_model_names(o->model_count, o->models, j->r->method, j->r->name);
    j->r->models = o->model_count;
    return CGS_OK;
}

static cgs_status encode(job *j, int i) {
    const cgs_motion *m = &j->r->motion;
    const char *folder = !j->o->cache ? j->o->models[i] : j->o->cache[0] ? j->o->cache : NULL;
    float *z;
    bool cached;
    CGS_TRY(cgs_latents(&z, m, &j->loaded[i], j->data, folder, &cached, on_latents, j));
    j->r->cached += cached;
    j->D[i] = j->loaded[i].lewm->config.width;
    size_t values = (size_t)cgs_parts_rows(&m->parts) * (size_t)j->D[i];
    j->change[i] = malloc(values * sizeof *j->change[i]);
    cgs_status rc = j->change[i] ? CGS_OK : cgs_fail(CGS_ENOMEM, "probe: no memory for changes");
    if (rc == CGS_OK) cgs_latent_changes(m, z, j->D[i], j->change[i]);
    free(z);
    return rc;
}

static cgs_status run(job *j) {
    const cgs_probe_options *o = j->o;
    cgs_probe_result *r = j->r;
    int frameskip;
    if (o->model_count > CGS_ANALYSIS_MODELS)
        return cgs_fail(CGS_EARG, "%d models, at most %d are compared", o->model_count,
                        CGS_ANALYSIS_MODELS);
    CGS_TRY(cgs_dataset_open(&j->data, o->data));
    CGS_TRY(cgs_dataset_env_if_any(j->data, o->env, &j->env));
    const cgs_source *s = cgs_dataset_source(j->data);
    bool columns = !j->env || names_a_column(o, j->env, s);
    if (!columns) CGS_TRY(choose_targets(r, o, j->env));
    CGS_TRY(open_models(j, &frameskip));
    if (columns) {
        const char *const *only = o->target_count ? o->targets : NULL;
        CGS_TRY(cgs_motion_read_columns(&r->motion, j->data, only, o->target_count, frameskip,
                                        o->episodes));
        CGS_TRY(choose_columns(r, s));
    } else {
        CGS_TRY(cgs_motion_read(&r->motion, j->data, j->env, frameskip, o->episodes));
    }
    for (int i = 0; i < o->model_count; i++) CGS_TRY(encode(j, i));

    cgs_probe_physics p;
    j->phase = "probe environment";
    cgs_status rc = cgs_probe_physical(&p, &r->motion, r->requested, &o->config, on_nets, j);
    memcpy(r->physical, p.row, sizeof p.row);
    r->latent = calloc((size_t)(o->model_count + 1) * CGS_MAX_TARGETS, sizeof *r->latent);
    if (rc == CGS_OK && !r->latent) rc = cgs_fail(CGS_ENOMEM, "probe: no memory");
    j->phase = "probe latents";
    if (rc == CGS_OK && o->model_count > 0)
        rc = cgs_probe_latent(&r->motion, &p, r->requested, &o->config, o->model_count, j->change,
                              j->D, r->latent, on_nets, j);
    cgs_probe_physics_free(&p);
    return rc;
}

cgs_status cgs_probe_run(cgs_probe_result *r, const cgs_probe_options *o) {
    job j = {.o = o, .r = r};
    memset(r, 0, sizeof *r);
    double start = cgs_now();
    CGS_TRY(cgs_device_open(&j.device, o->device, o->threads));
    cgs_status rc = run(&j);
    for (int i = 0; i < j.opened; i++) cgs_loaded_model_close(&j.loaded[i]);
    for (int i = 0; i < o->model_count && i < CGS_ANALYSIS_MODELS; i++) free(j.change[i]);
    cgs_dataset_close(j.data);
    cgs_device_close(&j.device);
    r->seconds = cgs_now() - start;
    return rc;
}

/* ---- file ---------------------------------------------------------------------------- */

static void add_scores(cJSON *to, const char *target, const double *score, const double *published,
                       const char *const *names, int n) {
    cJSON *o = cgs_document_object(to, NULL);
    cgs_document_text_field(o, "target", target);
    for (int i = 0; i < n; i++) cgs_document_number(o, names[i], score[i]);
    if (!published) return;
    cJSON *p = cgs_document_object(o, "published");
    for (int i = 0; i < n; i++) cgs_document_number(p, names[i], published[i]);
}

cgs_status cgs_probe_document(cJSON **doc, const cgs_probe_result *r, const char *command) {
    const cgs_motion *m = &r->motion;
    const char *env = m->world;
    CGS_TRY(cgs_document_create(doc, "cgs-probe", command, env));
    cgs_document_number(*doc, "episodes", m->episodes);
    cgs_document_number(*doc, "frameskip", m->frameskip);
    cJSON *parts = cgs_document_object(*doc, "transitions");
    cgs_document_number(parts, "fit", m->parts.fit);
    cgs_document_number(parts, "validation", m->parts.validation);
    cgs_document_number(parts, "test", m->parts.test);
    cJSON *targets = cgs_document_array(*doc, "targets");
    cJSON *physical = cgs_document_array(*doc, "physical");
    cJSON *models = cgs_document_array(*doc, "models");
    for (int t = 0; t < m->targets; t++) {
        const char *name = m->target[t].name;
        if (!r->requested[t]) continue;
        cgs_document_text_field(targets, NULL, name);
        add_scores(physical, name, r->physical[t].score, cgs_published_physical(env, name),
                   cgs_physical_names, CGS_PHYSICAL_SCORES);
    }
    for (int i = 0; i < r->models; i++) {
        cJSON *o = cgs_document_object(models, NULL);
        cgs_document_text_field(o, "name", r->name[i]);
        cgs_document_text_field(o, "method", r->method[i]);
        cJSON *rows = cgs_document_array(o, "rows");
        for (int t = 0; t < m->targets; t++)
            if (r->requested[t])
                add_scores(rows, m->target[t].name, r->latent[i * CGS_MAX_TARGETS + t].score,
                           cgs_published_latent(env, m->target[t].name, r->method[i]),
                           cgs_latent_names, CGS_LATENT_SCORES);
    }
    return CGS_OK;
}
