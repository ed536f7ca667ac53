/* probe_cluster.cu - how long blocks take to hear from each other, and from the L2 cache.
 *
 *   make build/tests/probe_cluster && build/tests/probe_cluster
 *
 * Needs a GPU of compute capability 9.0.  Rollouts of a few plans wait more than they compute; this
 * measures what there is to wait for, so that a division of work can be counted before it is
 * written.  Times are those of one turn of a loop, in cycles and nanoseconds. */
#include <stdio.h>
#include <stdlib.h>

#include "ops/cuda/ptx/mbarrier.cuh"

enum { TURNS = 400, SHARED_BYTES = 196608 };
enum { ROW = 192 }; /* of a latent, in elements */

/* ---- what blocks send each other ------------------------------------------------------------- */

/* a place in the shared memory of another block, as a pointer */
template <class T> static __device__ T *remote(T *p, int rank) {
    uint64_t at = (uint64_t)p, there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(at), "r"(rank));
    return (T *)there;
}
static __device__ void st_async(uint32_t to, unsigned v, uint32_t counter) {
    st_async(to, v, 0, 0, 0, counter);
}
static __device__ void copy_to_block(uint32_t to, const void *from, int bytes, uint32_t counter) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], "
        "%2, [%3];" ::"r"(to),
        "r"(shared_address(from)), "r"(bytes), "r"(counter)
        : "memory");
}
static __device__ void arrive_there(uint32_t counter) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(counter)
                 : "memory");
}
static __device__ void wait_for_cluster(mbarrier *c, uint32_t phase) {
    uint32_t done;
    do
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(c)), "r"(phase & 1)
                     : "memory");
    while (!done);
}
static __device__ void fence_for_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

enum kind {
    BLOCK,         /* barrier of the block                                        */
    CLUSTER,       /* of the cluster, release and acquire                         */
    RELAXED,       /* ... neither                                                 */
    CLUSTER_LOADS, /* after 18 reads of 16 bytes per lane that nobody needs yet    */
    RELAXED_LOADS,
    CLUSTER_STORES, /* after 4 stores of 16 bytes per lane to memory                */
    CLUSTER_SEND,   /* warp 0 sends a row of 384 bytes to all blocks, then barrier */
    CLUSTER_SHARES, /* barrier, then warp 0 reads a row of 768 bytes of all blocks */
    ASYNC_ROWS,     /* a row of 384 bytes to all blocks by counted stores          */
    ASYNC_SHARES,   /* 768 bytes from every block to every block, likewise         */
    BULK_ROWS,      /* the same by bulk copies                                     */
    BULK_SHARES,
    ARRIVALS, /* one arrival from every block at every block, no data        */
    KINDS
};
static const char *const kind_names[] = {
    "barrier of the block",
    "barrier of the cluster",
    "... relaxed",
    "barrier of the cluster after 18 reads of 16 B per lane",
    "... relaxed",
    "barrier of the cluster after 4 writes of 16 B per lane",
    "plain stores of a row (384 B) to all blocks, barrier",
    "barrier, plain reads of a row (768 B) of all blocks",
    "counted stores: a row (384 B) from each to all",
    "counted stores: 768 B from each to all",
    "bulk copies: a row (384 B) from each to all",
    "bulk copies: 768 B from each to all",
    "arrivals from each at all",
};

