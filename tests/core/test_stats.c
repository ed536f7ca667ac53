/* test_stats.c - NumPy's generator, start selection, manifests and statistics.
 *
 * The generator's expected values were printed by NumPy 1.24; those of intervals and tests
 * come from closed forms or from the worked examples of their authors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/numpy_rng.h"
#include "core/statistics.h"
#include "eval/starts.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g, expected %.17g within %g", value, expected, tolerance);
}

/* ---- NumPy ------------------------------------------------------------------------- */

static void test_numpy_raw(void **state) {
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(14276969152011380360), UINT64_C(8095878257575067585),
        UINT64_C(15838336090824644132), UINT64_C(12864169557245331597)};
    cgs_numpy_rng r = cgs_numpy_rng_create(42);
    for (int i = 0; i < 4; i++) assert_true(cgs_numpy_u64(&r) == expected[i]);
}

/* random(), integers() of 4, 43 and 32 bits, and random() again over a buffered half */
static void test_numpy_draws(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        double random[3];
        int small[8];
        uint64_t large[2], word[2];
        double last;
    } cases[] = {
        {0,
         {0.6369616873214543, 0.2697867137638703, 0.04097352393619469},
         {0, 0, 1, 8, 6, 9, 5, 6},
         {3647482804919, 2718124957327},
         {2404827117, 4016105479},
         0.8158535541215322},
        {42,
         {0.7739560485559633, 0.4388784397520523, 0.8585979199113825},
         {0, 6, 2, 0, 5, 9, 7, 7},
         {3930321526384, 640568163377},
         {3606691182, 1934392873},
         0.37079802423258124},
        {(UINT64_C(1) << 40) + 7,
         {0.829812891829413, 0.25530515834910417, 0.15379071585298754},
         {5, 6, 8, 7, 0, 4, 6, 0},
         {186360033283, 668431057939},
         {1049661138, 3870717010},
         0.3383665949438819},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        cgs_numpy_rng r = cgs_numpy_rng_create(cases[c].seed);
        for (int i = 0; i < 3; i++) assert_true(cgs_numpy_random(&r) == cases[c].random[i]);
        for (int i = 0; i < 8; i++)
            assert_int_equal((int)cgs_numpy_bounded(&r, 9), cases[c].small[i]);
        for (int i = 0; i < 2; i++)
            assert_true(cgs_numpy_bounded(&r, UINT64_C(4999999999999)) == cases[c].large[i]);
        for (int i = 0; i < 2; i++)
            assert_true(cgs_numpy_bounded(&r, UINT32_MAX) == cases[c].word[i]);
        assert_true(cgs_numpy_random(&r) == cases[c].last);
    }
}

/* ranges so large that many draws are rejected */
static void test_numpy_rejection(void **state) {
    (void)state;
    static const uint64_t narrow[] = {267752861, 2321868146, 1299045707, 2092104087, 604408607,
                                      282532043, 1579436936, 2926867055, 2152431831, 1539679719};
    static const uint64_t wide[] = {UINT64_C(4154077065378586297), UINT64_C(3420008128027789334),
                                    UINT64_C(5938607544058144518), UINT64_C(7588636456839696479),
                                    UINT64_C(588610295420051415),  UINT64_C(7633550208585727291)};
    cgs_numpy_rng r = cgs_numpy_rng_create(42);
    for (int i = 0; i < COUNT(narrow); i++)
        assert_true(cgs_numpy_bounded(&r, 3000000000) == narrow[i]);
    for (int i = 0; i < COUNT(wide); i++)
        assert_true(cgs_numpy_bounded(&r, (UINT64_C(1) << 63) + 5) == wide[i]);
    assert_int_equal((int)cgs_numpy_bounded(&r, 99), 12);
}

