/* test_op_values.c - operations and the optimiser against answers worked out by hand,
 * on every backend: differences cannot see a forward pass that is wrong but smooth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rng.h"
#include "expect.h"
#include "ops/tape.h"

static void assert_near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%.9g, want %.9g", got, want);
}

static cgs_device ref, other; /* other.ops is NULL in a build with the reference alone */

static int open_devices(void **state) {
    (void)state;
    if (cgs_device_open(&ref, "ref", 1) != CGS_OK) return -1;
    if (cgs_device_open(&other, "cpu", 2) != CGS_OK) other = (cgs_device){0};
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    cgs_device_close(&ref);
    cgs_device_close(&other);
    return 0;
}

static int devices(cgs_device **list) {
    list[0] = &ref;
    list[1] = &other;
    return other.ops ? 2 : 1;
}

/* ---- layouts and functions, forward ------------------------------------------------------ */

typedef struct bench { /* a tape that runs forward once on given inputs */
    cgs_tape *t;
    cgs_tensor *in[4];
    const float *value[4];
    int inputs;
} bench;

static void start(bench *b, cgs_device *d) {
    *b = (bench){0};
    OK(cgs_tape_create(&b->t, d, CGS_F32));
}

static cgs_tensor *given(bench *b, cgs_dtype type, const float *value, int rank, const int *dim) {
    b->value[b->inputs] = value;
    return b->in[b->inputs++] = cgs_input(b->t, "given", type, rank, dim);
}

#define DIM(...)                                                                                   \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]) { __VA_ARGS__ }

/* runs and leaves the tape alive for a look at saved tensors; the caller destroys it */
static void finish(bench *b, cgs_tensor *out, float *to) {
    cgs_keep(out);
    OK(cgs_tape_finish(b->t, NULL));
    for (int i = 0; i < b->inputs; i++) OK(cgs_tensor_write(b->t, b->in[i], b->value[i]));
    cgs_tape_forward(b->t);
    OK(cgs_tensor_read(b->t, out, to));
}

static void test_patch_order(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        enum { F = 2, S = 6, p = 3, P = 4, K = 3 * p * p };
        float x[F * S * S * 3], y[F * P * K];
        const float mean[3] = {0.1f, 0.2f, 0.3f}, std[3] = {0.5f, 0.25f, 2};
        for (int k = 0; k < F * S * S * 3; k++) x[k] = (float)(k * 37 % 256);
        bench b;
        start(&b, list[i]);
        finish(&b, cgs_patchify(b.t, given(&b, CGS_U8, x, DIM(F, S, S, 3)), p, mean, std), y);
        for (int f = 0; f < F; f++)
            for (int r = 0; r < S; r++)
                for (int c = 0; c < S; c++)
                    for (int ch = 0; ch < 3; ch++) {
                        int patch = f * P + r / p * (S / p) + c / p;
                        int column = ch * p * p + r % p * p + c % p;
                        double v = x[((f * S + r) * S + c) * 3 + ch] / 255;
                        assert_near(y[patch * K + column], (v - mean[ch]) / std[ch], 1e-5);
                    }
        cgs_tape_destroy(b.t);
    }
}

