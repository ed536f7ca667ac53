/* cmd_import.c - cgs import: a weight file becomes a model directory, whichever tensor names it
 * uses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/plain.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "data/dataset.h"
#include "data/stats.h"
#include "env/env.h"
#include "model/dinowm_store.h"
#include "train/checkpoint.h"

typedef struct request {
    const char *file, *out, *config, *env, *mean, *std, *data;
    cgs_words ignore;
    bool force;
} request;

/* A file that is there is replaced only if that is asked for. */
static cgs_status make_room(const request *q, const char *name) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, q->out, name));
    if (q->force || !cgs_file_exists(path)) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s exists: replace it with --force or choose another folder", path);
}

/* The training of a model that was replaced cannot go on. */
static cgs_status end_training(const request *q) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, q->out, CGS_CHECKPOINT_FILE));
    if (remove(path) == 0 || errno == ENOENT) return CGS_OK;
    return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
}

static const cgs_env_class *find_env(const char *id) {
    for (int i = 0; i < cgs_env_count(); i++)
        if (!strcmp(cgs_env_at(i)->id, id)) return cgs_env_at(i);
    return NULL;
}

/* Statistics of the actions, and where they are from, as training would compute them. */
static cgs_status read_data(const request *q, cgs_model_card *said, int *action_dim) {
    cgs_dataset *d;
    cgs_stats stats;
    struct stat st;
    CGS_TRY(cgs_dataset_open(&d, q->data));
    const cgs_source *s = cgs_dataset_source(d);
    const char *env = cgs_dataset_attribute(d, "env"), *slash = strrchr(q->data, '/');
    cgs_status rc = s->action_dim > 0 && s->action_dim <= CGS_CARD_ACTIONS
                        ? cgs_stats_compute(&stats, s, "action")
                        : cgs_fail(CGS_EFORMAT, "%s: actions of %d numbers, 1 to %d are usable",
                                   q->data, s->action_dim, CGS_CARD_ACTIONS);
    for (int i = 0; rc == CGS_OK && i < s->action_dim; i++) {
        said->action_mean[i] = stats.mean[i];
        said->action_std[i] = stats.std_population[i];
    }
    if (rc == CGS_OK) {
        *action_dim = s->action_dim;
        said->stats_rows = stats.rows;
        said->dataset_episodes = s->episodes;
        if (stat(q->data, &st) == 0) said->dataset_bytes = (int64_t)st.st_size;
        snprintf(said->dataset, sizeof said->dataset, "%.255s", slash ? slash + 1 : q->data);
        snprintf(said->env, sizeof said->env, "%.63s", env ? env : "");
    }
    cgs_dataset_close(d);
    return rc;
}

/* What the user says about the actions: how many numbers, and their statistics. */
static cgs_status read_actions(const request *q, cgs_model_card *said, int *action_dim) {
    int means = 0, stds = 0;
    *said = (cgs_model_card){0};
    *action_dim = 0;
    if (!q->mean != !q->std)
        return cgs_fail(CGS_EARG, "--action-mean and --action-std must be given together");
    if (q->mean && q->data)
        return cgs_fail(CGS_EARG, "--data has statistics of the actions: give no others");
    if (q->data) CGS_TRY(read_data(q, said, action_dim));
    if (q->mean) {
        CGS_TRY(cgs_parse_numbers(q->mean, "--action-mean", CGS_CARD_ACTIONS, said->action_mean,
                                  &means));
        CGS_TRY(
            cgs_parse_numbers(q->std, "--action-std", CGS_CARD_ACTIONS, said->action_std, &stds));
        if (means != stds || means > CGS_CARD_ACTIONS)
            return cgs_fail(CGS_EARG, "--action-mean has %d numbers and --action-std %d, of %d",
                            means, stds, CGS_CARD_ACTIONS);
        for (int i = 0; i < stds; i++)
            if (said->action_std[i] <= 0)
                return cgs_fail(CGS_EARG, "--action-std: number %d is %g, not positive", i + 1,
                                said->action_std[i]);
        *action_dim = means;
    }
    if (!q->env) return CGS_OK;
    if (strlen(q->env) >= sizeof said->env)
        return cgs_fail(CGS_EARG, "--env: \"%.40s...\" is too long", q->env);
    strcpy(said->env, q->env);
    /* weights may be of an environment that this build does not have */
    const cgs_env_class *cls = find_env(q->env);
    if (cls && *action_dim && *action_dim != cls->action_dim)
        return cgs_fail(CGS_EARG, "--%s: %d numbers, an action of %s has %d",
                        q->data ? "data" : "action-mean", *action_dim, q->env, cls->action_dim);
    if (cls) *action_dim = cls->action_dim;
    return CGS_OK;
}

