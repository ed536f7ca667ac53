/* windows.h - which parts of which episodes are trained on, and in what order.
 *
 * A window of num_steps frames, frameskip rows apart, spans num_steps * frameskip rows
 * (the last frame's action block included).  Windows are numbered episode by episode,
 * start by start: every start 0 .. length - span that has an image.  Short-episode rule: an
 * episode of fewer rows than the span has no window and is counted in `skipped`; when no episode is
 * long enough, that is an error.
 *
 * Two splits into training and held-out windows:
 *   by episode  whole episodes; a function of the seed and the number of episodes alone, so
 *               that it does not depend on the window
 *   by window   the upstream one: neighbouring windows land on both sides */
#ifndef CGS_DATA_WINDOWS_H
#define CGS_DATA_WINDOWS_H

#include "data/source.h"

#define CGS_UPSTREAM_SPLIT_SEED 3072u

typedef struct cgs_windows {
    int num_steps, frameskip, span;
    int64_t count;
    int32_t *episode; /* (count) */
    int32_t *start;   /* (count) row inside the episode */
    int skipped;      /* episodes that are too short    */
} cgs_windows;

cgs_status cgs_windows_build(cgs_windows *w, const cgs_source *s, int num_steps, int frameskip);
void cgs_windows_free(cgs_windows *w);

/* Window numbers on both sides; one allocation, held follows train. */
typedef struct cgs_split {
    int64_t *train; /* (train_count) */
    int64_t *held;  /* (held_count)  */
    int64_t train_count, held_count;
} cgs_split;

/* held[e] = 1 for the episodes kept out of training.  floor(fraction * episodes)
 * episodes train, at least one; with two episodes or more and fraction < 1 at least
 * one is held out. */
cgs_status cgs_split_episodes(int episodes, double fraction, uint64_t seed,
                              uint8_t *held /* (episodes) */);

/* Splits windows by episode, in window order.  No training window is an error. */
cgs_status cgs_split_by_episode(cgs_split *s, const cgs_windows *w, int episodes, double fraction,
                                uint64_t seed);
/* The upstream split: both sides in the order of the permutation. */
cgs_status cgs_split_by_window(cgs_split *s, int64_t windows, double fraction, uint32_t seed);
void cgs_split_free(cgs_split *s);

/* The upstream permutation of 0 .. n-1 (MT19937, n < 2^32). */
void cgs_upstream_permutation(uint32_t seed, int64_t n, int64_t *out /* (n) */);

/* The order of an epoch, a permutation of 0 .. n-1: a pure function of its arguments,
 * so that a resumed run needs only the number of the epoch. */
void cgs_epoch_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *out /* (n) */);

#endif /* CGS_DATA_WINDOWS_H */
