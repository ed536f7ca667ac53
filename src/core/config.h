/* config.h - settings, listed once.
 *
 * A module writes one list of its settings, an X-macro whose rows are
 *
 *     X(kind, field, default, low, high, "dotted.key", "what it means")
 *
 * with kind one of `int`, `float`, `flag`, `u64`, `text`.  A float whose range begins at -1 leaves
 * the choice to the program there, and reads `auto` as -1.  From that list come the struct
 * (CGS_CONFIG_STRUCT), its table of fields (CGS_CONFIG_ROW), and through the table the defaults,
 * the parser, the dump and the documentation.  Files hold `key = value` lines; the command line
 * holds `key=value`.  An unknown key is an error that names the nearest known one. */
#ifndef CGS_CORE_CONFIG_H
#define CGS_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define CGS_TEXT_MAX 256

typedef enum cgs_kind {
    CGS_KIND_int,
    CGS_KIND_float,
    CGS_KIND_flag,
    CGS_KIND_u64,
    CGS_KIND_text
} cgs_kind;

typedef int cgs_type_int;
typedef float cgs_type_float;
typedef bool cgs_type_flag;
typedef uint64_t cgs_type_u64;
typedef struct cgs_type_text {
    char s[CGS_TEXT_MAX];
} cgs_type_text;

typedef struct cgs_field {
    const char *key;
    cgs_kind kind;
    size_t offset;
    const char *initial; /* default, as text */
    double low, high;    /* inclusive range of numbers; ignored for text */
    const char *doc;
} cgs_field;

#define CGS_CONFIG_FIELD(kind, name, initial, low, high, key, doc) cgs_type_##kind name;
#define CGS_CONFIG_STRUCT(LIST) LIST(CGS_CONFIG_FIELD)

/* Builds a `static const cgs_field name[]` for a struct type that holds the list.
 * Usage:
 *   #define ROW(kind, field, initial, low, high, key, doc) \
 *       CGS_CONFIG_ROW(my_config, kind, field, initial, low, high, key, doc)
 *   static const cgs_field fields[] = { MY_CONFIG(ROW) };                          */
#define CGS_CONFIG_ROW(type, kind, name, initial, low, high, key, doc)                             \
    {key, CGS_KIND_##kind, offsetof(type, name), #initial, low, high, doc},

/* A configuration: one or more tables, each over its own struct. */
typedef struct cgs_section {
    const cgs_field *fields;
    int count;
    void *values;
} cgs_section;

void cgs_config_defaults(const cgs_section *s, int sections);

/* Sets one key from text. */
cgs_status cgs_config_set(const cgs_section *s, int sections, const char *key, const char *text);
/* Sets from "key=value". */
cgs_status cgs_config_assign(const cgs_section *s, int sections, const char *assignment);
/* Reads a file of `key = value` lines; '#' starts a comment. */
cgs_status cgs_config_read(const cgs_section *s, int sections, const char *path);

/* The value of a field as text that cgs_config_set reads back exactly. */
void cgs_config_format(const cgs_field *f, const void *values, char *out, size_t size);
/* Writes every key as `key = value`; with docs, each after its explanation. */
void cgs_config_dump(const cgs_section *s, int sections, FILE *to, bool docs);

#endif /* CGS_CORE_CONFIG_H */
