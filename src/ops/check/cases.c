/* cases.c - the list of cases and how each is built from its sizes.
 *
 * Element types follow the models: products, norms and attention give activations of
 * the tape's type (act); the residual stream, latents and losses are f32 always. */
#include "ops/check/cases.h"

#define DIM(...)                                                                                   \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]) { __VA_ARGS__ }

/* values in [-range, range) */
static cgs_tensor *input(cgs_op_trial *t, const char *name, cgs_dtype type, float range, int rank,
                         const int *dim) {
    return cgs_op_trial_input(t, name, type, -range, range, CGS_FILL_UNIFORM, rank, dim);
}

static cgs_tensor *build_patchify(cgs_op_trial *t, const int *n) { /* frames, size, patch */
    const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    cgs_tensor *x =
        cgs_op_trial_constant(t, "frames", CGS_U8, 0, 0, CGS_FILL_BYTES, DIM(n[0], n[1], n[1], 3));
    return cgs_patchify(t->tape, x, n[2], mean, std);
}

static cgs_tensor *build_resized(cgs_op_trial *t, const int *n) { /* frames, S, R, patch */
    const float half[3] = {0.5f, 0.5f, 0.5f};
    cgs_tensor *x =
        cgs_op_trial_constant(t, "frames", CGS_U8, 0, 0, CGS_FILL_BYTES, DIM(n[0], n[1], n[1], 3));
    return cgs_patchify_resized(t->tape, x, n[2], n[3], half, half);
}

static cgs_tensor *build_unfold(cgs_op_trial *t, const int *n) { /* frames, side, C, f32 */
    cgs_tensor *x = input(t, "x", n[3] ? CGS_F32 : t->act, 1, DIM(n[0], n[1] * n[1], n[2]));
    return cgs_unfold(t->tape, x);
}

static cgs_tensor *build_linear(cgs_op_trial *t, const int *n) { /* rows, k, m, bias, f32 result */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.5f, 0.5f, DIM(n[2], n[1]));
    cgs_tensor *b = n[3] ? cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[2])) : NULL;
    return n[4] ? cgs_linear_f32(t->tape, x, W, b) : cgs_linear(t->tape, x, W, b);
}

static cgs_tensor *build_linear_f32(cgs_op_trial *t, const int *n) { /* an f32 x at any precision */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[1]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.5f, 0.5f, DIM(n[2], n[1]));
    cgs_tensor *b = n[3] ? cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[2])) : NULL;
    return n[4] ? cgs_linear_f32(t->tape, x, W, b) : cgs_linear(t->tape, x, W, b);
}

static cgs_tensor *build_tokens(cgs_op_trial *t, const int *n) { /* frames, patches, width */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0] * n[1], n[2]));
    cgs_tensor *cls = cgs_op_trial_parameter(t, "cls", -1, 1, DIM(n[2]));
    cgs_tensor *pos = cgs_op_trial_parameter(t, "pos", -1, 1, DIM(n[1] + 1, n[2]));
    return cgs_tokens(t->tape, x, cls, pos);
}

static cgs_tensor *build_add_pos(cgs_op_trial *t, const int *n) { /* B, T, D, rows of the table */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[1], n[2]));
    return cgs_add_pos(t->tape, x, cgs_op_trial_parameter(t, "pos", -1, 1, DIM(n[3], n[2])));
}

static cgs_tensor *build_add(cgs_op_trial *t, const int *n) { /* rows, cols, x f32 */
    cgs_tensor *x = input(t, "x", n[2] ? CGS_F32 : t->act, 1, DIM(n[0], n[1]));
    return cgs_add(t->tape, x, input(t, "y", t->act, 1, DIM(n[0], n[1])));
}

static cgs_tensor *build_add_self(cgs_op_trial *t, const int *n) {
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1]));
    return cgs_add(t->tape, x, x);
}

static cgs_tensor *build_layernorm(cgs_op_trial *t,
                                   const int *n) { /* rows, D, affine, x f32, -eps */
    float eps = 1;
    for (int i = 0; i < n[4]; i++) eps /= 10;
    cgs_tensor *x = input(t, "x", n[3] ? CGS_F32 : t->act, 2, DIM(n[0], n[1]));
    cgs_tensor *w = n[2] ? cgs_op_trial_parameter(t, "w", 0.5f, 1.5f, DIM(n[1])) : NULL;
    cgs_tensor *b = n[2] ? cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[1])) : NULL;
    return cgs_layernorm(t->tape, x, w, b, eps);
}

static cgs_tensor *build_layernorm_f32(cgs_op_trial *t, const int *n) { /* rows, D */
    cgs_tensor *x = input(t, "x", CGS_F32, 2, DIM(n[0], n[1]));
    cgs_tensor *w = cgs_op_trial_parameter(t, "w", 0.5f, 1.5f, DIM(n[1]));
    return cgs_layernorm_f32(t->tape, x, w, cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[1])),
                             1e-5f);
}

static cgs_tensor *
build_add_norm(cgs_op_trial *t, const int *n) { /* rows, k, D, read twice, f32: a residual block */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[2]));
    cgs_tensor *a = cgs_op_trial_constant(t, "a", t->act, -1, 1, CGS_FILL_UNIFORM, DIM(n[0], n[1]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.5f, 0.5f, DIM(n[2], n[1]));
    cgs_tensor *b =
        cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[2])); /* of the linear layer and the norm */
    cgs_tensor *w = cgs_op_trial_parameter(t, "w", 0.5f, 1.5f, DIM(n[2]));
    cgs_tensor *sum = cgs_add(t->tape, x, cgs_linear(t->tape, a, W, b));
    cgs_tensor *norm = n[4] ? cgs_layernorm_f32(t->tape, sum, w, b, 1e-5f)
                            : cgs_layernorm(t->tape, sum, w, b, 1e-5f);
    return n[3] ? cgs_add(t->tape, sum, norm) : norm; /* read once or twice */
}

