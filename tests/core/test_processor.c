/* test_processor.c - which instructions are used on processors that we do not have, and how many
 * cores a container counts: CPUID and control groups are made up.  Then the real ones. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/cores.h"
#include "core/cpu.h"
#include "core/threads.h"
#include "expect.h"
#include "ops/cpu/cpu.h"

/* ---- made-up processors ---------------------------------------------------------------------- */

enum { EAX, EBX, ECX, EDX };

typedef struct fake {
    uint32_t highest, highest_extended, highest_features;
    uint32_t basic[4], features[4], more_features[4], extended[4]; /* 1, 7.0, 7.1, 0x80000001 */
    uint32_t palettes[4], palette[4];                              /* 0x1D.0, 0x1D.1 */
    uint64_t saved;
    bool permission;
    int asked_saved, asked_permission;
} fake;

static void fake_cpuid(void *user, uint32_t leaf, uint32_t subleaf, uint32_t out[4]) {
    const fake *f = user;
    static const uint32_t nonsense[4] = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
    uint32_t top[4] = {leaf >> 31 ? f->highest_extended : f->highest, 0, 0, 0};
    const uint32_t *from = nonsense;
    if (leaf == 0 || leaf == 0x80000000) from = top;
    if (leaf == 1) from = f->basic;
    if (leaf == 7 && subleaf == 0) from = f->features;
    if (leaf == 7 && subleaf == 1) from = f->more_features;
    if (leaf == 0x80000001) from = f->extended;
    if (leaf == 0x1d) from = subleaf ? f->palette : f->palettes;
    memcpy(out, from, 4 * sizeof *out);
    if (leaf == 7 && subleaf == 0) out[EAX] = f->highest_features;
    /* real processors answer missing leaves like the highest one */
    if (leaf < 0x80000000 && leaf > f->highest) memcpy(out, nonsense, sizeof nonsense);
}
static uint64_t fake_saved(void *user) {
    fake *f = user;
    f->asked_saved++;
    return f->saved;
}
static bool fake_permission(void *user) {
    fake *f = user;
    f->asked_permission++;
    return f->permission;
}

/* a processor with everything; the tests take away from it */
static fake whole(void) {
    return (fake){.highest = 0x20,
                  .highest_extended = 0x80000008,
                  .highest_features = 1,
                  /* SSE3 SSSE3 FMA CX16 SSE4.1 SSE4.2 MOVBE POPCNT XSAVE OSXSAVE AVX F16C */
                  .basic = {[ECX] = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 |
                                    1u << 22 | 1u << 23 | 1u << 26 | 1u << 27 | 1u << 28 |
                                    1u << 29},
                  .features = {[EBX] = 1u << 3 | 1u << 5 | 1u << 8 | 1u << 16 | 1u << 17 |
                                       1u << 28 | 1u << 30 | 1u << 31,
                               [EDX] = 1u << 22 | 1u << 24 | 1u << 25},
                  .more_features = {[EAX] = 1u << 5},
                  .extended = {[ECX] = 1u << 0 | 1u << 5},
                  .palettes = {[EAX] = 1},
                  .palette = {1024u << 16 | 8192, 8u << 16 | 64, 16, 0},
                  .saved = 0x600e7,
                  .permission = true};
}

static cgs_cpu_answer judge(fake *f, const char *limit) {
    cgs_cpu_source ask = {fake_cpuid, fake_saved, fake_permission, f};
    cgs_cpu_answer a;
    OK(cgs_cpu_judge(&a, &ask, limit));
    return a;
}

/* own code, products of bf16 pairs, libraries, a piece of the reason */
static void expect(fake *f, cgs_isa own, bool bf16, cgs_isa libraries, const char *reason) {
    cgs_cpu_answer a = judge(f, NULL);
    print_message("%s\n", a.reason);
    assert_int_equal(a.found, own);
    assert_int_equal(a.own, own);
    assert_int_equal(a.bf16, bf16);
    assert_int_equal(a.libraries, libraries);
    assert_non_null(strstr(a.reason, reason));
}

static void test_everything(void **state) {
    (void)state;
    fake f = whole();
    expect(&f, CGS_ISA_AMX, true, CGS_ISA_AMX, "libraries choose for themselves");
    assert_int_equal(f.asked_permission, 1);
}

