/* cmd_bench.c - cgs bench: speed, and the share of the machine's peak.
 *
 * Every figure is a median; each JSON line carries its spread, machine, settings and commit. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli/architectures.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "ops/cuda/variants.h"

typedef struct settings {
    const char *device, *size, *model, *precision;
    int threads, windows, class_bits;
    int solves;
    const char *planner;
    bool encode, profile;
    double seconds;
    cgs_timing_work work; /* of architectures */
    const char *out, *list, *save, *compare;
    char command[1024];
} settings;

/* ---- the table of variants, as text ---------------------------------------------------------- */

typedef struct variant {
    const char *name, *part[3], *runs, *when, *worth;
} variant;

static const variant variants[] = {
#define X(id, before, operation, after, between, runs, timed, when, worth)                         \
    {#id, {#before, #operation, #after}, #runs, when, worth},
    CGS_CUDA_VARIANTS(X)
#undef X
};

/* "`add`, **`layernorm`**": the operations of a pattern, in bold the one whose functions run */
static void print_pattern(const variant *v) {
    const char *comma = "";
    if (!strcmp(v->runs, "device")) printf("the device");
    for (int i = 0; i < 3; i++) {
        if (!strcmp(v->part[i], "none")) continue;
        printf(i == 1 ? "%s**`%s`**" : "%s`%s`", comma, v->part[i]);
        comma = ", ";
    }
    if (!strcmp(v->runs, "forward") || !strcmp(v->runs, "backward")) printf(", %s", v->runs);
}

static cgs_status list_variants(const char *form) {
    bool names = !strcmp(form, "names");
    if (!names && strcmp(form, "markdown") != 0)
        return cgs_fail(CGS_EARG, "--list: \"%.20s\" is not names or markdown", form);
    if (!names)
        puts(
            "# Variants of operations on a GPU\n\n"
            "Optional faster forms; without one of them its operations run in their generic form,\n"
            "and of those that fit the first in this table runs. `CGS_VARIANTS_OFF` takes names "
            "of\n"
            "variants to turn off. `cgs bench variants` measures work with and without each,\n"
            "`test_gpu variants` tests without each. Numbers are of an H200: layers of an encoder\n"
            "for 512 images, updates of 128 windows. The table is `src/ops/cuda/variants.h`; this\n"
            "page is what `cgs bench variants --list markdown` prints.\n\n"
            "| name | stands for | when it fits | what it is worth |\n|---|---|---|---|");
    for (int i = 0; i < CGS_COUNT(variants); i++) {
        if (names) {
            puts(variants[i].name);
            continue;
        }
        printf("| `%s` | ", variants[i].name);
        print_pattern(&variants[i]);
        printf(" | %s | %s |\n", variants[i].when, variants[i].worth);
    }
    return CGS_OK;
}

static cgs_status architectures(const settings *s, cgs_device *d, bool json) {
    cgs_timing_options o = {.size = s->size,
                            .precision = s->precision,
                            .out = s->out,
                            .command = s->command,
                            .work = s->work,
                            .json = json};
    return cgs_architectures(d, &o);
}

static cgs_status operations(const settings *s, cgs_device *d, cgs_dtype act, cgs_bench_output *o) {
    CGS_TRY(cgs_bench_ops(d, act, s->seconds, cgs_bench_output_add, o));
    cgs_bench_output_choices(o, d);
    return CGS_OK;
}

static cgs_status bench(const char *what, const settings *s, cgs_device *d, cgs_bench_output *o) {
    cgs_dtype act = !strcmp(s->precision, "f32") ? CGS_F32 : CGS_BF16;
    cgs_bench_target target = {s->model, s->size};
    o->bench = what;
    if (!strcmp(what, "architectures")) return architectures(s, d, o->json);
    if (!o->json) printf("%s\n", what);
    if (!strcmp(what, "gemm")) return cgs_bench_gemm(d, cgs_bench_output_add, o);
    if (!strcmp(what, "ops")) return operations(s, d, act, o);
    if (!strcmp(what, "train"))
        return cgs_bench_update(d, s->size, act, s->class_bits, s->windows, s->profile,
                                cgs_bench_output_add, o);
    if (!strcmp(what, "variants"))
        return cgs_bench_variants(d, s->windows, cgs_bench_output_add, o);
    if (!strcmp(what, "plan")) return cgs_bench_plan(d, target, act, cgs_bench_output_add, o);
    if (!strcmp(what, "latency")) {
        cgs_latency_work w = {s->planner, s->work.samples, s->work.iters, s->encode, s->solves};
        return cgs_bench_latency(d, target, act, &w, cgs_bench_output_add, o);
    }
    if (!strcmp(what, "encode"))
        return cgs_bench_encode(d, target, act, 4 * s->windows, cgs_bench_output_add, o);
    char scratch[64];
    snprintf(scratch, sizeof scratch, "/tmp/cgs-bench-%ld.h5", (long)getpid());
    if (!strcmp(what, "data")) return cgs_bench_data(scratch, cgs_bench_output_add, o);
    if (!strcmp(what, "env")) return cgs_bench_env(s->seconds, scratch, cgs_bench_output_add, o);
    return cgs_fail(CGS_EARG,
                    "\"%.40s\" is not gemm, ops, train, encode, plan, latency, variants, "
                    "architectures, env, data "
                    "or all",
                    what);
}

/* not all that is measured is figures */
static cgs_status check_figures(const cgs_words *words, const char *list) {
    if (list) return cgs_fail(CGS_EARG, "--list measures nothing to save or compare");
    for (int i = 0; i < words->count; i++)
        if (!strcmp(words->word[i], "architectures"))
            return cgs_fail(CGS_EARG,
                            "architectures writes a document of its own, with --out: there is "
                            "nothing for --save and --compare");
    return CGS_OK;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    static const char *const all[] = {"gemm", "ops", "train", "encode", "plan", "env", "data"};
    settings s = {.device = "auto",
                  .size = "paper",
                  .model = "lewm",
                  .precision = "bf16",
                  .windows = 8,
                  .class_bits = 16,
                  .solves = CGS_LATENCY_WORK.solves,
                  .planner = CGS_LATENCY_WORK.planner,
                  .seconds = 0.2,
                  .work = CGS_TIMING_WORK};
    bool json = false;
    const cgs_opt opts[] = {
        {"device", "NAME", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &s.device, false},
        {"size", "NAME", "size preset of models: paper or small (paper)", OPT_STR, &s.size, false},
        {"model", "NAME", "for encode and plan: lewm, or DINO-WM on cls or patch features", OPT_STR,
         &s.model, false},
        {"precision", "P", "f32 or bf16", OPT_STR, &s.precision, false},
        {"windows", "N", "windows per update, four frames each", OPT_COUNT, &s.windows, false},
        {"class-bits", "N",
         "train: precision of the class token and pred_proj with bf16, 16 or 32 (16)", OPT_INT,
         &s.class_bits, false},
        {"profile", NULL, "train: also list times by shape", OPT_FLAG, &s.profile, false},
        {"seconds", "S", "shortest time of one measurement, in seconds", OPT_REAL, &s.seconds,
         false},
        {"samples", "K", "architectures, latency: candidates per iteration (128)", OPT_COUNT,
         &s.work.samples, false},
        {"iters", "I", "architectures, latency: iterations (30)", OPT_COUNT, &s.work.iters, false},
        {"gd-steps", "N", "architectures: steps of gd (100)", OPT_COUNT, &s.work.gd_steps, false},
        {"episodes", "N", "architectures: episodes that gd plans at once (50)", OPT_COUNT,
         &s.work.episodes, false},
        {"runs", "N", "architectures: solves per median (5)", OPT_COUNT, &s.work.runs, false},
        {"planner", "NAME", "latency: the planner (mppi)", OPT_STR, &s.planner, false},
        {"encode", NULL, "latency: encode the current frame's image before each solve", OPT_FLAG,
         &s.encode, false},
        {"solves", "N", "latency: solves to measure (200)", OPT_COUNT, &s.solves, false},
        {"list", "FORM", "variants: their names, or their table in markdown; measures nothing",
         OPT_STR, &s.list, false},
        {"out", "FILE", "architectures: result file for cgs report (timing.json)", OPT_STR, &s.out,
         false},
        {"save", "FILE", "write the figures to a file of JSON lines", OPT_STR, &s.save, false},
        {"compare", "FILE", "print the ratio of each figure to that in a file of --save", OPT_STR,
         &s.compare, false},
        {"threads", "N", "threads, 0: one per core", OPT_THREADS, &s.threads, false},
        {"json", NULL, "JSON lines", OPT_FLAG, &json, false},
    };
    cgs_words words;
    cgs_device d;
    cgs_command_text(s.command, sizeof s.command, self->name, argc, argv);
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count == 0)
        rc = cgs_fail(CGS_EARG,
                      "name what to measure: gemm, ops, train, encode, plan, latency, variants, "
                      "architectures, env, data or all");
    if (rc == CGS_OK && strcmp(s.precision, "f32") != 0 && strcmp(s.precision, "bf16") != 0)
        rc = cgs_fail(CGS_EARG, "--precision: \"%.20s\" is not f32 or bf16", s.precision);
    if (rc == CGS_OK && (s.save || s.compare)) rc = check_figures(&words, s.list);
    if (rc == CGS_OK && s.list) return cgs_exit_code(self, list_variants(s.list));
    if (rc == CGS_OK) rc = cgs_device_open(&d, s.device, s.threads);
    if (rc != CGS_OK) return cgs_exit_code(self, rc);
    cgs_bench_output o = {.json = json};
    rc = cgs_bench_output_open(&o, &d, s.save, s.compare);
    for (int i = 0; rc == CGS_OK && i < words.count; i++) {
        if (strcmp(words.word[i], "all") != 0) {
            rc = bench(words.word[i], &s, &d, &o);
            continue;
        }
        for (int k = 0; rc == CGS_OK && k < CGS_COUNT(all); k++) rc = bench(all[k], &s, &d, &o);
    }
    rc = cgs_bench_output_close(&o, rc);
    cgs_device_close(&d);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_bench = {
    "bench", "gemm|ops|train|encode|plan|latency|variants|architectures|env|data|all ...",
    "speed: medians, and the share of the machine's peak",
    "architectures measures planning through LeWM and through DINO-WM with CLS and with patch\n"
    "tokens in one process and prints their ratios beside the paper's (Table 14).  variants\n"
    "measures work with and without each optional faster form of a GPU's operations; with --list\n"
    "it prints what they are, on any machine.  Neither is part of all.  ops ends with what runs\n"
    "each matrix product on a CPU, and why.\n"
    "--save keeps figures, and --compare prints ratios to them, new / old, with the range of at "
    "most\n"
    "five parts of each measurement; what differs by more is marked.  Other programs on the "
    "machine\n"
    "are not part of that range: save and compare more than once.\n"
    "  cgs bench train plan --save before.jsonl\n"
    "  cgs bench train plan --compare before.jsonl\n"
    "  cgs bench train plan --device cuda\n"
    "  cgs bench variants --device cuda --windows 128\n"
    "  cgs bench architectures --device cuda\n"
    "  cgs bench architectures --device cpu --size small",
    run};
