/* cpu.c - what the processor announces and what the system allows. */
#define _DEFAULT_SOURCE /* syscall */
#include "core/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/environment.h"

static const char *const names[CGS_ISA_COUNT] = {
#define X(name, word) word,
    CGS_INSTRUCTION_SETS(X)
#undef X
};

const char *cgs_isa_name(cgs_isa isa) { return isa < CGS_ISA_COUNT ? names[isa] : "?"; }

/* ---- what each set consists of --------------------------------------------------------------- */

enum { EAX, EBX, ECX, EDX };
enum { BASIC = 1, FEATURES = 7, TILES = 0x1d };
#define EXTENDED 0x80000000u
#define EXTENDED_1 (EXTENDED + 1)

/* the first of a set is its head: a processor that announces it claims the set */
typedef struct feature {
    cgs_isa isa;
    uint32_t leaf, subleaf;
    int reg, bit;
    const char *name;
} feature;
static const feature features[] = {
    {CGS_ISA_V3, FEATURES, 0, EBX, 5, "AVX2"},
    {CGS_ISA_V3, BASIC, 0, ECX, 28, "AVX"},
    {CGS_ISA_V3, BASIC, 0, ECX, 12, "FMA"},
    {CGS_ISA_V3, BASIC, 0, ECX, 29, "F16C"},
    {CGS_ISA_V3, BASIC, 0, ECX, 22, "MOVBE"},
    {CGS_ISA_V3, BASIC, 0, ECX, 23, "POPCNT"},
    {CGS_ISA_V3, BASIC, 0, ECX, 20, "SSE4.2"},
    {CGS_ISA_V3, FEATURES, 0, EBX, 3, "BMI1"},
    {CGS_ISA_V3, FEATURES, 0, EBX, 8, "BMI2"},
    {CGS_ISA_V3, EXTENDED_1, 0, ECX, 5, "LZCNT"},
    {CGS_ISA_V4, FEATURES, 0, EBX, 16, "AVX512F"},
    {CGS_ISA_V4, FEATURES, 0, EBX, 30, "AVX512BW"},
    {CGS_ISA_V4, FEATURES, 0, EBX, 28, "AVX512CD"},
    {CGS_ISA_V4, FEATURES, 0, EBX, 17, "AVX512DQ"},
    {CGS_ISA_V4, FEATURES, 0, EBX, 31, "AVX512VL"},
    {CGS_ISA_AMX, FEATURES, 0, EDX, 24, "AMX_TILE"},
    {CGS_ISA_AMX, FEATURES, 0, EDX, 22, "AMX_BF16"},
    {CGS_ISA_AMX, FEATURES, 1, EAX, 5, "AVX512_BF16"},
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] };
static const feature pairs_of_bf16 = {CGS_ISA_V4, FEATURES, 1, EAX, 5, "AVX512_BF16"};

/* register state that the system must save and restore, bits of XCR0 */
static const struct {
    uint64_t bits;
    const char *name;
} saves[CGS_ISA_COUNT] = {
    [CGS_ISA_V3] = {0x6, "ymm"}, [CGS_ISA_V4] = {0xe6, "zmm"}, [CGS_ISA_AMX] = {0x600e6, "tile"}};

/* ---- the judgement --------------------------------------------------------------------------- */

typedef struct processor {
    const cgs_cpu_source *ask;
    uint32_t highest, highest_extended, highest_features;
    uint64_t saved;
} processor;

/* Leaves beyond the highest return garbage, so they are not read. */
static void leaf(const processor *p, uint32_t number, uint32_t subleaf, uint32_t out[4]) {
    memset(out, 0, 4 * sizeof *out);
    if (number > (number >= EXTENDED ? p->highest_extended : p->highest)) return;
    if (number == FEATURES && subleaf > p->highest_features) return;
    p->ask->cpuid(p->ask->user, number, subleaf, out);
}

static bool has(const processor *p, const feature *f) {
    uint32_t r[4];
    leaf(p, f->leaf, f->subleaf, r);
    return r[f->reg] >> f->bit & 1;
}

static processor look(const cgs_cpu_source *ask) {
    static const feature osxsave = {CGS_ISA_BASE, BASIC, 0, ECX, 27, "OSXSAVE"};
    processor p = {.ask = ask, .highest_extended = EXTENDED};
    uint32_t r[4];
    if (!ask) return p;
    leaf(&p, 0, 0, r);
    p.highest = r[EAX];
    leaf(&p, EXTENDED, 0, r);
    p.highest_extended = r[EAX] >= EXTENDED ? r[EAX] : 0;
    leaf(&p, FEATURES, 0, r);
    p.highest_features = r[EAX];
    if (has(&p, &osxsave)) p.saved = ask->saved(ask->user);
    return p;
}

static const feature *head_of(cgs_isa isa) {
    const feature *f = features;
    while (f->isa != isa) f++;
    return f;
}

/* whether our own code can use a set, given that it can use the one below; else says why not */
static bool usable(const processor *p, cgs_isa isa, char *why, size_t size) {
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (features[i].isa == isa && !has(p, &features[i])) {
            snprintf(why, size, "the processor has no %s", features[i].name);
            return false;
        }
    if ((p->saved & saves[isa].bits) != saves[isa].bits) {
        snprintf(why, size, "the system does not save %s registers (XCR0 is 0x%llx)",
                 saves[isa].name, (unsigned long long)p->saved);
        return false;
    }
    if (isa == CGS_ISA_AMX && !p->ask->tile_permission(p->ask->user)) {
        snprintf(why, size, "the system refuses permission to use tiles");
        return false;
    }
    return true;
}

