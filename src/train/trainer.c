/* trainer.c - one training run: data, tapes, updates, checkpoints.
 *
 * All randomness is a function of the seed and the update number, and the loader's order of the
 * seed and the epoch; so the state of a run is its parameter buffers and one number, and a killed
 * run resumes bit for bit from its last checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/build.h"
#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/threads.h"
#include "data/accept.h"
#include "data/loader.h"
#include "data/packed.h"
#include "data/stats.h"
#include "data/windows.h"
#include "loss/reference.h"
#include "model/store.h"
#include "train/checkpoint.h"
#include "train/frames.h"
#include "train/gradient_monitor.h"
#include "train/initial_weights.h"
#include "train/learner.h"
#include "train/learning_check.h"
#include "train/metrics.h"
#include "train/optimiser.h"
#include "train/resume.h"
#include "train/schedule.h"
#include "train/train.h"
#include "train/training_recipe.h"

/* beyond every epoch and update of a run: batches and random numbers of their own */
#define OTHER_EPOCH (UINT64_C(1) << 40)
/* batches that batch norm's statistics are computed from */
#define STATISTICS_PASSES 16

struct cgs_trainer {
    cgs_run_config config;
    char dir[4096], checkpoint[4096];
    cgs_device *device;

    cgs_dataset *dataset;
    cgs_packed *packed;
    const cgs_source *source;
    cgs_windows windows;
    cgs_split split;
    double action_mean[CGS_CARD_ACTIONS], action_std[CGS_CARD_ACTIONS];
    int64_t stats_rows;
    char identity[512]; /* of the dataset, to refuse resuming with another one */

    cgs_reference reference;
    float *reference_values; /* (B, N, R) */
    float *mask;             /* (B, N)    */
    int64_t *row;            /* (B, T) of each frame of a batch */

    int image_size, history, action_dim, frameskip; /* of the model */
    bool constant;                                  /* learning rate */
    cgs_learner learner;
    cgs_optimiser optimiser;
    cgs_model *model;
    cgs_tape *train_tape, *valid_tape;
    cgs_objective train, valid;
    cgs_frames frames;
    cgs_loader *loader;
    cgs_batch ahead; /* the next batch, if it was ready during the last update */
    bool have_ahead;
    cgs_metrics *metrics;
    cgs_gradient_monitor monitor;
    cgs_learning_check check;

    const cgs_training_recipe *recipe;
    float *latents; /* (B * T, D) of a batch, to compare predictions with trivial ones */
    /* statistics of batch norm: averaged over the updates so far, and computed with the present
     * weights (own, of update own_step) */
    float *running, *own;
    bool have_own;
    uint64_t own_step;

    bool resumed; /* from a checkpoint */
    uint64_t step, total, per_epoch;
    double started; /* of the current update, for the rate */
};

/* ---- data --------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* the settings that all models have in common */
static cgs_status read_sizes(cgs_trainer *t) {
    const cgs_lewm_config *m = &t->config.model;
    const cgs_dinowm_config *d = &t->config.dino;
    bool dino = cgs_run_is_dinowm(&t->config);
    t->image_size = dino ? d->image_size : m->image_size;
    t->history = dino ? d->history : m->history;
    t->action_dim = dino ? d->action_dim : m->action_dim;
    t->frameskip = dino ? d->frameskip : m->frameskip;
    CGS_TRY(cgs_schedule_parse(t->config.train.schedule.s, &t->constant));
    CGS_TRY(cgs_training_recipe_find(&t->recipe, t->config.train.recipe.s));
    if (dino && strcmp(t->recipe->name, "published") != 0)
        return cgs_fail(CGS_EARG, "train.recipe: %s is for LeWM, DINO-WM has published alone",
                        t->recipe->name);
    return dino ? cgs_dinowm_check(d) : cgs_lewm_check(m);
}

/* the same judgement as that of cgs data check */
static cgs_status accept_data(cgs_trainer *t, const char *path) {
    const cgs_needs needs = {.image_size = t->image_size,
                             .action_dim = t->action_dim,
                             .num_steps = t->history + 1,
                             .frameskip = t->frameskip};
    cgs_findings found = {0};
    cgs_accepted accepted;
    CGS_TRY(cgs_dataset_accept(&found, &accepted, t->dataset, &needs));
    CGS_TRY(cgs_findings_report(&found, path));
    for (int i = 0; i < found.remarks && i < CGS_FINDINGS; i++)
        cgs_log(CGS_INFO, "%s: %s", path, found.remark[i].s);
    return CGS_OK;
}

