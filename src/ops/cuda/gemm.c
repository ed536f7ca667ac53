/* gemm.c - matrix products by cuBLASLt.
 *
 * The library is loaded when a GPU is opened, not linked: it weighs half a gigabyte, and a
 * program without it still runs on the CPU.  Each shape gets the first algorithm that the
 * library's heuristic names: two runs give the same bits, and nothing is measured at start. */
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda.h"

/* rows that the algorithm of a product is asked for when it must be the same for any number */
enum { ROWS = 512 };

/* bytes that split products may use for their partial sums */
#define WORKSPACE ((size_t)64 << 20)

#define FUNCTIONS(X)                                                                               \
    X(Create)                                                                                      \
    X(Destroy)                                                                                     \
    X(MatmulDescCreate)                                                                            \
    X(MatmulDescDestroy)                                                                           \
    X(MatmulDescSetAttribute)                                                                      \
    X(MatrixLayoutCreate)                                                                          \
    X(MatrixLayoutDestroy)                                                                         \
    X(MatmulPreferenceCreate)                                                                      \
    X(MatmulPreferenceDestroy)                                                                     \
    X(MatmulPreferenceSetAttribute)                                                                \
    X(MatmulAlgoGetHeuristic)                                                                      \
    X(MatmulAlgoCheck)                                                                             \
    X(Matmul)

struct cgs_cuda_product {
    cgs_cuda_shape shape;
    bool bf16_bias; /* may use one */
    bool possible;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t A, B, C; /* in the library's order, see below */
    cublasLtMatmulAlgo_t algorithm;
    cudaDataType_t bias; /* type it takes */
    cgs_cuda_product *next;
};

struct cgs_cuda_blas {
    void *library;
    cublasLtHandle_t handle;
    void *workspace; /* (WORKSPACE) bytes on the device */
    cgs_cuda_product *products;
#define X(name) __typeof__(cublasLt##name) *name;
    FUNCTIONS(X)
#undef X
};

static cudaDataType_t type_of(cgs_dtype t) { return t == CGS_BF16 ? CUDA_R_16BF : CUDA_R_32F; }

/* ---- the library --------------------------------------------------------------------------- */

