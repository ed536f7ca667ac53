/* onnx_graph.c - see onnx_graph.h.  Field numbers are those of onnx.proto. */
#include "model/onnx_graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/file.h"

enum { IR_VERSION = 8, OPSET = 17, ELEMENT_FLOAT = 1, ELEMENT_BYTE = 2, ELEMENT_INT = 7 };
/* the limit of protobuf's messages */
#define MAX_MODEL ((size_t)2000 << 20)

static void fail(cgs_onnx *g, cgs_status rc) {
    if (g->status != CGS_OK || rc == CGS_OK) return;
    g->status = rc;
    snprintf(g->sentence, sizeof g->sentence, "%s", cgs_last_error());
}

static cgs_value fresh(cgs_onnx *g) {
    cgs_value v;
    snprintf(v.name, sizeof v.name, "v%d", g->made++);
    return v;
}

static cgs_value named(const char *name) {
    cgs_value v;
    snprintf(v.name, sizeof v.name, "%s", name);
    return v;
}

/* ---- the file ---------------------------------------------------------------------- */

void cgs_onnx_begin(cgs_onnx *g, const char *name, const cgs_params *params) {
    *g = (cgs_onnx){.params = params};
    cgs_message_text(&g->graph, 2, name);
}

static void put_meta(cgs_message *m, const cgs_meta *meta) {
    size_t at = cgs_message_open(m, 14);
    cgs_message_text(m, 1, meta->key);
    cgs_message_text(m, 2, meta->value);
    cgs_message_close(m, at);
}

cgs_status cgs_onnx_end(cgs_onnx *g, const char *path, const cgs_meta *meta, int metas) {
    cgs_message m = {0};
    cgs_message_number(&m, 1, IR_VERSION);
    cgs_message_text(&m, 2, "cgs");
    cgs_message_text(&m, 3, cgs_version());
    size_t opset = cgs_message_open(&m, 8);
    cgs_message_number(&m, 2, OPSET);
    cgs_message_close(&m, opset);
    for (int i = 0; i < metas; i++) put_meta(&m, &meta[i]);
    cgs_message_bytes(&m, 7, g->graph.data, g->graph.bytes);
    cgs_status rc = g->status != CGS_OK ? cgs_fail(g->status, "%s: %s", path, g->sentence) : CGS_OK;
    if (rc == CGS_OK) rc = cgs_message_check(&g->graph);
    if (rc == CGS_OK) rc = cgs_message_check(&m);
    if (rc == CGS_OK && m.bytes > MAX_MODEL)
        rc =
            cgs_fail(CGS_EARG, "%s: %zu bytes are more than one ONNX file can have", path, m.bytes);
    if (rc == CGS_OK) rc = cgs_write_file(path, m.data, m.bytes);
    cgs_message_free(&m);
    cgs_message_free(&g->graph);
    return rc;
}

/* name, element type and axes of an input (field 11) or output (12) */
static void describe(cgs_onnx *g, unsigned field, const char *name, int element, int rank,
                     const cgs_onnx_axis *axis) {
    cgs_message *m = &g->graph;
    size_t info = cgs_message_open(m, field);
    cgs_message_text(m, 1, name);
    size_t type = cgs_message_open(m, 2), tensor = cgs_message_open(m, 1);
    cgs_message_number(m, 1, element);
    size_t shape = cgs_message_open(m, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = cgs_message_open(m, 1);
        if (axis[i].name)
            cgs_message_text(m, 2, axis[i].name);
        else
            cgs_message_number(m, 1, axis[i].size);
        cgs_message_close(m, dim);
    }
    cgs_message_close(m, shape);
    cgs_message_close(m, tensor);
    cgs_message_close(m, type);
    cgs_message_close(m, info);
}

cgs_value cgs_onnx_input(cgs_onnx *g, const char *name, bool bytes, int rank,
                         const cgs_onnx_axis *axis) {
    describe(g, 11, name, bytes ? ELEMENT_BYTE : ELEMENT_FLOAT, rank, axis);
    return named(name);
}

