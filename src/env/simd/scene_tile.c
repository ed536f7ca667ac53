/* scene_tile.c - renders one tile of an image: visibility, lighting, shading.
 *
 * Every loop runs over the samples of a tile (or over those of one shape in it) with
 * selects instead of branches, so that both compilers turn it into vectors.  No fused
 * multiply-add, no reassociation, no libm: the bytes do not depend on the vector width. */
#include "env/simd/tile.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define LANES _Pragma("omp simd")

enum { LANE = 16 }; /* batches are filled up to a multiple of the widest vector */
static const float FAR = 1e30f;
static const float TINY = 1e-12f;
static const float LIFT = 5e-4f;  /* shadow rays start this far above the surface */
static const float BEAM = 100.0f; /* how far away a parallel lamp is put */

static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float lesser(float a, float b) { return a < b ? a : b; }
static inline float square(float a) { return a * a; }
/* the largest whole number not above a, for |a| below two thousand million */
static inline float below(float a) {
    float whole = (float)(int32_t)a;
    return whole > a ? whole - 1 : whole;
}
static inline float away_from_zero(float a) { return fabsf(a) < TINY ? TINY : a; }

/* ---- who is seen ---------------------------------------------------------------- */

typedef struct samples {
    float u[SAMPLES], v[SAMPLES]; /* on the plane one unit ahead */
    float t[SAMPLES];             /* distance of the nearest shape along the ray */
    int32_t id[SAMPLES];          /* its number, -1: sky */
} samples;

/* The ray of sample i in the frame of e. */
#define RAY(e)                                                                                     \
    const float ox = (e)->origin[0], oy = (e)->origin[1], oz = (e)->origin[2];                     \
    const float ax = (e)->ahead[0], ay = (e)->ahead[1], az = (e)->ahead[2];                        \
    const float rx = (e)->right[0], ry = (e)->right[1], rz = (e)->right[2];                        \
    const float ux = (e)->up[0], uy = (e)->up[1], uz = (e)->up[2];
#define DIRECTION(i)                                                                               \
    float dx = ax + s->u[i] * rx + s->v[i] * ux;                                                   \
    float dy = ay + s->u[i] * ry + s->v[i] * uy;                                                   \
    float dz = az + s->u[i] * rz + s->v[i] * uz;
#define KEEP_NEAREST(i, distance, hit)                                                             \
    bool nearer = (hit) && (distance) > 0 && (distance) < s->t[i];                                 \
    s->t[i] = nearer ? (distance) : s->t[i];                                                       \
    s->id[i] = nearer ? id : s->id[i];

static void see_plane(samples *s, const cgs_local_eye *e, const float *size, int32_t id) {
    RAY(e)
    const float wide = size[0] > 0 ? size[0] : FAR, deep = size[1] > 0 ? size[1] : FAR;
    if (oz <= 0) return;
    LANES
    for (int i = 0; i < SAMPLES; i++) {
        DIRECTION(i)
        float t = -oz / away_from_zero(dz);
        bool hit = dz < 0 && fabsf(ox + t * dx) <= wide && fabsf(oy + t * dy) <= deep;
        KEEP_NEAREST(i, t, hit)
    }
}

/* spheres are ellipsoids with equal axes */
static void see_ellipsoid(samples *s, const cgs_local_eye *e, const float *size, int32_t id) {
    RAY(e)
    const float kx = 1 / size[0], ky = 1 / size[1], kz = 1 / size[2];
    LANES
    for (int i = 0; i < SAMPLES; i++) {
        DIRECTION(i)
        float ex = dx * kx, ey = dy * ky, ez = dz * kz;
        float px = ox * kx, py = oy * ky, pz = oz * kz;
        float a = ex * ex + ey * ey + ez * ez;
        float near = -(px * ex + py * ey + pz * ez) / a; /* closest approach to the middle */
        float k = 1 - square(px + near * ex) - square(py + near * ey) - square(pz + near * ez);
        float t = near - sqrtf(larger(k, 0) / a);
        KEEP_NEAREST(i, t, k >= 0)
    }
}

