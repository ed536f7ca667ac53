/* params_file.c - see params_file.h. */
#include "model/params_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "model/store.h"

cgs_status cgs_params_save(const cgs_params *p, const char *path, const cgs_meta *meta,
                           size_t metas) {
    size_t total = 0, tensors = (size_t)p->count;
    for (size_t i = 0; i < tensors; i++) total += p->list[i].count;
    cgs_save *list = calloc(tensors + 1, sizeof *list);
    float *values = malloc(total * sizeof *values + 1), *at = values;
    cgs_meta *all = calloc(metas + 2, sizeof *all);
    cgs_status rc = list && values && all
                        ? CGS_OK
                        : cgs_fail(CGS_ENOMEM, "%s: no memory for the weights", path);
    for (size_t i = 0; rc == CGS_OK && i < tensors; i++) {
        const cgs_param *e = &p->list[i];
        rc = cgs_param_read(p, e, at);
        for (size_t k = 0; rc == CGS_OK && k < e->count; k++)
            if (!isfinite(at[k]))
                rc = cgs_fail(CGS_ENUMERIC, "%s: %s[%zu] is %g", path, e->name, k, (double)at[k]);
        list[i] = (cgs_save){.name = e->name, .type = CGS_W_F32, .rank = e->rank, .data = at};
        for (int k = 0; k < e->rank; k++) list[i].dim[k] = e->dim[k];
        at += e->count;
    }
    if (rc == CGS_OK) {
        char digits[16];
        uLong crc =
            crc32_z(crc32(0, NULL, 0), (const unsigned char *)values, total * sizeof *values);
        snprintf(digits, sizeof digits, "%08lx", crc);
        size_t n = 0;
        bool own = false; /* a format other than the one upstream's loaders check for */
        for (size_t i = 0; i < metas; i++) own = own || !strcmp(meta[i].key, "format");
        if (!own) all[n++] = (cgs_meta){"format", "pt"};
        all[n++] = (cgs_meta){"cgs.crc32", digits};
        for (size_t i = 0; i < metas; i++) all[n++] = meta[i];
        rc = cgs_safetensors_write(path, list, tensors, all, n);
    }
    free(all);
    free(values);
    free(list);
    return rc;
}

bool cgs_param_same_shape(const cgs_param *e, const cgs_weight *w) {
    bool same = w->rank == e->rank;
    for (int i = 0; same && i < e->rank; i++) same = w->dim[i] == e->dim[i];
    return same;
}

const char *cgs_param_shape(const cgs_param *e, char text[CGS_SHAPE_TEXT]) {
    cgs_weight w = {.rank = e->rank};
    for (int i = 0; i < e->rank; i++) w.dim[i] = e->dim[i];
    return cgs_weights_shape(&w, text);
}

static bool is_variance(const char *name) {
    size_t n = strlen(name), tail = strlen(".running_var");
    return n > tail && !strcmp(name + n - tail, ".running_var");
}

static cgs_status check_values(const cgs_weight *w, const float *values, bool variance) {
    for (size_t k = 0; k < w->count; k++) {
        if (!isfinite(values[k]))
            return cgs_fail(CGS_ENUMERIC, "%s: %s[%zu] is %g, not a finite number", w->owner->path,
                            w->name, k, (double)values[k]);
        if (variance && values[k] < 0)
            return cgs_fail(CGS_EFORMAT, "%s: %s[%zu] is %g, a variance is not negative",
                            w->owner->path, w->name, k, (double)values[k]);
    }
    return CGS_OK;
}

cgs_status cgs_param_fill(cgs_params *p, const cgs_param *e, const cgs_weight *w) {
    char seen[CGS_SHAPE_TEXT], expected[CGS_SHAPE_TEXT];
    if (!cgs_param_same_shape(e, w))
        return cgs_fail(CGS_EFORMAT, "%s: %s has shape %s, expected %s", w->owner->path, e->name,
                        cgs_weights_shape(w, seen), cgs_param_shape(e, expected));
    float *values = malloc(e->count * sizeof *values);
    cgs_status rc = values ? cgs_weights_to_f32(w, values)
                           : cgs_fail(CGS_ENOMEM, "%s: no memory for %s", w->owner->path, e->name);
    if (rc == CGS_OK) rc = check_values(w, values, is_variance(e->name));
    if (rc == CGS_OK) rc = cgs_param_write(p, e, values);
    free(values);
    return rc;
}

static cgs_status load_one(cgs_params *p, const cgs_param *e, const cgs_weights *w) {
    const cgs_weight *s = cgs_weights_find(w, e->name);
    if (!s) return cgs_fail(CGS_EFORMAT, "%s: %s is missing", w->path, e->name);
    return cgs_param_fill(p, e, s);
}

cgs_status cgs_params_load(cgs_params *p, const char *path) {
    cgs_weights *w;
    cgs_checksum_state state = CGS_CHECKSUM_NONE;
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = cgs_weights_checksum(&state, w);
    if (rc == CGS_OK && state == CGS_CHECKSUM_WRONG)
        rc = cgs_fail(CGS_EFORMAT, "%s: damaged, its checksum is wrong", path);
    for (size_t i = 0; rc == CGS_OK && i < w->count; i++) {
        char text[CGS_SHAPE_TEXT];
        if (!cgs_params_find(p, w->entry[i].name))
            rc = cgs_fail(CGS_EFORMAT, "%s: tensor \"%.200s\" %s is no part of this model", path,
                          w->entry[i].name, cgs_weights_shape(&w->entry[i], text));
    }
    for (int i = 0; rc == CGS_OK && i < p->count; i++) rc = load_one(p, &p->list[i], w);
    if (rc == CGS_OK) cgs_params_round(p);
    cgs_weights_close(w);
    return rc;
}
