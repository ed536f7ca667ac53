/* windows.c - enumeration of windows, the two splits, the order of an epoch. */
#include "data/windows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* numbers of the CGS_STREAM_DATA streams: 0 splits episodes, e + 1 shuffles epoch e */
enum { SPLIT_STREAM = 0, EPOCH_STREAMS = 1 };

cgs_status cgs_windows_build(cgs_windows *w, const cgs_source *s, int num_steps, int frameskip) {
    memset(w, 0, sizeof *w);
    if (num_steps < 1 || frameskip < 1 || (int64_t)num_steps * frameskip > INT32_MAX)
        return cgs_fail(CGS_EARG, "a window of %d frames, %d rows apart, is impossible", num_steps,
                        frameskip);
    const int every = s->pixels_every > 1 ? s->pixels_every : 1;
    if (frameskip % every != 0)
        return cgs_fail(CGS_EARG,
                        "%s: one row in %d has an image; frames %d rows apart cannot be read",
                        s->path, every, frameskip);
    w->num_steps = num_steps;
    w->frameskip = frameskip;
    w->span = num_steps * frameskip;
    int longest = 0;
    for (int e = 0; e < s->episodes; e++) {
        if (s->ep_len[e] > longest) longest = s->ep_len[e];
        if (s->ep_len[e] < w->span)
            w->skipped++;
        else
            w->count += (s->ep_len[e] - w->span) / every + 1;
    }
    if (w->count == 0)
        return cgs_fail(CGS_EFORMAT,
                        "%s: no episode is as long as a window: %d rows are needed (%d frames, %d "
                        "apart), the longest of %d episodes has %d",
                        s->path, w->span, num_steps, frameskip, s->episodes, longest);
    w->episode = malloc((size_t)w->count * sizeof *w->episode);
    w->start = malloc((size_t)w->count * sizeof *w->start);
    if (!w->episode || !w->start) {
        int64_t count = w->count;
        cgs_windows_free(w);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %" PRId64 " windows", s->path, count);
    }
    int64_t n = 0;
    for (int e = 0; e < s->episodes; e++)
        for (int32_t start = 0; start <= s->ep_len[e] - w->span; start += every) {
            w->episode[n] = e;
            w->start[n++] = start;
        }
    return CGS_OK;
}

void cgs_windows_free(cgs_windows *w) {
    free(w->episode);
    free(w->start);
    memset(w, 0, sizeof *w);
}

/* ---- permutations ------------------------------------------------------------------- */

static void shuffle(cgs_rng rng, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t j = i + (int64_t)cgs_rng_below(&rng, (uint64_t)(n - i));
        int64_t t = out[i];
        out[i] = out[j];
        out[j] = t;
    }
}

void cgs_epoch_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *out) {
    shuffle(cgs_rng_stream(seed, CGS_STREAM_DATA, EPOCH_STREAMS + epoch), n, out);
}

/* The generator MT19937, here because only the upstream split needs it. */
enum { MT_WORDS = 624, MT_SHIFT = 397 };

typedef struct mt19937 {
    uint32_t word[MT_WORDS];
    int next;
} mt19937;

static void mt_seed(mt19937 *g, uint32_t seed) {
    g->word[0] = seed;
    for (uint32_t i = 1; i < MT_WORDS; i++)
        g->word[i] = 1812433253u * (g->word[i - 1] ^ (g->word[i - 1] >> 30)) + i;
    g->next = MT_WORDS;
}

