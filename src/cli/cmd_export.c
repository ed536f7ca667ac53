/* cmd_export.c - cgs export: a model directory becomes one safetensors file. */
#include <string.h>

#include "cli/verbs.h"
#include "model/store.h"

/* A name that promises another format is refused. */
static cgs_status check_name(const char *out) {
    static const char *const others[] = {".pt",  ".pth", ".ckpt", ".bin",  ".onnx", ".npz",
                                         ".npy", ".h5",  ".json", ".gguf", ".zip"};
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash ? slash : out, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(dot, others[i]))
            return cgs_fail(CGS_EARG,
                            "%s: what is written is safetensors: name it %.*s.safetensors", out,
                            (int)(dot - out), out);
    return CGS_OK;
}

static cgs_status export_model(const char *dir, const char *out) {
    cgs_device d;
    cgs_lewm *m = NULL;
    cgs_model_card card;
    CGS_TRY(check_name(out));
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_model_load(&m, &card, dir, &d, false);
    if (rc == CGS_OK) rc = cgs_lewm_save_weights(m, out, &card);
    if (rc == CGS_OK)
        printf("%s: %d tensors, %zu parameters\n", out, m->params.count + 2,
               cgs_params_learnable(&m->params));
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *out = NULL;
    cgs_words words;
    const cgs_opt opts[] = {{"out", "FILE", "safetensors file to write", OPT_STR, &out, true}};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count != 1)
        rc = cgs_fail(CGS_EARG, "needs one model directory, got %d", words.count);
    if (rc == CGS_OK) rc = export_model(words.word[0], out);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_export = {
    "export", "DIR --out FILE", "writes a model directory as one safetensors file",
    "Tensor names and shapes are the published ones, in f32.  The metadata holds config.json,\n"
    "so cgs import needs nothing else.",
    run};