static void see_cylinder(samples *s, const cgs_local_eye *e, const float *size, int32_t id) {
    RAY(e)
    const float r2 = size[0] * size[0], h = size[2];
    const float lid = oz > 0 ? h : -h;
    const float seen = fabsf(oz) > h ? r2 : -1; /* from the side no lid is visible */
    LANES
    for (int i = 0; i < SAMPLES; i++) {
        DIRECTION(i)
        float a = larger(dx * dx + dy * dy, TINY);
        float near = -(ox * dx + oy * dy) / a;
        float k = r2 - square(ox + near * dx) - square(oy + near * dy);
        float side = near - sqrtf(larger(k, 0) / a), z = fabsf(oz + side * dz);
        float top = (lid - oz) / away_from_zero(dz);
        float rim = square(ox + top * dx) + square(oy + top * dy);
        side = k >= 0 ? side : FAR;
        side = z <= h ? side : FAR;
        side = side > 0 ? side : FAR;
        top = rim <= seen ? top : FAR;
        top = top > 0 ? top : FAR;
        float t = lesser(side, top);
        KEEP_NEAREST(i, t, t < FAR)
    }
}

static void see_capsule(samples *s, const cgs_local_eye *e, const float *size, int32_t id) {
    RAY(e)
    const float r2 = size[0] * size[0], h = size[2];
    LANES
    for (int i = 0; i < SAMPLES; i++) {
        DIRECTION(i)
        float a = larger(dx * dx + dy * dy, TINY), whole = a + dz * dz;
        float near = -(ox * dx + oy * dy) / a;
        float k = r2 - square(ox + near * dx) - square(oy + near * dy);
        float side = near - sqrtf(larger(k, 0) / a), z = oz + side * dz;
        /* beyond an end of the straight part the ray can only meet that end's ball */
        float end = z > 0 ? h : -h;
        float ball = -(ox * dx + oy * dy + (oz - end) * dz) / whole;
        float kb =
            r2 - square(ox + ball * dx) - square(oy + ball * dy) - square(oz - end + ball * dz);
        float round = ball - sqrtf(larger(kb, 0) / whole);
        bool straight = fabsf(z) <= h;
        float t = straight ? side : round;
        KEEP_NEAREST(i, t, k >= 0 && (straight || kb >= 0))
    }
}

static void see_box(samples *s, const cgs_local_eye *e, const float *size, int32_t id) {
    RAY(e)
    const float hx = size[0], hy = size[1], hz = size[2];
    LANES
    for (int i = 0; i < SAMPLES; i++) {
        DIRECTION(i)
        float kx = 1 / away_from_zero(dx), ky = 1 / away_from_zero(dy), kz = 1 / away_from_zero(dz);
        float mx = -ox * kx, my = -oy * ky, mz = -oz * kz;
        float wx = fabsf(hx * kx), wy = fabsf(hy * ky), wz = fabsf(hz * kz);
        float enter = larger(larger(mx - wx, my - wy), mz - wz);
        float leave = lesser(lesser(mx + wx, my + wy), mz + wz);
        KEEP_NEAREST(i, enter, enter <= leave)
    }
}

static void see(samples *s, const cgs_frame *f, int32_t id) {
    const cgs_shape *shape = &f->scene->shape[id];
    const cgs_local_eye *e = &f->eye[id];
    switch (shape->kind) {
    case CGS_SHAPE_PLANE: see_plane(s, e, shape->size, id); break;
    case CGS_SHAPE_SPHERE:
    case CGS_SHAPE_ELLIPSOID: see_ellipsoid(s, e, shape->size, id); break;
    case CGS_SHAPE_CAPSULE: see_capsule(s, e, shape->size, id); break;
    case CGS_SHAPE_CYLINDER: see_cylinder(s, e, shape->size, id); break;
    case CGS_SHAPE_BOX: see_box(s, e, shape->size, id); break;
    }
}

/* ---- who is lit ----------------------------------------------------------------- */

/* Samples that see one shape, with everything that shading them needs. */
typedef struct batch {
    int n, padded;     /* the loops run over whole vectors: padded lanes repeat the first sample */
    const int16_t *at; /* (n) which samples they are */
    float u[SAMPLES], v[SAMPLES], t[SAMPLES];
    float p[3][SAMPLES];   /* points, in the world           */
    float nrm[3][SAMPLES]; /* normals                        */
    float eye[3][SAMPLES]; /* unit vectors to the eye        */
    float way[3][SAMPLES]; /* unit vectors to a lamp         */
    float distance[SAMPLES], facing[SAMPLES], strength[SAMPLES], gleam[SAMPLES];
    float lit[SAMPLES];    /* 0 or 1                         */
    float rgb[3][SAMPLES]; /* sum of lights                  */
    float ball[4];         /* around the points              */
} batch;