static cgs_status open_data(cgs_trainer *t, const char *path) {
    CGS_TRY(cgs_dataset_open(&t->dataset, path));
    t->source = cgs_dataset_source(t->dataset);
    CGS_TRY(accept_data(t, path));

    struct stat st;
    long long bytes = stat(path, &st) == 0 ? (long long)st.st_size : 0;
    snprintf(t->identity, sizeof t->identity, "%.300s %lld bytes %d episodes %lld rows",
             base_name(path), bytes, t->source->episodes, (long long)t->source->rows);

    cgs_stats stats;
    CGS_TRY(cgs_stats_compute(&stats, t->source, "action"));
    t->stats_rows = stats.rows;
    for (int i = 0; i < t->action_dim; i++) {
        t->action_mean[i] = stats.mean[i];
        t->action_std[i] = stats.std_population[i];
    }
    if (t->config.train.cache) {
        CGS_TRY(cgs_packed_of(&t->packed, path, t->config.cache, t->image_size));
        t->source = cgs_packed_source(t->packed);
    }

    CGS_TRY(cgs_windows_build(&t->windows, t->source, t->history + 1, t->frameskip));
    const cgs_train_config *c = &t->config.train;
    if (!strcmp(c->split.s, "episode"))
        return cgs_split_by_episode(&t->split, &t->windows, t->source->episodes, c->train_fraction,
                                    c->seed);
    if (!strcmp(c->split.s, "window"))
        return cgs_split_by_window(&t->split, t->windows.count, c->train_fraction,
                                   (uint32_t)c->seed);
    return cgs_fail(CGS_EARG, "data.split: \"%.40s\" is not episode or window", c->split.s);
}

/* trained (episodes): 1 for those that a training window lies in */
static void mark_trained(const cgs_trainer *t, uint8_t *trained) {
    for (int64_t i = 0; i < t->split.train_count; i++)
        trained[t->windows.episode[t->split.train[i]]] = 1;
}

/* scale of joint displacements, over all pairs of frames one model step apart in the episodes that
 * are trained on */
static cgs_status measure_joints(cgs_trainer *t) {
    const char *column = cgs_reference_column(&t->reference);
    if (!column) return CGS_OK;
    int at = cgs_source_find(t->source, column), skip = t->frameskip;
    if (at < 0 || t->source->columns[at].values != 2)
        return cgs_fail(CGS_EARG, "%s: the transition reference needs a column \"%s\" of 2 numbers",
                        t->source->path, column);
    size_t rows = (size_t)t->source->rows;
    float *q = malloc(rows * 2 * sizeof *q), *before = malloc(rows * 2 * sizeof *q),
          *after = malloc(rows * 2 * sizeof *q);
    uint8_t *trained = calloc((size_t)t->source->episodes, 1);
    cgs_status rc =
        q && before && after && trained ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for joints");
    long pairs = 0;
    if (rc == CGS_OK) mark_trained(t, trained);
    for (int e = 0; rc == CGS_OK && e < t->source->episodes; e++) {
        if (!trained[e]) continue;
        int n = t->source->ep_len[e];
        rc = t->source->read_rows(t->source->self, at, t->source->ep_offset[e], n, 1, q);
        for (int i = 0; rc == CGS_OK && i + skip < n && (size_t)pairs < rows; i++, pairs++) {
            memcpy(before + 2 * pairs, q + 2 * i, 2 * sizeof *q);
            memcpy(after + 2 * pairs, q + 2 * (i + skip), 2 * sizeof *q);
        }
    }
    if (rc == CGS_OK) cgs_reference_joint_scale(&t->reference, before, after, pairs);
    free(q);
    free(before);
    free(after);
    free(trained);
    return rc;
}

static cgs_status make_reference(cgs_trainer *t) {
    t->reference = (cgs_reference){.frameskip = t->frameskip, .action_dim = t->action_dim};
    CGS_TRY(cgs_reference_kind_of(t->config.train.reference.s, &t->reference.kind));
    CGS_TRY(cgs_grasp_rule_of(t->config.train.grasp.s, &t->reference.grasp));
    bool cube = t->reference.kind == CGS_REF_XYZ || t->reference.kind == CGS_REF_XYZ_GRASP;
    if (cube && t->action_dim != 5)
        return cgs_fail(CGS_EARG,
                        "loss.cgs.reference: %s needs actions (dx, dy, dz, dyaw, gripper), "
                        "these have %d numbers",
                        t->config.train.reference.s, t->action_dim);
    CGS_TRY(measure_joints(t));
    size_t rows = (size_t)t->config.train.batch * (size_t)t->history;
    t->reference_values = malloc(rows * (size_t)cgs_reference_width(&t->reference) * sizeof(float));
    t->mask = malloc(rows * sizeof(float));
    t->row = malloc((rows + (size_t)t->config.train.batch) * sizeof *t->row);
    return t->reference_values && t->mask && t->row
               ? CGS_OK
               : cgs_fail(CGS_ENOMEM, "no memory for references");
}

