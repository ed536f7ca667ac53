/* test_dino.c - DINO-WM: golden numbers, backbone files with both tensor names and bad ones,
 * gradients of the objective, rollouts and their cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "expect.h"
#include "golden.h"
#include "io/safetensors.h"
#include "loss/objective.h"
#include "model/dinowm_store.h"
#include "rollout/rollout.h"
#include "synthetic.h"
#include "train/train.h"

#define DIM(...) ((const int[]){__VA_ARGS__})

static cgs_device ref, cpu;
static char scratch[64];

static const char *in_scratch(const char *name) {
    static char path[4][128];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", scratch, name);
    return p;
}

static void test_golden_ref(void **state) {
    (void)state;
    golden_dino_check("ref", CGS_F32, 1e-4);
}
static void test_golden_cpu(void **state) {
    (void)state;
    golden_dino_check("cpu", CGS_F32, 1e-4);
}
static void test_golden_cpu_bf16(void **state) {
    (void)state;
    golden_dino_check("cpu", CGS_BF16, 2e-2);
}

/* ---- files ------------------------------------------------------------------------- */

static const cgs_backbone_config TINY = {64, 2, 1, 96, 4, 5};
static const cgs_backbone_view VIEW = {.image_size = 20, .size = 16, .hub = true};
enum { SIDE = 20, MOST = 64 };

/* a file as a list of tensors that a test may spoil before it is written */
typedef struct file {
    cgs_save tensor[MOST];
    char name[MOST][CGS_PARAM_NAME];
    size_t count;
    float *values;
} file;

static void add(file *f, const char *name, int rank, const int *dim, const float *data) {
    cgs_save *s = &f->tensor[f->count];
    snprintf(f->name[f->count], CGS_PARAM_NAME, "%s", name);
    *s = (cgs_save){.name = f->name[f->count], .type = CGS_W_F32, .rank = rank, .data = data};
    for (int i = 0; i < rank; i++) s->dim[i] = dim[i];
    f->count++;
}

/* the other name of one of ours, for part `third` of three */
static void huggingface(const char *ours, int third, char *name) {
    static const char *const parts[] = {"query", "key", "value"};
    static const char *const other[][2] = {{"attn.proj.", "attention.output.dense."},
                                           {"ls1.gamma", "layer_scale1.lambda1"},
                                           {"ls2.gamma", "layer_scale2.lambda1"},
                                           {"norm1.", "norm1."},
                                           {"norm2.", "norm2."},
                                           {"mlp.", "mlp."}};
    static const char *const whole[][2] = {
        {"cls_token", "embeddings.cls_token"},
        {"pos_embed", "embeddings.position_embeddings"},
        {"patch_embed.proj.weight", "embeddings.patch_embeddings.projection.weight"},
        {"patch_embed.proj.bias", "embeddings.patch_embeddings.projection.bias"},
        {"norm.weight", "layernorm.weight"},
        {"norm.bias", "layernorm.bias"}};
    int layer, at = 0;
    if (sscanf(ours, "blocks.%d.%n", &layer, &at) == 1 && at) {
        const char *part = ours + at;
        if (!strncmp(part, "attn.qkv.", 9))
            sprintf(name, "encoder.layer.%d.attention.attention.%s.%s", layer, parts[third],
                    part + 9);
        for (int i = 0; i < 6; i++)
            if (!strncmp(part, other[i][0], strlen(other[i][0])))
                sprintf(name, "encoder.layer.%d.%s%s", layer, other[i][1],
                        part + strlen(other[i][0]));
        return;
    }
    for (int i = 0; i < 6; i++)
        if (!strcmp(ours, whole[i][0])) strcpy(name, whole[i][1]);
}

