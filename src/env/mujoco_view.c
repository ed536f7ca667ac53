/* mujoco_view.c - renders joint positions through MuJoCo's abstract scene.
 *
 * MuJoCo's own kinematics calls libm's sin and cos, whose last bit depends on the CPU. Poses are
 * therefore computed here and written to data used only for the abstract scene; the simulation
 * never sees them. */
#include <math.h>
#include <string.h>

#include "env/mujoco_world.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

/* ---- poses ---------------------------------------------------------------------- */

static void multiply(double *out, const double *a, const double *b) {
    double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
    out[0] = w, out[1] = x, out[2] = y, out[3] = z;
}

static void normalise(double *q) {
    double n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (n < 1e-12) {
        q[0] = 1, q[1] = q[2] = q[3] = 0;
        return;
    }
    for (int k = 0; k < 4; k++) q[k] /= n;
}

static void to_matrix(double *m, const double *q) {
    double w = q[0], x = q[1], y = q[2], z = q[3];
    m[0] = w * w + x * x - y * y - z * z;
    m[4] = w * w - x * x + y * y - z * z;
    m[8] = w * w - x * x - y * y + z * z;
    m[1] = 2 * (x * y - w * z), m[2] = 2 * (x * z + w * y);
    m[3] = 2 * (x * y + w * z), m[5] = 2 * (y * z - w * x);
    m[6] = 2 * (x * z - w * y), m[7] = 2 * (y * z + w * x);
}

static void turn(double *out, const double *m, const double *v) {
    double x = m[0] * v[0] + m[1] * v[1] + m[2] * v[2];
    double y = m[3] * v[0] + m[4] * v[1] + m[5] * v[2];
    double z = m[6] * v[0] + m[7] * v[1] + m[8] * v[2];
    out[0] = x, out[1] = y, out[2] = z;
}

/* a part of a body: position and rotation in it, to the world */
static void place(const mjData *d, int body, const double *pos, const double *quat, double *xpos,
                  double *xmat) {
    double q[4];
    turn(xpos, d->xmat + 9 * body, pos);
    for (int c = 0; c < 3; c++) xpos[c] += d->xpos[3 * body + c];
    multiply(q, d->xquat + 4 * body, quat);
    normalise(q);
    to_matrix(xmat, q);
}

/* one joint moves the body that carries it; q: its row of qpos */
static void move(const mjModel *m, int joint, const double *q, double *pos, double *quat) {
    double mat[9], anchor[3], after[3], axis[3], half[4];
    const double *own = m->jnt_axis + 3 * joint, *at = m->jnt_pos + 3 * joint;
    double value = q[0] - m->qpos0[m->jnt_qposadr[joint]];
    to_matrix(mat, quat);
    switch (m->jnt_type[joint]) {
    case mjJNT_FREE:
        memcpy(pos, q, 3 * sizeof *pos);
        memcpy(quat, q + 3, 4 * sizeof *quat);
        normalise(quat);
        return;
    case mjJNT_BALL:
        turn(anchor, mat, at);
        memcpy(half, q, sizeof half);
        normalise(half);
        break;
    case mjJNT_SLIDE:
        turn(axis, mat, own);
        for (int c = 0; c < 3; c++) pos[c] += value * axis[c];
        return;
    default: {
        double s, c;
        cgs_sincos(value / 2, &s, &c);
        turn(anchor, mat, at);
        half[0] = c, half[1] = s * own[0], half[2] = s * own[1], half[3] = s * own[2];
    }
    }
    /* a rotation about the anchor, which stays where it is */
    multiply(quat, quat, half);
    to_matrix(mat, quat);
    turn(after, mat, at);
    for (int c = 0; c < 3; c++) pos[c] += anchor[c] - after[c];
}