/* ---- tensors ----------------------------------------------------------------------- */

static void put_tensor(cgs_onnx *g, const char *name, int element, int rank, const int *dim,
                       const void *data, size_t bytes) {
    cgs_message *m = &g->graph;
    size_t at = cgs_message_open(m, 5);
    for (int i = 0; i < rank; i++) cgs_message_number(m, 1, dim[i]);
    cgs_message_number(m, 2, element);
    cgs_message_text(m, 8, name);
    cgs_message_bytes(m, 9, data, bytes); /* little endian, as this machine's */
    cgs_message_close(m, at);
}

cgs_value cgs_onnx_floats(cgs_onnx *g, const float *v, int rank, const int *dim) {
    cgs_value out = fresh(g);
    size_t n = 1;
    for (int i = 0; i < rank; i++) n *= (size_t)dim[i];
    put_tensor(g, out.name, ELEMENT_FLOAT, rank, dim, v, n * sizeof *v);
    return out;
}

cgs_value cgs_onnx_float(cgs_onnx *g, float v) { return cgs_onnx_floats(g, &v, 0, NULL); }

cgs_value cgs_onnx_ints(cgs_onnx *g, const int *v, int n) {
    int64_t wide[8];
    cgs_value out = fresh(g);
    for (int i = 0; i < n && i < 8; i++) wide[i] = v[i];
    put_tensor(g, out.name, ELEMENT_INT, 1, &n, wide, (size_t)n * sizeof *wide);
    return out;
}

/* a stored tensor; transposed: a matrix (out, in) as (in, out) */
static cgs_value stored(cgs_onnx *g, const char *name, bool transposed) {
    const cgs_param *e = cgs_params_find(g->params, name);
    if (!e) {
        fail(g, cgs_fail(CGS_EARG, "there is no tensor \"%s\"", name));
        return named(name);
    }
    float *v = malloc(e->count * sizeof *v), *to = malloc(e->count * sizeof *to);
    if (!v || !to)
        fail(g, cgs_fail(CGS_ENOMEM, "no memory for %s", name));
    else
        fail(g, cgs_param_read(g->params, e, v));
    if (g->status == CGS_OK && transposed) {
        int rows = e->dim[0], cols = (int)(e->count / (size_t)rows);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < cols; j++)
                to[(size_t)j * (size_t)rows + (size_t)i] = v[(size_t)i * (size_t)cols + (size_t)j];
        put_tensor(g, name, ELEMENT_FLOAT, 2, (const int[]){cols, rows}, to, e->count * sizeof *to);
    } else if (g->status == CGS_OK) {
        put_tensor(g, name, ELEMENT_FLOAT, e->rank, e->dim, v, e->count * sizeof *v);
    }
    free(v);
    free(to);
    return named(name);
}

