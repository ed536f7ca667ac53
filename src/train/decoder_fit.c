/* decoder_fit.c - see decoder_fit.h. */
#include "train/decoder_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/windows.h"
#include "train/optimiser.h"

#define DIM(...) ((const int[]){__VA_ARGS__})
#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_decoder_fit_config, kind, name, initial, low, high, key, doc)
static const cgs_field fields[] = {CGS_DECODER_FIT_CONFIG(ROW)};
#undef ROW

cgs_section cgs_decoder_fit_section(cgs_decoder_fit_config *c) {
    return (cgs_section){fields, (int)(sizeof fields / sizeof fields[0]), c};
}

enum {
    READ = 16,
    VALIDATION_EVERY = 8
}; /* frames read at a time; every VALIDATION_EVERY-th frame validates */

typedef struct material {
    int count, S, D;
    uint8_t *frames; /* (count, S, S, 3) */
    float *z;        /* (count, D) */
} material;

typedef struct fitting {
    const cgs_decoder_fit_config *c;
    cgs_loaded_model *s;
    const cgs_source *src;
    cgs_decoder_fit_observer watch;
    void *user;
    cgs_fit_episodes from;
    material m;
    /* one batch */
    cgs_tape *tape;
    cgs_tensor *z, *frames, *loss;
    uint8_t *pixels; /* (batch, S, S, 3) */
    float *latents;  /* (batch, D) */
} fitting;

static bool tell(fitting *f, const char *what, double done, double total, double loss) {
    return !f->watch || f->watch(f->user, what, done, total, loss);
}

/* rows of the dataset in increasing order, counted over the episodes of the fit alone */
typedef struct cursor {
    const fitting *f;
    int at;         /* the present episode of the list */
    int64_t before; /* rows of those before it */
} cursor;

/* the image at or before row `row` of those, as a row of the dataset */
static int64_t drawn_row(cursor *k, int64_t row) {
    const cgs_source *src = k->f->src;
    const int *episode = k->f->from.episode;
    while (row - k->before >= src->ep_len[episode[k->at]])
        k->before += src->ep_len[episode[k->at++]];
    return cgs_source_drawn(src, src->ep_offset[episode[k->at]] + row - k->before);
}

static cgs_status collect(fitting *f) {
    const cgs_lewm_config *c = &f->s->lewm->config;
    material *m = &f->m;
    int64_t rows = 0;
    if (f->src->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no images", f->src->path);
    if (f->src->height != c->image_size || f->src->width != c->image_size)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d",
                        f->src->path, f->src->height, f->src->width, c->image_size, c->image_size);
    CGS_TRY(cgs_fit_episodes_of(&f->from, f->s, f->src));
    for (int i = 0; i < f->from.count; i++) rows += f->src->ep_len[f->from.episode[i]];
    m->count = rows < f->c->frames ? (int)rows : f->c->frames;
    m->S = c->image_size;
    m->D = c->width;
    if (m->count < 2 * VALIDATION_EVERY || m->count < f->c->batch)
        return cgs_fail(CGS_EARG, "%s: %d frames, at least %d are needed", f->src->path, m->count,
                        f->c->batch > 2 * VALIDATION_EVERY ? f->c->batch : 2 * VALIDATION_EVERY);
    size_t frame = (size_t)m->S * (size_t)m->S * 3;
    m->frames = malloc((size_t)m->count * frame);
    m->z = malloc((size_t)m->count * (size_t)m->D * sizeof *m->z);
    if (!m->frames || !m->z) return cgs_fail(CGS_ENOMEM, "no memory for %d frames", m->count);
    cgs_rng r = cgs_rng_stream(f->c->seed, CGS_STREAM_DATA, UINT64_C(1) << 40);
    cursor k = {.f = f};
    for (int at = 0; at < m->count; at += READ) {
        int n = m->count - at < READ ? m->count - at : READ;
        uint8_t *to = m->frames + (size_t)at * frame;
        for (int i = 0; i < n;
             i++) /* one per segment of equal length, so that all parts of the data are used */
        {
            int64_t low = rows * (at + i) / m->count;
            int64_t high = rows * (at + i + 1) / m->count;
            int64_t row = drawn_row(&k, low + (int64_t)cgs_rng_below(&r, (uint64_t)(high - low)));
            CGS_TRY(f->src->read_pixels(f->src->self, row, 1, 1, to + (size_t)i * frame));
        }
        CGS_TRY(cgs_encoder_run(f->s->encoder, to, n, m->z + (size_t)at * (size_t)m->D));
        if (!tell(f, "encode", at + n, m->count, NAN)) return cgs_fail(CGS_ESTOPPED, "stopped");
    }
    return CGS_OK;
}

