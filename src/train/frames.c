/* frames.c - images resident on the device, prefetched, or copied when needed. */
#include "train/frames.h"

#include <stdlib.h>

#include "core/log.h"

static size_t frame_bytes(const cgs_frames *f) { return (size_t)f->size * (size_t)f->size * 3; }

/* frames of an episode that were rendered */
static int64_t drawn(const cgs_source *s, int e) {
    return (s->ep_len[e] + s->pixels_every - 1) / s->pixels_every;
}

/* the first rendered frame of each episode; their number */
static cgs_status count_drawn(cgs_frames *f, int64_t *frames) {
    const cgs_source *s = f->source;
    *frames = 0;
    f->first = malloc((size_t)s->episodes * sizeof *f->first);
    if (!f->first) return cgs_fail(CGS_ENOMEM, "no memory for %d episodes", s->episodes);
    for (int e = 0; e < s->episodes; e++) {
        f->first[e] = *frames;
        *frames += drawn(s, e);
    }
    return CGS_OK;
}

/* the dataset, some frames at a time */
static cgs_status copy_all(cgs_frames *f) {
    enum { RUN = 512 };
    const cgs_source *s = f->source;
    const cgs_backend *ops = f->device->ops;
    size_t bytes = frame_bytes(f);
    int64_t row[RUN], sent = 0;
    uint8_t *run = malloc(RUN * bytes);
    cgs_status rc = run ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for %d frames", RUN);
    int n = 0;
    for (int e = 0; rc == CGS_OK && e < s->episodes; e++) {
        int64_t all = drawn(s, e);
        bool last = e + 1 == s->episodes;
        for (int64_t i = 0; rc == CGS_OK && i < all; i++) {
            row[n++] = s->ep_offset[e] + i * s->pixels_every;
            if (n < RUN && !(last && i + 1 == all)) continue;
            rc = cgs_source_images(s, row, n, run);
            if (rc == CGS_OK)
                rc = ops->upload(f->device, f->all + (size_t)sent * bytes, run, (size_t)n * bytes);
            sent += n;
            n = 0;
        }
    }
    if (rc == CGS_OK) rc = ops->sync(f->device);
    free(run);
    return rc;
}

static cgs_status open_frames(cgs_frames *f) {
    const cgs_backend *ops = f->device->ops;
    size_t unused, all, bytes = frame_bytes(f);
    int64_t frames;
    void *p;
    if (!ops->memory) return CGS_OK;
    CGS_TRY(count_drawn(f, &frames));
    size_t need = (size_t)frames * bytes;
    f->which = malloc(f->most * sizeof *f->which);
    if (!f->which) return cgs_fail(CGS_ENOMEM, "no memory for the rows of a batch");
    CGS_TRY(ops->memory(f->device, &unused, &all));
    if (unused > all / 10 && need <= unused - all / 10) {
        CGS_TRY(ops->alloc(f->device, &p, need));
        f->all = p;
        f->bytes = need;
        cgs_log(CGS_INFO, "%lld frames go to the GPU, %.1f GiB", (long long)frames,
                (double)need / (1 << 30));
        return copy_all(f);
    }
    CGS_TRY(ops->alloc(f->device, &p, f->most * bytes));
    f->sent = p;
    return ops->sync(f->device); /* prefetching does not wait for it to be cleared */
}

cgs_status cgs_frames_open(cgs_frames *f, cgs_device *d, const cgs_source *s, const cgs_windows *w,
                           int batch) {
    *f = (cgs_frames){.device = d,
                      .source = s,
                      .windows = w,
                      .size = s->height,
                      .most = (size_t)batch * (size_t)w->num_steps};
    cgs_status rc = open_frames(f);
    if (rc != CGS_OK) cgs_frames_close(f);
    return rc;
}

void cgs_frames_close(cgs_frames *f) {
    if (!f->device) return;
    cgs_frames_unpin(f);
    if (f->all) f->device->ops->release(f->device, f->all);
    if (f->sent) f->device->ops->release(f->device, f->sent);
    free(f->which);
    free(f->first);
    *f = (cgs_frames){0};
}

void cgs_frames_pin(cgs_frames *f, cgs_loader *l) {
    size_t bytes;
    void *p = cgs_loader_memory(l, &bytes);
    if (f->sent && f->device->ops->pin(f->device, p, bytes)) f->pinned = p;
}

void cgs_frames_unpin(cgs_frames *f) {
    if (f->pinned) f->device->ops->unpin(f->device, f->pinned);
    f->pinned = NULL;
    f->under_way = NULL;
}

cgs_status cgs_frames_send(cgs_frames *f, const cgs_batch *b) {
    if (!f->pinned) return CGS_OK;
    size_t bytes = (size_t)b->count * (size_t)f->windows->num_steps * frame_bytes(f);
    CGS_TRY(f->device->ops->send_ahead(f->device, f->sent, b->pixels, bytes));
    f->under_way = b->pixels;
    return CGS_OK;
}

cgs_status cgs_frames_put(cgs_frames *f, cgs_tensor *to, const cgs_batch *b) {
    const cgs_backend *ops = f->device->ops;
    const cgs_windows *w = f->windows;
    size_t T = (size_t)w->num_steps, n = (size_t)b->count * T, bytes = frame_bytes(f);
    if (f->all) {
        for (size_t i = 0; i < n; i++) {
            int64_t window = b->windows[i / T];
            int64_t step = w->start[window] + (int64_t)(i % T) * w->frameskip;
            f->which[i] = f->first[w->episode[window]] + step / f->source->pixels_every;
        }
        return ops->gather(f->device, to->data, f->all, f->which, n, bytes);
    }
    /* another loader's batch may come in between */
    if (f->under_way != b->pixels) return ops->upload(f->device, to->data, b->pixels, n * bytes);
    f->under_way = NULL;
    return ops->take_sent(f->device, to->data, f->sent, n * bytes);
}
