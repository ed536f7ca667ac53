/* learned_document.c - what the numbers of learned.h mean, and their file. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/learned.h"
#include "core/file.h"
#include "io/weights.h"

#define FILE_LIMIT ((size_t)1 << 20)

/* limits of what is judged good */
#define PLATEAU 0.9 /* prediction over the mean's error */
#define STILL 0.001 /* fraction of pixels that an action block changes */
#define FAR 0.8     /* of the way to another episode, for one block */
#define TOLD 0.5    /* R2 of a column that the latents tell */

__attribute__((format(printf, 2, 3))) static void say(cgs_learned *r, const char *format, ...) {
    if (r->advices == CGS_LEARNED_ADVICE) return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->advice[r->advices++], CGS_LEARNED_SENTENCE, format, ap);
    va_end(ap);
}

static void advise_prediction(cgs_learned *r) {
    const cgs_learned_errors *one = &r->ahead[0], *some = &r->ahead[1];
    if (one->model > PLATEAU * one->mean) {
        say(r,
            "It does not predict: one block ahead its error is %.3g, that of the mean of all "
            "latents %.3g.  Try train.recipe=robust, a smaller model.patch, more updates.",
            one->model, one->mean);
    } else if (one->model > one->copy) {
        say(r,
            "One block ahead it predicts worse (%.3g) than a copy of the latent (%.3g).  Try more "
            "updates, and cgs data check: the action of a row must lead from it to the next.",
            one->model, one->copy);
    } else if (some->model > PLATEAU * some->mean) {
        say(r,
            "%d blocks ahead its error (%.3g) is that of the mean of all latents (%.3g): it "
            "forgets "
            "where it began.  Plan fewer blocks (--horizon), or train longer.",
            some->blocks, some->model, some->mean);
    } else if (some->model > some->copy) {
        say(r,
            "%d blocks ahead it predicts worse (%.3g) than a copy of the latent (%.3g).  Plan "
            "fewer blocks (--horizon), or train longer.",
            some->blocks, some->model, some->copy);
    } else {
        say(r,
            "It predicts better than a copy of the latent and than the mean, one block ahead and "
            "%d: planning can work.",
            some->blocks);
    }
}

static void advise_movement(cgs_learned *r) {
    if (r->pixels < STILL)
        say(r,
            "One action block changes %.2g %% of the pixels: a larger model.frameskip makes the "
            "effect of actions visible.",
            100 * r->pixels);
    if (r->latent > FAR)
        say(r, "One action block moves the latent nearly as far as another episode is away: with a "
               "smaller model.frameskip more lies between.");
}

static void advise_columns(cgs_learned *r) {
    char names[200] = "";
    for (int i = 0; i < r->columns; i++)
        if (r->column[i].nonlinear < TOLD) cgs_list_name(names, sizeof names, r->column[i].name);
    if (*names)
        say(r,
            "The latents do not tell %s.  What is not in the picture cannot be learned; what is "
            "there needs a smaller model.patch, or more updates.",
            names);
}

void cgs_learned_advise(cgs_learned *r) {
    r->advices = 0;
    advise_prediction(r);
    advise_movement(r);
    advise_columns(r);
}

/* ---- file ---------------------------------------------------------------------------- */

cgs_status cgs_learned_document(cJSON **doc, const cgs_learned *r, const char *command) {
    char weights[24];
    CGS_TRY(cgs_document_create(doc, CGS_LEARNED_FORMAT, command, ""));
    snprintf(weights, sizeof weights, "%016" PRIx64, r->weights);
    cgs_document_text_field(*doc, "weights", weights);
    cJSON_AddBoolToObject(*doc, "held_out", r->held_out);
    cgs_document_number(*doc, "episodes", r->episodes);
    cgs_document_number(*doc, "frames", r->frames);
    cJSON *ahead = cgs_document_array(*doc, "prediction");
    for (int i = 0; i < (r->ahead[1].blocks > 1 ? 2 : 1); i++) {
        cJSON *e = cgs_document_object(ahead, NULL);
        cgs_document_number(e, "blocks", r->ahead[i].blocks);
        cgs_document_number(e, "model", r->ahead[i].model);
        cgs_document_number(e, "copy", r->ahead[i].copy);
        cgs_document_number(e, "mean", r->ahead[i].mean);
    }
    cJSON *columns = cgs_document_array(*doc, "columns");
    for (int i = 0; i < r->columns; i++) {
        cJSON *e = cgs_document_object(columns, NULL);
        const char *name = r->column[i].name;
        cgs_document_text_field(e, "name", cgs_is_utf8(name, strlen(name)) ? name : "?");
        cgs_document_number(e, "linear", r->column[i].linear);
        cgs_document_number(e, "nonlinear", r->column[i].nonlinear);
    }
    cJSON *moved = cgs_document_object(*doc, "movement");
    cgs_document_number(moved, "pixels", r->pixels);
    cgs_document_number(moved, "picture", r->picture);
    cgs_document_number(moved, "latent", r->latent);
    cJSON *advice = cgs_document_array(*doc, "advice");
    for (int i = 0; i < r->advices; i++) cgs_document_text_field(advice, NULL, r->advice[i]);
    return CGS_OK;
}

cgs_status cgs_learned_read(cJSON **doc, const char *dir) {
    char path[4096], *text;
    size_t bytes;
    *doc = NULL;
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_LEARNED_FILE));
    if (!cgs_file_exists(path)) return CGS_OK;
    CGS_TRY(cgs_read_file(path, FILE_LIMIT, &text, &bytes));
    cJSON *j = cgs_is_utf8(text, bytes) ? cJSON_ParseWithLength(text, bytes) : NULL;
    free(text);
    const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "format"));
    if (!format || strcmp(format, CGS_LEARNED_FORMAT) != 0) {
        cJSON_Delete(j);
        return cgs_fail(CGS_EFORMAT, "%s: not a file of what a model has learned", path);
    }
    *doc = j;
    return CGS_OK;
}