/* random weights, the same for both tensor names */
static void make_file(file *f, bool hub) {
    cgs_backbone *b;
    OK(cgs_backbone_create(&b, &TINY, &VIEW, &ref, false));
    memset(f, 0, sizeof *f);
    size_t total = 0;
    for (int i = 0; i < b->params.count; i++) total += b->params.list[i].count;
    float *at = f->values = malloc((total + 64) * sizeof *at);
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < total + 64; i++) at[i] = (float)(0.2 * cgs_rng_normal(&r));
    for (int i = 0; i < b->params.count; i++) {
        const cgs_param *e = &b->params.list[i];
        bool split = !hub && strstr(e->name, "attn.qkv.");
        for (int k = 0; k < (split ? 3 : 1); k++) {
            char name[CGS_PARAM_NAME];
            int dim[4];
            for (int j = 0; j < e->rank; j++) dim[j] = e->dim[j];
            if (split) dim[0] /= 3;
            strcpy(name, e->name);
            if (!hub) huggingface(e->name, k, name);
            add(f, name, e->rank, dim, at + (split ? e->count / 3 * (size_t)k : 0));
        }
        at += e->count;
    }
    add(f, hub ? "mask_token" : "embeddings.mask_token", 2, DIM(1, 64), at);
    cgs_backbone_destroy(b);
}

static cgs_status write_file(const file *f, const char *path) {
    return cgs_safetensors_write(path, f->tensor, f->count, NULL, 0);
}

static void tokens_of(cgs_backbone *b, float *out) {
    cgs_tape *t;
    uint8_t frame[SIDE * SIDE * 3];
    for (uint32_t i = 0; i < sizeof frame; i++) frame[i] = (uint8_t)(golden_bits("tiny", i) >> 24);
    OK(cgs_tape_create(&t, b->params.device, CGS_F32));
    cgs_tensor *in = cgs_input(t, "frames", CGS_U8, 4, DIM(1, SIDE, SIDE, 3));
    cgs_tensor *x = cgs_keep(cgs_backbone_tokens(t, b, in, false));
    OK(cgs_tape_finish(t, NULL));
    memcpy(in->data, frame, sizeof frame);
    cgs_tape_forward(t);
    assert_int_equal(cgs_numel(x), 17 * 64);
    OK(cgs_tensor_read(t, x, out));
    cgs_tape_destroy(t);
}

static void test_tensor_names(void **state) {
    (void)state;
    static float one[17 * 64], other[17 * 64], saved[17 * 64], rule[17 * 64];
    for (int hub = 0; hub < 2; hub++) {
        file f;
        cgs_backbone *b;
        make_file(&f, hub);
        OK(write_file(&f, in_scratch("b.safetensors")));
        OK(cgs_backbone_load(&b, in_scratch("b.safetensors"), &VIEW, &cpu));
        assert_string_equal(b->origin, "dinov2");
        tokens_of(b, hub ? one : other);
        if (hub) { /* what we write reads back as the same network */
            OK(cgs_backbone_save(b, in_scratch("again.safetensors")));
            cgs_backbone *again;
            OK(cgs_backbone_load(&again, in_scratch("again.safetensors"), &VIEW, &cpu));
            tokens_of(again, saved);
            cgs_backbone_destroy(again);
            cgs_backbone_view other_rule = VIEW;
            other_rule.hub = false;
            OK(cgs_backbone_load(&again, in_scratch("b.safetensors"), &other_rule, &cpu));
            tokens_of(again, rule);
            cgs_backbone_destroy(again);
        }
        cgs_backbone_destroy(b);
        free(f.values);
    }
    assert_memory_equal(one, other, sizeof one);
    assert_memory_equal(one, saved, sizeof one);
    assert_memory_not_equal(one, rule, sizeof one);
}