static void test_numpy_permutation(void **state) {
    (void)state;
    static const int64_t ten[] = {5, 6, 0, 7, 3, 2, 4, 9, 1, 8};
    static const int64_t head[] = {45262, 49850, 30394, 90177, 95569, 10900};
    int64_t *p = malloc(sizeof *p * 100000), sum = 0;
    assert_non_null(p);
    cgs_numpy_rng r = cgs_numpy_rng_create(42);
    cgs_numpy_permutation(&r, p, 10);
    assert_memory_equal(p, ten, sizeof ten);
    r = cgs_numpy_rng_create(42);
    cgs_numpy_permutation(&r, p, 100000);
    assert_memory_equal(p, head, sizeof head);
    for (int64_t i = 0; i < 100000; i++) sum += p[i] * i % 1000003;
    assert_true(sum == INT64_C(50067448952));
    free(p);
}

/* both algorithms and their border; the sum depends on every element and its place */
static void test_numpy_choice(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        int64_t population, size, first[3], sum;
    } cases[] = {
        {0, 1900000, 50, {142953, 53807, 1608476}, 23696002},
        {1, 1900000, 50, {1434782, 576064, 37662}, 29449052},
        {42, 1900000, 50, {764578, 975113, 855719}, 24260518},
        {(UINT64_C(1) << 40) + 7, 1900000, 50, {158159, 452099, 485068}, 26537715},
        {0, 5000, 50, {372, 141, 4216}, 2974077},
        {1, 100, 100, {10, 13, 87}, 255218},
        {42, 60, 59, {47, 53, 2}, 53587},
        {42, 10000, 10000, {2990, 3041, 3760}, 4957665004},
        {42, 10001, 10001, {1591, 6497, 3899}, 4942259729},
        {0, 20000, 2000, {6840, 4709, 2968}, 970713159},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        int64_t *out = malloc(sizeof *out * (size_t)cases[c].size), sum = 0;
        assert_non_null(out);
        cgs_numpy_rng r = cgs_numpy_rng_create(cases[c].seed);
        assert_int_equal(cgs_numpy_choice(&r, cases[c].population, cases[c].size, out), CGS_OK);
        assert_memory_equal(out, cases[c].first, sizeof cases[c].first);
        for (int64_t i = 0; i < cases[c].size; i++) sum += out[i] * (i + 1) % 1000003;
        assert_true(sum == cases[c].sum);
        free(out);
    }
    /* the draws after a choice continue where NumPy's do */
    int64_t out[50];
    cgs_numpy_rng r = cgs_numpy_rng_create(0);
    assert_int_equal(cgs_numpy_choice(&r, 1900000, 50, out), CGS_OK);
    assert_int_equal((int)cgs_numpy_bounded(&r, 999), 832);
    assert_int_equal(cgs_numpy_choice(&r, 10, 11, out), CGS_EARG);
}

/* ---- starts ------------------------------------------------------------------------ */

/* equal episodes one after another */
static cgs_episodes make_episodes(int64_t count, int64_t length) {
    int64_t *l = malloc(sizeof *l * (size_t)count), *o = malloc(sizeof *o * (size_t)count);
    assert_true(l && o);
    for (int64_t e = 0; e < count; e++) {
        l[e] = length;
        o[e] = e * length;
    }
    return (cgs_episodes){.count = count, .length = l, .offset = o};
}

static void free_episodes(cgs_episodes *ep) {
    free((void *)ep->length);
    free((void *)ep->offset);
}

/* the published vectors, reached through episodes: 19000 of 125 rows have V = 1900000,
 * and drawing from V + 1 - 1 positions needs one valid row more */
static void test_starts_published(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        int64_t position[5];
    } cases[] = {{0, {5203, 10169, 15740, 31401, 41993}},
                 {1, {37662, 52361, 66218, 117838, 162901}},
                 {42, {121251, 129047, 163293, 169572, 175056}}};
    cgs_episodes ep = make_episodes(19001, 125);
    ((int64_t *)ep.length)[19000] = 26; /* a single valid row */
    for (int c = 0; c < COUNT(cases); c++) {
        cgs_start_rule rule = {.count = 50, .goal_offset = 25, .seed = cases[c].seed};
        cgs_starts s;
        assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
        assert_int_equal(s.count, 50);
        for (int i = 0; i < 5; i++) {
            int64_t at = cases[c].position[i];
            assert_true(s.start[i].episode == at / 100 && s.start[i].step == at % 100);
            assert_true(s.start[i].row == at / 100 * 125 + at % 100);
        }
        cgs_starts_free(&s);

        ep.count = 19000; /* the same population with the newer range */
        rule.whole_range = true;
        assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
        assert_true(s.start[0].episode * 100 + s.start[0].step == cases[c].position[0]);
        cgs_starts_free(&s);
        ep.count = 19001;
    }
    free_episodes(&ep);
}

