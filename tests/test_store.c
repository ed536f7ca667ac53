/* test_store.c - model directories and weight files: every spelling loads the same
 * numbers, and whatever does not fit is named. */
#include "test_io.h"

#include <math.h>

#include "golden.h"
#include "io/safetensors.h"
#include "model/store.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CGS_OK) fail_msg("%s: %s", #call, cgs_last_error());                         \
    } while (0)

static cgs_device device;

static cgs_lewm *golden_model(const char *preset, int action_dim) {
    cgs_lewm_config c;
    cgs_lewm *m;
    OK(cgs_lewm_preset(&c, preset));
    c.action_dim = action_dim;
    OK(cgs_lewm_create(&m, &c, &device, false));
    OK(golden_fill_params(&m->params));
    m->batches_tracked = 7;
    return m;
}

static cgs_model_card some_card(void) {
    cgs_model_card card = cgs_card_default();
    strcpy(card.method, "lewm-cgs");
    strcpy(card.env, "pusht");
    strcpy(card.dataset, "a \"quoted\" name.h5");
    card.dataset_bytes = 123456789012;
    card.stats_rows = 4321;
    card.action_mean[0] = 0.1;
    card.action_mean[1] = -1.0 / 3;
    card.action_std[0] = 0.25;
    card.action_std[1] = 2.0 / 3;
    card.cgs_weight = 0.5;
    card.seed = UINT64_MAX;
    card.updates = 100;
    card.schedule_updates = 1000;
    card.train_fraction = 0.9;
    strcpy(card.split, "episode");
    return card;
}

static void check_same(const cgs_lewm *a, const cgs_lewm *b) {
    assert_memory_equal(&a->config, &b->config, sizeof a->config);
    assert_int_equal(a->batches_tracked, b->batches_tracked);
    assert_int_equal(a->params.trainable, b->params.trainable);
    assert_memory_equal(a->params.values, b->params.values, a->params.trainable * sizeof(float));
    assert_memory_equal(a->params.bf16, b->params.bf16, a->params.trainable * sizeof(uint16_t));
    assert_memory_equal(a->params.statistics, b->params.statistics,
                        a->params.stats * sizeof(float));
}

static void test_directory(void **state) {
    (void)state;
    cgs_lewm *m = golden_model("small", 2), *back;
    cgs_model_card card = some_card(), seen;
    OK(cgs_model_save(in_scratch("dir"), m, &card));
    OK(cgs_model_load(&back, &seen, in_scratch("dir"), &device, false));
    check_same(m, back);
    assert_memory_equal(&card, &seen, sizeof card);
    cgs_lewm_destroy(back);
    OK(cgs_model_load(&back, NULL, in_scratch("dir"), &device, true));
    check_same(m, back);
    cgs_lewm_destroy(back);
    cgs_lewm_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory),
    };
    if (cgs_device_open(&device, "cpu", 2) != CGS_OK) return 1;
    int failed = cmocka_run_group_tests(tests, make_scratch, remove_scratch);
    cgs_device_close(&device);
    return failed;
}
