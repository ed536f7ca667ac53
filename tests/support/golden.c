/* golden.c - the deterministic fill. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t golden_bits(const char *name, uint32_t n) {
    uint32_t h = 0x811c9dc5u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x01000193u;
    uint32_t x = h + n;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

double golden_unit(const char *name, uint32_t n) {
    return (double)(golden_bits(name, n) >> 8) / 8388608.0 - 1.0;
}

static bool ends(const char *s, const char *tail) {
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && !strcmp(s + n - k, tail);
}

static double value(const cgs_param *e, const char *name, uint32_t n) {
    double u = golden_unit(name, n);
    if (ends(e->name, "running_var")) return 1 + 0.5 * u;
    if (ends(e->name, "running_mean")) return 0.1 * u;
    const char *dot = strrchr(e->name, '.'), *last = dot ? dot + 1 : e->name;
    if (!strcmp(last, "cls_token") || !strcmp(last, "position_embeddings") ||
        !strcmp(last, "pos_embedding") || !strcmp(last, "pos_embed"))
        return 0.5 * u;
    if (e->rank == 1)
        return ends(e->name, "weight") || ends(e->name, "gamma") ? 1 + 0.1 * u : 0.05 * u;
    double fan_in = (double)(e->count / (size_t)e->dim[0]);
    return u * sqrt(3.0 / fan_in);
}

cgs_status golden_fill_params(cgs_params *p) { return golden_fill_renamed(p, "", ""); }

cgs_status golden_fill_renamed(cgs_params *p, const char *prefix, const char *other) {
    for (int i = 0; i < p->count; i++) {
        const cgs_param *e = &p->list[i];
        size_t cut = strncmp(e->name, prefix, strlen(prefix)) ? 0 : strlen(prefix);
        char name[2 * CGS_PARAM_NAME];
        snprintf(name, sizeof name, "%s%s", cut ? other : "", e->name + cut);
        float *v = malloc(e->count * sizeof *v);
        if (!v) return cgs_fail(CGS_ENOMEM, "golden fill");
        for (size_t k = 0; k < e->count; k++) v[k] = (float)value(e, name, (uint32_t)k);
        cgs_status rc = cgs_param_write(p, e, v);
        free(v);
        CGS_TRY(rc);
    }
    cgs_params_round(p);
    return CGS_OK;
}
