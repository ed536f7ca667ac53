/* cmd_export.c - cgs export: a model directory becomes one safetensors file. */
#include <string.h>

#include "cli/verbs.h"
#include "model/dinowm_store.h"
#include "model/onnx.h"

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

static cgs_status write(const char *out, const cgs_lewm *m, const cgs_model_card *card, bool onnx) {
    if (!onnx) {
        CGS_TRY(cgs_lewm_save_weights(m, out, card));
        printf("%s: %d tensors, %zu parameters\n", out, m->params.count + 2,
               cgs_params_learnable(&m->params));
        return CGS_OK;
    }
    CGS_TRY(cgs_lewm_save_onnx(out, m, card));
    printf("%s: " CGS_ONNX_ENCODER ", " CGS_ONNX_PREDICTOR "\n", out);
    return CGS_OK;
}

static cgs_status export_model(const char *dir, const char *out, bool onnx) {
    cgs_device d;
    cgs_lewm *m = NULL;
    cgs_model_card card;
    if (onnx && cgs_dinowm_is_dir(dir))
        return cgs_fail(CGS_EARG, "%s: a DINO-WM model: only LeWM is written as ONNX", dir);
    if (!onnx) CGS_TRY(check_name(out));
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    cgs_status rc = cgs_model_load(&m, &card, dir, &d, false);
    if (rc == CGS_OK) rc = write(out, m, &card, onnx);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *out = NULL;
    cgs_words words;
    bool onnx = false;
    const cgs_opt opts[] = {
        {"out", "FILE", "safetensors file to write; with --onnx a folder", OPT_STR, &out, true},
        {"onnx", NULL, "write encoder.onnx and predictor.onnx (LeWM)", OPT_FLAG, &onnx, false}};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count != 1)
        rc = cgs_fail(CGS_EARG, "needs one model directory, got %d", words.count);
    if (rc == CGS_OK) rc = export_model(words.word[0], out, onnx);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_export = {
    "export", "DIR --out FILE [--onnx]",
    "writes a model directory as one safetensors file, or ONNX",
    "Tensor names and shapes are the published ones, in f32.  The metadata holds config.json,\n"
    "so cgs import needs nothing else.  --onnx writes two graphs of opset 17 for other runtimes:\n"
    "pixels (frames, S, S, 3) to latents, and latents with standardised action blocks\n"
    "(batch, time, ...) to the latents that follow; their metadata hold config.json, too.",
    run};