static void pose(const mjModel *m, mjData *d, const double *qpos) {
    double unused[9];
    for (int b = 0; b < m->nbody; b++) {
        double *pos = d->xpos + 3 * b, *quat = d->xquat + 4 * b;
        int parent = m->body_parentid[b], joint = m->body_jntadr[b];
        if (b == 0) {
            pos[0] = pos[1] = pos[2] = quat[1] = quat[2] = quat[3] = 0;
            quat[0] = 1;
        } else {
            place(d, parent, m->body_pos + 3 * b, m->body_quat + 4 * b, pos, unused);
            multiply(quat, d->xquat + 4 * parent, m->body_quat + 4 * b);
        }
        for (int k = 0; k < m->body_jntnum[b]; k++)
            move(m, joint + k, qpos + m->jnt_qposadr[joint + k], pos, quat);
        normalise(quat);
        to_matrix(d->xmat + 9 * b, quat);
    }
    for (int i = 0; i < m->ngeom; i++)
        place(d, m->geom_bodyid[i], m->geom_pos + 3 * i, m->geom_quat + 4 * i, d->geom_xpos + 3 * i,
              d->geom_xmat + 9 * i);
    for (int i = 0; i < m->nsite; i++)
        place(d, m->site_bodyid[i], m->site_pos + 3 * i, m->site_quat + 4 * i, d->site_xpos + 3 * i,
              d->site_xmat + 9 * i);
    for (int i = 0; i < m->ncam; i++)
        place(d, m->cam_bodyid[i], m->cam_pos + 3 * i, m->cam_quat + 4 * i, d->cam_xpos + 3 * i,
              d->cam_xmat + 9 * i);
    for (int i = 0; i < m->nlight; i++) {
        static const double upright[4] = {1, 0, 0, 0};
        int b = m->light_bodyid[i];
        place(d, b, m->light_pos + 3 * i, upright, d->light_xpos + 3 * i, unused);
        turn(d->light_xdir + 3 * i, d->xmat + 9 * b, m->light_dir + 3 * i);
    }
}

/* ---- the abstract scene --------------------------------------------------------- */

static int exponent_of(float shininess) { return (int)(shininess * 128 + 0.5f); }

/* names of textures and light types differ between releases */
#if mjVERSION_HEADER >= 320
static cgs_texture texture_of(const mjModel *m, int id) {
    if (m->tex_nchannel[id] != 3) return (cgs_texture){0};
    return (cgs_texture){m->tex_data + m->tex_adr[id], m->tex_width[id], m->tex_height[id]};
}
static int texture_id(const mjModel *m, int material) {
    return m->mat_texid[material * mjNTEXROLE + mjTEXROLE_RGB];
}
#else
static cgs_texture texture_of(const mjModel *m, int id) {
    return (cgs_texture){m->tex_rgb + m->tex_adr[id], m->tex_width[id], m->tex_height[id]};
}
static int texture_id(const mjModel *m, int material) { return m->mat_texid[material]; }
#endif

#if mjVERSION_HEADER >= 333
static bool is_parallel(const mjvLight *l) { return l->type == mjLIGHT_DIRECTIONAL; }
#else
static bool is_parallel(const mjvLight *l) { return l->directional; }
#endif

static bool take_shape(const mjModel *m, const mjvGeom *g, cgs_shape *out) {
    static const int kinds[][2] = {
        {mjGEOM_PLANE, CGS_SHAPE_PLANE},       {mjGEOM_SPHERE, CGS_SHAPE_SPHERE},
        {mjGEOM_CAPSULE, CGS_SHAPE_CAPSULE},   {mjGEOM_ELLIPSOID, CGS_SHAPE_ELLIPSOID},
        {mjGEOM_CYLINDER, CGS_SHAPE_CYLINDER}, {mjGEOM_BOX, CGS_SHAPE_BOX}};
    int k = 0, count = (int)(sizeof kinds / sizeof kinds[0]);
    while (k < count && kinds[k][0] != g->type) k++;
    if (k == count || g->rgba[3] <= 0) return false;
    *out = (cgs_shape){.kind = (cgs_shape_kind)kinds[k][1],
                       .still = g->category == mjCAT_STATIC,
                       .emission = g->emission,
                       .specular = g->specular,
                       .gloss = exponent_of(g->shininess)};
    for (int c = 0; c < 3; c++) {
        out->size[c] = g->size[c];
        out->pos[c] = g->pos[c];
        out->rgb[c] = g->rgba[c];
        for (int a = 0; a < 3; a++) out->axis[a][c] = g->mat[3 * c + a];
    }
    int material = g->objtype == mjOBJ_GEOM ? m->geom_matid[g->objid] : -1;
    int texture = material >= 0 ? texture_id(m, material) : -1;
    if (out->kind == CGS_SHAPE_PLANE && texture >= 0 && m->tex_type[texture] == mjTEXTURE_2D) {
        out->texture = texture_of(m, texture);
        for (int c = 0; c < 2; c++) {
            /* repetitions over the whole plane, or per unit of length */
            bool whole = !m->mat_texuniform[material] && g->size[c] > 0;
            float repeat = m->mat_texrepeat[2 * material + c];
            out->texture_scale[c] = 0.5f * repeat / (whole ? g->size[c] : 1);
        }
    }
    return true;
}

