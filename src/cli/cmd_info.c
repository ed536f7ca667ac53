/* cmd_info.c - cgs info: inspects a model directory or weight file before it is trusted; without a
 * name, describes this machine and this program.
 *
 * Everything is read and checked, nothing is executed, and what the file says of itself is
 * printed without control characters. */
#include <cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/learned.h"
#include "cli/interrupt.h"
#include "cli/learned_table.h"
#include "cli/machine.h"
#include "cli/model_card.h"
#include "cli/plain.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "model/config_json.h"
#include "model/dinowm_store.h"
#include "model/tensor_names.h"
#include "rollout/loaded_model.h"
#include "train/learning_check.h"

#define LEARNED "learned"

static bool is_lewm(const cgs_weights *w) {
    char name[CGS_PARAM_NAME];
    for (size_t i = 0; i < w->count; i++)
        if (cgs_tensor_name(w->entry[i].name, name) &&
            (!strncmp(name, "predictor.transformer.", 22) || !strncmp(name, "action_encoder.", 15)))
            return true;
    return false;
}

static const char *checksum_word(cgs_checksum_state s) {
    return s == CGS_CHECKSUM_GOOD ? "good" : s == CGS_CHECKSUM_WRONG ? "wrong" : "none";
}

/* What the table of contents says, whatever the file is. */
static cgs_status describe_file(cJSON *to, const cgs_weights *w) {
    cgs_checksum_state state;
    CGS_TRY(cgs_weights_checksum(&state, w));
    double elements = 0;
    char types[256] = "";
    for (size_t i = 0; i < w->count; i++) {
        const cgs_weight *e = &w->entry[i];
        elements += (double)e->count;
        size_t n = strlen(types);
        if (!strstr(types, e->type_name) && n + strlen(e->type_name) + 3 < sizeof types)
            snprintf(types + n, sizeof types - n, "%s%s", n ? ", " : "", e->type_name);
    }
    bool ok = cJSON_AddStringToObject(to, "file", w->path) &&
              cJSON_AddStringToObject(to, "format", w->format) &&
              cJSON_AddNumberToObject(to, "bytes", (double)w->file_bytes) &&
              cJSON_AddNumberToObject(to, "tensors", (double)w->count) &&
              cJSON_AddNumberToObject(to, "elements", elements) &&
              cJSON_AddStringToObject(to, "types", types) &&
              cJSON_AddStringToObject(to, "checksum", checksum_word(state));
    if (!ok) return cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", w->path);
    if (state == CGS_CHECKSUM_WRONG)
        return cgs_fail(CGS_EFORMAT, "%s: damaged, its checksum is wrong", w->path);
    return CGS_OK;
}

static cgs_status describe_learned(cJSON *to, const cgs_described *m);

static cgs_status add_card(cJSON *to, cgs_described *m) {
    CGS_TRY(cgs_weights_identity(m->model, &m->weights));
    CGS_TRY(cgs_model_card_add(to, m));
    return m->is_dir ? describe_learned(to, m) : CGS_OK;
}

/* What the model is: loads it, so every name, shape and number is checked. */
static cgs_status describe_model(cJSON *to, const char *dir, const char *weights,
                                 const char *config) {
    cgs_import how = {.config = config};
    cgs_model_card card;
    cgs_device d;
    cgs_lewm *m = NULL;
    char *text = NULL;
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_model_import(&m, &card, &how, weights, &d, false);
    if (rc == CGS_OK) rc = cgs_config_json_write(&text, &m->config, &card);
    if (rc == CGS_OK) {
        cJSON *all = cJSON_Parse(text), *ours = cJSON_GetObjectItemCaseSensitive(all, "cgs");
        cJSON *sizes = cJSON_DetachItemFromObjectCaseSensitive(ours, "sizes");
        cJSON *about = cJSON_DetachItemFromObjectCaseSensitive(ours, "card");
        cJSON_Delete(all);
        if (!how.has_card) {
            cJSON_Delete(about);
            about = cJSON_CreateNull();
        }
        size_t learnable = cgs_params_learnable(&m->params);
        bool ok = sizes && about && cJSON_AddNumberToObject(to, "parameters", (double)learnable) &&
                  cJSON_AddNumberToObject(to, "ignored", how.ignored) &&
                  cJSON_AddNumberToObject(to, "history", m->config.history) &&
                  cJSON_AddNumberToObject(to, "action_block", cgs_lewm_action_block(&m->config)) &&
                  cJSON_AddNumberToObject(to, "batches_tracked", (double)m->base.batches_tracked) &&
                  cJSON_AddStringToObject(to, "guessed", how.guessed) &&
                  cJSON_AddItemToObject(to, "sizes", sizes) &&
                  cJSON_AddItemToObject(to, "card", about);
        if (!ok) rc = cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", weights);
    }
    if (rc == CGS_OK)
        rc = add_card(to, &(cgs_described){.dir = dir ? dir : weights,
                                           .is_dir = dir != NULL,
                                           .model = &m->base,
                                           .card = &card,
                                           .has_card = how.has_card});
    free(text);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    return rc;
}

