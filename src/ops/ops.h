/* ops.h - the contract between models and devices: one list of operations.
 *
 * An operation is a record: its inputs, its output, what forward saves for backward, and a few
 * numbers.  A backend is a table with one forward and one backward function per operation, each of
 * which gets such a record.
 *
 * - Forward overwrites `out` (and `saved`, which it may leave out where `out` wants no gradient).
 * - Backward reads out->grad and writes in[i]->grad of every input that wants one.
 *   rec->accumulate[i] says whether to add to it (+=) or to overwrite it (=): the first
 *   contribution to a gradient overwrites, so gradients need no clearing.
 * - Element types: activations are f32 or bf16; a gradient has its tensor's type;
 *   parameters are f32 with f32 gradients and, for products with bf16 inputs, a rounded
 *   copy in `bf16`.  Sums are f32 or wider.
 * - Tangent, where a backend has it, reads the tangents of in[i] and what forward read and left,
 *   and overwrites those of `out`: forward mode, any number of directions at a time.  Tangents are
 *   f32 whatever their tensor is, parameters have none, and products take f32 weights.
 * - No operation allocates.  Shapes were checked when the record was made.
 *
 * ref/ has the plain version that judges the others; cpu/ and cuda/ have the fast ones. */
#ifndef CGS_OPS_OPS_H
#define CGS_OPS_OPS_H

#include "core/status.h"
#include "ops/tensor.h"

/* The list.  Columns: name; which inputs backward reads (bit i = in[i]); whether
 * backward reads the output.  The memory planner frees what backward does not read.
 *
 *  operation      in[]                                     out                       */
#define CGS_OPS(X)                                                                                 \
    X(patchify, 0x0, 0)     /* frames u8 (F,S,S,3)          (F*P, 3*p*p), no gradient    */        \
    X(unfold, 0x0, 0)       /* x (F,n*n,C)                   (F,n*n,C*9), 3x3 surroundings */      \
    X(linear, 0x3, 0)       /* x (n,k), W (m,k), b (m)|NULL  x W^T + b (n,m)             */        \
    X(tokens, 0x0, 0)       /* x (F*P,D), cls (D), pos (P+1,D)  (F,P+1,D)                */        \
    X(add_pos, 0x0, 0)      /* x (B,T,D), pos (>=T,D)        x + pos[t]                  */        \
    X(add, 0x0, 0)          /* x, y                          x + y                       */        \
    X(layernorm, 0x3, 0)    /* x (n,D), w (D)|NULL, b|NULL   saved: mean (n), rstd (n)   */        \
    X(modulate, 0x3, 0)     /* x (n,D), m (r,C)              x (1 + m.scale) + m.shift   */        \
    X(gate_add, 0x6, 0)     /* x (n,D), y (n,D), m (r,C)     x + m.gate y                */        \
    X(attention, 0x1, 1)    /* qkv (B,T,3*heads*width)       (B,T,heads*width); lse, residual */   \
    X(attend_first, 0x3, 0) /* own (B,1,q|qkv), all (B,T,kv|qkv)  token 0's (B,1,q); lse */        \
    X(activation, 0x1, 0)   /* x                             gelu, silu or relu          */        \
    X(dropout, 0x0, 0)      /* x                             x keep / (1 - p)            */        \
    X(batchnorm, 0x3, 0)    /* x (n,C), w, b, run mean, run var   saved: mean, rstd      */        \
    X(take, 0x0, 0)         /* x (B,T,D)                     x[:, t0:t0+n] (B,n,D)       */        \
    X(join, 0x0, 0)         /* x (B,T,D), y (B,U,D)          (B,T+U,D)                   */        \
    X(repeat, 0x0, 0)       /* x (B,...)                     each row block K times      */        \
    X(mse, 0x3, 0)          /* a, b                          mean (a-b)^2, scalar        */        \
    X(sqdist, 0x3, 0)       /* a (E*K,D), b (E,D)            |a - b|^2 (E*K)             */        \
    X(directions, 0x0, 0)   /* -                             random unit rows (P,D)      */        \
    X(sigreg, 0x3, 0)       /* z (B,T,D), A (P,D)            scalar                      */        \
    X(straighten, 0x1, 0)   /* z (B,T,D)                     L_TS, scalar                */        \
    X(cgs, 0x7, 0)          /* z (B,N+1,D), r (B,N,R), mask (B,N)|NULL   L_CGS, scalar   */        \
    X(weighted_sum, 0x1, 0) /* w (n), s_1 .. s_n scalars     sum w_i s_i, scalar         */