static void test_bad_files(void **state) {
    (void)state;
    cgs_backbone *b;
    const char *path = in_scratch("bad.safetensors");
    for (int hub = 0; hub < 2; hub++) {
        file f;
        make_file(&f, hub);
        for (size_t i = 0; i + 1 < f.count; i++) { /* each one missing, but for the mask token */
            file g = f;
            g.tensor[i] = g.tensor[--g.count];
            OK(write_file(&g, path));
            cgs_status rc = cgs_backbone_load(&b, path, &VIEW, &cpu);
            assert_int_equal(rc, CGS_EFORMAT);
            if (!strstr(f.name[i], "norm1.weight")) /* without it a block is not counted */
                REFUSED(rc, CGS_EFORMAT, f.name[i]);
        }
        file g = f;
        add(&g, "register_tokens", 3, DIM(1, 4, 16), f.values);
        OK(write_file(&g, path));
        REFUSED(cgs_backbone_load(&b, path, &VIEW, &cpu), CGS_EFORMAT,
                "\"register_tokens\" [1,4,16]");
        g = f; /* another depth: a block too much */
        add(&g, hub ? "blocks.2.norm1.weight" : "encoder.layer.2.norm1.weight", 1, DIM(64),
            f.values);
        OK(write_file(&g, path));
        REFUSED(cgs_backbone_load(&b, path, &VIEW, &cpu), CGS_EFORMAT,
                hub ? "blocks.2." : "encoder.layer.2.");
        g = f; /* another width in one place */
        for (size_t i = 0; i < g.count; i++)
            if (strstr(g.name[i], "fc2.bias")) g.tensor[i].dim[0] = 63;
        OK(write_file(&g, path));
        REFUSED(cgs_backbone_load(&b, path, &VIEW, &cpu), CGS_EFORMAT,
                "[63], the backbone needs [64]");
        g = f;
        for (size_t i = 0; i < g.count; i++) /* neither naming */
            memmove(g.name[i] + 2, f.name[i], strlen(f.name[i]) + 1), memcpy(g.name[i], "x.", 2),
                g.tensor[i].name = g.name[i];
        OK(write_file(&g, path));
        REFUSED(cgs_backbone_load(&b, path, &VIEW, &cpu), CGS_EFORMAT, "begins with x.");
        free(f.values);
    }
    assert_null(b);
}

/* ---- the model --------------------------------------------------------------------- */

static cgs_dinowm_config tiny_config(const char *tokens) {
    cgs_dinowm_config c;
    OK(cgs_dinowm_preset(&c, "small"));
    strcpy(c.tokens.s, tokens);
    c.size = 12;
    c.patch = 4;
    c.features = 10;
    c.hidden = 6;
    c.channels = 3;
    c.aggregate_hidden = 9;
    c.aggregate = 5;
    c.embed = 4;
    c.predictor_layers = 2;
    c.predictor_heads = 2;
    c.predictor_head_width = 4;
    c.predictor_mlp = 8;
    c.dropout = 0;
    return c;
}

typedef struct learning {
    cgs_dinowm *m;
    cgs_tape *t;
    cgs_objective o;
} learning;

static void fill(cgs_tape *t, cgs_tensor *x, int which) {
    float *v = malloc(cgs_numel(x) * sizeof *v);
    for (uint32_t i = 0; i < cgs_numel(x); i++)
        v[i] = (float)golden_unit("input", i + 100000u * (uint32_t)which);
    OK(cgs_tensor_write(t, x, v));
    free(v);
}

static void learn(learning *l, const char *tokens, const float w[CGS_TERMS]) {
    cgs_dinowm_config c = tiny_config(tokens);
    OK(cgs_dinowm_create(&l->m, &c, NULL, &ref, true));
    OK(golden_fill_params(&l->m->params));
    OK(cgs_tape_create(&l->t, &ref, CGS_F32));
    OK(cgs_objective_build_dinowm(&l->o, l->t, l->m, 2, 10, 16, false, 7, true));
    fill(l->t, l->o.features, 0);
    fill(l->t, l->o.proprio, 1);
    fill(l->t, l->o.actions, 2);
    fill(l->t, l->o.reference, 3);
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    OK(cgs_tensor_write(l->t, l->o.mask, ones));
    OK(cgs_tensor_write(l->t, l->o.weights, w));
}