cgs_value cgs_onnx_weight(cgs_onnx *g, const char *fmt, ...) {
    char name[CGS_PARAM_NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return stored(g, name, false);
}

/* ---- nodes ------------------------------------------------------------------------- */

typedef enum attribute_kind { ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_INTS = 7 } attribute_kind;
typedef struct attribute {
    const char *name;
    attribute_kind kind;
    double number;
    const int *list; /* (count) */
    int count;
} attribute;

static void put_attribute(cgs_message *m, const attribute *a) {
    size_t at = cgs_message_open(m, 5);
    cgs_message_text(m, 1, a->name);
    if (a->kind == ATTR_FLOAT) cgs_message_float(m, 2, (float)a->number);
    if (a->kind == ATTR_INT) cgs_message_number(m, 3, (int64_t)a->number);
    for (int i = 0; a->kind == ATTR_INTS && i < a->count; i++) cgs_message_number(m, 8, a->list[i]);
    cgs_message_number(m, 20, a->kind);
    cgs_message_close(m, at);
}

static void put_node(cgs_onnx *g, const char *op, int inputs, const cgs_value *in, int outputs,
                     const cgs_value *out, int attributes, const attribute *a) {
    cgs_message *m = &g->graph;
    size_t at = cgs_message_open(m, 1);
    for (int i = 0; i < inputs; i++) cgs_message_text(m, 1, in[i].name);
    for (int i = 0; i < outputs; i++) cgs_message_text(m, 2, out[i].name);
    cgs_message_text(m, 4, op);
    for (int i = 0; i < attributes; i++) put_attribute(m, &a[i]);
    cgs_message_close(m, at);
}

static cgs_value node(cgs_onnx *g, const char *op, int inputs, const cgs_value *in, int attributes,
                      const attribute *a) {
    cgs_value out = fresh(g);
    put_node(g, op, inputs, in, 1, &out, attributes, a);
    return out;
}

cgs_value cgs_onnx_op(cgs_onnx *g, const char *op, int inputs, const cgs_value *in) {
    return node(g, op, inputs, in, 0, NULL);
}

static cgs_value op2(cgs_onnx *g, const char *op, cgs_value a, cgs_value b) {
    return cgs_onnx_op(g, op, 2, (const cgs_value[]){a, b});
}

cgs_value cgs_onnx_add(cgs_onnx *g, cgs_value a, cgs_value b) { return op2(g, "Add", a, b); }
cgs_value cgs_onnx_multiply(cgs_onnx *g, cgs_value a, cgs_value b) { return op2(g, "Mul", a, b); }
cgs_value cgs_onnx_product(cgs_onnx *g, cgs_value a, cgs_value b) { return op2(g, "MatMul", a, b); }

void cgs_onnx_output(cgs_onnx *g, cgs_value v, const char *name, int rank,
                     const cgs_onnx_axis *axis) {
    const cgs_value out = named(name);
    put_node(g, "Identity", 1, &v, 1, &out, 0, NULL);
    describe(g, 12, name, ELEMENT_FLOAT, rank, axis);
}

/* ---- shapes ------------------------------------------------------------------------ */

cgs_value cgs_onnx_reshape(cgs_onnx *g, cgs_value x, int n, const int *shape) {
    return op2(g, "Reshape", x, cgs_onnx_ints(g, shape, n));
}

cgs_value cgs_onnx_transpose(cgs_onnx *g, cgs_value x, int n, const int *order) {
    const attribute perm = {"perm", ATTR_INTS, 0, order, n};
    return node(g, "Transpose", 1, &x, 1, &perm);
}

static cgs_value one_int(cgs_onnx *g, int v) { return cgs_onnx_ints(g, &v, 1); }

cgs_value cgs_onnx_first(cgs_onnx *g, cgs_value x, int axis, cgs_value count) {
    return cgs_onnx_op(g, "Slice", 4,
                       (const cgs_value[]){x, one_int(g, 0), count, one_int(g, axis)});
}

cgs_value cgs_onnx_length(cgs_onnx *g, cgs_value x, int axis) {
    return op2(g, "Gather", cgs_onnx_op(g, "Shape", 1, &x), one_int(g, axis));
}

void cgs_onnx_split(cgs_onnx *g, cgs_value x, int parts, cgs_value *out) {
    const attribute axis = {"axis", ATTR_INT, -1, NULL, 0};
    for (int i = 0; i < parts; i++) out[i] = fresh(g);
    put_node(g, "Split", 1, &x, parts, out, 1, &axis);
}

cgs_value cgs_onnx_join(cgs_onnx *g, cgs_value a, cgs_value b, int axis) {
    const attribute along = {"axis", ATTR_INT, axis, NULL, 0};
    return node(g, "Concat", 2, (const cgs_value[]){a, b}, 1, &along);
}

/* ---- layers ------------------------------------------------------------------------ */

cgs_value cgs_onnx_to_floats(cgs_onnx *g, cgs_value bytes) {
    const attribute to = {"to", ATTR_INT, ELEMENT_FLOAT, NULL, 0};
    return node(g, "Cast", 1, &bytes, 1, &to);
}

cgs_value cgs_onnx_softmax(cgs_onnx *g, cgs_value x) {
    const attribute axis = {"axis", ATTR_INT, -1, NULL, 0};
    return node(g, "Softmax", 1, &x, 1, &axis);
}

cgs_value cgs_onnx_linear(cgs_onnx *g, cgs_value x, const char *name, bool bias) {
    char full[CGS_PARAM_NAME];
    snprintf(full, sizeof full, "%s.weight", name);
    cgs_value y = cgs_onnx_product(g, x, stored(g, full, true));
    return bias ? cgs_onnx_add(g, y, cgs_onnx_weight(g, "%s.bias", name)) : y;
}

static cgs_value layernorm(cgs_onnx *g, cgs_value x, cgs_value w, cgs_value b, float eps) {
    const attribute a[] = {{"axis", ATTR_INT, -1, NULL, 0}, {"epsilon", ATTR_FLOAT, eps, NULL, 0}};
    return node(g, "LayerNormalization", 3, (const cgs_value[]){x, w, b}, 2, a);
}

cgs_value cgs_onnx_layernorm(cgs_onnx *g, cgs_value x, const char *name, float eps) {
    return layernorm(g, x, cgs_onnx_weight(g, "%s.weight", name),
                     cgs_onnx_weight(g, "%s.bias", name), eps);
}

cgs_value cgs_onnx_plain_layernorm(cgs_onnx *g, cgs_value x, int width, float eps) {
    float *v = calloc(2 * (size_t)width, sizeof *v);
    if (!v) {
        fail(g, cgs_fail(CGS_ENOMEM, "no memory for a layer norm"));
        return x;
    }
    for (int i = 0; i < width; i++) v[i] = 1;
    cgs_value ones = cgs_onnx_floats(g, v, 1, &width);
    cgs_value zeros = cgs_onnx_floats(g, v + width, 1, &width);
    free(v);
    return layernorm(g, x, ones, zeros, eps);
}

cgs_value cgs_onnx_batchnorm(cgs_onnx *g, cgs_value x, const char *name, float eps) {
    const attribute a = {"epsilon", ATTR_FLOAT, eps, NULL, 0};
    const cgs_value in[] = {
        x, cgs_onnx_weight(g, "%s.weight", name), cgs_onnx_weight(g, "%s.bias", name),
        cgs_onnx_weight(g, "%s.running_mean", name), cgs_onnx_weight(g, "%s.running_var", name)};
    return node(g, "BatchNormalization", 5, in, 1, &a);
}

/* (F, 3, S, S) -> (F, D, S / side, S / side) */
cgs_value cgs_onnx_patches(cgs_onnx *g, cgs_value x, const char *name, int side) {
    const int size[2] = {side, side};
    const attribute a[] = {{"kernel_shape", ATTR_INTS, 0, size, 2},
                           {"strides", ATTR_INTS, 0, size, 2}};
    const cgs_value in[] = {x, cgs_onnx_weight(g, "%s.weight", name),
                            cgs_onnx_weight(g, "%s.bias", name)};
    return node(g, "Conv", 3, in, 2, a);
}

/* x (1 + erf(x / sqrt 2)) / 2: opset 17 has no operator for it */
cgs_value cgs_onnx_gelu(cgs_onnx *g, cgs_value x) {
    cgs_value scaled = cgs_onnx_multiply(g, x, cgs_onnx_float(g, (float)sqrt(0.5)));
    cgs_value bell = cgs_onnx_add(g, cgs_onnx_op(g, "Erf", 1, &scaled), cgs_onnx_float(g, 1));
    return cgs_onnx_multiply(g, cgs_onnx_multiply(g, x, bell), cgs_onnx_float(g, 0.5f));
}

cgs_value cgs_onnx_silu(cgs_onnx *g, cgs_value x) {
    return cgs_onnx_multiply(g, x, cgs_onnx_op(g, "Sigmoid", 1, &x));
}
