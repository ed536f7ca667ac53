/* golden_lewm.c - LeWM against published-code numbers: evaluation, rollout, training mode,
 * every loss and gradient norm, on one backend in one precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "expect.h"
#include "golden.h"
#include "golden_judge.h"
#include "model/lewm.h"

enum { B = 4, T = 4, N = 3, D = 192, S = 224, DA = 10, H = 5, P = 1024 };

#define NEAR_SLICE(k, what, got, ...)                                                              \
    do {                                                                                           \
        const double want_[] = {__VA_ARGS__};                                                      \
        golden_slice(k, what, got, want_, (int)(sizeof want_ / sizeof want_[0]), 0);               \
    } while (0)

static double frobenius(const float *x, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * x[i];
    return sqrt(s);
}

static const float *values(cgs_tape *t, const cgs_tensor *x) {
    static float buffer[B * T * D];
    assert_true(cgs_numel(x) <= B * T * D);
    OK(cgs_tensor_read(t, x, buffer));
    return buffer;
}

static const float *gradient(cgs_tape *t, const cgs_tensor *x) {
    static float buffer[B * T * D];
    assert_true(cgs_numel(x) <= B * T * D);
    OK(cgs_tensor_read_grad(t, x, buffer));
    return buffer;
}

static void fill_frames(cgs_tape *t, cgs_tensor *frames, size_t first) {
    size_t n = cgs_numel(frames);
    unsigned char *bytes = malloc(n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(golden_bits("pixels", (uint32_t)(first + i)) >> 24);
    cgs_device *d = cgs_tape_device(t);
    OK(d->ops->upload(d, frames->data, bytes, n));
    free(bytes);
}

static void fill_units(cgs_tape *t, cgs_tensor *x, const char *name, double scale) {
    size_t n = cgs_numel(x);
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = (float)(scale * golden_unit(name, (uint32_t)i));
    OK(cgs_tensor_write(t, x, v));
    free(v);
}

#define DIM(...) ((const int[]){__VA_ARGS__})

static void evaluation_and_rollout(cgs_device *d, cgs_lewm *m, const golden_mode *k) {
    cgs_tape *t;
    OK(cgs_tape_create(&t, d, k->act));
    cgs_tape_freeze_parameters(t);
    cgs_tensor *frames = cgs_input(t, "frames", CGS_U8, 4, DIM(B * T, S, S, 3));
    cgs_tensor *actions = cgs_input(t, "actions", CGS_F32, 3, DIM(B, T, DA));
    cgs_tensor *plan = cgs_input(t, "plan", CGS_F32, 3, DIM(2, H, DA));
    cgs_tensor *z = cgs_keep(cgs_lewm_encode(t, m, frames, false)), *c;
    cgs_conditioning condition = cgs_lewm_condition(t, m, actions, &c);
    cgs_keep(c);
    cgs_tensor *window = cgs_reshape(t, z, 3, DIM(B, T, D));
    cgs_tensor *zhat =
        cgs_keep(cgs_lewm_predict(t, m, cgs_take(t, window, 0, N), &condition, 0, false, false));

    cgs_tensor *all = cgs_reshape(t, z, 3, DIM(1, B * T, D));
    cgs_tensor *start = cgs_repeat(t, cgs_take(t, all, 0, 1), 2);
    cgs_tensor *goal = cgs_reshape(t, cgs_take(t, all, B * T - 1, 1), 2, DIM(1, D));
    cgs_tensor *ahead[H];
    cgs_lewm_rollout(t, m, start, plan, ahead, H);
    for (int i = 0; i < H; i++) cgs_keep(ahead[i]);
    cgs_tensor *cost = cgs_keep(cgs_sqdist(t, cgs_reshape(t, ahead[H - 1], 2, DIM(2, D)), goal));
    OK(cgs_tape_finish(t, NULL));

    fill_frames(t, frames, 0);
    fill_units(t, actions, "action", 1.5);
    fill_units(t, plan, "plan", 1);
    cgs_tape_forward(t);

    const float *v = values(t, z);
    golden_tensor(k, GOLDEN_Z, v, B * T * D);
    NEAR_SLICE(k, "z[0,0]", v, 0.8675792, -0.3875259, 0.6000574, -0.7020185, -0.8191579, 0.3552952);
    NEAR_SLICE(k, "z[3,3]", v + 15 * D, 1.227361, -0.256037, 0.673518, -0.6837731, -0.4786695,
               0.4933824);
    golden_number(k, "|z|", frobenius(v, B * T * D), 32.13881);
    v = values(t, c);
    NEAR_SLICE(k, "c[0,0]", v, 0.3369855, 0.3515934, -0.2109503, 0.6656886, -0.5148461, -0.304191);
    golden_number(k, "|c|", frobenius(v, B * T * D), 24.2527);
    v = values(t, zhat);
    golden_tensor(k, GOLDEN_ZHAT, v, B * N * D);
    NEAR_SLICE(k, "zhat[0,0]", v, -0.1941888, 0.9941367, 0.9795848, 0.1944474, 0.4576641,
               -0.1430893);
    NEAR_SLICE(k, "zhat[0,2]", v + 2 * D, 0.5873489, 0.8907513, 1.28221, -0.06423506, -0.4808828,
               0.6982513);
    golden_number(k, "|zhat|", frobenius(v, B * N * D), 31.76074);

    NEAR_SLICE(k, "frame 1", values(t, ahead[0]), -0.2138779, 0.649459, 0.4981108, 0.125279,
               0.5438031, -0.3988502);
    v = values(t, ahead[2]);
    golden_tensor(k, GOLDEN_FRAME_3, v, 2 * D);
    NEAR_SLICE(k, "frame 3", v, 0.3435, -0.10343, -0.3563824, 0.7891972, 0.3573033, -0.1007991);
    NEAR_SLICE(k, "frame 4", values(t, ahead[3]), -0.2264589, 0.4437436, 0.9837885, -0.5648654,
               -1.105898, 0.5587176);
    v = values(t, ahead[4]);
    golden_tensor(k, GOLDEN_FRAME_5, v, 2 * D);
    NEAR_SLICE(k, "frame 5", v, -0.5039747, 0.6438051, -0.2100393, -0.07215578, 0.2194378,
               -0.1682307);
    NEAR_SLICE(k, "frame 5, second candidate", v + D, -0.5895618, 0.3744891, 0.5923596, 0.9995298,
               -0.07098647, 0.2377447);
    v = values(t, cost);
    golden_number(k, "cost", v[0], 137.4169);
    golden_number(k, "cost of the second candidate", v[1], 142.4164);
    cgs_tape_destroy(t);
}

typedef struct tensor_norm {
    const char *name;
    double norm;
} tensor_norm;

static const tensor_norm gradient_norms[] = {
    {"encoder.embeddings.cls_token", 0.100647},
    {"encoder.embeddings.position_embeddings", 0.1058505},
    {"encoder.embeddings.patch_embeddings.projection.weight", 1.443959},
    {"encoder.encoder.layer.0.attention.attention.query.weight", 0.409535},
    {"encoder.encoder.layer.11.output.dense.weight", 0.2679891},
    {"encoder.layernorm.weight", 0.04326044},
    {"predictor.pos_embedding", 0.03421198},
    {"predictor.transformer.layers.0.attn.to_qkv.weight", 0.109969},
    {"predictor.transformer.layers.0.adaLN_modulation.1.weight", 0.139943},
    {"predictor.transformer.layers.5.mlp.net.4.weight", 0.1913058},
    {"action_encoder.patch_embed.weight", 0.07306037},
    {"action_encoder.embed.2.bias", 0.0430052},
    {"projector.net.0.weight", 0.5555795},
    {"projector.net.1.weight", 0.05072351},
    {"pred_proj.net.3.weight", 1.16918},
};

static double param_grad_norm(cgs_lewm *m, const char *name) {
    const cgs_param *e = cgs_params_find(&m->params, name);
    assert_non_null(e);
    float *g = malloc(e->count * sizeof *g);
    OK(cgs_param_read_grad(&m->params, e, g));
    double norm = frobenius(g, e->count);
    free(g);
    return norm;
}

/* the four terms of the objective, from latents z (B, T, D) on */
typedef struct objective {
    cgs_tensor *actions, *directions, *weights, *zhat, *terms[4], *total;
} objective;