static void unlearn(learning *l) {
    cgs_tape_destroy(l->t);
    cgs_model_destroy(&l->m->base);
}

static double loss_of(learning *l) {
    float v;
    cgs_tape_forward(l->t);
    OK(cgs_tensor_read(l->t, l->o.total, &v));
    return v;
}

/* the derivative of the loss along one element of a parameter */
static void check_derivative(learning *l, const char *name) {
    const cgs_param *e = cgs_params_find(&l->m->params, name);
    assert_non_null(e);
    float *v = malloc(e->count * sizeof *v), *g = malloc(e->count * sizeof *v);
    OK(cgs_param_read(&l->m->params, e, v));
    loss_of(l);
    cgs_tape_backward(l->t);
    OK(cgs_param_read_grad(&l->m->params, e, g));
    /* along the gradient itself, where the change is largest */
    double norm = 0;
    for (size_t i = 0; i < e->count; i++) norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    assert_true(norm > 1e-6);
    double side[2], h = 2e-3 / (1 + norm); /* steep is also curved: a shorter step */
    float *moved = malloc(e->count * sizeof *v);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < e->count; i++) moved[i] = (float)(v[i] + (k ? h : -h) * g[i] / norm);
        OK(cgs_param_write(&l->m->params, e, moved));
        side[k] = loss_of(l);
    }
    OK(cgs_param_write(&l->m->params, e, v));
    double derivative = (side[1] - side[0]) / (2 * h);
    if (fabs(derivative - norm) > 1e-2 * norm + 2e-4)
        fail_msg("%s: derivative %g, gradient %g", name, derivative, norm);
    free(v);
    free(g);
    free(moved);
}

static double grad_norm(learning *l, const char *name) {
    const cgs_param *e = cgs_params_find(&l->m->params, name);
    float *g = malloc(e->count * sizeof *g);
    double sum = 0;
    OK(cgs_param_read_grad(&l->m->params, e, g));
    for (size_t i = 0; i < e->count; i++) sum += (double)g[i] * g[i];
    free(g);
    return sqrt(sum);
}

static void test_gradients(void **state) {
    (void)state;
    static const char *const predictor[] = {
        "predictor.pos_embedding", "predictor.transformer.layers.0.0.to_qkv.weight",
        "predictor.transformer.layers.1.1.net.4.weight", "action_encoder.patch_embed.weight"};
    const float pred[CGS_TERMS] = {1, 0, 0, 0}, geometry[CGS_TERMS] = {0, 0, 0.5f, 1};
    learning l;
    for (int patch = 0; patch < 2; patch++) {
        const char *head = patch ? "projector.conv_layers.0.weight" : "adapter.weight";
        learn(&l, patch ? "patch" : "cls", pred);
        for (int i = 0; i < 4; i++) check_derivative(&l, predictor[i]);
        assert_true(grad_norm(&l, head) > 0); /* through the context, not through the targets */
        unlearn(&l);
        learn(&l, patch ? "patch" : "cls", geometry);
        check_derivative(&l, head);
        if (patch) check_derivative(&l, "agg_mlp.2.weight");
        assert_true(grad_norm(&l, "predictor.pos_embedding") == 0);
        assert_true(grad_norm(&l, "proprio_encoder.patch_embed.weight") == 0);
        unlearn(&l);
    }
}

