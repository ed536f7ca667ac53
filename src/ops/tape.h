/* tape.h - a forward pass as a list of records, replayed any number of times.
 *
 * Calling an operation (cgs_linear, cgs_attention, ...) runs nothing: it checks
 * shapes, appends a record and returns the tensor that will hold the result.  So a
 * model is written once, as a function that reads like the paper.  Then
 *
 *     cgs_tape_finish(t, loss)    plans and allocates all memory, once
 *     cgs_tape_forward(t)         runs the records in order
 *     cgs_tape_backward(t)        runs those that lead to the loss in reverse
 *
 * Nothing is allocated after finish, except that on a GPU each pass becomes a graph when it runs
 * the second time (ops/cuda/graph.c).  The first failure while recording (a shape that does not
 * fit, no memory) is returned by finish; operations on a failed tape return a dummy tensor, so
 * models need no error handling.
 *
 * Memory is planned from lifetimes: a tensor's memory is reused after its last reader,
 * where backward counts as a reader only for the inputs that CGS_OPS says it reads. */
#ifndef CGS_OPS_TAPE_H
#define CGS_OPS_TAPE_H

#include "ops/ops.h"

typedef struct cgs_tape cgs_tape;

/* act: type of activations between operations (the residual stream stays f32).
 * The device must outlive the tape. */
cgs_status cgs_tape_create(cgs_tape **out, cgs_device *d, cgs_dtype act);
void cgs_tape_destroy(cgs_tape *t);

/* loss: a scalar to differentiate, or NULL for a tape that only runs forward. */
cgs_status cgs_tape_finish(cgs_tape *t, cgs_tensor *loss);
void cgs_tape_forward(cgs_tape *t);
void cgs_tape_backward(cgs_tape *t);

/* Forward mode: derivatives of all results along `directions` changes of the inputs that
 * cgs_require_grad marks, the parameters being constants.  Before finish, which refuses it where
 * the device cannot (cgs_tape_pushes).  push is a forward pass that takes tangents along; the
 * caller wrote those of the inputs. */
void cgs_tape_directions(cgs_tape *t, int directions);
bool cgs_tape_pushes(const cgs_device *d);
void cgs_tape_push(cgs_tape *t);

/* Parameters recorded from now on are constants: planning differentiates only by actions. */
void cgs_tape_freeze_parameters(cgs_tape *t);

/* Activations recorded from now on have this type; returns the former one. */
cgs_dtype cgs_tape_set_act(cgs_tape *t, cgs_dtype act);

/* A row of a product recorded from now on has the same bits, however many rows there are beside it:
 * a plan costs the same alone and in a batch.  (On a GPU very many rows, for which the algorithm of
 * few lacks memory, have an algorithm of their own: last bits may differ there.) */
void cgs_tape_batch_invariant(cgs_tape *t);

/* Every record runs for the whole batch before the next one does, even where segments (segments.c)
 * would be possible; the bits are the same.  Before finish. */
void cgs_tape_one_by_one(cgs_tape *t);
int cgs_tape_segments(const cgs_tape *t); /* of a finished tape */

/* One forward pass that adds to seconds[i] how long record i took; within segments the mean over
 * threads. */
void cgs_tape_forward_timed(cgs_tape *t, double *seconds /* (records) */);

/* The update number that dropout and random directions are drawn for. */
void cgs_tape_set_step(cgs_tape *t, uint64_t step);

size_t cgs_tape_memory(const cgs_tape *t); /* planned bytes */
int cgs_tape_records(const cgs_tape *t);
const cgs_record *cgs_tape_record(const cgs_tape *t, int i);
cgs_device *cgs_tape_device(const cgs_tape *t);
cgs_dtype cgs_tape_act(const cgs_tape *t);

/* An input: memory with the tape's lifetime, filled by the caller. */
cgs_tensor *cgs_input(cgs_tape *t, const char *name, cgs_dtype dtype, int rank, const int *dim);
/* Marks an input as something to differentiate by (the gradient planner's actions). */
void cgs_require_grad(cgs_tape *t, cgs_tensor *x);
/* The caller will write the gradient of x before backward, as if a loss after x had computed it. */
void cgs_seed(cgs_tape *t, cgs_tensor *x);
/* Keeps a result and its gradient readable after the run. */
cgs_tensor *cgs_keep(cgs_tensor *x);

/* Host copies, converting from the tensor's type. */
cgs_status cgs_tensor_read(cgs_tape *t, const cgs_tensor *x, float *out);
cgs_status cgs_tensor_read_grad(cgs_tape *t, const cgs_tensor *x, float *out);
cgs_status cgs_tensor_write(cgs_tape *t, cgs_tensor *x, const float *values);
/* (numel, directions) */
cgs_status cgs_tensor_read_tangent(cgs_tape *t, const cgs_tensor *x, float *out);
cgs_status cgs_tensor_write_tangent(cgs_tape *t, cgs_tensor *x, const float *values);

