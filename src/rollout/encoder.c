/* encoder.c - see encoder.h. */
#include "rollout/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIM(...) ((const int[]){__VA_ARGS__})

struct cgs_encoder {
    cgs_tape *tape;
    cgs_tensor *frames;  /* (batch, S, S, 3) */
    cgs_tensor *proprio; /* (batch, dim), or NULL */
    cgs_tensor *z;       /* (batch, D)       */
    float *out;          /* (batch, D)       */
    float *sensed;       /* (batch, dim)     */
    int batch, D, dim;
    size_t frame; /* bytes */
};

void cgs_encoder_destroy(cgs_encoder *e) {
    if (!e) return;
    cgs_tape_destroy(e->tape);
    free(e->out);
    free(e->sensed);
    free(e);
}

static cgs_status build_encoder(cgs_encoder *e, cgs_model *m, cgs_dtype act) {
    int S = m->image_size;
    CGS_TRY(cgs_tape_create(&e->tape, m->params->device, act));
    cgs_tape_freeze_parameters(e->tape);
    e->frames = cgs_input(e->tape, "frames", CGS_U8, 4, DIM(e->batch, S, S, 3));
    if (e->dim) e->proprio = cgs_input(e->tape, "proprio", CGS_F32, 2, DIM(e->batch, e->dim));
    e->z = cgs_keep(m->cls->encode(e->tape, m, e->frames, e->proprio));
    return cgs_tape_finish(e->tape, NULL);
}

cgs_status cgs_encoder_create(cgs_encoder **out, cgs_model *m, cgs_dtype act, int batch) {
    *out = NULL;
    if (batch < 1) return cgs_fail(CGS_EARG, "encoder: a batch of %d frames is empty", batch);
    cgs_encoder *e = calloc(1, sizeof *e);
    if (!e) return cgs_fail(CGS_ENOMEM, "encoder: no memory");
    e->batch = batch;
    e->D = m->width;
    e->dim = m->proprio_dim;
    e->frame = (size_t)m->image_size * (size_t)m->image_size * 3;
    e->out = malloc((size_t)batch * (size_t)e->D * sizeof *e->out);
    e->sensed = calloc((size_t)batch * (size_t)e->dim + 1, sizeof *e->sensed);
    cgs_status rc =
        e->out && e->sensed ? build_encoder(e, m, act) : cgs_fail(CGS_ENOMEM, "encoder: no memory");
    if (rc != CGS_OK) {
        cgs_encoder_destroy(e);
        return rc;
    }
    *out = e;
    return CGS_OK;
}

cgs_status cgs_encoder_run(cgs_encoder *e, const uint8_t *frames, int n, float *z) {
    return cgs_encoder_sense(e, frames, NULL, n, z);
}

cgs_status cgs_encoder_sense(cgs_encoder *e, const uint8_t *frames, const float *proprio, int n,
                             float *z) {
    cgs_device *d = cgs_tape_device(e->tape);
    size_t dim = (size_t)e->dim;
    if (dim && !proprio)
        return cgs_fail(CGS_EARG, "encoder: the model wants %d numbers of proprioception", e->dim);
    for (int at = 0; at < n; at += e->batch) {
        int count = n - at < e->batch ? n - at : e->batch;
        CGS_TRY(d->ops->upload(d, e->frames->data, frames + (size_t)at * e->frame,
                               (size_t)count * e->frame));
        if (dim) {
            memcpy(e->sensed, proprio + (size_t)at * dim, (size_t)count * dim * sizeof *proprio);
            CGS_TRY(cgs_tensor_write(e->tape, e->proprio, e->sensed));
        }
        cgs_tape_forward(e->tape);
        CGS_TRY(cgs_tensor_read(e->tape, e->z, e->out));
        size_t values = (size_t)count * (size_t)e->D;
        for (size_t i = 0; i < values; i++)
            if (!isfinite(e->out[i]))
                return cgs_fail(CGS_ENUMERIC, "encoder: value %d of the latent of frame %d is %g",
                                (int)(i % (size_t)e->D), at + (int)(i / (size_t)e->D),
                                (double)e->out[i]);
        memcpy(z + (size_t)at * (size_t)e->D, e->out, values * sizeof *z);
    }
    return CGS_OK;
}
