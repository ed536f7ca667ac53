/* cuda.h - what the files of the CUDA backend share.
 *
 * C files hold the table, memory, graphs (backend.c) and matrix products by cuBLASLt
 * (product.c); .cu files hold kernels and the operations that launch them.
 *
 * Everything runs on one stream, so operations follow each other without any further
 * ordering and share one scratch buffer.  Sums have a fixed order: no atomics on floats, and
 * the split of every loop depends on shapes alone, so a run repeats bit for bit. */
#ifndef CGS_OPS_CUDA_CUDA_H
#define CGS_OPS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "ops/ops.h"

typedef struct cgs_cuda_blas cgs_cuda_blas;

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
    int processors;             /* multiprocessors                                         */
    unsigned off;               /* CGS_CUDA_* below that the environment turned off        */
    bool capturing;             /* calls are recorded into a graph                         */
    cudaStream_t copies;        /* beside the computation                                  */
    cudaEvent_t arrived, taken; /* what was sent ahead is there; was copied on         */
    int64_t *which;             /* (which_count) on the device, for gather                 */
    size_t which_count;
    cudaEvent_t *marks; /* (mark_count) NULL where not used yet                    */
    int mark_count;
    unsigned scratch_moved; /* how often; graphs hold the address                      */
    char failure[200];      /* first failure since the last sync                       */
} cgs_cuda;

#define CGS_CUDA_PARTS 1024

/* Fast ways of doing something that has a plain way too.  The words of the variable
 * CGS_CUDA_OFF turn them off, to find out what each is worth or which one is broken.  Those by
 * warpgroups need compute capability 9.0. */
enum {
    CGS_CUDA_NORM = 1,     /* "norm": addition and the following norm in one kernel           */
    CGS_CUDA_GRAPH = 2,    /* "graph": a pass of a tape is one launch                         */
    CGS_CUDA_CACHE = 4,    /* "cache": the frames of a dataset stay in the GPU's memory       */
    CGS_CUDA_SUMS = 16,    /* "sums": the gradient of qkv's bias inside attention's kernels   */
    CGS_CUDA_STREAM = 32,  /* "stream": long or dropping attention in passing tiles          */
    CGS_CUDA_NARROW = 64,  /* "narrow": attention of narrow tokens without making qkv        */
    CGS_CUDA_MLP = 128,    /* "mlp": both maps of a narrow MLP and GELU in one kernel         */
    CGS_CUDA_HALVES = 256, /* "halves": maps of 588 columns as two of 592                   */
    CGS_CUDA_WGMMA_FORWARD = 512,   /* "wgmma-forward": attention by warpgroups             */
    CGS_CUDA_WGMMA_BACKWARD = 1024, /* "wgmma-backward": its gradient                       */
    CGS_CUDA_WGMMA_GELU = 2048,     /* "wgmma-gelu": linear map and GELU by warpgroups      */
    CGS_CUDA_WGMMA_SLOPE = 4096,    /* "wgmma-slope": GELU's gradient and the map behind it */
    CGS_CUDA_AHEAD = 8192 /* "ahead": attention's gradient fetches a later head's first rows */
};

static inline cgs_cuda *cgs_cuda_of(const cgs_device *d) { return (cgs_cuda *)d->impl; }

/* Remembers a failure, if `error` is one, for the next sync. */
void cgs_cuda_note(cgs_cuda *c, cudaError_t error, const char *where);
void cgs_cuda_note_text(cgs_cuda *c, const char *text);

/* With `make CLOCKS=1` (timeline.cu): the time since the last stamp is that of `what`; behind the
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

/* ---- products (product.c, linear.cu) ----------------------------------------------- */