static void test_layouts(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        float y[32];
        bench b;
        const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, w[] = {10, 20, 30, 40, 50, 60};

        start(&b, list[i]); /* x W^T + c: W is (out, in) */
        const float c[] = {100, 200, 300};
        finish(&b,
               cgs_linear(b.t, given(&b, CGS_F32, x, DIM(2, 2)), given(&b, CGS_F32, w, DIM(3, 2)),
                          given(&b, CGS_F32, c, DIM(3))),
               y);
        const float product[] = {150, 310, 470, 210, 450, 690};
        for (int k = 0; k < 6; k++) assert_near(y[k], product[k], 1e-3);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* two frames of two patches, one column */
        const float cls[] = {0.5f}, pos[] = {10, 20, 30};
        finish(&b,
               cgs_tokens(b.t, given(&b, CGS_F32, x, DIM(4, 1)), given(&b, CGS_F32, cls, DIM(1)),
                          given(&b, CGS_F32, pos, DIM(3, 1))),
               y);
        const float tokens[] = {10.5f, 21, 32, 10.5f, 23, 34};
        for (int k = 0; k < 6; k++) assert_near(y[k], tokens[k], 1e-6);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* rows 1.. of the conditions: shift column 1, scale column 0 */
        const float m[] = {9, 9, 1, 10, 2, 20, /* */ 9, 9, 3, 30, 4, 40};
        finish(&b,
               cgs_modulate(b.t, given(&b, CGS_F32, x, DIM(2, 2, 1)),
                            given(&b, CGS_F32, m, DIM(2, 3, 2)), 1, 0, 1),
               y);
        const float modulated[] = {12, 26, 42, 60};
        for (int k = 0; k < 4; k++) assert_near(y[k], modulated[k], 1e-5);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* ... and as gates, column 1 */
        finish(&b,
               cgs_gate_add(b.t, given(&b, CGS_F32, x, DIM(2, 2, 1)),
                            given(&b, CGS_F32, x + 4, DIM(2, 2, 1)),
                            given(&b, CGS_F32, m, DIM(2, 3, 2)), 1, 1),
               y);
        const float gated[] = {51, 122, 213, 324};
        for (int k = 0; k < 4; k++) assert_near(y[k], gated[k], 1e-4);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* (2,2,1) joined with (2,1,1), steps 1..2 of it, each twice */
        cgs_tensor *j =
            cgs_join(b.t, given(&b, CGS_F32, x, DIM(2, 2, 1)), given(&b, CGS_F32, w, DIM(2, 1, 1)));
        finish(&b, cgs_repeat(b.t, cgs_take(b.t, j, 1, 2), 2), y);
        const float moved[] = {2, 10, 2, 10, 4, 20, 4, 20};
        for (int k = 0; k < 8; k++) assert_near(y[k], moved[k], 0);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* three candidates for each of two goals */
        const float goals[] = {1, 10};
        finish(
            &b,
            cgs_sqdist(b.t, given(&b, CGS_F32, x, DIM(6, 1)), given(&b, CGS_F32, goals, DIM(2, 1))),
            y);
        const float squares[] = {0, 1, 4, 36, 25, 16};
        for (int k = 0; k < 6; k++) assert_near(y[k], squares[k], 1e-5);
        cgs_tape_destroy(b.t);
    }
}

static void test_functions(void **state) {
    (void)state;
    cgs_device *list[2];
    /* from tables of the normal distribution and of exp */
    static const float x[] = {-3, -1, 0, 0.5f, 1, 2};
    static const double gelu[] = {-0.00404969409, -0.158655254, 0,
                                  0.345731231,    0.841344746,  1.954499736};
    static const double silu[] = {-0.142277620, -0.268941421, 0,
                                  0.311229666,  0.731058579,  1.761594156};
    for (int i = 0; i < devices(list); i++)
        for (int kind = 0; kind < 3; kind++) {
            float y[6];
            bench b;
            start(&b, list[i]);
            finish(&b, cgs_activate(b.t, given(&b, CGS_F32, x, DIM(6)), (cgs_activation)kind), y);
            for (int k = 0; k < 6; k++)
                assert_near(y[k],
                            kind == CGS_GELU   ? gelu[k]
                            : kind == CGS_SILU ? silu[k]
                            : x[k] > 0         ? x[k]
                                               : 0,
                            1e-6);
            cgs_tape_destroy(b.t);
        }
}

static void test_layernorm_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        /* mean 3, variance 2 + eps 2: divided by 2.  A large offset must not hurt. */
        const float x[] = {1, 2, 3, 4, 5, 10001, 10002, 10003, 10004, 10005};
        const float w[] = {1, 1, 1, 1, 2}, c[] = {0, 0, 5, 0, 0};
        const float want[] = {-1, -0.5f, 5, 0.5f, 2};
        float y[10];
        bench b;
        start(&b, list[i]);
        finish(&b,
               cgs_layernorm(b.t, given(&b, CGS_F32, x, DIM(2, 5)), given(&b, CGS_F32, w, DIM(5)),
                             given(&b, CGS_F32, c, DIM(5)), 2),
               y);
        for (int k = 0; k < 10; k++) assert_near(y[k], want[k % 5], 1e-5);
        cgs_tape_destroy(b.t);

        start(&b, list[i]); /* one column is its own mean: only b is left */
        finish(&b,
               cgs_layernorm(b.t, given(&b, CGS_F32, x, DIM(5, 1)), given(&b, CGS_F32, w, DIM(1)),
                             given(&b, CGS_F32, c + 2, DIM(1)), 1e-12f),
               y);
        for (int k = 0; k < 5; k++) assert_near(y[k], 5, 0);
        cgs_tape_destroy(b.t);
    }
}

