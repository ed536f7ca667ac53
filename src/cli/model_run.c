/* model_run.c - opening a model for a verb, and reading images for it. */
#include "cli/model_run.h"

#include <stdlib.h>
#include <string.h>

#include "io/png.h"

cgs_status cgs_model_run_open(cgs_model_run *r) {
    if (!strcmp(r->precision, "f32"))
        r->act = CGS_F32;
    else if (!strcmp(r->precision, "bf16"))
        r->act = CGS_BF16;
    else
        return cgs_fail(CGS_EARG, "--precision: \"%.40s\" is neither f32 nor bf16", r->precision);
    CGS_TRY(cgs_device_open(&r->device, r->device_name, r->threads));
    return cgs_model_load(&r->model, NULL, r->dir, &r->device, false);
}

void cgs_model_run_close(cgs_model_run *r) {
    cgs_lewm_destroy(r->model);
    r->model = NULL;
    cgs_device_close(&r->device);
}

cgs_status cgs_read_frame(const char *path, int side, uint8_t *out) {
    uint8_t *rgb;
    int width, height;
    CGS_TRY(cgs_png_read(path, &rgb, &width, &height));
    cgs_status rc = CGS_OK;
    if (width != side || height != side)
        rc = cgs_fail(CGS_EFORMAT, "%s: %d x %d pixels, the model takes %d x %d", path, width,
                      height, side, side);
    else
        memcpy(out, rgb, (size_t)side * (size_t)side * 3);
    free(rgb);
    return rc;
}
