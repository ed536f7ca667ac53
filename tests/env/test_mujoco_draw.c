/* test_mujoco_draw.c - images of the MuJoCo environments: the same bytes whatever the
 * instruction set, the cache and the number of threads; and, where OSMesa is installed,
 * beside MuJoCo's own.  CGS_TEST_PICTURES=DIR keeps the pairs as DIR/NAME.png. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "env/env.h"

#ifndef CGS_WITH_MUJOCO
int main(void) {
    printf("built without MuJoCo\n");
    return 77;
}
#else

#include <dlfcn.h>

#include "core/threads.h"
#include "env/mujoco_models.h"
#include "env/mujoco_world.h"
#include "env/policy.h"
#include "io/png.h"

enum { SIDE = 224, BYTES = SIDE * SIDE * 3 };

typedef struct drawn {
    const char *id;
    cgs_mj_source source;
    bool sites, upside_down;
    int steps;       /* of the first policy, before the image */
    double expected; /* mean absolute difference to MuJoCo's image, at most */
} drawn;

static drawn drawings[] = {
    {"pointmaze-umaze", {"umaze", cgs_mjcf_umaze, 2, 2, 2, NULL, NULL}, true, true, 20, 2},
    {"pointmaze-medium", {"medium", cgs_mjcf_medium, 2, 2, 2, NULL, NULL}, true, true, 20, 2},
    {"reacher", {"reacher", cgs_mjcf_reacher, 2, 2, 2, NULL, NULL}, false, false, 20, 8},
    {"cube", {"cube", cgs_mjcf_cube, 21, 20, 7, NULL, NULL}, false, false, 34, 4},
};
enum { DRAWINGS = sizeof drawings / sizeof drawings[0] };

/* an environment in the middle of an episode, and a view of the same model */
static cgs_env *situation(drawn *s, uint64_t episode, cgs_mj_view *view) {
    const cgs_env_class *cls;
    const cgs_policy_class *pc;
    cgs_env *e;
    cgs_policy *p;
    const mjModel *m;
    assert_int_equal(cgs_env_find(s->id, &cls), CGS_OK);
    assert_int_equal(cgs_env_create(&e, cls), CGS_OK);
    assert_int_equal(cgs_policy_find(s->id, NULL, &pc), CGS_OK);
    assert_int_equal(cgs_policy_create(&p, pc), CGS_OK);
    assert_int_equal(cgs_policy_begin(p, e, 3, episode), CGS_OK);
    for (int k = 0; k < s->steps; k++) {
        cgs_policy_act(p, e);
        cgs_env_step(e);
    }
    cgs_policy_destroy(p);
    assert_int_equal(cgs_mj_model(&s->source, &m), CGS_OK);
    assert_int_equal(cgs_mj_view_open(view, m, s->sites), CGS_OK);
    view->upside_down = s->upside_down;
    return e;
}

/* ---- the same bytes ------------------------------------------------------------- */

static void test_same_bytes(void **unused) {
    (void)unused;
    static uint8_t rgb[BYTES], other[BYTES];
    printf("%d instruction sets\n", cgs_scene_isas());
    for (int k = 0; k < DRAWINGS; k++)
        for (uint64_t episode = 0; episode < 3; episode++) {
            cgs_mj_view view;
            cgs_env *e = situation(&drawings[k], episode, &view);
            const int sides[] = {SIDE, 64, 50}; /* 50: no whole number of tiles */
            for (int i = 0; i < 3; i++) {
                size_t bytes = (size_t)(sides[i] * sides[i] * 3);
                assert_int_equal(cgs_env_render(e, sides[i], rgb), CGS_OK);
                for (int isa = 1; isa <= cgs_scene_isas(); isa++) {
                    view.canvas.isa = isa;
                    assert_int_equal(cgs_mj_view_draw(&view, e->state, sides[i], other), CGS_OK);
                    assert_memory_equal(rgb, other, bytes);
                    cgs_canvas_free(&view.canvas);
                }
                /* nothing cached: every shape counts as moving */
                assert_int_equal(cgs_mj_view_scene(&view, e->state), CGS_OK);
                for (int j = 0; j < view.image.shapes; j++) view.image.shape[j].still = false;
                assert_int_equal(
                    cgs_scene_draw(&view.canvas, &view.image, sides[i], view.upside_down, other),
                    CGS_OK);
                assert_memory_equal(rgb, other, bytes);
                cgs_canvas_free(&view.canvas);
            }
            cgs_mj_view_close(&view);
            cgs_env_destroy(e);
        }
}