template <int S, int T>
__global__ void __launch_bounds__(T, 1)
    exchange(long long *cycles, const uint4 *weights, uint4 *sink, int kind) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ mbarrier counter[2];
    const int rank = cluster_rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *shares = (float *)memory;             /* 2 x (16, ROW) */
    unsigned char *rows = memory + 2 * 16 * 768; /* 2 x (16, 384) */
    float *own = (float *)(rows + 2 * 16 * 384);
    for (int i = threadIdx.x; i < 12288; i += T) shares[i] = 0;
    if (threadIdx.x == 0) {
        mbarrier_init(&counter[0], kind == ARRIVALS ? S : 1);
        mbarrier_init(&counter[1], kind == ARRIVALS ? S : 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    cluster_sync();
    uint4 kept[18] = {};
    float sum = 0;
    long long begin = clock64();
    for (int turn = 0; turn < TURNS; turn++) {
        const int half = turn % 2;
        mbarrier *c = &counter[half];
        if (kind == CLUSTER_LOADS || kind == RELAXED_LOADS) {
#pragma unroll
            for (int i = 0; i < 18; i++) {
                size_t at = ((size_t)(turn % 64 * 16 + rank) * 18 + i) * T + threadIdx.x;
                asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(kept[i].x), "=r"(kept[i].y), "=r"(kept[i].z), "=r"(kept[i].w)
                             : "l"(weights + at % (20u << 16)));
            }
        }
        if (kind == CLUSTER_STORES)
            for (int i = 0; i < 4; i++)
                sink[((size_t)blockIdx.x * 4 + i) * T + threadIdx.x] = make_uint4(turn, i, 0, 0);
        if (kind == CLUSTER_SEND && warp == 0)
            for (int b = 0; b < S; b++) {
                uint32_t *to = remote((uint32_t *)(rows + (half * 16 + rank) * 384), b);
                for (int j = 0; j < 3; j++) to[32 * j + lane] = turn;
            }
        if (kind == BLOCK)
            __syncthreads();
        else if (kind == RELAXED || kind == RELAXED_LOADS) {
            __syncwarp();
            asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                             : "memory");
        } else if (kind < ASYNC_ROWS)
            cluster_sync();
        if (kind == CLUSTER_SHARES && warp == 0) {
#pragma unroll
            for (int b = 0; b < S; b++) {
                const float2 *from = (const float2 *)remote(shares + rank * ROW, b);
                for (int j = 0; j < 3; j++) {
                    float2 v = from[32 * j + lane];
                    sum += v.x + v.y;
                }
            }
        }
        if (kind >= ASYNC_ROWS) {
            const bool big = kind == ASYNC_SHARES || kind == BULK_SHARES;
            const int bytes = big ? 768 : 384;
            unsigned char *to = big ? (unsigned char *)shares + (half * 16 + rank) * 768
                                    : rows + (half * 16 + rank) * 384;
            if (kind != ARRIVALS && threadIdx.x == 0) mbarrier_arrive_expect_tx(c, S * bytes);
            if (kind == ASYNC_ROWS || kind == ASYNC_SHARES) {
                /* every warp takes its part of the blocks */
                for (int b = warp; b < S; b += T / 32)
                    for (int i = lane; i < bytes / 16; i += 32)
                        st_async(mapa(to + 16 * i, b), (unsigned)turn, mapa(c, b));
            } else if (kind != ARRIVALS) {
                own[threadIdx.x % ROW] = (float)turn;
                fence_for_copies();
                __syncthreads();
                if (threadIdx.x < S)
                    copy_to_block(mapa(to, (int)threadIdx.x), own, bytes,
                                  mapa(c, (int)threadIdx.x));
            } else {
                __syncthreads();
                if (threadIdx.x < S) arrive_there(mapa(c, (int)threadIdx.x));
            }
            wait_for_cluster(c, (uint32_t)(turn / 2));
            __syncthreads();
        }
    }
    long long end = clock64();
    cluster_sync();
    for (int i = 0; i < 18; i++) sum += (float)kept[i].x;
    if (sum == 12345) sink[0].x = 1;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
}

/* from block 0 to block 1 and back: WAY 0 a word that is looked at, 1 an arrival, 2 a counted
 * store, 3 a bulk copy of 768 bytes; 4 a word in memory with release and acquire; 5 memory without
 */