/* Our own code knows the shape of tiles; libraries read it from leaf 0x1D and would use an empty
 * tile configuration if it is missing. */
static bool tiles_described(const processor *p, char *why, size_t size) {
    enum { PALETTE_BYTES = 8192, TILE_BYTES = 1024, ROW_BYTES = 64, COUNT = 8, ROWS = 16 };
    uint32_t palettes[4], one[4];
    if (p->highest < TILES) {
        snprintf(why, size, "CPUID has no leaf 0x1D, the highest is 0x%X", (unsigned)p->highest);
        return false;
    }
    leaf(p, TILES, 0, palettes);
    leaf(p, TILES, 1, one);
    unsigned count = one[EBX] >> 16, rows = one[ECX] & 0xffff, bytes = one[EBX] & 0xffff;
    bool right = palettes[EAX] >= 1 && one[EAX] == ((uint32_t)TILE_BYTES << 16 | PALETTE_BYTES) &&
                 count == COUNT && rows == ROWS && bytes == ROW_BYTES;
    if (!right)
        snprintf(why, size,
                 "CPUID leaf 0x1D has %u tiles of %u rows of %u bytes instead of 8, 16 and 64",
                 count, rows, bytes);
    return right;
}

static cgs_status obey(cgs_cpu_answer *out, const char *limit) {
    if (!limit || !*limit) return CGS_OK;
    for (int i = 0; i < CGS_ISA_COUNT; i++) {
        if (strcmp(names[i], limit) != 0) continue;
        cgs_isa isa = (cgs_isa)i;
        if (isa > out->found)
            return cgs_fail(CGS_EDEVICE,
                            "the instruction set %s was requested (--isa, CGS_ISA), but there is "
                            "only %s: %s",
                            limit, names[out->found], out->why);
        out->own = isa;
        if (isa < out->libraries) out->libraries = isa;
        return CGS_OK;
    }
    return cgs_fail(CGS_EARG,
                    "unknown instruction set \"%.40s\" (--isa, CGS_ISA): use base, v3, v4 or amx",
                    limit);
}

cgs_status cgs_cpu_judge(cgs_cpu_answer *out, const cgs_cpu_source *ask, const char *limit) {
    processor p = look(ask);
    char distrust[160] = "";
    *out = (cgs_cpu_answer){.libraries = CGS_ISA_AMX};
    if (!ask) snprintf(out->why, sizeof out->why, "this is no x86-64 processor");
    while (ask && out->found < CGS_ISA_AMX) {
        cgs_isa next = (cgs_isa)(out->found + 1);
        if (usable(&p, next, out->why, sizeof out->why)) {
            out->found = next;
            continue;
        }
        /* announced, but incomplete */
        if (has(&p, head_of(next))) {
            out->libraries = out->found;
            snprintf(distrust, sizeof distrust, "%s", out->why);
        }
        break;
    }
    if (out->found == CGS_ISA_AMX && !tiles_described(&p, distrust, sizeof distrust))
        out->libraries = CGS_ISA_V4;
    out->own = out->found;
    cgs_isa trusted = out->libraries;
    cgs_status rc = obey(out, limit);
    out->bf16 = out->own >= CGS_ISA_V4 && has(&p, &pairs_of_bf16);

    size_t n = 0, size = sizeof out->reason;
    n += (size_t)snprintf(out->reason, size, "%s for own code: ", names[out->own]);
    if (out->own < out->found)
        n += (size_t)snprintf(out->reason + n, size - n, "requested, the processor has %s",
                              names[out->found]);
    else
        n += (size_t)snprintf(out->reason + n, size - n, "%s",
                              *out->why ? out->why : "there is nothing higher");
    if (out->libraries == CGS_ISA_AMX)
        snprintf(out->reason + n, size - n, "; libraries choose for themselves");
    else
        snprintf(out->reason + n, size - n, "; libraries limited to %s: %s", names[out->libraries],
                 out->libraries < trusted ? "requested" : distrust);
    return rc;
}

/* ---- this process ---------------------------------------------------------------------------- */

#if defined __x86_64__

static void real_cpuid(void *user, uint32_t number, uint32_t subleaf, uint32_t out[4]) {
    (void)user;
    __cpuid_count(number, subleaf, out[EAX], out[EBX], out[ECX], out[EDX]);
}
static uint64_t real_saved(void *user) {
    (void)user;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
/* Linux reserves no state for tiles until it is asked to */
static bool real_tile_permission(void *user) {
    (void)user;
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
static const cgs_cpu_source real = {real_cpuid, real_saved, real_tile_permission, NULL};
#define REAL &real

#else
#define REAL NULL
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cgs_cpu_answer answer;
static cgs_status answer_status;
static char answer_sentence[320];

static void ask_once(void) {
    answer_status = cgs_cpu_judge(&answer, REAL, cgs_environment(CGS_ENV_ISA));
    if (answer_status != CGS_OK)
        snprintf(answer_sentence, sizeof answer_sentence, "%s", cgs_last_error());
}

const cgs_cpu_answer *cgs_cpu_ask(void) {
    pthread_once(&once, ask_once);
    return &answer;
}

cgs_status cgs_cpu_check(void) {
    cgs_cpu_ask();
    return answer_status == CGS_OK ? CGS_OK : cgs_fail(answer_status, "%s", answer_sentence);
}