static void test_batch(void **unused) {
    (void)unused;
    enum { COUNT = 6 };
    static uint8_t one[COUNT][BYTES], two[COUNT][BYTES];
    for (int k = 0; k < DRAWINGS; k++) {
        const cgs_env_class *cls;
        cgs_env_batch b;
        assert_int_equal(cgs_env_find(drawings[k].id, &cls), CGS_OK);
        assert_int_equal(cgs_env_batch_create(&b, cls, COUNT), CGS_OK);
        for (int threads = 1; threads <= 2; threads++) {
            cgs_set_threads(threads);
            assert_int_equal(cgs_env_batch_reset(&b, 4, 0), CGS_OK);
            for (int t = 0; t < 3; t++) {
                for (int i = 0; i < COUNT * cls->action_dim; i++) b.action[i] = i % 3 - 1;
                cgs_env_batch_step(&b);
            }
            assert_int_equal(
                cgs_env_batch_render(&b, NULL, b.count, SIDE, threads == 1 ? one[0] : two[0]),
                CGS_OK);
        }
        assert_memory_equal(one, two, sizeof one);
        assert_memory_not_equal(one[0], one[1], BYTES);
        cgs_env_batch_destroy(&b);
    }
    cgs_set_threads(0);
}

/* images of written-down states, known to the byte on every machine and compiler */
static void test_known_bytes(void **unused) {
    (void)unused;
    static uint8_t rgb[BYTES];
    static const double states[DRAWINGS][41] = {
        {1.3, 3.05},
        {4.6, 1.25},
        {0.7, -1.9},
        {-2.174, -1.205, 1.964,  -2.299, -1.571, -1.647, 0.45,   0.001, 0.447,  -0.444, 0.45,
         0,      0.447,  -0.439, 0.51,   -0.192, 0.035,  -0.499, 0.006, -0.011, 0.867},
    };
    static const uint32_t known[DRAWINGS] = {0x1d9bdd9a, 0x40db6784, 0x8ed94130, 0x5bb45a88};
    for (int k = 0; k < DRAWINGS; k++) {
        cgs_mj_view view;
        const mjModel *m;
        assert_int_equal(cgs_mj_model(&drawings[k].source, &m), CGS_OK);
        assert_int_equal(cgs_mj_view_open(&view, m, drawings[k].sites), CGS_OK);
        view.upside_down = drawings[k].upside_down;
        assert_int_equal(cgs_mj_view_draw(&view, states[k], SIDE, rgb), CGS_OK);
        uint32_t sum = 0;
        for (int i = 0; i < BYTES; i++) sum = sum * 16777619u + rgb[i] + 1;
        printf("%s: 0x%08x\n", drawings[k].id, sum);
        if (mjVERSION_HEADER == 222) assert_int_equal(sum, known[k]);
        cgs_mj_view_close(&view);
    }
}

/* colours that the lighting formula gives */
static void test_colours(void **unused) {
    (void)unused;
    static uint8_t rgb[BYTES];
    static const struct {
        int drawn, col, row, rgb[3], within;
    } points[] = {
        {3, 200, 210, {53, 64, 89}, 1}, /* a light square of the Cube floor */
        {3, 30, 210, {28, 39, 56}, 2},  /* a dark one                       */
        /* Reacher ground: texture times 1 + 0.7 c^11 + highlight, c the cosine to the lamp;
         * OpenGL lights the corners of large squares only and is up to 8 % darker */
        {2, 60, 60, {40, 81, 121}, 1},
        {2, 160, 60, {81, 121, 162}, 1},
        {2, 60, 160, {81, 121, 162}, 1},
        {2, 160, 160, {40, 81, 121}, 1},
        {0, 112, 50, {214, 153, 92}, 10}, /* the wall of a maze, known to 10 */
    };
    for (int k = 0; k < DRAWINGS; k++) {
        cgs_mj_view view;
        cgs_env *e = situation(&drawings[k], 0, &view);
        if (k == 3) { /* the arm at home is out of the way */
            double s[41] = {-1.5708, -1.5708, 1.5708, -1.5708, -1.5708};
            s[14] = 0.3, s[15] = 0.0, s[16] = 0.02, s[17] = 1;
            assert_int_equal(cgs_env_start(e, s, 41), CGS_OK);
        } else if (k == 2) {
            const double s[4] = {0};
            assert_int_equal(cgs_env_start(e, s, 4), CGS_OK);
        }
        assert_int_equal(cgs_env_render(e, SIDE, rgb), CGS_OK);
        for (int i = 0; i < (int)(sizeof points / sizeof points[0]); i++) {
            if (points[i].drawn != k) continue;
            const uint8_t *p = rgb + (points[i].row * SIDE + points[i].col) * 3;
            printf("%s (%d,%d): %d %d %d, expected %d %d %d\n", drawings[k].id, points[i].col,
                   points[i].row, p[0], p[1], p[2], points[i].rgb[0], points[i].rgb[1],
                   points[i].rgb[2]);
            for (int c = 0; c < 3; c++)
                assert_true(abs(p[c] - points[i].rgb[c]) <= points[i].within);
        }
        cgs_mj_view_close(&view);
        cgs_env_destroy(e);
    }
}