typedef enum cgs_opcode {
#define X(name, reads_in, reads_out) CGS_OP_##name,
    CGS_OPS(X)
#undef X
        CGS_OP_COUNT
} cgs_opcode;

typedef enum cgs_activation { CGS_GELU, CGS_SILU, CGS_RELU } cgs_activation;

/* Which row of a conditioning matrix belongs to a token: the tokens are (B, T), the
 * matrix holds `Tm` rows per batch element, and token (b, t) uses row b*Tm + t0 + t. */
typedef struct cgs_rowmap {
    int T, Tm, t0;
} cgs_rowmap;

static inline size_t cgs_map_row(cgs_rowmap m, size_t row) {
    return row / (size_t)m.T * (size_t)m.Tm + (size_t)m.t0 + row % (size_t)m.T;
}

/* Resizing S pixels to R by a triangle filter, wide enough not to skip pixels: output i is the mean
 * of the inputs j with these weights.  They are integers, 0 outside a run of j that starts at
 * cgs_resize_first.  With R = S it is the identity. */
static inline int cgs_resize_weight(int S, int R, int i, int j) {
    int width = 2 * (S > R ? S : R), apart = (2 * j + 1) * R - (2 * i + 1) * S;
    if (apart < 0) apart = -apart;
    return apart < width ? width - apart : 0;
}
static inline int cgs_resize_first(int S, int R, int i) {
    int before = (2 * i + 1) * S - 2 * (S > R ? S : R) - R;
    return before < 0 ? 0 : before / (2 * R) + 1;
}

#define CGS_SIGREG_KNOTS 17
#define CGS_BATCHNORM_EPS 1e-5f

#define CGS_SHORT_WINDOW 16 /* tokens */

#define CGS_MAX_IN 6
#define CGS_MAX_SAVED 2

typedef struct cgs_record {
    cgs_opcode op;
    cgs_tensor *in[CGS_MAX_IN];
    cgs_tensor *out;
    cgs_tensor *saved[CGS_MAX_SAVED];
    bool accumulate[CGS_MAX_IN];
    const uint64_t *step; /* draws of dropout and directions depend on it */
    bool batch_invariant; /* see cgs_tape_batch_invariant */
    int directions;       /* that tangents are pushed along */
    bool alone; /* in[0] is a result of the tape that nothing else reads: it may be overwritten */
    union {
        /* frames are resized to (size, size); pixel = (v/255 - mean)/std */
        struct {
            int size, patch;
            float mean[3], std[3];
        } patchify;
        struct {
            int side;
        } unfold; /* n */
        /* of each `tokens` rows of the result nobody reads `columns` of the first `unread` */
        struct {
            int tokens, unread, columns;
        } linear;
        struct {
            float eps;
        } layernorm;
        struct {
            cgs_rowmap rows;
            int shift, scale;
        } modulate; /* first columns of the slices */
        struct {
            cgs_rowmap rows;
            int gate;
        } gate_add;
        /* block of the causal mask: tokens per frame; token i sees token j iff j/block <= i/block.
         * Without a gradient nobody reads the query of a token that sees only itself, in windows of
         * up to CGS_SHORT_WINDOW. */
        struct {
            int heads, width, block;
            bool causal;
            float dropout;
            uint64_t key;
            int unread; /* so many tokens at the beginning of the result are read by nobody */
        } attention;
        /* own has q, and k and v too where the rows that all have of token 0 are not used; of all,
         * the last two parts are k and v, and q is not used where it has one */
        struct {
            int heads, width;
        } attend_first;
        struct {
            cgs_activation kind;
        } activation;
        struct {
            float p;
            uint64_t key;
        } dropout;
        struct {
            bool training;
            float eps, momentum;
        } batchnorm;
        struct {
            int t0;
        } take;
        struct {
            int times;
        } repeat;
        struct {
            int K;
        } sqdist;
        struct {
            uint64_t key;
        } directions;
        struct {
            float min_norm;
        } straighten;
        struct {
            float min_norm;
            bool per_window;
        } cgs;
        struct {
            int terms;
        } weighted_sum;
    } arg;
    /* The adjacent records that the backend fuses with this one, or NULL. */
    struct cgs_record *before, *next;
    void *impl; /* prepared by the backend for this record (such as a primitive) */
} cgs_record;

/* Whether input k exists and is to get a gradient. */
static inline bool cgs_wants(const cgs_record *r, int k) {
    return r->in[k] && r->in[k]->wants_grad && r->in[k]->grad;
}