static cgs_status build(fitting *f, cgs_decoder *p) {
    int B = f->c->batch, S = f->m.S, D = f->m.D;
    f->pixels = malloc((size_t)B * (size_t)S * (size_t)S * 3);
    f->latents = malloc((size_t)B * (size_t)D * sizeof *f->latents);
    if (!f->pixels || !f->latents) return cgs_fail(CGS_ENOMEM, "no memory for a batch");
    CGS_TRY(cgs_tape_create(&f->tape, p->params.device, CGS_F32));
    f->z = cgs_input(f->tape, "z", CGS_F32, 2, DIM(B, D));
    f->frames = cgs_input(f->tape, "frames", CGS_U8, 4, DIM(B, S, S, 3));
    cgs_tensor *want =
        cgs_patchify(f->tape, f->frames, p->card.patch, cgs_image_mean, cgs_image_std);
    f->loss = cgs_keep(cgs_mse(f->tape, cgs_decoder_forward(f->tape, p, f->z), want));
    return cgs_tape_finish(f->tape, f->loss);
}

/* the loss of frames which[0 .. batch) */
static cgs_status forward(fitting *f, const int64_t *which, double *loss) {
    size_t frame = (size_t)f->m.S * (size_t)f->m.S * 3, D = (size_t)f->m.D;
    for (int i = 0; i < f->c->batch; i++) {
        memcpy(f->pixels + (size_t)i * frame, f->m.frames + (size_t)which[i] * frame, frame);
        memcpy(f->latents + (size_t)i * D, f->m.z + (size_t)which[i] * D, D * sizeof *f->latents);
    }
    cgs_device *d = cgs_tape_device(f->tape);
    CGS_TRY(d->ops->upload(d, f->frames->data, f->pixels, (size_t)f->c->batch * frame));
    CGS_TRY(cgs_tensor_write(f->tape, f->z, f->latents));
    cgs_tape_forward(f->tape);
    float v;
    CGS_TRY(cgs_tensor_read(f->tape, f->loss, &v));
    if (!isfinite(v)) return cgs_fail(CGS_ENUMERIC, "decoder: the loss is %g", (double)v);
    *loss = v;
    return CGS_OK;
}

static cgs_status descend(fitting *f, cgs_decoder *p, int64_t *order, const int64_t *fit, int n) {
    const cgs_decoder_fit_config *c = f->c;
    int64_t batches = n / c->batch, which[4096];
    for (int u = 0; u < c->updates; u++) {
        int64_t k = u % batches;
        double loss;
        if (k == 0)
            cgs_epoch_order(cgs_rng_stream(c->seed, CGS_STREAM_DATA, UINT64_C(1) << 41).key,
                            (uint64_t)(u / batches), n, order);
        for (int i = 0; i < c->batch; i++) which[i] = fit[order[k * c->batch + i]];
        CGS_TRY(forward(f, which, &loss));
        const cgs_adamw a = cgs_adamw_usual(c->lr * (1 - (float)u / (float)c->updates),
                                            c->weight_decay, (uint64_t)u + 1);
        CGS_TRY(cgs_descend(f->tape, &p->params, &a));
        p->card.updates = (uint64_t)u + 1;
        if (!tell(f, "fit", u + 1, c->updates, loss))
            break; /* what has been fitted so far is a decoder */
    }
    return CGS_OK;
}