static void build_objective(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, objective *o) {
    o->actions = cgs_input(t, "actions", CGS_F32, 3, DIM(B, T, DA));
    o->directions = cgs_input(t, "directions", CGS_F32, 2, DIM(P, D));
    o->weights = cgs_input(t, "weights", CGS_F32, 1, DIM(4));
    cgs_conditioning condition = cgs_lewm_condition(t, m, o->actions, NULL);
    o->zhat = cgs_keep(cgs_lewm_predict(t, m, cgs_take(t, z, 0, N), &condition, 0, false, true));
    cgs_tensor *reference = cgs_take(t, o->actions, 0, N);
    o->terms[0] = cgs_mse(t, o->zhat, cgs_take(t, z, 1, N));
    o->terms[1] = cgs_sigreg(t, z, o->directions);
    o->terms[2] = cgs_straighten(t, z);
    o->terms[3] = cgs_match_geometry(t, z, reference, NULL, false);
    for (int i = 0; i < 4; i++) cgs_keep(o->terms[i]);
    o->total = cgs_keep(cgs_weighted_sum(t, o->weights, o->terms, 4));
    OK(cgs_tape_finish(t, o->total));

    fill_units(t, o->actions, "action", 1.5);
    /* stored as (D, P) with unit columns in the golden run; we keep one direction per row */
    float *a = malloc(sizeof *a * P * D);
    for (int p = 0; p < P; p++) {
        double norm = 0;
        for (int j = 0; j < D; j++) {
            double u = golden_unit("sigreg", (uint32_t)(j * P + p));
            a[p * D + j] = (float)u;
            norm += u * u;
        }
        for (int j = 0; j < D; j++) a[p * D + j] = (float)(a[p * D + j] / sqrt(norm));
    }
    OK(cgs_tensor_write(t, o->directions, a));
    free(a);
}