/* of a list "a, b, c" */
static int names_in(const char *list) {
    int n = *list != '\0';
    while ((list = strstr(list, ", "))) n++, list += 2;
    return n;
}

static void report(const request *q, const cgs_lewm *m, const cgs_import *how,
                   const cgs_model_card *card, bool json) {
    size_t learnable = cgs_params_learnable(&m->params);
    int tensors = m->params.count + 2; /* and batch norm's two counters */
    if (json) {
        printf("{\"tensors\":%d,\"parameters\":%zu,\"ignored\":%d,\"history\":%d,"
               "\"action_block\":%d,\"action_dim\":%d,\"guessed\":\"%s\",\"doubt\":\"%s\","
               "\"statistics\":%s}\n",
               tensors, learnable, how->ignored, m->config.history,
               cgs_lewm_action_block(&m->config), m->config.action_dim, how->guessed, how->doubt,
               cgs_card_has_statistics(card) ? "true" : "false");
        return;
    }
    printf("%s: %d tensors, %zu parameters, history %d, actions of %d x %d numbers\n", q->out,
           tensors, learnable, m->config.history, m->config.frameskip, m->config.action_dim);
    if (how->ignored) {
        printf("    ignored %d tensors: ", how->ignored);
        cgs_print_plain(how->some, stdout);
        printf("%s\n", names_in(how->some) < how->ignored ? ", ..." : "");
    }
    if (how->doubt[0]) printf("    %s\n", how->doubt);
    if (how->guessed[0]) printf("    guessed, as there is no --config: %s\n", how->guessed);
    if (q->env && !find_env(q->env))
        printf("    this build has no environment %s; see cgs envs\n", card->env);
    if (!cgs_card_has_statistics(card))
        printf("    action statistics are unknown: planning will need the data\n");
}

/* what the card says of the data */
static void take_data(cgs_model_card *card, const cgs_model_card *said) {
    if (said->env[0]) memcpy(card->env, said->env, sizeof card->env);
    memcpy(card->dataset, said->dataset, sizeof card->dataset);
    card->dataset_bytes = said->dataset_bytes;
    card->dataset_episodes = said->dataset_episodes;
    card->stats_rows = said->stats_rows;
}

static cgs_status import_file(const request *q, bool json) {
    cgs_import how = {.config = q->config, .ignore = q->ignore.word, .ignores = q->ignore.count};
    cgs_model_card said, card;
    cgs_device d;
    cgs_lewm *m = NULL;
    CGS_TRY(make_room(q, CGS_WEIGHTS_FILE));
    CGS_TRY(make_room(q, CGS_CHECKPOINT_FILE));
    CGS_TRY(read_actions(q, &said, &how.action_dim));
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_model_import(&m, &card, &how, q->file, &d, false);
    if (rc == CGS_OK) {
        if (q->env) memcpy(card.env, said.env, sizeof card.env);
        if (q->data) take_data(&card, &said);
        if (q->mean || q->data) {
            memcpy(card.action_mean, said.action_mean, sizeof card.action_mean);
            memcpy(card.action_std, said.action_std, sizeof card.action_std);
        }
        rc = cgs_model_save(q->out, m, &card);
        if (rc == CGS_OK) rc = end_training(q);
    }
    if (rc == CGS_OK) report(q, m, &how, &card, json);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    return rc;
}

