/* training.c - training in the public API (include/cgs/cgs.h). */
#include "train/request.h"

typedef struct listener {
    cgs_train_fn fn;
    void *user;
} listener;

static bool tell(void *user, const cgs_step_info *i, const cgs_validation *v) {
    const listener *l = user;
    cgs_train_progress p = {.step = i->step,
                            .total = i->total,
                            .loss = i->loss,
                            .prediction = i->term[CGS_TERM_PRED],
                            .rate = i->lr,
                            .frames_per_second = i->frames_per_s,
                            .validated = v != NULL};
    if (v) {
        p.valid_prediction = v->term[CGS_TERM_PRED];
        p.valid_mean = v->trivial.mean;
        p.valid_copy = v->trivial.copy;
    }
    return !l->fn || l->fn(l->user, &p) != 0;
}

static cgs_status train(const cgs_run_config *c, const cgs_train_options *o, cgs_device *d,
                        listener *l) {
    cgs_trainer *t;
    CGS_TRY(cgs_trainer_create(&t, c, o->data, o->out, d, o->resume != 0));
    cgs_status rc = cgs_trainer_run(t, tell, l);
    cgs_trainer_destroy(t);
    return rc;
}

cgs_status cgs_train(const cgs_train_options *o, cgs_train_fn fn, void *user) {
    if (!o->data || !o->out) return cgs_fail(CGS_EARG, "training: no dataset or no run directory");
    if (o->resume && o->force)
        return cgs_fail(CGS_EARG, "training: resume goes on with what force replaces");
    cgs_train_request q = {.data = o->data,
                           .out = o->out,
                           .size = o->size,
                           .method = o->method,
                           .precision = o->precision,
                           .init = o->init,
                           .settings = o->settings,
                           .setting_count = o->setting_count,
                           .resume = o->resume != 0};
    cgs_run_config c = {0};
    cgs_device d;
    listener l = {fn, user};
    CGS_TRY(cgs_train_settle(&c, &q));
    c.cache = o->cache;
    c.force = o->force != 0;
    CGS_TRY(cgs_device_open(&d, o->device ? o->device : "auto", o->threads));
    cgs_status rc = train(&c, o, &d, &l);
    cgs_device_close(&d);
    return rc;
}
