/* cuda.h - what the files of the CUDA backend share.
 *
 * C files hold the backend's table and memory (backend.c), the choice between forms of an operation
 * (variants.c), matrix products by cuBLASLt (gemm.c), CUDA graphs (graph.c) and the copies of a
 * dataset's frames (data.c); .cu files hold kernels and the operations that launch them.
 *
 * Everything runs on one stream, so operations follow each other without any further
 * ordering and share one scratch buffer.  Sums have a fixed order: no atomics on floats, and
 * the split of every loop depends on shapes alone, so a run repeats bit for bit. */
#ifndef CGS_OPS_CUDA_CUDA_H
#define CGS_OPS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "ops/ops.h"

typedef struct cgs_cuda_blas cgs_cuda_blas;

/* to (cols) = or += the sums of parts (count, cols), rows `stride` floats apart */
typedef struct cgs_cuda_sum {
    float *to;
    const float *parts;
    unsigned count, stride, cols, blocks;
    bool add;
} cgs_cuda_sum;
#define CGS_CUDA_SUMS 96 /* at once; a kernel's arguments hold them */

/* d->impl */
typedef struct cgs_cuda {
    cudaStream_t stream;
    cgs_cuda_blas *blas;
    unsigned char *scratch; /* used inside one operation only */
    size_t scratch_bytes;
    uint64_t *step;             /* (1) on the device: the update that random draws are for */
    double *sums;               /* (CGS_CUDA_PARTS + 1) on the device, for sum_squares     */
    int max_shared;             /* bytes of shared memory that one block may have          */
    int capability;             /* compute capability: 90 for 9.0                          */
    unsigned off;               /* bit i: row i of variants.h is turned off               */
    bool capturing;             /* calls are recorded into a graph                         */
    cudaStream_t copies;        /* beside the computation                                  */
    cudaEvent_t arrived, taken; /* what was sent ahead is there; was copied on         */
    int64_t *which;             /* (which_count) on the device, for gather                 */
    size_t which_count;
    cudaEvent_t *marks; /* (mark_count) NULL where not used yet                    */
    int mark_count;
    unsigned scratch_moved; /* how often; graphs hold the address, and that of parts   */
    float *parts;           /* (parts_floats) partial sums of what `sum` lists             */
    size_t parts_floats, parts_used, parts_wanted;
    cgs_cuda_sum sum[CGS_CUDA_SUMS]; /* (sum_count) wait for the end of the pass */
    int sum_count;
    bool collects;     /* a pass runs, whose end adds them up */
    char failure[200]; /* first failure since the last sync                       */
} cgs_cuda;

#define CGS_CUDA_PARTS 1024

static inline cgs_cuda *cgs_cuda_of(const cgs_device *d) { return (cgs_cuda *)d->impl; }

/* Remembers a failure, if `error` is one, for the next sync. */
void cgs_cuda_note(cgs_cuda *c, cudaError_t error, const char *where);
void cgs_cuda_note_text(cgs_cuda *c, const char *text);

/* With `make CLOCKS=1` (timeline.cu): the time since the last stamp is that of `what`; after the
 * 58th rollout of a size the mean times of the last 25 are printed. */
#ifdef CGS_CLOCKS
void cgs_cuda_stamp(cgs_cuda *c, const char *what);
void cgs_cuda_show_stamps(cgs_cuda *c, int size);
#define STAMP(d, what) cgs_cuda_stamp(cgs_cuda_of(d), what)
#define SHOW_STAMPS(d, size) cgs_cuda_show_stamps(cgs_cuda_of(d), size)
#else
#define STAMP(d, what) (void)0
#define SHOW_STAMPS(d, size) (void)0
#endif

/* For prepare: makes the scratch buffer at least this large. */
cgs_status cgs_cuda_need(cgs_device *d, size_t bytes);

/* Makes *step on the device the record's; kernels that draw random numbers read it there, so
 * that a graph draws new ones in every update. */
const uint64_t *cgs_cuda_step(cgs_device *d, const cgs_record *r);
void cgs_cuda_set_step(cgs_cuda *c, uint64_t step); /* optim.cu */