static cgs_tensor *build_mlp(cgs_op_trial *t, const int *n) { /* rows, D, hidden, bias */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.25f, 0.25f, DIM(n[2], n[1]));
    cgs_tensor *b = n[3] ? cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[2])) : NULL;
    cgs_tensor *V = cgs_op_trial_parameter(t, "V", -0.25f, 0.25f, DIM(n[1], n[2]));
    cgs_tensor *h = cgs_activate(t->tape, cgs_linear(t->tape, x, W, b), CGS_GELU);
    return cgs_linear(t->tape, h, V, NULL);
}

/* an MLP and the norm after it, as in an encoder; only some have a gradient */
static cgs_tensor *build_mlp_norm(cgs_op_trial *t, const int *n) { /* rows, D, hidden */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[1]));
    cgs_tensor *u = cgs_op_trial_constant(t, "u", t->act, -1, 1, CGS_FILL_UNIFORM, DIM(n[0], n[1]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.25f, 0.25f, DIM(n[2], n[1]));
    cgs_tensor *V = cgs_op_trial_parameter(t, "V", -0.25f, 0.25f, DIM(n[1], n[2]));
    cgs_tensor *g = cgs_activate(t->tape, cgs_linear(t->tape, u, W, NULL), CGS_GELU);
    cgs_tensor *sum = cgs_add(t->tape, x, cgs_linear(t->tape, g, V, NULL));
    return cgs_layernorm(t->tape, sum, NULL, NULL, 1e-5f);
}

static cgs_tensor *build_modulate(cgs_op_trial *t, const int *n) { /* B T D, Tm C t0, shift scale */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1], n[2]));
    cgs_tensor *m = input(t, "m", t->act, 1, DIM(n[0], n[3], n[4]));
    return cgs_modulate(t->tape, x, m, n[6], n[7], n[5]);
}

/* as in a predictor's layer: B T D, Tm C t0, shift scale */
static cgs_tensor *norm_modulate_of(cgs_op_trial *t, const int *n, cgs_tensor *x) {
    cgs_tensor *m = input(t, "m", CGS_F32, 1, DIM(n[0], n[3], n[4]));
    cgs_tensor *w = cgs_op_trial_parameter(t, "w", 0.5f, 1.5f, DIM(n[2]));
    cgs_tensor *b = cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[2]));
    cgs_tensor *u = cgs_layernorm(t->tape, x, NULL, NULL, 1e-6f);
    u = cgs_modulate(t->tape, u, m, n[6], n[7], n[5]);
    return cgs_add(t->tape, x, cgs_layernorm(t->tape, u, w, b, 1e-5f));
}
static cgs_tensor *build_norm_modulate(cgs_op_trial *t, const int *n) {
    return norm_modulate_of(t, n, input(t, "x", CGS_F32, 1, DIM(n[0], n[1], n[2])));
}
static cgs_tensor *build_norm_modulate_fixed(cgs_op_trial *t, const int *n) { /* x is a constant */
    return norm_modulate_of(
        t, n,
        cgs_op_trial_constant(t, "x", CGS_F32, -1, 1, CGS_FILL_UNIFORM, DIM(n[0], n[1], n[2])));
}

static cgs_tensor *build_gate_add(cgs_op_trial *t, const int *n) { /* B T D, Tm C t0, gate */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[1], n[2]));
    cgs_tensor *y = input(t, "y", t->act, 1, DIM(n[0], n[1], n[2]));
    cgs_tensor *m = input(t, "m", t->act, 1, DIM(n[0], n[3], n[4]));
    return cgs_gate_add(t->tape, x, y, m, n[6], n[5]);
}

static cgs_tensor *build_gate_dropout(cgs_op_trial *t, const int *n) { /* the same, p in per cent */
    cgs_tensor *x = input(t, "x", CGS_F32, 1, DIM(n[0], n[1], n[2]));
    cgs_tensor *y = input(t, "y", t->act, 1, DIM(n[0], n[1], n[2]));
    cgs_tensor *m = input(t, "m", t->act, 1, DIM(n[0], n[3], n[4]));
    y = cgs_dropout(t->tape, y, (float)n[7] / 100, 79);
    return cgs_gate_add(t->tape, x, y, m, n[6], n[5]);
}

/* B, T, heads, width, causal, block, dropout in per cent */
static cgs_tensor *attention_of(cgs_op_trial *t, const int *n, float low, float high) {
    cgs_tensor *x = cgs_op_trial_input(t, "qkv", t->act, low, high, CGS_FILL_UNIFORM,
                                       DIM(n[0], n[1], 3 * n[2] * n[3]));
    return cgs_attention(t->tape, x, n[2], n[4], n[5], (float)n[6] / 100, 77);
}
static cgs_tensor *build_attention(cgs_op_trial *t, const int *n) {
    return attention_of(t, n, -2, 2);
}
/* Tokens that hardly differ, like those of an empty background: gradients of q and k are small
 * differences of large numbers. */
static cgs_tensor *build_alike_attention(cgs_op_trial *t, const int *n) {
    return attention_of(t, n, 1, 1.25f);
}

static cgs_tensor *build_attend_first(cgs_op_trial *t, const int *n) {
    /* B, T, heads, width, parts of q, k, v in own (1, 3) and in all (2, 3), own f32 */
    cgs_tensor *own = input(t, "own", n[6] ? CGS_F32 : t->act, 2, DIM(n[0], 1, n[4] * n[2] * n[3]));
    cgs_tensor *all = input(t, "all", t->act, 2, DIM(n[0], n[1], n[5] * n[2] * n[3]));
    return cgs_attend_first(t->tape, own, all, n[2]);
}

