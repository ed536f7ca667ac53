/* test_train.c - a whole training run: it learns, it continues bit for bit after a kill, and
 * it refuses what cannot work. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "expect.h"
#include "model/store.h"
#include "ops/cpu/gemm.h"
#include "same_file.h"
#include "synthetic.h"
#include "train/checkpoint.h"
#include "train/train.h"

extern char **environ;

static char folder[64], data[128];

/* a model so small that hundreds of updates take seconds */
static cgs_run_config tiny(void) {
    cgs_run_config c;
    OK(cgs_run_preset(&c, "small"));
    c.model.image_size = 32;
    c.model.width = 48;
    c.model.encoder_layers = 2;
    c.model.encoder_mlp = 96;
    c.model.projector_hidden = 64;
    c.model.predictor_layers = 2;
    c.model.predictor_heads = 2;
    c.model.predictor_head_width = 16;
    c.model.predictor_mlp = 96;
    c.model.action_hidden = 64;
    c.model.frameskip = 2;
    c.train.batch = 16;
    c.train.projections = 32;
    c.train.updates = 20;
    c.train.checkpoint_every = 10;
    c.train.validate_every = 1000;
    c.train.validate_batches = 4;
    return c;
}

static void path_of(char out[256], const char *run, const char *name) {
    snprintf(out, 256, "%s/%s%s%s", folder, run, *name ? "/" : "", name);
}

static cgs_trainer *start(const cgs_run_config *c, const char *run, cgs_device *d, bool resume) {
    char dir[256];
    cgs_trainer *t;
    path_of(dir, run, "");
    OK(cgs_device_open(d, "cpu", 2));
    OK(cgs_trainer_create(&t, c, data, dir, d, resume));
    return t;
}

static void finish(cgs_trainer *t, cgs_device *d) {
    cgs_trainer_destroy(t);
    cgs_device_close(d);
}

/* Training in a process of its own, because a process that runs OpenMP cannot fork: this
 * program starts itself as `test_train worker FOLDER RUN PRECISION new|resume|die`.  The precision
 * "class" is bf16 with the class token and both heads in f32, "long" is bf16 with layers of so many
 * rows that their gradients are made in one pass where there are pairs of bf16, "muon" is f32 with
 * another optimiser. */
static cgs_run_config resume_config(const char *precision) {
    cgs_run_config c = tiny();
    bool apart = !strcmp(precision, "class"), many = !strcmp(precision, "long");
    bool muon = !strcmp(precision, "muon");
    strcpy(c.train.precision.s, apart || many ? "bf16" : muon ? "f32" : precision);
    strcpy(c.train.optimiser.s, muon ? "muon" : "adamw");
    if (apart) c.model.class_bits = 32;
    if (many) {
        c.model.width = 96;
        c.model.encoder_mlp = 192;
        c.train.batch = 32;
    }
    c.train.cgs_weight = 0.5f;
    c.train.cache = !strcmp(precision, "f32"); /* the other one straight from HDF5 */
    return c;
}

static int worker(const char *run, const char *precision, const char *what) {
    cgs_run_config c = resume_config(precision);
    cgs_device d;
    cgs_trainer *t = start(&c, run, &d, !strcmp(what, "resume"));
    if (!strcmp(what, "die")) { /* without warning, three updates after a checkpoint */
        cgs_step_info info;
        for (int i = 0; i < 13; i++) {
            if (cgs_trainer_step(t, &info) != CGS_OK) return 1;
            if (info.step == 10 && cgs_trainer_save(t) != CGS_OK) return 1;
        }
        raise(SIGKILL);
    }
    cgs_status rc = cgs_trainer_run(t, NULL, NULL);
    finish(t, &d);
    return rc == CGS_OK ? 0 : 1;
}

static int spawn(const char *run, const char *precision, const char *what) {
    char *argv[] = {"test_train",      "worker",     folder, (char *)run,
                    (char *)precision, (char *)what, NULL};
    pid_t child;
    int status = -1;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    waitpid(child, &status, 0);
    return status;
}

static void resume_is_exact(const char *precision) {
    char whole[32], broken[32];
    snprintf(whole, sizeof whole, "whole-%s", precision);
    snprintf(broken, sizeof broken, "broken-%s", precision);
    int status = spawn(broken, precision, "die");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(spawn(broken, precision, "resume"), 0);
    assert_int_equal(spawn(whole, precision, "new"), 0);

    static const char *const files[] = {"checkpoint.safetensors", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char a[256], b[256];
        path_of(a, whole, files[i]);
        path_of(b, broken, files[i]);
        same_file(a, b);
    }
    /* no line of the metrics is missing or doubled */
    char path[256], *text;
    size_t bytes;
    path_of(path, broken, "metrics.jsonl");
    OK(cgs_read_file(path, 1 << 20, &text, &bytes));
    long expected = 1;
    for (char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strstr(line, "\"loss\"") && strstr(line, "\"loss\"") < strchr(line, '\n'))
            assert_int_equal(atol(line + strlen("{\"step\":")), expected++);
    assert_int_equal(expected, 21);
    free(text);
}