/* Equal scores make every visible token count the same: the mean of visible values.
 * v of token j is j + 1 in head 0 and 10 (j + 1) in head 1. */
static void test_attention_masks(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++)
        for (int block = 0; block <= 3; block++) { /* 0: not causal */
            enum { T = 7 };
            float x[T * 6], y[T * 2], lse[2 * T];
            for (int j = 0; j < T; j++) {
                float row[6] = {1, 2, 0, 0, (float)(j + 1), 10.0f * (float)(j + 1)};
                memcpy(x + j * 6, row, sizeof row);
            }
            for (int gradient = 0; gradient < 2; gradient++) {
                bench b;
                start(&b, list[i]);
                cgs_tensor *qkv = given(&b, CGS_F32, x, DIM(1, T, 6));
                if (gradient) cgs_require_grad(b.t, qkv);
                finish(&b, cgs_attention(b.t, qkv, 2, block > 0, block ? block : 1, 0, 0), y);
                OK(cgs_tensor_read(b.t, cgs_tape_record(b.t, 0)->saved[0], lse));
                for (int t = 0; t < T; t++) {
                    int seen = block ? (t / block + 1) * block : T;
                    if (seen > T) seen = T;
                    assert_near(y[t * 2], (seen + 1) / 2.0, 1e-5);
                    assert_near(y[t * 2 + 1], 10 * (seen + 1) / 2.0, 1e-4);
                    if (!gradient) continue; /* nobody needs it */
                    assert_near(lse[t], log(seen), 1e-6);
                    assert_near(lse[T + t], log(seen), 1e-6);
                }
                cgs_tape_destroy(b.t);
            }
        }
}

/* two tokens, one head of width 4: scores q.k / 2 */
static void test_attention_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        const float x[] = {1, 0, 0, 0, 2, 0, 0, 0, 1, 2, 3, 4, /* */
                           0, 2, 0, 0, 0, 3, 0, 0, 5, 6, 7, 8};
        float y[8];
        bench b;
        start(&b, list[i]);
        finish(&b, cgs_attention(b.t, given(&b, CGS_F32, x, DIM(1, 2, 12)), 1, false, 1, 0, 0), y);
        double p = 1 / (1 + exp(-1.0)), q = 1 / (1 + exp(3.0)); /* weight of token 0 */
        for (int k = 0; k < 4; k++) {
            assert_near(y[k], p * (k + 1) + (1 - p) * (k + 5), 1e-5);
            assert_near(y[4 + k], q * (k + 1) + (1 - q) * (k + 5), 1e-5);
        }
        cgs_tape_destroy(b.t);
    }
}

/* which elements are dropped is part of the contract: all backends draw the same */
static void test_dropout_draws(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        enum { N = 4001 };
        static float x[N], y[N];
        for (int k = 0; k < N; k++) x[k] = 1 + (float)k;
        bench b;
        start(&b, list[i]);
        cgs_tensor *out = cgs_dropout(b.t, given(&b, CGS_F32, x, DIM(N)), 0.25f, 7);
        cgs_tape_set_step(b.t, 11);
        finish(&b, out, y);
        int kept = 0;
        for (int k = 0; k < N; k++) {
            bool keep = cgs_to_f32(cgs_rng_at(CGS_DROPOUT_KEY(7, 11), (uint64_t)k)) >= 0.25f;
            assert_near(y[k], keep ? x[k] / 0.75 : 0, 1e-3);
            kept += keep;
        }
        assert_near(kept, 0.75 * N, 4 * sqrt(N * 0.75 * 0.25));
        cgs_tape_destroy(b.t);

        /* in attention: element ((b*heads + h)*T + i)*T + j; equal scores, v the identity
         * over tokens, so the result shows each factor */
        enum { B = 2, H = 2, T = 4 };
        float qkv[B * T * 3 * H * T] = {0}, shown[B * T * H * T];
        for (int n = 0; n < B; n++)
            for (int t = 0; t < T; t++)
                for (int h = 0; h < H; h++) qkv[((n * T + t) * 3 + 2) * H * T + h * T + t] = 1;
        start(&b, list[i]);
        out =
            cgs_attention(b.t, given(&b, CGS_F32, qkv, DIM(B, T, 3 * H * T)), H, false, 1, 0.5f, 7);
        cgs_tape_set_step(b.t, 11);
        finish(&b, out, shown);
        for (int n = 0; n < B; n++)
            for (int h = 0; h < H; h++)
                for (int t = 0; t < T; t++)
                    for (int s = 0; s < T; s++) {
                        uint64_t at = (uint64_t)(((n * H + h) * T + t) * T + s);
                        bool keep = cgs_to_f32(cgs_rng_at(CGS_DROPOUT_KEY(7, 11), at)) >= 0.5f;
                        assert_near(shown[((n * T + t) * H + h) * T + s], keep ? 0.5 : 0, 1e-6);
                    }
        cgs_tape_destroy(b.t);
    }
}

