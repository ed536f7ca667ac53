/* mujoco_env.c - see mujoco_env.h. */
#include "env/mujoco_env.h"

#include <string.h>

static void make_data(void *e) {
    cgs_mj_env *w = e;
    w->data = mj_makeData(w->model);
}

cgs_status cgs_mj_env_open(cgs_env *e, cgs_mj_source *s, bool sites) {
    cgs_mj_env *w = (cgs_mj_env *)e;
    CGS_TRY(cgs_mj_model(s, &w->model));
    CGS_TRY(cgs_mj_view_open(&w->view, w->model, sites));
    if (cgs_mj_guard(make_data, w) && w->data) return CGS_OK;
    cgs_mj_env_close(e);
    return cgs_fail(CGS_ENOMEM, "%s: no memory", s->name);
}

void cgs_mj_env_close(cgs_env *e) {
    cgs_mj_env *w = (cgs_mj_env *)e;
    if (w->data) mj_deleteData(w->data);
    cgs_mj_view_close(&w->view);
}

static void settle(void *e) {
    cgs_mj_env *w = e;
    mj_forward(w->model, w->data);
}

cgs_status cgs_mj_env_restart(cgs_env *e) {
    cgs_mj_env *w = (cgs_mj_env *)e;
    mj_resetData(w->model, w->data);
    return cgs_mj_guard(settle, w) ? CGS_OK : CGS_ENUMERIC;
}

cgs_status cgs_mj_env_set_state(cgs_env *e, const double *state) {
    cgs_mj_env *w = (cgs_mj_env *)e;
    memcpy(w->data->qpos, state, (size_t)w->model->nq * sizeof *state);
    memcpy(w->data->qvel, state + w->model->nq, (size_t)w->model->nv * sizeof *state);
    return cgs_mj_guard(settle, w) ? CGS_OK : CGS_ENUMERIC;
}

void cgs_mj_env_get_state(const cgs_env *e, double *state) {
    const cgs_mj_env *w = (const cgs_mj_env *)e;
    memcpy(state, w->data->qpos, (size_t)w->model->nq * sizeof *state);
    memcpy(state + w->model->nq, w->data->qvel, (size_t)w->model->nv * sizeof *state);
}

cgs_status cgs_mj_env_render(cgs_env *e, int side, uint8_t *rgb) {
    cgs_mj_env *w = (cgs_mj_env *)e;
    return cgs_mj_view_draw(&w->view, w->data->qpos, side, rgb);
}

bool cgs_mj_env_advance(cgs_env *e, void (*advance)(void *e)) {
    return cgs_mj_guard(advance, e) && !cgs_mj_trouble(((cgs_mj_env *)e)->data);
}