/* each term alone: its value and its gradient with respect to z, through all paths */
static void separate_losses(cgs_device *d, cgs_lewm *m, const golden_mode *k,
                            const float *latents) {
    cgs_tape *t;
    objective o;
    OK(cgs_tape_create(&t, d, k->act));
    cgs_tensor *z = cgs_input(t, "z", CGS_F32, 3, DIM(B, T, D));
    cgs_require_grad(t, z);
    build_objective(t, m, z, &o);
    OK(cgs_tensor_write(t, z, latents));

    static const double loss[4] = {0.7954765, 1.133717, 1.531119, 0.2857303};
    static const double dz_norm[4] = {0.05278425, 0.05567117, 0.04193256, 0.03400669};
    static const double dz[4][4] = {{0.00183556, -0.0007811314, -0.0001865764, -0.001246558},
                                    {0.0003168615, -0.0004838301, 0.001165191, -0.0003556836},
                                    {-0.0002462445, -2.656139e-05, 0.0009062874, -0.001761545},
                                    {-0.0001208859, -3.299708e-05, 0.0006362302, -0.001274857}};
    static const char *const name[4] = {"L_pred", "L_SIGReg", "L_TS", "L_CGS"};
    static const char *const slice[4] = {"gradient [0,1] of L_pred", "gradient [0,1] of L_SIGReg",
                                         "gradient [0,1] of L_TS", "gradient [0,1] of L_CGS"};
    for (int i = 0; i < 4; i++) {
        float w[4] = {0};
        w[i] = 1;
        OK(cgs_tensor_write(t, o.weights, w));
        cgs_tape_forward(t);
        cgs_tape_backward(t);
        golden_number(k, name[i], values(t, o.terms[i])[0], loss[i]);
        const float *g = gradient(t, z);
        golden_number(k, "norm of its gradient", frobenius(g, B * T * D), dz_norm[i]);
        golden_tensor(k, GOLDEN_GRADIENT + i, g, B * T * D);
        double typical = dz_norm[i] * sqrt(4.0 / (B * T * D));
        golden_slice(k, slice[i], g + D, dz[i], 4, typical);
    }
    cgs_tape_destroy(t);
}