/* The same for a directory of DINO-WM. */
static cgs_status describe_dinowm(cJSON *to, const char *dir) {
    cgs_model_card card;
    cgs_dinowm_card more;
    cgs_dinowm *m = NULL;
    cgs_device d;
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_dinowm_load(&m, &card, &more, dir, &d, false);
    cJSON *about;
    if (rc == CGS_OK &&
        !(cJSON_AddNumberToObject(to, "parameters", (double)cgs_params_learnable(&m->params)) &&
          cJSON_AddStringToObject(to, "tokens", m->config.tokens.s) &&
          cJSON_AddNumberToObject(to, "history", m->base.history) &&
          cJSON_AddNumberToObject(to, "latent", m->base.width) &&
          cJSON_AddStringToObject(to, "backbone", more.origin) &&
          cJSON_AddNumberToObject(to, "backbone_parameters",
                                  (double)cgs_params_learnable(&m->backbone->params)) &&
          (about = cJSON_AddObjectToObject(to, "card")) &&
          cgs_card_json_write(about, &card, m->config.action_dim)))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", dir);
    if (rc == CGS_OK)
        rc = add_card(to, &(cgs_described){.dir = dir,
                                           .is_dir = true,
                                           .model = &m->base,
                                           .card = &card,
                                           .dino = &more,
                                           .has_card = true});
    if (m) cgs_model_destroy(&m->base);
    cgs_device_close(&d);
    return rc;
}

/* ... and for a backbone alone. */
static cgs_status describe_backbone(cJSON *to, const cgs_backbone_config *c, const char *origin) {
    bool ok = cJSON_AddStringToObject(to, "backbone", origin) &&
              cJSON_AddNumberToObject(to, "width", c->width) &&
              cJSON_AddNumberToObject(to, "layers", c->layers) &&
              cJSON_AddNumberToObject(to, "heads", c->heads) &&
              cJSON_AddNumberToObject(to, "patch", c->patch) &&
              cJSON_AddNumberToObject(to, "grid", c->grid);
    return ok ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory to describe a backbone");
}

/* Whether it has learned anything, if its run directory has metrics that tell. */
static cgs_status describe_training(cJSON *to, const char *dir) {
    static const char *const words[] = {[CGS_LEARNING_UNKNOWN] = "",
                                        [CGS_LEARNING_GOES_ON] = "learned",
                                        [CGS_LEARNING_PLATEAU] = "plateau",
                                        [CGS_LEARNING_COPIES] = "worse than a copy",
                                        [CGS_LEARNING_COLLAPSED] = "collapsed"};
    cgs_learning_check check;
    char sentence[CGS_LEARNING_SENTENCE];
    CGS_TRY(cgs_learning_read(&check, dir));
    if (check.state == CGS_LEARNING_UNKNOWN) return CGS_OK;
    cgs_learning_sentence(&check, sentence, sizeof sentence);
    cJSON *training = cJSON_AddObjectToObject(to, "training");
    bool ok = training && cJSON_AddStringToObject(training, "state", words[check.state]) &&
              cJSON_AddNumberToObject(training, "prediction", check.predicted) &&
              cJSON_AddNumberToObject(training, "copy", check.copy) &&
              cJSON_AddNumberToObject(training, "mean", check.mean) &&
              (!*sentence || cJSON_AddStringToObject(training, "warning", sentence));
    return ok ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", dir);
}

/* What was measured after its training, and whether of these weights. */
static cgs_status describe_learned(cJSON *to, const cgs_described *m) {
    cJSON *learned = NULL;
    char weights[24];
    if (cgs_learned_read(&learned, m->dir) != CGS_OK)
        learned = cJSON_CreateString(cgs_last_error()); /* a broken file says so itself */
    if (!learned) return CGS_OK;
    snprintf(weights, sizeof weights, "%016" PRIx64, m->weights);
    const char *of = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(learned, "weights"));
    if (cJSON_IsObject(learned))
        cJSON_AddBoolToObject(learned, "of_other_weights", !of || strcmp(of, weights));
    return cJSON_AddItemToObject(to, LEARNED, learned)
               ? CGS_OK
               : cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", m->dir);
}

static void print_learned(const cJSON *info) {
    const cJSON *learned = cJSON_GetObjectItemCaseSensitive(info, LEARNED);
    if (!learned) return;
    if (cJSON_IsString(learned)) {
        cgs_print_plain(learned->valuestring, stdout);
        printf("\n");
    } else {
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(learned, "of_other_weights")))
            printf("measured before its weights changed; --data measures again\n");
        cgs_learned_print(learned, stdout);
    }
    printf("\n");
}

/* these have tables of their own */
static bool is_told(const char *key) { return !strcmp(key, LEARNED) || !strcmp(key, "plans"); }

/* a value on one line; numbers that are not whole with six digits */
static void print_value(const cJSON *v) {
    if (cJSON_IsNumber(v) && v->valuedouble != floor(v->valuedouble)) {
        printf("%.6g\n", v->valuedouble);
        return;
    }
    char *text = cJSON_IsString(v) ? NULL : cJSON_PrintUnformatted(v);
    cgs_print_plain(cJSON_IsString(v) ? v->valuestring : text ? text : "?", stdout);
    printf("\n");
    cJSON_free(text);
}

