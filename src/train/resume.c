/* resume.c - see resume.h. */
#include "train/resume.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"

/* may differ: they leave what was computed as it is */
static const char *const FREE[] = {
    "train.updates",        "train.schedule_epochs",  "train.stop_epoch", "train.checkpoint_every",
    "train.validate_every", "train.validate_batches", "data.workers",     "data.cache"};

/* Checkpoints do not name settings that are younger than they are, and were made as with these
 * values. */
static const struct {
    const char *key, *value;
} YOUNGER[] = {{"train.recipe", "published"}, {"optim.kind", "adamw"}};

static bool is_free(const char *key) {
    for (size_t i = 0; i < sizeof FREE / sizeof FREE[0]; i++)
        if (!strcmp(FREE[i], key)) return true;
    return false;
}

char *cgs_run_text(const cgs_run_config *c) {
    cgs_run_config copy = *c;
    cgs_section sections[2];
    cgs_run_sections(&copy, sections);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    cgs_config_dump(sections, 2, f, false);
    fclose(f);
    return text;
}

/* ---- reading stored settings ----------------------------------------------------------- */

/* the line of a key, behind its " = "; NULL: there is none */
static const char *value_of(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, n) && !strncmp(line + n, " = ", 3)) return line + n + 3;
    }
    return NULL;
}

/* Values are taken as they stand: paths may hold anything but a line's end. */
static cgs_status set_line(const cgs_section sections[2], const char *line, size_t n) {
    char key[128], value[CGS_TEXT_MAX];
    const char *equals = strstr(line, " = ");
    if (!equals || equals >= line + n || (size_t)(equals - line) >= sizeof key ||
        (size_t)(line + n - equals - 3) >= sizeof value)
        return cgs_fail(CGS_EFORMAT, "\"%.*s\" is no setting", n < 80 ? (int)n : 80, line);
    snprintf(key, sizeof key, "%.*s", (int)(equals - line), line);
    snprintf(value, sizeof value, "%.*s", (int)(line + n - equals - 3), equals + 3);
    return cgs_config_set(sections, 2, key, value);
}

static cgs_status parse(cgs_run_config *c, const char *text) {
    cgs_section sections[2];
    CGS_TRY(cgs_run_preset(c, "paper"));
    /* the method says which model's settings follow */
    const char *method = value_of(text, "train.method");
    if (method)
        snprintf(c->train.method.s, CGS_TEXT_MAX, "%.*s", (int)strcspn(method, "\n"), method);
    cgs_run_sections(c, sections);
    for (size_t i = 0; i < sizeof YOUNGER / sizeof YOUNGER[0]; i++)
        CGS_TRY(cgs_config_set(sections, 2, YOUNGER[i].key, YOUNGER[i].value));
    while (*text) {
        size_t n = strcspn(text, "\n");
        CGS_TRY(set_line(sections, text, n));
        text += n + (text[n] == '\n');
    }
    return CGS_OK;
}

static cgs_status parse_of(cgs_run_config *c, const cgs_checkpoint *k, const char *path) {
    if (parse(c, k->config) == CGS_OK) return CGS_OK;
    cgs_fail_in(CGS_EFORMAT, path);
    return CGS_EFORMAT;
}

cgs_status cgs_run_stored(cgs_run_config *c, const char *dir, bool *there) {
    char path[4096];
    cgs_checkpoint k;
    CGS_TRY(cgs_path_join(path, sizeof path, dir, CGS_CHECKPOINT_FILE));
    *there = cgs_file_exists(path);
    if (!*there) return CGS_OK;
    CGS_TRY(cgs_checkpoint_inspect(path, &k));
    cgs_status rc = parse_of(c, &k, path);
    cgs_checkpoint_free(&k);
    return rc;
}

/* ---- comparing ------------------------------------------------------------------------- */

cgs_status cgs_resume_fits(cgs_run_config *stored, const cgs_checkpoint *k, const char *path,
                           const cgs_run_config *now, const char *identity) {
    cgs_run_config mine = *now;
    cgs_section theirs[2], ours[2];
    CGS_TRY(parse_of(stored, k, path));
    if (strcmp(stored->train.method.s, mine.train.method.s) != 0)
        return cgs_fail(CGS_EARG, "%s was made with \"train.method = %s\", this run has \"%s\"",
                        path, stored->train.method.s, mine.train.method.s);
    cgs_run_sections(stored, theirs);
    cgs_run_sections(&mine, ours);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < ours[s].count; i++) {
            const cgs_field *f = &ours[s].fields[i];
            char before[CGS_TEXT_MAX], wanted[CGS_TEXT_MAX];
            cgs_config_format(f, theirs[s].values, before, sizeof before);
            cgs_config_format(f, ours[s].values, wanted, sizeof wanted);
            if (is_free(f->key) || !strcmp(before, wanted)) continue;
            if (!value_of(k->config, f->key))
                return cgs_fail(CGS_EARG, "%s is older than %s: continue it with %s=%s", path,
                                f->key, f->key, before);
            return cgs_fail(CGS_EARG, "%s was made with \"%s = %s\", this run has \"%s\"", path,
                            f->key, before, wanted);
        }
    if (strcmp(k->identity, identity) != 0)
        return cgs_fail(CGS_EARG, "%s was made with the data \"%s\", this is \"%s\"", path,
                        k->identity, identity);
    return CGS_OK;
}