__global__ void __launch_bounds__(32, 1) ping(long long *cycles, unsigned *words, int kind) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ mbarrier counter;
    volatile unsigned *word = (volatile unsigned *)memory;
    const int rank = cluster_rank(), lane = threadIdx.x;
    if (lane == 0) {
        *word = 0;
        mbarrier_init(&counter, 1);
        fence_mbarrier_init();
    }
    __syncwarp();
    cluster_sync();
    if (rank < 2) {
        const int other = 1 - rank;
        uint32_t there = mapa(&counter, other), data = mapa(memory + 1024, other);
        volatile unsigned *word_there = remote((unsigned *)memory, other);
        long long begin = clock64();
        for (int turn = 1; turn <= TURNS; turn++)
            for (int side = 0; side < 2; side++) {
                const bool sends = side == rank;
                if (kind == 0 && lane == 0) {
                    if (sends) *word_there = (unsigned)turn;
                    while (!sends && *word != (unsigned)turn) {
                    }
                }
                if (kind >= 4 && lane == 0) {
                    unsigned *at = words + 64 * side, v = 0;
                    if (sends && kind == 4)
                        asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(at), "r"(turn)
                                     : "memory");
                    if (sends && kind == 5)
                        asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(at), "r"(turn)
                                     : "memory");
                    while (!sends && v != (unsigned)turn)
                        if (kind == 4)
                            asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                                         : "=r"(v)
                                         : "l"(at)
                                         : "memory");
                        else
                            asm volatile("ld.relaxed.gpu.u32 %0, [%1];"
                                         : "=r"(v)
                                         : "l"(at)
                                         : "memory");
                }
                if (kind >= 1 && kind <= 3) {
                    if (sends && lane == 0) {
                        if (kind == 1) arrive_there(there);
                        if (kind == 2) st_async(data, (unsigned)turn, there);
                        if (kind == 3) copy_to_block(data, memory + 2048, 768, there);
                    }
                    if (!sends) {
                        if (kind > 1 && lane == 0)
                            mbarrier_arrive_expect_tx(&counter, kind == 2 ? 16 : 768);
                        wait_for_cluster(&counter, (uint32_t)(turn - 1));
                    }
                }
                __syncwarp();
            }
        long long end = clock64();
        if (lane == 0) cycles[blockIdx.x] = end - begin;
    }
    cluster_sync();
}

/* ---- all blocks of a grid through memory ----------------------------------------------------- */

__global__ void __launch_bounds__(256, 1)
    grid_barrier(long long *cycles, unsigned *count, int blocks) {
    __syncthreads();
    long long begin = clock64();
    for (int turn = 1; turn <= TURNS; turn++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned v = 0;
            asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(count) : "memory");
            while (v < (unsigned)(turn * blocks))
                asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(count) : "memory");
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
}

/* ---- the L2 cache ---------------------------------------------------------------------------- */

/* one lane follows a chain through memory */
__global__ void chase(long long *cycles, const unsigned *next) {
    unsigned at = 0;
    long long begin = clock64();
    for (int i = 0; i < TURNS; i++)
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(next + at));
    long long end = clock64();
    cycles[0] = end - begin + (at == 0xffffffffu);
}

/* Every block copies `bytes` of the same memory in slabs of 24 KB through a ring of 8: all of it,
 * or with parts > 1 the part of its rank. */
__global__ void __launch_bounds__(32, 1)
    stream(long long *cycles, const unsigned char *from, int slabs, int parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ mbarrier full[8];
    const int slab = 24576, first = (int)(blockIdx.x % (unsigned)parts);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 8; i++) mbarrier_init(&full[i], 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    const int mine = slabs / parts;
    long long begin = clock64();
    for (int i = 0; i < mine + 7; i++) {
        if (i < mine && threadIdx.x == 0) {
            mbarrier_arrive_expect_tx(&full[i % 8], slab);
            cp_async_bulk(memory + (i % 8) * slab, from + (size_t)(i * parts + first) * slab, slab,
                          &full[i % 8]);
        }
        if (i >= 7) mbarrier_wait_parity(&full[(i - 7) % 8], (uint32_t)((i - 7) / 8));
    }
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
}

/* The same, blocks of a cluster sharing one stream: each copies its part of a slab to all of them.
 */