static void print_text(const cJSON *object, int indent) {
    const cJSON *v;
    cJSON_ArrayForEach(v, object) {
        if (!indent && is_told(v->string)) continue;
        printf("%*s", indent, "");
        cgs_print_plain(v->string, stdout);
        int pad = 28 - indent - (int)strlen(v->string);
        if (cJSON_IsObject(v)) {
            printf("\n");
            print_text(v, indent + 4);
            continue;
        }
        printf("%*s ", pad > 0 ? pad : 0, "");
        print_value(v);
    }
}

static cgs_status describe(cJSON *to, const char *path) {
    char weights[4096], config[4096];
    struct stat st;
    bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (dir) {
        CGS_TRY(cgs_path_join(weights, sizeof weights, path, CGS_WEIGHTS_FILE));
        CGS_TRY(cgs_path_join(config, sizeof config, path, CGS_CONFIG_FILE));
    }
    cgs_weights *w;
    CGS_TRY(cgs_weights_open(&w, dir ? weights : path));
    cgs_backbone_config backbone;
    char origin[64];
    bool dino = dir && cgs_dinowm_is_dir(path), lewm = !dino && is_lewm(w);
    bool frozen =
        !dino && !lewm && cgs_backbone_inspect(w->path, &backbone, origin, NULL) == CGS_OK;
    const char *kind = dino     ? "DINO-WM"
                       : lewm   ? "LeWM"
                       : frozen ? "backbone"
                                : "none that cgs knows";
    cgs_status rc = cJSON_AddStringToObject(to, "model", kind)
                        ? describe_file(to, w)
                        : cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", path);
    cgs_weights_close(w);
    if (rc == CGS_OK && dir) rc = describe_training(to, path);
    if (rc == CGS_OK && dino) return describe_dinowm(to, path);
    if (rc == CGS_OK && frozen) return describe_backbone(to, &backbone, origin);
    if (rc != CGS_OK || !lewm) return rc;
    return describe_model(to, dir ? path : NULL, dir ? weights : path, dir ? config : NULL);
}

/* measures a model before it is described */
static cgs_status measure(const char *dir, const char *data, const char *device, bool quiet) {
    cgs_device d;
    cJSON *doc;
    cgs_catch_interrupt();
    CGS_TRY(cgs_device_open(&d, device, 0));
    cgs_status rc = cgs_learned_store(&doc, dir, data, &d, NULL, quiet);
    cJSON_Delete(doc);
    cgs_device_close(&d);
    return rc == CGS_ESTOPPED ? cgs_fail(CGS_EIO, "stopped; nothing was stored") : rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    bool json = false;
    const char *data = NULL, *device = "auto";
    cgs_words words;
    const cgs_opt opts[] = {{"data", "F.h5",
                             "measure what the model has learned, on these data; keep it in DIR",
                             OPT_STR, &data, false},
                            {"device", "NAME", "cuda, cpu or ref, for that (a GPU if there is one)",
                             OPT_STR, &device, false},
                            {"json", NULL, "print one JSON object", OPT_FLAG, &json, false}};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count > 1)
        rc = cgs_fail(CGS_EARG, "needs one model directory or file at most, got %d", words.count);
    if (rc == CGS_OK && data && !words.count)
        rc = cgs_fail(CGS_EARG, "--data measures a model: give its directory, too");
    if (rc == CGS_OK && data) rc = measure(words.word[0], data, device, json);
    if (rc == CGS_OK) {
        cJSON *to = cJSON_CreateObject();
        rc = !to           ? cgs_fail(CGS_ENOMEM, "no memory")
             : words.count ? describe(to, words.word[0])
                           : cgs_machine_describe(to);
        /* a file that does not load is still shown as far as it could be read */
        char *text = json && rc == CGS_OK ? cJSON_PrintUnformatted(to) : NULL;
        if (text)
            printf("%s\n", text);
        else if (!json) {
            cgs_model_card_print(to);
            print_learned(to);
            print_text(to, 0);
        }
        cJSON_free(text);
        cJSON_Delete(to);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_info = {
    "info", "[DIR|FILE] [--data F.h5] [--json]",
    "inspects a model directory or file; without a name, this machine and program",
    "Without a name: version, commit, compiler, versions of the libraries, processor, which\n"
    "instruction sets are used and why, cores and threads, which devices work, environment\n"
    "variables that matter.  Attach it to a bug report.\n"
    "With one: first what a model was trained on, how well it predicts and plans, and what it\n"
    "needs, and what --data or its training has measured (learned.json).  Plans are those of "
    "results.jsonl in its directory or one or two above that have its\n"
    "checksum of weights.  Then names, shapes, sizes, parameters, the model card, and whether the\n"
    "checksum matches.  It reads every number and executes nothing.  Exits with 1 when the model "
    "would not load.",
    run};