static void *find_library(char *name, size_t size) {
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/targets/x86_64-linux/lib/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(name, size, "%slibcublasLt.so.%d", folders[i], CUBLAS_VER_MAJOR);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    snprintf(name, size, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    return NULL;
}

cgs_status cgs_cuda_blas_open(cgs_cuda_blas **out) {
    char name[96];
    cgs_cuda_blas *b = *out = calloc(1, sizeof *b);
    if (!b) return cgs_fail(CGS_ENOMEM, "no memory for matrix products");
    b->library = find_library(name, sizeof name);
    if (!b->library)
        return cgs_fail(CGS_EDEVICE, "cuda: %s is not installed (it belongs to the CUDA toolkit)",
                        name);
#define X(function)                                                                                \
    {                                                                                              \
        void *symbol = dlsym(b->library, "cublasLt" #function);                                    \
        if (!symbol) return cgs_fail(CGS_EDEVICE, "cuda: %s has no cublasLt" #function, name);     \
        memcpy(&b->function, &symbol, sizeof symbol);                                              \
    }
    FUNCTIONS(X)
#undef X
    cublasStatus_t s = b->Create(&b->handle);
    if (s != CUBLAS_STATUS_SUCCESS)
        return cgs_fail(CGS_EDEVICE, "cuda: cuBLASLt does not start, its status is %d", (int)s);
    if (cudaMalloc(&b->workspace, WORKSPACE) != cudaSuccess) {
        cudaGetLastError();
        return cgs_fail(CGS_ENOMEM, "cuda: no GPU memory for %zu MiB of workspace",
                        WORKSPACE >> 20);
    }
    return CGS_OK;
}

static void drop_layouts(cgs_cuda_blas *b, cgs_cuda_product *p) {
    if (p->A) b->MatrixLayoutDestroy(p->A);
    if (p->B) b->MatrixLayoutDestroy(p->B);
    if (p->C) b->MatrixLayoutDestroy(p->C);
}

static void drop(cgs_cuda_blas *b, cgs_cuda_product *p) {
    if (p->desc) b->MatmulDescDestroy(p->desc);
    drop_layouts(b, p);
    free(p);
}

void cgs_cuda_blas_close(cgs_cuda_blas *b) {
    if (!b) return;
    while (b->products) {
        cgs_cuda_product *p = b->products;
        b->products = p->next;
        drop(b, p);
    }
    if (b->workspace) cudaFree(b->workspace);
    if (b->handle) b->Destroy(b->handle);
    /* the library stays loaded: it has threads and exit handlers of its own */
    free(b);
}

/* ---- finding a product --------------------------------------------------------------------- */

/* The library's matrices are column-major: a row-major C = A B is its C^T = B^T A^T, so our B
 * comes first, and a matrix that we store plainly is one that it sees transposed. */
static bool describe_layouts(cgs_cuda_blas *b, cgs_cuda_product *p) {
    const cgs_cuda_shape *s = &p->shape;
    size_t Br = s->b_transposed ? s->K : s->N, Bc = s->b_transposed ? s->N : s->K;
    size_t Ar = s->a_transposed ? s->M : s->K, Ac = s->a_transposed ? s->K : s->M;
    cudaDataType_t in = type_of(s->in), out = type_of(s->out);
    return b->MatrixLayoutCreate(&p->A, in, Br, Bc, (int64_t)Br) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->B, in, Ar, Ac, (int64_t)Ar) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->C, out, s->N, s->M, (int64_t)s->N) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(cgs_cuda_blas *b, cgs_cuda_product *p) {
    cublasOperation_t first = p->shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = p->shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return b->MatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) ==
               CUBLAS_STATUS_SUCCESS &&
           b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                     sizeof second) == CUBLAS_STATUS_SUCCESS &&
           describe_layouts(b, p);
}

/* The first proposal for ROWS rows, if it can do this product, too.  Tiles, stages and splits of
 * the sum are then the same for every M, and with them the order in which a row's sums are made.  A
 * split needs memory for its parts; very many rows, for which there is too little, get no split. */
static cublasStatus_t ask_for_any_rows(cgs_cuda_blas *b, cgs_cuda_product *p,
                                       cublasLtMatmulPreference_t preference,
                                       cublasLtMatmulHeuristicResult_t *found, int *count) {
    const uint32_t splits[] = {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                               CUBLASLT_REDUCTION_SCHEME_NONE};
    cgs_cuda_product other = {.shape = p->shape};
    cublasStatus_t rc = CUBLAS_STATUS_ALLOC_FAILED;
    other.shape.M = ROWS;
    bool described = describe_layouts(b, &other);
    for (int i = 0; described && i < 2; i++) {
        rc = b->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &splits[i], sizeof splits[i]);
        if (rc == CUBLAS_STATUS_SUCCESS)
            rc = b->MatmulAlgoGetHeuristic(b->handle, p->desc, other.A, other.B, other.C, other.C,
                                           preference, 1, found, count);
        if (rc != CUBLAS_STATUS_SUCCESS || *count < 1) continue;
        cublasLtMatmulAlgo_t algorithm = found->algo;
        rc = b->MatmulAlgoCheck(b->handle, p->desc, p->A, p->B, p->C, p->C, &algorithm, found);
        if (rc == CUBLAS_STATUS_SUCCESS && found->workspaceSize <= WORKSPACE) break;
    }
    drop_layouts(b, &other);
    return rc;
}

