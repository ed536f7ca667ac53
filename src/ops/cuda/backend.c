/* backend.c - the CUDA backend: its table, memory, and what records need beforehand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/graph.h"

/* ---- failures ----------------------------------------------------------------------------- */

void cgs_cuda_note_text(cgs_cuda *c, const char *text) {
    if (!c->failure[0]) snprintf(c->failure, sizeof c->failure, "%s", text);
}

void cgs_cuda_note(cgs_cuda *c, cudaError_t error, const char *where) {
    char text[200];
    if (error == cudaSuccess) return;
    snprintf(text, sizeof text, "%s: %s", where, cudaGetErrorString(error));
    cgs_cuda_note_text(c, text);
}

cgs_status cgs_cuda_failed(cudaError_t error, const char *what) {
    cudaGetLastError();
    return cgs_fail(CGS_EDEVICE, "cuda: %s: %s", what, cudaGetErrorString(error));
}

static cgs_status sync_cuda(cgs_device *d) {
    cgs_cuda *c = cgs_cuda_of(d);
    cgs_cuda_note(c, cudaStreamSynchronize(c->stream), "the GPU failed");
    if (!c->failure[0]) return CGS_OK;
    cgs_status rc = cgs_fail(CGS_EDEVICE, "cuda: %s", c->failure);
    c->failure[0] = 0;
    return rc;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* finds the GPU and says in one sentence why it cannot be used */
static cgs_status choose(const cgs_device *d) {
    int driver = 0, runtime = 0, count = 0, major = 0;
    cudaRuntimeGetVersion(&runtime);
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        cudaGetLastError();
        return cgs_fail(CGS_EDEVICE, "cuda: no NVIDIA driver is installed");
    }
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaErrorInsufficientDriver)
        return cgs_fail(CGS_EDEVICE,
                        "cuda: the driver supports CUDA %d.%d, this program needs %d.%d",
                        driver / 1000, driver % 100 / 10, runtime / 1000, runtime % 100 / 10);
    if (e == cudaErrorNoDevice || (e == cudaSuccess && count == 0)) {
        cudaGetLastError();
        return cgs_fail(CGS_EDEVICE, "cuda: the driver finds no GPU");
    }
    if (e != cudaSuccess) return cgs_cuda_failed(e, "looking for a GPU");
    if (d->index >= count)
        return cgs_fail(CGS_EDEVICE, "cuda:%d: there %s only %d GPU%s", d->index,
                        count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
    e = cudaSetDevice(d->index);
    if (e == cudaSuccess) e = cudaFree(NULL); /* takes hold of it */
    if (e == cudaErrorDevicesUnavailable || e == cudaErrorDeviceAlreadyInUse) {
        cudaGetLastError();
        return cgs_fail(CGS_EDEVICE, "cuda:%d: another program holds the GPU", d->index);
    }
    if (e != cudaSuccess) return cgs_cuda_failed(e, "opening the GPU");
    e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "reading the GPU's properties");
    if (major < 8)
        return cgs_fail(CGS_EDEVICE,
                        "cuda:%d: the GPU has compute capability %d.x, 8.0 or later is needed",
                        d->index, major);
    return CGS_OK;
}

static void close_cuda(cgs_device *d) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (!c) return;
    if (c->stream) cudaStreamSynchronize(c->stream);
    cgs_cuda_blas_close(c->blas);
    for (int i = 0; i < c->mark_count; i++)
        if (c->marks[i]) cudaEventDestroy(c->marks[i]);
    free(c->marks);
    cgs_cuda_data_close(c);
    cudaFree(c->scratch);
    cudaFree(c->parts);
    cudaFree(c->step);
    cudaFree(c->sums);
    if (c->stream) cudaStreamDestroy(c->stream);
    cudaGetLastError();
    free(c);
    d->impl = NULL;
}

static cgs_status alloc(cgs_device *d, void **p, size_t bytes);

