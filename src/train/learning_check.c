/* learning_check.c - see learning_check.h. */
#include "train/learning_check.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

#define PATIENCE 300         /* updates before anything is said, ... */
#define PATIENCE_FRACTION 20 /* ... or this fraction of a long run: 1 / 20 */
#define SLOWNESS 0.8         /* of the running means: about fifty updates */
#define PLATEAU 0.9          /* prediction over the mean's error */
#define COPY 1.0             /* prediction over the copy's error */
#define COLLAPSE 0.1         /* variance over the largest so far */
#define MARGIN 0.9           /* what has been said is taken back only beyond it */

static cgs_learning judge(const cgs_learning_check *c) {
    bool worse = c->state == CGS_LEARNING_COPIES || c->state == CGS_LEARNING_PLATEAU;
    double plateau = c->state == CGS_LEARNING_PLATEAU ? MARGIN * PLATEAU : PLATEAU;
    if (c->mean < COLLAPSE * c->most) return CGS_LEARNING_COLLAPSED;
    if (c->predicted > plateau * c->mean) return CGS_LEARNING_PLATEAU;
    if (c->predicted > (worse ? MARGIN * COPY : COPY) * c->copy) return CGS_LEARNING_COPIES;
    return CGS_LEARNING_GOES_ON;
}

bool cgs_learning_check_add(cgs_learning_check *c, uint64_t step, uint64_t total, double predicted,
                            cgs_trivial trivial) {
    if (!isfinite(predicted) || !isfinite(trivial.copy) || !isfinite(trivial.mean)) return false;
    double old = c->count++ ? SLOWNESS : 0;
    c->step = step;
    c->predicted = old * c->predicted + (1 - old) * predicted;
    c->copy = old * c->copy + (1 - old) * trivial.copy;
    c->mean = old * c->mean + (1 - old) * trivial.mean;
    if (c->mean > c->most) c->most = c->mean;
    if (step < PATIENCE || step < total / PATIENCE_FRACTION) return false;
    cgs_learning before = c->state;
    c->state = judge(c);
    return c->state != before;
}

void cgs_learning_sentence(const cgs_learning_check *c, char *out, size_t size) {
    unsigned long long step = c->step;
    if (size) out[0] = '\0';
    switch (c->state) {
    case CGS_LEARNING_UNKNOWN:
    case CGS_LEARNING_GOES_ON: return;
    case CGS_LEARNING_PLATEAU:
        snprintf(out, size,
                 "update %llu: it has not learned to predict: its error is %.3g, that of the mean "
                 "latent %.3g; try train.recipe=robust, a smaller model.patch, more updates",
                 step, c->predicted, c->mean);
        return;
    case CGS_LEARNING_COPIES:
        snprintf(out, size,
                 "update %llu: it predicts worse (%.3g) than a copy of the last latent would "
                 "(%.3g); try more updates, and check that actions belong to their images",
                 step, c->predicted, c->copy);
        return;
    case CGS_LEARNING_COLLAPSED:
        snprintf(out, size,
                 "update %llu: it has collapsed: latents of different images hardly differ "
                 "(variance %.2g, it was %.2g); try a larger train.batch or loss.sigreg.weight, or "
                 "a lower optim.lr",
                 step, c->mean, c->most);
        return;
    }
}

/* ---- from the metrics ------------------------------------------------------------------ */

static double number(const cJSON *line, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

void cgs_learning_line(cgs_learning_check *c, const cJSON *line) {
    double step = number(line, "step"), total = number(line, "total");
    cgs_trivial trivial = {number(line, "copy"), number(line, "mean")};
    if (step >= 1 && step < 1e15 && total >= 0 && total < 1e15)
        cgs_learning_check_add(c, (uint64_t)step, (uint64_t)total, number(line, "pred"), trivial);
}

cgs_status cgs_learning_read(cgs_learning_check *c, const char *dir) {
    static const size_t longest = 1 << 16; /* of a line; files come from anywhere */
    char path[4096];
    *c = (cgs_learning_check){0};
    CGS_TRY(cgs_path_join(path, sizeof path, dir, "metrics.jsonl"));
    FILE *f = fopen(path, "rb");
    if (!f) return CGS_OK;
    char *line = malloc(longest);
    while (line && fgets(line, (int)longest, f)) {
        if (!strstr(line, "\"copy\"")) continue;
        cJSON *j = cJSON_Parse(line);
        cgs_learning_line(c, j);
        cJSON_Delete(j);
    }
    fclose(f);
    if (!line) return cgs_fail(CGS_ENOMEM, "%s: no memory to read it", path);
    free(line);
    return CGS_OK;
}
