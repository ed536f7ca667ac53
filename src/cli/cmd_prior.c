/* cmd_prior.c - cgs prior: fits a model's matched behaviour-cloning prior, or measures it. */
#include <math.h>
#include <stdlib.h>

#include "analysis/document.h"
#include "analysis/prior_quality.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "train/prior_fit.h"

static bool on_progress(void *user, const char *what, double done, double total, double loss,
                        double best) {
    char note[64] = "";
    if (!isnan(loss)) snprintf(note, sizeof note, "loss %.4f, best validation %.4f", loss, best);
    return cgs_phases_update(user, what, done, total, note);
}

typedef struct job {
    cgs_texts models;
    const char *data, *device, *precision, *out, *zero, *kind, *command;
    int threads;
    bool quiet, json, quality;
    cgs_prior_fit_config config;
    cgs_prior_quality_options measure;
} job;

/* ---- fitting ------------------------------------------------------------------------- */

static cgs_status print_card(const char *dir, const cgs_prior_card *c) {
    cJSON *o = cJSON_CreateObject();
    cgs_document_text_field(o, "model", dir);
    cJSON_AddNumberToObject(o, "updates", (double)c->updates);
    cJSON_AddNumberToObject(o, "pairs", (double)c->pairs);
    cJSON_AddNumberToObject(o, "validation_pairs", (double)c->validation_pairs);
    cgs_document_number(o, "loss", c->loss);
    cgs_document_number(o, "validation_loss", c->validation_loss);
    cgs_document_number(o, "zero_loss", c->zero_loss);
    if (c->spread) cgs_document_number(o, "likelihood", c->likelihood);
    cgs_status rc = cgs_document_print(o, stdout);
    cJSON_Delete(o);
    return rc;
}

static cgs_status fit(const job *j, const char *dir, cgs_device *d, cgs_dataset *data) {
    cgs_phases s = {.quiet = j->quiet};
    cgs_loaded_model loaded;
    cgs_prior *p = NULL;
    CGS_TRY(cgs_loaded_model_open(&loaded, dir, d, j->precision, CGS_FRAMES_BY_DEVICE, data));
    cgs_status rc = cgs_prior_fit(&p, &loaded, data, &j->config, on_progress, &s);
    cgs_progress_end(&s.bar);
    if (rc == CGS_OK) rc = cgs_prior_save(dir, p);
    if (rc == CGS_OK) rc = cgs_model_save_card(dir, loaded.lewm, &loaded.card);
    if (rc == CGS_OK && j->json) {
        rc = print_card(dir, &p->card);
    } else if (rc == CGS_OK) {
        printf("%s: prior of %d blocks, fitted to %lld pairs; best after %llu updates\n", dir,
               p->card.horizon, (long long)p->card.pairs, (unsigned long long)p->card.updates);
        printf(
            "mean squared error: %.4f, validation %.4f on %lld pairs; the mean action has %.4f\n",
            p->card.loss, p->card.validation_loss, (long long)p->card.validation_pairs,
            p->card.zero_loss);
        if (p->card.spread)
            printf("spread by likelihood: %.4f per validation value, up to a constant\n",
                   p->card.likelihood);
    }
    cgs_prior_destroy(p);
    cgs_loaded_model_close(&loaded);
    return rc;
}

static cgs_status fit_all(const job *j) {
    cgs_device d;
    cgs_dataset *data = NULL;
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    for (int i = 0; i < j->models.count && rc == CGS_OK; i++) {
        if (i > 0 && cgs_interrupted()) /* the one before ended early and was stored */
            rc = cgs_fail(CGS_EIO, "stopped after %d of %d priors", i, j->models.count);
        else
            rc = fit(j, j->models.item[i], &d, data);
    }
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc == CGS_ESTOPPED ? cgs_fail(CGS_EIO, "stopped before the first validation") : rc;
}

/* ---- measuring ----------------------------------------------------------------------- */

static double number(const cJSON *o, const char *name) {
    const cJSON *n = cJSON_GetObjectItem(o, name);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}

