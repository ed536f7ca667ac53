/* mujoco_env.c - see mujoco_env.h. */
#include "env/mujoco_env.h"

#include <string.h>

static void make_data(void *world) {
    cgs_mj_env *w = world;
    w->data = mj_makeData(w->model);
}

static cgs_status open_model(cgs_mj_env *w, cgs_mj_source *s, bool sites) {
    CGS_TRY(cgs_mj_model(s, &w->model));
    CGS_TRY(cgs_mj_view_open(&w->view, w->model, sites));
    if (cgs_mj_guard(make_data, w) && w->data) return CGS_OK;
    cgs_mj_env_close(w);
    return cgs_fail(CGS_ENOMEM, "%s: no memory", s->name);
}

cgs_status cgs_mj_env_open(cgs_mj_env *w, cgs_mj_source *s, bool sites, char *error) {
    return cgs_env_said(error, open_model(w, s, sites));
}

void cgs_mj_env_close(void *world) {
    cgs_mj_env *w = world;
    if (w->data) mj_deleteData(w->data);
    cgs_mj_view_close(&w->view);
}

static void settle(void *world) {
    cgs_mj_env *w = world;
    mj_forward(w->model, w->data);
}

cgs_status cgs_mj_env_restart(void *world, char *error) {
    cgs_mj_env *w = world;
    mj_resetData(w->model, w->data);
    return cgs_env_said(error, cgs_mj_guard(settle, w) ? CGS_OK : CGS_ENUMERIC);
}

cgs_status cgs_mj_env_set_state(void *world, const double *state, char *error) {
    cgs_mj_env *w = world;
    memcpy(w->data->qpos, state, (size_t)w->model->nq * sizeof *state);
    memcpy(w->data->qvel, state + w->model->nq, (size_t)w->model->nv * sizeof *state);
    return cgs_env_said(error, cgs_mj_guard(settle, w) ? CGS_OK : CGS_ENUMERIC);
}

void cgs_mj_env_get_state(const void *world, double *state) {
    const cgs_mj_env *w = world;
    memcpy(state, w->data->qpos, (size_t)w->model->nq * sizeof *state);
    memcpy(state + w->model->nq, w->data->qvel, (size_t)w->model->nv * sizeof *state);
}

cgs_status cgs_mj_env_render(void *world, int side, uint8_t *rgb, char *error) {
    cgs_mj_env *w = world;
    return cgs_env_said(error, cgs_mj_view_draw(&w->view, w->data->qpos, side, rgb));
}

bool cgs_mj_env_advance(cgs_mj_env *w, void (*advance)(void *context), void *context) {
    return cgs_mj_guard(advance, context) && !cgs_mj_trouble(w->data);
}
