/* loader.h - batches of windows, prepared in the background.
 *
 * Worker threads fill a ring of batches ahead of the consumer.  Batch k of epoch e is
 * the same whatever the number of threads and their timing: its windows come from
 * cgs_epoch_order(seed, e), and the consumer gets batches in order.  The state of a
 * loader is therefore (epoch, batch) and nothing else.
 *
 * Order of calls: create, next any number of times (it never ends: epoch follows epoch), destroy.
 */
#ifndef CGS_DATA_LOADER_H
#define CGS_DATA_LOADER_H

#include "data/source.h"
#include "data/windows.h"

#define CGS_LOADER_EXTRAS 8

typedef struct cgs_loader_config {
    const cgs_source *source; /* borrowed, as is everything below */
    const cgs_windows *windows;
    const int64_t *ids; /* (id_count) window numbers, e.g. cgs_split.train */
    int64_t id_count;
    int batch;      /* windows per batch over all ranks */
    int image_size; /* the model's S; frames of another size are an error */
    bool no_pixels; /* batches come without images: the caller has them */
    /* per primitive channel; a standardised value is (a - mean) / std */
    const double *action_mean, *action_std; /* (action_dim) */
    /* columns delivered at the rows of the frames, e.g. "qpos" */
    const char *extras[CGS_LOADER_EXTRAS];
    int extra_count;
    uint64_t seed;
    bool shuffle;         /* false: the order of ids, every epoch */
    bool keep_last;       /* deliver the incomplete last batch instead of dropping it */
    uint64_t start_epoch; /* where to begin or resume */
    int64_t start_batch;
    int threads; /* workers, 0 = 2                            */
    int queue;   /* batches held ready, 0 = threads + 2       */
    /* this rank's share of every batch: windows [rank, rank+1) * batch/ranks */
    int rank, ranks; /* 0 of 0 means 0 of 1 */
} cgs_loader_config;

/* One batch, valid until the next call of cgs_loader_next.  T = num_steps, f = frameskip,
 * a = action_dim, S = image_size. */
typedef struct cgs_batch {
    uint64_t epoch;
    int64_t index;            /* of the batch in its epoch */
    int count;                /* B: windows in this batch, this rank's share */
    const uint8_t *pixels;    /* (B, T, S, S, 3), or NULL with no_pixels                */
    const float *actions;     /* (B, T, f*a) standardised; NaN of an episode's end is 0 */
    const float *raw_actions; /* (B, T, f*a) as recorded;  NaN of an episode's end is 0 */
    const float *extras[CGS_LOADER_EXTRAS]; /* (B, T, extra_dims[i]) */
    int extra_dims[CGS_LOADER_EXTRAS];
    const int64_t *windows; /* (B) window numbers */
} cgs_batch;

typedef struct cgs_loader cgs_loader;

cgs_status cgs_loader_create(cgs_loader **out, const cgs_loader_config *config);
void cgs_loader_destroy(cgs_loader *l);

/* Batches of one epoch. */
int64_t cgs_loader_batches(const cgs_loader *l);

/* Waits for the next batch.  A read failure is reported at the batch it belongs to: a NaN or an
 * infinite action anywhere but in the last row of an episode, or a file that cannot be read.  After
 * a failure every further call fails in the same way. */
cgs_status cgs_loader_next(cgs_loader *l, cgs_batch *batch);

/* Whether the next batch is ready. */
bool cgs_loader_ready(cgs_loader *l);

/* The memory of all its batches, to be pinned. */
void *cgs_loader_memory(const cgs_loader *l, size_t *bytes);

/* The position of the next batch, as a checkpoint stores it. */
void cgs_loader_position(const cgs_loader *l, uint64_t *epoch, int64_t *batch);

#endif /* CGS_DATA_LOADER_H */