/* ---- beside MuJoCo's own renderer ----------------------------------------------- */

typedef struct gl {
    void *library, *context;
    void (*destroy)(void *);
    uint8_t *buffer;
} gl;

/* OSMesa leaks some memory; the leak checker calls this */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libOSMesa"; }

/* a software OpenGL context, or false where OSMesa is not installed */
static bool gl_open(gl *g) {
    memset(g, 0, sizeof *g);
    g->library = dlopen("libOSMesa.so.8", RTLD_NOW | RTLD_GLOBAL);
    if (!g->library) g->library = dlopen("libOSMesa.so", RTLD_NOW | RTLD_GLOBAL);
    if (!g->library) return false;
    void *(*create)(unsigned, int, int, int, void *);
    unsigned char (*make_current)(void *, void *, unsigned, int, int);
    *(void **)&create = dlsym(g->library, "OSMesaCreateContextExt");
    *(void **)&make_current = dlsym(g->library, "OSMesaMakeCurrent");
    *(void **)&g->destroy = dlsym(g->library, "OSMesaDestroyContext");
    if (!create || !make_current || !g->destroy) return false;
    const unsigned rgba = 0x1908, bytes = 0x1401;
    g->context = create(rgba, 24, 8, 8, NULL);
    g->buffer = malloc(800 * 800 * 4);
    return g->context && g->buffer && make_current(g->context, g->buffer, bytes, 800, 800);
}

static void gl_draw(cgs_mj_view *v, uint8_t *rgb) {
    static uint8_t rows[BYTES];
    mjrContext context;
    mjrRect all = {0, 0, SIDE, SIDE};
    mjr_defaultContext(&context);
    mjr_makeContext(v->model, &context, mjFONTSCALE_100);
    mjr_setBuffer(mjFB_OFFSCREEN, &context);
    mjr_render(all, &v->scene, &context);
    mjr_readPixels(rows, NULL, all, &context);
    for (int y = 0; y < SIDE; y++)
        memcpy(rgb + y * SIDE * 3, rows + (v->upside_down ? y : SIDE - 1 - y) * SIDE * 3, SIDE * 3);
    mjr_freeContext(&context);
}

static void test_beside_opengl(void **unused) {
    (void)unused;
    static uint8_t mine[BYTES], theirs[BYTES], pair[2 * BYTES];
    gl g;
    if (!gl_open(&g)) {
        printf("OSMesa is not installed: no comparison\n");
        skip();
    }
    for (int k = 0; k < DRAWINGS; k++) {
        cgs_mj_view view;
        cgs_env *e = situation(&drawings[k], 1, &view);
        assert_int_equal(cgs_mj_view_draw(&view, e->state, SIDE, mine), CGS_OK);
        gl_draw(&view, theirs);
        double sum = 0;
        int far = 0;
        for (int i = 0; i < BYTES; i++) {
            int d = abs(mine[i] - theirs[i]);
            sum += d;
            far += d > 24;
        }
        printf("%s: mean absolute difference %.2f, more than 24 on %.2f %% of the bytes\n",
               drawings[k].id, sum / BYTES, 100.0 * far / BYTES);
        for (int y = 0; y < SIDE; y++) {
            memcpy(pair + 2 * y * SIDE * 3, mine + y * SIDE * 3, SIDE * 3);
            memcpy(pair + (2 * y + 1) * SIDE * 3, theirs + y * SIDE * 3, SIDE * 3);
        }
        const char *dir = getenv("CGS_TEST_PICTURES");
        char path[512];
        snprintf(path, sizeof path, "%s/%s.png", dir ? dir : "", drawings[k].id);
        if (dir) assert_int_equal(cgs_png_write(path, pair, 2 * SIDE, SIDE), CGS_OK);
        assert_true(sum / BYTES <= drawings[k].expected);
        cgs_mj_view_close(&view);
        cgs_env_destroy(e);
    }
    g.destroy(g.context);
    free(g.buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),    cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_batch),         cmocka_unit_test(test_colours),
        cmocka_unit_test(test_beside_opengl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
