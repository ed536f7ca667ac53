/* expand.h - settings by name, and text with placeholders. */
#ifndef CGS_STUDY_EXPAND_H
#define CGS_STUDY_EXPAND_H

#include <stdio.h>

#include "core/status.h"

enum { CGS_SETTINGS_MAX = 96 };

/* Names and values; later ones win.  All strings are owned. */
typedef struct cgs_settings {
    char *key[CGS_SETTINGS_MAX], *value[CGS_SETTINGS_MAX];
    int count;
} cgs_settings;

void cgs_settings_free(cgs_settings *s);
const char *cgs_settings_get(const cgs_settings *s, const char *key); /* NULL: none */
cgs_status cgs_settings_put(cgs_settings *s, const char *key, const char *value);
/* "key=value|key=value"; NULL and "" add nothing. */
cgs_status cgs_settings_add(cgs_settings *s, const char *text);

/* Replaces the {placeholders} of a text, and those of the values; one without a setting is
 * CGS_EARG. The caller frees *out. */
cgs_status cgs_expand(char **out, const char *text, const cgs_settings *s);

/* Replaces each @ by dir.  The caller frees the result; NULL: no memory. */
char *cgs_in_folder(const char *text, const char *dir);

/* The words of a text, split at spaces; *words of them, then NULL.  The caller frees each and the
 * list; NULL: no memory. */
char **cgs_split_words(const char *text, int *words);

#endif /* CGS_STUDY_EXPAND_H */