static cgs_status make_loader(cgs_trainer *t, cgs_loader **out, bool training, uint64_t epoch,
                              int64_t batch) {
    const cgs_train_config *c = &t->config.train;
    cgs_loader_config l = {
        .source = t->source,
        .windows = &t->windows,
        .ids = training ? t->split.train : t->split.held,
        .id_count = training ? t->split.train_count : t->split.held_count,
        .batch = c->batch,
        .image_size = t->image_size,
        .action_mean = t->action_mean,
        .action_std = t->action_std,
        .seed = c->seed,
        .shuffle = true, /* validation windows too: a fixed sample over all held-out episodes */
        .start_epoch = epoch,
        .start_batch = batch,
        .threads = c->workers,
        .no_pixels = !t->learner.wants_pixels || t->frames.all,
    };
    const char *column = cgs_reference_column(&t->reference);
    if (column) l.extras[l.extra_count++] = column;
    t->learner.extra = l.extra_count;
    if (t->learner.column) l.extras[l.extra_count++] = t->learner.column;
    return cgs_loader_create(out, &l);
}

/* ---- creation ------------------------------------------------------------------------ */

static cgs_status make_model(cgs_trainer *t, const char *data) {
    const cgs_train_config *c = &t->config.train;
    bool bf16 = !strcmp(c->precision.s, "bf16");
    if (!bf16 && strcmp(c->precision.s, "f32") != 0)
        return cgs_fail(CGS_EARG, "train.precision: \"%.20s\" is not f32 or bf16", c->precision.s);
    bool per_window = !strcmp(c->average.s, "window");
    if (!per_window && strcmp(c->average.s, "pooled") != 0)
        return cgs_fail(CGS_EARG, "loss.cgs.average: \"%.20s\" is not pooled or window",
                        c->average.s);

    cgs_dtype act = bf16 ? CGS_BF16 : CGS_F32;
    cgs_learner *l = &t->learner;
    l->cls = cgs_learner_class_of(&t->config);
    CGS_TRY(l->cls->open(l, &t->config, t->source, data, t->device, act));
    t->model = l->model;
    const char *kind = strcmp(c->optimiser.s, "recipe") ? c->optimiser.s : t->recipe->optimiser;
    CGS_TRY(cgs_optimiser_open(&t->optimiser, t->model->params, kind, l->group, l->groups));
    size_t stats = t->model->params->stats;
    t->latents = malloc((size_t)c->batch * (size_t)(t->history + 1) * (size_t)t->model->width *
                        sizeof *t->latents);
    t->running = malloc((stats + 1) * sizeof *t->running);
    t->own = malloc((stats + 1) * sizeof *t->own);
    if (!t->latents || !t->running || !t->own) return cgs_fail(CGS_ENOMEM, "no memory for latents");

    int width = cgs_reference_width(&t->reference);
    uint64_t key = cgs_rng_stream(c->seed, CGS_STREAM_SIGREG, 0).key;
    CGS_TRY(cgs_tape_create(&t->train_tape, t->device, act));
    CGS_TRY(l->cls->objective(&t->train, t->train_tape, t->model, c->batch, width, c->projections,
                              per_window, key, true));
    if (t->split.held_count < c->batch) {
        cgs_log(CGS_WARN, "only %lld held-out windows: no validation (a batch has %d)",
                (long long)t->split.held_count, c->batch);
        return CGS_OK;
    }
    CGS_TRY(cgs_tape_create(&t->valid_tape, t->device, act));
    cgs_tape_freeze_parameters(t->valid_tape);
    return l->cls->objective(&t->valid, t->valid_tape, t->model, c->batch, width, c->projections,
                             per_window, key, false);
}

/* A resumed run may be longer than it was, never shorter. */
static cgs_status check_length(const cgs_trainer *t, const cgs_run_config *before) {
    const cgs_train_config *c = &before->train;
    uint64_t was = c->updates ? (uint64_t)c->updates : t->per_epoch * (uint64_t)c->epochs;
    if (t->total < was)
        return cgs_fail(CGS_EARG, "%s is of a run of %llu updates: %llu are fewer", t->checkpoint,
                        (unsigned long long)was, (unsigned long long)t->total);
    if (t->total > was)
        cgs_log(CGS_INFO,
                "%llu updates instead of %llu: the learning rate is that of the longer run",
                (unsigned long long)t->total, (unsigned long long)was);
    return CGS_OK;
}