/* the last layer of an encoder: one linear layer in two parts */
static cgs_tensor *build_first_of_map(cgs_op_trial *t, const int *n) { /* B, T, heads, width, k */
    int D = n[2] * n[3];
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1], n[4]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.5f, 0.5f, DIM(3 * D, n[4]));
    cgs_tensor *b = cgs_op_trial_parameter(t, "b", -1, 1, DIM(3 * D));
    cgs_tensor *q = cgs_linear(t->tape, cgs_take(t->tape, x, 0, 1), cgs_part(t->tape, W, 0, D),
                               cgs_part(t->tape, b, 0, D));
    cgs_tensor *kv =
        cgs_linear(t->tape, x, cgs_part(t->tape, W, D, 2 * D), cgs_part(t->tape, b, D, 2 * D));
    return cgs_attend_first(t->tape, q, kv, n[2]);
}

static cgs_tensor *build_self_attention(cgs_op_trial *t, const int *n) { /* B, T, heads, width, k */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1], n[4]));
    cgs_tensor *W = cgs_op_trial_parameter(t, "W", -0.5f, 0.5f, DIM(3 * n[2] * n[3], n[4]));
    cgs_tensor *b = cgs_op_trial_parameter(t, "b", -1, 1, DIM(3 * n[2] * n[3]));
    return cgs_attention(t->tape, cgs_linear(t->tape, x, W, b), n[2], false, 1, 0, 0);
}

/* Constants only: the path of a backend where no gradient is needed.  A parameter without gradient
 * is called "state" here; nothing changes it. */
static cgs_tensor *constant(cgs_op_trial *t, int B, int T, int k) {
    return cgs_op_trial_constant(t, "x", t->act, -1, 1, CGS_FILL_UNIFORM, DIM(B, T, k));
}
static cgs_tensor *build_narrow_attention(cgs_op_trial *t, const int *n) {
    /* B, T, heads, k, causal, block: heads of 64 */
    cgs_tensor *x = constant(t, n[0], n[1], n[3]);
    cgs_tensor *W = cgs_op_trial_state(t, "W", -0.5f, 0.5f, DIM(3 * 64 * n[2], n[3]));
    return cgs_attention(t->tape, cgs_linear(t->tape, x, W, NULL), n[2], n[4], n[5], 0, 0);
}
static cgs_tensor *build_taken_rows(cgs_op_trial *t, const int *n) { /* the same, then t0, rows */
    return cgs_take(t->tape, build_narrow_attention(t, n), n[6], n[7]);
}
static cgs_tensor *build_narrow_mlp(cgs_op_trial *t,
                                    const int *n) { /* rows, k, hidden, l, biases */
    cgs_tensor *x = constant(t, 1, n[0], n[1]);
    cgs_tensor *W = cgs_op_trial_state(t, "W", -0.5f, 0.5f, DIM(n[2], n[1]));
    cgs_tensor *b = n[4] ? cgs_op_trial_state(t, "b", -1, 1, DIM(n[2])) : NULL;
    cgs_tensor *V = cgs_op_trial_state(t, "V", -0.25f, 0.25f, DIM(n[3], n[2]));
    cgs_tensor *c = n[4] ? cgs_op_trial_state(t, "c", -1, 1, DIM(n[3])) : NULL;
    cgs_tensor *h = cgs_activate(t->tape, cgs_linear(t->tape, x, W, b), CGS_GELU);
    return cgs_linear_f32(t->tape, h, V, c);
}

static cgs_tensor *build_activation(cgs_op_trial *t, const int *n) { /* rows, cols, kind, range */
    cgs_tensor *x = input(t, "x", t->act, (float)n[3], DIM(n[0], n[1]));
    return cgs_activate(t->tape, x, (cgs_activation)n[2]);
}

static cgs_tensor *build_relu(cgs_op_trial *t, const int *n) { /* away from its corner */
    cgs_tensor *x = cgs_op_trial_input(t, "x", t->act, 0.25f, 2, CGS_FILL_AWAY, DIM(n[0], n[1]));
    return cgs_activate(t->tape, x, CGS_RELU);
}

static cgs_tensor *build_relu_f32(cgs_op_trial *t, const int *n) {
    cgs_tensor *x = cgs_op_trial_input(t, "x", CGS_F32, 0.25f, 2, CGS_FILL_AWAY, DIM(n[0], n[1]));
    return cgs_activate_f32(t->tape, x, CGS_RELU);
}

static cgs_tensor *build_dropout(cgs_op_trial *t, const int *n) { /* rows, cols, p in per cent */
    cgs_tensor *x = input(t, "x", t->act, 1, DIM(n[0], n[1]));
    return cgs_dropout(t->tape, x, (float)n[2] / 100, 78);
}

static cgs_tensor *build_batchnorm(cgs_op_trial *t, const int *n) { /* rows, C, training */
    cgs_tensor *x = input(t, "x", t->act, 2, DIM(n[0], n[1]));
    cgs_tensor *w = cgs_op_trial_parameter(t, "w", 0.5f, 1.5f, DIM(n[1]));
    cgs_tensor *b = cgs_op_trial_parameter(t, "b", -1, 1, DIM(n[1]));
    cgs_tensor *mean = cgs_op_trial_state(t, "running mean", -1, 1, DIM(n[1]));
    cgs_tensor *var = cgs_op_trial_state(t, "running var", 0.5f, 2, DIM(n[1]));
    return cgs_batchnorm(t->tape, x, w, b, mean, var, n[2]);
}

static cgs_tensor *build_take(cgs_op_trial *t, const int *n) { /* B, T, D, t0, steps, f32 */
    cgs_tensor *x = input(t, "x", n[5] ? CGS_F32 : t->act, 1, DIM(n[0], n[1], n[2]));
    return cgs_take(t->tape, x, n[3], n[4]);
}

static cgs_tensor *build_join(cgs_op_trial *t, const int *n) { /* B, T, U, D, f32 */
    cgs_dtype type = n[4] ? CGS_F32 : t->act;
    cgs_tensor *x = input(t, "x", type, 1, DIM(n[0], n[1], n[3]));
    return cgs_join(t->tape, x, input(t, "y", type, 1, DIM(n[0], n[2], n[3])));
}

