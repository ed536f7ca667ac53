/* golden_dino.c - backbone, heads and predictor of DINO-WM against numbers of the published code,
 * on one backend in one precision.  Errors are relative, of the leading entries of a vector. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "expect.h"
#include "golden.h"
#include "model/dinowm.h"

enum { S = 224, R = 196, P = 196, D = 384, W = 28 };

#define DIM(...) ((const int[]){__VA_ARGS__})

static double worst;

static void near(const char *what, const float *got, const double *want, int n, double tol) {
    double diff = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        diff += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    double error = sqrt(diff / norm);
    if (error > worst) worst = error;
    if (error <= tol) return;
    for (int i = 0; i < n; i++) print_message("  [%d] %.9g, want %.9g\n", i, got[i], want[i]);
    fail_msg("%s: relative error %.3g, at most %.3g is allowed", what, error, tol);
}
#define NEAR(what, got, tol, ...)                                                                  \
    do {                                                                                           \
        const double want_[] = {__VA_ARGS__};                                                      \
        near(what, got, want_, (int)(sizeof want_ / 8), (tol));                                    \
    } while (0)

static float *values(cgs_tape *t, const cgs_tensor *x) {
    float *v = malloc(cgs_numel(x) * sizeof *v);
    OK(cgs_tensor_read(t, x, v));
    return v;
}

/* both rules, from the table as it is filled */
static void positions(const cgs_params *p, double tol) {
    const cgs_param *e = cgs_params_find(p, "pos_embed");
    float *table = malloc(e->count * sizeof *table), *out = malloc((P + 1) * D * sizeof *out);
    OK(cgs_param_read(p, e, table));
    cgs_interpolate_positions(table, 37, 14, D, true, out);
    NEAR("position 0, hub", out + D, tol, 0.05564805, 0.05077983, -0.385105, -0.2033459);
    NEAR("position 195, hub", out + 196 * D, tol, -0.4762144, 0.3390061, -0.4676187, 0.2605834);
    cgs_interpolate_positions(table, 37, 14, D, false, out);
    NEAR("position 0, HuggingFace", out + D, tol, 0.06099009, 0.05091939, -0.3932195, -0.1988067);
    assert_memory_equal(out, table, D * sizeof *out);
    free(table);
    free(out);
}

static void features(cgs_device *d, cgs_dinowm *m, cgs_dtype act, double tol) {
    cgs_tape *t;
    OK(cgs_tape_create(&t, d, act));
    cgs_tape_freeze_parameters(t);
    const float half[3] = {0.5f, 0.5f, 0.5f};
    cgs_tensor *frames = cgs_input(t, "frames", CGS_U8, 4, DIM(1, S, S, 3));
    cgs_tensor *patches = cgs_keep(cgs_patchify_resized(t, frames, R, 14, half, half));
    cgs_tensor *tokens = cgs_keep(cgs_backbone_tokens(t, m->backbone, frames, false));
    cgs_tensor *visual = cgs_keep(cgs_dinowm_project(t, m, cgs_take(t, tokens, 1, P)));
    cgs_tensor *all = cgs_keep(cgs_dinowm_aggregate(t, m, visual));
    OK(cgs_tape_finish(t, NULL));
    unsigned char *bytes = malloc(S * S * 3);
    for (uint32_t i = 0; i < S * S * 3; i++)
        bytes[i] = (unsigned char)(golden_bits("dino_pixels", i) >> 24);
    OK(d->ops->upload(d, frames->data, bytes, S * S * 3));
    free(bytes);
    cgs_tape_forward(t);

    float *v = values(t, patches);
    NEAR("resized, first row", v, tol, -0.2764706, 0.2100944, -0.4360203, -0.1013072);
    NEAR("resized, last row", v + (size_t)P * 588 - 4, tol, -0.5150327, -0.7819172, -0.418228,
         -0.09978214);
    free(v);
    v = values(t, tokens);
    NEAR("CLS", v, tol, 0.800807, -0.4570131, -1.638375, -0.9379839, -0.6825766, 0.7898433);
    NEAR("patch 0", v + D, tol, 0.7767255, -0.3592172, 0.664249, -0.7214922, -1.243486, 0.485521);
    NEAR("patch 195", v + 196 * D, tol, 0.4787304, 0.2629568, -0.9586741, -0.819819, -1.543156,
         -0.05873337);
    free(v);
    v = values(t, visual);
    NEAR("projected token 0", v, tol, 0.02553845, 1.241872, -1.971626, 0.02317015, -0.8887975,
         0.8274712, -0.153116, 0.8452737);
    NEAR("projected token 195", v + 195 * 8, tol, -0.2110124, 0.02630911, -1.192955, -1.331234,
         1.928149, 1.001363, 0.06829443, -0.09183856);
    free(v);
    v = values(t, all);
    NEAR("aggregation", v, tol, 0.9551271, 1.39533, 1.8931, 0.366169, 0.6439727, 0.6962692);
    free(v);
    cgs_tape_destroy(t);
}

/* frames: how many of the three are given */
static void predictor(cgs_device *d, cgs_dinowm *m, cgs_dtype act, double tol, int frames) {
    cgs_tape *t;
    OK(cgs_tape_create(&t, d, act));
    cgs_tape_freeze_parameters(t);
    cgs_tensor *x = cgs_input(t, "tokens", CGS_F32, 3, DIM(1, frames * P, W));
    cgs_tensor *y = cgs_keep(cgs_dinowm_predict(t, m, x, false, false));
    OK(cgs_tape_finish(t, NULL));
    float *in = malloc(cgs_numel(x) * sizeof *in);
    for (uint32_t i = 0; i < cgs_numel(x); i++) in[i] = (float)golden_unit("tokens", i);
    OK(cgs_tensor_write(t, x, in));
    free(in);
    cgs_tape_forward(t);
    float *v = values(t, y);
    NEAR("predicted token 0", v, tol, 0.1616341, -1.30448, -1.164677, 1.130597, 1.091118, 1.198574);
    if (frames == 3)
        NEAR("predicted token 587", v + 587 * W, tol, 0.7381367, -1.455491, 0.07707765, 0.3130296,
             0.2289119, 1.021483);
    free(v);
    cgs_tape_destroy(t);
}

void golden_dino_check(const char *backend, cgs_dtype act, double tolerance) {
    cgs_device d;
    cgs_dinowm_config c;
    cgs_backbone_view view;
    cgs_backbone *b;
    cgs_dinowm *m;
    OK(cgs_device_open(&d, backend, 0));
    OK(cgs_dinowm_preset(&c, "paper"));
    OK(cgs_dinowm_view(&c, &view));
    OK(cgs_backbone_create(&b, &CGS_VIT_S14, &view, &d, false));
    OK(golden_fill_params(&b->params));
    assert_int_equal(cgs_params_learnable(&b->params) + 2 * 12 * D + D, 22056576);
    worst = 0;
    positions(&b->params, 1e-5);
    OK(cgs_backbone_settle(b));
    OK(cgs_dinowm_create(&m, &c, b, &d, false));
    OK(golden_fill_renamed(&m->params, "predictor.", "dinopred."));
    features(&d, m, act, tolerance);
    for (int frames = 1; frames <= 3; frames += 2) predictor(&d, m, act, tolerance, frames);
    print_message("%s %s: worst relative error %.2e\n", backend, act == CGS_F32 ? "f32" : "bf16",
                  worst);
    cgs_model_destroy(&m->base);
    cgs_device_close(&d);
}
