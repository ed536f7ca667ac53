/* test_onednn.c - what ops/cpu/onednn.h promises beside right numbers, which test_cpu.c looks at:
 * lanes that run at the same time, right factors that products share, and exhausted memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "expect.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/onednn.h"

/* ---- allocations that fail on demand ----------------------------------------- */

static long until_failure = -1; /* allocations that still succeed; negative: all of them */

static bool fails(void) { return until_failure >= 0 && until_failure-- == 0; }

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
void *__wrap_aligned_alloc(size_t alignment, size_t n) {
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}

/* ---- the cases --------------------------------------------------------------------------- */

enum { M = 150, N = 96, K = 72, LANES = 4, ROUNDS = 40 };

static cgs_onednn *library;

static int open_library(void **state) {
    (void)state;
    OK(cgs_onednn_create(&library, LANES));
    return 0;
}

static int close_library(void **state) {
    (void)state;
    cgs_onednn_destroy(library);
    return 0;
}

static void test_version(void **state) {
    (void)state;
    char text[32];
    int major, minor, patch;
    cgs_onednn_version(text, sizeof text);
    print_message("oneDNN: %s\n", text);
    if (!library)
        assert_string_equal(text, "none");
    else
        assert_int_equal(sscanf(text, "%d.%d.%d", &major, &minor, &patch), 3);
}

/* what one thread multiplies again and again */
typedef struct worker {
    const cgs_onednn_product *g;
    cgs_onednn_packed *packed; /* the shared right factor, or NULL */
    const float *B, *bias;
    int lane;
    bool packs; /* its own copy of the right factor before each run */
    float A[M * K], C[M * N];
} worker;

static void *work(void *user) {
    worker *w = user;
    for (int i = 0; i < ROUNDS; i++) {
        memset(w->C, 0, sizeof w->C);
        if (w->packs) cgs_onednn_pack(w->g, w->lane, w->packed, w->B);
        cgs_onednn_run(w->g, w->lane, w->C, w->A, w->B, w->packed, w->bias);
    }
    return NULL;
}

static void random_numbers(float *x, size_t n, uint64_t index) {
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, index);
    for (size_t i = 0; i < n; i++) x[i] = cgs_rng_f32(&r) - 0.5f;
}

/* lanes side by side give the bits that one lane gives alone */
static void lanes_agree(const cgs_product *p, bool own_copies) {
    static worker workers[LANES];
    static float B[K * N], bias[N], alone[LANES][M * N];
    cgs_onednn_product *g;
    cgs_onednn_packed *packed[LANES] = {NULL};
    OK(cgs_onednn_product_create(&g, library, p, p, NULL));
    assert_non_null(g);
    bool packs = cgs_onednn_packed_bytes(g) > 0;
    int copies = !packs ? 0 : own_copies ? LANES : 1;
    print_message("%zu bytes of %d packed, %d copies\n", cgs_onednn_packed_bytes(g), K * N * 4,
                  copies);
    random_numbers(B, K * N, 0);
    random_numbers(bias, N, 1);
    for (int i = 0; i < copies; i++) {
        OK(cgs_onednn_packed_create(&packed[i], g));
        cgs_onednn_pack(g, 0, packed[i], B);
    }
    for (int i = 0; i < LANES; i++) {
        worker *w = &workers[i];
        *w = (worker){.g = g,
                      .packed = packed[own_copies ? i : 0],
                      .B = B,
                      .bias = p->bias ? bias : NULL,
                      .packs = packs && own_copies};
        random_numbers(w->A, M * K, (uint64_t)i + 2);
        work(w);
        memcpy(alone[i], w->C, sizeof w->C);
        w->lane = i;
    }
    pthread_t threads[LANES];
    for (int i = 0; i < LANES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < LANES; i++) {
        assert_memory_equal(workers[i].C, alone[i], sizeof alone[i]);
        cgs_onednn_packed_destroy(packed[i]);
    }
    assert_memory_not_equal(alone[0], alone[1], sizeof alone[0]);
    cgs_onednn_product_destroy(g);
}