/* ---- losses ----------------------------------------------------------------------------- */

/* runs `record` on z (B,T,D): the scalar result, and its gradient if grad is given */
typedef cgs_tensor *(*record_fn)(cgs_tape *t, cgs_tensor *z, void *user);

static float scalar_of(cgs_device *d, record_fn record, void *user, const float *z, int B, int T,
                       int D, float *grad) {
    cgs_tape *t;
    float value;
    int dim[3] = {B, T, D};
    OK(cgs_tape_create(&t, d, CGS_F32));
    cgs_tensor *x = cgs_input(t, "z", CGS_F32, 3, dim);
    cgs_require_grad(t, x);
    cgs_tensor *loss = cgs_keep(record(t, x, user));
    OK(cgs_tape_finish(t, loss));
    OK(cgs_tensor_write(t, x, z));
    for (int i = 0; i < cgs_tape_records(t); i++) {
        /* constants that the recorder made: the reference and the mask */
        const cgs_record *r = cgs_tape_record(t, i);
        for (int k = 1; r->op == CGS_OP_cgs && k < 3; k++)
            if (r->in[k]) OK(cgs_tensor_write(t, r->in[k], ((float **)user)[k - 1]));
    }
    cgs_tape_forward(t);
    cgs_tape_backward(t);
    OK(cgs_tensor_read(t, loss, &value));
    if (grad) OK(cgs_tensor_read_grad(t, x, grad));
    cgs_tape_destroy(t);
    return value;
}

static cgs_tensor *record_sigreg(cgs_tape *t, cgs_tensor *z, void *user) {
    return cgs_sigreg(t, z, cgs_directions(t, *(int *)user, z->dim[2], 5));
}

static void test_sigreg_values(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        enum { B = 512, T = 2, D = 8 };
        static float z[B * T * D];
        int P = 64;
        memset(z, 0, sizeof z);
        assert_near(scalar_of(list[i], record_sigreg, &P, z, 128, T, D, NULL), 51.46, 5e-3);
        assert_near(scalar_of(list[i], record_sigreg, &P, z, 3, T, D, NULL) / 3, 0.402048, 2e-6);

        /* normal latents: the mean over draws is 1.05246 whatever B; the spread of one
         * value over directions that share samples is large, so average many draws */
        cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 9);
        double sum = 0, squares = 0;
        enum { DRAWS = 24 };
        for (int n = 0; n < DRAWS; n++) {
            for (int k = 0; k < B * T * D; k++) z[k] = (float)cgs_rng_normal(&r);
            double v = scalar_of(list[i], record_sigreg, &P, z, B, T, D, NULL);
            sum += v;
            squares += v * v;
        }
        double mean = sum / DRAWS, se = sqrt((squares / DRAWS - mean * mean) / (DRAWS - 1));
        print_message("%s: sigreg of normal latents %.4f +- %.4f\n", list[i]->ops->name, mean, se);
        assert_true(se < 0.05);
        assert_near(mean, 1.05246, 3.5 * se);
    }
}

static void test_directions(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        enum { P = 5, D = 7 };
        float a[P * D], b[P * D];
        cgs_tape *t;
        OK(cgs_tape_create(&t, list[i], CGS_F32));
        cgs_tensor *A = cgs_keep(cgs_directions(t, P, D, 5));
        OK(cgs_tape_finish(t, NULL));
        for (int step = 0; step < 2; step++) {
            cgs_tape_set_step(t, (uint64_t)step);
            cgs_tape_forward(t);
            OK(cgs_tensor_read(t, A, step ? b : a));
        }
        int moved = 0;
        for (int p = 0; p < P; p++) {
            double square = 0, want = 0;
            for (int d = 0; d < D; d++) {
                square += (double)a[p * D + d] * a[p * D + d];
                moved += a[p * D + d] != b[p * D + d];
                double v = cgs_rng_normal_at(CGS_DROPOUT_KEY(5, 0), (uint64_t)(p * D + d));
                want += v * v;
            }
            assert_near(square, 1, 1e-6);
            assert_near(a[p * D],
                        cgs_rng_normal_at(CGS_DROPOUT_KEY(5, 0), (uint64_t)(p * D)) / sqrt(want),
                        1e-6);
        }
        assert_int_equal(moved, P * D);
        cgs_tape_destroy(t);
    }
}

