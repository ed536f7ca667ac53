/* golden_judge.h - how far a run of LeWM may be from the golden numbers.
 *
 * Errors are relative: |got - want| / |want| for a number, and the same with Euclidean norms
 * for the leading entries of a vector (a slice) and for whole tensors. */
#ifndef CGS_TESTS_GOLDEN_JUDGE_H
#define CGS_TESTS_GOLDEN_JUDGE_H

#include "ops/tensor.h"

typedef struct golden_mode {
    const char *backend;
    cgs_dtype act;
    int class_bits; /* model.encoder.class_bits */
    double tolerance;
} golden_mode;

/* A loss, a cost or a norm. */
void golden_number(const golden_mode *k, const char *what, double got, double want);

/* The first n entries of a vector.  Relative to them, or to what n entries of the tensor measure
 * on average (typical) where that is more: entries that are small by accident say little. */
void golden_slice(const golden_mode *k, const char *what, const float *got, const double *want,
                  int n, double typical);

/* Of a vector only four to six entries are published.  In f32, where those agree to 1e-4, a run
 * stores its whole tensors, and bf16 is compared with these, too: over hundreds of entries the
 * error of a way of rounding hardly depends on the order of sums, in a slice it is chance. */
enum {
    GOLDEN_Z,
    GOLDEN_ZHAT,
    GOLDEN_FRAME_3,
    GOLDEN_FRAME_5,
    GOLDEN_TRAINING_Z,
    GOLDEN_TRAINING_ZHAT,
    GOLDEN_GRADIENT, /* of four losses */
    GOLDEN_TENSORS = GOLDEN_GRADIENT + 4,
    GOLDEN_MOST = 4 * 4 * 192 /* entries of the largest */
};
void golden_tensor(const golden_mode *k, int which, const float *x, size_t n);
bool golden_has_tensors(void);

/* Prints the worst errors since the last call, in bf16 those of every whole tensor. */
void golden_report(const golden_mode *k);

#endif /* CGS_TESTS_GOLDEN_JUDGE_H */
