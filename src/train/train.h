/* train.h - training a world model: data, objective, optimiser, checkpoints, metrics.
 *
 *   cgs_trainer_create   opens the data, builds model and tapes, resumes if asked
 *   cgs_trainer_step     one update
 *   cgs_trainer_validate held-out losses and mean consecutive cosine
 *   cgs_trainer_save     checkpoint (atomic), and the model directory files
 *   cgs_trainer_destroy
 *
 * or cgs_trainer_run, which does all of it with a progress callback.
 *
 * A run directory holds config.txt (resolved settings), checkpoint.safetensors (everything a
 * bit-exact resume needs), metrics.jsonl (authoritative), metrics.csv and event files (derived),
 * and the model directory files config.json + model.safetensors. */
#ifndef CGS_TRAIN_TRAIN_H
#define CGS_TRAIN_TRAIN_H

#include "core/config.h"
#include "loss/objective.h"
#include "loss/trivial.h"
#include "model/dinowm.h"
#include "model/lewm.h"

#define CGS_TRAIN_CONFIG(X)                                                                        \
    X(int, batch, 128, 2, 65536, "train.batch", "windows per update")                              \
    X(int, epochs, 10, 1, 100000, "train.schedule_epochs", "epochs the learning rate decays over") \
    X(int, stop_epoch, 0, 0, 100000, "train.stop_epoch", "stop after this epoch; 0: the last")     \
    X(int, updates, 0, 0, 100000000, "train.updates", "updates instead of epochs; 0: by epochs")   \
    X(u64, seed, 3072, 0, 0, "train.seed", "seed of weights, order, dropout and directions")       \
    X(int, checkpoint_every, 500, 1, 100000000, "train.checkpoint_every",                          \
      "updates between checkpoints")                                                               \
    X(int, validate_every, 500, 1, 100000000, "train.validate_every",                              \
      "updates between validations")                                                               \
    X(int, validate_batches, 8, 1, 100000, "train.validate_batches", "batches per validation")     \
    X(int, workers, 1, 1, 64, "data.workers", "threads that prepare batches")                      \
    X(flag, cache, true, 0, 1, "data.cache",                                                       \
      "read frames from a packed copy of the dataset, made once beside it (or in --cache)")        \
    X(text, split, "episode", 0, 0, "data.split",                                                  \
      "hold out whole episodes, or windows as upstream does: episode or window")                   \
    X(float, train_fraction, 0.9, 0.01, 1, "data.train_fraction",                                  \
      "fraction of the data to train on")                                                          \
    X(flag, features, true, 0, 1, "data.features",                                                 \
      "DINO-WM: compute the backbone's features once and keep them beside the dataset")            \
    X(text, backbone, "", 0, 0, "model.backbone.file", "DINO-WM: weights of the frozen backbone")  \
    X(float, lr, 5e-5, 0, 10, "optim.lr", "peak learning rate")                                    \
    X(float, head_lr, 1e-5, 0, 10, "optim.head_lr",                                                \
      "DINO-WM: rate of projector, adapter and aggregation head")                                  \
    X(text, optimiser, "recipe", 0, 0, "optim.kind",                                               \
      "adamw, muon (matrices go along equalised momentum, the rest by adamw), or recipe: muon of " \
      "robust, adamw of published")                                                                \
    X(text, schedule, "cosine", 0, 0, "optim.schedule",                                            \
      "of the learning rates: cosine or constant")                                                 \
    X(float, warmup, 0.01, 0, 1, "optim.warmup", "fraction of updates with a rising rate")         \
    X(float, weight_decay, 1e-3, 0, 10, "optim.weight_decay",                                      \
      "decoupled weight decay, on every parameter")                                                \
    X(float, beta1, 0.9, 0, 1, "optim.beta1", "Adam's first decay")                                \
    X(float, beta2, 0.999, 0, 1, "optim.beta2", "Adam's second decay")                             \
    X(float, eps, 1e-8, 0, 1, "optim.eps", "Adam's epsilon")                                       \
    X(float, clip, 1.0, 1e-6, 1e9, "optim.clip", "largest global gradient norm")                   \
    X(float, sigreg_weight, 0.09, 0, 1000, "loss.sigreg.weight", "lambda of SIGReg")               \
    X(int, projections, 1024, 1, 65536, "loss.sigreg.projections", "random directions per update") \
    X(float, ts_weight, 0, 0, 1000, "loss.ts.weight", "lambda of temporal straightening")          \
    X(float, cgs_weight, 0, 0, 1000, "loss.cgs.weight", "lambda of CGS")                           \
    X(float, cgs_ramp, 0.05, 0, 1, "loss.cgs.ramp", "fraction of updates over which lambda rises") \
    X(text, reference, "action", 0, 0, "loss.cgs.reference",                                       \
      "action, full, xyz-grasp, xyz or transition")                                                \
    X(text, grasp, "all", 0, 0, "loss.cgs.grasp",                                                  \
      "when an action block counts as grasping: all, any or mean of its gripper commands above 0") \
    X(text, average, "pooled", 0, 0, "loss.cgs.average",                                           \
      "mean over all valid pairs (pooled) or of window means (window)")                            \
    X(text, init, "", 0, 0, "train.init",                                                          \
      "model to begin with: a model directory or a weight file")                                   \
    X(text, recipe, "published", 0, 0, "train.recipe",                                             \
      "LeWM: published (the paper's) or robust (starts that learn in more worlds)")                \
    X(text, method, "lewm", 0, 0, "train.method", "name of the method, for the record")            \
    X(text, precision, "bf16", 0, 0, "train.precision", "type of activations: f32 or bf16")

