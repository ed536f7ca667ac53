/* test_imagination.c - decoder and surprise, on a random model and discs on a floor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/decode.h"
#include "analysis/surprise.h"
#include "core/file.h"
#include "random_model.h"
#include "rollout/rollout.h"
#include "synthetic.h"
#include "train/decoder_fit.h"

static char dir[] = "/tmp/cgs-imagination-XXXXXX", data_path[64], model_path[64];
static cgs_device device;
static cgs_dataset *data;
static cgs_loaded_model loaded;

static int make(void **state) {
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(data_path, sizeof data_path, "%s/d.h5", dir);
    snprintf(model_path, sizeof model_path, "%s/m", dir);
    if (synthetic_dataset(data_path, 4, 41, 64, 3) != CGS_OK ||
        random_model_dir(model_path, "", "d.h5", 1) != CGS_OK ||
        cgs_device_open(&device, "cpu", 0) != CGS_OK ||
        cgs_dataset_open(&data, data_path) != CGS_OK ||
        cgs_loaded_model_open(&loaded, model_path, &device, "f32", 16, data) != CGS_OK) {
        print_message("%s\n", cgs_last_error());
        return -1;
    }
    return 0;
}

static int drop(void **state) {
    (void)state;
    char command[128];
    cgs_loaded_model_close(&loaded);
    cgs_dataset_close(data);
    cgs_device_close(&device);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* ---- decoder ----------------------------------------------------------------------- */

static cgs_decoder_fit_config quick(void) {
    cgs_decoder_fit_config c;
    cgs_section section = cgs_decoder_fit_section(&c);
    cgs_config_defaults(&section, 1);
    c.width = 16;
    c.layers = 1;
    c.heads = 2;
    c.frames = 128;
    c.batch = 16;
    c.updates = 30;
    c.lr = 3e-3f;
    return c;
}

/* eight images of noise, memorised: 28 directions of a patch, which a width of 48 can represent */
static void test_decoder_learns(void **state) {
    (void)state;
    enum { B = 8, UPDATES = 500 };
    cgs_decoder_card card = {
        .latent = 8, .image = 8, .patch = 4, .width = 48, .layers = 1, .heads = 2};
    cgs_decoder *p;
    cgs_tape *t;
    uint8_t frames[B * 8 * 8 * 3], out[B * 8 * 8 * 3];
    float z[B * 8], first = 0, last = 0;
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < sizeof frames; i++) frames[i] = (uint8_t)cgs_rng_below(&r, 256);
    for (int i = 0; i < B * 8; i++) z[i] = (float)cgs_rng_normal(&r);
    assert_int_equal(cgs_decoder_create(&p, &card, &device, true), CGS_OK);
    assert_int_equal(cgs_params_init(&p->params, 1), CGS_OK);
    assert_int_equal(cgs_tape_create(&t, &device, CGS_F32), CGS_OK);
    cgs_tensor *in = cgs_input(t, "z", CGS_F32, 2, (const int[]){B, 8});
    cgs_tensor *u8 = cgs_input(t, "frames", CGS_U8, 4, (const int[]){B, 8, 8, 3});
    cgs_tensor *want = cgs_patchify(t, u8, 4, cgs_image_mean, cgs_image_std);
    cgs_tensor *loss = cgs_keep(cgs_mse(t, cgs_decoder_forward(t, p, in), want));
    assert_int_equal(cgs_tape_finish(t, loss), CGS_OK);
    assert_int_equal(cgs_tensor_write(t, in, z), CGS_OK);
    assert_int_equal(device.ops->upload(&device, u8->data, frames, sizeof frames), CGS_OK);
    for (int u = 0; u < UPDATES; u++) {
        cgs_tape_forward(t);
        assert_int_equal(cgs_tensor_read(t, loss, &last), CGS_OK);
        if (u == 0) first = last;
        cgs_tape_backward(t);
        cgs_adamw a = {.lr = 5e-3f * (1 - (float)u / UPDATES),
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .eps = 1e-8f,
                       .clip_scale = 1,
                       .step = (uint64_t)u + 1};
        cgs_params *q = &p->params;
        device.ops->adamw(&device, &a, q->values, q->grads, q->moment1, q->moment2, q->bf16,
                          q->trainable);
    }
    print_message("error %.4f at first, %.4f at last\n", (double)first, (double)last);
    assert_true(last < 0.05f * first);
    /* and the images come out, through the other tape and the assembly */
    double sum = 0;
    assert_int_equal(cgs_decoder_run(p, z, B, out), CGS_OK);
    for (size_t i = 0; i < sizeof frames; i++) sum += abs(out[i] - frames[i]);
    assert_true(sum / sizeof frames < 12);
    cgs_tape_destroy(t);
    cgs_decoder_destroy(p);
}