static void test_adapter_is_identity(void **state) {
    (void)state;
    cgs_dinowm_config c = tiny_config("cls");
    cgs_dinowm *m;
    cgs_tape *t;
    float in[3 * 10], out[3 * 10];
    OK(cgs_dinowm_create(&m, &c, NULL, &cpu, true));
    OK(cgs_params_init(&m->params, 5));
    OK(cgs_tape_create(&t, &cpu, CGS_F32));
    cgs_tensor *x = cgs_input(t, "features", CGS_F32, 3, DIM(3, 1, 10));
    cgs_tensor *y = cgs_keep(cgs_dinowm_project(t, m, x));
    OK(cgs_tape_finish(t, NULL));
    for (uint32_t i = 0; i < 30; i++) in[i] = (float)golden_unit("x", i);
    OK(cgs_tensor_write(t, x, in));
    cgs_tape_forward(t);
    OK(cgs_tensor_read(t, y, out));
    assert_memory_equal(in, out, sizeof in);
    cgs_tape_destroy(t);
    cgs_model_destroy(&m->base);
}

/* ---- planning ---------------------------------------------------------------------- */

enum { H = 4, K = 3, A = 10 };

static void test_rollout(void **state) {
    (void)state;
    for (int patch = 0; patch < 2; patch++) {
        cgs_dinowm_config c = tiny_config(patch ? "patch" : "cls");
        cgs_dinowm *m;
        OK(cgs_dinowm_create(&m, &c, NULL, &ref, false));
        OK(golden_fill_params(&m->params));
        int D = m->base.width, P = cgs_dinowm_tokens(&c), C = cgs_dinowm_channels(&c), E = c.embed;
        assert_int_equal(D, P * (C + E));
        float *z = malloc((size_t)D * sizeof *z), *goal = malloc((size_t)D * sizeof *goal);
        float plans[K * H * A], cost[K], *frames = malloc(K * H * (size_t)D * sizeof *frames);
        for (uint32_t i = 0; i < (uint32_t)D; i++) {
            z[i] = (float)golden_unit("z", i);
            goal[i] = (float)golden_unit("goal", i);
        }
        for (uint32_t i = 0; i < K * H * A; i++) plans[i] = (float)golden_unit("plan", i);

        cgs_rollout *r;
        cgs_rollout_config rc = {.episodes = 1, .context = 1, .horizon = H, .samples = K};
        OK(cgs_rollout_create_any(&r, &m->base, &rc));
        OK(cgs_rollout_set(r, 1, z, NULL, goal));
        OK(cgs_rollout_cost(r, plans, 1, K, cost));
        OK(cgs_rollout_imagine(r, plans, 1, K, frames));
        for (int k = 0; k < K; k++) {
            const float *last = frames + ((size_t)k * H + H - 1) * (size_t)D;
            double visual = 0, proprio = 0;
            for (int p = 0; p < P; p++)
                for (int i = 0; i < C + E; i++) {
                    double e = last[p * (C + E) + i] - goal[p * (C + E) + i];
                    if (i < C) visual += e * e / (P * C);
                    if (i >= C && p == 0) proprio += e * e / E;
                }
            assert_float_equal(cost[k], visual + proprio, 1e-4 * (visual + proprio));
        }
        cgs_rollout_destroy(r);

        /* residuals: parts with the roots of their weights, in squares the cost */
        static float residual[K * 512];
        rc.residual = true;
        OK(cgs_rollout_create_any(&r, &m->base, &rc));
        OK(cgs_rollout_set(r, 1, z, NULL, goal));
        int R = cgs_rollout_residuals(r);
        assert_int_equal(R, P * C + E);
        assert_true(R <= 512);
        OK(cgs_rollout_residual(r, plans, 1, K, cost, residual));
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int i = 0; i < R; i++) sum += residual[k * R + i] * residual[k * R + i];
            assert_float_equal(cost[k], sum, 1e-5 * sum);
        }
        cgs_rollout_destroy(r);

        /* the derivative of the cost along its gradient */
        float grad[H * A], moved[H * A], one;
        cgs_rollout_config gc = {
            .episodes = 1, .context = 1, .horizon = H, .samples = 1, .gradient = true};
        OK(cgs_rollout_create_any(&r, &m->base, &gc));
        OK(cgs_rollout_set(r, 1, z, NULL, goal));
        OK(cgs_rollout_gradient(r, plans, 1, &one, grad));
        assert_float_equal(one, cost[0], 1e-5);
        double norm = 0, side[2], h = 5e-3;
        for (int i = 0; i < H * A; i++) norm += (double)grad[i] * grad[i];
        norm = sqrt(norm);
        for (int k = 0; k < 2; k++) {
            float unused[H * A], value;
            for (int i = 0; i < H * A; i++)
                moved[i] = (float)(plans[i] + (k ? h : -h) * grad[i] / norm);
            OK(cgs_rollout_gradient(r, moved, 1, &value, unused));
            side[k] = value;
        }
        double derivative = (side[1] - side[0]) / (2 * h);
        if (!(norm > 0) || fabs(derivative - norm) > 2e-2 * norm + 1e-4)
            fail_msg("derivative of the cost %g, gradient %g", derivative, norm);
        cgs_rollout_destroy(r);
        free(z);
        free(goal);
        free(frames);
        cgs_model_destroy(&m->base);
    }
}