static cgs_tensor *record_straighten(cgs_tape *t, cgs_tensor *z, void *user) {
    (void)user;
    return cgs_straighten(t, z);
}

static void test_straighten_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        cgs_device *d = list[i];
        float g[12];
        const float line[] = {0, 0, 1, 2, 1.5f, 3, 4, 8}, back[] = {0, 1, 0};
        assert_near(scalar_of(d, record_straighten, NULL, line, 1, 4, 2, g), 0, 1e-6);
        for (int k = 0; k < 8; k++) assert_near(g[k], 0, 1e-6);
        assert_near(scalar_of(d, record_straighten, NULL, back, 1, 3, 1, NULL), 2, 1e-6);

        /* a right angle: the gradient turns the corner open.  D_0 = (2,0), D_1 = (0,4) */
        const float corner[] = {0, 0, 2, 0, 2, 4};
        const float want[] = {0, 0.5f, 0.25f, -0.5f, -0.25f, 0};
        assert_near(scalar_of(d, record_straighten, NULL, corner, 1, 3, 2, g), 1, 1e-6);
        for (int k = 0; k < 6; k++) assert_near(g[k], want[k], 1e-6);

        /* a zero step has no direction, no weight in the mean and no gradient */
        const float still[] = {1, 1, 1, 1, 2, 3};
        assert_near(scalar_of(d, record_straighten, NULL, still, 1, 3, 2, g), 0, 0);
        for (int k = 0; k < 6; k++) assert_near(g[k], 0, 0);
        const float half[] = {0, 0, 2, 0, 2, 4, /* */ 1, 1, 1, 1, 2, 3};
        assert_near(scalar_of(d, record_straighten, NULL, half, 2, 3, 2, g), 1, 1e-6);
        for (int k = 0; k < 6; k++) assert_near(g[k], want[k], 1e-6);
        for (int k = 6; k < 12; k++) assert_near(g[k], 0, 0);
    }
}

/* user: {references, mask or NULL}, then N and R travel beside them */
static int cgs_R;
static bool cgs_per_window;
static cgs_tensor *record_cgs(cgs_tape *t, cgs_tensor *z, void *user) {
    int N = z->dim[1] - 1, rd[3] = {z->dim[0], N, cgs_R}, md[2] = {z->dim[0], N};
    cgs_tensor *r = cgs_input(t, "r", CGS_F32, 3, rd);
    cgs_tensor *mask = ((float **)user)[1] ? cgs_input(t, "mask", CGS_F32, 2, md) : NULL;
    return cgs_match_geometry(t, z, r, mask, cgs_per_window);
}

static float cgs_of(cgs_device *d, const float *z, int B, int N, int D, float *r, int R,
                    float *mask, bool per_window, float *grad) {
    float *user[2] = {r, mask};
    cgs_R = R;
    cgs_per_window = per_window;
    return scalar_of(d, record_cgs, user, z, B, N + 1, D, grad);
}

