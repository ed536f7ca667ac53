/* ptx.h - what the files of instructions share. */
#pragma once
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

namespace emulate {

unsigned char *slot_of_block(int rank);
unsigned char *own_slot();
unsigned char *slot_at(const void *p);
int own_rank();
int thread_number();
int thread_slot();

/* an instruction; o: what it writes, i: what it reads, in the order of the asm statement */
#define PTX(name) void name(const instruction &ins, operand *o, operand *i)

inline void put(const operand &o, uint64_t v) { memcpy(o.p, &v, (size_t)o.size); }
inline void put_f(const operand &o, float v) { memcpy(o.p, &v, 4); }
inline float bf(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
/* do asynchronous instructions act when they are issued, or as late as they may? */
inline bool early() {
    const char *e = getenv("CGS_EMULATE_ASYNC");
    return e && !strcmp(e, "early");
}

/* ptx_async.cpp */
uint32_t near(uint32_t a, int rank); /* the same place in another block */
PTX(cp_async);
PTX(cp_commit);
PTX(cp_wait_group);
PTX(cp_commit_wait);
PTX(cp_wait_all);
PTX(mbar_init);
PTX(mbar_arrive_);
PTX(mbar_expect_arrive);
PTX(mbar_expect);
PTX(mbar_try);
PTX(bulk_in);
PTX(bulk_across);
PTX(st_async);
/* ptx_groups.cpp */
PTX(wgmma);
PTX(wgmma_commit);
PTX(wgmma_wait);
} // namespace emulate