/* the latents of a step, predicted from its whole window */
static void one_window(cgs_dinowm *m, const float *z, int frames, const float *actions,
                       float *out) {
    cgs_tape *t;
    int D = m->base.width;
    OK(cgs_tape_create(&t, &ref, CGS_F32));
    cgs_tape_freeze_parameters(t);
    cgs_tensor *window = cgs_input(t, "z", CGS_F32, 3, DIM(1, frames, D));
    cgs_tensor *blocks = cgs_input(t, "actions", CGS_F32, 3, DIM(1, frames, A));
    cgs_tensor *tokens = cgs_dinowm_join(t, m, window, blocks, 0);
    cgs_tensor *next = cgs_dinowm_predict(t, m, tokens, false, false);
    cgs_tensor *y = cgs_keep(cgs_dinowm_strip(t, m, next));
    OK(cgs_tape_finish(t, NULL));
    OK(cgs_tensor_write(t, window, z));
    OK(cgs_tensor_write(t, blocks, actions));
    cgs_tape_forward(t);
    float *all = malloc(cgs_numel(y) * sizeof *all);
    OK(cgs_tensor_read(t, y, all));
    memcpy(out, all + (size_t)(frames - 1) * (size_t)D, (size_t)D * sizeof *out);
    free(all);
    cgs_tape_destroy(t);
}

/* A rollout caches what growing windows share; a prediction from each whole window is the same. */
static void test_windows(void **state) {
    (void)state;
    for (int patch = 0; patch < 2; patch++)
        for (int context = 1; context <= 3; context++) {
            cgs_dinowm_config c = tiny_config(patch ? "patch" : "cls");
            cgs_dinowm *m;
            cgs_rollout *r;
            OK(cgs_dinowm_create(&m, &c, NULL, &ref, false));
            OK(golden_fill_params(&m->params));
            size_t D = (size_t)m->base.width;
            int all = context - 1 + H;
            float *z = malloc(((size_t)context + H) * D * sizeof *z);
            float *frames = malloc(H * D * sizeof *frames), actions[(2 + H) * A];
            for (uint32_t i = 0; i < (uint32_t)context * (uint32_t)D; i++)
                z[i] = (float)golden_unit("z", i);
            for (uint32_t i = 0; i < (uint32_t)(all * A); i++)
                actions[i] = (float)golden_unit("plan", i);
            cgs_rollout_config rc = {.episodes = 1, .context = context, .horizon = H, .samples = 1};
            OK(cgs_rollout_create_any(&r, &m->base, &rc));
            OK(cgs_rollout_set(r, 1, z, actions, NULL));
            OK(cgs_rollout_imagine(r, actions + (context - 1) * A, 1, 1, frames));
            for (int s = 0; s < H; s++) {
                int seen = context + s, w = seen < 3 ? seen : 3;
                float *next = z + (size_t)seen * D;
                one_window(m, next - (size_t)w * D, w, actions + (seen - w) * A, next);
                for (size_t i = 0; i < D; i++)
                    assert_float_equal(frames[(size_t)s * D + i], next[i], 1e-5);
            }
            free(z);
            free(frames);
            cgs_rollout_destroy(r);
            cgs_model_destroy(&m->base);
        }
}