static cgs_tensor *build_repeat(cgs_op_trial *t, const int *n) { /* B, T, D, times, f32 */
    cgs_tensor *x = input(t, "x", n[4] ? CGS_F32 : t->act, 1, DIM(n[0], n[1], n[2]));
    return cgs_repeat(t->tape, x, n[3]);
}

static cgs_tensor *build_mse(cgs_op_trial *t, const int *n) { /* rows, cols */
    cgs_tensor *a = input(t, "a", CGS_F32, 1, DIM(n[0], n[1]));
    return cgs_mse(t->tape, a, input(t, "b", CGS_F32, 1, DIM(n[0], n[1])));
}

static cgs_tensor *build_sqdist(cgs_op_trial *t, const int *n) { /* E, K, D */
    cgs_tensor *a = input(t, "a", CGS_F32, 1, DIM(n[0] * n[1], n[2]));
    return cgs_sqdist(t->tape, a, input(t, "b", CGS_F32, 1, DIM(n[0], n[2])));
}

static cgs_tensor *build_directions(cgs_op_trial *t, const int *n) { /* P, D */
    return cgs_directions(t->tape, n[0], n[1], 79);
}

static cgs_tensor *build_sigreg(cgs_op_trial *t, const int *n) { /* B, T, D, P */
    cgs_tensor *z = input(t, "z", CGS_F32, 2, DIM(n[0], n[1], n[2]));
    return cgs_sigreg(t->tape, z, cgs_directions(t->tape, n[3], n[2], 80));
}

static cgs_tensor *build_straighten(cgs_op_trial *t, const int *n) { /* B, T, D, values 0 or 1 */
    cgs_tensor *z =
        cgs_op_trial_input(t, "z", CGS_F32, n[3] ? 0 : -1, 1,
                           n[3] ? CGS_FILL_COIN : CGS_FILL_UNIFORM, DIM(n[0], n[1], n[2]));
    return cgs_straighten(t->tape, z);
}

static cgs_tensor *build_cgs(cgs_op_trial *t, const int *n) {
    /* B, N, D, R, mask, per window, values 0 or 1 */
    cgs_fill fill = n[6] ? CGS_FILL_COIN : CGS_FILL_UNIFORM;
    float low = n[6] ? 0 : -1;
    cgs_tensor *z = cgs_op_trial_input(t, "z", CGS_F32, low, 1, fill, DIM(n[0], n[1] + 1, n[2]));
    cgs_tensor *r = cgs_op_trial_constant(t, "r", CGS_F32, low, 1, fill, DIM(n[0], n[1], n[3]));
    cgs_tensor *mask =
        n[4] ? cgs_op_trial_constant(t, "mask", CGS_F32, 0, 1, CGS_FILL_COIN, DIM(n[0], n[1]))
             : NULL;
    return cgs_match_geometry(t->tape, z, r, mask, n[5]);
}

static cgs_tensor *build_weighted_sum(cgs_op_trial *t, const int *n) { /* terms */
    static const char *const names[] = {"s1", "s2", "s3", "s4", "s5"};
    cgs_tensor *w = cgs_op_trial_constant(t, "w", CGS_F32, -1, 1, CGS_FILL_UNIFORM, DIM(n[0])),
               *s[5];
    for (int i = 0; i < n[0]; i++) s[i] = input(t, names[i], CGS_F32, 1, DIM(1));
    return cgs_weighted_sum(t->tape, w, s, n[0]);
}

