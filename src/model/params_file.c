/* params_file.c - see params_file.h. */
#include "model/params_file.h"

#include <math.h>
#include <stdlib.h>

cgs_status cgs_params_save(const cgs_params *p, const char *path, const cgs_meta *meta,
                           size_t metas) {
    size_t n = (size_t)p->count;
    cgs_save *tensor = calloc(n + 1, sizeof *tensor);
    float *values = malloc((p->trainable + 1) * sizeof *values);
    cgs_status rc =
        tensor && values ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory for %zu tensors", path, n);
    for (size_t i = 0; i < n && rc == CGS_OK; i++) {
        const cgs_param *e = &p->list[i];
        tensor[i] = (cgs_save){
            .name = e->name, .type = CGS_W_F32, .rank = e->rank, .data = values + e->offset};
        for (int k = 0; k < e->rank; k++) tensor[i].dim[k] = e->dim[k];
        rc = cgs_param_read(p, e, values + e->offset);
    }
    if (rc == CGS_OK) rc = cgs_safetensors_write(path, tensor, n, meta, metas);
    free(values);
    free(tensor);
    return rc;
}

static cgs_status load_one(cgs_params *p, const cgs_param *e, const cgs_weights *w,
                           const char *path) {
    const cgs_weight *t = cgs_weights_find(w, e->name);
    bool fits = t && t->rank == e->rank;
    for (int k = 0; fits && k < e->rank; k++) fits = t->dim[k] == e->dim[k];
    if (!fits) {
        char text[CGS_SHAPE_TEXT];
        return cgs_fail(CGS_EFORMAT, "%s: tensor %s is %s, expected %d rows", path, e->name,
                        t ? cgs_weights_shape(t, text) : "missing", e->dim[0]);
    }
    float *v = malloc(e->count * sizeof *v);
    cgs_status rc = v ? cgs_weights_to_f32(t, v) : cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    for (size_t k = 0; k < e->count && rc == CGS_OK; k++)
        if (!isfinite(v[k]))
            rc = cgs_fail(CGS_EFORMAT, "%s: value %zu of %s is %g", path, k, e->name, (double)v[k]);
    if (rc == CGS_OK) rc = cgs_param_write(p, e, v);
    free(v);
    return rc;
}

cgs_status cgs_params_load(cgs_params *p, const char *path) {
    cgs_weights *w;
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = CGS_OK;
    for (int i = 0; i < p->count && rc == CGS_OK; i++) rc = load_one(p, &p->list[i], w, path);
    cgs_weights_close(w);
    if (rc == CGS_OK) cgs_params_round(p);
    return rc;
}