static void training(cgs_device *d, cgs_lewm *m, const golden_mode *k) {
    cgs_tape *t;
    objective o;
    OK(cgs_tape_create(&t, d, k->act));
    cgs_tensor *frames = cgs_input(t, "frames", CGS_U8, 4, DIM(B * T, S, S, 3));
    cgs_tensor *rows = cgs_keep(cgs_lewm_encode(t, m, frames, true));
    build_objective(t, m, cgs_reshape(t, rows, 3, DIM(B, T, D)), &o);
    fill_frames(t, frames, 0);
    const float w[4] = {1, 0.09f, 0, 0.5f};
    OK(cgs_tensor_write(t, o.weights, w));
    cgs_tape_forward(t);
    cgs_tape_backward(t);

    const float *v = values(t, rows);
    golden_tensor(k, GOLDEN_TRAINING_Z, v, B * T * D);
    NEAR_SLICE(k, "training z[0,0]", v, -0.5174505, -0.7603529, 0.306744, 0.3972739, -0.8485118,
               0.8860362);
    v = values(t, o.zhat);
    golden_tensor(k, GOLDEN_TRAINING_ZHAT, v, B * N * D);
    NEAR_SLICE(k, "training zhat[0,2]", v + 2 * D, -0.6594337, 0.01458191, -0.09725028, -0.4205534,
               -0.8009735, 1.04331);
    golden_number(k, "total", values(t, o.total)[0], 1.040376);
    double squares = d->ops->sum_squares(d, m->params.grads, m->params.trainable);
    golden_number(k, "global gradient norm", sqrt(squares), 3.854634);
    for (size_t i = 0; i < sizeof gradient_norms / sizeof gradient_norms[0]; i++)
        golden_number(k, gradient_norms[i].name, param_grad_norm(m, gradient_norms[i].name),
                      gradient_norms[i].norm);
    /* batch norm removes any shift of its input, so these gradients are rounding noise */
    static const char *const silent[] = {"projector.net.0.bias", "pred_proj.net.0.bias",
                                         "encoder.layernorm.bias",
                                         "predictor.transformer.norm.bias"};
    for (int i = 0; i < 4; i++) assert_true(param_grad_norm(m, silent[i]) < 3.85 * k->tolerance);

    float stat[2048];
    OK(cgs_param_read(&m->params, cgs_params_find(&m->params, "projector.net.1.running_mean"),
                      stat));
    NEAR_SLICE(k, "running mean", stat, 0.1292723, -0.1356559, -0.113999, 0.006939555);
    OK(cgs_param_read(&m->params, cgs_params_find(&m->params, "projector.net.1.running_var"),
                      stat));
    NEAR_SLICE(k, "running var", stat, 0.8724307, 1.162122, 0.9223237, 0.8591912);

    static float latents[B * T * D];
    OK(cgs_tensor_read(t, rows, latents));
    cgs_tape_destroy(t);
    separate_losses(d, m, k, latents);
}

void golden_check(const char *backend, cgs_dtype act, int class_bits, double tolerance) {
    if (act == CGS_BF16 && !golden_has_tensors()) golden_check("cpu", CGS_F32, 16, 1e-4);
    const golden_mode only = {backend, act, class_bits, tolerance}, *k = &only;
    cgs_device d;
    cgs_lewm_config c;
    cgs_lewm *m;
    OK(cgs_device_open(&d, backend, 0));
    OK(cgs_lewm_preset(&c, "paper"));
    c.dropout = 0;
    c.class_bits = class_bits;
    OK(cgs_lewm_create(&m, &c, &d, true));
    assert_int_equal(cgs_params_learnable(&m->params), 18034478);
    OK(golden_fill_params(&m->params));
    evaluation_and_rollout(&d, m, k);
    training(&d, m, k);
    golden_report(k);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}
