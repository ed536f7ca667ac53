/* learned_table.c - see learned_table.h.  Numbers and names of a file are untrusted. */
#include "cli/learned_table.h"

#include <math.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/learned.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "core/file.h"

static double number(const cJSON *of, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(of, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *text(const cJSON *v) {
    const char *s = cJSON_GetStringValue(v);
    return s ? s : "?";
}

static void print_prediction(const cJSON *list, FILE *to) {
    const cJSON *e;
    fprintf(to, "%-24s %10s %10s %10s\n", "error of prediction", "the model", "a copy", "the mean");
    cJSON_ArrayForEach(e, list) {
        double blocks = number(e, "blocks");
        fprintf(to, "  %.0f %-20s %10.3g %10.3g %10.3g\n", blocks,
                blocks > 1 ? "blocks ahead" : "block ahead", number(e, "model"), number(e, "copy"),
                number(e, "mean"));
    }
}

static void print_score(double score, FILE *to) {
    if (isfinite(score))
        fprintf(to, " %10.3f", score);
    else
        fprintf(to, " %10s", "-");
}

static void print_columns(const cJSON *list, FILE *to) {
    const cJSON *e;
    if (!cJSON_GetArraySize(list)) return;
    fprintf(to, "%-24s %10s %10s\n", "R2 of columns", "linear", "nonlinear");
    cJSON_ArrayForEach(e, list) {
        const char *name = text(cJSON_GetObjectItemCaseSensitive(e, "name"));
        fprintf(to, "  ");
        cgs_print_plain(name, to);
        fprintf(to, "%*s", strlen(name) < 22 ? (int)(22 - strlen(name)) : 0, "");
        print_score(number(e, "linear"), to);
        print_score(number(e, "nonlinear"), to);
        fprintf(to, "\n");
    }
}

static void print_movement(const cJSON *m, FILE *to) {
    if (!isfinite(number(m, "pixels"))) return;
    fprintf(to, "one action block changes %.2g %% of the pixels", 100 * number(m, "pixels"));
    if (isfinite(number(m, "picture")) && isfinite(number(m, "latent")))
        fprintf(to, "; of the way to another episode, the picture goes %.2g %%, the latent %.2g %%",
                100 * number(m, "picture"), 100 * number(m, "latent"));
    fprintf(to, "\n");
}

void cgs_learned_print(const cJSON *doc, FILE *to) {
    const cJSON *e;
    print_prediction(cJSON_GetObjectItemCaseSensitive(doc, "prediction"), to);
    print_columns(cJSON_GetObjectItemCaseSensitive(doc, "columns"), to);
    print_movement(cJSON_GetObjectItemCaseSensitive(doc, "movement"), to);
    fprintf(to, "scored on %.0f frames of %.0f episodes%s\n", number(doc, "frames"),
            number(doc, "episodes"),
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(doc, "held_out"))
                ? " that it was not trained on"
                : "; it may have been trained on them");
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(doc, "advice")) {
        cgs_print_plain(text(e), to);
        fprintf(to, "\n");
    }
}

cgs_status cgs_learned_store(cJSON **doc, const char *model, const char *data, cgs_device *d,
                             const char *command, bool quiet) {
    cgs_learned r;
    cgs_phases bar = {.quiet = quiet};
    char path[4096];
    *doc = NULL;
    const cgs_learned_options o = {
        .model = model, .data = data, .device = d, .progress = cgs_on_phase, .user = &bar};
    CGS_TRY(cgs_path_join(path, sizeof path, model, CGS_LEARNED_FILE));
    cgs_status rc = cgs_learned_measure(&r, &o);
    cgs_progress_end(&bar.bar);
    if (rc == CGS_OK) rc = cgs_learned_document(doc, &r, command);
    if (rc == CGS_OK) rc = cgs_document_save(*doc, path);
    return rc;
}
