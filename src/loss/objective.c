/* objective.c - prediction, SIGReg, TS and CGS on one tape. */
#include "loss/objective.h"

const char *const cgs_term_names[CGS_TERMS] = {"pred", "sigreg", "ts", "cgs"};

#define DIM(...) ((const int[]){__VA_ARGS__})

/* inputs that every model gets beside its images */
static cgs_status common_inputs(cgs_objective *o, cgs_tape *t, const cgs_model *m, int B,
                                int reference_width) {
    int N = m->history;
    if (N < 2)
        return cgs_fail(CGS_EARG,
                        "model.history: %d, training needs at least 2 to compare "
                        "transitions",
                        N);
    *o = (cgs_objective){0};
    o->actions = cgs_input(t, "actions", CGS_F32, 3, DIM(B, N + 1, cgs_model_action_block(m)));
    o->reference = cgs_input(t, "reference", CGS_F32, 3, DIM(B, N, reference_width));
    o->mask = cgs_input(t, "mask", CGS_F32, 2, DIM(B, N));
    o->weights = cgs_input(t, "weights", CGS_F32, 1, DIM(CGS_TERMS));
    return CGS_OK;
}

/* z (B, T, D): the latents whose geometry is measured */
static cgs_status finish(cgs_objective *o, cgs_tape *t, cgs_tensor *z, int projections,
                         bool per_window, uint64_t sigreg_key, bool training) {
    cgs_tensor *directions = cgs_directions(t, projections, cgs_cols(z), sigreg_key);
    o->term[CGS_TERM_SIGREG] = cgs_sigreg(t, z, directions);
    o->term[CGS_TERM_TS] = cgs_straighten(t, z);
    o->term[CGS_TERM_CGS] = cgs_match_geometry(t, z, o->reference, o->mask, per_window);
    for (int i = 0; i < CGS_TERMS; i++) cgs_keep(o->term[i]);
    o->total = cgs_keep(cgs_weighted_sum(t, o->weights, o->term, CGS_TERMS));
    return cgs_tape_finish(t, training ? o->total : NULL);
}

cgs_status cgs_objective_build(cgs_objective *o, cgs_tape *t, cgs_lewm *m, int B,
                               int reference_width, int projections, bool per_window,
                               uint64_t sigreg_key, bool training) {
    const cgs_lewm_config *c = &m->config;
    int N = c->history, T = N + 1, D = c->width, S = c->image_size;
    CGS_TRY(common_inputs(o, t, &m->base, B, reference_width));
    o->frames = cgs_input(t, "frames", CGS_U8, 4, DIM(B * T, S, S, 3));

    o->z = cgs_keep(cgs_lewm_encode(t, m, o->frames, training));
    cgs_tensor *z = cgs_reshape(t, o->z, 3, DIM(B, T, D));
    cgs_conditioning condition = cgs_lewm_condition(t, m, cgs_take(t, o->actions, 0, N), NULL);
    o->zhat =
        cgs_keep(cgs_lewm_predict(t, m, cgs_take(t, z, 0, N), &condition, 0, false, training));

    /* no stop-gradient: the target branch is trained too */
    o->term[CGS_TERM_PRED] = cgs_mse(t, o->zhat, cgs_take(t, z, 1, N));
    return finish(o, t, z, projections, per_window, sigreg_key, training);
}

cgs_status cgs_objective_build_dinowm(cgs_objective *o, cgs_tape *t, cgs_dinowm *m, int B,
                                      int reference_width, int projections, bool per_window,
                                      uint64_t sigreg_key, bool training) {
    const cgs_dinowm_config *c = &m->config;
    int N = c->history, T = N + 1, F = B * T, S = c->image_size, P = cgs_dinowm_tokens(c);
    CGS_TRY(common_inputs(o, t, &m->base, B, reference_width));
    o->proprio = cgs_input(t, "proprio", CGS_F32, 2, DIM(F, c->proprio_dim));
    cgs_tensor *features;
    if (m->backbone) {
        o->frames = cgs_input(t, "frames", CGS_U8, 4, DIM(F, S, S, 3));
        features = cgs_dinowm_features(t, m, o->frames);
    } else {
        features = o->features =
            cgs_input(t, "features", cgs_tape_act(t), 3, DIM(F, P, c->features));
    }
    cgs_tensor *visual = cgs_dinowm_project(t, m, features);
    o->z = cgs_keep(cgs_dinowm_latent(t, m, visual, o->proprio));
    cgs_tensor *z = cgs_reshape(t, o->z, 3, DIM(B, T, m->base.width));
    cgs_tensor *tokens = cgs_dinowm_join(t, m, cgs_take(t, z, 0, N), o->actions, 0);
    o->zhat = cgs_keep(cgs_dinowm_strip(t, m, cgs_dinowm_predict(t, m, tokens, false, training)));
    o->term[CGS_TERM_PRED] = cgs_mse(t, o->zhat, cgs_stop_gradient(t, cgs_take(t, z, 1, N)));
    cgs_tensor *geometry = cgs_dinowm_aggregate(t, m, visual);
    geometry = cgs_reshape(t, geometry, 3, DIM(B, T, cgs_cols(geometry)));
    return finish(o, t, geometry, projections, per_window, sigreg_key, training);
}

float cgs_ramp(float weight, float ramp, uint64_t update, uint64_t total) {
    double full = (double)ramp * (double)total;
    if (full <= 0 || (double)update >= full) return weight;
    return (float)(weight * ((double)update / full));
}