static void test_old(void **state) {
    (void)state;
    /* nothing beyond SSE4.2, and no leaf 7 */
    fake f = whole();
    f.highest = 5;
    f.basic[ECX] = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23;
    expect(&f, CGS_ISA_BASE, false, CGS_ISA_AMX, "no AVX2");
    assert_int_equal(f.asked_saved, 0); /* xgetbv would be illegal */
    assert_int_equal(f.asked_permission, 0);

    /* AVX alone: v3 is not claimed, so libraries may find AVX */
    f = whole();
    f.basic[ECX] &= ~(1u << 12 | 1u << 22 | 1u << 29);
    f.features[EBX] = 0, f.features[EDX] = 0;
    expect(&f, CGS_ISA_BASE, false, CGS_ISA_AMX, "no AVX2");

    /* AVX2 */
    f = whole();
    f.features[EBX] = 1u << 3 | 1u << 5 | 1u << 8, f.features[EDX] = 0, f.saved = 7;
    expect(&f, CGS_ISA_V3, false, CGS_ISA_AMX, "no AVX512F");

    /* AVX-512 of the first server processors */
    f = whole();
    f.features[EDX] = 0, f.highest_features = 0, f.saved = 0xe7;
    expect(&f, CGS_ISA_V4, false, CGS_ISA_AMX, "no AMX_TILE");

    /* the next with products of bf16 pairs */
    f.highest_features = 1;
    expect(&f, CGS_ISA_V4, true, CGS_ISA_AMX, "no AMX_TILE");

    /* what no leaf describes is not there, whatever an answer for it would be */
    f = whole();
    f.highest_extended = 0x80000000;
    expect(&f, CGS_ISA_BASE, false, CGS_ISA_BASE, "no LZCNT");
}

/* every bit of a set counts, and an incomplete set limits libraries to the one below */
static void test_in_pieces(void **state) {
    (void)state;
    static const struct {
        size_t where;
        int reg, bit;
        cgs_isa own;
        const char *name;
    } bits[] = {
        {offsetof(fake, basic), ECX, 12, CGS_ISA_BASE, "no FMA"},
        {offsetof(fake, basic), ECX, 20, CGS_ISA_BASE, "no SSE4.2"},
        {offsetof(fake, basic), ECX, 22, CGS_ISA_BASE, "no MOVBE"},
        {offsetof(fake, basic), ECX, 23, CGS_ISA_BASE, "no POPCNT"},
        {offsetof(fake, basic), ECX, 28, CGS_ISA_BASE, "no AVX"},
        {offsetof(fake, basic), ECX, 29, CGS_ISA_BASE, "no F16C"},
        {offsetof(fake, features), EBX, 3, CGS_ISA_BASE, "no BMI1"},
        {offsetof(fake, features), EBX, 8, CGS_ISA_BASE, "no BMI2"},
        {offsetof(fake, extended), ECX, 5, CGS_ISA_BASE, "no LZCNT"},
        {offsetof(fake, features), EBX, 17, CGS_ISA_V3, "no AVX512DQ"},
        {offsetof(fake, features), EBX, 28, CGS_ISA_V3, "no AVX512CD"},
        {offsetof(fake, features), EBX, 30, CGS_ISA_V3, "no AVX512BW"},
        {offsetof(fake, features), EBX, 31, CGS_ISA_V3, "no AVX512VL"},
        {offsetof(fake, features), EDX, 22, CGS_ISA_V4, "no AMX_BF16"},
    };
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        fake f = whole();
        uint32_t *reg = (uint32_t *)(void *)((char *)&f + bits[i].where) + bits[i].reg;
        assert_true(*reg & 1u << bits[i].bit);
        *reg &= ~(1u << bits[i].bit);
        expect(&f, bits[i].own, bits[i].own >= CGS_ISA_V4, bits[i].own, bits[i].name);
    }
    fake f = whole();
    f.more_features[EAX] = 0;
    expect(&f, CGS_ISA_V4, false, CGS_ISA_V4, "no AVX512_BF16");
}

static void test_not_saved(void **state) {
    (void)state;
    fake f = whole();
    f.basic[ECX] &= ~(1u << 27); /* the system does not use XSAVE */
    expect(&f, CGS_ISA_BASE, false, CGS_ISA_BASE, "does not save ymm");
    assert_int_equal(f.asked_saved, 0);
    f = whole();
    f.saved = 3;
    expect(&f, CGS_ISA_BASE, false, CGS_ISA_BASE, "does not save ymm");
    f.saved = 7;
    expect(&f, CGS_ISA_V3, false, CGS_ISA_V3, "does not save zmm");
    f.saved = 0x67; /* not the upper sixteen */
    expect(&f, CGS_ISA_V3, false, CGS_ISA_V3, "does not save zmm");
    f.saved = 0xe7;
    expect(&f, CGS_ISA_V4, true, CGS_ISA_V4, "does not save tile");
    f.saved = 0x200e7;
    expect(&f, CGS_ISA_V4, true, CGS_ISA_V4, "does not save tile");
    f = whole();
    f.permission = false;
    expect(&f, CGS_ISA_V4, true, CGS_ISA_V4, "refuses permission");
}