/* ---- operations; see CGS_OPS for shapes -------------------------------------
 * What feeds a product (affine norms, activations, attention, and products themselves)
 * has the tape's activation type, whatever the type of its input; the forms ending in
 * _f32 keep f32.  Everything else has the type of its first input. */

cgs_tensor *cgs_patchify(cgs_tape *t, cgs_tensor *frames, int patch, const float mean[3],
                         const float std[3]);
cgs_tensor *cgs_patchify_resized(cgs_tape *t, cgs_tensor *frames, int size, int patch,
                                 const float mean[3], const float std[3]);
/* Columns (channel, row, column), the order of a convolution's weights: a 3x3 convolution with
 * zeros around the grid is a product of this. */
cgs_tensor *cgs_unfold(cgs_tape *t, cgs_tensor *x);
cgs_tensor *cgs_linear(cgs_tape *t, cgs_tensor *x, cgs_tensor *W, cgs_tensor *b);
cgs_tensor *cgs_linear_f32(cgs_tape *t, cgs_tensor *x, cgs_tensor *W, cgs_tensor *b);
cgs_tensor *cgs_tokens(cgs_tape *t, cgs_tensor *x, cgs_tensor *cls, cgs_tensor *pos);
cgs_tensor *cgs_add_pos(cgs_tape *t, cgs_tensor *x, cgs_tensor *pos);
cgs_tensor *cgs_add(cgs_tape *t, cgs_tensor *x, cgs_tensor *y);
cgs_tensor *cgs_layernorm(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b, float eps);
cgs_tensor *cgs_layernorm_f32(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b, float eps);
cgs_tensor *cgs_modulate(cgs_tape *t, cgs_tensor *x, cgs_tensor *m, int shift, int scale, int t0);
cgs_tensor *cgs_gate_add(cgs_tape *t, cgs_tensor *x, cgs_tensor *y, cgs_tensor *m, int gate,
                         int t0);
cgs_tensor *cgs_attention(cgs_tape *t, cgs_tensor *qkv, int heads, bool causal, int block,
                          float dropout, uint64_t key);
/* Attention without mask or dropout for token 0 alone, in the type of `own`, which has its q; all
 * has k and v of every token.  Where own has q, k and v they also replace row 0 of all, which is
 * then not read; where all has q, k and v its q is not read. */
cgs_tensor *cgs_attend_first(cgs_tape *t, cgs_tensor *own, cgs_tensor *all, int heads);
cgs_tensor *cgs_activate(cgs_tape *t, cgs_tensor *x, cgs_activation kind);
cgs_tensor *cgs_activate_f32(cgs_tape *t, cgs_tensor *x, cgs_activation kind);
cgs_tensor *cgs_dropout(cgs_tape *t, cgs_tensor *x, float p, uint64_t key);
/* training: a running statistic moves by this fraction towards the batch's */
#define CGS_BATCHNORM_MOMENTUM 0.1f
cgs_tensor *cgs_batchnorm(cgs_tape *t, cgs_tensor *x, cgs_tensor *w, cgs_tensor *b,
                          cgs_tensor *running_mean, cgs_tensor *running_var, bool training);
cgs_tensor *cgs_take(cgs_tape *t, cgs_tensor *x, int t0, int n);
cgs_tensor *cgs_join(cgs_tape *t, cgs_tensor *x, cgs_tensor *y);
cgs_tensor *cgs_repeat(cgs_tape *t, cgs_tensor *x, int times);
cgs_tensor *cgs_mse(cgs_tape *t, cgs_tensor *a, cgs_tensor *b);
cgs_tensor *cgs_sqdist(cgs_tape *t, cgs_tensor *a, cgs_tensor *b);
cgs_tensor *cgs_directions(cgs_tape *t, int P, int D, uint64_t key);
cgs_tensor *cgs_sigreg(cgs_tape *t, cgs_tensor *z, cgs_tensor *directions);
cgs_tensor *cgs_straighten(cgs_tape *t, cgs_tensor *z);
cgs_tensor *cgs_match_geometry(cgs_tape *t, cgs_tensor *z, cgs_tensor *reference, cgs_tensor *mask,
                               bool per_window);
cgs_tensor *cgs_weighted_sum(cgs_tape *t, cgs_tensor *weights, cgs_tensor **terms, int n);

/* A view with another shape and the same elements; costs nothing. */
cgs_tensor *cgs_reshape(cgs_tape *t, cgs_tensor *x, int rank, const int *dim);
/* Rows first .. first+count-1 of a parameter, along its first dimension; costs nothing.  A
 * parameter may be read in parts and afterwards whole, not whole and afterwards in part. */
cgs_tensor *cgs_part(cgs_tape *t, const cgs_tensor *x, int first, int count);
/* A view that stops the gradient. */
cgs_tensor *cgs_stop_gradient(cgs_tape *t, cgs_tensor *x);

#endif /* CGS_OPS_TAPE_H */
