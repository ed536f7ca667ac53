/* cpu.h - shared by the files of the fast CPU backend.
 *
 * Everything under simd/ is compiled three times, for plain x86-64 ("base"), AVX2 with
 * FMA ("v3") and AVX-512 ("v4"); for other processors once, as "base" (aarch64: with NEON).  Each
 * copy ends in one table of functions, and open() picks the best table that this process may use
 * (core/cpu.h).  The AVX-512 copy
 * multiplies bf16 pairs, with AMX's tiles where they are.  gemm.c says which products go to it, to
 * oneDNN, and to the table's own.
 *
 * Threads: an operation is run by all members of a team at once (core/team.h).  Loops are cut into
 * pieces that depend on the shapes alone, and partial sums are added in a fixed order, so
 * results depend neither on which thread did what nor on how many there are. */
#ifndef CGS_OPS_CPU_CPU_H
#define CGS_OPS_CPU_CPU_H

#include "ops/ops.h"

/* Sums over rows consist of at most this many partial sums over equal runs of rows. */
#define CGS_CPU_ROW_BLOCKS 64

/* C (M,N) = A (M,K) B (K,N), row-major; a transposed factor is stored column-major.  in: element
 * type of A and B. */
typedef struct cgs_product {
    size_t M, N, K;
    cgs_dtype in, out;
    bool a_transposed, b_transposed;
    bool bias;            /* + bias[j], f32          */
    bool accumulate;      /* C += instead of C =     */
    bool joint;           /* one of a linear layer's gradients, made together in one pass */
    bool batch_invariant; /* a row of C has the same bits for every M */
    bool in_chunks;       /* some rows at a time, where that is possible with the same bits */
    /* of each run of `tokens` rows the first `unread` may be left out in the first columns */
    size_t tokens, unread, unread_columns;
} cgs_product;

/* The functions of one instruction set. */
typedef struct cgs_cpu_table {
    cgs_op_fn forward[CGS_OP_COUNT], backward[CGS_OP_COUNT];
    void (*linear_tangent)(cgs_device *d, const cgs_record *r, size_t row, size_t first,
                           size_t count); /* of the directions, at most 16 */
    void (*sum_squares)(const float *x, size_t n, double part[CGS_CPU_ROW_BLOCKS]);
    void (*adamw)(const cgs_adamw *a, float *p, const float *g, float *m, float *v, uint16_t *bf16,
                  size_t n);
    void (*round_bf16)(uint16_t *to, const float *from, size_t n);
    void (*muon)(const cgs_muon *a, const cgs_matrix *list, int count, float *p, const float *g,
                 float *m, uint16_t *bf16, float *work);
    void (*product)(cgs_device *d, const cgs_product *p, void *C, const void *A, const void *B,
                    const float *bias);
    size_t (*product_scratch)(void); /* bytes per thread */
    /* C (M,N) = A (M,K) B (K,N), B in bf16; simd/mixed_product.c */
    void (*mixed_product)(float *C, const float *A, const uint16_t *B, size_t M, size_t N,
                          size_t K);
    /* bf16 products by tiles (simd/product_tiles.c); words: scratch of a product, the packed right
     * factor first */
    size_t (*tiles_words)(const cgs_product *p);
    void (*tiles_pack)(cgs_device *d, const cgs_product *p, uint32_t *to, const void *B);
    void (*tiles_product)(cgs_device *d, const cgs_product *p, void *C, const void *A,
                          const uint32_t *packed, const float *bias);
    size_t (*tiles_scratch)(const cgs_product *p); /* bytes per thread */
    void (*tiles_sum)(cgs_device *d, const cgs_product *p, float *C, const void *A, const void *B,
                      uint32_t *woven);
    /* scratch of a linear layer's gradients in one pass (simd/linear_pairs.c) */
    size_t (*linear_pairs_words)(size_t pieces, size_t k, size_t m);
    size_t (*linear_pairs_thread_words)(size_t run, size_t k, size_t m);
    size_t (*attention_scratch)(const cgs_record *r);            /* bytes per thread */
    void (*math)(int which, float *y, const float *x, size_t n); /* for tests */
} cgs_cpu_table;

