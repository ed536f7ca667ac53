/* sizes.c - claims about sizes, and those of tensor shapes. */
#include "model/sizes.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_sizes, kind, config.name, initial, low, high, key, doc)
static const cgs_field FIELDS[] = {
    CGS_LEWM_CONFIG(ROW){CGS_SIZE_ACTION_BLOCK, CGS_KIND_int, offsetof(cgs_sizes, block), "10", 1,
                         4096, ""},
    {CGS_SIZE_INNER, CGS_KIND_int, offsetof(cgs_sizes, inner), "1024", 4, 32768, ""},
};
#undef ROW
_Static_assert(sizeof FIELDS / sizeof FIELDS[0] == CGS_SIZE_COUNT, "one source for each field");

static int find(const char *key) {
    for (int i = 0; i < CGS_SIZE_COUNT; i++)
        if (!strcmp(FIELDS[i].key, key)) return i;
    return -1;
}

static bool known(const cgs_sizes *s, const char *key) { return s->source[find(key)][0] != '\0'; }

cgs_status cgs_sizes_claim(cgs_sizes *s, const char *key, double value, const char *source) {
    int i = find(key);
    if (i < 0) return cgs_fail(CGS_EFORMAT, "%s: unknown setting \"%.80s\"", source, key);
    const cgs_field *f = &FIELDS[i];
    void *at = (char *)s + f->offset;
    bool whole = f->kind == CGS_KIND_int;
    if (!(value >= f->low && value <= f->high) || (whole && value != floor(value)))
        return cgs_fail(CGS_EFORMAT, "%s: %.9g, expected %s in %g ... %g", source, value,
                        whole ? "a whole number" : "a number", f->low, f->high);
    double before = whole ? *(int *)at : *(float *)at;
    if (s->source[i][0] && before != (whole ? value : (double)(float)value))
        return cgs_fail(CGS_EFORMAT, "%s says %.9g, but %s says %.9g", source, value, s->source[i],
                        before);
    if (s->source[i][0]) return CGS_OK; /* the first claim is the one named in messages */
    if (whole)
        *(int *)at = (int)value;
    else
        *(float *)at = (float)value;
    snprintf(s->source[i], sizeof s->source[i], "%s", source);
    return CGS_OK;
}

/* ---- shapes ------------------------------------------------------------------------ */

/* Claims `key` from dimension `axis` of a tensor, which must have that many of them. */
static cgs_status claim_dim(cgs_sizes *s, const cgs_named_weights *c, const char *path,
                            const char *key, const char *tensor, int rank, int axis) {
    const cgs_weight *e = cgs_named_weights_find(c, "%s", tensor);
    char shape[CGS_SHAPE_TEXT], source[96];
    if (!e) return cgs_fail(CGS_EFORMAT, "%s: holds no tensor \"%s\" of LeWM", path, tensor);
    if (e->rank != rank)
        return cgs_fail(CGS_EFORMAT, "%s: %s: shape %s, expected %d dimensions", path, tensor,
                        cgs_weights_shape(e, shape), rank);
    snprintf(source, sizeof source, "tensor %.80s", tensor);
    cgs_status rc = cgs_sizes_claim(s, key, (double)e->dim[axis], source);
    return rc == CGS_OK ? rc : cgs_fail_in(rc, path);
}

/* How many tensors of the form `fmt` follow each other with the shape of the first. */
static int count_layers(const cgs_named_weights *c, const char *before, const char *after) {
    const cgs_weight *first = cgs_named_weights_find(c, "%s0%s", before, after);
    int n = 0;
    for (; first && n < 1024; n++) {
        const cgs_weight *e = cgs_named_weights_find(c, "%s%d%s", before, n, after);
        if (!e || e->rank != first->rank || e->count != first->count) break;
    }
    return n;
}

#define VIT0 "encoder.encoder.layer.0."
#define PRED0 "predictor.transformer.layers.0."

