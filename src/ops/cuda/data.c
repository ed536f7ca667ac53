/* data.c - moving a dataset's frames: from a copy of them in the GPU's memory, or from the host
 * beside the computation.
 *
 * What is sent ahead travels on a stream of its own into a buffer of the caller's, of which
 * there is one: `taken` says that the last contents were copied on and the next may come,
 * `arrived` that they are there. */
#include "ops/cuda/cuda.h"

cgs_status cgs_cuda_memory(cgs_device *d, size_t *unused, size_t *all) {
    cudaError_t e = cudaMemGetInfo(unused, all);
    if (e != cudaSuccess) return cgs_cuda_failed(e, "asking for the free memory");
    if (!cgs_cuda_variant_on(d, "cached_frames")) *unused = 0;
    return CGS_OK;
}

cgs_status cgs_cuda_gather(cgs_device *d, void *to, const void *from, const int64_t *which,
                           size_t count, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (count > c->which_count) {
        void *fresh;
        CGS_TRY(d->ops->alloc(d, &fresh, count * sizeof *c->which));
        d->ops->release(d, c->which);
        c->which = fresh;
        c->which_count = count;
    }
    CGS_TRY(d->ops->upload(d, c->which, which, count * sizeof *which));
    cgs_cuda_gather_blocks(d, to, from, c->which, count, bytes);
    return CGS_OK;
}

bool cgs_cuda_pin(cgs_device *d, void *p, size_t bytes) {
    (void)d;
    if (cudaHostRegister(p, bytes, cudaHostRegisterDefault) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
}

void cgs_cuda_unpin(cgs_device *d, void *p) {
    cgs_cuda *c = cgs_cuda_of(d);
    if (c->copies) cudaStreamSynchronize(c->copies);
    cudaHostUnregister(p);
    cudaGetLastError();
}

static cudaError_t make_copies(cgs_cuda *c) {
    cudaError_t e = cudaSuccess;
    if (!c->copies) e = cudaStreamCreateWithFlags(&c->copies, cudaStreamNonBlocking);
    if (e == cudaSuccess && !c->arrived)
        e = cudaEventCreateWithFlags(&c->arrived, cudaEventDisableTiming);
    if (e == cudaSuccess && !c->taken)
        e = cudaEventCreateWithFlags(&c->taken, cudaEventDisableTiming);
    return e;
}

cgs_status cgs_cuda_send_ahead(cgs_device *d, void *to, const void *from, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    cudaError_t e = make_copies(c);
    if (e == cudaSuccess) e = cudaStreamWaitEvent(c->copies, c->taken, 0);
    if (e == cudaSuccess) e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, c->copies);
    if (e == cudaSuccess) e = cudaEventRecord(c->arrived, c->copies);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "sending data ahead");
}

cgs_status cgs_cuda_take_sent(cgs_device *d, void *to, const void *from, size_t bytes) {
    cgs_cuda *c = cgs_cuda_of(d);
    /* the host waits too: then the source may be overwritten */
    cudaError_t e = cudaEventSynchronize(c->arrived);
    if (e == cudaSuccess) e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c->stream);
    if (e == cudaSuccess) e = cudaEventRecord(c->taken, c->stream);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "taking data");
}

void cgs_cuda_data_close(cgs_cuda *c) {
    if (c->copies) {
        cudaStreamSynchronize(c->copies);
        cudaStreamDestroy(c->copies);
    }
    if (c->arrived) cudaEventDestroy(c->arrived);
    if (c->taken) cudaEventDestroy(c->taken);
    cudaFree(c->which);
}