/* Settings first: of a model with other sizes the buffers would not fit either. */
static cgs_status check_checkpoint(const cgs_trainer *t) {
    cgs_checkpoint c;
    cgs_run_config before;
    CGS_TRY(cgs_checkpoint_inspect(t->checkpoint, &c));
    cgs_status rc = cgs_resume_fits(&before, &c, t->checkpoint, &t->config, t->identity);
    if (rc == CGS_OK) rc = check_length(t, &before);
    cgs_checkpoint_free(&c);
    return rc;
}

static cgs_status load_checkpoint(cgs_trainer *t) {
    cgs_checkpoint c;
    CGS_TRY(check_checkpoint(t));
    CGS_TRY(cgs_checkpoint_load(t->checkpoint, &t->model->params, 1, &c));
    t->step = c.step;
    t->model->batches_tracked = c.batches_tracked;
    cgs_checkpoint_free(&c);
    cgs_log(CGS_INFO, "continuing after update %llu", (unsigned long long)t->step);
    return CGS_OK;
}

/* What is in the directory is continued, or replaced only if that is asked for. */
static cgs_status look_around(cgs_trainer *t, bool resume) {
    char weights[4096];
    CGS_TRY(cgs_path_join(weights, sizeof weights, t->dir, CGS_WEIGHTS_FILE));
    t->resumed = resume && cgs_file_exists(t->checkpoint);
    if (t->resumed || t->config.force) return CGS_OK;
    if (cgs_file_exists(t->checkpoint))
        return cgs_fail(CGS_EARG,
                        "%s exists: continue it with --resume, replace it with --force or choose "
                        "another folder",
                        t->checkpoint);
    if (cgs_file_exists(weights))
        return cgs_fail(CGS_EARG,
                        "%s exists and has no checkpoint: train it further in another folder with "
                        "--init %s, or replace it with --force",
                        weights, t->dir);
    return CGS_OK;
}

static cgs_status resume_or_start(cgs_trainer *t) {
    if (t->resumed)
        CGS_TRY(load_checkpoint(t));
    else if (t->config.train.init.s[0])
        CGS_TRY(cgs_initial_weights(t->model->params, t->config.train.init.s));
    CGS_TRY(cgs_make_dirs(t->dir));
    if (!t->resumed) remove(t->checkpoint); /* of the run that is replaced */
    char path[4096];
    char *text = cgs_run_text(&t->config);
    if (!text) return cgs_fail(CGS_ENOMEM, "no memory for settings");
    cgs_status rc = cgs_path_join(path, sizeof path, t->dir, "config.txt");
    if (rc == CGS_OK) rc = cgs_write_file(path, text, strlen(text));
    free(text);
    CGS_TRY(rc);
    CGS_TRY(cgs_metrics_open(&t->metrics, t->dir, t->step));
    if (t->learner.wants_pixels)
        CGS_TRY(
            cgs_frames_open(&t->frames, t->device, t->source, &t->windows, t->config.train.batch));
    CGS_TRY(make_loader(t, &t->loader, true, t->step / t->per_epoch,
                        (int64_t)(t->step % t->per_epoch)));
    if (t->learner.wants_pixels) cgs_frames_pin(&t->frames, t->loader);
    return CGS_OK;
}

static cgs_status plan_updates(cgs_trainer *t) {
    const cgs_train_config *c = &t->config.train;
    t->per_epoch = (uint64_t)(t->split.train_count / c->batch);
    if (t->per_epoch == 0)
        return cgs_fail(CGS_EARG, "%s: %lld training windows are fewer than train.batch %d",
                        t->source->path, (long long)t->split.train_count, c->batch);
    t->total = c->updates ? (uint64_t)c->updates : t->per_epoch * (uint64_t)c->epochs;
    return CGS_OK;
}

cgs_status cgs_trainer_create(cgs_trainer **out, const cgs_run_config *c, const char *data,
                              const char *dir, cgs_device *d, bool resume) {
    *out = NULL;
    cgs_trainer *t = calloc(1, sizeof *t);
    if (!t) return cgs_fail(CGS_ENOMEM, "trainer: no memory");
    t->config = *c;
    t->device = d;
    cgs_status rc = cgs_path_join(t->checkpoint, sizeof t->checkpoint, dir, CGS_CHECKPOINT_FILE);
    snprintf(t->dir, sizeof t->dir, "%s", dir);
    if (rc == CGS_OK) rc = look_around(t, resume);
    if (rc == CGS_OK) rc = read_sizes(t);
    if (rc == CGS_OK) rc = open_data(t, data);
    if (rc == CGS_OK) rc = make_reference(t);
    if (rc == CGS_OK) rc = plan_updates(t);
    if (rc == CGS_OK) rc = make_model(t, data);
    if (rc == CGS_ENOMEM) /* the sentence has the memory needed and available */
        rc = cgs_fail(CGS_ENOMEM, "%s; a train.batch below %d needs less", cgs_last_error(),
                      c->train.batch);
    if (rc == CGS_OK) rc = resume_or_start(t);
    if (rc == CGS_OK) {
        t->started = cgs_now();
        *out = t;
    } else {
        cgs_trainer_destroy(t);
    }
    return rc;
}