/* the ray to the lamp from point i in the frame of a shape, starting just above the surface */
#define BEAM_TO(shape)                                                                             \
    const float(*m)[3] = (shape)->axis;                                                            \
    const float m00 = m[0][0], m01 = m[0][1], m02 = m[0][2];                                       \
    const float m10 = m[1][0], m11 = m[1][1], m12 = m[1][2];                                       \
    const float m20 = m[2][0], m21 = m[2][1], m22 = m[2][2];                                       \
    const float cx = (shape)->pos[0], cy = (shape)->pos[1], cz = (shape)->pos[2];
#define BEAM_FROM(i)                                                                               \
    float wx = b->p[0][i] + LIFT * b->nrm[0][i] - cx;                                              \
    float wy = b->p[1][i] + LIFT * b->nrm[1][i] - cy;                                              \
    float wz = b->p[2][i] + LIFT * b->nrm[2][i] - cz;                                              \
    float ox = m00 * wx + m01 * wy + m02 * wz, oy = m10 * wx + m11 * wy + m12 * wz;                \
    float oz = m20 * wx + m21 * wy + m22 * wz;                                                     \
    float dx = m00 * b->way[0][i] + m01 * b->way[1][i] + m02 * b->way[2][i];                       \
    float dy = m10 * b->way[0][i] + m11 * b->way[1][i] + m12 * b->way[2][i];                       \
    float dz = m20 * b->way[0][i] + m21 * b->way[1][i] + m22 * b->way[2][i];
#define SHADE_IF(i, enter, leave)                                                                  \
    float range = b->distance[i], was = b->lit[i];                                                 \
    was = (enter) <= (leave) && (leave) > 0 && (enter) < range ? 0 : was;                          \
    b->lit[i] = was;

static void block_ellipsoid(batch *b, const cgs_shape *shape) {
    BEAM_TO(shape)
    const float kx = 1 / shape->size[0], ky = 1 / shape->size[1], kz = 1 / shape->size[2];
    LANES
    for (int i = 0; i < b->padded; i++) {
        BEAM_FROM(i)
        ox *= kx, oy *= ky, oz *= kz;
        dx *= kx, dy *= ky, dz *= kz;
        float a = dx * dx + dy * dy + dz * dz;
        float near = -(ox * dx + oy * dy + oz * dz) / a;
        float k = 1 - square(ox + near * dx) - square(oy + near * dy) - square(oz + near * dz);
        float w = sqrtf(larger(k, 0) / a);
        float enter = k >= 0 ? near - w : FAR;
        SHADE_IF(i, enter, near + w)
    }
}

static void block_cylinder(batch *b, const cgs_shape *shape) {
    BEAM_TO(shape)
    const float r2 = square(shape->size[0]), h = shape->size[2];
    LANES
    for (int i = 0; i < b->padded; i++) {
        BEAM_FROM(i)
        float a = larger(dx * dx + dy * dy, TINY);
        float near = -(ox * dx + oy * dy) / a;
        float k = r2 - square(ox + near * dx) - square(oy + near * dy);
        float w = sqrtf(larger(k, 0) / a);
        float kz = 1 / away_from_zero(dz), middle = -oz * kz, wide = fabsf(h * kz);
        float enter = larger(near - w, middle - wide), leave = lesser(near + w, middle + wide);
        enter = k >= 0 ? enter : FAR;
        SHADE_IF(i, enter, leave)
    }
}

static void block_capsule(batch *b, const cgs_shape *shape) {
    BEAM_TO(shape)
    const float r2 = square(shape->size[0]), h = shape->size[2];
    LANES
    for (int i = 0; i < b->padded; i++) {
        BEAM_FROM(i)
        float a = larger(dx * dx + dy * dy, TINY), whole = a + dz * dz;
        float near = -(ox * dx + oy * dy) / a;
        float k = r2 - square(ox + near * dx) - square(oy + near * dy);
        float w = sqrtf(larger(k, 0) / a);
        float enter = k >= 0 ? near - w : FAR, leave = near + w;
        /* where the ray enters and leaves the endless cylinder: straight part or a ball */
        float first = oz + (near - w) * dz, last = oz + leave * dz;
        float end0 = first > 0 ? h : -h, end1 = last > 0 ? h : -h;
        float ball0 = -(ox * dx + oy * dy + (oz - end0) * dz) / whole;
        float ball1 = -(ox * dx + oy * dy + (oz - end1) * dz) / whole;
        float k0 =
            r2 - square(ox + ball0 * dx) - square(oy + ball0 * dy) - square(oz - end0 + ball0 * dz);
        float k1 =
            r2 - square(ox + ball1 * dx) - square(oy + ball1 * dy) - square(oz - end1 + ball1 * dz);
        float enter0 = k0 >= 0 ? ball0 - sqrtf(larger(k0, 0) / whole) : FAR;
        float leave1 = k1 >= 0 ? ball1 + sqrtf(larger(k1, 0) / whole) : -FAR;
        enter = fabsf(first) <= h || k < 0 ? enter : enter0;
        leave = fabsf(last) <= h ? leave : leave1;
        SHADE_IF(i, enter, leave)
    }
}

