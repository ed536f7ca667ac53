/* test_held_out.c - no held-out episode reaches a model, its prior or its decoder: the sets are
 * compared, and what is fitted has the same bits whatever the held-out episodes contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cJSON.h>
#include <cmocka.h>

#include "core/file.h"
#include "data/windows.h"
#include "expect.h"
#include "rollout/held_out.h"
#include "same_file.h"
#include "synthetic.h"
#include "train/decoder_fit.h"
#include "train/prior_fit.h"
#include "train/train.h"

enum { EPISODES = 30, ROWS = 24, SIDE = 32, SEED = 5, BYTES = 1 << 20 };
static const float share = 0.7f;

static char folder[64];
static uint8_t held[EPISODES]; /* by the split itself */

static const char *path(const char *name) {
    static char text[8][160];
    static int next;
    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", folder, name);
    return text[next];
}

static cgs_run_config tiny(const char *method) {
    cgs_run_config c;
    OK(cgs_run_preset(&c, "small"));
    OK(cgs_run_method(&c, method, ""));
    c.model.image_size = SIDE;
    c.model.width = 48;
    c.model.encoder_layers = 1;
    c.model.encoder_mlp = 96;
    c.model.projector_hidden = 64;
    c.model.predictor_layers = 1;
    c.model.predictor_heads = 2;
    c.model.predictor_head_width = 16;
    c.model.predictor_mlp = 96;
    c.model.action_hidden = 64;
    c.model.action_dim = 2;
    c.model.frameskip = 2;
    c.train.batch = 16;
    c.train.projections = 16;
    c.train.updates = 3;
    c.train.seed = SEED;
    c.train.train_fraction = share;
    c.train.cache = false;
    strcpy(c.train.precision.s, "f32");
    return c;
}

static void train(const char *method, const char *data, const char *run) {
    cgs_run_config c = tiny(method);
    cgs_device d;
    cgs_trainer *t;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(cgs_trainer_create(&t, &c, data, path(run), &d, false));
    OK(cgs_trainer_run(t, NULL, NULL));
    cgs_trainer_destroy(t);
    cgs_device_close(&d);
}

/* A dataset of BYTES bytes: a file that ends with zeros is the same HDF5.  changed: (EPISODES) or
 * NULL */
static const char *record(const char *name, const uint8_t *changed, synthetic_change what) {
    const char *file = path(name);
    struct stat st;
    remove(file);
    OK(synthetic_dataset_changed(file, EPISODES, ROWS, SIDE, 1, changed, what));
    assert_int_equal(stat(file, &st), 0);
    assert_true(st.st_size <= BYTES);
    assert_int_equal(truncate(file, BYTES), 0);
    return file;
}

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs_held_XXXXXX");
    if (!mkdtemp(folder)) return 1;
    return cgs_split_episodes(EPISODES, (double)share, SEED, held) == CGS_OK ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

typedef struct bench {
    cgs_device d;
    cgs_dataset *data;
    cgs_loaded_model s;
} bench;

static void open_bench(bench *b, const char *data, const char *model) {
    OK(cgs_device_open(&b->d, "cpu", 1));
    OK(cgs_dataset_open(&b->data, data));
    OK(cgs_loaded_model_open(&b->s, model, &b->d, "f32", 4, b->data));
}

static void close_bench(bench *b) {
    cgs_loaded_model_close(&b->s);
    cgs_dataset_close(b->data);
    cgs_device_close(&b->d);
}

static cgs_prior_fit_config prior_defaults(void) {
    cgs_prior_fit_config c;
    cgs_section section = cgs_prior_fit_section(&c);
    cgs_config_defaults(&section, 1);
    return c;
}

/* fits both, and saves them in a folder of this name */
static void fit(const char *data, const char *model, const char *name) {
    bench b;
    cgs_prior *prior;
    cgs_decoder *decoder;
    cgs_prior_fit_config p = prior_defaults();
    cgs_decoder_fit_config q;
    cgs_section section = cgs_decoder_fit_section(&q);
    cgs_config_defaults(&section, 1);
    p.batch = 32, p.hidden = 16, p.updates = 6, p.every = 2;
    q.width = 16, q.layers = 1, q.heads = 2, q.frames = 64, q.batch = 8, q.updates = 4;
    open_bench(&b, data, model);
    OK(cgs_prior_fit(&prior, &b.s, b.data, &p, NULL, NULL));
    OK(cgs_decoder_fit(&decoder, &b.s, b.data, &q, NULL, NULL));
    OK(cgs_make_dirs(path(name)));
    OK(cgs_prior_save(path(name), prior));
    OK(cgs_decoder_save(path(name), decoder));
    cgs_prior_destroy(prior);
    cgs_decoder_destroy(decoder);
    close_bench(&b);
}

/* What is fitted to a model does not depend on its held-out episodes. */
static void test_bits(void **state) {
    (void)state;
    const char *const made[] = {"prior.safetensors", "prior.json", CGS_DECODER_FILE};
    train("lewm", record("data.h5", NULL, SYNTHETIC_SEEN), "model");
    fit(path("data.h5"), path("model"), "first");
    fit(record("data.h5", held, SYNTHETIC_SEEN), path("model"), "second");
    for (int i = 0; i < 3; i++) {
        char first[64], second[64];
        snprintf(first, sizeof first, "first/%s", made[i]);
        snprintf(second, sizeof second, "second/%s", made[i]);
        same_file(path(first), path(second));
    }
}

