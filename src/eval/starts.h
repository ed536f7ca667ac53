/* starts.h - the starts of evaluation episodes, chosen once and shared by every method.
 *
 * A start is a recorded row of a dataset; its goal is the row `goal_offset` later in the
 * same episode.  The choice follows the published protocol: list the rows that have a
 * goal, draw distinct positions with NumPy's generator, sort.  A list of starts can be
 * saved as a manifest and loaded again, so that models are compared on the same episodes.
 *
 * Manifest: JSON lines.  The first is
 *   {"format":"cgs-starts","version":1,"dataset":"...","episodes":n,"rows":n,"count":n,
 *    "seed":"0","goal_offset":25,"whole_range":false,"held_out":false,"skip_solved":false,
 *    "protocol":"official","starts":"..."}
 * and `count` lines {"episode":e,"step":s,"row":r} follow.  "starts" is cgs_starts_hash, as in
 * result lines, so that a list that was changed is refused; files from before it have neither it
 * nor "protocol". */
#ifndef CGS_EVAL_STARTS_H
#define CGS_EVAL_STARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"
#include "env/env.h"

/* The episodes of a dataset; everything is borrowed. */
typedef struct cgs_episodes {
    int64_t count;
    const int64_t *length; /* (count) rows of each episode                              */
    const int64_t *offset; /* (count) its first row; episodes follow each other          */
    const uint8_t *use;    /* (count) zero: not to be used (held-out split); NULL: all   */
} cgs_episodes;

/* How starts are chosen; saved with them. */
typedef struct cgs_start_rule {
    int count;        /* how many */
    int goal_offset;  /* rows from start to goal */
    uint64_t seed;    /* of NumPy's generator */
    bool whole_range; /* draw from all V rows with a goal; false: from the published V - 1 */
    bool held_out;    /* for the record: `use` selects held-out episodes */
    bool skip_solved; /* for the record: starts that satisfy the predicate are excluded */
} cgs_start_rule;

typedef struct cgs_starts {
    cgs_start_rule rule;
    cgs_type_text dataset;    /* the caller's name for the data; may be empty */
    int64_t episodes, rows;   /* size of the dataset, to detect a different one */
    cgs_judge judge;          /* of solved starts, where they are skipped */
    const cgs_env_class *env; /* for the record, of a plug-in; NULL: not known */
    int count;
    cgs_start *start; /* (count) ascending rows as chosen; owned */
} cgs_starts;

/* Sets *skip for a start that must not be used. */
typedef cgs_status (*cgs_start_filter)(void *ctx, const cgs_start *s, bool *skip);

/* Rows that have a goal, in the episodes that may be used: V. */
cgs_status cgs_starts_available(const cgs_episodes *ep, int goal_offset, int64_t *out);

/* Chooses starts.  Those the filter (NULL: none) skips are replaced by further draws of the same
 * generator, so the other published starts stay.  Free with cgs_starts_free, also after a failure.
 */
cgs_status cgs_starts_choose(cgs_starts *out, const cgs_episodes *ep, const cgs_start_rule *rule,
                             cgs_start_filter filter, void *ctx);

/* A checksum of the rows. */
uint64_t cgs_starts_hash(const cgs_starts *s);

cgs_status cgs_starts_save(const cgs_starts *s, const char *path);
/* Reads a manifest; with episodes (may be NULL) also checks that it belongs to them. */
cgs_status cgs_starts_load(cgs_starts *out, const char *path, const cgs_episodes *ep);
void cgs_starts_free(cgs_starts *s);

#endif /* CGS_EVAL_STARTS_H */