static uint32_t mt_u32(mt19937 *g) {
    if (g->next == MT_WORDS) {
        for (int i = 0; i < MT_WORDS; i++) {
            uint32_t y = (g->word[i] & 0x80000000u) | (g->word[(i + 1) % MT_WORDS] & 0x7fffffffu);
            g->word[i] = g->word[(i + MT_SHIFT) % MT_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0u);
        }
        g->next = 0;
    }
    uint32_t y = g->word[g->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

void cgs_upstream_permutation(uint32_t seed, int64_t n, int64_t *out) {
    mt19937 g;
    mt_seed(&g, seed);
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t j = i + (int64_t)(mt_u32(&g) % (uint64_t)(n - i));
        int64_t t = out[i];
        out[i] = out[j];
        out[j] = t;
    }
}

/* ---- splits ------------------------------------------------------------------------- */

static cgs_status check_fraction(double fraction) {
    if (!(fraction > 0 && fraction <= 1))
        return cgs_fail(CGS_EARG, "a training fraction of %g is not in (0, 1]", fraction);
    return CGS_OK;
}

cgs_status cgs_split_episodes(int episodes, double fraction, uint64_t seed, uint8_t *held) {
    CGS_TRY(check_fraction(fraction));
    if (episodes < 1) return cgs_fail(CGS_EARG, "there are no episodes to split");
    int64_t *order = malloc((size_t)episodes * sizeof *order);
    if (!order) return cgs_fail(CGS_ENOMEM, "no memory for %d episodes", episodes);
    shuffle(cgs_rng_stream(seed, CGS_STREAM_DATA, SPLIT_STREAM), episodes, order);
    int train = (int)floor(fraction * episodes);
    if (train < 1) train = 1;
    if (fraction < 1 && train == episodes && episodes > 1) train = episodes - 1;
    for (int i = 0; i < episodes; i++) held[order[i]] = i >= train;
    free(order);
    return CGS_OK;
}

static cgs_status split_alloc(cgs_split *s, int64_t windows) {
    memset(s, 0, sizeof *s);
    s->train = malloc(((size_t)windows + 1) * sizeof *s->train);
    if (!s->train) return cgs_fail(CGS_ENOMEM, "no memory for %" PRId64 " windows", windows);
    return CGS_OK;
}

void cgs_split_free(cgs_split *s) {
    free(s->train);
    memset(s, 0, sizeof *s);
}

cgs_status cgs_split_by_episode(cgs_split *s, const cgs_windows *w, int episodes, double fraction,
                                uint64_t seed) {
    memset(s, 0, sizeof *s);
    uint8_t *held = malloc(episodes > 0 ? (size_t)episodes : 1);
    if (!held) return cgs_fail(CGS_ENOMEM, "no memory for %d episodes", episodes);
    cgs_status rc = cgs_split_episodes(episodes, fraction, seed, held);
    if (rc == CGS_OK) rc = split_alloc(s, w->count);
    if (rc == CGS_OK) {
        for (int64_t i = 0; i < w->count; i++)
            if (!held[w->episode[i]]) s->train[s->train_count++] = i;
        s->held = s->train + s->train_count;
        for (int64_t i = 0; i < w->count; i++)
            if (held[w->episode[i]]) s->held[s->held_count++] = i;
        if (s->train_count == 0) {
            cgs_split_free(s);
            rc = cgs_fail(CGS_EFORMAT,
                          "no training episode is as long as a window of %d rows: all %" PRId64
                          " windows are held out",
                          w->span, w->count);
        }
    }
    free(held);
    return rc;
}

cgs_status cgs_split_by_window(cgs_split *s, int64_t windows, double fraction, uint32_t seed) {
    CGS_TRY(check_fraction(fraction));
    if (windows < 1 || windows > UINT32_MAX)
        return cgs_fail(CGS_EARG, "%" PRId64 " windows cannot be split", windows);
    CGS_TRY(split_alloc(s, windows));
    cgs_upstream_permutation(seed, windows, s->train);
    /* upstream rounds both parts down and gives the remainder to training first; the second part is
     * 1 - fraction in double, which rounding may put below a tenth */
    int64_t train = (int64_t)floor((double)windows * fraction);
    int64_t held = (int64_t)floor((double)windows * (1 - fraction));
    int64_t left = windows - train - held;
    train += (left + 1) / 2;
    s->train_count = train;
    s->held = s->train + train;
    s->held_count = windows - train;
    return CGS_OK;
}
