/* onnx_graph.h - an ONNX graph, written node by node; opset 17.
 *
 * Values are named by numbers, so a graph reads like the function that it computes:
 *
 *   cgs_value y = cgs_onnx_add(g, cgs_onnx_linear(g, x, "layer", true), x);
 *
 * Weights keep their names; those of linear layers are stored as the transposes that ONNX's MatMul
 * takes.  Failures are remembered, as in a message (io/protobuf.h). */
#ifndef CGS_MODEL_ONNX_GRAPH_H
#define CGS_MODEL_ONNX_GRAPH_H

#include "io/protobuf.h"
#include "io/safetensors.h"
#include "model/params.h"

typedef struct cgs_value {
    char name[CGS_PARAM_NAME + 16];
} cgs_value;

typedef struct cgs_onnx {
    cgs_message graph;
    const cgs_params *params;
    int made; /* values without a name of their own */
    cgs_status status;
    char sentence[256]; /* of the first failure */
} cgs_onnx;

void cgs_onnx_begin(cgs_onnx *g, const char *name, const cgs_params *params);
/* Writes the whole model, with the texts of `meta`, and frees the graph in any case. */
cgs_status cgs_onnx_end(cgs_onnx *g, const char *path, const cgs_meta *meta, int metas);

/* An axis of an input or output: a size, or a name where it may be any. */
typedef struct cgs_onnx_axis {
    const char *name; /* or NULL */
    int size;
} cgs_onnx_axis;
cgs_value cgs_onnx_input(cgs_onnx *g, const char *name, bool bytes, int rank,
                         const cgs_onnx_axis *axis);
void cgs_onnx_output(cgs_onnx *g, cgs_value v, const char *name, int rank,
                     const cgs_onnx_axis *axis);

/* Constants, and stored tensors by their names. */
cgs_value cgs_onnx_floats(cgs_onnx *g, const float *v, int rank, const int *dim);
cgs_value cgs_onnx_float(cgs_onnx *g, float v);
cgs_value cgs_onnx_ints(cgs_onnx *g, const int *v, int n);
cgs_value cgs_onnx_weight(cgs_onnx *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One operator of one result, without attributes: in (inputs). */
cgs_value cgs_onnx_op(cgs_onnx *g, const char *op, int inputs, const cgs_value *in);
cgs_value cgs_onnx_add(cgs_onnx *g, cgs_value a, cgs_value b);
cgs_value cgs_onnx_multiply(cgs_onnx *g, cgs_value a, cgs_value b);
cgs_value cgs_onnx_product(cgs_onnx *g, cgs_value a, cgs_value b); /* of matrices */

/* Shapes.  0 in a new shape keeps an axis, -1 is what is left. */
cgs_value cgs_onnx_reshape(cgs_onnx *g, cgs_value x, int n, const int *shape);
cgs_value cgs_onnx_transpose(cgs_onnx *g, cgs_value x, int n, const int *order);
cgs_value cgs_onnx_first(cgs_onnx *g, cgs_value x, int axis, cgs_value count); /* of an axis */
cgs_value cgs_onnx_length(cgs_onnx *g, cgs_value x, int axis);                 /* (1) whole */
void cgs_onnx_split(cgs_onnx *g, cgs_value x, int parts, cgs_value *out);      /* the last axis */
cgs_value cgs_onnx_join(cgs_onnx *g, cgs_value a, cgs_value b, int axis);

/* Layers; `name` is that of their stored tensors, NAME.weight and NAME.bias. */
cgs_value cgs_onnx_to_floats(cgs_onnx *g, cgs_value bytes);
cgs_value cgs_onnx_softmax(cgs_onnx *g, cgs_value x);
cgs_value cgs_onnx_linear(cgs_onnx *g, cgs_value x, const char *name, bool bias);
cgs_value cgs_onnx_layernorm(cgs_onnx *g, cgs_value x, const char *name, float eps);
cgs_value cgs_onnx_plain_layernorm(cgs_onnx *g, cgs_value x, int width, float eps);
cgs_value cgs_onnx_batchnorm(cgs_onnx *g, cgs_value x, const char *name, float eps);
cgs_value cgs_onnx_patches(cgs_onnx *g, cgs_value x, const char *name, int side);
cgs_value cgs_onnx_gelu(cgs_onnx *g, cgs_value x);
cgs_value cgs_onnx_silu(cgs_onnx *g, cgs_value x);

#endif /* CGS_MODEL_ONNX_GRAPH_H */