void cgs_trainer_destroy(cgs_trainer *t) {
    if (!t) return;
    cgs_frames_unpin(&t->frames);
    cgs_loader_destroy(t->loader);
    cgs_frames_close(&t->frames);
    cgs_status rc = cgs_metrics_close(t->metrics);
    if (rc != CGS_OK) cgs_log(CGS_WARN, "%s", cgs_last_error());
    cgs_tape_destroy(t->train_tape);
    cgs_tape_destroy(t->valid_tape);
    cgs_optimiser_close(&t->optimiser);
    if (t->learner.cls) t->learner.cls->close(&t->learner);
    cgs_split_free(&t->split);
    cgs_windows_free(&t->windows);
    cgs_packed_close(t->packed);
    cgs_dataset_close(t->dataset);
    free(t->latents);
    free(t->running);
    free(t->own);
    free(t->reference_values);
    free(t->mask);
    free(t->row);
    free(t);
}

/* ---- updates ------------------------------------------------------------------------- */

static cgs_status feed(cgs_trainer *t, cgs_tape *tape, cgs_objective *o, const cgs_batch *b,
                       const float weights[CGS_TERMS]) {
    int N = t->history, B = b->count;
    for (int i = 0; i < B * (N + 1); i++) {
        int64_t w = b->windows[i / (N + 1)];
        t->row[i] = t->source->ep_offset[t->windows.episode[w]] + t->windows.start[w] +
                    (int64_t)(i % (N + 1)) * t->frameskip;
    }
    cgs_reference_fill(&t->reference, B, N + 1, N, b->actions, b->raw_actions,
                       cgs_reference_column(&t->reference) ? b->extras[0] : NULL,
                       t->reference_values, t->mask);
    if (t->learner.wants_pixels) CGS_TRY(cgs_frames_put(&t->frames, o->frames, b));
    if (t->learner.cls->feed) CGS_TRY(t->learner.cls->feed(&t->learner, tape, o, b, t->row));
    CGS_TRY(cgs_tensor_write(tape, o->actions, b->actions));
    CGS_TRY(cgs_tensor_write(tape, o->reference, t->reference_values));
    CGS_TRY(cgs_tensor_write(tape, o->mask, t->mask));
    return cgs_tensor_write(tape, o->weights, weights);
}

static cgs_status read_terms(cgs_tape *tape, const cgs_objective *o, double term[CGS_TERMS]) {
    for (int k = 0; k < CGS_TERMS; k++) {
        float v;
        CGS_TRY(cgs_tensor_read(tape, o->term[k], &v));
        term[k] = v;
    }
    return CGS_OK;
}

static cgs_status read_trivial(cgs_trainer *t, cgs_tape *tape, const cgs_objective *o,
                               cgs_trivial *out) {
    CGS_TRY(cgs_tensor_read(tape, o->z, t->latents));
    *out = cgs_trivial_errors(t->latents, t->config.train.batch, t->history + 1, t->model->width);
    return CGS_OK;
}

/* takes the next batch from the loader and prefetches its images */
static cgs_status next_batch(cgs_trainer *t) {
    CGS_TRY(cgs_loader_next(t->loader, &t->ahead));
    if (t->learner.wants_pixels) CGS_TRY(cgs_frames_send(&t->frames, &t->ahead));
    t->have_ahead = true;
    return CGS_OK;
}

static double rate(const cgs_trainer *t, double peak) {
    return t->constant ? peak : cgs_learning_rate(peak, t->config.train.warmup, t->step, t->total);
}