cgs_status cgs_sizes_from_tensors(cgs_sizes *s, const cgs_named_weights *c, const char *path) {
    static const struct {
        const char *key, *tensor;
        int rank, axis;
    } SHOWN[] = {
        {"model.width", "encoder.embeddings.patch_embeddings.projection.weight", 4, 0},
        {"model.patch", "encoder.embeddings.patch_embeddings.projection.weight", 4, 2},
        {"model.patch", "encoder.embeddings.patch_embeddings.projection.weight", 4, 3},
        {"model.width", "encoder.embeddings.position_embeddings", 3, 2},
        {"model.width", VIT0 "attention.attention.query.weight", 2, 0},
        {"model.width", VIT0 "output.dense.weight", 2, 0},
        {"model.encoder.mlp", VIT0 "output.dense.weight", 2, 1},
        {"model.history", "predictor.pos_embedding", 3, 1},
        {"model.width", "predictor.pos_embedding", 3, 2},
        {CGS_SIZE_INNER, PRED0 "attn.to_out.0.weight", 2, 1},
        {"model.width", PRED0 "mlp.net.4.weight", 2, 0},
        {"model.predictor.mlp", PRED0 "mlp.net.4.weight", 2, 1},
        {"model.action.smooth", "action_encoder.patch_embed.weight", 3, 0},
        {CGS_SIZE_ACTION_BLOCK, "action_encoder.patch_embed.weight", 3, 1},
        {"model.action.hidden", "action_encoder.embed.2.weight", 2, 1},
        {"model.width", "action_encoder.embed.2.weight", 2, 0},
        {"model.projector.hidden", "projector.net.3.weight", 2, 1},
        {"model.projector.hidden", "pred_proj.net.3.weight", 2, 1},
    };
    for (size_t i = 0; i < sizeof SHOWN / sizeof SHOWN[0]; i++)
        CGS_TRY(claim_dim(s, c, path, SHOWN[i].key, SHOWN[i].tensor, SHOWN[i].rank, SHOWN[i].axis));
    cgs_status rc =
        cgs_sizes_claim(s, "model.encoder.layers",
                        count_layers(c, "encoder.encoder.layer.", ".output.dense.weight"),
                        "the number of encoder layers");
    if (rc == CGS_OK)
        rc = cgs_sizes_claim(s, "model.predictor.layers",
                             count_layers(c, "predictor.transformer.layers.", ".mlp.net.4.weight"),
                             "the number of predictor layers");
    if (rc != CGS_OK) return cgs_fail_in(rc, path);

    const cgs_weight *pos = cgs_named_weights_find(c, "encoder.embeddings.position_embeddings");
    double side = round(sqrt((double)pos->dim[1] - 1));
    if (!(pos->dim[1] > 1) || side * side + 1 != (double)pos->dim[1])
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s: %lld positions, expected a square number of patches and one", path,
                        pos->name, (long long)pos->dim[1]);
    rc = cgs_sizes_claim(s, "model.image_size", side * s->config.patch,
                         "tensor encoder.embeddings.position_embeddings");
    return rc == CGS_OK ? rc : cgs_fail_in(rc, path);
}

/* ---- the rest ---------------------------------------------------------------------- */

static void note(char *guessed, size_t size, const char *key) {
    if (!guessed) return;
    size_t n = strlen(guessed);
    snprintf(guessed + n, size - n, "%s%s", n ? ", " : "", key);
}

static cgs_status guess(cgs_sizes *s, const char *key, int value, char *guessed, size_t size) {
    if (known(s, key)) return CGS_OK;
    note(guessed, size, key);
    return cgs_sizes_claim(s, key, value, "a guess");
}

/* A known product and its factors a and b: a missing factor follows; if both are missing, a is
 * guessed. */
typedef struct factor {
    const char *key;
    const int *value;
} factor;

static cgs_status split(cgs_sizes *s, factor product, factor a, factor b, int usual, int otherwise,
                        char *guessed, size_t size) {
    int whole = *product.value;
    if (!known(s, a.key) && !known(s, b.key))
        CGS_TRY(guess(s, a.key, whole % usual ? otherwise : usual, guessed, size));
    factor given = known(s, a.key) ? a : b;
    if (whole % *given.value)
        return cgs_fail(CGS_EFORMAT, "%s is %d, which %s %d does not divide", product.key, whole,
                        given.key, *given.value);
    char source[96];
    snprintf(source, sizeof source, "%s %d over %s %d", product.key, whole, given.key,
             *given.value);
    return cgs_sizes_claim(s, known(s, a.key) ? b.key : a.key, whole / *given.value, source);
}

cgs_status cgs_sizes_settle(cgs_sizes *s, char *guessed, size_t size) {
    cgs_lewm_config *c = &s->config, usual;
    cgs_section defaults = {cgs_lewm_fields, cgs_lewm_field_count, &usual};
    cgs_config_defaults(&defaults, 1);
    if (guessed) guessed[0] = '\0';
    CGS_TRY(split(s, (factor){CGS_SIZE_ACTION_BLOCK, &s->block},
                  (factor){"model.frameskip", &c->frameskip},
                  (factor){"model.action_dim", &c->action_dim}, usual.frameskip, 1, guessed, size));
    CGS_TRY(split(s, (factor){CGS_SIZE_INNER, &s->inner},
                  (factor){"model.predictor.head_width", &c->predictor_head_width},
                  (factor){"model.predictor.heads", &c->predictor_heads},
                  usual.predictor_head_width, s->inner, guessed, size));
    if (!known(s, "model.encoder.heads"))
        CGS_TRY(guess(s, "model.encoder.heads",
                      c->width % 64 == 0                    ? c->width / 64
                      : c->width % usual.encoder_heads == 0 ? usual.encoder_heads
                                                            : 1,
                      guessed, size));
    if (!known(s, "model.predictor.dropout")) /* matters only for training, so it is not reported as
                                                 a guess */
        CGS_TRY(cgs_sizes_claim(s, "model.predictor.dropout", usual.dropout, "the default"));
    if (!known(s, "model.encoder.class_bits"))
        CGS_TRY(cgs_sizes_claim(s, "model.encoder.class_bits", usual.class_bits, "the default"));
    cgs_status rc = cgs_lewm_check(c);
    return rc == CGS_OK ? rc : CGS_EFORMAT;
}
