/* cmd_encode.c - cgs encode: latents of images. */
#include <cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "cli/model_run.h"
#include "cli/plain.h"
#include "cli/verbs.h"
#include "ops/tape.h"

#define BATCH 16
#define DIM(...) ((const int[]){__VA_ARGS__})

static cgs_status show(const char *image, const float *z, int D, bool json) {
    if (json) {
        cJSON *name = cJSON_CreateString(image);
        char *text = name ? cJSON_PrintUnformatted(name) : NULL;
        cJSON_Delete(name);
        if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory for its name", image);
        printf("{\"image\":%s,\"z\":[", text);
        for (int i = 0; i < D; i++) printf("%s%.9g", i ? "," : "", (double)z[i]);
        printf("]}\n");
        cJSON_free(text);
        return CGS_OK;
    }
    double squares = 0;
    for (int i = 0; i < D; i++) squares += (double)z[i] * z[i];
    cgs_print_plain(image, stdout);
    printf(": |z| = %.6g, z =", sqrt(squares));
    for (int i = 0; i < D && i < 6; i++) printf(" %.6g", (double)z[i]);
    printf("%s\n", D > 6 ? " ..." : "");
    return CGS_OK;
}

static cgs_status encode(cgs_model_run *r, cgs_words images, bool json) {
    int S = r->model->config.image_size, D = r->model->config.width;
    int F = images.count < BATCH ? images.count : BATCH;
    size_t frame = (size_t)S * (size_t)S * 3;
    cgs_device *d = &r->device;
    cgs_tape *t;
    CGS_TRY(cgs_tape_create(&t, d, r->act));
    cgs_tensor *frames = cgs_input(t, "frames", CGS_U8, 4, DIM(F, S, S, 3));
    cgs_tensor *z = cgs_keep(cgs_lewm_encode(t, r->model, frames, false));
    cgs_status rc = cgs_tape_finish(t, NULL);

    uint8_t *pixels = calloc((size_t)F, frame);               /* (F, S, S, 3) */
    float *out = malloc((size_t)F * (size_t)D * sizeof *out); /* (F, D)       */
    if (rc == CGS_OK && (!pixels || !out)) rc = cgs_fail(CGS_ENOMEM, "no memory for images");
    for (int i = 0; rc == CGS_OK && i < images.count; i += F) {
        int n = images.count - i < F ? images.count - i : F;
        for (int k = 0; rc == CGS_OK && k < n; k++)
            rc = cgs_read_frame(images.word[i + k], S, pixels + (size_t)k * frame);
        if (rc == CGS_OK) rc = d->ops->upload(d, frames->data, pixels, (size_t)F * frame);
        if (rc == CGS_OK) {
            cgs_tape_forward(t);
            rc = cgs_tensor_read(t, z, out);
        }
        for (int k = 0; rc == CGS_OK && k < n; k++)
            rc = show(images.word[i + k], out + (size_t)k * (size_t)D, D, json);
    }
    free(pixels);
    free(out);
    cgs_tape_destroy(t);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_model_run r = CGS_MODEL_RUN_DEFAULTS;
    cgs_words images = {0};
    bool json = false;
    const cgs_opt opts[] = {
        CGS_MODEL_RUN_OPTIONS(r),
        {"images", "PNG...", "PNG files of the model's image size", OPT_LIST, &images, true},
        {"json", NULL, "one JSON object per line", OPT_FLAG, &json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_model_run_open(&r);
    if (rc == CGS_OK) rc = encode(&r, images, json);
    cgs_model_run_close(&r);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_encode = {
    "encode", "--model DIR --images a.png b.png ... [--json]", "latents of PNG files",
    "Images must have the model's size.  With --json, one {\"image\":...,\"z\":[...]} per line.",
    run};
