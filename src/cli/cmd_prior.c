/* cmd_prior.c - cgs prior: the matched behaviour-cloning head of a model. */
#include <math.h>

#include "cli/progress.h"
#include "cli/verbs.h"
#include "eval/clone.h"

typedef struct screen {
    cgs_progress bar;
    const char *phase;
    bool quiet;
} screen;

static bool on_progress(void *user, const char *what, double done, double total, double loss,
                        double best) {
    screen *s = user;
    char note[64] = "";
    if (s->phase != what) { /* another phase starts another bar */
        cgs_progress_end(&s->bar);
        cgs_progress_begin(&s->bar, what, total, s->quiet);
        s->phase = what;
    }
    if (!isnan(loss)) snprintf(note, sizeof note, "loss %.4f, best validation %.4f", loss, best);
    cgs_progress_update(&s->bar, done, note);
    return !cgs_interrupted();
}

typedef struct job {
    const char *model, *data, *device, *precision;
    int threads;
    bool quiet, json;
    cgs_clone_config config;
} job;

static cgs_status fit(const job *j, cgs_device *d, cgs_dataset *data) {
    screen s = {.quiet = j->quiet};
    cgs_subject subject;
    cgs_prior *p = NULL;
    CGS_TRY(cgs_subject_open(&subject, j->model, d, j->precision, 8, data));
    cgs_status rc = cgs_clone_fit(&p, &subject, data, &j->config, on_progress, &s);
    cgs_progress_end(&s.bar);
    if (rc == CGS_OK) rc = cgs_prior_save(j->model, p);
    if (rc == CGS_OK && j->json) {
        printf("{\"updates\":%llu,\"pairs\":%lld,\"validation_pairs\":%lld,\"loss\":%.6g,"
               "\"validation_loss\":%.6g,\"zero_loss\":%.6g}\n",
               (unsigned long long)p->card.updates, (long long)p->card.pairs,
               (long long)p->card.validation_pairs, p->card.loss, p->card.validation_loss,
               p->card.zero_loss);
    } else if (rc == CGS_OK) {
        printf("%s: prior of %d blocks, fitted to %lld pairs; best after %llu updates\n", j->model,
               p->card.horizon, (long long)p->card.pairs, (unsigned long long)p->card.updates);
        printf(
            "mean squared error: %.4f, validation %.4f on %lld pairs; the mean action has %.4f\n",
            p->card.loss, p->card.validation_loss, (long long)p->card.validation_pairs,
            p->card.zero_loss);
    }
    cgs_prior_destroy(p);
    cgs_subject_close(&subject);
    return rc;
}

static cgs_status prior(const job *j) {
    cgs_device d;
    cgs_dataset *data = NULL;
    cgs_catch_interrupt();
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    if (rc == CGS_OK) rc = fit(j, &d, data);
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc == CGS_ESTOPPED ? cgs_fail(CGS_EIO, "stopped before a prior was found") : rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.device = "auto"};
    cgs_words settings;
    cgs_section section = cgs_clone_section(&j.config);
    cgs_config_defaults(&section, 1);
    const cgs_opt opts[] = {
        {"model", "DIR", "model directory; the prior is stored in it", OPT_STR, &j.model, true},
        {"data", "F.h5", "dataset to clone", OPT_STR, &j.data, true},
        {"seed", "S", "seed (0)", OPT_U64, &j.config.seed, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "f32 or bf16, of the encoder (as trained)", OPT_STR, &j.precision,
         false},
        {"threads", "N", "threads (one a core)", OPT_INT, &j.threads, false},
        {"json", NULL, "the result as one JSON object", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &j.quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &settings);
    for (int i = 0; rc == CGS_OK && i < settings.count; i++)
        rc = cgs_config_assign(&section, 1, settings.word[i]);
    if (rc == CGS_OK) rc = prior(&j);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_prior = {
    "prior", "--model DIR --data F.h5 [prior.key=value ...]",
    "fits the behaviour-cloning prior of pg-cem and pg-mppi",
    "The latents of a frame and of the frame 25 rows later give the actions between them.\n"
    "Settings: prior.horizon, hidden, batch, updates, every, patience, lr, weight_decay,\n"
    "train_fraction, stride, episodes, seed.  The head with the lowest validation error is\n"
    "stored in the model directory; Ctrl-C ends the fitting early and stores the best so far.",
    run};