/* ---- products (gemm.c, linear/linear.cu) ----------------------------------------------- */

/* C (M,N) = A (M,K) B (K,N), row-major; a transposed factor is stored the other way round. */
typedef struct cgs_cuda_shape {
    size_t M, N, K;
    cgs_dtype in, out; /* of A and B; of C */
    bool a_transposed, b_transposed;
    bool bias;            /* + bias[j] */
    bool accumulate;      /* C += instead of C = */
    bool batch_invariant; /* the algorithm does not depend on M */
    size_t aligned;       /* every pointer is a multiple of this many bytes */
} cgs_cuda_shape;

typedef struct cgs_cuda_product cgs_cuda_product;

cgs_status cgs_cuda_blas_open(cgs_cuda_blas **out);
void cgs_cuda_blas_close(cgs_cuda_blas *b);

/* The product of a shape, with the algorithm that cuBLASLt recommends; NULL if it has none.
 * bf16_bias: whether a rounded bias will be available. */
cgs_status cgs_cuda_product_find(cgs_device *d, const cgs_cuda_shape *s, bool bf16_bias,
                                 cgs_cuda_product **out);
void cgs_cuda_product_run(cgs_device *d, cgs_cuda_product *p, void *C, const void *A, const void *B,
                          const float *bias, const uint16_t *bias16);

/* prepare() leaves this in the record of a linear layer; a missing product is done by own code */
typedef struct cgs_cuda_linear {
    cgs_cuda_product *forward, *dx, *dW;
    bool round_dy; /* dy is f32 and enters the products rounded */
} cgs_cuda_linear;

/* ... and this in that of SIGReg */
typedef struct cgs_cuda_sigreg {
    cgs_cuda_product *forward, *dz;
} cgs_cuda_sigreg;

/* Own product, for what cuBLASLt does not do, or slowly: sums of few (CGS_CUDA_THIN) terms.
 * Element (i,j) of A is at a_row*i + a_col*j. */
#define CGS_CUDA_THIN 32
typedef struct cgs_cuda_factor {
    const void *p;
    cgs_dtype type;
    size_t row, col;
} cgs_cuda_factor;
void cgs_cuda_own_product(cgs_device *d, void *C, cgs_dtype type, cgs_cuda_factor A,
                          cgs_cuda_factor B, size_t M, size_t N, size_t K, const float *bias,
                          bool accumulate);

/* ---- data (data.c, rows.cu) ----------------------------------------------------------- */

cgs_status cgs_cuda_memory(cgs_device *d, size_t *unused, size_t *all);
cgs_status cgs_cuda_gather(cgs_device *d, void *to, const void *from, const int64_t *which,
                           size_t count, size_t bytes);
void cgs_cuda_gather_blocks(cgs_device *d, void *to, const void *from, const int64_t *which,
                            size_t count, size_t bytes);
bool cgs_cuda_pin(cgs_device *d, void *p, size_t bytes);
void cgs_cuda_unpin(cgs_device *d, void *p);
cgs_status cgs_cuda_send_ahead(cgs_device *d, void *to, const void *from, size_t bytes);
cgs_status cgs_cuda_take_sent(cgs_device *d, void *to, const void *from, size_t bytes);
void cgs_cuda_data_close(cgs_cuda *c);

/* The failure of a call as a sentence. */
cgs_status cgs_cuda_failed(cudaError_t error, const char *what);

/* ---- sums over rows (sums.cu) -------------------------------------------------------- */

/* Scratch bytes of the following. */
size_t cgs_cuda_column_scratch(size_t rows, size_t cols);
/* to (cols) = or += the sums of x (rows, cols); partial sums go to scratch. */
void cgs_cuda_column_sums(cgs_device *d, float *to, bool accumulate, const void *x, cgs_dtype type,
                          size_t rows, size_t cols, float *scratch);

/* Gradients of parameters that are such sums.  A record takes memory for partial sums (which
 * prepare has asked for), fills it, and says that input k gets their sums; the end of a pass adds
 * up all of them in one launch (settle). */