static void test_lanes(void **state) {
    (void)state;
    if (!library) skip();
    const cgs_product products[] = {
        {.M = M, .N = N, .K = K, .bias = true},
        {.M = M, .N = N, .K = K, .b_transposed = true, .accumulate = true},
        {.M = M, .N = N, .K = K, .a_transposed = true}};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        lanes_agree(&products[i], false);
        lanes_agree(&products[i], true);
    }
}

/* a factor packed for few rows serves a product of many exactly when it is said to */
static void test_shared_factor(void **state) {
    (void)state;
    if (!library) skip();
    static float A[M * K], B[K * N], C[M * N], again[M * N];
    const cgs_product few = {.M = 8, .N = N, .K = K, .b_transposed = true},
                      many = {.M = M, .N = N, .K = K, .b_transposed = true},
                      other = {.M = M, .N = N / 2, .K = K, .b_transposed = true};
    cgs_onednn_product *f, *m, *o;
    cgs_onednn_packed *for_few = NULL, *for_many = NULL;
    OK(cgs_onednn_product_create(&f, library, &few, &few, NULL));
    OK(cgs_onednn_product_create(&m, library, &many, &many, NULL));
    OK(cgs_onednn_product_create(&o, library, &other, &other, NULL));
    assert_true(f && m && o);
    assert_true(cgs_onednn_same_layout(m, m));
    assert_false(cgs_onednn_same_layout(m, o));
    random_numbers(A, M * K, 0);
    random_numbers(B, K * N, 1);
    bool shared = cgs_onednn_same_layout(f, m) && cgs_onednn_packed_bytes(m) > 0;
    print_message("8 and %d rows: %s\n", M, shared ? "one layout" : "two layouts, or none");
    if (shared) {
        OK(cgs_onednn_packed_create(&for_few, f));
        OK(cgs_onednn_packed_create(&for_many, m));
        cgs_onednn_pack(f, 0, for_few, B);
        cgs_onednn_pack(m, 0, for_many, B);
        cgs_onednn_run(m, 0, C, A, B, for_few, NULL);
        cgs_onednn_run(m, 0, again, A, B, for_many, NULL);
        assert_memory_equal(C, again, sizeof C);
    }
    cgs_onednn_packed_destroy(for_few);
    cgs_onednn_packed_destroy(for_many);
    cgs_onednn_product_destroy(f);
    cgs_onednn_product_destroy(m);
    cgs_onednn_product_destroy(o);
}

/* the n-th allocation fails, for every n until all goes well: a sentence each time, and nothing
 * is freed twice or lost (under the address sanitizer) */
static void test_no_memory(void **state) {
    (void)state;
    const cgs_product p = {.M = M, .N = N, .K = K, .b_transposed = true, .accumulate = true};
    int failures = 0;
    for (long n = 0;; n++) {
        cgs_device d;
        cgs_gemm *g = NULL;
        cgs_prepacked *kept = NULL;
        static float B[K * N];
        OK(cgs_device_open(&d, "cpu", 1));
        until_failure = n;
        cgs_status rc = cgs_gemm_prepare(&d, &p, &g);
        bool prepared = rc == CGS_OK;
        if (rc == CGS_OK) rc = cgs_gemm_prepack(&d, g, B, &kept);
        bool reached = until_failure < 0;
        until_failure = -1;
        if (rc != CGS_OK) {
            failures++;
            assert_int_equal(rc, CGS_ENOMEM);
            assert_non_null(strstr(cgs_last_error(), "no memory"));
            assert_null(kept);
            /* with memory again, the same call makes the whole product */
            if (!prepared) assert_null(g);
            OK(cgs_gemm_prepare(&d, &p, &g));
            OK(cgs_gemm_prepack(&d, g, B, &kept));
        } else {
            assert_false(reached);
        }
        cgs_gemm_drop(&d, kept);
        cgs_device_close(&d);
        if (!reached) break;
        assert_true(n < 1000);
    }
    print_message("%d allocations\n", failures);
    assert_true(failures >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_shared_factor),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