static void test_resume_f32(void **state) {
    (void)state;
    resume_is_exact("f32");
}

static void test_resume_bf16(void **state) {
    (void)state;
    resume_is_exact("bf16");
}

static void test_resume_class(void **state) {
    (void)state;
    resume_is_exact("class");
}

static bool any_in_one_pass(const cgs_device *d) {
    cgs_gemm_choice c;
    for (int i = 0; cgs_gemm_choice_at(d, i, &c); i++)
        if (c.p.joint) return true;
    return false;
}

static void test_resume_long(void **state) {
    (void)state;
    cgs_run_config c = resume_config("long");
    cgs_device d;
    cgs_trainer *t = start(&c, "long", &d, false);
    assert_int_equal(any_in_one_pass(&d), cgs_cpu_of(&d)->pairs && !cgs_cpu_of(&d)->tiles);
    finish(t, &d);
    resume_is_exact("long");
}

static void test_resume_muon(void **state) {
    (void)state;
    resume_is_exact("muon");
}

/* The same bytes on one thread and on three, as each matrix is one thread's; and a kind that there
 * is not is refused. */
static void test_muon_threads(void **state) {
    (void)state;
    uint64_t sum[2];
    cgs_run_config c = tiny();
    strcpy(c.train.optimiser.s, "muon");
    for (int k = 0; k < 2; k++) {
        char dir[256];
        cgs_device d;
        cgs_trainer *t;
        cgs_step_info info;
        path_of(dir, k ? "three" : "one", "");
        OK(cgs_device_open(&d, "cpu", k ? 3 : 1));
        OK(cgs_trainer_create(&t, &c, data, dir, &d, false));
        for (int i = 0; i < 4; i++) OK(cgs_trainer_step(t, &info));
        OK(cgs_params_checksum(cgs_trainer_model(t)->params, &sum[k]));
        finish(t, &d);
    }
    assert_int_equal(sum[0], sum[1]);

    char dir[256];
    cgs_device d;
    cgs_trainer *t;
    path_of(dir, "kind", "");
    OK(cgs_device_open(&d, "cpu", 1));
    strcpy(c.train.optimiser.s, "muons");
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "not recipe, adamw or muon"));
    cgs_device_close(&d);
}

/* mean of the last losses of a term, and of the first */
static void learn(float cgs_weight, const char *run, double first[CGS_TERMS],
                  double last[CGS_TERMS]) {
    cgs_run_config c = tiny();
    c.train.updates = 240;
    c.train.checkpoint_every = 1000;
    c.train.lr = 2e-3f;
    c.train.cgs_weight = cgs_weight;
    c.model.dropout = 0;
    cgs_device d;
    cgs_trainer *t = start(&c, run, &d, false);
    memset(first, 0, CGS_TERMS * sizeof *first);
    memset(last, 0, CGS_TERMS * sizeof *last);
    while (!cgs_trainer_done(t)) {
        cgs_step_info info;
        OK(cgs_trainer_step(t, &info));
        for (int k = 0; k < CGS_TERMS; k++) {
            if (info.step <= 20) first[k] += info.term[k] / 20;
            if (info.step > 220) last[k] += info.term[k] / 20;
        }
    }
    finish(t, &d);
}

static void test_learns(void **state) {
    (void)state;
    double first[CGS_TERMS], with[CGS_TERMS], without[CGS_TERMS];
    learn(0, "plain", first, without);
    print_message("lewm      pred %.4f -> %.4f  sigreg %.3f -> %.3f  cgs %.4f -> %.4f\n", first[0],
                  without[0], first[1], without[1], first[3], without[3]);
    learn(0.5f, "straight", first, with);
    print_message("lewm-cgs  pred %.4f -> %.4f  sigreg %.3f -> %.3f  cgs %.4f -> %.4f\n", first[0],
                  with[0], first[1], with[1], first[3], with[3]);
    assert_true(with[CGS_TERM_PRED] < first[CGS_TERM_PRED]);
    assert_true(with[CGS_TERM_SIGREG] < first[CGS_TERM_SIGREG]);
    assert_true(with[CGS_TERM_CGS] < first[CGS_TERM_CGS]);
    assert_true(with[CGS_TERM_CGS] < 0.7 * without[CGS_TERM_CGS]);
}

static void test_refusals(void **state) {
    (void)state;
    cgs_device d;
    cgs_trainer *t;
    char dir[256];
    cgs_run_config c = tiny();
    OK(cgs_device_open(&d, "cpu", 2));
    path_of(dir, "refused", "");

    c.model.action_dim = 5;
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "model.action_dim is 5"));
    c = tiny();
    c.model.image_size = 64;
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "frames are 32x32"));
    c = tiny();
    c.train.batch = 60000;
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "fewer than train.batch"));
    c = tiny();
    c.model.frameskip = 60;
    assert_int_not_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_OK);
    c = tiny();
    strcpy(c.train.reference.s, "transition");
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "qpos"));
    c = tiny();
    strcpy(c.train.reference.s, "xyz");
    assert_int_equal(cgs_trainer_create(&t, &c, data, dir, &d, false), CGS_EARG);
    cgs_device_close(&d);
}