/* uneven episodes: every valid row can be drawn, no other; short and unused ones never */
static void test_starts_rows(void **state) {
    (void)state;
    static const int64_t length[] = {30, 25, 26, 0, 40}, offset[] = {0, 30, 55, 90, 90};
    static const uint8_t use[] = {0, 1, 1, 1, 1};
    cgs_episodes ep = {.count = 5, .length = length, .offset = offset};
    int64_t available;
    assert_int_equal(cgs_starts_available(&ep, 25, &available), CGS_OK);
    assert_int_equal(available, 5 + 0 + 1 + 0 + 15);

    cgs_start_rule rule = {.count = 21, .goal_offset = 25, .seed = 3, .whole_range = true};
    cgs_starts s;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
    for (int i = 0; i < 21; i++) {
        int64_t row = i < 5 ? i : i == 5 ? 55 : 90 + i - 6;
        assert_int_equal(s.start[i].row, row);
        assert_int_equal(s.start[i].episode, i < 5 ? 0 : i == 5 ? 2 : 4);
        assert_true(s.start[i].step + 25 < length[s.start[i].episode]);
    }
    cgs_starts_free(&s);

    /* the last valid row is out of reach of the published range */
    rule.whole_range = false;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "21 rows"));
    rule.count = 20;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
    assert_int_equal(s.start[19].row, 103);
    cgs_starts_free(&s);

    ep.use = use;
    rule = (cgs_start_rule){.count = 16, .goal_offset = 25, .seed = 3, .whole_range = true};
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
    assert_int_equal(s.start[0].row, 55);
    cgs_starts_free(&s);
}

static cgs_status skip_odd(void *ctx, const cgs_start *s, bool *skip) {
    (*(int *)ctx)++;
    *skip = s->row % 2;
    return CGS_OK;
}

static cgs_status skip_all(void *ctx, const cgs_start *s, bool *skip) {
    (void)ctx;
    (void)s;
    *skip = true;
    return CGS_OK;
}

static cgs_status filter_fails(void *ctx, const cgs_start *s, bool *skip) {
    (void)ctx;
    (void)skip;
    return cgs_fail(CGS_EIO, "row %lld cannot be read", (long long)s->row);
}

static bool contains(const cgs_starts *s, int64_t row) {
    for (int i = 0; i < s->count; i++)
        if (s->start[i].row == row) return true;
    return false;
}

/* skipped starts are replaced, the others stay, none comes twice */
static void test_starts_filter(void **state) {
    (void)state;
    cgs_episodes ep = make_episodes(20, 60);
    cgs_start_rule rule = {.count = 50, .goal_offset = 25, .seed = 1};
    cgs_starts all, even;
    int calls = 0, kept = 0;
    assert_int_equal(cgs_starts_choose(&all, &ep, &rule, NULL, NULL), CGS_OK);
    assert_int_equal(cgs_starts_choose(&even, &ep, &rule, skip_odd, &calls), CGS_OK);
    assert_true(calls > 50);
    for (int i = 0; i < 50; i++) {
        assert_true(even.start[i].row % 2 == 0);
        if (i > 0) assert_true(even.start[i].row > even.start[i - 1].row);
        if (all.start[i].row % 2 == 0) {
            kept++;
            assert_true(contains(&even, all.start[i].row));
        }
    }
    assert_true(kept > 10 && kept < 40);
    cgs_starts_free(&even);

    assert_int_equal(cgs_starts_choose(&even, &ep, &rule, skip_all, NULL), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "excluded"));
    assert_null(even.start);
    assert_int_equal(cgs_starts_choose(&even, &ep, &rule, filter_fails, NULL), CGS_EIO);
    cgs_starts_free(&all);
    free_episodes(&ep);
}