/* ---- training ---------------------------------------------------------------------- */

/* the largest change of one parameter from what it starts as */
static double moved(cgs_params *p, const char *name, uint64_t seed) {
    const cgs_param *e = cgs_params_find(p, name);
    float *now = malloc(e->count * sizeof *now), *then = malloc(e->count * sizeof *now);
    double most = 0;
    OK(cgs_param_read(p, e, now));
    OK(cgs_params_init(p, seed));
    OK(cgs_param_read(p, e, then));
    for (size_t i = 0; i < e->count; i++) most = fmax(most, fabs((double)now[i] - then[i]));
    free(now);
    free(then);
    return most;
}

/* a disc that moves, a random backbone: predictions improve, and each group has its own rate */
static void test_learns(void **state) {
    (void)state;
    char data[128], backbone[128], run[128];
    snprintf(data, sizeof data, "%s", in_scratch("disc.h5"));
    snprintf(backbone, sizeof backbone, "%s", in_scratch("b.safetensors"));
    OK(synthetic_dataset(data, 12, 40, 32, 1));
    file f;
    make_file(&f, true);
    OK(write_file(&f, backbone));
    free(f.values);
    for (int patch = 0; patch < 2; patch++) {
        cgs_run_config c;
        cgs_trainer *t;
        OK(cgs_run_preset(&c, "small"));
        OK(cgs_run_method(&c, patch ? "dinowm-patch-cgs" : "dinowm-cls-cgs", ""));
        c.dino.size = 16;
        OK(cgs_run_backbone(&c, backbone));
        c.dino.image_size = 32;
        c.dino.proprio_dim = c.dino.frameskip = 2;
        c.dino.predictor_layers = 1;
        c.dino.predictor_mlp = 64;
        c.train.batch = 6;
        c.train.updates = 40;
        c.train.lr = 3e-3f;
        c.train.head_lr = 1e-6f;
        c.train.cache = false;
        strcpy(c.train.precision.s, "f32");
        snprintf(run, sizeof run, "%s", in_scratch(patch ? "patch" : "cls"));
        OK(cgs_trainer_create(&t, &c, data, run, &cpu, false));
        double first = 0, last = 0;
        for (int i = 0; i < 40; i++) {
            cgs_step_info info;
            OK(cgs_trainer_step(t, &info));
            if (i < 5) first += info.term[CGS_TERM_PRED] / 5;
            if (i >= 35) last += info.term[CGS_TERM_PRED] / 5;
        }
        print_message("%s: pred %.3f -> %.3f\n", c.train.method.s, first, last);
        assert_true(last < 0.7 * first);
        cgs_params *p = cgs_trainer_model(t)->params;
        double head = moved(p, patch ? "projector.conv_layers.0.weight" : "adapter.weight", 3072);
        assert_true(head > 0 && head <= 40 * 1.1e-6); /* 40 steps of Adam, no decay */
        cgs_trainer_destroy(t);
    }
}

static int begin(void **state) {
    (void)state;
    strcpy(scratch, "/tmp/cgs_dino_XXXXXX");
    return !mkdtemp(scratch) || cgs_device_open(&ref, "ref", 1) != CGS_OK ||
           cgs_device_open(&cpu, "cpu", 2) != CGS_OK;
}

static int end(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    if (system(command) != 0) return 1;
    cgs_device_close(&ref);
    cgs_device_close(&cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_names),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_adapter_is_identity),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_golden_cpu),
        cmocka_unit_test(test_golden_cpu_bf16),
        cmocka_unit_test(test_golden_ref),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