template <int S>
__global__ void __launch_bounds__(32, 1)
    stream_shared(long long *cycles, const unsigned char *from, int slabs) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ mbarrier full[8], empty[8];
    const int slab = 24576, rank = cluster_rank(), part = slab / S;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 8; i++) {
            mbarrier_init(&full[i], 1);
            mbarrier_init(&empty[i], S);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    cluster_sync();
    long long begin = clock64();
    for (int i = 0; i < slabs + 7; i++) {
        if (i < slabs) {
            if (i >= 8) wait_for_cluster(&empty[i % 8], (uint32_t)(i / 8 - 1));
            __syncwarp();
            if (threadIdx.x == 0) {
                mbarrier_arrive_expect_tx(&full[i % 8], slab);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
                             "multicast::cluster "
                             "[%0], [%1], %2, [%3], %4;" ::"r"(
                                 shared_address(memory + (i % 8) * slab + rank * part)),
                             "l"(from + (size_t)i * slab + rank * part), "r"(part),
                             "r"(shared_address(&full[i % 8])), "h"((uint16_t)((1u << S) - 1))
                             : "memory");
            }
        }
        if (i >= 7) {
            mbarrier_wait_parity(&full[(i - 7) % 8], (uint32_t)((i - 7) / 8));
            if (threadIdx.x < S) arrive_there(mapa(&empty[(i - 7) % 8], (int)threadIdx.x));
        }
    }
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
    cluster_sync();
}

/* ---- the host's side ------------------------------------------------------------------------- */

static long long *cycles;
static unsigned char *memory20;
static uint4 *sink;
static double ghz;

template <class F, class... A>
static cudaError_t launch(F kernel, int S, int threads, int blocks, int shared_bytes, int *active,
                          A... args) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = (unsigned)S;
    attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)shared_bytes;
    config.attrs = attribute;
    config.numAttrs = 1;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (S > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    cudaGetLastError();
    if (active) return cudaOccupancyMaxActiveClusters(active, kernel, &config);
    cudaError_t e = cudaLaunchKernelEx(&config, kernel, args...);
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

/* what blocks counted, the mean of those that did */
static double mean_cycles(int blocks) {
    long long got[256];
    double sum = 0;
    int n = 0;
    cudaMemcpy(got, cycles, sizeof(long long) * (size_t)blocks, cudaMemcpyDeviceToHost);
    for (int i = 0; i < blocks; i++)
        if (got[i] > 0) {
            sum += (double)got[i];
            n++;
        }
    cudaMemset(cycles, 0, sizeof(long long) * 256);
    return n ? sum / n : 0;
}

static void say(const char *what, cudaError_t e, double each) {
    if (e != cudaSuccess) {
        printf("%-64s %s\n", what, cudaGetErrorString(e));
        cudaGetLastError();
    } else
        printf("%-64s %9.0f cycles %9.0f ns\n", what, each, each / ghz);
    fflush(stdout);
}

template <int S, int T> static void exchanges(int clusters) {
    char text[160];
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(text, sizeof text, "%d x %d blocks of %d: %s", clusters, S, T, kind_names[kind]);
        cudaError_t e = launch(exchange<S, T>, S, T, clusters * S, SHARED_BYTES, NULL, cycles,
                               (const uint4 *)memory20, sink, kind);
        say(text, e, mean_cycles(clusters * S) / TURNS);
    }
}

template <int S> static void fits(int shared_bytes) {
    int active = -1;
    cudaError_t e = launch(exchange<S, 256>, S, 256, 8 * S, shared_bytes, &active, cycles,
                           (const uint4 *)memory20, sink, 0);
    printf("clusters of %d with %d KB: %d at a time%s%s\n", S, shared_bytes / 1024, active,
           e ? ", " : "", e ? cudaGetErrorString(e) : "");
}

static void rate(const char *what, int blocks, cudaError_t e, double bytes) {
    double c = mean_cycles(blocks);
    if (e != cudaSuccess) {
        say(what, e, 0);
        return;
    }
    printf("%-64s %6.1f bytes per cycle and block, %6.2f TB/s in all\n", what, bytes / c,
           bytes / c * ghz * blocks / 1000);
    fflush(stdout);
}