static cgs_status fill_in(cgs_device *d) {
    cgs_cuda *c = cgs_cuda_of(d);
    void *p;
    cudaError_t e = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "making a stream");
    int major = 0, minor = 0;
    e = cudaDeviceGetAttribute(&c->max_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->index);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d->index);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "reading the GPU's properties");
#ifdef CGS_CLOCKS
    c->max_shared -= 64; /* sums of clocks.cuh; tiles, which fill it, have none there */
#endif
    c->capability = 10 * major + minor;
    CGS_TRY(alloc(d, &p, sizeof *c->step));
    c->step = p;
    CGS_TRY(alloc(d, &p, (CGS_CUDA_PARTS + 1) * sizeof *c->sums));
    c->sums = p;
    return cgs_cuda_blas_open(&c->blas);
}

static cgs_status open_cuda(cgs_device *d) {
    CGS_TRY(choose(d));
    d->impl = calloc(1, sizeof(cgs_cuda));
    if (!d->impl) return cgs_fail(CGS_ENOMEM, "no memory for the cuda device");
    cgs_status rc = fill_in(d);
    if (rc != CGS_OK) close_cuda(d);
    return rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static cgs_status alloc(cgs_device *d, void **p, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    cudaError_t e = cudaMalloc(p, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        size_t unused = 0, all = 0;
        cudaGetLastError();
        cudaMemGetInfo(&unused, &all);
        return cgs_fail(CGS_ENOMEM,
                        "cuda:%d: %.1f MiB of GPU memory are needed, %.1f of %.1f MiB are free",
                        d->index, (double)bytes / (1 << 20), (double)unused / (1 << 20),
                        (double)all / (1 << 20));
    }
    if (e != cudaSuccess) return cgs_cuda_failed(e, "allocating memory");
    e = cudaMemsetAsync(*p, 0, bytes ? bytes : 1, c->stream);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "clearing memory");
}

static void release(cgs_device *d, void *p) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (!p) return;
    cudaStreamSynchronize(c->stream);
    cudaFree(p);
}

static cgs_status upload(cgs_device *d, void *dst, const void *src, size_t bytes) {
    if (!bytes) return CGS_OK;
    /* from ordinary memory this returns when the source may be reused; pinned memory is waited for
     */
    cudaStream_t stream = cgs_cuda_of(d)->stream;
    struct cudaPointerAttributes of;
    cudaError_t e = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream);
    if (e == cudaSuccess) e = cudaPointerGetAttributes(&of, src);
    if (e == cudaSuccess && of.type == cudaMemoryTypeHost) e = cudaStreamSynchronize(stream);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "copying to the GPU");
}

static cgs_status download(cgs_device *d, void *dst, const void *src, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (!bytes) return CGS_OK;
    cudaError_t e = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, c->stream);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "copying from the GPU");
    return sync_cuda(d);
}

cgs_status cgs_cuda_need(cgs_device *d, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    void *fresh;
    if (bytes <= c->scratch_bytes) return CGS_OK;
    CGS_TRY(alloc(d, &fresh, bytes));
    release(d, c->scratch);
    c->scratch = fresh;
    c->scratch_bytes = bytes;
    c->scratch_moved++;
    return CGS_OK;
}

const uint64_t *cgs_cuda_step(cgs_device *d, const cgs_record *r) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (!c->capturing) cgs_cuda_set_step(c, *r->step);
    return c->step;
}

void cgs_cuda_clear_grad(cgs_device *d, const cgs_record *r, int k) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (!cgs_wants(r, k) || r->accumulate[k]) return;
    cgs_cuda_note(c, cudaMemsetAsync(r->in[k]->grad, 0, cgs_bytes(r->in[k]), c->stream),
                  "clearing a gradient");
    STAMP(d, "clearing a gradient");
}

/* ---- records --------------------------------------------------------------------------------- */

