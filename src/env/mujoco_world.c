/* mujoco_world.c - see mujoco_world.h. */
#include "env/mujoco_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ------------------------------------------------------------------- */

static _Thread_local jmp_buf way_out;
static _Thread_local bool guarded;

static void on_error(const char *message) {
    cgs_fail(CGS_ENUMERIC, "mujoco: %s", message);
    if (guarded) longjmp(way_out, 1);
}

/* without a handler MuJoCo prints and writes a log file; warnings are counted in the data */
static void on_warning(const char *message) { (void)message; }

static void install(void) {
    mju_user_error = on_error;
    mju_user_warning = on_warning;
}

bool cgs_mj_guard(void (*work)(void *), void *context) {
    if (setjmp(way_out)) {
        guarded = false;
        return false;
    }
    guarded = true;
    work(context);
    guarded = false;
    return true;
}

const char *cgs_mj_trouble(const mjData *d) {
    for (int i = 0; i < mjNWARNING; i++)
        if (d->warning[i].number > 0) return mju_warningText(i, (size_t)d->warning[i].lastinfo);
    return NULL;
}

/* ---- models --------------------------------------------------------------------- */

static pthread_mutex_t models = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers = PTHREAD_ONCE_INIT;

typedef struct compilation {
    const char *file; /* NULL: text */
    const char *text;
    size_t length;
    mjVFS *files; /* some hundred kilobytes: too large for the stack */
    char error[512];
    mjModel *model;
} compilation;

static void compile(void *context) {
    compilation *c = context;
    if (c->file) {
        c->model = mj_loadXML(c->file, NULL, c->error, (int)sizeof c->error);
        return;
    }
    mj_defaultVFS(c->files);
#if mjVERSION_HEADER >= 300
    if (mj_addBufferVFS(c->files, "model.xml", c->text, (int)c->length) != 0) return;
#else
    int slot = mj_makeEmptyFileVFS(c->files, "model.xml", (int)c->length);
    if (slot < 0) return;
    memcpy(c->files->filedata[slot], c->text, c->length);
#endif
    c->model = mj_loadXML("model.xml", c->files, c->error, (int)sizeof c->error);
    mj_deleteVFS(c->files);
}

static cgs_status build(cgs_mj_source *s) {
    if (mj_version() != mjVERSION_HEADER)
        return cgs_fail(CGS_EARG, "%s: built for MuJoCo %d, but the library is %d", s->name,
                        mjVERSION_HEADER, mj_version());
    compilation c = {.file = s->file, .length = s->text(NULL, 0), .files = malloc(sizeof(mjVFS))};
    char *text = malloc(c.length + 1);
    c.text = text;
    bool fine = c.files && text;
    if (fine) {
        s->text(text, c.length + 1);
        cgs_mj_guard(compile, &c);
    }
    free(text);
    free(c.files);
    if (!fine) return cgs_fail(CGS_ENOMEM, "%s: no memory for its model", s->name);
    const char *where = s->file ? s->file : "its model";
    if (!c.model) return cgs_fail(CGS_EFORMAT, "%s: %s: %s", s->name, where, c.error);
    if (c.model->nq != s->nq || c.model->nv != s->nv || c.model->nu != s->nu) {
        cgs_status rc = cgs_fail(CGS_EFORMAT,
                                 "%s: %s has %d positions, %d speeds and %d actuators; %d, %d and "
                                 "%d are expected",
                                 s->name, where, (int)c.model->nq, (int)c.model->nv,
                                 (int)c.model->nu, s->nq, s->nv, s->nu);
        mj_deleteModel(c.model);
        return rc;
    }
    s->model = c.model;
    return CGS_OK;
}

cgs_status cgs_mj_model(cgs_mj_source *s, const mjModel **out) {
    pthread_once(&handlers, install);
    pthread_mutex_lock(&models);
    cgs_status rc = s->model ? CGS_OK : build(s);
    *out = s->model;
    pthread_mutex_unlock(&models);
    return rc;
}

cgs_status cgs_mj_use_file(cgs_mj_source *s, const char *path) {
    cgs_status rc = CGS_OK;
    size_t length = strlen(path);
    char *copy = malloc(length + 1);
    if (!copy) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    memcpy(copy, path, length + 1);
    pthread_mutex_lock(&models);
    if (s->model) {
        rc = cgs_fail(CGS_EARG, "%s: %s comes too late, a model is already in use", s->name, path);
        free(copy);
    } else {
        free(s->file);
        s->file = copy;
    }
    pthread_mutex_unlock(&models);
    return rc;
}

int cgs_mj_body(const mjModel *m, const char *name) {
    for (int i = 0; i < (int)m->nbody; i++) {
        const char *full = m->names + m->name_bodyadr[i], *last = strrchr(full, '/');
        if (!strcmp(last ? last + 1 : full, name)) return i;
    }
    return -1;
}
