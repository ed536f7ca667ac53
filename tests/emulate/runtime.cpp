/* runtime.cpp - the calls of CUDA's runtime that the backend makes, on memory of this machine.
 * A captured graph is a list of calls. */
#include <cuda_runtime.h>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
extern "C" {
#include "ops/cuda/cuda.h"
}

typedef std::vector<std::function<void()>> calls;
static calls *recording;
static std::map<void *, std::pair<void *, size_t>> memory;

namespace emulate {
void enqueue(std::function<void()> f) {
    if (recording)
        recording->push_back(f);
    else
        f();
}
} // namespace emulate

extern "C" {
cudaError_t cudaMalloc(void **p, size_t n) { /* ends where a page that must not be touched begins */
    size_t pages = (n + 4095) / 4096 * 4096;
    unsigned char *m = (unsigned char *)mmap(nullptr, pages + 4096, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) return cudaErrorMemoryAllocation;
    mprotect(m + pages, 4096, PROT_NONE);
    *p = m + pages - (n + 15) / 16 * 16;
    if ((size_t)*p % 256) *p = (void *)((size_t)*p / 256 * 256); /* as the runtime promises */
    if (n < (64u << 20)) memset(m, 0xFF, pages);
    memory[*p] = {m, pages + 4096};
    return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
    if (!p) return cudaSuccess;
    munmap(memory[p].first, memory[p].second);
    memory.erase(p);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind k, cudaStream_t) {
    if (k == cudaMemcpyDeviceToDevice)
        emulate::enqueue([=] { memmove(to, from, n); });
    else
        memmove(to, from, n);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t) {
    emulate::enqueue([=] { memset(p, v, n); });
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    recording = new calls;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *g) {
    *g = (cudaGraph_t)recording;
    recording = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g, unsigned long long) {
    *e = (cudaGraphExec_t) new calls(*(calls *)g);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t) {
    calls *c = (calls *)e;
    if (recording)
        recording->insert(recording->end(), c->begin(), c->end());
    else
        for (auto &f : *c) f();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    delete (calls *)g;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    delete (calls *)e;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
    *s = (cudaStream_t)1;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) {
    *e = (cudaEvent_t)1;
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
    *e = (cudaEvent_t)1;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *t, cudaEvent_t, cudaEvent_t) {
    *t = 1;
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) {
    *n = 1;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *v) {
    *v = 13000;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *v) {
    *v = 13000;
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t e) {
    static char t[40];
    snprintf(t, sizeof t, "error %d", (int)e);
    return t;
}
cudaError_t cudaMemGetInfo(size_t *a, size_t *b) {
    *a = 8ull << 30, *b = 16ull << 30;
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void *, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *) {
    memset(a, 0, sizeof *a);
    a->type = cudaMemoryTypeHost;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int) {
    switch ((int)a) {
    case cudaDevAttrComputeCapabilityMajor: *v = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *v = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 * 1024; break;
    case cudaDevAttrMultiProcessorCount: *v = 5; break; /* so that few heads reach the one ahead */
    case cudaDevAttrCooperativeLaunch: *v = 1; break;
    default: *v = 0;
    }
    return cudaSuccess;
}
}