/* error on validation frames, and that of the mean image, which needs no latents */
static cgs_status judge(fitting *f, cgs_decoder *p, const int64_t *judges, int n) {
    size_t pixels = (size_t)f->m.S * (size_t)f->m.S * 3;
    int64_t which[4096];
    double sum = 0;
    int batches = (n + f->c->batch - 1) / f->c->batch;
    for (int b = 0; b < batches; b++) {
        double loss;
        for (int i = 0; i < f->c->batch; i++) which[i] = judges[(b * f->c->batch + i) % n];
        CGS_TRY(forward(f, which, &loss));
        sum += loss / batches;
    }
    p->card.loss = sum;
    double *mean = calloc(pixels, sizeof *mean), square = 0;
    if (!mean) return cgs_fail(CGS_ENOMEM, "no memory for an image");
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < pixels; k++)
            mean[k] += f->m.frames[(size_t)judges[i] * pixels + k] / 255.0 / n;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < pixels; k++) {
            double e = f->m.frames[(size_t)judges[i] * pixels + k] / 255.0 - mean[k];
            square += e * e / (double)cgs_image_std[k % 3] / (double)cgs_image_std[k % 3];
        }
    p->card.mean_loss = square / n / (double)pixels;
    free(mean);
    return CGS_OK;
}

/* the mean image of the frames, normalised and cut into patches */
static cgs_status start_from_mean(const fitting *f, cgs_decoder *p) {
    int S = f->m.S, side = p->card.patch, across = S / side;
    size_t pixels = (size_t)S * (size_t)S * 3, at = 0;
    double *mean = calloc(pixels, sizeof *mean);
    float *patches = malloc(pixels * sizeof *patches);
    cgs_status rc = mean && patches ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for the mean image");
    for (int i = 0; rc == CGS_OK && i < f->m.count; i++)
        for (size_t k = 0; k < pixels; k++)
            mean[k] += f->m.frames[(size_t)i * pixels + k] / 255.0 / f->m.count;
    for (int patch = 0; rc == CGS_OK && patch < across * across; patch++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < side * side; k++) {
                int y = patch / across * side + k / side, x = patch % across * side + k % side;
                double v = mean[((size_t)y * (size_t)S + (size_t)x) * 3 + (size_t)c];
                patches[at++] = (float)((v - cgs_image_mean[c]) / cgs_image_std[c]);
            }
    if (rc == CGS_OK) rc = cgs_decoder_set_mean(p, patches);
    free(mean);
    free(patches);
    return rc;
}

static cgs_status fit(fitting *f, cgs_decoder **out) {
    cgs_decoder_card card = {.latent = f->m.D,
                             .image = f->m.S,
                             .patch = f->s->lewm->config.patch,
                             .width = f->c->width,
                             .layers = f->c->layers,
                             .heads = f->c->heads,
                             .model = f->s->weights,
                             .split = f->from.split};
    CGS_TRY(cgs_decoder_create(out, &card, f->s->lewm->params.device, true));
    CGS_TRY(cgs_params_init(&(*out)->params, f->c->seed));
    CGS_TRY(start_from_mean(f, *out));
    CGS_TRY(build(f, *out));
    int n = 0, judges = 0;
    int64_t *list = malloc(3 * (size_t)f->m.count * sizeof *list), *last = list + f->m.count;
    if (!list) return cgs_fail(CGS_ENOMEM, "no memory for %d frames", f->m.count);
    for (int i = 0; i < f->m.count; i++) {
        if (i % VALIDATION_EVERY == 0)
            last[judges++] = i;
        else
            list[n++] = i;
    }
    cgs_status rc = n >= f->c->batch ? descend(f, *out, last + f->m.count, list, n)
                                     : cgs_fail(CGS_EARG, "decode.batch: %d, %d frames to fit to",
                                                f->c->batch, n);
    if (rc == CGS_OK) rc = judge(f, *out, last, judges);
    free(list);
    return rc;
}

cgs_status cgs_decoder_fit(cgs_decoder **out, cgs_loaded_model *s, cgs_dataset *data,
                           const cgs_decoder_fit_config *c, cgs_decoder_fit_observer watch,
                           void *user) {
    fitting f = {.c = c, .s = s, .src = cgs_dataset_source(data), .watch = watch, .user = user};
    *out = NULL;
    cgs_status rc = collect(&f);
    if (rc == CGS_OK) rc = fit(&f, out);
    cgs_tape_destroy(f.tape);
    free(f.pixels);
    free(f.latents);
    free(f.m.frames);
    free(f.m.z);
    cgs_fit_episodes_free(&f.from);
    if (rc != CGS_OK) {
        cgs_decoder_destroy(*out);
        *out = NULL;
    }
    return rc;
}