static void test_cgs_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        cgs_device *d = list[i];
        float g[24];

        /* latent steps that are a rotated, scaled copy of the controls match them */
        const float turned[] = {0, 0, 0, 2, -6, 2, -10, 6};
        float controls[] = {1, 0, 0, 3, 2, 2};
        assert_near(cgs_of(d, turned, 1, 3, 2, controls, 2, NULL, false, g), 0, 1e-6);
        for (int k = 0; k < 8; k++) assert_near(g[k], 0, 1e-6);

        /* a straight path under controls that reverse: E = 1 - (-1) for both orders */
        const float line[] = {0, 0, 1, 2, 2, 4};
        float reverse[] = {1, -2};
        assert_near(cgs_of(d, line, 1, 2, 2, reverse, 1, NULL, false, g), 4, 1e-6);
        for (int k = 0; k < 6; k++) assert_near(g[k], 0, 1e-5); /* an extremum */

        /* a right angle under parallel controls: E = -1, gradient 4/Q E v_s / |D_t| */
        const float corner[] = {0, 0, 2, 0, 2, 4};
        float along[] = {1, 5};
        const float want[] = {0, 1, 0.5f, -1, -0.5f, 0};
        assert_near(cgs_of(d, corner, 1, 2, 2, along, 1, NULL, false, g), 1, 1e-6);
        for (int k = 0; k < 6; k++) assert_near(g[k], want[k], 1e-6);

        /* nothing usable: loss 0, no gradient */
        float none[] = {1, 0};
        assert_near(cgs_of(d, corner, 1, 2, 2, along, 1, none, false, g), 0, 0);
        for (int k = 0; k < 6; k++) assert_near(g[k], 0, 0);
        assert_near(cgs_of(d, corner, 1, 2, 2, along, 1, none, true, g), 0, 0);
        for (int k = 0; k < 6; k++) assert_near(g[k], 0, 0);

        /* a zero control and a zero latent step count as masked */
        float idle[] = {0, 5};
        const float still[] = {1, 1, 1, 1, 2, 3};
        assert_near(cgs_of(d, corner, 1, 2, 2, idle, 1, NULL, false, g), 0, 0);
        assert_near(cgs_of(d, still, 1, 2, 2, along, 1, NULL, false, g), 0, 0);
        for (int k = 0; k < 6; k++) assert_near(g[k], 0, 0);

        /* window 1: three steps, errors 1 1 4 -> six ordered pairs, sum 12
         * window 2: only steps 0 and 1 usable, error 0 -> two pairs
         * pooled 12/8, per window (2 + 0)/2 */
        const float two[] = {0, 0, 1, 0, 1, 1, 2, 1, /* */ 0, 0, 1, 0, 2, 0, 2, 1};
        float r[] = {1, 1, -1, /* */ 1, 1, 1}, mask[] = {1, 1, 1, 1, 1, 0};
        assert_near(cgs_of(d, two, 2, 3, 2, r, 1, mask, false, NULL), 12.0 / 8, 1e-6);
        assert_near(cgs_of(d, two, 2, 3, 2, r, 1, mask, true, NULL), 1, 1e-6);
    }
}

static void test_batchnorm_running(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        cgs_device *d = list[i];
        cgs_tape *t;
        const float x[] = {1, 10, 2, 10, 6, 13}, one[] = {1, 1}, zero[] = {0, 0};
        const float mean0[] = {0, 1}, var0[] = {1, 2};
        float mean[2], var[2], y[6];
        int dim[2] = {3, 2};
        OK(cgs_tape_create(&t, d, CGS_F32));
        cgs_tensor *in[5];
        const char *names[] = {"x", "w", "b", "mean", "var"};
        for (int k = 0; k < 5; k++)
            in[k] = cgs_input(t, names[k], CGS_F32, k ? 1 : 2, k ? dim + 1 : dim);
        cgs_tensor *out = cgs_keep(cgs_batchnorm(t, in[0], in[1], in[2], in[3], in[4], true));
        OK(cgs_tape_finish(t, NULL));
        const float *values[] = {x, one, zero, mean0, var0};
        for (int k = 0; k < 5; k++) OK(cgs_tensor_write(t, in[k], values[k]));
        cgs_tape_forward(t);
        OK(cgs_tensor_read(t, in[3], mean));
        OK(cgs_tensor_read(t, in[4], var));
        OK(cgs_tensor_read(t, out, y));
        /* column 0: mean 3, biased variance 14/3, unbiased 7; column 1: 11, 2, 3 */
        assert_near(mean[0], 0.3, 1e-6);
        assert_near(mean[1], 0.9 + 1.1, 1e-6);
        assert_near(var[0], 0.9 + 0.7, 1e-6);
        assert_near(var[1], 1.8 + 0.3, 1e-6);
        assert_near(y[0], -2 / sqrt(14.0 / 3 + 1e-5), 1e-5);
        assert_near(y[5], 2 / sqrt(2 + 1e-5), 1e-5);
        cgs_tape_destroy(t);
    }
}

/* Three updates of one number, worked by hand with lr 0.1, betas 0.9 and 0.99, decay 0.5,
 * eps 0: with gradients 1, 1, 1 both corrected moments are 1, so each update is
 * p <- p (1 - 0.05) - 0.1.  From 2: 1.8, 1.61, 1.4295.  With gradients 3, -1, 0:
 *   m: 0.3, 0.17, 0.153              corrected by 0.1, 0.19, 0.271
 *   v: 0.09, 0.0991, 0.098109        corrected by 0.01, 0.0199, 0.029701
 *   step: 3/3, 0.894736842/2.231563, 0.564575646/1.817472 */
