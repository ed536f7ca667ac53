/* tables_commands.c - the commands that made the numbers, as the studies recorded them. */
#include <string.h>

#include "report/folder.h"
#include "report/markdown.h"
#include "report/tables.h"

enum { MAX_STAGES = 512 }; /* a study has some twenty */

/* Whether no stage before this one has the same text under a key. */
static bool is_new(const cJSON *stages, const cJSON *stage, const char *key) {
    const char *text = cgs_json_text(stage, key, "");
    for (const cJSON *s = stages->child; s != stage; s = s->next)
        if (!strcmp(cgs_json_text(s, key, ""), text)) return false;
    return text[0] != '\0';
}

static void write_run(cgs_tables *t, const cgs_tables_run *r) {
    const char *before = "Code: ";
    int count = 0;
    cgs_text_put(&t->text, "\n### ");
    cgs_md_words(&t->text, r->path);
    cgs_text_put(&t->text, "\n\n");
    for (const cJSON *s = r->stages->child; s && count < MAX_STAGES; s = s->next, count++) {
        if (!is_new(r->stages, s, "commit")) continue;
        cgs_text_put(&t->text, before);
        cgs_md_words(&t->text, cgs_json_text(s, "commit", ""));
        before = ", ";
    }
    if (before[0] == ',') cgs_text_put(&t->text, "\n\n");
    count = 0;
    for (const cJSON *s = r->stages->child; s && count < MAX_STAGES; s = s->next, count++)
        if (is_new(r->stages, s, "command")) cgs_md_code(&t->text, cgs_json_text(s, "command", ""));
}

void cgs_tables_commands(cgs_tables *t) {
    bool open = false;
    for (int i = 0; i < t->count; i++) {
        const cgs_tables_run *r = &t->run[i];
        if (!r->stages || !r->stages->child) continue;
        if (!open)
            cgs_text_put(&t->text,
                         "\n## Commands\n\nThe commands that made these numbers, in order.\n");
        open = true;
        write_run(t, r);
    }
}
