/* test_team.c - shared loops: every piece runs once, meetings hold, late helpers hold up nobody. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/team.h"

enum { MOST = 1000 };

typedef struct job {
    size_t n;
    int rounds;
    _Atomic int times[MOST];
    int first[MOST], second[MOST];
    _Atomic int wrong;
    _Atomic unsigned members; /* bits */
} job;

static void count(void *context) {
    job *j = context;
    j->members |= 1u << cgs_member();
    CGS_SHARE (i, j->n) j->times[i]++;
    CGS_QUEUE (i, j->n) j->times[i]++;
}

static void test_each_piece_once(void **state) {
    (void)state;
    static job j;
    for (int threads = 1; threads <= 5; threads++)
        for (size_t n = 0; n <= 40; n += n < 4 ? 1 : 9)
            for (int round = 0; round < 50; round++) {
                j.n = n;
                for (size_t i = 0; i < MOST; i++) j.times[i] = 0;
                j.members = 0;
                cgs_together(threads, count, &j);
                for (size_t i = 0; i < MOST; i++) assert_int_equal(j.times[i], i < n ? 2 : 0);
                assert_true(j.members & 1);
                assert_true(j.members < 1u << threads);
            }
}

/* what one loop writes the next reads from other places; more loops than a region has counters */
static void chain(void *context) {
    job *j = context;
    for (int round = 0; round < j->rounds; round++) {
        CGS_SHARE (i, j->n) j->first[i] = round + (int)i;
        cgs_meet();
        CGS_SHARE (i, j->n) {
            size_t from = j->n - 1 - i;
            if (j->first[from] != round + (int)from) j->wrong++;
            j->second[i] = j->first[from];
        }
        cgs_meet();
    }
    for (int loop = 0; loop < 30; loop++)
        CGS_SHARE (i, j->n) j->times[i]++;
}

static void test_meetings(void **state) {
    (void)state;
    static job j;
    for (int threads = 1; threads <= 4; threads++) {
        j = (job){.n = MOST, .rounds = 40};
        for (int repeat = 0; repeat < 20; repeat++) cgs_together(threads, chain, &j);
        assert_int_equal(j.wrong, 0);
        for (size_t i = 0; i < MOST; i++) {
            assert_int_equal(j.times[i], 20 * 30);
            assert_int_equal(j.second[i], j.rounds - 1 + (int)(MOST - 1 - i));
        }
    }
}

/* ---- inside each other, beside each other, after a fork ------------------------------------ */

static void nest(void *context) {
    job *outer = context;
    CGS_QUEUE (i, outer->n) {
        static _Thread_local job inner;
        inner = (job){.n = 10};
        int before = cgs_member();
        cgs_together(4, count, &inner);
        if (cgs_member() != before || inner.members != 1) outer->wrong++;
        for (size_t k = 0; k < inner.n; k++)
            if (inner.times[k] != 2) outer->wrong++;
        outer->times[i]++;
    }
    cgs_meet();
    CGS_SHARE (i, outer->n) outer->times[i]++;
}

static void test_nested_regions_run_alone(void **state) {
    (void)state;
    static job j;
    j = (job){.n = 50};
    cgs_together(3, nest, &j);
    assert_int_equal(j.wrong, 0);
    for (size_t i = 0; i < j.n; i++) assert_int_equal(j.times[i], 2);
}

/* each member takes pieces and works on them by itself, with loops and barriers of its own */
static void work_apart(void *context) {
    job *inner = context;
    int member = cgs_member();
    chain(inner);
    if (cgs_member() != member) inner->wrong++;
}

static void split(void *context) {
    job *outer = context;
    CGS_SHARE (i, outer->n) {
        static _Thread_local job inner;
        inner = (job){.n = 10, .rounds = 2};
        int before = cgs_member();
        outer->members |= 1u << before;
        cgs_apart(work_apart, &inner);
        if (inner.wrong || cgs_member() != before) outer->wrong++;
        for (size_t k = 0; k < inner.n; k++)
            if (inner.times[k] != 30) outer->wrong++;
        outer->times[i]++;
    }
    cgs_meet();
    CGS_SHARE (i, outer->n) outer->times[i]++;
}

static void test_members_apart(void **state) {
    (void)state;
    static job j;
    for (int threads = 1; threads <= 4; threads++) {
        j = (job){.n = 50};
        cgs_together(threads, split, &j);
        assert_int_equal(j.wrong, 0);
        assert_true(j.members < 1u << threads);
        for (size_t i = 0; i < j.n; i++) assert_int_equal(j.times[i], 2);
    }
    j = (job){.n = 10, .rounds = 2}; /* outside of a team */
    cgs_apart(work_apart, &j);
    assert_int_equal(j.wrong, 0);
}

static void *lead(void *context) {
    job *j = context;
    for (int i = 0; i < 100; i++) cgs_together(2, chain, j);
    return NULL;
}

static void test_leaders_do_not_meet(void **state) {
    (void)state;
    enum { LEADERS = 4 };
    static job j[LEADERS];
    pthread_t thread[LEADERS];
    for (int i = 0; i < LEADERS; i++) {
        j[i] = (job){.n = 100, .rounds = 3};
        assert_int_equal(pthread_create(&thread[i], NULL, lead, &j[i]), 0);
    }
    for (int i = 0; i < LEADERS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(j[i].wrong, 0);
        for (size_t k = 0; k < j[i].n; k++) assert_int_equal(j[i].times[k], 100 * 30);
    }
}

/* a forked child has no helpers, and does their work */
static void test_after_a_fork(void **state) {
    (void)state;
    static job j;
    j = (job){.n = 100, .rounds = 3};
    cgs_together(2, chain, &j);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        j = (job){.n = 100, .rounds = 3};
        alarm(20); /* a child that waits for helpers ends badly */
        cgs_together(2, chain, &j);
        bool right = !j.wrong;
        for (size_t i = 0; i < j.n; i++) right = right && j.times[i] == 30;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_piece_once),          cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_nested_regions_run_alone), cmocka_unit_test(test_members_apart),
        cmocka_unit_test(test_leaders_do_not_meet),      cmocka_unit_test(test_after_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