cgs_status cgs_trainer_step(cgs_trainer *t, cgs_step_info *info) {
    const cgs_train_config *c = &t->config.train;
    cgs_params *p = t->model->params;
    const cgs_backend *ops = t->device->ops;

    double asked = cgs_now();
    if (!t->have_ahead) CGS_TRY(next_batch(t));
    cgs_batch batch = t->ahead;
    t->have_ahead = false;
    double waited = cgs_now() - asked;

    float cgs_weight = cgs_ramp(c->cgs_weight, c->cgs_ramp, t->step, t->total);
    const float weights[CGS_TERMS] = {1, c->sigreg_weight, c->ts_weight, cgs_weight};
    CGS_TRY(feed(t, t->train_tape, &t->train, &batch, weights));
    cgs_tape_set_step(t->train_tape, t->step);
    cgs_tape_forward(t->train_tape);
    cgs_tape_backward(t->train_tape);
    /* While that runs, only if it is ready, so that `waited` is time without work.  A failure is
     * reported again when the batch is needed. */
    if (cgs_loader_ready(t->loader)) (void)next_batch(t);
    CGS_TRY(ops->sync(t->device));

    /* non-finite values must not reach the weights */
    float loss;
    CGS_TRY(cgs_tensor_read(t->train_tape, t->train.total, &loss));
    CGS_TRY(read_terms(t->train_tape, &t->train, info->term));
    info->compared = (t->step + 1) % CGS_LEARNING_EVERY == 0;
    if (info->compared) CGS_TRY(read_trivial(t, t->train_tape, &t->train, &info->trivial));
    double norm = sqrt(ops->sum_squares(t->device, p->grads, p->trainable));
    if (!isfinite(loss) || !isfinite(norm))
        return cgs_fail(
            CGS_ENUMERIC,
            "update %llu: loss %g (pred %g, sigreg %g, ts %g, cgs %g), gradient norm %g; "
            "the last checkpoint in %s is valid, a lower optim.lr may help",
            (unsigned long long)t->step, (double)loss, info->term[0], info->term[1], info->term[2],
            info->term[3], norm, t->dir);
    if (cgs_gradient_monitor_add(&t->monitor, norm))
        cgs_log(CGS_WARN,
                "update %llu: the gradient norm has grown to %.2g from %.2g; a lower "
                "optim.lr or train.precision=f32 may help",
                (unsigned long long)t->step, exp(t->monitor.fast), exp(t->monitor.usual));

    double lr = rate(t, c->lr);
    float rates[CGS_GROUPS];
    for (int i = 0; i < t->learner.groups; i++) rates[i] = (float)rate(t, t->learner.group[i].lr);
    cgs_adamw adam = {.beta1 = c->beta1,
                      .beta2 = c->beta2,
                      .eps = c->eps,
                      .clip_scale = (float)cgs_clip_scale(norm, c->clip),
                      .step = t->step + 1};
    cgs_optimiser_step(&t->optimiser, adam, t->learner.group, rates);
    CGS_TRY(ops->sync(t->device));
    t->model->batches_tracked++;
    t->step++;

    double now = cgs_now();
    if (info->compared && cgs_learning_check_add(&t->check, t->step, t->total,
                                                 info->term[CGS_TERM_PRED], info->trivial)) {
        char sentence[CGS_LEARNING_SENTENCE];
        cgs_learning_sentence(&t->check, sentence, sizeof sentence);
        if (*sentence)
            cgs_log(CGS_WARN, "%s", sentence);
        else
            cgs_log(CGS_INFO, "update %llu: it predicts better than the mean and a copy",
                    (unsigned long long)t->step);
    }
    info->step = t->step;
    info->total = t->total;
    info->epoch = batch.epoch;
    info->lr = lr;
    info->grad_norm = norm;
    info->cgs_weight = cgs_weight;
    info->loss = loss;
    info->frames_per_s = batch.count * (t->history + 1) / (now - t->started);
    info->waited = waited / (now - t->started);
    info->seconds = now - t->started;
    t->started = now;
    return cgs_metrics_step(t->metrics, info);
}

/* ---- batch norm's statistics ----------------------------------------------------------- */

static cgs_status set_statistics(cgs_trainer *t, const float *values) {
    cgs_params *p = t->model->params;
    return t->device->ops->upload(t->device, p->statistics, values, p->stats * sizeof *values);
}

/* one batch through the model from statistics of 0, which leaves a fixed fraction of its own */
static cgs_status add_statistics(cgs_trainer *t, cgs_loader *loader, uint64_t pass, float *seen,
                                 double *sum) {
    const cgs_train_config *c = &t->config.train;
    const float weights[CGS_TERMS] = {1, c->sigreg_weight, c->ts_weight, c->cgs_weight};
    cgs_params *p = t->model->params;
    cgs_batch batch;
    CGS_TRY(cgs_loader_next(loader, &batch));
    CGS_TRY(feed(t, t->train_tape, &t->train, &batch, weights));
    memset(seen, 0, p->stats * sizeof *seen);
    CGS_TRY(set_statistics(t, seen));
    cgs_tape_set_step(t->train_tape, OTHER_EPOCH + pass);
    cgs_tape_forward(t->train_tape);
    CGS_TRY(t->device->ops->sync(t->device));
    CGS_TRY(t->device->ops->download(t->device, seen, p->statistics, p->stats * sizeof *seen));
    for (size_t k = 0; k < p->stats; k++) sum[k] += (double)seen[k];
    return CGS_OK;
}