cgs_status cgs_cuda_need_parts(cgs_device *d, size_t floats);
float *cgs_cuda_parts(cgs_device *d, size_t floats);
void cgs_cuda_give_parts(cgs_device *d, const cgs_record *r, int k, const float *parts,
                         size_t count, size_t stride, size_t cols);
void cgs_cuda_settle_parts(cgs_device *d);
/* All of it for the columns of x (rows, cols), and the floats that it takes. */
size_t cgs_cuda_column_parts(size_t rows, size_t cols);
void cgs_cuda_give_column_sums(cgs_device *d, const cgs_record *r, int k, const void *x,
                               cgs_dtype type, size_t rows, size_t cols);

/* ---- operations ---------------------------------------------------------------------- */

#define X(name, reads_in, reads_out)                                                               \
    void cgs_cuda_##name##_forward(cgs_device *d, const cgs_record *r);                            \
    void cgs_cuda_##name##_backward(cgs_device *d, const cgs_record *r);
CGS_OPS(X)
#undef X

static inline bool cgs_cuda_is(const cgs_record *r, cgs_opcode op) { return r && r->op == op; }

/* Whether the norm after an addition gives what was added its gradient. */
static inline bool cgs_cuda_norm_gives_added(const cgs_record *add) {
    return cgs_cuda_is(add->next, CGS_OP_layernorm) && add->next->out->grad &&
           add->in[1]->wants_grad && add->in[1]->grad && !add->accumulate[1];
}
/* Whether attention gives the bias of the linear layer before it its gradient. */
static inline bool cgs_cuda_attention_gives_bias(const cgs_record *linear) {
    return cgs_cuda_is(linear->next, CGS_OP_attention) && linear->next->out->grad;
}

/* What generic forms need before they run: a sentence if they cannot. */
cgs_status cgs_cuda_attention_prepare(cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_attend_first_prepare(const cgs_record *r);
cgs_status cgs_cuda_layernorm_prepare(cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_cgs_prepare(cgs_device *d, const cgs_record *r);

/* Backward of a linear layer without the gradient of its input. */
void cgs_cuda_linear_backward_parameters(cgs_device *d, const cgs_record *r);
/* rowsum(P dP) of all heads (B,heads,T), in the device's scratch: <dout, out> row by row */
float *cgs_cuda_attention_row_dots(cgs_device *d, const cgs_record *r);

/* ---- variants (variants.h, variants.c) --------------------------------------------------- */

typedef enum cgs_cuda_direction { CGS_CUDA_FORWARD, CGS_CUDA_BACKWARD } cgs_cuda_direction;

/* Prepares the variants that run for a record.  *generic: in a direction its generic form does. */
cgs_status cgs_cuda_prepare_variants(cgs_device *d, const cgs_record *r, bool *generic);
/* Whether the variant of a neighbour does what this record would. */
bool cgs_cuda_done_by_neighbour(const cgs_device *d, const cgs_record *r,
                                cgs_cuda_direction direction);
/* Whether the table has this row and it is not turned off. */
bool cgs_cuda_variant_on(const cgs_device *d, const char *name);

/* For the backend's table: joins, without, and what runs every operation. */
bool cgs_cuda_joins(cgs_device *d, const cgs_record *first, const cgs_record *second,
                    bool only_reader);
cgs_status cgs_cuda_without(cgs_device *d, const char *words);
void cgs_cuda_forward(cgs_device *d, const cgs_record *r);
void cgs_cuda_backward(cgs_device *d, const cgs_record *r);

/* ---- the optimiser, and gradients ----------------------------------------------------------- */

double cgs_cuda_sum_squares(cgs_device *d, const float *x, size_t n);
void cgs_cuda_adamw(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                    uint16_t *bf16, size_t n);
void cgs_cuda_round_bf16(cgs_device *d, uint16_t *to, const float *from, size_t n);
void cgs_cuda_muon(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count, float *p,
                   const float *g, float *m, uint16_t *bf16, float *work);

/* Zeroes the gradient of input k unless it is to be added to. */
void cgs_cuda_clear_grad(cgs_device *d, const cgs_record *r, int k);

#endif /* CGS_OPS_CUDA_CUDA_H */