static void block_box(batch *b, const cgs_shape *shape) {
    BEAM_TO(shape)
    const float hx = shape->size[0], hy = shape->size[1], hz = shape->size[2];
    LANES
    for (int i = 0; i < b->padded; i++) {
        BEAM_FROM(i)
        float kx = 1 / away_from_zero(dx), ky = 1 / away_from_zero(dy), kz = 1 / away_from_zero(dz);
        float mx = -ox * kx, my = -oy * ky, mz = -oz * kz;
        float sx = fabsf(hx * kx), sy = fabsf(hy * ky), sz = fabsf(hz * kz);
        float enter = larger(larger(mx - sx, my - sy), mz - sz);
        float leave = lesser(lesser(mx + sx, my + sy), mz + sz);
        SHADE_IF(i, enter, leave)
    }
}

int JOIN(cgs_casters, CGS_ISA)(const cgs_frame *f, const cgs_lamp *lamp, const float *ball,
                               int16_t *out) {
    float gap[MAX_SHAPES];
    const float bx = ball[0], by = ball[1], bz = ball[2], reach = ball[3];
    if (lamp->parallel) {
        /* distances in the plane across the beam: a point and a segment */
        const float lx = lamp->dir[0], ly = lamp->dir[1], lz = lamp->dir[2];
        LANES
        for (int k = 0; k < f->shapes; k++) {
            float x = bx - f->middle[0][k], y = by - f->middle[1][k], z = bz - f->middle[2][k];
            float hx = f->half[0][k], hy = f->half[1][k], hz = f->half[2][k];
            float along = x * lx + y * ly + z * lz, slope = hx * lx + hy * ly + hz * lz;
            float beyond = along + fabsf(slope); /* < -: the shape is behind the points */
            x -= along * lx, y -= along * ly, z -= along * lz;
            hx -= slope * lx, hy -= slope * ly, hz -= slope * lz;
            float s = (x * hx + y * hy + z * hz) / larger(hx * hx + hy * hy + hz * hz, TINY);
            s = lesser(larger(s, -1), 1);
            x -= s * hx, y -= s * hy, z -= s * hz;
            float limit = reach + f->radius[k];
            float d = x * x + y * y + z * z - limit * limit;
            gap[k] = f->radius[k] < 0 || beyond < -limit ? 1 : d;
        }
    } else {
        /* distances of two segments: from the ball to the lamp, and the shape's axis */
        const float lx = lamp->pos[0] - bx, ly = lamp->pos[1] - by, lz = lamp->pos[2] - bz;
        const float a = larger(lx * lx + ly * ly + lz * lz, TINY);
        LANES
        for (int k = 0; k < f->shapes; k++) {
            float hx = 2 * f->half[0][k], hy = 2 * f->half[1][k], hz = 2 * f->half[2][k];
            float x = bx - f->middle[0][k] + 0.5f * hx, y = by - f->middle[1][k] + 0.5f * hy;
            float z = bz - f->middle[2][k] + 0.5f * hz;
            float e = larger(hx * hx + hy * hy + hz * hz, TINY);
            float b = lx * hx + ly * hy + lz * hz, c = lx * x + ly * y + lz * z;
            float d = hx * x + hy * y + hz * z, across = larger(a * e - b * b, TINY);
            float s = lesser(larger((b * d - c * e) / across, 0), 1);
            float t = lesser(larger((b * s + d) / e, 0), 1);
            s = lesser(larger((b * t - c) / a, 0), 1);
            x += s * lx - t * hx, y += s * ly - t * hy, z += s * lz - t * hz;
            float limit = 1.001f * (reach + f->radius[k]) + 1e-5f;
            float beyond = x * x + y * y + z * z - limit * limit;
            gap[k] = f->radius[k] < 0 ? 1 : beyond;
        }
    }
    int n = 0;
    for (int k = 0; k < f->shapes; k++)
        if (gap[k] <= 0) out[n++] = (int16_t)k;
    return n;
}