static void print_coverage(const cJSON *models) {
    const cJSON *m, *level;
    cJSON_ArrayForEach(m, models) {
        const cJSON *coverage = cJSON_GetObjectItem(m, "coverage");
        if (!coverage) continue;
        printf("%-24.24s recorded values within",
               cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")));
        cJSON_ArrayForEach(level, coverage) printf(
            " %s %%: %.1f %s", level->string, 100 * level->valuedouble, level->next ? "," : "");
        printf(" of the prior, whose spread is %s, %.3g in the mean\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(m, "spread")), number(m, "mean_spread"));
    }
}

static void print_quality(const cJSON *doc) {
    const cJSON *m;
    double starts = number(doc, "starts");
    printf("distance of the imagined end from the goal, by that of doing nothing (%s), %.0f "
           "starts\n",
           cJSON_GetStringValue(cJSON_GetObjectItem(doc, "zero")), starts);
    printf("%-24s %-34s %-25s %s\n", "model", "mean rho (published)", "median rho", "below 1");
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "models")) {
        const cJSON *mean = cJSON_GetObjectItem(m, "rho"),
                    *median = cJSON_GetObjectItem(m, "rho_median");
        char paper[16] = "";
        if (!isnan(number(m, "published")))
            snprintf(paper, sizeof paper, " (%.3f)", number(m, "published"));
        printf("%-24.24s %6.3f [%6.3f, %6.3f]%-10s  %6.3f [%6.3f, %6.3f]   %5.1f %%\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")), number(mean, "mean"),
               number(mean, "lo"), number(mean, "hi"), paper, number(median, "median"),
               number(median, "lo"), number(median, "hi"), 100 * number(m, "below_one") / starts);
    }
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "models")) if (!isnan(number(m, "gamma")))
        printf("%-24.24s plan.gn.gamma by variances: %.3g for gn (%.3g / %.3g), %.3g for pg-gn "
               "(%.3g / %.3g)\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")), number(m, "gamma"),
               number(m, "prediction_variance"), number(m, "plan_variance"),
               number(m, "prior_gamma"), number(m, "prediction_variance"),
               number(m, "prior_variance"));
    print_coverage(cJSON_GetObjectItem(doc, "models"));
}

