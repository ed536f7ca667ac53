/* ptx_async.cpp - copies that a thread does not wait for, and the barriers that count them. */
#include "ptx.h"

#include <deque>
#include <map>
#include <vector>

namespace emulate {

/* ---- copies of 16 bytes in groups ---- */
struct copy {
    void *to;
    const void *from;
    int bytes;
};
static std::map<int, std::deque<std::vector<copy>>> groups; /* the last one is open */
PTX(cp_async) {
    auto &g = groups[thread_slot()];
    if (g.empty()) g.emplace_back();
    uint32_t at = (uint32_t)i[0].v;
    if (at % 16 || i[1].v % 16) die("cp.async of 16 bytes at %u", at);
    int bytes = strstr(ins.text, "%2") ? (int)i[2].v : 16;
    g.back().push_back({from_shared(at), (const void *)i[1].v, bytes});
}
static void copy_out(std::vector<copy> &v) {
    for (copy &c : v) {
        memset(c.to, 0, 16);
        memcpy(c.to, c.from, (size_t)c.bytes);
    }
    v.clear();
}
static void cp_close() {
    auto &g = groups[thread_slot()];
    if (g.empty()) g.emplace_back();
    if (early()) copy_out(g.back());
    g.emplace_back();
}
static void cp_wait(size_t n) {
    auto &g = groups[thread_slot()];
    while (g.size() > n + 1) {
        copy_out(g.front());
        g.pop_front();
    }
}
PTX(cp_commit) { cp_close(); }
PTX(cp_wait_group) {
    cp_wait(strchr(ins.text, '%') ? (size_t)i[0].v
                                  : (size_t)atoi(strstr(ins.text, "wait_group") + 10));
}
PTX(cp_commit_wait) {
    cp_close();
    cp_wait((size_t)atoi(strstr(ins.text, "wait_group") + 10));
}
PTX(cp_wait_all) {
    cp_close();
    cp_wait(0);
}

/* ---- mbarriers: a phase, arrivals missing, bytes missing ---- */
struct mbar {
    int16_t count, missing;
    int32_t bytes_phase;
};
static_assert(sizeof(mbar) == 8, "");
static void check(mbar *b) {
    if (b->missing == 0 && (b->bytes_phase >> 1) == 0) {
        b->missing = b->count;
        b->bytes_phase ^= 1;
        progress();
    }
}
static mbar *mbar_at(uint32_t a) {
    mbar *b = (mbar *)from_shared(a);
    if (a % 8 || b->count <= 0) die("no mbarrier at %u", a);
    return b;
}
static void mbar_arrive(uint32_t a, int n) {
    mbar *b = mbar_at(a);
    if (b->missing < n) die("too many arrivals at a barrier");
    b->missing = (int16_t)(b->missing - n);
    check(b);
}
static void mbar_bytes(uint32_t a, int n) { /* + expected, - arrived */
    mbar *b = mbar_at(a);
    b->bytes_phase += 2 * n;
    if (n < 0) check(b);
}
PTX(mbar_init) {
    mbar *b = (mbar *)from_shared((uint32_t)i[0].v);
    if (i[0].v % 8) die("mbarrier at %u", (unsigned)i[0].v);
    b->count = b->missing = (int16_t)i[1].v;
    b->bytes_phase = 0;
}
PTX(mbar_arrive_) { mbar_arrive((uint32_t)i[0].v, strstr(ins.text, "%1") ? (int)i[1].v : 1); }
PTX(mbar_expect_arrive) {
    mbar_bytes((uint32_t)i[0].v, (int)i[1].v);
    mbar_arrive((uint32_t)i[0].v, 1);
}
PTX(mbar_expect) { mbar_bytes((uint32_t)i[0].v, (int)i[1].v); }
PTX(mbar_try) {
    mbar *b = mbar_at((uint32_t)i[0].v);
    if ((b->bytes_phase & 1) == (int)(i[1].v & 1)) wait_for_bit(&b->bytes_phase, 1, "an mbarrier");
    put(o[0], 1);
}
uint32_t near(uint32_t a, int rank) { /* the same place in another block */
    void *p = from_shared(a);
    return to_shared(slot_of_block(rank) + ((unsigned char *)p - slot_at(p)));
}
PTX(bulk_in) { /* [to], [from], bytes, [barrier] (, mask) */
    uint32_t to = (uint32_t)i[0].v, bar = (uint32_t)i[3].v;
    const void *from = (const void *)i[1].v;
    int bytes = (int)i[2].v;
    if (to % 16 || i[1].v % 16 || bytes % 16 || bytes <= 0)
        die("bulk copy of %d bytes to %u", bytes, to);
    if (strstr(ins.text, "multicast")) {
        unsigned mask = (unsigned)i[4].v;
        for (int r = 0; r < 16; r++)
            if (mask >> r & 1) {
                uint32_t t = near(to, r), b = near(bar, r);
                later([=] {
                    memcpy(from_shared(t), from, (size_t)bytes);
                    mbar_bytes(b, -bytes);
                });
            }
        return;
    }
    later([=] {
        memcpy(from_shared(to), from, (size_t)bytes);
        mbar_bytes(bar, -bytes);
    });
}
PTX(bulk_across) { /* [to], [from], bytes, [barrier], all shared */
    uint32_t to = (uint32_t)i[0].v, from = (uint32_t)i[1].v, bar = (uint32_t)i[3].v;
    int bytes = (int)i[2].v;
    if (to % 16 || from % 16 || bytes % 16 || bytes <= 0) die("bulk copy of %d bytes", bytes);
    later([=] {
        memcpy(from_shared(to), from_shared(from), (size_t)bytes);
        mbar_bytes(bar, -bytes);
    });
}
PTX(st_async) { /* [to], values..., [barrier] */
    int n = strstr(ins.text, ".v4") ? 4 : strstr(ins.text, ".v2") ? 2 : 1;
    int size = strstr(ins.text, "64") && !strstr(ins.text, "b32") ? 8 : 4;
    uint32_t to = (uint32_t)i[0].v, bar = (uint32_t)i[n + 1].v;
    std::vector<uint64_t> v;
    for (int k = 0; k < n; k++) v.push_back(i[1 + k].v);
    later([=] {
        for (int k = 0; k < n; k++)
            memcpy((char *)from_shared(to) + k * size, &v[(size_t)k], (size_t)size);
        mbar_bytes(bar, -n * size);
    });
}

} // namespace emulate