static void test_starts_refused(void **state) {
    (void)state;
    static const int64_t length[] = {30, 30}, overlap[] = {0, 29}, offset[] = {0, 30};
    cgs_episodes ep = {.count = 2, .length = length, .offset = overlap};
    cgs_start_rule rule = {.count = 1, .goal_offset = 25};
    cgs_starts s;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EFORMAT);
    ep.offset = offset;
    rule.goal_offset = 0;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EARG);
    rule = (cgs_start_rule){.count = 0, .goal_offset = 25};
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EARG);
    rule = (cgs_start_rule){.count = 1, .goal_offset = 30}; /* longer than the data */
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EARG);
    ep.count = 0;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_EARG);
}

/* ---- manifests --------------------------------------------------------------------- */

static char folder[] = "/tmp/cgs_starts_XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/starts.jsonl", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* plain writing: hundreds of files need no fsync */
static void put(const char *text, size_t bytes) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void test_manifest_round_trip(void **state) {
    (void)state;
    cgs_episodes ep = make_episodes(20, 60);
    cgs_start_rule rule = {.count = 50,
                           .goal_offset = 25,
                           .seed = UINT64_MAX,
                           .whole_range = true,
                           .skip_solved = true};
    cgs_starts s, back;
    assert_int_equal(cgs_starts_choose(&s, &ep, &rule, NULL, NULL), CGS_OK);
    strcpy(s.dataset.s, "two \"rooms\"\n.h5");
    assert_int_equal(cgs_starts_save(&s, path), CGS_OK);
    assert_int_equal(cgs_starts_load(&back, path, &ep), CGS_OK);
    assert_int_equal(back.count, 50);
    assert_memory_equal(back.start, s.start, sizeof(cgs_start) * 50);
    assert_string_equal(back.dataset.s, s.dataset.s);
    assert_true(back.rule.seed == UINT64_MAX && back.rule.whole_range && back.rule.skip_solved);
    assert_true(!back.rule.held_out && back.rule.goal_offset == 25 && back.rule.count == 50);
    assert_true(back.episodes == 20 && back.rows == 1200);
    cgs_starts_free(&back);

    /* another dataset is noticed by its size, or by a start that it does not have */
    cgs_episodes other = make_episodes(21, 60);
    assert_int_equal(cgs_starts_load(&back, path, &other), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "made for a dataset of 20 episodes"));
    other.count = 20;
    for (int64_t e = 0; e < 19; e++) ((int64_t *)other.length)[e] = 26;
    assert_int_equal(cgs_starts_load(&back, path, &other), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "is no start in episode"));
    free_episodes(&other);

    /* every truncation is refused, with or without a dataset to compare with */
    char *text;
    size_t bytes;
    assert_int_equal(cgs_read_file(path, 1 << 20, &text, &bytes), CGS_OK);
    for (size_t n = 0; n + 1 < bytes; n += n < 300 ? 1 : 37) {
        put(text, n);
        if (cgs_starts_load(&back, path, n % 2 ? &ep : NULL) != CGS_EFORMAT)
            fail_msg("%zu of %zu bytes were accepted", n, bytes);
        assert_null(back.start);
    }
    /* a flipped bit is refused or gives starts inside the dataset */
    for (size_t n = 0; n < bytes; n += n < 300 ? 1 : 11) {
        text[n] ^= 1 << n % 7;
        put(text, bytes);
        if (cgs_starts_load(&back, path, &ep) == CGS_OK)
            for (int i = 0; i < back.count; i++)
                assert_true(back.start[i].row >= 0 &&
                            back.start[i].row + back.rule.goal_offset < 1200);
        cgs_starts_free(&back);
        text[n] ^= 1 << n % 7;
    }
    free(text);
    cgs_starts_free(&s);
    free_episodes(&ep);
}

