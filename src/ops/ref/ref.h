/* ref.h - shared by the files of the reference backend.
 *
 * The reference is the judge of the other backends: one thread, one obvious loop per
 * operation, sums in double.  It reads and writes every element through the accessors
 * below, so each operation is written once for all element types. */
#ifndef CGS_OPS_REF_REF_H
#define CGS_OPS_REF_REF_H

#include <math.h>

#include "core/rng.h"
#include "ops/ops.h"

/* Some of a record's directions, at most CGS_LANES: each is pushed by itself. */
typedef struct cgs_lanes {
    size_t first, count;
} cgs_lanes;
enum { CGS_LANES = 16 };

/* None of them needs the device. */
#define X(name, reads_in, reads_out)                                                               \
    void cgs_ref_##name##_forward(const cgs_record *r);                                            \
    void cgs_ref_##name##_backward(const cgs_record *r);                                           \
    void cgs_ref_##name##_tangent(const cgs_record *r, cgs_lanes l);
CGS_OPS(X)
#undef X

/* ---- elements ------------------------------------------------------------------ */

static inline float load(const void *p, cgs_dtype type, size_t i) {
    switch (type) {
    case CGS_F32: return ((const float *)p)[i];
    case CGS_BF16: return cgs_bf16_to_f32(((const uint16_t *)p)[i]);
    case CGS_U8: return ((const uint8_t *)p)[i];
    }
    return NAN;
}

static inline void store(void *p, cgs_dtype type, size_t i, double v) {
    if (type == CGS_F32)
        ((float *)p)[i] = (float)v;
    else
        ((uint16_t *)p)[i] = cgs_f32_to_bf16((float)v);
}

static inline float get(const cgs_tensor *x, size_t i) { return load(x->data, x->dtype, i); }
static inline void set(cgs_tensor *x, size_t i, double v) { store(x->data, x->dtype, i, v); }

/* d loss / d out[i] */
static inline float out_grad(const cgs_record *r, size_t i) {
    return load(r->out->grad, r->out->dtype, i);
}

/* Gives element i of input k its gradient: adds or overwrites as the record says.
 * At most once an element, so that bf16 gradients are rounded once a record. */
static inline void give(const cgs_record *r, int k, size_t i, double v) {
    const cgs_tensor *x = r->in[k];
    if (r->accumulate[k]) v += load(x->grad, x->dtype, i);
    store(x->grad, x->dtype, i, v);
}

/* For an input that the result does not depend on, or that gets no gradient by definition. */
static inline void give_nothing(const cgs_record *r, int k) {
    if (!cgs_wants(r, k) || r->accumulate[k]) return;
    memset(r->in[k]->grad, 0, cgs_bytes(r->in[k]));
}

/* ---- tangents -------------------------------------------------------------------- */

/* those of element i of x, from the first lane on; NULL where all are zero */
static inline float *tangent_at(const cgs_record *r, const cgs_tensor *x, cgs_lanes l, size_t i) {
    return x->tangent ? x->tangent + i * (size_t)r->directions + l.first : NULL;
}

/* Adds `by` times the change of element j of input k to that of out[i]: by is the derivative. */
static inline void push(const cgs_record *r, cgs_lanes l, size_t i, double by, int k, size_t j) {
    const float *from = tangent_at(r, r->in[k], l, j);
    float *to = tangent_at(r, r->out, l, i), factor = (float)by;
    for (size_t p = 0; from && p < l.count; p++) to[p] += factor * from[p];
}

/* sum += by times the change of element i of x */
static inline void sum_tangent(double *sum, const cgs_record *r, const cgs_tensor *x, cgs_lanes l,
                               size_t i, double by) {
    const float *from = tangent_at(r, x, l, i);
    for (size_t p = 0; from && p < l.count; p++) sum[p] += by * from[p];
}

static inline void set_tangent(const cgs_record *r, cgs_lanes l, size_t i, const double *v) {
    float *to = tangent_at(r, r->out, l, i);
    for (size_t p = 0; p < l.count; p++) to[p] = (float)v[p];
}

/* before the first push to it */
static inline void clear_tangent(const cgs_record *r, cgs_lanes l, size_t i) {
    float *to = tangent_at(r, r->out, l, i);
    for (size_t p = 0; p < l.count; p++) to[p] = 0;
}

/* for an operation whose result has element from(i) of input k at i: here at i itself */
static inline void push_copies(const cgs_record *r, cgs_lanes l, int k) {
    for (size_t i = 0; i < cgs_numel(r->out); i++) {
        clear_tangent(r, l, i);
        push(r, l, i, 1, k, i);
    }
}

/* Dropout: the factor of element i, 0 or 1 / (1 - p). */
static inline double keep_factor(uint64_t key, uint64_t i, float p) {
    return cgs_to_f32(cgs_rng_at(key, i)) >= p ? 1.0 / (1.0 - (double)p) : 0.0;
}

/* ---- the matrix product, for linear layers and attention -------------------------- */

/* a matrix inside some memory: element (i, j) is p[at + i*row + j*col] */
typedef struct cgs_ref_matrix {
    const void *p;
    cgs_dtype type;
    size_t at, row, col;
} cgs_ref_matrix;

static inline cgs_ref_matrix transposed(cgs_ref_matrix m) {
    return (cgs_ref_matrix){m.p, m.type, m.at, m.col, m.row};
}

/* where a product goes: element (i, j) is p[at + i*row + j], times scale, plus bias[j] */
typedef struct cgs_ref_target {
    void *p;
    cgs_dtype type;
    size_t at, row;
    double scale;
    const cgs_tensor *bias; /* or NULL */
    bool add;               /* add to the destination */
} cgs_ref_target;

/* C (M,N) = A (M,K) B (K,N); products and sums in double */
void cgs_ref_product(cgs_ref_target C, cgs_ref_matrix A, cgs_ref_matrix B, size_t M, size_t N,
                     size_t K);

/* ---- scratch ---------------------------------------------------------------------- */

/* Bytes that a record's functions find at r->impl; operations do not allocate. */
size_t cgs_ref_attention_scratch(const cgs_record *r);
size_t cgs_ref_attend_first_scratch(const cgs_record *r);
size_t cgs_ref_sigreg_scratch(const cgs_record *r);
size_t cgs_ref_straighten_scratch(const cgs_record *r);
size_t cgs_ref_cgs_scratch(const cgs_record *r);

void cgs_ref_muon(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count, float *p,
                  const float *g, float *m, uint16_t *bf16, float *unused);

#endif /* CGS_OPS_REF_REF_H */