static void find_shadow(batch *b, const cgs_frame *f, const cgs_lamp *lamp, int own) {
    int16_t casters[MAX_SHAPES];
    int n = JOIN(cgs_casters, CGS_ISA)(f, lamp, b->ball, casters);
    for (int c = 0; c < n; c++) {
        const cgs_shape *shape = &f->scene->shape[casters[c]];
        if (casters[c] == own) continue; /* a convex shape blocks no lamp its surface faces */
        switch (shape->kind) {
        case CGS_SHAPE_PLANE: break;
        case CGS_SHAPE_SPHERE:
        case CGS_SHAPE_ELLIPSOID: block_ellipsoid(b, shape); break;
        case CGS_SHAPE_CAPSULE: block_capsule(b, shape); break;
        case CGS_SHAPE_CYLINDER: block_cylinder(b, shape); break;
        case CGS_SHAPE_BOX: block_box(b, shape); break;
        }
    }
}

/* ---- which colour --------------------------------------------------------------- */

/* takes n samples, those numbered at[0], at[1], ... */
static void gather(batch *b, const samples *s, const int16_t *at, int n) {
    b->n = n;
    b->padded = (n + LANE - 1) / LANE * LANE;
    b->at = at;
    for (int k = 0; k < n; k++) {
        b->u[k] = s->u[at[k]];
        b->v[k] = s->v[at[k]];
        b->t[k] = s->t[at[k]];
    }
    for (int k = n; k < b->padded; k++) b->u[k] = b->u[0], b->v[k] = b->v[0], b->t[k] = b->t[0];
}

/* least and greatest of n numbers, n a multiple of LANE */
static void extent(const float *p, int n, float *low, float *high) {
    float least[LANE], most[LANE];
    for (int l = 0; l < LANE; l++) least[l] = most[l] = p[l];
    for (int k = LANE; k < n; k += LANE) {
        LANES
        for (int l = 0; l < LANE; l++) {
            least[l] = lesser(least[l], p[k + l]);
            most[l] = larger(most[l], p[k + l]);
        }
    }
    *low = least[0], *high = most[0];
    for (int l = 1; l < LANE; l++) {
        *low = lesser(*low, least[l]);
        *high = larger(*high, most[l]);
    }
}

/* points, normals and directions to the eye */
static void locate(batch *b, const cgs_frame *f, int id) {
    const cgs_shape *g = &f->scene->shape[id];
    const cgs_eye *eye = &f->scene->eye;
    const cgs_local_eye *e = &f->eye[id];
    const float kx = 1 / square(g->size[0]), ky = 1 / square(g->size[1]),
                kz = 1 / square(g->size[2]);
    const float sx = g->size[0], sy = g->size[1], sz = g->size[2];
    const cgs_shape_kind kind = g->kind;
    float local[3][SAMPLES];
    LANES
    for (int k = 0; k < b->padded; k++) {
        float u = b->u[k], v = b->v[k], t = b->t[k], w[3], d2 = 0;
        for (int c = 0; c < 3; c++) {
            w[c] = eye->forward[c] + u * eye->right[c] + v * eye->up[c];
            b->p[c][k] = eye->pos[c] + t * w[c];
            local[c][k] = e->origin[c] + t * (e->ahead[c] + u * e->right[c] + v * e->up[c]);
            d2 += w[c] * w[c];
        }
        float scale = -1 / sqrtf(d2);
        for (int c = 0; c < 3; c++) b->eye[c][k] = scale * w[c];
    }
    /* the outward normal in the shape's frame, not yet of unit length */
    if (kind == CGS_SHAPE_PLANE) {
        for (int k = 0; k < b->padded; k++) local[0][k] = local[1][k] = 0, local[2][k] = 1;
    } else if (kind == CGS_SHAPE_SPHERE || kind == CGS_SHAPE_ELLIPSOID) {
        LANES
        for (int k = 0; k < b->padded; k++) local[0][k] *= kx, local[1][k] *= ky, local[2][k] *= kz;
    } else if (kind == CGS_SHAPE_CAPSULE) {
        LANES
        for (int k = 0; k < b->padded; k++) {
            float z = local[2][k];
            local[2][k] = z - lesser(larger(z, -sz), sz);
        }
    } else if (kind == CGS_SHAPE_CYLINDER) {
        LANES
        for (int k = 0; k < b->padded; k++) {
            float x = local[0][k], y = local[1][k], z = local[2][k];
            bool lid = fabsf(z) - sz > sqrtf(x * x + y * y) - sx;
            local[0][k] = lid ? 0 : x;
            local[1][k] = lid ? 0 : y;
            local[2][k] = lid ? z : 0;
        }
    } else {
        LANES
        for (int k = 0; k < b->padded; k++) {
            float x = local[0][k], y = local[1][k], z = local[2][k];
            float fx = fabsf(x) - sx, fy = fabsf(y) - sy, fz = fabsf(z) - sz;
            bool on_x = fx >= fy && fx >= fz, on_y = !on_x && fy >= fz;
            local[0][k] = on_x ? x : 0;
            local[1][k] = on_y ? y : 0;
            local[2][k] = on_x || on_y ? 0 : z;
        }
    }
    LANES
    for (int k = 0; k < b->padded; k++) {
        float x = local[0][k], y = local[1][k], z = local[2][k];
        float scale = 1 / sqrtf(larger(x * x + y * y + z * z, 1e-30f));
        x *= scale, y *= scale, z *= scale;
        for (int c = 0; c < 3; c++)
            b->nrm[c][k] = g->axis[0][c] * x + g->axis[1][c] * y + g->axis[2][c] * z;
    }
    float r2 = 0;
    for (int c = 0; c < 3; c++) {
        float low, high;
        extent(b->p[c], b->padded, &low, &high);
        b->ball[c] = 0.5f * (low + high);
        r2 += square(0.5f * (high - low));
    }
    b->ball[3] = sqrtf(r2) + 2 * LIFT;
}

