/* runtime.cpp - the calls of CUDA's runtime that the backend makes, on memory of this machine;
 * those of streams are in streams.cpp. */
#include <cuda_runtime.h>
#include <map>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
extern "C" {
#include "ops/cuda/cuda.h"
}

static std::map<void *, std::pair<void *, size_t>> memory;
static std::map<const char *, size_t> pinned; /* of the host: where it begins, bytes */

static bool is_pinned(const void *p) {
    auto after = pinned.upper_bound((const char *)p);
    if (after == pinned.begin()) return false;
    auto here = std::prev(after);
    return (const char *)p < here->first + here->second;
}

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
    cudaDeviceSynchronize();
    munmap(memory[p].first, memory[p].second);
    memory.erase(p);
    return cudaSuccess;
}
/* Pinned memory of the host is read and written when the stream comes to it, and must be pinned
 * still.  Other memory may be changed as soon as this returns, and has what was copied to it. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind k,
                            cudaStream_t s) {
    const void *host = nullptr;
    if (k == cudaMemcpyHostToDevice) host = from;
    if (k == cudaMemcpyDeviceToHost) host = to;
    bool held = is_pinned(host);
    if (host == from && !held) {
        const char *bytes = (const char *)from;
        auto staged = std::make_shared<std::vector<char>>(bytes, bytes + n);
        emulate::enqueue(s, [=] { memcpy(to, staged->data(), n); });
        return cudaSuccess;
    }
    emulate::enqueue(s, [=] {
        if (held && !is_pinned(host)) emulate::die("memory was let go before it was copied");
        memmove(to, from, n);
    });
    return host && !held ? cudaStreamSynchronize(s) : cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) {
    emulate::enqueue(s, [=] { memset(p, v, n); });
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
cudaError_t cudaHostRegister(void *p, size_t n, unsigned) {
    pinned[(const char *)p] = n;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *p) {
    pinned.erase((const char *)p);
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
    memset(a, 0, sizeof *a);
    a->type = is_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int) {
    switch ((int)a) {
    case cudaDevAttrComputeCapabilityMajor: *v = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *v = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 * 1024; break;
    case cudaDevAttrCooperativeLaunch: *v = 1; break;
    default: *v = 0;
    }
    return cudaSuccess;
}
}