extern const cgs_cpu_table cgs_cpu_table_base;
#if defined __x86_64__
extern const cgs_cpu_table cgs_cpu_table_v3, cgs_cpu_table_v4;
#endif

/* how bf16 pairs are multiplied (simd/pairs.h); PLAIN emulates AMX in tests */
typedef enum cgs_tiles { CGS_TILES_NONE, CGS_TILES_AMX, CGS_TILES_PLAIN } cgs_tiles;

enum { CGS_MATH_EXP, CGS_MATH_LOG, CGS_MATH_NORMAL_CDF, CGS_MATH_SIN, CGS_MATH_COS };

typedef struct cgs_gemm_cache cgs_gemm_cache;
typedef struct cgs_gemm cgs_gemm;
typedef struct cgs_prepacked cgs_prepacked;

/* d->impl */
typedef struct cgs_cpu {
    const char *isa;
    const cgs_cpu_table *table;
    cgs_tiles tiles;
    bool pairs; /* there are vectors of bf16 pair products, too */
    cgs_gemm_cache *gemms;
    unsigned char *thread; /* (threads, thread_bytes): each thread's own */
    size_t thread_bytes;
    unsigned char *shared; /* shared by all threads */
    size_t shared_bytes;
} cgs_cpu;

static inline cgs_cpu *cgs_cpu_of(const cgs_device *d) { return d->impl; }
static inline void *cgs_cpu_thread(const cgs_device *d, int thread) {
    cgs_cpu *c = cgs_cpu_of(d);
    return c->thread + (size_t)thread * c->thread_bytes;
}

/* Restricts a device to an instruction set: "base", "v3", "v4", "amx" or "v4 tiles" (AMX emulated
 * in C); for tests, before any record is prepared.  CGS_EARG when there is no such set, CGS_EDEVICE
 * when the processor lacks it.  products: whether oneDNN may be used. */
cgs_status cgs_cpu_limit_isa(cgs_device *d, const char *isa, bool products);
const char *cgs_cpu_isa(const cgs_device *d);

/* prepare() stores this in the record of a linear layer.  Backward works through runs of rows, so
 * that the three readers of dy find it in cache: back[0] is for whole runs, back[1] for a shorter
 * last one. */
#define CGS_CPU_LINEAR_ROWS 2112
/* All gradients in one pass: pieces of the rows, each made by one thread in runs.  Runs are a
 * multiple of so many rows, y's columns one of so many. */
#define CGS_LINEAR_PAIRS_ROWS 12
#define CGS_LINEAR_PAIRS_COLS 96
typedef struct cgs_cpu_pieces {
    size_t pieces, rows, run; /* how many; rows in each, and in a run of it */
} cgs_cpu_pieces;
typedef struct cgs_cpu_linear {
    cgs_gemm *forward;
    struct {
        cgs_gemm *dx[2], *dW[2]; /* [accumulate] */
    } back[2];
    size_t run;                      /* rows in a whole run */
    cgs_cpu_pieces pieces;           /* where there are any, back[] is not used */
    bool mixed_dx;                   /* dx by the table's mixed_product */
    cgs_prepacked *W_forward, *W_dx; /* where weights are constants, or NULL */
} cgs_cpu_linear;

/* ... and this in that of SIGReg */
typedef struct cgs_cpu_sigreg {
    cgs_gemm *forward, *dz;
} cgs_cpu_sigreg;

void cgs_cpu_tangent(cgs_device *d, const cgs_record *r);
void cgs_cpu_forward_segment(cgs_device *d, const cgs_segment *s, double *seconds);

#endif /* CGS_OPS_CPU_CPU_H */