/* x^n by squaring, the same n for all lanes */
static void power(float *x, int n, int count) {
    float result[SAMPLES];
    for (int k = 0; k < count; k++) result[k] = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            for (int k = 0; k < count; k++) result[k] *= x[k];
        for (int k = 0; k < count; k++) x[k] *= x[k];
    }
    memcpy(x, result, (size_t)count * sizeof *x);
}

/* The direction to a lamp, the cosine to the surface normal (b->facing), and its intensity there:
 * attenuated, and inside its cone. */
static void aim(batch *b, const cgs_lamp *lamp) {
    const float dx = lamp->dir[0], dy = lamp->dir[1], dz = lamp->dir[2];
    const float a0 = lamp->attenuation[0], a1 = lamp->attenuation[1], a2 = lamp->attenuation[2];
    const float px = lamp->pos[0], py = lamp->pos[1], pz = lamp->pos[2], cutoff = lamp->cutoff;
    const int n = b->padded;
    float cone[SAMPLES];
    if (lamp->parallel) {
        LANES
        for (int k = 0; k < n; k++) {
            b->way[0][k] = -dx, b->way[1][k] = -dy, b->way[2][k] = -dz;
            b->distance[k] = BEAM;
            b->strength[k] = 1;
            float cosine = -(b->nrm[0][k] * dx + b->nrm[1][k] * dy + b->nrm[2][k] * dz);
            b->facing[k] = larger(cosine, 0);
        }
        return;
    }
    LANES
    for (int k = 0; k < n; k++) {
        float x = px - b->p[0][k], y = py - b->p[1][k], z = pz - b->p[2][k];
        float d = sqrtf(larger(x * x + y * y + z * z, 1e-30f)), scale = 1 / d;
        x *= scale, y *= scale, z *= scale;
        b->way[0][k] = x, b->way[1][k] = y, b->way[2][k] = z;
        b->distance[k] = d;
        float cosine = b->nrm[0][k] * x + b->nrm[1][k] * y + b->nrm[2][k] * z;
        b->facing[k] = larger(cosine, 0);
        cone[k] = larger(-(x * dx + y * dy + z * dz), 0);
        float fade = 1 / (a0 + a1 * d + a2 * d * d);
        b->strength[k] = cone[k] < cutoff ? 0 : fade;
    }
    if (lamp->cutoff > -1 && lamp->exponent > 0) {
        power(cone, lamp->exponent, n);
        for (int k = 0; k < n; k++) b->strength[k] *= cone[k];
    }
}

/* the highlight, where the lamp is faced at all */
static void glint(batch *b, int gloss) {
    const int n = b->padded;
    LANES
    for (int k = 0; k < n; k++) {
        float x = b->way[0][k] + b->eye[0][k], y = b->way[1][k] + b->eye[1][k];
        float z = b->way[2][k] + b->eye[2][k];
        float length = sqrtf(larger(x * x + y * y + z * z, 1e-30f));
        float cosine = (b->nrm[0][k] * x + b->nrm[1][k] * y + b->nrm[2][k] * z) / length;
        cosine = larger(cosine, 0);
        b->gleam[k] = b->facing[k] > 0 ? cosine : 0;
    }
    power(b->gleam, gloss, n);
}

