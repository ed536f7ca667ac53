/* starts.c - choosing starts; manifest.c writes and reads them. */
#include "eval/starts.h"

#include <stdlib.h>
#include <string.h>

#include "core/numpy_rng.h"

/* rows of episode e that have a goal */
static int64_t valid_rows(const cgs_episodes *ep, int64_t e, int goal_offset) {
    if (ep->use && !ep->use[e]) return 0;
    return ep->length[e] > goal_offset ? ep->length[e] - goal_offset : 0;
}

cgs_status cgs_starts_available(const cgs_episodes *ep, int goal_offset, int64_t *out) {
    *out = 0;
    if (goal_offset < 1)
        return cgs_fail(CGS_EARG, "starts: a goal %d rows after the start", goal_offset);
    int64_t next = 0, most = INT64_C(1) << 40;
    for (int64_t e = 0; e < ep->count; e++) {
        if (ep->length[e] < 0 || ep->offset[e] < next || ep->length[e] > most ||
            ep->offset[e] > most)
            return cgs_fail(CGS_EFORMAT,
                            "starts: episode %lld has %lld rows from row %lld, the one before ends "
                            "at row %lld",
                            (long long)e, (long long)ep->length[e], (long long)ep->offset[e],
                            (long long)next);
        next = ep->offset[e] + ep->length[e];
        *out += valid_rows(ep, e, goal_offset);
    }
    return CGS_OK;
}

/* the start at a position of the list of valid rows.  first: (count + 1) positions at
 * which episodes begin in that list. */
static cgs_start start_at(const cgs_episodes *ep, const int64_t *first, int64_t position) {
    int64_t low = 0, high = ep->count; /* first[low] <= position < first[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (first[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    int64_t step = position - first[low];
    return (cgs_start){low, step, ep->offset[low] + step};
}

static int by_position(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Replaces the positions that the filter skips.  tried: (range) bytes, zero on entry. */
static cgs_status replace_skipped(int64_t *position, int count, int64_t range, uint8_t *tried,
                                  cgs_numpy_rng *rng, const cgs_episodes *ep, const int64_t *first,
                                  cgs_start_filter filter, void *ctx) {
    int64_t left = range - count, skipped = 0;
    for (int i = 0; i < count; i++) tried[position[i]] = 1;
    for (int i = 0; i < count; i++)
        for (;;) {
            bool skip = false;
            cgs_start s = start_at(ep, first, position[i]);
            CGS_TRY(filter(ctx, &s, &skip));
            if (!skip) break;
            skipped++;
            if (left-- == 0)
                return cgs_fail(CGS_EARG,
                                "starts: %d were requested, but %lld of the %lld possible ones are "
                                "excluded",
                                count, (long long)skipped, (long long)range);
            do position[i] = (int64_t)cgs_numpy_bounded(rng, (uint64_t)range - 1);
            while (tried[position[i]]);
            tried[position[i]] = 1;
        }
    return CGS_OK;
}

cgs_status cgs_starts_choose(cgs_starts *out, const cgs_episodes *ep, const cgs_start_rule *rule,
                             cgs_start_filter filter, void *ctx) {
    memset(out, 0, sizeof *out);
    int64_t available;
    CGS_TRY(cgs_starts_available(ep, rule->goal_offset, &available));
    int64_t range = rule->whole_range ? available : available - 1;
    if (rule->count < 1) return cgs_fail(CGS_EARG, "starts: %d were requested", rule->count);
    if (rule->count > range)
        return cgs_fail(
            CGS_EARG,
            "starts: %d were requested, but %lld rows of %lld episodes have a goal %d rows "
            "later",
            rule->count, (long long)available, (long long)ep->count, rule->goal_offset);

    cgs_status rc = CGS_OK;
    size_t count = (size_t)rule->count;
    int64_t *first = malloc(sizeof *first * (size_t)(ep->count + 1));
    int64_t *position = malloc(sizeof *position * count);
    uint8_t *tried = filter ? calloc((size_t)range, 1) : NULL;
    out->start = malloc(sizeof *out->start * count);
    if (!first || !position || !out->start || (filter && !tried)) {
        rc = cgs_fail(CGS_ENOMEM, "starts: no memory for %zu of %lld", count, (long long)range);
        goto done;
    }
    first[0] = 0;
    for (int64_t e = 0; e < ep->count; e++)
        first[e + 1] = first[e] + valid_rows(ep, e, rule->goal_offset);

    cgs_numpy_rng rng = cgs_numpy_rng_create(rule->seed);
    rc = cgs_numpy_choice(&rng, range, rule->count, position);
    if (rc == CGS_OK && filter)
        rc = replace_skipped(position, rule->count, range, tried, &rng, ep, first, filter, ctx);
    if (rc != CGS_OK) goto done;
    qsort(position, count, sizeof *position, by_position);

    out->rule = *rule;
    out->episodes = ep->count;
    out->rows = ep->offset[ep->count - 1] + ep->length[ep->count - 1];
    out->count = rule->count;
    for (size_t i = 0; i < count; i++) out->start[i] = start_at(ep, first, position[i]);
done:
    free(first);
    free(position);
    free(tried);
    if (rc != CGS_OK) cgs_starts_free(out);
    return rc;
}

uint64_t cgs_starts_hash(const cgs_starts *s) {
    uint64_t h = 0;
    for (int i = 0; i < s->count; i++) h = cgs_mix64(h ^ (uint64_t)s->start[i].row);
    return h;
}

void cgs_starts_free(cgs_starts *s) {
    free(s->start);
    memset(s, 0, sizeof *s);
}
