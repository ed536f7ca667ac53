/* stored_model.c - see stored_model.h. */
#include "stored_model.h"
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"

cgs_lewm *golden_model(const char *preset, int action_dim, cgs_device *d) {
    cgs_lewm_config c;
    cgs_lewm *m;
    OK(cgs_lewm_preset(&c, preset));
    c.action_dim = action_dim;
    OK(cgs_lewm_create(&m, &c, d, false));
    OK(golden_fill_params(&m->params));
    m->base.batches_tracked = 7;
    return m;
}

void check_same_model(const cgs_lewm *a, const cgs_lewm *b) {
    assert_memory_equal(&a->config, &b->config, sizeof a->config);
    assert_int_equal(a->base.batches_tracked, b->base.batches_tracked);
    assert_int_equal(a->params.trainable, b->params.trainable);
    assert_memory_equal(a->params.values, b->params.values, a->params.trainable * sizeof(float));
    assert_memory_equal(a->params.bf16, b->params.bf16, a->params.trainable * sizeof(uint16_t));
    assert_memory_equal(a->params.statistics, b->params.statistics,
                        a->params.stats * sizeof(float));
}