static bool any_faces(const batch *b) {
    float most[LANE] = {0}, all = 0;
    for (int k = 0; k < b->padded; k += LANE) {
        LANES
        for (int l = 0; l < LANE; l++) most[l] = larger(most[l], b->facing[k + l]);
    }
    for (int l = 0; l < LANE; l++) all = larger(all, most[l]);
    return all > 0;
}

/* adds one lamp's light to b->rgb, or, for a lamp with a shadow, its clamped share */
static void shine(batch *b, const cgs_frame *f, const cgs_lamp *lamp, int id) {
    const cgs_shape *g = &f->scene->shape[id];
    const int n = b->padded;
    aim(b, lamp);
    if (g->specular * (lamp->specular[0] + lamp->specular[1] + lamp->specular[2]) > 0)
        glint(b, g->gloss);
    else
        memset(b->gleam, 0, (size_t)n * sizeof *b->gleam);
    for (int k = 0; k < n; k++) b->lit[k] = 1;
    if (lamp->shadow && any_faces(b)) find_shadow(b, f, lamp, id);
    for (int c = 0; c < 3; c++) {
        float ambient = lamp->ambient[c] * g->rgb[c], diffuse = lamp->diffuse[c] * g->rgb[c];
        float specular = lamp->specular[c] * g->specular, most = lamp->shadow ? 1 : FAR;
        LANES
        for (int k = 0; k < n; k++) {
            float surface = diffuse * b->facing[k] + specular * b->gleam[k];
            float light = ambient + b->strength[k] * surface;
            b->rgb[c][k] += b->lit[k] * lesser(light, most);
        }
    }
}

/* nearest texel of a repeated texture */
static void dress(batch *b, const cgs_frame *f, int id) {
    const cgs_shape *g = &f->scene->shape[id];
    const cgs_local_eye *e = &f->eye[id];
    const cgs_texture *t = &g->texture;
    const float wide = (float)t->width, high = (float)t->height;
    const float sx = g->texture_scale[0], sy = g->texture_scale[1];
    const int last_i = t->width - 1, last_j = t->height - 1;
    int32_t texel[SAMPLES];
    LANES
    for (int k = 0; k < b->padded; k++) {
        float u = b->u[k], v = b->v[k], d = b->t[k];
        float x = e->origin[0] + d * (e->ahead[0] + u * e->right[0] + v * e->up[0]);
        float y = e->origin[1] + d * (e->ahead[1] + u * e->right[1] + v * e->up[1]);
        float s = x * sx - 0.5f, r = -y * sy - 0.5f;
        int i = (int)((s - below(s)) * wide), j = (int)((r - below(r)) * high);
        i = i < last_i ? i : last_i;
        j = j < last_j ? j : last_j;
        texel[k] = (j * t->width + i) * 3;
    }
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < b->n; k++) b->rgb[c][k] *= (float)t->rgb[texel[k] + c] * (1.0f / 255);
}

static void colour(batch *b, const cgs_frame *f, int id) {
    const cgs_scene *scene = f->scene;
    const cgs_shape *g = &scene->shape[id];
    locate(b, f, id);
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < b->padded; k++) b->rgb[c][k] = g->emission * g->rgb[c];
    for (int l = 0; l < scene->lamps; l++)
        if (!scene->lamp[l].shadow) shine(b, f, &scene->lamp[l], id);
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < b->padded; k++) b->rgb[c][k] = lesser(b->rgb[c][k], 1);
    for (int l = 0; l < scene->lamps; l++)
        if (scene->lamp[l].shadow) shine(b, f, &scene->lamp[l], id);
    if (g->texture.rgb) dress(b, f, id);
}

