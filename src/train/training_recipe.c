/* training_recipe.c - see training_recipe.h. */
#include "train/training_recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cgs_training_recipe recipes[] = {
    {"published", 0, false, "adamw"},
    {"robust", 0.35f, true, "muon"},
};

cgs_status cgs_training_recipe_find(const cgs_training_recipe **out, const char *name) {
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        if (!strcmp(recipes[i].name, name)) {
            *out = &recipes[i];
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "train.recipe: \"%.20s\" is not published or robust", name);
}

/* Number k of `width` of the embedding of the patch in column x and row y: a quarter of the numbers
 * each are sines and cosines of x and of y, in wavelengths from twice the image's side to four
 * patches, so that all of them differ between patches; what is left of the width is 0. */
static double wave(int x, int y, int side, int k, int width) {
    const double pi = 3.14159265358979323846;
    int quarter = width / 4, part = quarter ? k / quarter : 4, i = quarter ? k % quarter : 0;
    if (part > 3) return 0;
    double at = (part < 2 ? x : y) + 0.5;
    double angle = at * pi / side * pow(side / 2.0, quarter > 1 ? i / (quarter - 1.0) : 0);
    return part % 2 ? cos(angle) : sin(angle);
}

cgs_status cgs_training_recipe_start(const cgs_training_recipe *r, cgs_lewm *m) {
    int side = m->config.image_size / m->config.patch, D = m->config.width;
    if (r->position_waves <= 0) return CGS_OK;
    const cgs_param *e = cgs_params_find(&m->params, "encoder.embeddings.position_embeddings");
    float *v = malloc(e->count * sizeof *v); /* (1 + side * side, D), the class token's first */
    if (!v) return cgs_fail(CGS_ENOMEM, "%s: no memory to initialise it", e->name);
    cgs_status rc = cgs_param_read(&m->params, e, v);
    const double scale = (double)r->position_waves * sqrt(2); /* a wave's deviation is 1/sqrt(2) */
    for (int i = 0; rc == CGS_OK && i < side * side; i++)
        for (int k = 0; k < D; k++)
            v[(1 + i) * D + k] = (float)(scale * wave(i % side, i / side, side, k, D));
    if (rc == CGS_OK) rc = cgs_param_write(&m->params, e, v);
    free(v);
    cgs_params_round(&m->params);
    return rc;
}