/* AMX is announced and works, and what describes its tiles is missing or wrong */
static void test_tiles_hidden(void **state) {
    (void)state;
    fake f = whole();
    f.highest = 0x1c;
    expect(&f, CGS_ISA_AMX, true, CGS_ISA_V4, "no leaf 0x1D, the highest is 0x1C");

    static const uint32_t wrong[][4] = {{0, 0, 0, 0},
                                        {1024u << 16 | 8192, 8u << 16 | 64, 8, 0},
                                        {1024u << 16 | 8192, 8u << 16 | 32, 16, 0},
                                        {1024u << 16 | 8192, 4u << 16 | 64, 16, 0},
                                        {1024u << 16 | 4096, 8u << 16 | 64, 16, 0},
                                        {512u << 16 | 8192, 8u << 16 | 64, 16, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        f = whole();
        memcpy(f.palette, wrong[i], sizeof f.palette);
        expect(&f, CGS_ISA_AMX, true, CGS_ISA_V4, "leaf 0x1D has");
    }
    f = whole();
    f.palettes[EAX] = 0;
    expect(&f, CGS_ISA_AMX, true, CGS_ISA_V4, "leaf 0x1D has");
}

static void test_limits(void **state) {
    (void)state;
    fake f = whole();
    for (int i = 0; i < CGS_ISA_COUNT; i++) {
        cgs_isa isa = (cgs_isa)i;
        cgs_cpu_answer a = judge(&f, cgs_isa_name(isa));
        assert_int_equal(a.found, CGS_ISA_AMX);
        assert_int_equal(a.own, isa);
        assert_int_equal(a.libraries, isa);
        assert_int_equal(a.bf16, isa >= CGS_ISA_V4);
        assert_int_equal(strstr(a.reason, "requested") != NULL, isa < CGS_ISA_AMX);
    }
    assert_int_equal(judge(&f, "").own, CGS_ISA_AMX);

    /* a request does not lift what is not trusted */
    f.highest = 0x1c;
    assert_int_equal(judge(&f, "amx").own, CGS_ISA_AMX);
    assert_int_equal(judge(&f, "amx").libraries, CGS_ISA_V4);
    assert_int_equal(judge(&f, "v3").libraries, CGS_ISA_V3);

    cgs_cpu_source ask = {fake_cpuid, fake_saved, fake_permission, &f};
    cgs_cpu_answer a;
    f.features[EBX] &= ~(1u << 16);
    REFUSED(cgs_cpu_judge(&a, &ask, "v4"), CGS_EDEVICE, "v4");
    assert_non_null(strstr(cgs_last_error(), "only v3"));
    assert_int_equal(a.own, CGS_ISA_V3);
    REFUSED(cgs_cpu_judge(&a, &ask, "avx2"), CGS_EARG, "\"avx2\"");
    REFUSED(cgs_cpu_judge(&a, &ask, "V3"), CGS_EARG, "base, v3, v4 or amx");
}

/* no CPUID at all: another architecture */
static void test_elsewhere(void **state) {
    (void)state;
    cgs_cpu_answer a;
    OK(cgs_cpu_judge(&a, NULL, NULL));
    assert_int_equal(a.own, CGS_ISA_BASE);
    assert_int_equal(a.libraries, CGS_ISA_AMX);
    assert_false(a.bf16);
    OK(cgs_cpu_judge(&a, NULL, "base"));
    REFUSED(cgs_cpu_judge(&a, NULL, "v3"), CGS_EDEVICE, "only base");
}

/* the processor that this runs on: gcc's own detection knows the vectors, and every set up to the
 * answer runs */
static void test_real(void **state) {
    (void)state;
    const cgs_cpu_answer *a = cgs_cpu_ask();
    print_message("%s\n", a->reason);
    OK(cgs_cpu_check());
#if defined __x86_64__
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    assert_int_equal(a->found >= CGS_ISA_V3, v3);
    assert_int_equal(a->found >= CGS_ISA_V4, v4);
    if (a->own >= CGS_ISA_V4) assert_int_equal(a->bf16, __builtin_cpu_supports("avx512bf16") != 0);
#else
    assert_int_equal(a->found, CGS_ISA_BASE);
#endif
    cgs_device d;
    OK(cgs_device_open(&d, "cpu", 1));
    assert_string_equal(cgs_cpu_isa(&d), cgs_isa_name(a->own));
    for (int i = 0; i < CGS_ISA_COUNT; i++) {
        cgs_status rc = cgs_cpu_limit_isa(&d, cgs_isa_name((cgs_isa)i), false);
        if ((cgs_isa)i <= a->own)
            OK(rc);
        else
            assert_int_not_equal(rc, CGS_OK);
    }
    cgs_device_close(&d);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static char root[64];

static int open_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/cgs-processor-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}
static int remove_root(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* writes root/path with all its folders */
static void put(const char *path, const char *text) {
    char whole_path[512];
    snprintf(whole_path, sizeof whole_path, "%s%s", root, path);
    for (char *p = whole_path + strlen(root) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(whole_path, 0777);
            *p = '/';
        }
    FILE *f = fopen(whole_path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void expect_quota(double want) {
    double got = cgs_cores_quota(root);
    if (got < want - 1e-9 || got > want + 1e-9) fail_msg("quota %g, not %g", got, want);
}

static void test_no_groups(void **state) {
    (void)state;
    expect_quota(0);
    put("/proc/self/cgroup", "nonsense\n::\n0\n\n");
    put("/proc/self/mountinfo", "nonsense - \n1 2 3 - cgroup2\n");
    expect_quota(0);
}

/* cgroup v2: the group's own limit, and the tighter one of a group around it */
static void test_unified(void **state) {
    (void)state;
    put("/proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    put("/proc/self/cgroup", "0::/user.slice/job\n");
    expect_quota(0);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    expect_quota(0);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
    expect_quota(1.5);
    put("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    expect_quota(0.5);
    put("/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
    expect_quota(1.5);
    put("/sys/fs/cgroup/cpu.max", "20000 20000\n");
    expect_quota(1);
    put("/sys/fs/cgroup/cpu.max", "-5 0\n");
    expect_quota(1.5);
    /* another group's limit is not ours */
    put("/proc/self/cgroup", "0::/user\n");
    expect_quota(0);
}

/* in a container: the group is its own top, or its path is only known outside */
static void test_container(void **state) {
    (void)state;
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    put("/proc/self/mountinfo", "9 8 0:27 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/proc/self/cgroup", "0::/\n");
    expect_quota(2.5);
    put("/proc/self/cgroup", "0::/../other\n");
    expect_quota(2.5);
    put("/proc/self/mountinfo", "9 8 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/proc/self/cgroup", "0::/docker/abc\n");
    expect_quota(2.5);
    put("/proc/self/cgroup", "0::/docker/abc/inner\n");
    put("/sys/fs/cgroup/inner/cpu.max", "75000 100000\n");
    expect_quota(0.75);
}

/* cgroup v1, with the unified tree beside it */
static void test_controllers(void **state) {
    (void)state;
    put("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuset rw - cgroup cgroup rw,cpuset,cpu\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "3:cpuacct:/wrong\n2:cpuset,cpu:/a/b\n0::/\n");
    put("/sys/fs/cgroup/cpu,cpuset/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuset/a/b/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpuacct/wrong/cpu.cfs_quota_us", "1\n");
    put("/sys/fs/cgroup/cpuacct/wrong/cpu.cfs_period_us", "100000\n");
    expect_quota(0);
    put("/sys/fs/cgroup/cpu,cpuset/a/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu,cpuset/a/cpu.cfs_period_us", "100000\n");
    expect_quota(3);
    put("/sys/fs/cgroup/cpu,cpuset/a/b/cpu.cfs_quota_us", "60000\n");
    expect_quota(0.6);
}

/* the numbers of this process fit together, and are what a device gets */
static void test_real_cores(void **state) {
    (void)state;
    cgs_cores c = cgs_cores_ask();
    print_message("%d cores allowed, quota %g, %d used\n", c.allowed, c.quota, c.use);
    assert_in_range(c.use, 1, c.allowed);
    if (c.quota > 0)
        assert_true(c.use < c.quota + 1);
    else
        assert_int_equal(c.use, c.allowed);
    cgs_set_threads(0);
    assert_int_equal(cgs_threads(), c.use);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_old),
        cmocka_unit_test(test_in_pieces),
        cmocka_unit_test(test_not_saved),
        cmocka_unit_test(test_tiles_hidden),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_real),
        cmocka_unit_test_setup_teardown(test_no_groups, open_root, remove_root),
        cmocka_unit_test_setup_teardown(test_unified, open_root, remove_root),
        cmocka_unit_test_setup_teardown(test_container, open_root, remove_root),
        cmocka_unit_test_setup_teardown(test_controllers, open_root, remove_root),
        cmocka_unit_test(test_real_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