/* Dropout keeps element i of a tensor in update `step` iff this is true.  Both
 * directions recompute it, so no mask is stored. */
#define CGS_DROPOUT_KEY(key, step) cgs_mix64((key) ^ cgs_mix64(step))

typedef struct cgs_device cgs_device;
typedef void (*cgs_op_fn)(cgs_device *d, const cgs_record *r);

/* ---- segments ---------------------------------------------------------------------------
 * A run of consecutive records of a forward pass that work on batch elements independently, so that
 * a chunk of elements can go through all of them before the next chunk does (segments.c). */

enum { CGS_SLOTS = CGS_MAX_IN + 1 + CGS_MAX_SAVED };

/* in[0 ...], out, saved[0 ...] */
static inline cgs_tensor **cgs_record_slot(cgs_record *r, int k) {
    if (k < CGS_MAX_IN) return &r->in[k];
    return k == CGS_MAX_IN ? &r->out : &r->saved[k - CGS_MAX_IN - 1];
}

/* one tensor of a record, by batch elements */
typedef struct cgs_share {
    size_t each; /* bytes of an element; 0: all elements have the whole tensor */
    int dim;     /* its first dimension, per element */
    bool lane;   /* exists only for a chunk, in a lane */
} cgs_share;

typedef struct cgs_segment {
    cgs_record **record;           /* (records) */
    cgs_share (*share)[CGS_SLOTS]; /* (records) */
    int first, records;            /* of the tape */
    int elements, chunk;           /* in all, and at a time */
    int lanes;                     /* that exist: chunks at a time */
    size_t lane_bytes;             /* from a tensor in lane 0 to the same in lane 1 */
} cgs_segment;

typedef struct cgs_adamw {
    float lr, beta1, beta2, eps, weight_decay;
    float clip_scale; /* clipping factor of the gradients */
    uint64_t step;    /* 1 for the first update               */
} cgs_adamw;

/* Muon: a matrix goes along its momentum with all singular values made (nearly) equal, so that no
 * direction waits for a few that dominate the gradient.  They are made equal by five steps of
 * Newton and Schulz, X <- a X + (b X X^T + c (X X^T)^2) X, from X of norm 1. */
typedef struct cgs_muon {
    float lr, beta, weight_decay; /* beta: decay of the momentum */
    float clip_scale;
} cgs_muon;
enum { CGS_MUON_STEPS = 5 };
#define CGS_MUON_A 3.4445f
#define CGS_MUON_B -4.7750f
#define CGS_MUON_C 2.0315f
/* the root mean square of a full step over lr, as Adam's usually is */
#define CGS_MUON_SIZE 0.2f

/* a matrix in a flat buffer, and its scratch in another: floats from `work` on */
typedef struct cgs_matrix {
    uint64_t first, work;
    int32_t rows, columns;
} cgs_matrix;

/* floats of scratch that a matrix needs: itself twice and its smaller square twice */
static inline uint64_t cgs_muon_work(int rows, int columns) {
    uint64_t r = (uint64_t)rows, c = (uint64_t)columns, s = r < c ? r : c;
    return 2 * r * c + 2 * s * s;
}

typedef enum cgs_device_kind { CGS_DEVICE_CPU, CGS_DEVICE_GPU } cgs_device_kind;