int main(void) {
    char text[160];
    const int slabs = 832; /* 20.4 MB */
    int khz = 0;
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    ghz = khz / 1e6;
    cudaMalloc(&cycles, 256 * sizeof *cycles);
    cudaMemset(cycles, 0, 256 * sizeof *cycles);
    cudaMalloc(&memory20, (size_t)32 << 20);
    cudaMemset(memory20, 0, (size_t)32 << 20);
    cudaMalloc(&sink, (size_t)16 << 20);
    printf("clock %.3f GHz\n", ghz);
    fits<8>(100 << 10), fits<8>(SHARED_BYTES), fits<16>(100 << 10), fits<16>(SHARED_BYTES),
        fits<16>(220 << 10);
    fits<2>(SHARED_BYTES), fits<4>(SHARED_BYTES);

    static const char *const pings[] = {"to another block: a word that is looked at",
                                        "... an arrival",
                                        "... a counted store of 16 B",
                                        "... a bulk copy of 768 B",
                                        "through memory: release, acquire",
                                        "... relaxed"};
    for (int kind = 0; kind < 6; kind++) {
        cudaMemset(sink, 0, 4096);
        cudaError_t e = launch(ping, 8, 32, 8, 8192, NULL, cycles, (unsigned *)sink, kind);
        say(pings[kind], e, mean_cycles(2) / TURNS / 2);
    }
    exchanges<8, 256>(8);
    exchanges<8, 256>(16);
    exchanges<16, 256>(1);
    exchanges<16, 256>(4);
    exchanges<16, 384>(7);

    for (int blocks = 64; blocks <= 132; blocks += 34) {
        cudaMemset(sink, 0, 4096);
        grid_barrier<<<blocks, 256>>>(cycles, (unsigned *)sink, blocks);
        cudaError_t e = cudaDeviceSynchronize();
        snprintf(text, sizeof text, "barrier of %d blocks through memory", blocks);
        say(text, e, mean_cycles(blocks) / TURNS);
    }

    enum { LINKS = 5 << 20 };
    unsigned *links = (unsigned *)calloc(LINKS, sizeof *links);
    for (unsigned i = 0; links && i < LINKS; i += 32)
        links[i] = (unsigned)((i + 32u * 40503u) % LINKS);
    if (links) cudaMemcpy(memory20, links, LINKS * sizeof *links, cudaMemcpyHostToDevice);
    free(links);
    chase<<<1, 1>>>(cycles, (const unsigned *)memory20);
    cudaDeviceSynchronize();
    mean_cycles(1);
    chase<<<1, 1>>>(cycles, (const unsigned *)memory20);
    say("a read from the L2 cache", cudaDeviceSynchronize(), mean_cycles(1) / TURNS);

    cudaFuncSetAttribute(stream, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    const int counts[] = {1, 16, 64, 112, 128, 132};
    for (int blocks : counts) {
        for (int parts = 1; parts <= 16; parts *= 16) {
            snprintf(text, sizeof text, "%d blocks copy %s of 20 MB", blocks,
                     parts == 1 ? "all" : "a 16th each");
            for (int twice = 0; twice < 2; twice++) /* the first time from memory */
                stream<<<blocks, 32, SHARED_BYTES>>>(cycles, memory20, slabs, parts);
            rate(text, blocks, cudaDeviceSynchronize(), (double)slabs / parts * 24576);
        }
    }
    for (int blocks = 64; blocks <= 128; blocks += 64) {
        cudaError_t e = launch(stream_shared<2>, 2, 32, blocks, SHARED_BYTES, NULL, cycles,
                               (const unsigned char *)memory20, slabs);
        snprintf(text, sizeof text, "%d blocks, pairs share a stream of 20 MB", blocks);
        rate(text, blocks, e, (double)slabs * 24576);
        e = launch(stream_shared<4>, 4, 32, blocks, SHARED_BYTES, NULL, cycles,
                   (const unsigned char *)memory20, slabs);
        snprintf(text, sizeof text, "%d blocks, fours share a stream of 20 MB", blocks);
        rate(text, blocks, e, (double)slabs * 24576);
        e = launch(stream_shared<8>, 8, 32, blocks, SHARED_BYTES, NULL, cycles,
                   (const unsigned char *)memory20, slabs);
        snprintf(text, sizeof text, "%d blocks, eights share a stream of 20 MB", blocks);
        rate(text, blocks, e, (double)slabs * 24576);
    }
    return 0;
}