static cgs_status measure(job *j) {
    cgs_phases s = {.quiet = j->quiet};
    cJSON *doc = NULL;
    cgs_prior_quality_options *o = &j->measure;
    CGS_TRY(cgs_nothing_parse(&o->nothing, j->zero));
    o->models = j->models.item;
    o->model_count = j->models.count;
    o->data = j->data;
    CGS_TRY(cgs_prior_kind_parse(&o->kind, j->kind));
    o->device = j->device;
    o->precision = j->precision;
    o->threads = j->threads;
    o->progress = cgs_on_phase;
    o->user = &s;
    cgs_status rc = cgs_prior_quality_run(&doc, o, j->command);
    cgs_progress_end(&s.bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped; nothing was written");
    if (rc == CGS_OK && j->out) rc = cgs_document_save(doc, j->out);
    if (rc == CGS_OK && j->json)
        rc = cgs_document_print(doc, stdout);
    else if (rc == CGS_OK)
        print_quality(doc);
    cJSON_Delete(doc);
    return rc;
}

/* ---- the verb ------------------------------------------------------------------------ */

/* options of the other mode are refused instead of ignored */
static cgs_status check(const job *j, const cgs_words *settings, const cgs_words *seeds) {
    if (j->quality && settings->count)
        return cgs_fail(CGS_EARG, "\"%.40s\" is a setting of the fit, but --quality fits nothing",
                        settings->word[0]);
    if (!j->quality && (j->out || seeds->count))
        return cgs_fail(CGS_EARG, "--%s belongs to --quality", j->out ? "out" : "seeds");
    return CGS_OK;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.device = "auto",
             .zero = "control",
             .kind = "behaviour",
             .measure = cgs_prior_quality_defaults()};
    cgs_words settings, models = {0}, seeds = {0};
    uint64_t seed[CGS_LIST_MAX];
    char command[4096];
    int seed_count;
    cgs_section section = cgs_prior_fit_section(&j.config);
    cgs_config_defaults(&section, 1);
    j.command = cgs_command_text(command, sizeof command, self->name, argc, argv);
    cgs_prior_quality_options *q = &j.measure;
    const cgs_opt opts[] = {
        {"model", "DIR ...", "model directories; each gets its prior", OPT_LIST, &models, true},
        {"data", "F.h5", "dataset to clone, or to draw starts from", OPT_STR, &j.data, true},
        {"seed", "S", "seed (0)", OPT_U64, &j.config.seed, false},
        {"kind", "KIND", "behaviour: cloned; inverse: of what the model imagines (behaviour)",
         OPT_STR, &j.kind, false},
        {"quality", NULL, "measure the stored priors instead of fitting", OPT_FLAG, &j.quality,
         false},
        {"out", "Q.json", "result file of --quality", OPT_STR, &j.out, false},
        {"seeds", "LIST", "seeds of the starts (0,1,42)", OPT_LIST, &seeds, false},
        {"episodes", "N", "starts per seed (50)", OPT_COUNT, &q->episodes, false},
        {"goal-offset", "N", "rows from start to goal (25)", OPT_COUNT, &q->goal_offset, false},
        {"held-out", NULL, "starts from episodes held out of every model's training", OPT_FLAG,
         &q->held_out, false},
        {"zero", "Z",
         "what counts as doing nothing, zero control or the mean action: control, mean (control)",
         OPT_STR, &j.zero, false},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &q->env, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "precision of the model, f32 or bf16 (as trained)", OPT_STR,
         &j.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.threads, false},
        {"json", NULL, "print the results as JSON objects", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &j.quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &settings);
    if (rc == CGS_OK) rc = cgs_env_option(&q->env);
    if (rc == CGS_OK) rc = check(&j, &settings, &seeds);
    snprintf(j.config.kind.s, sizeof j.config.kind.s, "%s", j.kind);
    for (int i = 0; rc == CGS_OK && i < settings.count; i++)
        rc = cgs_config_assign(&section, 1, settings.word[i]);
    if (rc == CGS_OK) rc = cgs_list_texts(&j.models, "model", &models);
    if (rc == CGS_OK) rc = cgs_list_u64(seed, &seed_count, "seeds", &seeds);
    if (rc == CGS_OK && seed_count) {
        q->seeds = seed;
        q->seed_count = seed_count;
    }
    cgs_catch_interrupt_to_save();
    if (rc == CGS_OK) rc = j.quality ? measure(&j) : fit_all(&j);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_prior = {
    "prior", "--model DIR ... --data F.h5 [--quality [--out Q.json]] [prior.key=value ...]",
    "fits the prior of the planners that start from one, or measures it",
    "The latents of a frame and of the frame 25 rows later give the actions between them.  Only\n"
    "episodes that the model trained on are read; some of them validate.\n"
    "With --kind inverse: those of a frame and of what the model imagines after actions that were\n"
    "recorded elsewhere; planners use it with plan.inverse=true.  With prior.spread=learned the\n"
    "prior has a spread, calibrated on the episodes that validate, and planners draw with it.\n"
    "The model's card gets the error of its predictions, for plan.gn.gamma=auto.\n"
    "Settings: prior.horizon, kind, spread, hidden, batch, updates, every, patience, lr, "
    "weight_decay,\n"
    "train_fraction, stride, episodes, seed.  The head with the lowest validation error is\n"
    "stored in the model directory; Ctrl-C ends the fitting early and stores the best so far.\n"
    "With --quality: at the starts that cgs eval draws for the same seeds, how far the imagined\n"
    "end of the prior's plan is from the goal, divided by how far doing nothing would leave it\n"
    "(rho; 0 is the goal).  The success of a prior alone is that of pg-mppi with one sample.\n"
    "  cgs prior --quality --model runs/lewm runs/lewm-cgs --data pusht.h5 \\\n"
    "            --out runs/prior-quality.json\n"
    "  cgs eval --planner pg-mppi --samples 1 --model runs/lewm runs/lewm-cgs --data pusht.h5",
    run};