/* Nor does a model trained with the transition reference, whose scale is measured; it does depend
 * on the joints of its training episodes. */
static void test_joint_scale(void **state) {
    (void)state;
    const char *const method = "lewm-cgs-transition";
    uint8_t trained[EPISODES];
    for (int e = 0; e < EPISODES; e++) trained[e] = !held[e];
    train(method, record("joints.h5", NULL, SYNTHETIC_JOINTS), "plain");
    train(method, record("joints.h5", held, SYNTHETIC_JOINTS), "held");
    train(method, record("joints.h5", trained, SYNTHETIC_JOINTS), "trained");
    same_file(path("plain/model.safetensors"), path("held/model.safetensors"));
    char *plain, *other;
    size_t bytes, more;
    OK(cgs_read_file(path("plain/model.safetensors"), 1 << 24, &plain, &bytes));
    OK(cgs_read_file(path("trained/model.safetensors"), 1 << 24, &other, &more));
    assert_int_equal(bytes, more);
    assert_true(memcmp(plain, other, bytes) != 0);
    free(plain);
    free(other);
}

/* ---- the sets ---------------------------------------------------------------------- */

/* Every episode is held out, fitted or validates, each one of these, whatever the prior's seed;
 * fewer episodes are the first of those that the model trained on. */
static void test_sets(void **state) {
    (void)state;
    bench b;
    uint8_t out[EPISODES];
    open_bench(&b, path("data.h5"), path("model"));
    const cgs_source *src = cgs_dataset_source(b.data);
    OK(cgs_loaded_model_held_out(&b.s, src, out));
    assert_memory_equal(out, held, sizeof held);
    assert_int_equal(b.s.card.dataset_episodes, EPISODES);
    for (uint64_t seed = 0; seed < 5; seed++) {
        cgs_prior_fit_config c = prior_defaults();
        cgs_prior_episodes all, few;
        c.seed = seed;
        OK(cgs_prior_episodes_choose(&all, &b.s, src, &c));
        int seen[EPISODES] = {0}, validating = 0;
        for (int i = 0; i < all.of.count; i++) {
            seen[all.of.episode[i]]++;
            validating += all.validates[i];
        }
        for (int e = 0; e < EPISODES; e++) assert_int_equal(seen[e] + held[e], 1);
        assert_true(validating > 0 && validating < all.of.count);
        c.episodes = 10;
        OK(cgs_prior_episodes_choose(&few, &b.s, src, &c));
        assert_int_equal(few.of.count, 10);
        assert_memory_equal(few.of.episode, all.of.episode, 10 * sizeof *few.of.episode);
        cgs_prior_episodes_free(&all);
        cgs_prior_episodes_free(&few);
    }
    /* where nothing is held out, everything may be read */
    cgs_fit_episodes every;
    strcpy(b.s.card.split, "window");
    OK(cgs_fit_episodes_of(&every, &b.s, src));
    assert_int_equal(every.count, EPISODES);
    assert_string_equal(every.split.split, "");
    cgs_fit_episodes_free(&every);
    close_bench(&b);
}

/* ---- what is refused --------------------------------------------------------------- */

static void fitted_without(const bench *b, const cgs_split_record *r, bool fine) {
    const cgs_source *src = cgs_dataset_source(b->data);
    if (fine)
        OK(cgs_fitted_without_held_out(r, &b->s, src, "prior", "prior"));
    else
        REFUSED(cgs_fitted_without_held_out(r, &b->s, src, "prior", "prior"), CGS_EARG,
                "the prior is not known to have been fitted without");
}

static void test_records(void **state) {
    (void)state;
    bench b;
    cgs_fit_episodes f;
    cgs_split_record again;
    open_bench(&b, path("data.h5"), path("model"));
    OK(cgs_fit_episodes_of(&f, &b.s, cgs_dataset_source(b.data)));
    assert_string_equal(f.split.dataset, "data.h5");
    assert_int_equal(f.split.dataset_bytes, BYTES);
    fitted_without(&b, &f.split, true);
    cJSON *j = cgs_split_record_json(&f.split);
    OK(cgs_split_record_parse(&again, "x", j));
    assert_memory_equal(&again, &f.split, sizeof again);
    cJSON_ReplaceItemInObject(j, "seed", cJSON_CreateString("5x"));
    REFUSED(cgs_split_record_parse(&again, "x", j), CGS_EFORMAT, "x: \"split\"");
    cJSON_Delete(j);
    OK(cgs_split_record_parse(&again, "x", NULL)); /* a card from before records */
    fitted_without(&b, &again, false);
    again = f.split, again.seed++, fitted_without(&b, &again, false);
    again = f.split, again.dataset_bytes++, fitted_without(&b, &again, false);
    again = f.split, again.dataset_episodes++, fitted_without(&b, &again, false);
    again = f.split, again.train_fraction = 0.5, fitted_without(&b, &again, false);
    again = f.split, again.split[0] = '\0', fitted_without(&b, &again, false);
    cgs_fit_episodes_free(&f);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_joint_scale),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
