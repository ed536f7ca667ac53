/* fibers.cpp - the threads of a grid as fibers: barriers, shared memory, launches.
 *
 * Blocks run one after another, those of a cluster (or of a cooperative launch) together.  Every
 * thread has a stack and runs until it waits.  When nobody can go on, the oldest pending copy
 * happens; when there is none, that is a deadlock, and who waits for what is printed. */
#include <algorithm>
#include <cuda_runtime.h>
#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

emulate::uint3_ threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulate {

enum { SLOT = 1 << 18, STRIDE = 1 << 19, STACK = 1 << 17, CANARY = 0xC5 };

struct meet {
    int arrived = 0, gen = 0;
    meeting f = nullptr;
    void *args[128];
};
struct barrier {
    int arrived = 0, gen = 0, want = 0;
};
struct block_state {
    uint3_ idx;
    int number, rank, threads, live, first; /* first: of its threads among all */
    unsigned char *slot, *dynamic;
    size_t shared, statics = 0;
    std::map<int, unsigned char *> fixed;
    barrier bars[16];
    std::vector<meet> warps, groups;
    struct cluster_state *cluster;
};
struct cluster_state {
    std::vector<block_state *> blocks;
    barrier bar;
    int live = 0;
};
struct fiber {
    void *sp;
    uint3_ tid;
    int linear;
    block_state *block;
    bool done, polling;
    const int *gen; /* blocked while (*gen & mask) == seen */
    int seen, mask;
    const char *why;
    int cluster_gen; /* of the barrier that it arrived at */
};

static fiber *current;
static void *main_sp;
static std::vector<fiber> fibers;
static const std::function<void()> *kernel;
static std::vector<std::function<void()>> pending;
static bool moved;
static unsigned char *window; /* of shared memory addresses */

void die(const char *why, ...) {
    va_list a;
    va_start(a, why);
    fprintf(stderr, "emulator: ");
    vfprintf(stderr, why, a);
    fprintf(stderr, "\n");
    if (current)
        fprintf(stderr, "emulator: block (%u,%u,%u) thread (%u,%u,%u)\n", blockIdx.x, blockIdx.y,
                blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    abort();
}

/* saves the callee's registers on the stack and changes it */
extern "C" void emulate_switch(void **from, void *to);
asm(R"(
.text
.globl emulate_switch
emulate_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static void leave() { emulate_switch(&current->sp, main_sp); }

static void release(barrier &b) {
    b.arrived = 0;
    b.gen++;
    moved = true;
}

static void start() {
    (*kernel)();
    fiber *f = current;
    block_state *b = f->block;
    f->done = true;
    moved = true;
    b->live--;
    b->cluster->live--;
    if (b->bars[0].arrived && b->bars[0].want == 0 && b->bars[0].arrived == b->live)
        release(b->bars[0]);
    if (b->cluster->bar.arrived && b->cluster->bar.arrived == b->cluster->live)
        release(b->cluster->bar);
    leave();
    abort();
}

static void block_on(const int *gen, int seen, const char *why, int mask = -1) {
    current->gen = gen;
    current->seen = seen;
    current->mask = mask;
    current->why = why;
    leave();
    current->gen = nullptr;
}
void wait_for_bit(const int *value, int mask, const char *why) {
    block_on(value, *value & mask, why, mask);
}

void wait_a_little() {
    current->polling = true;
    current->why = "polling";
    leave();
}
void progress() { moved = true; }

void sync_threads() {
    barrier &b = current->block->bars[0];
    b.want = 0;
    if (++b.arrived == current->block->live)
        release(b);
    else
        block_on(&b.gen, b.gen, "__syncthreads");
}
void named_barrier(int id, int threads, bool wait) {
    if (id < 0 || id > 15 || threads % 32) die("barrier %d of %d threads", id, threads);
    if (id == 0 && threads == current->block->threads && wait) {
        sync_threads();
        return;
    }
    barrier &b = current->block->bars[id];
    if (b.arrived && b.want != threads)
        die("barrier %d is used for %d and %d threads", id, b.want, threads);
    b.want = threads;
    if (++b.arrived == threads)
        release(b);
    else if (wait)
        block_on(&b.gen, b.gen, "a named barrier");
}
void cluster_barrier() {
    cluster_state *c = current->block->cluster;
    if (++c->bar.arrived == c->live)
        release(c->bar);
    else
        block_on(&c->bar.gen, c->bar.gen, "the cluster's barrier");
}

void cluster_arrive() {
    cluster_state *c = current->block->cluster;
    current->cluster_gen = c->bar.gen;
    if (++c->bar.arrived == c->live) release(c->bar);
}
void cluster_wait() {
    cluster_state *c = current->block->cluster;
    if (c->bar.gen == current->cluster_gen)
        block_on(&c->bar.gen, c->bar.gen, "the cluster's barrier");
}

static void meet_at(meet &m, int index, int n, void *mine, meeting f, const char *why) {
    if (m.arrived && m.f != f) die("threads of a warp do different things together (%s)", why);
    if (!m.arrived) memset(m.args, 0, sizeof m.args);
    m.f = f;
    m.args[index] = mine;
    if (++m.arrived == n) {
        if (f) f(m.args, n);
        m.arrived = 0;
        m.gen++;
        moved = true;
    } else {
        block_on(&m.gen, m.gen, why);
    }
}
int lane() { return current->linear % 32; }
void warp_meet(void *mine, meeting f) {
    block_state *b = current->block;
    int w = current->linear / 32;
    meet_at(b->warps[w], current->linear % 32, std::min(32, b->threads - 32 * w), mine, f,
            "a warp");
}
void group_meet(void *mine, meeting f) {
    block_state *b = current->block;
    int g = current->linear / 128;
    if (b->threads < 128 * (g + 1)) die("not a whole warpgroup");
    meet_at(b->groups[g], current->linear % 128, 128, mine, f, "a warpgroup");
}

static bool late() {
    static int l = -1;
    if (l < 0) {
        const char *e = getenv("CGS_EMULATE_ASYNC");
        l = !e || strcmp(e, "early");
    }
    return l;
}
void later(std::function<void()> f) {
    if (late())
        pending.push_back(f);
    else {
        f();
        moved = true;
    }
}

/* ---- shared memory ---- */

void *dynamic_shared() { return current->block->dynamic; }
int new_key() {
    static int n;
    return ++n;
}
void *static_shared(int key, size_t bytes) {
    block_state *b = current->block;
    unsigned char *&p = b->fixed[key];
    if (!p) {
        b->statics += (bytes + 15) / 16 * 16;
        p = b->slot + b->statics - (bytes + 15) / 16 * 16;
        if (p + bytes > b->dynamic) die("more shared memory than there is");
    }
    return p;
}
uint32_t to_shared(const void *p) {
    size_t a = (size_t)((const unsigned char *)p - window);
    if (a >= (1ull << 32)) die("%p is not in shared memory", p);
    return (uint32_t)a;
}
void *from_shared(uint32_t a) { return window + a; }
/* for mapa and descriptors */
unsigned char *slot_of_block(int rank) {
    cluster_state *c = current->block->cluster;
    if (rank < 0 || rank >= (int)c->blocks.size()) die("block %d of a cluster", rank);
    return c->blocks[rank]->slot;
}
unsigned char *own_slot() { return current->block->slot; }
unsigned char *slot_at(const void *p) { return window + to_shared(p) / STRIDE * STRIDE; }
int own_rank() { return current->block->rank; }
int thread_number() { return current->linear; }
int thread_slot() { return current->block->first + current->linear; }

/* ---- launches ---- */

static void run_fibers() {
    static const char *order = getenv("CGS_EMULATE_ORDER");
    size_t n = fibers.size();
    std::vector<int> turn(n);
    for (size_t i = 0; i < n; i++)
        turn[i] = (int)(order && order[0] == 'r' && order[1] == 'e' ? n - 1 - i : i);
    unsigned seed = 1;
    size_t left = n;
    while (left) {
        if (order && order[0] == 'r' && order[1] == 'a') /* random */
            for (size_t i = n - 1; i > 0; i--) {
                seed = seed * 1664525u + 1013904223u;
                std::swap(turn[i], turn[(seed >> 8) % (i + 1)]);
            }
        bool any = false;
        for (size_t k = 0; k < n; k++) {
            fiber &f = fibers[turn[k]];
            if (f.done || (f.gen && (*f.gen & f.mask) == f.seen)) continue;
            bool polled = f.polling;
            f.polling = false;
            current = &f;
            threadIdx = f.tid;
            blockIdx = f.block->idx;
            emulate_switch(&main_sp, f.sp);
            current = nullptr;
            if (f.done) left--;
            if (!polled || !f.polling) any = true;
        }
        if (moved) any = true;
        moved = false;
        if (any) continue;
        if (pending.empty()) {
            std::map<std::string, int> where;
            for (fiber &f : fibers)
                if (!f.done) where[f.why ? f.why : "?"]++;
            for (auto &w : where)
                fprintf(stderr, "emulator: %d threads wait for %s\n", w.second, w.first.c_str());
            die("deadlock");
        }
        auto f = pending.front();
        pending.erase(pending.begin());
        f();
    }
    for (auto &f : pending) f();
    pending.clear();
}

void run_grid(dim3 grid, dim3 block, size_t shared, int S, bool together,
              const std::function<void()> &body) {
    static std::vector<unsigned char *> stacks;
    if (!window)
        window = (unsigned char *)mmap(nullptr, 1ull << 32, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int threads = (int)(block.x * block.y * block.z);
    size_t blocks = (size_t)grid.x * grid.y * grid.z, at_once = together ? blocks : (size_t)S;
    if (blocks % (size_t)S || threads > 1024)
        die("a grid of %zu blocks, clusters of %d, %d threads", blocks, S, threads);
    if (shared > 227 * 1024) die("%zu bytes of shared memory", shared);
    blockDim = block;
    gridDim = grid;
    kernel = &body;
    std::vector<block_state> state(at_once);
    for (size_t b0 = 0; b0 < blocks; b0 += at_once) {
        std::vector<cluster_state> clusters(at_once / (size_t)S);
        fibers.clear();
        for (size_t i = 0; i < at_once; i++) {
            block_state &b = state[i] = block_state();
            size_t k = b0 + i;
            b.idx = {(unsigned)(k % grid.x), (unsigned)(k / grid.x % grid.y),
                     (unsigned)(k / grid.x / grid.y)};
            b.number = (int)k;
            b.rank = (int)(i % (size_t)S);
            b.threads = b.live = threads;
            b.first = (int)i * threads;
            b.slot = window + i * STRIDE;
            b.shared = shared;
            mprotect(b.slot, SLOT, PROT_READ | PROT_WRITE);
            size_t aligned = (shared + 1023) / 1024 * 1024;
            b.dynamic = b.slot + SLOT - aligned;
            memset(b.slot, 0xFF, SLOT); /* not a number */
            memset(b.dynamic + shared, CANARY, aligned - shared);
            b.warps.resize((size_t)(threads + 31) / 32);
            b.groups.resize((size_t)(threads + 127) / 128);
            b.cluster = &clusters[i / (size_t)S];
            b.cluster->blocks.push_back(&b);
            b.cluster->live += threads;
        }
        fibers.resize(at_once * (size_t)threads);
        for (size_t i = 0; i < fibers.size(); i++) {
            fiber &f = fibers[i];
            if (stacks.size() <= i)
                stacks.push_back((unsigned char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                                       -1, 0));
            int t = (int)(i % (size_t)threads);
            f = fiber();
            f.linear = t;
            f.tid = {(unsigned)t % block.x, (unsigned)t / block.x % block.y,
                     (unsigned)t / block.x / block.y};
            f.block = &state[i / (size_t)threads];
            void **top = (void **)(stacks[i] + STACK - 64);
            *--top = nullptr;       /* a return address for start, which never returns */
            *--top = (void *)start; /* emulate_switch returns here */
            for (int r = 0; r < 6; r++) *--top = nullptr;
            f.sp = top;
        }
        run_fibers();
        for (block_state &b : state)
            for (unsigned char *p = b.dynamic + shared; p < b.slot + SLOT; p++)
                if (*p != CANARY)
                    die("written %zu bytes after the shared memory",
                        (size_t)(p - b.dynamic - shared));
    }
}

} // namespace emulate
