/* cpu.h - which instructions this process may use.
 *
 * What a processor announces, what the system saves over a change of threads and what works do
 * not always agree: virtual machines hide CPUID leaves that a library reads, and kernels refuse
 * permission.  So there are two answers.  Own code brings what it needs (it configures tiles by
 * itself) and may use what is announced, saved and permitted.  Libraries look for themselves, but
 * where an announced set is not whole they are kept below it, as they might believe it.
 *
 * The environment variable CGS_ISA (base, v3, v4, amx) lowers both by hand. */
#ifndef CGS_CORE_CPU_H
#define CGS_CORE_CPU_H

#include <stdint.h>

#include "core/status.h"

/* Each has all of the one before it.  Other processors than x86-64 have the first alone. */
#define CGS_INSTRUCTION_SETS(X)                                                                    \
    X(BASE, "base") /* what every processor of the architecture has */                             \
    X(V3, "v3")     /* x86-64-v3: AVX2, FMA, BMI */                                                \
    X(V4, "v4")     /* x86-64-v4: AVX-512 F, BW, CD, DQ, VL */                                     \
    X(AMX, "amx")   /* tiles of bf16 beside AVX-512 with products of bf16 pairs */

typedef enum cgs_isa {
#define X(name, word) CGS_ISA_##name,
    CGS_INSTRUCTION_SETS(X)
#undef X
        CGS_ISA_COUNT
} cgs_isa;

const char *cgs_isa_name(cgs_isa isa);

/* Where the answers come from; tests make one up. */
typedef struct cgs_cpu_source {
    /* eax, ebx, ecx and edx; called for leaves that leaf 0 or 0x80000000 says are there */
    void (*cpuid)(void *user, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
    uint64_t (*saved)(void *user);       /* XCR0; called when CPUID has OSXSAVE             */
    bool (*tile_permission)(void *user); /* the system's answer to a request to use tiles   */
    void *user;
} cgs_cpu_source;

typedef struct cgs_cpu_answer {
    cgs_isa found;     /* what is announced, saved and permitted                       */
    cgs_isa own;       /* what own code uses: found, or less by hand                   */
    cgs_isa libraries; /* what libraries are limited to; AMX: no limit, they look for
                          themselves                                                   */
    bool bf16;         /* own code uses AVX-512's products of bf16 pairs               */
    char why[160];     /* why found is no higher                                       */
    char reason[400];  /* both answers and why, one line                               */
} cgs_cpu_answer;

/* The answers for a processor; limit: a set's name, or NULL or "" for none.  CGS_EARG when no set
 * has that name, CGS_EDEVICE when the processor has less; the answers are then without it. */
cgs_status cgs_cpu_judge(cgs_cpu_answer *out, const cgs_cpu_source *ask, const char *limit);

/* The answers for this process, which never change: asked at the first call, with CGS_ISA. */
const cgs_cpu_answer *cgs_cpu_ask(void);

/* Whether CGS_ISA could be obeyed; every device asks when it is opened. */
cgs_status cgs_cpu_check(void);

#endif /* CGS_CORE_CPU_H */
