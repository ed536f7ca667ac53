/* learner_lewm.c - training LeWM: inputs are images; one parameter group. */
#include <string.h>

#include "train/learner.h"
#include "train/training_recipe.h"

const cgs_learner_class *cgs_learner_class_of(const cgs_run_config *c) {
    return cgs_run_is_dinowm(c) ? &cgs_learner_dinowm : &cgs_learner_lewm;
}

static cgs_status open(cgs_learner *l, const cgs_run_config *c, const cgs_source *data,
                       const char *path, cgs_device *d, cgs_dtype act) {
    (void)data;
    (void)path;
    (void)act;
    cgs_lewm *m;
    const cgs_training_recipe *recipe;
    CGS_TRY(cgs_training_recipe_find(&recipe, c->train.recipe.s));
    CGS_TRY(cgs_lewm_create(&m, &c->model, d, true));
    l->model = &m->base;
    m->dropout_seed = c->train.seed;
    l->group[0] = (cgs_group){0, m->params.trainable, c->train.lr, c->train.weight_decay};
    l->groups = 1;
    l->wants_pixels = true;
    CGS_TRY(cgs_params_init(&m->params, c->train.seed));
    return cgs_training_recipe_start(recipe, m);
}

static void close(cgs_learner *l) { cgs_model_destroy(l->model); }

static cgs_status objective(cgs_objective *o, cgs_tape *t, cgs_model *m, int B, int reference_width,
                            int projections, bool per_window, uint64_t sigreg_key, bool training) {
    return cgs_objective_build(o, t, (cgs_lewm *)m, B, reference_width, projections, per_window,
                               sigreg_key, training);
}

static cgs_status save(const cgs_learner *l, const char *dir, const cgs_model_card *card) {
    return cgs_model_save(dir, (const cgs_lewm *)l->model, card);
}

const cgs_learner_class cgs_learner_lewm = {open, close, objective, NULL, save};
