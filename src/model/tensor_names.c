/* tensor_names.c - maps stored names to ours, and indexes a file's tensors by them. */
#include "model/tensor_names.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* more tensors than any model of this kind has; bounds the cost of hostile files */
#define TENSORS_MAX 8192

/* parts of one encoder layer, after "encoder.layers.N." and "encoder.encoder.layer.N." */
static const struct {
    const char *later, *ours;
} BLOCK_PARTS[] = {
    {"attention.q_proj.", "attention.attention.query."},
    {"attention.k_proj.", "attention.attention.key."},
    {"attention.v_proj.", "attention.attention.value."},
    {"attention.o_proj.", "attention.output.dense."},
    {"mlp.fc1.", "intermediate.dense."},
    {"mlp.fc2.", "output.dense."},
    {"layernorm_before.", "layernorm_before."},
    {"layernorm_after.", "layernorm_after."},
};

/* what frameworks put in front of a model's own names */
static const char *const WRAPPERS[] = {"model.", "module.",     "_orig_mod.",
                                       "jepa.",  "state_dict.", "model_state_dict."};

static bool starts(const char *s, const char *head) { return !strncmp(s, head, strlen(head)); }

static const char *unwrapped(const char *s) {
    for (size_t i = 0; i < sizeof WRAPPERS / sizeof WRAPPERS[0]; i++)
        if (starts(s, WRAPPERS[i])) {
            s += strlen(WRAPPERS[i]);
            i = (size_t)-1; /* from the first one again */
        }
    return s;
}

bool cgs_tensor_name(const char *stored, char name[CGS_PARAM_NAME]) {
    static const char later[] = "encoder.layers.";
    const char *s = unwrapped(stored);
    snprintf(name, CGS_PARAM_NAME, "%s", s);
    if (starts(s, "sigreg.") || starts(s, "callbacks_")) return false;
    if (!starts(s, later)) return true;

    const char *number = s + strlen(later);
    size_t digits = strspn(number, "0123456789");
    if (!digits || number[digits] != '.') return true;
    const char *part = number + digits + 1;
    for (size_t i = 0; i < sizeof BLOCK_PARTS / sizeof BLOCK_PARTS[0]; i++)
        if (starts(part, BLOCK_PARTS[i].later))
            snprintf(name, CGS_PARAM_NAME, "encoder.encoder.layer.%.*s.%s%s", (int)digits, number,
                     BLOCK_PARTS[i].ours, part + strlen(BLOCK_PARTS[i].later));
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cgs_named_weight *)a)->name, ((const cgs_named_weight *)b)->name);
}

static bool matches(const char *stored, const char *ours, char *const *pattern, int count,
                    bool *used) {
    bool hit = false;
    for (int i = 0; i < count; i++)
        if (!fnmatch(pattern[i], stored, 0) || !fnmatch(pattern[i], ours, 0)) hit = used[i] = true;
    return hit;
}

static void ignore(cgs_named_weights *c, const char *name) {
    c->ignored++;
    cgs_list_name(c->some, sizeof c->some, name);
}

static cgs_status no_doubles(const cgs_named_weights *c, const char *path) {
    for (int i = 1; i < c->count; i++)
        if (!strcmp(c->list[i].name, c->list[i - 1].name))
            return cgs_fail(CGS_EFORMAT, "%s: \"%.200s\" and \"%.200s\" are one tensor", path,
                            c->list[i - 1].weight->name, c->list[i].weight->name);
    return CGS_OK;
}

static cgs_status all_used(const bool *used, char *const *pattern, int count, const char *path) {
    for (int i = 0; i < count; i++)
        if (!used[i])
            return cgs_fail(CGS_EARG, "%s: no tensor matches \"%.80s\"", path, pattern[i]);
    return CGS_OK;
}

cgs_status cgs_named_weights_filter(cgs_named_weights *c, const cgs_weights *w,
                                    char *const *pattern, int count) {
    *c = (cgs_named_weights){.ignored = w->skipped};
    memcpy(c->some, w->some, sizeof c->some);
    if (w->count > TENSORS_MAX)
        return cgs_fail(CGS_EFORMAT, "%s: %zu tensors, at most %d are expected of a model", w->path,
                        w->count, TENSORS_MAX);
    c->list = calloc(w->count + 1, sizeof *c->list);
    bool *used = calloc((size_t)count + 1, sizeof *used);
    cgs_status rc = c->list && used
                        ? CGS_OK
                        : cgs_fail(CGS_ENOMEM, "%s: no memory for %zu names", w->path, w->count);
    for (size_t i = 0; rc == CGS_OK && i < w->count; i++) {
        cgs_named_weight *e = &c->list[c->count];
        e->weight = &w->entry[i];
        bool known = cgs_tensor_name(w->entry[i].name, e->name);
        if (!matches(w->entry[i].name, e->name, pattern, count, used) && known)
            c->count++;
        else
            ignore(c, w->entry[i].name);
    }
    if (rc == CGS_OK) {
        qsort(c->list, (size_t)c->count, sizeof *c->list, by_name);
        rc = no_doubles(c, w->path);
    }
    if (rc == CGS_OK) rc = all_used(used, pattern, count, w->path);
    free(used);
    if (rc != CGS_OK) cgs_named_weights_free(c);
    return rc;
}

cgs_status cgs_named_weights_make(cgs_named_weights *c, const cgs_weights *w) {
    return cgs_named_weights_filter(c, w, NULL, 0);
}

void cgs_named_weights_free(cgs_named_weights *c) {
    free(c->list);
    *c = (cgs_named_weights){0};
}

const cgs_weight *cgs_named_weights_find(const cgs_named_weights *c, const char *fmt, ...) {
    cgs_named_weight key;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(key.name, sizeof key.name, fmt, ap);
    va_end(ap);
    const cgs_named_weight *e = bsearch(&key, c->list, (size_t)c->count, sizeof *c->list, by_name);
    return e ? e->weight : NULL;
}