static void test_decoder_is_kept(void **state) {
    (void)state;
    cgs_decoder_fit_config c = quick();
    cgs_decoder *p = NULL, *again = NULL;
    if (cgs_decoder_fit(&p, &loaded, data, &c, NULL, NULL) != CGS_OK)
        fail_msg("%s", cgs_last_error());
    assert_int_equal(p->card.updates, 30);
    /* what was stored decodes to the same images */
    int S = loaded.lewm->config.image_size, D = loaded.lewm->config.width;
    size_t image = (size_t)S * (size_t)S * 3;
    float *z = malloc(sizeof *z * 11 * (size_t)D);
    uint8_t *rgb = malloc(22 * image);
    assert_true(z && rgb);
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    for (int i = 0; i < 11 * D; i++) z[i] = (float)cgs_rng_normal(&r);
    assert_int_equal(cgs_decoder_save(model_path, p), CGS_OK);
    if (cgs_decoder_load(&again, model_path, loaded.weights, &device) != CGS_OK)
        fail_msg("%s", cgs_last_error());
    assert_int_equal(cgs_decoder_run(p, z, 11, rgb), CGS_OK);
    assert_int_equal(cgs_decoder_run(again, z, 11, rgb + 11 * image), CGS_OK);
    assert_memory_equal(rgb, rgb + 11 * image, 11 * image);
    assert_true(again->card.loss == p->card.loss || fabs(again->card.loss - p->card.loss) < 1e-6);
    cgs_decoder_destroy(again);
    /* other weights are refused */
    assert_int_equal(cgs_decoder_load(&again, model_path, loaded.weights + 1, &device),
                     CGS_EFORMAT);
    assert_null(again);
    cgs_decoder_destroy(p);
    /* without training it is the mean image */
    c.updates = 1;
    c.lr = 0;
    assert_int_equal(cgs_decoder_fit(&p, &loaded, data, &c, NULL, NULL), CGS_OK);
    assert_true(fabs(p->card.loss / p->card.mean_loss - 1) < 0.1);
    cgs_decoder_destroy(p);
    free(z);
    free(rgb);
}

/* a decoder whose last layer only has a bias shows that bias: patches come back in place */
static void test_decoder_places_patches(void **state) {
    (void)state;
    cgs_decoder_card card = {.latent = 4, .image = 8, .patch = 4, .width = 4, .heads = 1};
    cgs_decoder *p;
    uint8_t rgb[8 * 8 * 3];
    float z[4] = {1, 2, 3, 4}, bias[48];
    assert_int_equal(cgs_decoder_create(&p, &card, &device, false), CGS_OK);
    for (int k = 0; k < 48; k++) { /* channel, row, column */
        int channel = k / 16, y = k / 4 % 4, x = k % 4;
        float want = (float)(channel * 60 + y * 10 + x) / 255;
        bias[k] = (want - cgs_image_mean[channel]) / cgs_image_std[channel];
    }
    const cgs_param *e = cgs_params_find(&p->params, "out.bias");
    assert_non_null(e);
    assert_int_equal(cgs_param_write(&p->params, e, bias), CGS_OK);
    assert_int_equal(cgs_decoder_run(p, z, 1, rgb), CGS_OK);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            for (int k = 0; k < 3; k++)
                assert_int_equal(rgb[(y * 8 + x) * 3 + k], k * 60 + y % 4 * 10 + x % 4);
    cgs_decoder_destroy(p);
}

static void test_decoder_refuses(void **state) {
    (void)state;
    cgs_decoder *p;
    cgs_decoder_card card = {.latent = 4, .image = 8, .patch = 3, .width = 4, .heads = 1};
    assert_int_equal(cgs_decoder_create(&p, &card, &device, false), CGS_EARG);
    card.patch = 4;
    card.heads = 3;
    assert_int_equal(cgs_decoder_create(&p, &card, &device, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "3 heads"));
    char path[128];
    snprintf(path, sizeof path, "%s/" CGS_DECODER_FILE, dir);
    assert_int_equal(cgs_decoder_load(&p, dir, 0, &device), CGS_EIO);
    assert_non_null(strstr(cgs_last_error(), "no decoder"));
    assert_int_equal(cgs_write_file(path, "nonsense", 8), CGS_OK);
    assert_int_not_equal(cgs_decoder_load(&p, dir, 0, &device), CGS_OK);
    assert_null(p);
}