/* The statistics of the present weights, over training batches; the same for the same weights,
 * whatever was computed before. */
static cgs_status compute_own(cgs_trainer *t) {
    size_t stats = t->model->params->stats;
    double *sum = calloc(stats, sizeof *sum);
    cgs_loader *loader = NULL;
    cgs_status rc = sum ? make_loader(t, &loader, true, OTHER_EPOCH, 0)
                        : cgs_fail(CGS_ENOMEM, "no memory for statistics");
    for (uint64_t i = 0; rc == CGS_OK && i < STATISTICS_PASSES; i++)
        rc = add_statistics(t, loader, i, t->own, sum);
    for (size_t k = 0; rc == CGS_OK && k < stats; k++)
        t->own[k] = (float)(sum[k] / (STATISTICS_PASSES * (double)CGS_BATCHNORM_MOMENTUM));
    cgs_loader_destroy(loader);
    free(sum);
    t->have_own = rc == CGS_OK;
    t->own_step = t->step;
    return rc;
}

/* Between these two calls the model has its own statistics, if the recipe says so. */
static cgs_status take_own_statistics(cgs_trainer *t) {
    cgs_params *p = t->model->params;
    if (!t->recipe->own_statistics) return CGS_OK;
    CGS_TRY(
        t->device->ops->download(t->device, t->running, p->statistics, p->stats * sizeof(float)));
    cgs_status rc = CGS_OK;
    if (!t->have_own || t->own_step != t->step) rc = compute_own(t);
    return set_statistics(t, rc == CGS_OK ? t->own : t->running) == CGS_OK ? rc : CGS_EDEVICE;
}

static cgs_status take_running_statistics(cgs_trainer *t) {
    return t->recipe->own_statistics ? set_statistics(t, t->running) : CGS_OK;
}

/* ---- validation and storage ------------------------------------------------------------ */

static cgs_status validate(cgs_trainer *t, cgs_validation *v) {
    const cgs_train_config *c = &t->config.train;
    cgs_loader *loader;
    CGS_TRY(make_loader(t, &loader, false, 0, 0)); /* the same windows every time */
    int64_t most = cgs_loader_batches(loader), batches = c->validate_batches;
    if (batches > most) batches = most;
    cgs_status rc = CGS_OK;
    const float weights[CGS_TERMS] = {1, c->sigreg_weight, c->ts_weight, c->cgs_weight};
    for (int64_t i = 0; i < batches && rc == CGS_OK; i++) {
        cgs_batch batch;
        double term[CGS_TERMS];
        rc = cgs_loader_next(loader, &batch);
        if (rc == CGS_OK) rc = feed(t, t->valid_tape, &t->valid, &batch, weights);
        if (rc != CGS_OK) break;
        cgs_tape_set_step(t->valid_tape, (uint64_t)i); /* the same directions every time */
        cgs_tape_forward(t->valid_tape);
        rc = read_terms(t->valid_tape, &t->valid, term);
        cgs_trivial trivial;
        if (rc == CGS_OK) rc = read_trivial(t, t->valid_tape, &t->valid, &trivial);
        if (rc != CGS_OK) break;
        for (int k = 0; k < CGS_TERMS; k++) v->term[k] += term[k] / (double)batches;
        v->trivial.copy += trivial.copy / (double)batches;
        v->trivial.mean += trivial.mean / (double)batches;
        v->windows += batch.count;
    }
    cgs_loader_destroy(loader);
    return rc;
}

cgs_status cgs_trainer_validate(cgs_trainer *t, cgs_validation *v) {
    *v = (cgs_validation){0};
    if (!t->valid_tape) return CGS_OK;
    CGS_TRY(take_own_statistics(t));
    cgs_status rc = validate(t, v);
    CGS_TRY(take_running_statistics(t));
    CGS_TRY(rc);
    v->cosine = 1 - v->term[CGS_TERM_TS];
    t->started = cgs_now(); /* validation does not count as training time */
    return cgs_metrics_validation(t->metrics, t->step, v);
}