typedef struct cgs_backend {
    const char *name; /* "ref", "cpu", "cuda" */
    cgs_device_kind kind;

    cgs_status (*open)(cgs_device *d); /* fills d->impl */
    void (*close)(cgs_device *d);

    cgs_status (*alloc)(cgs_device *d, void **p, size_t bytes); /* zeroed, CGS_ALIGN-aligned */
    void (*release)(cgs_device *d, void *p);
    /* Parameters change only through upload, adamw and round_bf16, so a device may cache copies. */
    cgs_status (*upload)(cgs_device *d, void *dst, const void *src, size_t bytes);
    cgs_status (*download)(cgs_device *d, void *dst, const void *src, size_t bytes);
    cgs_status (*sync)(cgs_device *d); /* synchronises, and reports failures since the last call */

    /* Optional.  Whether to fuse two consecutive records; `second` reads the output of `first`,
     * `alone` if nothing else does.  Both functions are still called, but either may do the work of
     * both: the operands of each are valid during the other. */
    bool (*joins)(cgs_device *d, const cgs_record *first, const cgs_record *second, bool alone);
    /* Attention saves the bf16 rounding residual of its output, for its backward. */
    bool attention_residual;

    /* Optional.  Turns the named variants of operations off and all others on, for tapes that are
     * made afterwards; names are separated by spaces or commas. */
    cgs_status (*without)(cgs_device *d, const char *names);

    /* Called once per record when its tape is finished, and when it is destroyed. */
    cgs_status (*prepare)(cgs_device *d, cgs_record *r);
    void (*unprepare)(cgs_device *d, cgs_record *r);

    cgs_op_fn forward[CGS_OP_COUNT], backward[CGS_OP_COUNT];
    cgs_op_fn tangent[CGS_OP_COUNT]; /* optional, all or none: after forward of the record */

    /* Optional, both or none.  Whether forward of a record, not prepared yet, may run for some
     * batch elements with the bits that it has for all, if its backward runs, too, or not; and a
     * segment of such records.  seconds: NULL, or (records) sums to which the time of each record
     * is added. */
    bool (*separable)(cgs_device *d, const cgs_record *r, bool backward);
    void (*forward_segment)(cgs_device *d, const cgs_segment *s, double *seconds);

    /* Optional.  Runs one direction of a finished tape: does what calls(ctx) would do, and
     * may remember how in *pass, which is NULL at first and which forget() frees. */
    void (*run)(cgs_device *d, void **pass, uint64_t step, void (*calls)(void *), void *ctx);
    void (*forget)(cgs_device *d, void *pass);

    /* Optional, all or none: graphs.  capture remembers what calls(ctx) enqueues instead of
     * running it, launch enqueues all of it at once, drop frees it.  moved() changes whenever
     * addresses that graphs hold have moved: those captured before must not be launched then. */
    cgs_status (*capture)(cgs_device *d, void **graph, void (*calls)(void *), void *ctx);
    cgs_status (*launch)(cgs_device *d, void *graph);
    void (*drop)(cgs_device *d, void *graph);
    unsigned (*moved)(const cgs_device *d);

    /* Optional.  Records event number 0, 1, ... on the device's time line; the seconds from event i
     * to event j, after a sync; negative if unknown. */
    void (*mark)(cgs_device *d, int i);
    double (*between)(cgs_device *d, int i, int j);

    /* Optional, all or none: a device with its own memory, of which `unused` bytes are free.
     * gather: block i of `to` becomes block which[i] of `from`, both on the device.  send_ahead
     * copies from pinned host memory to the device, concurrently with computation (the device was
     * synchronised since `to` was allocated); take_sent waits for that copy, then copies into
     * memory that the computation reads. */
    cgs_status (*memory)(cgs_device *d, size_t *unused, size_t *all);
    cgs_status (*gather)(cgs_device *d, void *to, const void *from, const int64_t *which,
                         size_t count, size_t bytes);
    bool (*pin)(cgs_device *d, void *p, size_t bytes);
    void (*unpin)(cgs_device *d, void *p);
    cgs_status (*send_ahead)(cgs_device *d, void *to, const void *from, size_t bytes);
    cgs_status (*take_sent)(cgs_device *d, void *to, const void *from, size_t bytes);

    /* flat f32 buffers of n elements: the whole model at once */
    double (*sum_squares)(cgs_device *d, const float *x, size_t n);
    void (*adamw)(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                  uint16_t *bf16, size_t n);
    void (*round_bf16)(cgs_device *d, uint16_t *to, const float *from, size_t n);
    /* of `count` matrices of such buffers; list and work are in the device's memory */
    void (*muon)(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count, float *p,
                 const float *g, float *m, uint16_t *bf16, float *work);
} cgs_backend;

struct cgs_device {
    const cgs_backend *ops;
    int threads;
    void *impl;
    int index; /* which of several GPUs */
};

extern const cgs_backend cgs_backend_ref, cgs_backend_cpu;
extern const cgs_backend cgs_backend_cuda; /* in builds with CUDA */

/* name: "ref", "cpu", "cuda", "cuda:1" ..., or "auto": a GPU if there is one that works,
 * otherwise the CPU.  threads 0: one per core. */
cgs_status cgs_device_open(cgs_device *d, const char *name, int threads);
/* what this build has, in words */
const char *cgs_device_names(void);
void cgs_device_close(cgs_device *d);
/* Turns the named variants (ops/cuda/variants.h) off and all others on; see cgs_backend.without.
 * cgs_device_open does so with what the environment has in CGS_VARIANTS_OFF. */
cgs_status cgs_device_without(cgs_device *d, const char *names);

const char *cgs_op_name(cgs_opcode op);

#endif /* CGS_OPS_OPS_H */
