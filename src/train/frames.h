/* frames.h - transfer of a batch's images to the device.
 *
 * A device with its own memory either holds the whole dataset and gathers the frames of a batch
 * itself, or the loader's pinned batches are prefetched while it computes.  On other devices a
 * batch is copied when it is needed. */
#ifndef CGS_TRAIN_FRAMES_H
#define CGS_TRAIN_FRAMES_H

#include "data/loader.h"
#include "ops/tape.h"

typedef struct cgs_frames {
    cgs_device *device;
    const cgs_source *source;
    const cgs_windows *windows;
    int size;                 /* S */
    uint8_t *all;             /* (rendered frames, S, S, 3) on the device, or NULL                */
    size_t bytes;             /* of all */
    int64_t *first;           /* (episodes) where each begins in all                           */
    uint8_t *sent;            /* (most, S, S, 3) on the device: the prefetched batch, or NULL   */
    int64_t *which;           /* (most) indices of a batch's frames in all                      */
    size_t most;              /* frames per batch                                                */
    void *pinned;             /* the loader's memory, or NULL                                  */
    const uint8_t *under_way; /* the images that were prefetched and not yet used, or NULL */
} cgs_frames;

/* Chooses the method; to be called when everything else has its memory.  Copies the dataset to the
 * device if that leaves a tenth of the memory free. */
cgs_status cgs_frames_open(cgs_frames *f, cgs_device *d, const cgs_source *s, const cgs_windows *w,
                           int batch);
void cgs_frames_close(cgs_frames *f);

/* Pins a loader's memory if its batches will be prefetched; call cgs_frames_unpin before the loader
 * is destroyed. */
void cgs_frames_pin(cgs_frames *f, cgs_loader *l);
void cgs_frames_unpin(cgs_frames *f);

/* Starts the copy of a batch of the pinned loader.  The batch must stay valid until cgs_frames_put.
 */
cgs_status cgs_frames_send(cgs_frames *f, const cgs_batch *b);
/* Puts a batch's images, prefetched or not, where a tape reads them. */
cgs_status cgs_frames_put(cgs_frames *f, cgs_tensor *to, const cgs_batch *b);

#endif /* CGS_TRAIN_FRAMES_H */