/* Asks for an algorithm with a bias of this type. */
static bool ask(cgs_cuda_blas *b, cgs_cuda_product *p, cudaDataType_t bias) {
    const cgs_cuda_shape *s = &p->shape;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    p->bias = bias;
    if (s->bias) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        const void *somewhere = b->workspace;
        b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                  sizeof epilogue);
        b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias);
        b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &somewhere,
                                  sizeof somewhere);
    }
    /* only splits whose partial sums are added in a fixed order */
    uint32_t aligned = (uint32_t)s->aligned, reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    size_t workspace = WORKSPACE;
    if (b->MatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t bytes;
    } preferences[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned, sizeof aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned, sizeof aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned, sizeof aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned, sizeof aligned},
    };
    cublasStatus_t rc = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0;
         i < sizeof preferences / sizeof preferences[0] && rc == CUBLAS_STATUS_SUCCESS; i++)
        rc = b->MatmulPreferenceSetAttribute(preference, preferences[i].what, preferences[i].value,
                                             preferences[i].bytes);
    if (rc == CUBLAS_STATUS_SUCCESS) {
        if (s->batch_invariant)
            rc = ask_for_any_rows(b, p, preference, &found, &count);
        else
            rc = b->MatmulAlgoGetHeuristic(b->handle, p->desc, p->A, p->B, p->C, p->C, preference,
                                           1, &found, &count);
    }
    b->MatmulPreferenceDestroy(preference);
    if (rc != CUBLAS_STATUS_SUCCESS || count < 1 || found.state != CUBLAS_STATUS_SUCCESS ||
        found.workspaceSize > WORKSPACE)
        return false;
    p->algorithm = found.algo;
    return true;
}

static bool same(const cgs_cuda_shape *a, const cgs_cuda_shape *b) {
    return a->M == b->M && a->N == b->N && a->K == b->K && a->in == b->in && a->out == b->out &&
           a->a_transposed == b->a_transposed && a->b_transposed == b->b_transposed &&
           a->bias == b->bias && a->accumulate == b->accumulate &&
           a->batch_invariant == b->batch_invariant && a->aligned == b->aligned;
}

cgs_status cgs_cuda_product_find(cgs_device *d, const cgs_cuda_shape *s, bool bf16_bias,
                                 cgs_cuda_product **out) {
    cgs_cuda_blas *b = cgs_cuda_of(d)->blas;
    *out = NULL;
    for (cgs_cuda_product *p = b->products; p; p = p->next)
        if (same(&p->shape, s) && p->bf16_bias == bf16_bias) {
            *out = p->possible ? p : NULL;
            return CGS_OK;
        }
    cgs_cuda_product *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "no memory for a product");
    p->shape = *s;
    p->bf16_bias = bf16_bias;
    p->possible = describe(b, p) &&
                  (ask(b, p, CUDA_R_32F) || (s->bias && bf16_bias && ask(b, p, CUDA_R_16BF)));
    p->next = b->products;
    b->products = p;
    *out = p->possible ? p : NULL;
    return CGS_OK;
}

void cgs_cuda_product_run(cgs_device *d, cgs_cuda_product *p, void *C, const void *A, const void *B,
                          const float *bias, const uint16_t *bias16) {
    cgs_cuda *c = cgs_cuda_of(d);
    cgs_cuda_blas *b = c->blas;
    if (p->shape.bias) {
        const void *used = p->bias == CUDA_R_32F ? (const void *)bias : (const void *)bias16;
        b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &used, sizeof used);
    }
    const float one = 1, beta = p->shape.accumulate ? 1 : 0;
    cublasStatus_t s = b->Matmul(b->handle, p->desc, &one, B, p->A, A, p->B, &beta, C, p->C, C,
                                 p->C, &p->algorithm, b->workspace, WORKSPACE, c->stream);
    if (s != CUBLAS_STATUS_SUCCESS) {
        char text[160];
        snprintf(text, sizeof text, "a matrix product of %zu x %zu x %zu ended with status %d",
                 p->shape.M, p->shape.N, p->shape.K, (int)s);
        cgs_cuda_note_text(c, text);
    }
    STAMP(d, "matrix product");
}