/* a frozen backbone: checked, and written with torch-hub's tensor names */
static cgs_status import_backbone(const request *q, const cgs_backbone_config *c, bool json) {
    cgs_backbone_view view = {.image_size = c->patch * c->grid, .size = c->patch * c->grid};
    cgs_device d;
    cgs_backbone *b = NULL;
    char path[4096];
    if (q->config || q->env || q->mean || q->std || q->data)
        return cgs_fail(CGS_EARG, "%s is a backbone: it has no config.json, environment or actions",
                        q->file);
    CGS_TRY(make_room(q, CGS_BACKBONE_FILE));
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_backbone_load(&b, q->file, &view, &d);
    if (rc == CGS_OK) rc = cgs_make_dirs(q->out);
    if (rc == CGS_OK) rc = cgs_path_join(path, sizeof path, q->out, CGS_BACKBONE_FILE);
    if (rc == CGS_OK) rc = cgs_backbone_save(b, path);
    if (rc == CGS_OK && json)
        printf("{\"backbone\":\"%s\",\"parameters\":%zu,\"width\":%d,\"layers\":%d,\"heads\":%d,"
               "\"patch\":%d,\"grid\":%d}\n",
               b->origin, cgs_params_learnable(&b->params), c->width, c->layers, c->heads, c->patch,
               c->grid);
    else if (rc == CGS_OK)
        printf("%s: a backbone (%s) of %d layers, width %d, %d heads, patch %d, positions %d x %d; "
               "%zu parameters\nuse it with cgs train --method dinowm-... --backbone %s\n",
               path, b->origin, c->layers, c->width, c->heads, c->patch, c->grid, c->grid,
               cgs_params_learnable(&b->params), path);
    cgs_backbone_destroy(b);
    cgs_device_close(&d);
    return rc;
}

/* a folder, as it is downloaded: its weights, or their index, and its config.json */
static cgs_status look_inside(request *q, char file[4096], char config[4096]) {
    static const char *const names[] = {CGS_WEIGHTS_FILE, CGS_WEIGHTS_FILE ".index.json"};
    struct stat st;
    if (stat(q->file, &st) != 0 || !S_ISDIR(st.st_mode)) return CGS_OK;
    const char *dir = q->file;
    for (int i = 0; i < 2 && q->file == dir; i++) {
        CGS_TRY(cgs_path_join(file, 4096, dir, names[i]));
        if (cgs_file_exists(file)) q->file = file;
    }
    if (q->file == dir)
        return cgs_fail(CGS_EFORMAT, "%s: a folder without %s and %s", dir, names[0], names[1]);
    CGS_TRY(cgs_path_join(config, 4096, dir, CGS_CONFIG_FILE));
    if (!q->config && cgs_file_exists(config)) q->config = config;
    return CGS_OK;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    request q = {0};
    bool json = false;
    char file[4096], config[4096];
    cgs_words words;
    const cgs_opt opts[] = {
        {"out", "DIR", "model directory to write", OPT_STR, &q.out, true},
        {"config", "FILE", "config.json of the weights", OPT_STR, &q.config, false},
        {"data", "F.h5", "dataset: statistics of its actions, its environment", OPT_STR, &q.data,
         false},
        {"ignore", "PATTERN...", "leave tensors out, by names with * and ?", OPT_LIST, &q.ignore,
         false},
        {"env", "ID", "environment of the training data, see cgs envs", OPT_STR, &q.env, false},
        {"action-mean", "V,V,...", "means of the training data's actions", OPT_STR, &q.mean, false},
        {"action-std", "V,V,...", "their standard deviations (divisor: rows)", OPT_STR, &q.std,
         false},
        {"force", NULL, "replace the model in DIR", OPT_FLAG, &q.force, false},
        {"json", NULL, "print one JSON object", OPT_FLAG, &json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count != 1)
        rc = cgs_fail(CGS_EARG, "needs one weight file, got %d", words.count);
    if (rc == CGS_OK) {
        q.file = words.word[0];
        rc = look_inside(&q, file, config);
    }
    if (rc == CGS_OK) {
        cgs_backbone_config c;
        char origin[64];
        rc = cgs_backbone_inspect(q.file, &c, origin, NULL) == CGS_OK
                 ? import_backbone(&q, &c, json)
                 : import_file(&q, json);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_import = {
    "import", "FILE|DIR --out DIR [--config config.json] [--data F.h5] [--ignore PATTERN...]",
    "makes a model directory from published weights",
    "FILE is safetensors, the index of several of them (model.safetensors.index.json) or a torch\n"
    "zip file (.pt, .ckpt), with tensor names of Transformers 4.x or 5.x.  What frameworks put in\n"
    "front of names (module., _orig_mod., model., jepa., model_state_dict.) is taken off.  A "
    "folder\n"
    "is taken with its config.json.  Nothing in it is executed.  Sizes come from shapes and from "
    "the\n"
    "config.json; heads and frameskip are in no shape and are guessed without one.\n"
    "A file of DINOv2 (torch-hub's or HuggingFace's names) becomes DIR/backbone.weights.",
    run};