static void test_adamw_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        const cgs_backend *ops = list[i]->ops;
        enum { N = 19 }; /* more than a vector register, and a tail */
        float p[N], g[N], m[N], v[N];
        uint16_t half[N];
        void *dev[5];
        for (int k = 0; k < 5; k++) OK(ops->alloc(list[i], &dev[k], sizeof p));
        for (int k = 0; k < N; k++) p[k] = 2;
        OK(ops->upload(list[i], dev[0], p, sizeof p));
        const double grads[3] = {3, -1, 0};
        double a = 2, b = 2;
        const double steps[3] = {1, (0.17 / 0.19) / sqrt(0.0991 / 0.0199),
                                 (0.153 / 0.271) / sqrt(0.098109 / 0.029701)};
        assert_near(steps[1], 0.400946, 1e-6);
        assert_near(steps[2], 0.310638, 1e-6);
        for (int s = 0; s < 3; s++) {
            /* gradients arrive four times too large and are clipped by 1/4 */
            for (int k = 0; k < N; k++) g[k] = 4 * (k % 2 ? (float)grads[s] : 1);
            OK(ops->upload(list[i], dev[1], g, sizeof g));
            cgs_adamw w = {0.1f, 0.9f, 0.99f, 0, 0.5f, 0.25f, (uint64_t)s + 1};
            ops->adamw(list[i], &w, dev[0], dev[1], dev[2], dev[3], dev[4], N);
            OK(ops->sync(list[i]));
            OK(ops->download(list[i], p, dev[0], sizeof p));
            a = a * 0.95 - 0.1;
            b = b * 0.95 - 0.1 * steps[s];
            for (int k = 0; k < N; k++) assert_near(p[k], k % 2 ? b : a, 2e-6);
        }
        assert_near(a, 1.4295, 1e-9);
        OK(ops->download(list[i], m, dev[2], sizeof m));
        OK(ops->download(list[i], v, dev[3], sizeof v));
        OK(ops->download(list[i], half, dev[4], sizeof half));
        for (int k = 0; k < N; k++) {
            assert_near(m[k], k % 2 ? 0.153 : 0.271, 1e-6);
            assert_near(v[k], k % 2 ? 0.098109 : 0.029701, 1e-7);
            assert_int_equal(half[k], cgs_f32_to_bf16(p[k]));
        }
        for (int k = 0; k < 5; k++) ops->release(list[i], dev[k]);
    }
}

/* what Muon makes of a singular value x of a matrix of norm 1 */
static double equalised(double x) {
    for (int s = 0; s < CGS_MUON_STEPS; s++)
        x = x * ((double)CGS_MUON_A + x * x * ((double)CGS_MUON_B + x * x * (double)CGS_MUON_C));
    return x;
}

/* One step for three matrices with known singular vectors: (2,2) with gradient diag(3, -4), (2,3)
 * with a second row of 0, and (3,2), the other way round.  From momentum 0 the direction is the
 * gradient's, of norm 1: 0.6 and -0.8; 1 and 0.  Rate 0.5, decay 0.1, parameters 2. */