/* C (M,N) = A (M,K) B (K,N), row-major; a transposed factor is stored the other way round. */
typedef struct cgs_cuda_shape {
    size_t M, N, K;
    cgs_dtype in, out; /* of A and B; of C */
    bool a_transposed, b_transposed;
    bool bias;       /* + bias[j] */
    bool accumulate; /* C += instead of C = */
    bool rows_alone; /* the algorithm does not depend on M */
    size_t aligned;  /* every pointer is a multiple of this many bytes */
    /* elements from a stored row of A, B or C to the next; 0: as many as it has */
    size_t a_row, b_row, c_row;
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

/* prepare() leaves this in the record of a linear map; a missing product is done by own code */
typedef struct cgs_cuda_linear {
    cgs_cuda_product *forward, *dx, *dW;
    cgs_cuda_product *half, *half_dW; /* instead: every second row, see linear.cu */
    bool round_dy;                    /* dy is f32 and enters the products rounded */
} cgs_cuda_linear;

/* Whether a map from n rows of k to m bf16 columns is made as two products of half of the rows. */
bool cgs_cuda_halves(const cgs_device *d, size_t n, size_t k, size_t m);

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
/* The second half of it: partial sums, `stride` floats apart. */
void cgs_cuda_add_parts(cgs_device *d, float *to, bool accumulate, const float *parts, size_t count,
                        size_t stride, size_t cols);

/* ---- operations ---------------------------------------------------------------------- */

#define X(name, reads_in, reads_out)                                                               \
    void cgs_cuda_##name##_forward(cgs_device *d, const cgs_record *r);                            \
    void cgs_cuda_##name##_backward(cgs_device *d, const cgs_record *r);
CGS_OPS(X)
#undef X

/* Pairs of records that run as one, and what they do.  Of an addition and a norm, the norm's
 * functions do the work; of a linear map and GELU, the map's. */
bool cgs_cuda_add_joins_norm(const cgs_record *add, const cgs_record *norm);
bool cgs_cuda_linear_joins_gelu(const cgs_device *d, const cgs_record *map, const cgs_record *act);
bool cgs_cuda_gelu_joins_linear(const cgs_device *d, const cgs_record *act, const cgs_record *map);
cgs_status cgs_cuda_linear_gelu_prepare(cgs_device *d, const cgs_record *map);
void cgs_cuda_linear_gelu_forward(cgs_device *d, const cgs_record *map);
void cgs_cuda_linear_gelu_backward(cgs_device *d, const cgs_record *map);

static inline bool cgs_cuda_is(const cgs_record *r, cgs_opcode op) { return r && r->op == op; }

/* Whether the norm behind an addition gives what was added its gradient. */
static inline bool cgs_cuda_norm_gives_added(const cgs_record *add) {
    return cgs_cuda_is(add->next, CGS_OP_layernorm) && add->next->out->grad &&
           add->in[1]->wants_grad && add->in[1]->grad && !add->accumulate[1];
}
/* Whether attention gives the bias of the map before it its gradient. */
static inline bool cgs_cuda_attention_gives_bias(const cgs_record *map) {
    return cgs_cuda_is(map->next, CGS_OP_attention) && map->next->out->grad;
}
/* Whether the map behind GELU gives GELU's input its gradient. */
static inline bool cgs_cuda_map_gives_gelu(const cgs_record *act) {
    return cgs_cuda_is(act->next, CGS_OP_linear) && act->next->out->grad &&
           act->in[0]->wants_grad && act->in[0]->grad;
}

/* What attention needs before it runs: a sentence if it cannot. */
cgs_status cgs_cuda_attention_prepare(cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_attend_first_prepare(const cgs_record *r);
cgs_status cgs_cuda_layernorm_prepare(cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_cgs_prepare(cgs_device *d, const cgs_record *r);
/* attention on tensor cores: 64 wide bf16 heads without dropout */
bool cgs_cuda_attention_tiles(const cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_attention_tiles_prepare(cgs_device *d, const cgs_record *r);
void cgs_cuda_attention_tiles_forward(cgs_device *d, const cgs_record *r);
void cgs_cuda_attention_tiles_backward(cgs_device *d, const cgs_record *r);
/* rowsum(P dP) of all heads (B,heads,T), in the device's scratch */
float *cgs_cuda_attention_along(cgs_device *d, const cgs_record *r);
/* ... and by warpgroups: about 257 tokens, no mask */
bool cgs_cuda_attention_groups(const cgs_device *d, const cgs_record *r, unsigned way);
cgs_status cgs_cuda_attention_groups_prepare(void);
void cgs_cuda_attention_groups_forward(cgs_device *d, const cgs_record *r);
cgs_status cgs_cuda_attention_groups_back_prepare(void);
void cgs_cuda_attention_groups_backward(cgs_device *d, const cgs_record *r);

/* ... of any length, with dropout: in tiles that pass by.  parts: floats of scratch for sums */
bool cgs_cuda_attention_stream(const cgs_device *d, const cgs_record *r);
size_t cgs_cuda_attention_stream_parts(const cgs_record *r);
void cgs_cuda_attention_stream_forward(cgs_device *d, const cgs_record *r);
void cgs_cuda_attention_stream_backward(cgs_device *d, const cgs_record *r);

/* Forms for tokens of up to 32 numbers, without gradients: attention from the tokens themselves,
 * with the map before it; and an MLP as one kernel, run by its activation `act`. */
bool cgs_cuda_attention_narrow(const cgs_device *d, const cgs_record *map, const cgs_record *r);
cgs_status cgs_cuda_attention_narrow_prepare(cgs_device *d, const cgs_record *r);
void cgs_cuda_attention_narrow_forward(cgs_device *d, const cgs_record *r);
bool cgs_cuda_mlp_begins(const cgs_device *d, const cgs_record *map, const cgs_record *act);
bool cgs_cuda_mlp_ends(const cgs_record *act, const cgs_record *map);
bool cgs_cuda_mlp(const cgs_device *d, const cgs_record *act);
void cgs_cuda_mlp_forward(cgs_device *d, const cgs_record *act);

double cgs_cuda_sum_squares(cgs_device *d, const float *x, size_t n);
void cgs_cuda_adamw(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                    uint16_t *bf16, size_t n);
void cgs_cuda_round_bf16(cgs_device *d, uint16_t *to, const float *from, size_t n);

/* Whether input k exists and is to get a gradient. */
static inline bool cgs_cuda_wants(const cgs_record *r, int k) {
    return r->in[k] && r->in[k]->wants_grad && r->in[k]->grad;
}
/* Zeroes the gradient of input k unless it is to be added to. */
void cgs_cuda_clear_grad(cgs_device *d, const cgs_record *r, int k);

#endif /* CGS_OPS_CUDA_CUDA_H */