/* a loss that is not finite stops the run and leaves the last checkpoint alone */
static void test_not_finite(void **state) {
    (void)state;
    cgs_run_config c = tiny();
    cgs_device d;
    cgs_trainer *t = start(&c, "poisoned", &d, false);
    cgs_step_info info;
    OK(cgs_trainer_step(t, &info));
    OK(cgs_trainer_save(t));
    cgs_params *p = cgs_trainer_model(t)->params;
    const cgs_param *e = cgs_params_find(p, "projector.net.3.bias");
    float *v = malloc(e->count * sizeof *v);
    OK(cgs_param_read(p, e, v));
    v[0] = NAN;
    OK(cgs_param_write(p, e, v));
    free(v);
    assert_int_equal(cgs_trainer_step(t, &info), CGS_ENUMERIC);
    assert_non_null(strstr(cgs_last_error(), "last checkpoint"));
    finish(t, &d);
    t = start(&c, "poisoned", &d, true);
    OK(cgs_trainer_step(t, &info));
    assert_int_equal(info.step, 2);
    finish(t, &d);
}

/* a checkpoint that is damaged anywhere is refused with a sentence */
static void test_damaged_checkpoint(void **state) {
    (void)state;
    cgs_run_config c = tiny();
    cgs_device d;
    cgs_trainer *t = start(&c, "damaged", &d, false);
    OK(cgs_trainer_save(t));
    finish(t, &d);

    char path[256], dir[256], *bytes;
    size_t n;
    path_of(path, "damaged", "checkpoint.safetensors");
    path_of(dir, "damaged", "");
    OK(cgs_read_file(path, (size_t)1 << 30, &bytes, &n));
    OK(cgs_device_open(&d, "cpu", 2));
    cgs_lewm *m;
    OK(cgs_lewm_create(&m, &c.model, &d, true));
    cgs_params *all = &m->params;
    for (int i = 0; i < 60; i++) {
        size_t at = i < 40 ? (size_t)i * 97 : n - 1 - (size_t)i * 1009; /* header, then payload */
        bytes[at] ^= 0x10;
        OK(cgs_write_file(path, bytes, n));
        bytes[at] ^= 0x10;
        cgs_checkpoint k;
        cgs_status rc = cgs_checkpoint_load(path, &all, 1, &k);
        if (rc == CGS_OK)
            cgs_checkpoint_free(&k); /* a flip inside the settings text is legal */
        else
            assert_int_equal(rc, CGS_EFORMAT);
        if (at > n / 2) assert_int_equal(rc, CGS_EFORMAT);
    }
    for (size_t cut = 0; cut < n; cut += n / 17) {
        OK(cgs_write_file(path, bytes, cut));
        cgs_checkpoint k;
        assert_int_equal(cgs_checkpoint_load(path, &all, 1, &k), CGS_EFORMAT);
    }
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    free(bytes);
}

/* a disk that fills up while a checkpoint is written: the previous one still loads */
static void test_full_disk(void **state) {
    (void)state;
    cgs_run_config c = tiny();
    cgs_device d;
    cgs_trainer *t = start(&c, "full", &d, false);
    cgs_step_info info;
    OK(cgs_trainer_save(t));
    OK(cgs_trainer_step(t, &info));
    struct rlimit keep, tight;
    getrlimit(RLIMIT_FSIZE, &keep);
    signal(SIGXFSZ, SIG_IGN);
    tight = keep;
    tight.rlim_cur = 50000;
    setrlimit(RLIMIT_FSIZE, &tight);
    cgs_status rc = cgs_trainer_save(t);
    setrlimit(RLIMIT_FSIZE, &keep);
    assert_int_equal(rc, CGS_EIO);
    finish(t, &d);
    t = start(&c, "full", &d, true);
    OK(cgs_trainer_step(t, &info));
    assert_int_equal(info.step, 1); /* from the old checkpoint, before any update */
    finish(t, &d);
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs-train-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(data, sizeof data, "%s/data.h5", folder);
    return synthetic_dataset(data, 24, 30, 32, 7) == CGS_OK ? 0 : 1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[1], "worker")) {
        snprintf(folder, sizeof folder, "%s", argv[2]);
        snprintf(data, sizeof data, "%s/data.h5", folder);
        return worker(argv[3], argv[4], argv[5]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_f32),   cmocka_unit_test(test_resume_bf16),
        cmocka_unit_test(test_resume_class), cmocka_unit_test(test_resume_long),
        cmocka_unit_test(test_resume_muon),  cmocka_unit_test(test_muon_threads),
        cmocka_unit_test(test_learns),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_damaged_checkpoint),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