static void take_lamp(const mjvLight *l, const cgs_eye *eye, cgs_lamp *out) {
    *out = (cgs_lamp){.parallel = is_parallel(l) || l->headlight,
                      .shadow = l->castshadow && !l->headlight,
                      .cutoff = -1,
                      .exponent = (int)(l->exponent + 0.5f)};
    for (int c = 0; c < 3; c++) {
        out->pos[c] = l->headlight ? eye->pos[c] : l->pos[c];
        out->dir[c] = l->headlight ? eye->forward[c] : l->dir[c];
        out->ambient[c] = l->ambient[c];
        out->diffuse[c] = l->diffuse[c];
        out->specular[c] = l->specular[c];
        out->attenuation[c] = l->attenuation[c];
    }
    /* OpenGL ignores a cone wider than a half space */
    if (!out->parallel && l->cutoff <= 90) {
        double s, c;
        cgs_sincos((double)l->cutoff * (CGS_PI / 180), &s, &c);
        out->cutoff = (float)c;
    }
}

static void take_eye(const mjModel *m, const mjData *d, int camera, cgs_eye *eye) {
    double s, c;
    for (int k = 0; k < 3; k++) {
        const double *row = d->cam_xmat + 9 * camera + 3 * k;
        eye->pos[k] = (float)d->cam_xpos[3 * camera + k];
        eye->right[k] = (float)row[0];
        eye->up[k] = (float)row[1];
        eye->forward[k] = (float)-row[2];
    }
    cgs_sincos(m->cam_fovy[camera] * (CGS_PI / 360), &s, &c);
    eye->tan_half_fov = (float)(s / c);
}

static void take_scene(cgs_mj_view *v) {
    cgs_scene *p = &v->image;
    take_eye(v->model, v->data, 0, &p->eye);
    p->shapes = p->lamps = 0;
    for (int i = 0; i < v->scene.ngeom && p->shapes < CGS_SCENE_SHAPES; i++)
        p->shapes += take_shape(v->model, &v->scene.geoms[i], &p->shape[p->shapes]);
    for (int i = 0; i < v->scene.nlight && p->lamps < CGS_SCENE_LAMPS; i++)
        take_lamp(&v->scene.lights[i], &p->eye, &p->lamp[p->lamps++]);
    p->sky = (cgs_texture){0};
    for (int i = 0; i < v->model->ntex; i++)
        if (v->model->tex_type[i] == mjTEXTURE_SKYBOX) p->sky = texture_of(v->model, i);
}

/* ---- the view ------------------------------------------------------------------- */

static void allocate(void *context) {
    cgs_mj_view *v = context;
    v->data = mj_makeData(v->model);
    mjv_makeScene(v->model, &v->scene, CGS_SCENE_SHAPES);
}

static void update(void *context) {
    cgs_mj_view *v = context;
    mjvCamera camera;
    mjv_defaultCamera(&camera);
    camera.type = mjCAMERA_FIXED;
    camera.fixedcamid = 0;
    mjv_updateScene(v->model, v->data, &v->option, NULL, &camera, mjCAT_ALL, &v->scene);
}

cgs_status cgs_mj_view_open(cgs_mj_view *v, const mjModel *m, bool sites) {
    memset(v, 0, sizeof *v);
    v->model = m;
    mjv_defaultOption(&v->option);
    for (int i = 0; i < mjNGROUP; i++) v->option.sitegroup[i] = sites;
    mjv_defaultScene(&v->scene);
    if (m->ncam < 1 || m->cam_mode[0] != mjCAMLIGHT_FIXED)
        return cgs_fail(CGS_EFORMAT, "the model has no fixed camera");
    if (!cgs_mj_guard(allocate, v) || !v->data) {
        cgs_mj_view_close(v);
        return cgs_fail(CGS_ENOMEM, "no memory for a scene");
    }
    return CGS_OK;
}

void cgs_mj_view_close(cgs_mj_view *v) {
    if (v->data) mj_deleteData(v->data);
    mjv_freeScene(&v->scene);
    cgs_canvas_free(&v->canvas);
    memset(v, 0, sizeof *v);
}

cgs_status cgs_mj_view_scene(cgs_mj_view *v, const double *qpos) {
    pose(v->model, v->data, qpos);
    if (!cgs_mj_guard(update, v)) return CGS_ENUMERIC;
    take_scene(v);
    return CGS_OK;
}

cgs_status cgs_mj_view_draw(cgs_mj_view *v, const double *qpos, int side, uint8_t *rgb) {
    CGS_TRY(cgs_mj_view_scene(v, qpos));
    return cgs_scene_draw(&v->canvas, &v->image, side, v->upside_down, rgb);
}