typedef struct cgs_train_config {
    CGS_CONFIG_STRUCT(CGS_TRAIN_CONFIG)
} cgs_train_config;

/* All settings of a run; the method says which of the models it trains. */
typedef struct cgs_run_config {
    cgs_lewm_config model;
    cgs_dinowm_config dino;
    cgs_train_config train;
    /* where what is made from the dataset lies, NULL: the usual places (data/cache.h).  No setting:
     * it changes nothing in a run, which may be resumed with another one */
    const char *cache;
    /* a run or a model in the run's directory is replaced; no setting either */
    bool force;
} cgs_run_config;
bool cgs_run_is_dinowm(const cgs_run_config *c);

/* The two tables of a run, its model's and that of training; sections: (2). */
void cgs_run_sections(cgs_run_config *c, cgs_section sections[2]);

/* size: "paper" or "small", with the projections and the recipe that belong to it. */
cgs_status cgs_run_preset(cgs_run_config *c, const char *size);
/* method: lewm, lewm-ts, lewm-cgs, lewm-cgs-transition, lewm-cgs-xyz-all, lewm-cgs-full,
 * dinowm-patch and dinowm-cls (each alone, -ts, -cgs); with the paper's weights for the environment
 * (its id, or "" for the defaults).  After cgs_run_preset. */
cgs_status cgs_run_method(cgs_run_config *c, const char *method, const char *env);

/* In place of a preset: the sizes of the model at path (a directory or a weight file), with the
 * training settings of the preset of its width; method: its card's, or the usual one. */
cgs_status cgs_run_like(cgs_run_config *c, const char *path, char *method, size_t size);

/* DINO-WM: applies the settings that a backbone's file determines; later settings override them. */
cgs_status cgs_run_backbone(cgs_run_config *c, const char *file);

/* The settings of the run whose checkpoint lies in dir; *there: whether there is one. */
cgs_status cgs_run_stored(cgs_run_config *c, const char *dir, bool *there);

typedef struct cgs_step_info {
    uint64_t step, total; /* updates done, and of the whole run */
    uint64_t epoch;
    double lr, grad_norm, cgs_weight;
    double loss, term[CGS_TERMS];
    bool compared;               /* every CGS_LEARNING_EVERY updates:        */
    cgs_trivial trivial;         /* errors of predictors that know nothing   */
    double frames_per_s, waited; /* fraction of the time spent waiting for data */
    double seconds;              /* of this update */
} cgs_step_info;

typedef struct cgs_validation {
    double term[CGS_TERMS], cosine; /* mean consecutive-displacement cosine */
    cgs_trivial trivial;            /* errors of predictors that know nothing */
    int windows;
} cgs_validation;

typedef struct cgs_trainer cgs_trainer;

/* resume: resume from the checkpoint in dir if there is one; the settings must be those that it was
 * made with, but for its length and what changes nothing (resume.h).  Otherwise start afresh, which
 * is refused in a directory that has a checkpoint or a model, unless c->force. */
cgs_status cgs_trainer_create(cgs_trainer **out, const cgs_run_config *c, const char *data,
                              const char *dir, cgs_device *d, bool resume);
void cgs_trainer_destroy(cgs_trainer *t);

bool cgs_trainer_done(const cgs_trainer *t);
cgs_status cgs_trainer_step(cgs_trainer *t, cgs_step_info *info);
cgs_status cgs_trainer_validate(cgs_trainer *t, cgs_validation *v);
cgs_status cgs_trainer_save(cgs_trainer *t);

cgs_model *cgs_trainer_model(cgs_trainer *t);
size_t cgs_trainer_memory(const cgs_trainer *t);    /* bytes planned for tapes and parameters */
uint64_t cgs_trainer_updates(const cgs_trainer *t); /* of the whole run */

/* Called after each update; returning false saves a checkpoint and stops (CGS_ESTOPPED).
 * validation is not NULL after an update that was followed by one. */
typedef bool (*cgs_train_watch)(void *user, const cgs_step_info *info,
                                const cgs_validation *validation);
cgs_status cgs_trainer_run(cgs_trainer *t, cgs_train_watch watch, void *user);

#endif /* CGS_TRAIN_TRAIN_H */
