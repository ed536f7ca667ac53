/* latents.c - see latents.h. */
#include "analysis/latents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "data/checksum.h"
#include "io/safetensors.h"

enum { READ = 16 }; /* frames read at a time */

static size_t frames_of(const cgs_motion *m) {
    return (size_t)cgs_parts_rows(&m->parts) + (size_t)m->episodes;
}

static uint64_t key_of(const cgs_motion *m, const cgs_loaded_model *s) {
    size_t rows = (size_t)cgs_parts_rows(&m->parts), n = (size_t)m->episodes;
    uint64_t part[6] = {s->weights,
                        (uint64_t)s->act,
                        cgs_checksum(m->action, rows * (size_t)m->A * sizeof *m->action),
                        cgs_checksum(m->state, rows * (size_t)m->S * sizeof *m->state),
                        cgs_checksum(m->episode, n * sizeof *m->episode),
                        cgs_checksum(m->blocks, n * sizeof *m->blocks)};
    return cgs_checksum(part, sizeof part);
}

/* true when the file exists and is complete */
static bool load(const char *path, size_t frames, int D, float *z) {
    cgs_weights *w;
    if (!cgs_file_exists(path) || cgs_weights_open(&w, path) != CGS_OK) return false;
    const cgs_weight *e = cgs_weights_find(w, "z");
    bool fine = e && e->type == CGS_W_F32 && e->rank == 2 && e->dim[0] == (int64_t)frames &&
                e->dim[1] == D && cgs_weights_to_f32(e, z) == CGS_OK;
    for (size_t i = 0; fine && i < frames * (size_t)D; i++) fine = isfinite(z[i]);
    cgs_weights_close(w);
    return fine;
}

static void save(const char *path, size_t frames, int D, const float *z) {
    cgs_save t = {
        .name = "z", .type = CGS_W_F32, .rank = 2, .dim = {(int64_t)frames, D}, .data = z};
    if (cgs_safetensors_write(path, &t, 1, NULL, 0) != CGS_OK)
        cgs_log(CGS_WARN, "latents are not cached: %s", cgs_last_error());
}

static cgs_status encode(float *z, const cgs_motion *m, cgs_loaded_model *s, cgs_dataset *data,
                         cgs_latents_watch watch, void *user) {
    const cgs_source *src = cgs_dataset_source(data);
    size_t D = (size_t)s->lewm->config.width, at = 0, total = frames_of(m);
    if (src->pixels < 0)
        return cgs_fail(CGS_EFORMAT, "%s: no images, so nothing can be encoded", src->path);
    if (m->frameskip % src->pixels_every != 0)
        return cgs_fail(CGS_EARG, "%s: one row in %d has an image; frames %d apart cannot be read",
                        src->path, src->pixels_every, m->frameskip);
    uint8_t *pixels = malloc(READ * (size_t)src->height * (size_t)src->width * 3);
    if (!pixels) return cgs_fail(CGS_ENOMEM, "%s: no memory for %d frames", src->path, READ);
    cgs_status rc = CGS_OK;
    for (int i = 0; i < m->episodes && rc == CGS_OK; i++) {
        int64_t first = src->ep_offset[m->episode[i]];
        for (int k = 0; k <= m->blocks[i] && rc == CGS_OK; k += READ) {
            int n = m->blocks[i] + 1 - k < READ ? m->blocks[i] + 1 - k : READ;
            rc = src->read_pixels(src->self, first + (int64_t)k * m->frameskip, n, m->frameskip,
                                  pixels);
            if (rc == CGS_OK) rc = cgs_encoder_run(s->encoder, pixels, n, z + at * D);
            at += (size_t)n;
        }
        if (rc == CGS_OK && watch && !watch(user, s->dir, (double)at, (double)total))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    free(pixels);
    return rc;
}

cgs_status cgs_latents(float **z, const cgs_motion *m, cgs_loaded_model *s, cgs_dataset *data,
                       const char *folder, bool *cached, cgs_latents_watch watch, void *user) {
    char path[4096] = "", name[64];
    int D = s->lewm->config.width;
    size_t frames = frames_of(m);
    *z = malloc(frames * (size_t)D * sizeof **z);
    if (!*z) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu latents", s->dir, frames);
    snprintf(name, sizeof name, "latents-%016llx.safetensors", (unsigned long long)key_of(m, s));
    cgs_status rc = folder ? cgs_path_join(path, sizeof path, folder, name) : CGS_OK;
    bool found = rc == CGS_OK && folder && load(path, frames, D, *z);
    if (rc == CGS_OK && !found) rc = encode(*z, m, s, data, watch, user);
    if (rc == CGS_OK && !found && folder) save(path, frames, D, *z);
    if (cached) *cached = found;
    if (rc != CGS_OK) {
        free(*z);
        *z = NULL;
    }
    return rc;
}

void cgs_latent_changes(const cgs_motion *m, const float *z, int D, double *change) {
    size_t d = (size_t)D;
    for (int i = 0; i < m->episodes;
         i++, z += d) /* an episode has one frame more than transitions */
        for (int b = 0; b < m->blocks[i]; b++, z += d)
            for (size_t j = 0; j < d; j++) *change++ = (double)z[d + j] - z[j];
}