/* The six faces are those of an OpenGL cube map whose y points up. */
static void sky(batch *b, const cgs_frame *f) {
    const cgs_texture *t = &f->scene->sky;
    const cgs_eye *eye = &f->scene->eye;
    for (int k = 0; k < b->n; k++) {
        float d[3];
        for (int c = 0; c < 3; c++)
            d[c] = eye->forward[c] + b->u[k] * eye->right[c] + b->v[k] * eye->up[c];
        float x = d[0], y = d[2], z = -d[1], ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
        int face;
        float major, s, r;
        if (ax >= ay && ax >= az)
            face = x > 0 ? 0 : 1, major = ax, s = x > 0 ? -z : z, r = -y;
        else if (ay >= az)
            face = y > 0 ? 2 : 3, major = ay, s = x, r = y > 0 ? z : -z;
        else
            face = z > 0 ? 4 : 5, major = az, s = z > 0 ? x : -x, r = -y;
        for (int c = 0; c < 3; c++) b->rgb[c][k] = 0;
        if (!t->rgb || !(major > 0)) continue;
        int side = t->width;
        int i = (int)((s / major + 1) * 0.5f * (float)side);
        int j = (int)((r / major + 1) * 0.5f * (float)side);
        i = i < side ? i : side - 1;
        j = (j < side ? j : side - 1) + face * side;
        const uint8_t *texel = t->rgb + ((size_t)j * (size_t)side + (size_t)i) * 3;
        for (int c = 0; c < 3; c++) b->rgb[c][k] = (float)texel[c] * (1.0f / 255);
    }
}

/* ---- the tile ------------------------------------------------------------------- */

static void widen(float *low, float *high, const float *ball) {
    for (int c = 0; c < 3; c++) {
        low[c] = lesser(low[c], ball[c] - ball[3]);
        high[c] = larger(high[c], ball[c] + ball[3]);
    }
}

void JOIN(cgs_tile, CGS_ISA)(const cgs_frame *f, int x, int y, const int16_t *list, int count,
                             uint8_t *rgb, float *reach) {
    samples s;
    batch b;
    float sum[3][SAMPLES];
    const float slope = f->scene->eye.tan_half_fov;
    for (int i = 0; i < SAMPLES; i++) {
        s.u[i] = ((float)(x * ACROSS + i % ACROSS) + 0.5f) * f->step - slope;
        s.v[i] = slope - ((float)(y * ACROSS + i / ACROSS) + 0.5f) * f->step;
        s.t[i] = FAR;
        s.id[i] = -1;
    }
    for (int k = 0; k < count; k++) see(&s, f, list[k]);

    /* samples in the order of what they see: entry 0 of first is the sky's */
    int16_t order[SAMPLES], first[MAX_SHAPES + 2] = {0};
    int32_t other = 0;
    for (int i = 0; i < SAMPLES; i++) other |= s.id[i] ^ s.id[0];
    if (other) {
        for (int i = 0, j; i < SAMPLES; i = j) { /* by runs: neighbours see the same */
            for (j = i + 1; j < SAMPLES && s.id[j] == s.id[i];) j++;
            first[s.id[i] + 2] = (int16_t)(first[s.id[i] + 2] + j - i);
        }
        for (int k = 0; k <= f->shapes; k++) first[k + 1] = (int16_t)(first[k + 1] + first[k]);
        for (int i = 0, j; i < SAMPLES; i = j) {
            int16_t *end = &first[s.id[i] + 1];
            for (j = i; j < SAMPLES && s.id[j] == s.id[i]; j++) order[*end + j - i] = (int16_t)j;
            *end = (int16_t)(*end + j - i);
        }
    } else {
        for (int i = 0; i < SAMPLES; i++) order[i] = (int16_t)i;
        for (int k = s.id[0] + 1; k <= f->shapes; k++) first[k] = SAMPLES;
    }

    float low[3] = {FAR, FAR, FAR}, high[3] = {-FAR, -FAR, -FAR};
    for (int k = -1; k < count; k++) {
        /* filling moved each entry to its end, which is the next one's beginning */
        int id = k < 0 ? -1 : list[k], from = id < 0 ? 0 : first[id], n = first[id + 1] - from;
        if (n == 0) continue;
        gather(&b, &s, order + from, n);
        if (id < 0) {
            sky(&b, f);
        } else {
            colour(&b, f, id);
            widen(low, high, b.ball);
        }
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < b.n; i++) sum[c][b.at[i]] = lesser(b.rgb[c][i], 1);
    }
    for (int j = 0; j < TILE; j++)
        for (int i = 0; i < TILE; i++)
            for (int c = 0; c < 3; c++) {
                const float *q = sum[c] + 2 * j * ACROSS + 2 * i;
                float v = (q[0] + q[1]) + (q[ACROSS] + q[ACROSS + 1]);
                rgb[(j * TILE + i) * 3 + c] = (uint8_t)(int)(v * 63.75f + 0.5f);
            }
    if (!reach) return;
    float r2 = 0;
    for (int c = 0; c < 3; c++) {
        reach[c] = 0.5f * (low[c] + high[c]);
        r2 += square(0.5f * (high[c] - low[c]));
    }
    reach[3] = low[0] <= high[0] ? sqrtf(r2) : -1;
}