static void fill_card(const cgs_trainer *t, cgs_model_card *card) {
    const cgs_train_config *c = &t->config.train;
    *card = (cgs_model_card){.stats_rows = t->stats_rows,
                             .sigreg_weight = c->sigreg_weight,
                             .ts_weight = c->ts_weight,
                             .cgs_weight = c->cgs_weight,
                             .seed = c->seed,
                             .updates = t->step,
                             .schedule_updates = t->total,
                             .train_fraction = c->train_fraction,
                             .std_divisor = "rows"};
    const char *env = cgs_dataset_attribute(t->dataset, "env");
    const char *version = cgs_dataset_attribute(t->dataset, "env_version");
    const char *path = cgs_dataset_source(t->dataset)->path;
    struct stat st;
    if (stat(path, &st) == 0) card->dataset_bytes = (int64_t)st.st_size;
    card->dataset_episodes = cgs_dataset_source(t->dataset)->episodes;
    snprintf(card->method, sizeof card->method, "%.63s", c->method.s);
    snprintf(card->recipe, sizeof card->recipe, "%.15s", c->recipe.s);
    cgs_initial_name(c->init.s, card->init, sizeof card->init);
    snprintf(card->env, sizeof card->env, "%.63s", env ? env : "");
    snprintf(card->env_version, sizeof card->env_version, "%.63s", version ? version : "");
    snprintf(card->dataset, sizeof card->dataset, "%.255s", base_name(path));
    snprintf(card->precision, sizeof card->precision, "%.7s", c->precision.s);
    snprintf(card->reference, sizeof card->reference, "%.31s", c->reference.s);
    snprintf(card->split, sizeof card->split, "%.15s", c->split.s);
    snprintf(card->code_version, sizeof card->code_version, "%s", cgs_version());
    snprintf(card->code_commit, sizeof card->code_commit, "%s", cgs_commit());
    memcpy(card->action_mean, t->action_mean, sizeof card->action_mean);
    memcpy(card->action_std, t->action_std, sizeof card->action_std);
}

cgs_status cgs_trainer_save(cgs_trainer *t) {
    cgs_checkpoint c = {.step = t->step,
                        .batches_tracked = t->model->batches_tracked,
                        .config = cgs_run_text(&t->config),
                        .identity = t->identity};
    if (!c.config) return cgs_fail(CGS_ENOMEM, "no memory for settings");
    cgs_status rc = cgs_checkpoint_save(t->checkpoint, &t->model->params, 1, &c);
    free(c.config);
    CGS_TRY(rc);
    cgs_model_card card;
    fill_card(t, &card);
    CGS_TRY(take_own_statistics(t));
    rc = t->learner.cls->save(&t->learner, t->dir, &card);
    CGS_TRY(take_running_statistics(t));
    return rc;
}

cgs_model *cgs_trainer_model(cgs_trainer *t) { return t->model; }
uint64_t cgs_trainer_updates(const cgs_trainer *t) { return t->total; }

size_t cgs_trainer_memory(const cgs_trainer *t) {
    size_t bytes = cgs_tape_memory(t->train_tape) + t->model->params->trainable * 18;
    return bytes + t->frames.bytes + (t->valid_tape ? cgs_tape_memory(t->valid_tape) : 0);
}

static uint64_t stop_at(const cgs_trainer *t) {
    uint64_t stop =
        t->config.train.stop_epoch ? (uint64_t)t->config.train.stop_epoch * t->per_epoch : t->total;
    return stop < t->total ? stop : t->total;
}

bool cgs_trainer_done(const cgs_trainer *t) { return t->step >= stop_at(t); }

cgs_status cgs_trainer_run(cgs_trainer *t, cgs_train_watch watch, void *user) {
    const cgs_train_config *c = &t->config.train;
    while (!cgs_trainer_done(t)) {
        cgs_step_info info;
        cgs_validation v;
        cgs_status rc = cgs_trainer_step(t, &info);
        if (rc == CGS_EDEVICE)
            rc = cgs_fail(rc, "update %llu: %s; %s is as it was last saved",
                          (unsigned long long)t->step, cgs_last_error(), t->checkpoint);
        CGS_TRY(rc);
        bool last = cgs_trainer_done(t);
        bool validated = t->step % (uint64_t)c->validate_every == 0 || last;
        if (validated) CGS_TRY(cgs_trainer_validate(t, &v));
        if (t->step % (uint64_t)c->checkpoint_every == 0 || last) CGS_TRY(cgs_trainer_save(t));
        bool go_on = !watch || watch(user, &info, validated ? &v : NULL);
        if (!go_on && !last) {
            CGS_TRY(cgs_trainer_save(t));
            return cgs_fail(CGS_ESTOPPED, "stopped after update %llu; continue with --resume",
                            (unsigned long long)t->step);
        }
    }
    return CGS_OK;
}