static void test_muon_by_hand(void **state) {
    (void)state;
    cgs_device *list[2];
    enum { N = 160 };
    const cgs_matrix matrices[3] = {{0, 0, 2, 2}, {64, 16, 2, 3}, {128, 64, 3, 2}};
    const double size = 0.5 * (double)CGS_MUON_SIZE;
    for (int i = 0; i < devices(list); i++) {
        const cgs_backend *ops = list[i]->ops;
        float p[N], g[N] = {0}, m[N] = {0}, want[N];
        uint16_t half[N];
        void *dev[6];
        g[0] = 3;
        g[3] = -4;
        g[64] = g[65] = g[66] = 7;
        g[128] = g[130] = g[132] = 7;
        for (int k = 0; k < N; k++) p[k] = 2;
        for (int k = 0; k < N; k++) want[k] = 2;
        for (int k = 0; k < 4; k++) want[k] = 1.9f;
        for (int k = 0; k < 6; k++) want[64 + k] = want[128 + k] = 1.9f;
        want[0] -= (float)(size * sqrt(2) * equalised(0.6));
        want[3] += (float)(size * sqrt(2) * equalised(0.8));
        for (int k = 0; k < 3; k++) {
            double each = size * sqrt(3) * equalised(1) / sqrt(3);
            want[64 + k] -= (float)each;
            want[128 + 2 * k] -= (float)each;
        }
        const void *from[4] = {p, g, m, matrices};
        const size_t bytes[6] = {sizeof p,        sizeof g,    sizeof m,
                                 sizeof matrices, sizeof half, 256 * sizeof *p};
        for (int k = 0; k < 6; k++) {
            OK(ops->alloc(list[i], &dev[k], bytes[k]));
            if (k < 4) OK(ops->upload(list[i], dev[k], from[k], bytes[k]));
        }
        cgs_muon how = {.lr = 0.5f, .beta = 0.9f, .weight_decay = 0.1f, .clip_scale = 0.5f};
        ops->muon(list[i], &how, dev[3], 3, dev[0], dev[1], dev[2], dev[4], dev[5]);
        OK(ops->sync(list[i]));
        OK(ops->download(list[i], p, dev[0], sizeof p));
        OK(ops->download(list[i], m, dev[2], sizeof m));
        OK(ops->download(list[i], half, dev[4], sizeof half));
        for (int k = 0; k < N; k++) assert_near(p[k], want[k], 1e-5);
        for (int k = 0; k < N; k++) assert_near(m[k], 0.1 * 0.5 * g[k], 1e-6);
        for (int k = 64; k < 70; k++) assert_int_equal(half[k], cgs_f32_to_bf16(p[k]));
        for (int k = 0; k < 6; k++) ops->release(list[i], dev[k]);
    }
}

static void test_bf16_rounding(void **state) {
    (void)state;
    cgs_device *list[2];
    /* ties go to even; just beside a tie does not; NaN stays NaN, infinity infinity */
    static const struct {
        uint32_t f;
        uint16_t h;
    } rows[] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
                {0x3f817fff, 0x3f81}, {0xbf818000, 0xbf82}, {0x00000000, 0x0000},
                {0x80000000, 0x8000}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
                {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x00008000, 0x0000},
                {0x00018000, 0x0002}, {0x3f800000, 0x3f80}};
    enum { N = sizeof rows / sizeof rows[0] };
    for (int i = 0; i < devices(list); i++) {
        const cgs_backend *ops = list[i]->ops;
        float from[N];
        uint16_t to[N];
        void *a, *b;
        for (int k = 0; k < N; k++) memcpy(&from[k], &rows[k].f, 4);
        OK(ops->alloc(list[i], &a, sizeof from));
        OK(ops->alloc(list[i], &b, sizeof to));
        OK(ops->upload(list[i], a, from, sizeof from));
        ops->round_bf16(list[i], b, a, N);
        OK(ops->sync(list[i]));
        OK(ops->download(list[i], to, b, sizeof to));
        for (int k = 0; k < N; k++) assert_int_equal(to[k], rows[k].h);
        ops->release(list[i], a);
        ops->release(list[i], b);
    }
}

static void test_sum_squares(void **state) {
    (void)state;
    cgs_device *list[2];
    for (int i = 0; i < devices(list); i++) {
        enum { N = 100003 };
        static float x[N];
        void *p;
        x[0] = 1000; /* 10^6, beside which each of the others would vanish in an f32 sum */
        for (int k = 1; k < N; k++) x[k] = 0.125f;
        OK(list[i]->ops->alloc(list[i], &p, sizeof x));
        OK(list[i]->ops->upload(list[i], p, x, sizeof x));
        double want = 1e6 + (N - 1) / 64.0;
        assert_near(list[i]->ops->sum_squares(list[i], p, N), want, 1e-9 * want);
        assert_near(list[i]->ops->sum_squares(list[i], p, 0), 0, 0);
        list[i]->ops->release(list[i], p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_order),     cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_functions),       cmocka_unit_test(test_layernorm_by_hand),
        cmocka_unit_test(test_attention_masks), cmocka_unit_test(test_attention_by_hand),
        cmocka_unit_test(test_dropout_draws),   cmocka_unit_test(test_sigreg_values),
        cmocka_unit_test(test_directions),      cmocka_unit_test(test_straighten_by_hand),
        cmocka_unit_test(test_cgs_by_hand),     cmocka_unit_test(test_batchnorm_running),
        cmocka_unit_test(test_adamw_by_hand),   cmocka_unit_test(test_bf16_rounding),
        cmocka_unit_test(test_sum_squares),     cmocka_unit_test(test_muon_by_hand),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