#define HEAD(version, count, seed)                                                                 \
    "{\"format\":\"cgs-starts\",\"version\":" version ",\"dataset\":\"d\",\"episodes\":2,"         \
    "\"rows\":60,\"count\":" count ",\"seed\":" seed ",\"goal_offset\":25,"                        \
    "\"whole_range\":false,\"held_out\":false,\"skip_solved\":false}\n"
#define LINE "{\"episode\":0,\"step\":1,\"row\":1}\n"

static void test_manifest_hostile(void **state) {
    (void)state;
    static const struct {
        const char *text, *names; /* what the sentence must contain */
    } cases[] = {
        {"", "empty"},
        {"\n", ":1: not a JSON object"},
        {"[1]\n", "not a JSON object"},
        {"{}\n", "\"format\" is missing"},
        {"{\"format\":\"other\"}\n", "format \"other\""},
        {HEAD("2", "1", "\"0\"") LINE, "version 2"},
        {HEAD("1", "2", "\"0\"") LINE, "1 of the 2 starts"},
        {HEAD("1", "1", "\"0\"") LINE LINE, ":3: more than the 1 starts"},
        {HEAD("1", "9999999", "\"0\"") LINE, "cannot hold the 9999999"},
        {HEAD("1", "1e300", "\"0\"") LINE, "\"count\""},
        {HEAD("1", "-1", "\"0\"") LINE, "\"count\" is -1"},
        {HEAD("1", "1.5", "\"0\"") LINE, "\"count\" is 1.5"},
        {HEAD("1", "1", "0") LINE, "\"seed\" is missing or not a short text"},
        {HEAD("1", "1", "\"-1\"") LINE, "not a 64-bit number"},
        {HEAD("1", "1", "\"18446744073709551616\"") LINE, "not a 64-bit number"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":2,\"step\":1,\"row\":1}\n", ":2: \"episode\" is 2"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":0,\"step\":1,\"row\":60}\n", "\"row\" is 60"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":0,\"step\":\"1\",\"row\":1}\n",
         "\"step\" is missing"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":0,\"step\":5,\"row\":5}\n", "is no start"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":0,\"step\":1,\"row\":2}\n", "is no start"},
        {HEAD("1", "1", "\"0\"") "{\"episode\":0,\"step\":1,\"row\":1} x\n", "not a JSON object"},
    };
    cgs_episodes ep = make_episodes(2, 30);
    cgs_starts s;
    const char *good = HEAD("1", "1", "\"0\"") LINE;
    put(good, strlen(good));
    assert_int_equal(cgs_starts_load(&s, path, &ep), CGS_OK);
    cgs_starts_free(&s);
    for (int c = 0; c < COUNT(cases); c++) {
        put(cases[c].text, strlen(cases[c].text));
        assert_int_equal(cgs_starts_load(&s, path, &ep), CGS_EFORMAT);
        if (!strstr(cgs_last_error(), cases[c].names) || !strstr(cgs_last_error(), path))
            fail_msg("case %d: \"%s\" does not name \"%s\"", c, cgs_last_error(), cases[c].names);
    }
    /* deep nesting must not exhaust the stack */
    size_t deep = 1 << 20;
    char *text = malloc(deep);
    assert_non_null(text);
    memset(text, '[', deep);
    put(text, deep);
    assert_int_equal(cgs_starts_load(&s, path, &ep), CGS_EFORMAT);
    free(text);
    assert_int_equal(cgs_starts_load(&s, "/nowhere/starts.jsonl", &ep), CGS_EIO);
    free_episodes(&ep);
}

/* ---- statistics -------------------------------------------------------------------- */

static void test_moments(void **state) {
    (void)state;
    double rates[] = {10, 12, 20}, odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_near(cgs_mean(rates, 3), 14, 1e-15);
    assert_near(cgs_sample_sd(rates, 3), sqrt((16 + 4 + 36) / 2.0), 1e-14);
    assert_near(cgs_sample_sd(one, 1), 0, 0);
    assert_near(cgs_median(odd, 3), 3, 0);
    assert_near(cgs_median(even, 4), 2.5, 0);
    assert_near(cgs_percentile(even, 4, 0), 1, 0);
    assert_near(cgs_percentile(even, 4, 100), 4, 0);
    assert_near(cgs_percentile(even, 4, 25), 1.75, 1e-15);
    assert_near(cgs_percentile(one, 1, 90), 7, 0);
}

