/* cpu.h - which instructions this process may use.
 *
 * What a processor announces, what the system saves at a context switch and what works do not
 * always agree: virtual machines hide CPUID leaves that a library reads, and kernels refuse
 * permission.  So there are two answers.  Our own code is self-sufficient (it configures tiles by
 * itself) and may use what is announced, saved and permitted.  Libraries detect features
 * themselves, but where an announced set is incomplete they are limited to a lower one, as they
 * might trust the announcement.
 *
 * The environment variable CGS_ISA (base, v3, v4, amx) lowers both. */
#ifndef CGS_CORE_CPU_H
#define CGS_CORE_CPU_H

#include <stdint.h>

#include "core/status.h"

/* Each contains the one before it.  Processors other than x86-64 have only the first. */
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

/* The source of the answers; tests provide their own. */
typedef struct cgs_cpu_source {
    /* eax, ebx, ecx and edx; called for leaves that leaf 0 or 0x80000000 says are there */
    void (*cpuid)(void *user, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
    uint64_t (*saved)(void *user);       /* XCR0; called when CPUID has OSXSAVE             */
    bool (*tile_permission)(void *user); /* the system's answer to a request to use tiles   */
    void *user;
} cgs_cpu_source;

typedef struct cgs_cpu_answer {
    cgs_isa found;     /* what is announced, saved and permitted                       */
    cgs_isa own;       /* what our own code uses: found, or less on request                   */
    cgs_isa libraries; /* what libraries are limited to; AMX: no limit, they detect features
                          themselves                                                   */
    bool bf16;         /* our own code uses AVX-512's dot products of bf16 pairs               */
    char why[160];     /* why found is not higher                                       */
    char reason[400];  /* both answers and why, one line                               */
} cgs_cpu_answer;

/* The answers for a processor; limit: a set's name, or NULL or "" for none.  CGS_EARG when no set
 * has that name, CGS_EDEVICE when the processor has less; the answers are then without it. */
cgs_status cgs_cpu_judge(cgs_cpu_answer *out, const cgs_cpu_source *ask, const char *limit);

/* The answers for this process, which never change: determined at the first call, with CGS_ISA. */
const cgs_cpu_answer *cgs_cpu_ask(void);

/* Whether CGS_ISA is available; every device checks when it is opened. */
cgs_status cgs_cpu_check(void);

#endif /* CGS_CORE_CPU_H */