/* clang-format off */
#define CASE(op, variant, ...) {#op "/" variant, CGS_OP_##op, build_##op, __VA_ARGS__, false}
#define CASE_BY(op, variant, build, ...) {#op "/" variant, CGS_OP_##op, build, __VA_ARGS__, false}
/* sizes of the paper's model with 16 frames or 128 windows: for benchmarks, not for checks */
#define HEAVY(op, variant, ...) \
    {#op "/" variant, CGS_OP_##op, build_##op, __VA_ARGS__, 0, 0, 0, 0, true}
#define HEAVY_BY(op, variant, build, ...) \
    {#op "/" variant, CGS_OP_##op, build, __VA_ARGS__, 0, 0, 0, 0, true}
#define H (1.0 / 64)

const cgs_op_case cgs_op_cases[] = {
    /*                                sizes                            f32    bf16   gradient step */
    CASE(patchify, "typical",       {1, 112, 14},                      1e-6,  1e-2,  0,    0),
    CASE(patchify, "odd",           {3, 15, 5},                        1e-6,  1e-2,  0,    0),
    CASE(patchify, "single",        {1, 1, 1},                         1e-6,  1e-2,  0,    0),
    CASE_BY(patchify, "smaller", build_resized, {2, 64, 56, 14},       1e-6,  1e-2,  0,    0),
    CASE_BY(patchify, "much smaller", build_resized, {2, 37, 10, 5},   1e-6,  1e-2,  0,    0),
    CASE_BY(patchify, "larger", build_resized, {1, 9, 14, 7},          1e-6,  1e-2,  0,    0),
    HEAVY(patchify, "paper",      {16, 224, 14}),

    CASE(unfold, "typical",         {2, 7, 24},                        1e-5,  1e-2,  1e-4, H),
    CASE(unfold, "odd, f32",        {3, 5, 7, 1},                      1e-5,  1e-2,  1e-4, H),
    CASE(unfold, "single",          {1, 1, 1},                         1e-5,  1e-2,  1e-4, H),
    HEAVY(unfold, "paper",        {16, 14, 384}),

    CASE(linear, "typical",         {130, 192, 768, 1},                1e-5,  1e-2,  1e-4, H),
    CASE(linear, "qkv",             {33, 192, 3072},                   1e-5,  1e-2,  1e-4, H),
    CASE(linear, "patches",         {70, 588, 192, 1},                 1e-5,  1e-2,  1e-4, H),
    CASE(linear, "many patches",    {1030, 588, 16, 1},                1e-5,  1e-2,  1e-4, H),
    CASE(linear, "latent",          {24, 2048, 192, 1, 1},             1e-5,  1e-2,  1e-4, H),
    CASE(linear, "actions",         {70, 10, 300, 1, 1},               1e-5,  1e-2,  1e-4, H),
    CASE(linear, "odd",             {7, 13, 5, 1},                     1e-5,  1e-2,  1e-4, H),
    CASE(linear, "odd, no bias",    {3, 65, 67, 0, 1},                 1e-5,  1e-2,  1e-4, H),
    CASE(linear, "row",             {1, 33, 9, 1},                     1e-5,  1e-2,  1e-4, H),
    CASE(linear, "single",          {1, 1, 1, 1},                      1e-5,  1e-2,  1e-4, H),
    CASE_BY(linear, "f32 input", build_linear_f32, {31, 10, 17, 1},    1e-5,  1e-2,  1e-4, H),
    CASE_BY(linear, "f32 through", build_linear_f32, {9, 25, 10, 1, 1}, 1e-5, 1e-5,  1e-4, H),
    CASE_BY(linear, "mlp", build_mlp, {130, 192, 256, 1},              1e-5,  2e-2,  1e-4, H / 2),
    CASE_BY(linear, "mlp, many rows", build_mlp, {1100, 192, 256, 1},  1e-5,  2e-2,  1e-4, H / 2),
    CASE(linear, "one pass",        {2305, 96, 192, 1},                1e-5,  1e-2,  1e-4, H),
    CASE(linear, "one pass, runs",  {2305, 32, 1536, 1},               1e-5,  1e-2,  1e-4, H),
    CASE_BY(linear, "mlp, one pass", build_mlp, {2203, 96, 192, 1},    1e-5,  2e-2,  1e-4, H / 2),
    CASE_BY(linear, "mlp, 64 wide", build_mlp, {37, 64, 128, 1},       1e-5,  2e-2,  1e-4, H / 2),
    CASE_BY(linear, "mlp, odd", build_mlp, {33, 96, 64, 0},            1e-5,  2e-2,  1e-4, H / 2),
    CASE_BY(linear, "narrow mlp", build_narrow_mlp, {150, 28, 384, 28, 1}, 1e-5, 2e-2, 0,  0),
    CASE_BY(linear, "narrow mlp, odd", build_narrow_mlp, {37, 10, 128, 10}, 1e-5, 2e-2, 0, 0),
    CASE_BY(linear, "narrow mlp, 32 wide", build_narrow_mlp, {16, 32, 256, 32, 1},
                                                                       1e-5,  2e-2,  0,    0),
    HEAVY(linear, "paper, qkv",   {4112, 192, 576, 1}),
    HEAVY(linear, "paper, fc1",   {4112, 192, 768, 1}),
    HEAVY(linear, "paper, fc2",   {4112, 768, 192, 1}),
    HEAVY_BY(linear, "paper, mlp", build_mlp, {16448, 192, 768, 1}),
    HEAVY(linear, "paper, plan",  {384, 192, 3072}),

    CASE(tokens, "typical",         {2, 64, 192},                      1e-5,  1e-2,  1e-4, H),
    CASE(tokens, "odd",             {3, 5, 7},                         1e-5,  1e-2,  1e-4, H),
    CASE(tokens, "single",          {1, 1, 1},                         1e-5,  1e-2,  1e-4, H),
    HEAVY(tokens, "paper",        {16, 256, 192}),

    CASE(add_pos, "typical",        {64, 3, 192, 3},                   1e-5,  1e-5,  1e-4, H),
    CASE(add_pos, "long table",     {5, 2, 7, 4},                      1e-5,  1e-5,  1e-4, H),
    CASE(add_pos, "single",         {1, 1, 1, 1},                      1e-5,  1e-5,  1e-4, H),

    CASE(add, "residual",           {130, 192, 1},                     1e-6,  1e-2,  1e-4, H),
    CASE(add, "same type",          {7, 13},                           1e-6,  1e-2,  1e-4, H),
    CASE_BY(add, "itself", build_add_self, {5, 9},                     1e-6,  1e-2,  1e-4, H),
    CASE(add, "single",             {1, 1, 1},                         1e-6,  1e-2,  1e-4, H),
    CASE_BY(add, "of a modulated norm", build_norm_modulate, {16, 3, 192, 3, 1152, 0, 192, 576},
                                                                       1e-5,  2e-2,  1e-4, H / 4),
    CASE_BY(add, "of a modulated norm, 7 wide", build_norm_modulate, {3, 2, 7, 4, 31, 2, 9, 16},
                                                                       1e-5,  2e-2,  1e-4, H / 4),
    CASE_BY(add, "of a modulated norm, x fixed", build_norm_modulate_fixed, {3, 2, 6, 4, 30, 2, 8, 16},
                                                                       1e-5,  2e-2,  1e-4, H / 4),
    CASE_BY(add, "of a modulated norm, wide", build_norm_modulate, {5, 3, 404, 3, 1212, 0, 0, 404},
                                                                       1e-5,  2e-2,  1e-4, H / 4),
    CASE_BY(add, "around a norm", build_add_norm, {130, 24, 192, 1},   1e-5,  2e-2,  1e-4, H),
    CASE_BY(add, "around a norm, odd", build_add_norm, {5, 7, 13, 1},  1e-5,  2e-2,  1e-4, H),
    HEAVY(add, "paper",           {4112, 192, 1}),

    CASE(layernorm, "encoder",      {130, 192, 1, 1, 12},              1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "plain",        {48, 192, 0, 1, 6},                1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "inner",        {48, 192, 1, 0, 5},                1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "odd",          {5, 13, 1, 1, 5},                  1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "odd, plain",   {3, 37, 0, 0, 5},                  1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "few columns",  {9, 3, 1, 1, 5},                   1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "patch tokens", {70, 28, 1, 1, 5},                 1e-5,  1e-2,  1e-4, H),
    CASE(layernorm, "class tokens", {9, 404, 1, 1, 5},                 1e-5,  1e-2,  1e-4, H),
    CASE_BY(layernorm, "f32 through", build_layernorm_f32, {33, 10},   1e-5,  1e-5,  1e-4, H),
    CASE_BY(layernorm, "f32 through, wide", build_layernorm_f32, {9, 404}, 1e-5, 1e-5, 1e-4, H),
    CASE_BY(layernorm, "of an mlp", build_mlp_norm, {1029, 192, 128},  1e-5,  2e-2,  1e-4, H / 2),
    CASE_BY(layernorm, "of a sum", build_add_norm, {130, 24, 192},     1e-5,  2e-2,  1e-4, H),
    CASE_BY(layernorm, "of a sum, odd", build_add_norm, {5, 7, 13},    1e-5,  2e-2,  1e-4, H),
    CASE_BY(layernorm, "of a sum, f32", build_add_norm, {130, 24, 192, 0, 1},
                                                                       1e-5,  2e-2,  1e-4, H),
    HEAVY(layernorm, "paper",     {4112, 192, 1, 1, 12}),

    CASE(modulate, "typical",       {16, 3, 192, 3, 1152, 0, 0, 192},  1e-5,  1e-2,  1e-4, H),
    CASE(modulate, "odd",           {2, 2, 5, 4, 17, 1, 11, 2},        1e-5,  1e-2,  1e-4, H),
    CASE(modulate, "single",        {1, 1, 1, 1, 2, 0, 1, 0},          1e-5,  1e-2,  1e-4, H),
    HEAVY(modulate, "paper",      {128, 3, 192, 3, 1152, 0, 0, 192}),

    CASE(gate_add, "typical",       {16, 3, 192, 3, 1152, 0, 384},     1e-5,  1e-2,  1e-4, H),
    CASE(gate_add, "odd",           {2, 2, 5, 4, 17, 2, 9},            1e-5,  1e-2,  1e-4, H),
    CASE(gate_add, "single",        {1, 1, 1, 1, 1, 0, 0},             1e-5,  1e-2,  1e-4, H),
    CASE_BY(gate_add, "of a dropout", build_gate_dropout, {64, 3, 192, 4, 1152, 1, 384, 10},
                                                                       1e-6,  1e-2,  1e-4, H),
    CASE_BY(gate_add, "of a dropout, 7 wide", build_gate_dropout, {3, 2, 7, 5, 30, 2, 11, 40},
                                                                       1e-6,  1e-2,  1e-4, H),
    HEAVY(gate_add, "paper",      {128, 3, 192, 3, 1152, 0, 384}),

    CASE(attention, "encoder",      {1, 257, 2, 64, 0, 1, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attention, "256 tokens",   {1, 256, 1, 64, 0, 1, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attention, "261 tokens",   {1, 261, 1, 64, 0, 1, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attention, "predictor",    {16, 3, 16, 64, 1, 1, 10},         1e-5,  4e-2,  1e-4, H),
    CASE(attention, "frames",       {1, 84, 2, 64, 1, 28, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attention, "long frames",  {1, 403, 1, 64, 1, 135, 0},        1e-5,  2e-2,  1e-4, H),
    CASE(attention, "odd, causal",  {3, 7, 2, 5, 1, 1, 0},             1e-5,  4e-2,  1e-4, H),
    CASE(attention, "odd, frames",  {2, 8, 3, 7, 1, 3, 20},            1e-5,  2e-2,  1e-4, H),
    CASE(attention, "odd, dropout", {2, 19, 2, 9, 0, 1, 30},           1e-5,  2e-2,  1e-4, H),
    CASE(attention, "one token",    {3, 1, 2, 8, 1, 1, 0},             1e-5,  2e-2,  1e-4, H),
    CASE(attention, "single",       {1, 1, 1, 1, 0, 1, 0},             1e-5,  2e-2,  1e-4, H),
    /* in f32 the rounding of scores is no longer small beside their differences */
    CASE_BY(attention, "alike",        build_alike_attention, {1, 257, 1, 64, 0, 1, 0},
                                                                       5e-4,  2e-2,  5e-4, H),
    CASE_BY(attention, "alike, short", build_alike_attention, {2, 37, 2, 64, 0, 1, 0},
                                                                       5e-4,  2e-2,  5e-4, H),
    CASE_BY(attention, "alike, long",  build_alike_attention, {1, 403, 1, 64, 1, 135, 0},
                                                                       5e-4,  2e-2,  5e-4, H),
    CASE_BY(attention, "alike, dropout", build_alike_attention, {1, 84, 2, 64, 1, 28, 10},
                                                                       5e-4,  2e-2,  5e-4, H),
    CASE_BY(attention, "alike, odd",   build_alike_attention, {2, 19, 3, 9, 0, 1, 0},
                                                                       5e-4,  2e-2,  5e-4, H),
    /* qkv and its gradient are rounded in between */
    CASE_BY(attention, "with its map", build_self_attention, {3, 37, 2, 64, 8},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    CASE_BY(attention, "with its map, long", build_self_attention, {1, 403, 1, 64, 8},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    CASE(attention, "frames, dropout", {2, 84, 2, 64, 1, 28, 10},      1e-5,  2e-2,  1e-4, H),
    CASE(attention, "long, dropout", {1, 403, 1, 64, 1, 135, 10},      1e-5,  2e-2,  1e-4, H),
    CASE(attention, "dropout, 64 wide", {3, 17, 1, 64, 0, 1, 30},      1e-5,  2e-2,  1e-4, H),
    CASE_BY(attention, "narrow tokens", build_narrow_attention, {2, 84, 2, 28, 1, 28},
                                                                       1e-5,  2e-2,  0,    0),
    CASE_BY(attention, "narrow tokens, long", build_narrow_attention, {1, 403, 1, 28, 1, 135},
                                                                       1e-5,  2e-2,  0,    0),
    CASE_BY(attention, "narrow tokens, odd", build_narrow_attention, {3, 37, 2, 10, 0, 1},
                                                                       1e-5,  2e-2,  0,    0),
    CASE_BY(attention, "narrow tokens, 32 wide", build_narrow_attention, {2, 17, 1, 32, 1, 5},
                                                                       1e-5,  2e-2,  0,    0),
    CASE_BY(attention, "with its map, encoder", build_self_attention, {2, 257, 1, 64, 8},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    CASE(attention, "small, encoder", {3, 65, 3, 32, 0, 1, 0},         1e-5,  2e-2,  1e-4, H),
    CASE(attention, "frames, 32 wide", {1, 84, 2, 32, 1, 28, 0},       1e-5,  2e-2,  1e-4, H),
    CASE(attention, "16 tokens, 32 wide", {3, 16, 1, 32, 0, 1, 0},     1e-5,  2e-2,  1e-4, H),
    CASE(attention, "dropout, 32 wide", {3, 17, 1, 32, 0, 1, 30},      1e-5,  2e-2,  1e-4, H),
    CASE_BY(attention, "alike, 32 wide", build_alike_attention, {2, 65, 2, 32, 0, 1, 0},
                                                                       5e-4,  2e-2,  5e-4, H),
    CASE_BY(attention, "with its map, 32 wide", build_self_attention, {3, 65, 3, 32, 8},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    HEAVY(attention, "paper, encoder", {16, 257, 3, 64, 0, 1, 0}),
    HEAVY(attention, "small, encoders", {128, 65, 3, 32, 0, 1, 0}),
    HEAVY(attention, "paper, predictor", {128, 3, 16, 64, 1, 1, 10}),
    HEAVY(attention, "paper, patches", {1, 588, 16, 64, 1, 196, 0}),
    HEAVY(attention, "paper, patches, dropout", {1, 588, 16, 64, 1, 196, 10}),
    CASE_BY(attention, "tokens, 52 wide", build_narrow_attention, {2, 3, 2, 52, 1, 1},
                                                                       1e-5,  2e-2,  0,    0),
    HEAVY_BY(attention, "paper, narrow tokens", build_narrow_attention, {16, 588, 16, 28, 1, 196}),

    CASE(attend_first, "encoder",   {2, 257, 3, 64, 1, 2, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "small",     {2, 65, 6, 16, 1, 2, 0},           1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "odd",       {3, 7, 2, 5, 1, 2, 0},             1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "wide",      {2, 19, 1, 264, 1, 2, 0},          1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "two tokens", {3, 2, 2, 8, 1, 2, 0},            1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "single",    {1, 2, 1, 1, 1, 2, 0},             1e-5,  2e-2,  1e-4, H),
    CASE(attend_first, "q f32",     {2, 37, 2, 24, 1, 3, 1},           1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, encoder", {2, 257, 3, 64, 3, 3, 1},       1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, last", {2, 257, 3, 64, 3, 2, 1},          1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, odd",  {3, 7, 2, 5, 3, 3, 1},             1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, wide", {2, 19, 1, 70, 3, 2, 1},           1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, one token", {3, 1, 2, 8, 3, 2, 1},        1e-5,  1e-2,  1e-4, H),
    CASE(attend_first, "own, single", {1, 1, 1, 1, 3, 3, 1},           1e-5,  1e-2,  1e-4, H),
    CASE_BY(attend_first, "with its map", build_first_of_map, {2, 9, 2, 16, 8},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    CASE_BY(attend_first, "with its map, 7 wide", build_first_of_map, {2, 5, 3, 7, 5},
                                                                       1e-5,  3e-2,  1e-4, H / 2),
    HEAVY(attend_first, "paper",  {128, 257, 3, 64, 1, 2, 0}),
    HEAVY(attend_first, "paper, own", {128, 257, 3, 64, 3, 3, 1}),

    CASE(activation, "gelu",        {66, 768, CGS_GELU, 4},            1e-5,  1e-2,  1e-4, H),
    CASE(activation, "gelu, odd",   {3, 37, CGS_GELU, 4},              1e-5,  1e-2,  1e-4, H),
    CASE(activation, "gelu, far",   {3, 37, CGS_GELU, 40},             1e-5,  1e-2,  1e-4, H),
    CASE(activation, "silu",        {48, 768, CGS_SILU, 4},            1e-5,  1e-2,  1e-4, H),
    CASE(activation, "silu, odd",   {5, 9, CGS_SILU, 4},               1e-5,  1e-2,  1e-4, H),
    CASE(activation, "silu, far",   {3, 37, CGS_SILU, 200},            1e-5,  1e-2,  1e-4, H),
    CASE_BY(activation, "relu", build_relu, {96, 512},                 1e-6,  1e-2,  1e-4, H),
    CASE_BY(activation, "relu, f32 through", build_relu_f32, {9, 33},  1e-6,  1e-6,  1e-4, H),
    CASE(activation, "single",      {1, 1, CGS_GELU, 1},               1e-5,  1e-2,  1e-4, H),
    HEAVY(activation, "paper",    {4112, 768, CGS_GELU, 4}),

    CASE(dropout, "typical",        {48, 2048, 10},                    1e-6,  1e-2,  1e-4, H),
    CASE(dropout, "odd",            {7, 13, 50},                       1e-6,  1e-2,  1e-4, H),
    CASE(dropout, "single",         {1, 1, 10},                        1e-6,  1e-2,  1e-4, H),
    HEAVY(dropout, "paper",       {384, 2048, 10}),

    CASE(batchnorm, "training",     {96, 512, 1},                      1e-5,  1e-2,  1e-4, H),
    CASE(batchnorm, "running",      {96, 512, 0},                      1e-5,  1e-2,  1e-4, H),
    CASE(batchnorm, "odd",          {7, 13, 1},                        1e-5,  1e-2,  1e-4, H),
    CASE(batchnorm, "odd, running", {5, 3, 0},                         1e-5,  1e-2,  1e-4, H),
    CASE(batchnorm, "row, running", {1, 9, 0},                         1e-5,  1e-2,  1e-4, H),
    HEAVY(batchnorm, "paper",     {512, 2048, 1}),

    CASE(take, "typical",           {64, 4, 192, 1, 3, 1},             1e-6,  1e-2,  1e-4, H),
    CASE(take, "class token",       {3, 65, 192, 0, 1},                1e-6,  1e-2,  1e-4, H),
    CASE(take, "columns",           {70, 28, 1, 8, 10, 1},             1e-6,  1e-2,  1e-4, H),
    CASE_BY(take, "rows of attention", build_taken_rows, {2, 84, 2, 40, 1, 28, 56, 28},
                                                                       1e-5,  3e-2,  0,    0),
    CASE_BY(take, "rows of attention, narrow", build_taken_rows, {2, 84, 2, 28, 1, 28, 56, 28},
                                                                       1e-5,  3e-2,  0,    0),
    CASE_BY(take, "rows of attention, long", build_taken_rows, {1, 403, 1, 40, 1, 135, 270, 133},
                                                                       1e-5,  3e-2,  0,    0),
    CASE_BY(take, "class token of attention", build_taken_rows, {2, 257, 1, 40, 0, 1, 0, 1},
                                                                       1e-5,  3e-2,  0,    0),
    CASE_BY(take, "rows of attention, short", build_taken_rows, {5, 3, 2, 40, 1, 1, 1, 2},
                                                                       1e-5,  3e-2,  0,    0),
    CASE_BY(take, "a row of attention, 37", build_taken_rows, {3, 37, 1, 40, 0, 1, 0, 1},
                                                                       1e-5,  3e-2,  0,    0),
    CASE(take, "odd",               {3, 5, 7, 2, 2},                   1e-6,  1e-2,  1e-4, H),
    CASE(take, "single",            {1, 2, 1, 1, 1},                   1e-6,  1e-2,  1e-4, H),

    CASE(join, "typical",           {64, 2, 1, 192, 1},                1e-6,  1e-2,  1e-4, H),
    CASE(join, "columns",           {70, 18, 10, 1, 1},                1e-6,  1e-2,  1e-4, H),
    CASE(join, "odd",               {3, 2, 5, 7},                      1e-6,  1e-2,  1e-4, H),
    CASE(join, "single",            {1, 1, 1, 1},                      1e-6,  1e-2,  1e-4, H),

    CASE(repeat, "typical",         {4, 3, 192, 32, 1},                1e-5,  1e-2,  1e-4, H),
    CASE(repeat, "over tokens",     {5, 1, 10, 49, 1},                 1e-5,  1e-2,  1e-4, H),
    CASE(repeat, "odd",             {3, 2, 7, 5},                      1e-5,  1e-2,  1e-4, H),
    CASE(repeat, "single",          {1, 1, 1, 2},                      1e-5,  1e-2,  1e-4, H),

    CASE(mse, "typical",            {384, 192},                        1e-5,  1e-5,  1e-3, 4 * H),
    CASE(mse, "odd",                {7, 13},                           1e-5,  1e-5,  1e-3, 4 * H),
    CASE(mse, "single",             {1, 1},                            1e-5,  1e-5,  1e-3, 4 * H),

    CASE(sqdist, "typical",         {4, 64, 192},                      1e-5,  1e-5,  1e-3, 4 * H),
    CASE(sqdist, "odd",             {3, 5, 7},                         1e-5,  1e-5,  1e-3, 4 * H),
    CASE(sqdist, "single",          {1, 1, 1},                         1e-5,  1e-5,  1e-3, 4 * H),

    CASE(directions, "typical",     {256, 192},                        1e-6,  1e-6,  0,    0),
    CASE(directions, "odd",         {3, 7},                            1e-6,  1e-6,  0,    0),
    CASE(directions, "single",      {1, 1},                            1e-6,  1e-6,  0,    0),
    HEAVY(directions, "paper",    {1024, 192}),

    CASE(sigreg, "typical",         {16, 4, 192, 64},                  1e-5,  1e-5,  1e-3, 4 * H),
    CASE(sigreg, "odd",             {5, 3, 7, 11},                     1e-5,  1e-5,  1e-3, 4 * H),
    CASE(sigreg, "single",          {1, 1, 1, 1},                      1e-5,  1e-5,  1e-3, 4 * H),
    HEAVY(sigreg, "paper",        {128, 4, 192, 1024}),

    CASE(straighten, "typical",     {128, 4, 192},                     1e-5,  1e-5,  1e-3, 4 * H),
    CASE(straighten, "odd",         {5, 6, 7},                         1e-5,  1e-5,  1e-3, 2 * H),
    CASE(straighten, "still",       {40, 5, 2, 1},                     1e-5,  1e-5,  0,    0),

    CASE(cgs, "typical",            {128, 3, 192, 10},                 1e-5,  1e-5,  1e-3, 4 * H),
    CASE(cgs, "masked",             {64, 3, 192, 15, 1},               1e-5,  1e-5,  1e-3, 4 * H),
    CASE(cgs, "per window",         {64, 3, 192, 15, 1, 1},            1e-5,  1e-5,  1e-3, 4 * H),
    CASE(cgs, "odd",                {5, 4, 7, 3, 1, 0},                1e-5,  1e-5,  1e-3, 2 * H),
    CASE(cgs, "odd, per window",    {5, 4, 7, 3, 1, 1},                1e-5,  1e-5,  1e-3, 2 * H),
    CASE(cgs, "still",              {40, 3, 2, 2, 1, 0, 1},            1e-5,  1e-5,  0,    0),
    CASE(cgs, "still, per window",  {40, 4, 2, 2, 1, 1, 1},            1e-5,  1e-5,  0,    0),

    CASE(weighted_sum, "typical",   {4},                               1e-6,  1e-6,  1e-4, H),
    CASE(weighted_sum, "odd",       {3},                               1e-6,  1e-6,  1e-4, H),
    CASE(weighted_sum, "single",    {1},                               1e-6,  1e-6,  1e-4, H),
};
/* clang-format on */
const int cgs_op_case_count = sizeof cgs_op_cases / sizeof cgs_op_cases[0];