/* 81 of 263 and 15 of 148: Newcombe's 1998 examples; 0 of n ends at z^2 / (n + z^2) */
static void test_wilson(void **state) {
    (void)state;
    cgs_interval w = cgs_wilson(81, 263);
    assert_near(w.low, 0.2553, 5e-5);
    assert_near(w.high, 0.3662, 5e-5);
    w = cgs_wilson(15, 148);
    assert_near(w.low, 0.0624, 5e-5);
    assert_near(w.high, 0.1605, 5e-5);
    w = cgs_wilson(0, 20);
    assert_near(w.low, 0, 0);
    assert_near(w.high, 3.841458820694124 / 23.841458820694124, 1e-12);
    w = cgs_wilson(29, 29);
    assert_near(w.low, 29 / 32.841458820694124, 1e-12);
    assert_near(w.high, 1, 0);
    w = cgs_wilson(0, 0);
    assert_true(w.low == 0 && w.high == 1);
}

static void test_mcnemar(void **state) {
    (void)state;
    assert_near(cgs_mcnemar(0, 0), 1, 0);
    assert_near(cgs_mcnemar(0, 5), 2.0 / 32, 1e-15);
    assert_near(cgs_mcnemar(5, 0), 2.0 / 32, 1e-15);
    assert_near(cgs_mcnemar(2, 8), 2 * (1 + 10 + 45) / 1024.0, 1e-14);
    assert_near(cgs_mcnemar(4, 4), 1, 0);
    assert_near(cgs_mcnemar(1, 7), 2 * 9 / 256.0, 1e-14); /* 0.0703 */
    assert_near(cgs_mcnemar(0, 1000) * ldexp(1, 999), 1, 1e-9);
    assert_near(cgs_mcnemar(2000, 2000), 1, 0);
}

/* the interval contains the estimate, mirrors when the two methods swap, and has the values
 * printed for the examples of 21 and 50 pairs */
static void test_newcombe(void **state) {
    (void)state;
    cgs_interval a = cgs_newcombe(1, 1, 7, 12), b = cgs_newcombe(1, 7, 1, 12);
    assert_near(a.low, -b.high, 1e-15);
    assert_near(a.high, -b.low, 1e-15);
    assert_near(a.low, -0.507, 5e-4);
    assert_near(a.high, -0.026, 5e-4);
    a = cgs_newcombe(36, 12, 2, 0);
    assert_near(a.low, 0.0569, 5e-5);
    assert_near(a.high, 0.3404, 5e-5);
    a = cgs_newcombe(50, 0, 0, 0);
    assert_true(a.low < 0 && a.high > 0 && a.high < 0.08);
}