/* the largest power of two, up to 256, that divides an address */
static size_t alignment(const void *p) {
    size_t a = 256;
    while ((uintptr_t)p % a) a /= 2;
    return a;
}
static size_t common(const void *a, const void *b, const void *c) {
    size_t x = alignment(a), y = alignment(b), z = alignment(c);
    return x < y ? (x < z ? x : z) : (y < z ? y : z);
}

static cgs_status prepare_linear(cgs_device *d, cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1], *b = r->in[2], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_cuda_linear *l = r->impl = calloc(1, sizeof *l);
    if (!l) return cgs_fail(CGS_ENOMEM, "no memory for a linear layer");
    CGS_TRY(cgs_cuda_need(d, n * m * sizeof(uint16_t) + 256));
    if (cgs_wants(r, 2)) CGS_TRY(cgs_cuda_need_parts(d, cgs_cuda_column_parts(n, m)));
    bool half = x->dtype == CGS_BF16 && W->bf16;
    if (!half && (x->dtype != CGS_F32 || y->dtype != CGS_F32)) return CGS_OK; /* own product */
    const void *w = half ? (const void *)W->bf16 : W->data;
    cgs_cuda_shape forward = {.M = n,
                              .N = m,
                              .K = k,
                              .in = x->dtype,
                              .out = y->dtype,
                              .b_transposed = true,
                              .bias = b != NULL,
                              .batch_invariant = r->batch_invariant,
                              .aligned = common(y->data, x->data, w)};
    if (k > CGS_CUDA_THIN) CGS_TRY(cgs_cuda_product_find(d, &forward, b && b->bf16, &l->forward));
    if (!y->grad) return CGS_OK;
    l->round_dy = half && y->dtype == CGS_F32;
    const void *dy = l->round_dy ? NULL : y->grad; /* scratch is aligned well */
    if (cgs_wants(r, 0)) {
        cgs_cuda_shape dx = {.M = n,
                             .N = k,
                             .K = m,
                             .in = x->dtype,
                             .out = x->dtype,
                             .accumulate = r->accumulate[0],
                             .batch_invariant = r->batch_invariant,
                             .aligned = common(x->grad, dy, w)};
        if (m > CGS_CUDA_THIN) CGS_TRY(cgs_cuda_product_find(d, &dx, false, &l->dx));
    }
    if (cgs_wants(r, 1)) {
        cgs_cuda_shape dW = {.M = m,
                             .N = k,
                             .K = n,
                             .in = x->dtype,
                             .out = CGS_F32,
                             .a_transposed = true,
                             .accumulate = r->accumulate[1],
                             .aligned = common(W->grad, dy, x->data)};
        CGS_TRY(cgs_cuda_product_find(d, &dW, false, &l->dW));
    }
    return CGS_OK;
}

static cgs_status prepare_sigreg(cgs_device *d, cgs_record *r) {
    const cgs_tensor *z = r->in[0], *A = r->in[1];
    size_t n = cgs_rows(z), P = cgs_rows(A), D = (size_t)cgs_cols(z), T = (size_t)z->dim[1];
    cgs_cuda_sigreg *s = r->impl = calloc(1, sizeof *s);
    if (!s) return cgs_fail(CGS_ENOMEM, "no memory for SIGReg");
    CGS_TRY(cgs_cuda_need(d, (n * P + T * P) * sizeof(float)));
    if (z->dtype != CGS_F32 || A->dtype != CGS_F32) return CGS_OK;
    cgs_cuda_shape y = {.M = n, .N = P, .K = D, .b_transposed = true};
    y.aligned = common(NULL, z->data, A->data);
    CGS_TRY(cgs_cuda_product_find(d, &y, false, &s->forward));
    if (!cgs_wants(r, 0)) return CGS_OK;
    cgs_cuda_shape dz = {.M = n, .N = D, .K = P, .accumulate = r->accumulate[0]};
    dz.aligned = common(NULL, z->grad, A->data);
    return cgs_cuda_product_find(d, &dz, false, &s->dz);
}