/* ---- surprise ---------------------------------------------------------------------- */

static cgs_surprise curve(cgs_edit kind, int step) {
    cgs_surprise c;
    if (cgs_surprise_measure(&c, &loaded, data, 1, kind, step, 0) != CGS_OK)
        fail_msg("%s", cgs_last_error());
    return c;
}

static void test_surprise_curve(void **state) {
    (void)state;
    cgs_surprise plain = curve(CGS_EDIT_NONE, -1);
    assert_int_equal(plain.steps, 9); /* 41 rows, a step is 5 */
    assert_true(isnan(plain.error[0]));
    for (int t = 1; t < plain.steps; t++)
        assert_true(isfinite(plain.error[t]) && plain.error[t] >= 0);
    /* an edit changes nothing before it; a black frame is seen at its step and forgotten when
     * it has left the history of 3 */
    const cgs_edit kinds[] = {CGS_EDIT_TELEPORT, CGS_EDIT_FREEZE, CGS_EDIT_BLACK, CGS_EDIT_REVERSE};
    for (int i = 0; i < 4; i++) {
        cgs_surprise c = curve(kinds[i], 4);
        for (int t = 1; t < 4; t++) assert_true(c.error[t] == plain.error[t]);
        assert_true(c.error[4] != plain.error[4]);
        if (kinds[i] == CGS_EDIT_BLACK) assert_true(c.error[8] == plain.error[8]);
        free(c.error);
    }
    free(plain.error);
}

/* the first prediction, by hand */
static void test_surprise_first_step(void **state) {
    (void)state;
    cgs_surprise c = curve(CGS_EDIT_NONE, -1);
    const cgs_source *src = cgs_dataset_source(data);
    int S = src->height, D = loaded.lewm->config.width, A = 10;
    size_t image = (size_t)S * (size_t)S * 3;
    uint8_t *frames = malloc(2 * image);
    float *z = malloc(3 * (size_t)D * sizeof *z), block[10];
    assert_true(frames && z);
    assert_int_equal(src->read_pixels(src->self, src->ep_offset[1], 2, 5, frames), CGS_OK);
    assert_int_equal(cgs_encoder_run(loaded.encoder, frames, 2, z), CGS_OK);
    assert_int_equal(cgs_dataset_read_rows(data, "action", src->ep_offset[1], 5, block), CGS_OK);
    for (int i = 0; i < A; i++)
        block[i] = (float)((block[i] - loaded.scale.mean[i % 2]) / loaded.scale.std[i % 2]);
    cgs_rollout_config config = {
        .episodes = 1, .context = 1, .horizon = 1, .samples = 1, .act = CGS_F32};
    cgs_rollout *r;
    assert_int_equal(cgs_rollout_create(&r, loaded.lewm, &config), CGS_OK);
    assert_int_equal(cgs_rollout_set(r, 1, z, NULL, NULL), CGS_OK);
    assert_int_equal(cgs_rollout_imagine(r, block, 1, 1, z + 2 * D), CGS_OK);
    double sum = 0;
    for (int i = 0; i < D; i++) sum += pow((double)z[2 * D + i] - z[D + i], 2) / D;
    assert_true(fabs(sum - c.error[1]) < 1e-5 * sum);
    cgs_rollout_destroy(r);
    free(frames);
    free(z);
    free(c.error);
}

static void test_surprise_bad_input(void **state) {
    (void)state;
    cgs_edit kind;
    int step;
    cgs_surprise c;
    assert_int_equal(cgs_edit_parse("freeze@12", &kind, &step), CGS_OK);
    assert_true(kind == CGS_EDIT_FREEZE && step == 12);
    const char *bad[] = {"freeze", "freeze@", "freeze@0", "freeze@x", "jump@3", "", "freeze@3x"};
    for (int i = 0; i < 7; i++) assert_int_equal(cgs_edit_parse(bad[i], &kind, &step), CGS_EARG);
    assert_int_equal(cgs_surprise_measure(&c, &loaded, data, 99, CGS_EDIT_NONE, 0, 0), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "episode 99"));
    assert_int_equal(cgs_surprise_measure(&c, &loaded, data, 1, CGS_EDIT_FREEZE, 9, 0), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "1 ... 8"));
    assert_null(c.error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoder_learns),         cmocka_unit_test(test_decoder_is_kept),
        cmocka_unit_test(test_decoder_places_patches), cmocka_unit_test(test_decoder_refuses),
        cmocka_unit_test(test_surprise_curve),         cmocka_unit_test(test_surprise_first_step),
        cmocka_unit_test(test_surprise_bad_input),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