static void test_bootstrap(void **state) {
    (void)state;
    enum { N = 400 };
    double x[N];
    uint8_t a[N], b[N];
    for (int i = 0; i < N; i++) {
        a[i] = i % 10 < 7;
        b[i] = i % 10 < 6 || i % 100 == 9;
        x[i] = a[i] + 1e-5 * i;
    }
    /* the mean of 400 with rate 0.7 has a standard error of 0.0229 */
    cgs_interval one, two, other;
    assert_int_equal(cgs_bootstrap_mean(x, N, 4000, 1, &one), CGS_OK);
    assert_int_equal(cgs_bootstrap_mean(x, N, 4000, 1, &two), CGS_OK);
    assert_int_equal(cgs_bootstrap_mean(x, N, 4000, 2, &other), CGS_OK);
    assert_memory_equal(&one, &two, sizeof one);
    assert_true(one.low != other.low || one.high != other.high);
    assert_near(one.low, 0.702 - 1.96 * 0.0229, 0.004);
    assert_near(one.high, 0.702 + 1.96 * 0.0229, 0.004);
    assert_int_equal(cgs_bootstrap_mean(x, 0, 10, 1, &one), CGS_EARG);
    /* the median of 400 from a uniform law has a standard error of 1 / (2 sqrt(400)) */
    for (int i = 0; i < N; i++) x[i] = (i + 0.5) / N;
    assert_int_equal(cgs_bootstrap_median(x, N, 4000, 1, &one), CGS_OK);
    assert_near(one.low, 0.5 - 1.96 * 0.025, 0.005);
    assert_near(one.high, 0.5 + 1.96 * 0.025, 0.005);
    assert_near(x[0], 0.5 / N, 1e-18); /* left as it was */

    cgs_paired p;
    assert_int_equal(cgs_compare_paired(a, b, N, 4000, 1, &p), CGS_OK);
    assert_int_equal(p.both, 240);
    assert_int_equal(p.only_a, 40);
    assert_int_equal(p.only_b, 4);
    assert_int_equal(p.neither, 116);
    assert_near(p.difference, 0.09, 1e-15);
    assert_true(p.p < 1e-6);
    /* (40 + 4 - 36^2 / 400) / 400^2 is the variance of the difference */
    double se = sqrt((44 - 36.0 * 36 / N) / N / N);
    assert_near(p.bootstrap.low, 0.09 - 1.96 * se, 0.004);
    assert_near(p.bootstrap.high, 0.09 + 1.96 * se, 0.004);
    assert_near(p.newcombe.low, 0.09 - 1.96 * se, 0.006);
    assert_near(p.newcombe.high, 0.09 + 1.96 * se, 0.006);
    assert_int_equal(cgs_compare_paired(a, b, 0, 10, 1, &p), CGS_EARG);
}

static void test_nauc(void **state) {
    (void)state;
    double out;
    double flat[] = {30, 30, 30, 30}, x[] = {1, 2, 5, 10};
    assert_int_equal(cgs_nauc(x, flat, 4, &out), CGS_OK);
    assert_near(out, 30, 1e-12);
    /* (1*(0+10)/2 + 3*(10+40)/2 + 5*(40+50)/2) / 9 = (5 + 75 + 225) / 9 */
    double s[] = {0, 10, 40, 50};
    assert_int_equal(cgs_nauc(x, s, 4, &out), CGS_OK);
    assert_near(out, 305.0 / 9, 1e-12);
    /* K = 1, 2, 4, ..., 256 on a logarithmic axis: ends count half */
    double k[9], rate[9] = {10, 20, 30, 40, 50, 60, 70, 80, 100};
    for (int i = 0; i < 9; i++) k[i] = log2(1 << i);
    assert_int_equal(cgs_nauc(k, rate, 9, &out), CGS_OK);
    assert_near(out, (5 + 20 + 30 + 40 + 50 + 60 + 70 + 80 + 50) / 8.0, 1e-12);

    double back[] = {1, 2, 2, 3}, bad[] = {1, 2, NAN, 3};
    assert_int_equal(cgs_nauc(back, s, 4, &out), CGS_EARG);
    assert_int_equal(cgs_nauc(bad, s, 4, &out), CGS_EARG);
    assert_int_equal(cgs_nauc(x, bad, 4, &out), CGS_ENUMERIC);
    assert_int_equal(cgs_nauc(x, s, 1, &out), CGS_EARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numpy_raw),
        cmocka_unit_test(test_numpy_draws),
        cmocka_unit_test(test_numpy_rejection),
        cmocka_unit_test(test_numpy_permutation),
        cmocka_unit_test(test_numpy_choice),
        cmocka_unit_test(test_starts_published),
        cmocka_unit_test(test_starts_rows),
        cmocka_unit_test(test_starts_filter),
        cmocka_unit_test(test_starts_refused),
        cmocka_unit_test(test_manifest_round_trip),
        cmocka_unit_test(test_manifest_hostile),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_wilson),
        cmocka_unit_test(test_mcnemar),
        cmocka_unit_test(test_newcombe),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_nauc),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