static cgs_status prepare(cgs_device *d, cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    bool generic;
    r->impl = NULL;
    CGS_TRY(cgs_cuda_prepare_variants(d, r, &generic));
    switch (r->op) {
    case CGS_OP_linear: return prepare_linear(d, r);
    case CGS_OP_sigreg: return prepare_sigreg(d, r);
    case CGS_OP_attention: return generic ? cgs_cuda_attention_prepare(d, r) : CGS_OK;
    case CGS_OP_attend_first: return cgs_cuda_attend_first_prepare(r);
    case CGS_OP_layernorm: return cgs_cuda_layernorm_prepare(d, r);
    case CGS_OP_straighten:
    case CGS_OP_cgs: return cgs_cuda_cgs_prepare(d, r);
    case CGS_OP_tokens: {
        size_t cols = cgs_numel(r->in[2]), rows = cgs_numel(r->out) / cols;
        return cgs_cuda_need(d, cgs_cuda_column_scratch(rows, cols) + cols * sizeof(float));
    }
    case CGS_OP_add_pos: {
        size_t cols = (size_t)x->dim[1] * (size_t)x->dim[2];
        return cgs_cuda_need(d, cgs_cuda_column_scratch((size_t)x->dim[0], cols));
    }
    default: return CGS_OK;
    }
}

static void unprepare(cgs_device *d, cgs_record *r) {
    (void)d;
    free(r->impl);
    r->impl = NULL;
}

/* ---- the GPU's time -------------------------------------------------------------------------- */

static void mark(cgs_device *d, int i) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (i >= c->mark_count) {
        int count = 2 * i + 64;
        cudaEvent_t *more = realloc(c->marks, (size_t)count * sizeof *more);
        if (!more) return;
        memset(more + c->mark_count, 0, (size_t)(count - c->mark_count) * sizeof *more);
        c->marks = more;
        c->mark_count = count;
    }
    cudaError_t e = c->marks[i] ? cudaSuccess : cudaEventCreate(&c->marks[i]);
    if (e == cudaSuccess) e = cudaEventRecord(c->marks[i], c->stream);
    cgs_cuda_note(c, e, "marking the time");
}

static double between(cgs_device *d, int i, int j) {
    cgs_cuda *c = cgs_cuda_of(d);
    float ms = 0;
    if (i >= c->mark_count || j >= c->mark_count || !c->marks[i] || !c->marks[j]) return -1;
    return cudaEventElapsedTime(&ms, c->marks[i], c->marks[j]) == cudaSuccess ? 1e-3 * ms : -1;
}

const cgs_backend cgs_backend_cuda = {
    .name = "cuda",
    .kind = CGS_DEVICE_GPU,
    .open = open_cuda,
    .close = close_cuda,
    .alloc = alloc,
    .release = release,
    .upload = upload,
    .download = download,
    .sync = sync_cuda,
    .joins = cgs_cuda_joins,
    .without = cgs_cuda_without,
    .attention_residual = true,
    .prepare = prepare,
    .unprepare = unprepare,
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_cuda_forward,
    .forward = {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_cuda_backward,
    .backward = {CGS_OPS(X)},
#undef X
    .run = cgs_cuda_run_pass,
    .forget = cgs_cuda_forget_pass,
    .capture = cgs_cuda_graph_capture,
    .launch = cgs_cuda_graph_launch,
    .drop = cgs_cuda_graph_drop,
    .moved = cgs_cuda_graphs_moved,
    .memory = cgs_cuda_memory,
    .gather = cgs_cuda_gather,
    .pin = cgs_cuda_pin,
    .unpin = cgs_cuda_unpin,
    .send_ahead = cgs_cuda_send_ahead,
    .take_sent = cgs_cuda_take_sent,
    .mark = mark,
    .between = between,
    .sum_squares = cgs_cuda_sum_squares,
    .adamw = cgs_cuda_adamw,
    .round_bf16 = cgs_cuda_round_bf16,
    .muon = cgs_cuda_muon,
};
