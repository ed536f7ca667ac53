/* cmd_probe.c - cgs probe: probes latents for the physical effects of actions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/probe_run.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"

/* a score, and the published one in brackets */
static void print_score(double score, const double *published, int i) {
    printf(" %6.3f", score);
    if (published)
        printf(" (%6.3f)", published[i]);
    else
        printf("         ");
}

static void print_tables(const cgs_probe_result *r) {
    static const char *const physical[CGS_PHYSICAL_SCORES] = {
        "P_A lin", "P_A mlp", "P_S lin", "P_S mlp", "P_AS lin", "P_AS mlp", "R2(A|S)"};
    const cgs_motion *m = &r->motion;
    const char *env = m->world;
    printf("%s: %d episodes, %d transitions fitted, %d validating, %d scored%s\n\n%-24s",
           *env ? env : "columns", m->episodes, m->parts.fit, m->parts.validation, m->parts.test,
           *env ? " (published in brackets)" : "", "change of");
    for (int i = 0; i < CGS_PHYSICAL_SCORES; i++) printf(" %-15s", physical[i]);
    printf("\n");
    for (int t = 0; t < m->targets; t++) {
        if (!r->requested[t]) continue;
        printf("%-24s", m->target[t].name);
        for (int i = 0; i < CGS_PHYSICAL_SCORES; i++)
            print_score(r->physical[t].score[i], cgs_published_physical(env, m->target[t].name), i);
        printf("\n");
    }
    if (r->models == 0) return;
    printf("\n%-24s %-20s", "change of", "model");
    for (int i = 0; i < CGS_LATENT_SCORES; i++) printf(" %-15s", cgs_latent_names[i]);
    printf("\n");
    for (int t = 0; t < m->targets; t++)
        for (int i = 0; i < r->models && r->requested[t]; i++) {
            printf("%-24s %-20.20s", m->target[t].name, r->name[i]);
            for (int k = 0; k < CGS_LATENT_SCORES; k++)
                print_score(r->latent[i * CGS_MAX_TARGETS + t].score[k],
                            cgs_published_latent(env, m->target[t].name, r->method[i]), k);
            printf("\n");
        }
}

static cgs_status probe(cgs_probe_options *o, const char *out, const char *command, bool quiet,
                        bool json) {
    cgs_phases s = {.quiet = quiet};
    cgs_probe_result r;
    cJSON *doc = NULL;
    cgs_catch_interrupt();
    o->progress = cgs_on_phase;
    o->user = &s;
    cgs_status rc = cgs_probe_run(&r, o);
    cgs_progress_end(&s.bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped; finished latents are kept");
    if (rc == CGS_OK) rc = cgs_probe_document(&doc, &r, command);
    if (rc == CGS_OK && out) rc = cgs_document_save(doc, out);
    if (rc == CGS_OK && json) {
        rc = cgs_document_print(doc, stdout);
    } else if (rc == CGS_OK) {
        print_tables(&r);
        if (!quiet)
            printf("\n%.1f s%s\n", r.seconds,
                   r.cached ? ", latents reused from an earlier run" : "");
    }
    cJSON_Delete(doc);
    cgs_probe_result_free(&r);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_probe_options o = cgs_probe_defaults();
    cgs_section section = cgs_probe_section(&o.config);
    cgs_words models = {0}, targets = {0}, settings = {0};
    cgs_texts model_list, target_list;
    const char *out = NULL;
    char command[4096], folder[4096];
    bool quiet = false, json = false;
    cgs_command_text(command, sizeof command, self->name, argc, argv);
    const cgs_opt opts[] = {
        {"data", "F.h5", "dataset to probe", OPT_STR, &o.data, true},
        {"model", "DIR ...", "model directories; none: only the environment", OPT_LIST, &models,
         false},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &o.env, false},
        {"target", "NAME,...", "physical quantities of the environment, or columns (all)", OPT_LIST,
         &targets, false},
        {"episodes", "N", "episodes: 70% to fit, 10% to validate, 20% to score (200)", OPT_COUNT,
         &o.episodes, false},
        {"out", "P.json", "result file", OPT_STR, &out, false},
        {"cache", "DIR", "folder of cached latents (that of the result file, or each model's)",
         OPT_STR, &o.cache, false},
        {"device", "D", "cuda, cpu or ref, for encoding (a GPU if there is one)", OPT_STR,
         &o.device, false},
        {"precision", "P", "precision of the encoder, f32 or bf16 (f32)", OPT_STR, &o.precision,
         false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &o.threads, false},
        {"json", NULL, "print the result file on standard output", OPT_FLAG, &json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &settings);
    if (rc == CGS_OK) rc = cgs_env_option(&o.env);
    for (int i = 0; rc == CGS_OK && i < settings.count; i++)
        rc = cgs_config_assign(&section, 1, settings.word[i]);
    if (rc == CGS_OK) rc = cgs_list_texts(&model_list, "model", &models);
    if (rc == CGS_OK) rc = cgs_list_texts(&target_list, "target", &targets);
    if (rc == CGS_OK) {
        o.models = model_list.item;
        o.model_count = model_list.count;
        o.targets = target_list.item;
        o.target_count = target_list.count;
        if (out && !o.cache) { /* beside the result */
            snprintf(folder, sizeof folder, "%s", out);
            char *slash = strrchr(folder, '/');
            if (slash) *slash = '\0';
            o.cache = slash ? folder : ".";
        }
        rc = probe(&o, out, command, quiet, json);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_probe = {
    "probe", "--data F.h5 [--model DIR ...] [--out probe.json] [probe.key=value ...]",
    "probes latents for the physical effects of actions",
    "Scores (R2 on episodes that the probes were not fitted to, beside the published ones) of\n"
    "predicting physical changes from actions, states and both (P) and from latent changes (D),\n"
    "and how far a linear map of latent changes agrees with the effect that actions predict\n"
    "(C, B); linear and nonlinear.\n"
    "Without an environment, and for a --target that is no quantity of it, columns of the data "
    "are\n"
    "probed; what probes see as the state is then all of them.\n"
    "Latents are computed once and cached as latents-*.safetensors.  Settings: probe.hidden,\n"
    "batch, epochs, patience, lr, joint.\n"
    "  cgs probe --model runs/lewm runs/lewm-cgs --data pusht.h5 --out runs/probe.json",
    run};
