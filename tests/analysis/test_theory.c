/* test_theory.c - the statements of the theory: that they hold, that their checks can fail, and
 * the worked examples of the text. */
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

#include "analysis/linearise.h"
#include "analysis/quadratic_form.h"
#include "analysis/theory.h"
#include "analysis/theory_system.h"
#include "core/file.h"
#include "random_model.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static cgs_work work;

static int make_work(void **state) {
    (void)state;
    return cgs_work_create(&work, 400, CGS_SYSTEM_SIDE) == CGS_OK ? 0 : -1;
}

static int drop_work(void **state) {
    (void)state;
    cgs_work_destroy(&work);
    return 0;
}

/* ---- many systems ------------------------------------------------------------------ */

static void test_all_hold(void **state) {
    (void)state;
    cgs_theory_run run = {.systems = 400, .seed = 5, .tamper = 1};
    assert_int_equal(cgs_theory_try_all(&run, NULL, NULL), CGS_OK);
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++) {
        const cgs_finding *f = &run.finding[k];
        if (f->violations)
            print_message("%s: %d violations, worst on system %llu\n", cgs_statements[k].name,
                          f->violations, (unsigned long long)f->worst_system);
        assert_int_equal(f->violations, 0);
        assert_true(f->trials >= 10); /* the systems reach every statement's hypotheses */
        assert_int_equal(f->trials + f->outside, run.systems);
        assert_true(f->worst_margin >= 0);
    }
}

/* A bound that is wrong by a factor is found on a hundred systems.  The factor at which a
 * statement breaks says how tight it is. */
static void test_broken_bounds_are_caught(void **state) {
    (void)state;
    const double factors[] = {0.99, 0.8, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002};
    double broken[CGS_STATEMENT_COUNT] = {0};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        cgs_theory_run run = {.systems = 100, .seed = 5, .tamper = factors[i]};
        assert_int_equal(cgs_theory_try_all(&run, NULL, NULL), CGS_OK);
        for (int k = 0; k < CGS_STATEMENT_COUNT; k++)
            if (broken[k] == 0 && run.finding[k].violations) broken[k] = factors[i];
        bool all = true;
        for (int k = 0; k < CGS_STATEMENT_COUNT; k++) all = all && broken[k] > 0;
        if (all) break;
    }
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++) {
        print_message("%-30s caught at a factor of %g\n", cgs_statements[k].name, broken[k]);
        assert_true(broken[k] > 0);
    }
}

static void test_same_seed_same_result(void **state) {
    (void)state;
    cgs_theory_run a = {.systems = 20, .seed = 3, .tamper = 1}, b = a;
    assert_int_equal(cgs_theory_try_all(&a, NULL, NULL), CGS_OK);
    assert_int_equal(cgs_theory_try_all(&b, NULL, NULL), CGS_OK);
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++)
        assert_memory_equal(&a.finding[k].worst_margin, &b.finding[k].worst_margin, sizeof(double));
}

/* ---- worked examples --------------------------------------------------------------- */

/* rows one after the other */
static cgs_mat matrix(int rows, int cols, const double *x) {
    cgs_mat m = cgs_mat_new(&work, rows, cols);
    memcpy(m.x, x, sizeof(double) * (size_t)(rows * cols));
    return m;
}
#define MATRIX(rows, cols, ...) matrix(rows, cols, (const double[]){__VA_ARGS__})

static cgs_facts facts(cgs_system *s, cgs_mat A, cgs_mat B, cgs_mat cov, int H, double c) {
    cgs_facts f;
    *s = (cgs_system){.d = A.rows,
                      .da = B.cols,
                      .H = H,
                      .c = c,
                      .A = A,
                      .B = B,
                      .cov = cov,
                      .z0 = cgs_mat_new(&work, A.rows, 1),
                      .goal = cgs_mat_new(&work, A.rows, 1),
                      .sigma = 1,
                      .tau = 1,
                      .alpha = 0.25};
    s->goal.x[0] = 1;
    cgs_facts_derive(&f, s, &work);
    return f;
}

static cgs_theory_trial try_on(cgs_statement_id k, const cgs_facts *f) {
    return cgs_statement_try(&cgs_statements[k], f, &work, cgs_rng_stream(1, CGS_STREAM_TEST, 0),
                             1);
}

/* standardised z and a of correlation g: eigenvalues 1 -+ |g| */
static void test_correlated_coverage(void **state) {
    (void)state;
    for (double g = -0.9; g < 1; g += 0.3) {
        work.used = 0;
        cgs_system s;
        cgs_facts f = facts(&s, MATRIX(1, 1, 0.9), MATRIX(1, 1, 1), MATRIX(2, 2, 1, g, g, 1), 2, 1);
        NEAR(f.rho, 1 - fabs(g), 1e-12);
        NEAR(f.rho_bar, 1 + fabs(g), 1e-12);
    }
}

/* z = a in {-1, 1}, A = -1/2, B = 1/2: no loss, though A is not 1 and B^2 is not 1 */
static void test_singular_moment(void **state) {
    (void)state;
    work.used = 0;
    cgs_system s;
    cgs_facts f = facts(&s, MATRIX(1, 1, -0.5), MATRIX(1, 1, 0.5), MATRIX(2, 2, 1, 1, 1, 1), 2, 1);
    NEAR(f.loss, 0, 1e-15);
    assert_true(f.defect > 1);
    assert_true(f.rho == 0 && isinf(f.eps_loss));
    const cgs_statement_id needs[] = {CGS_ST_sandwich_low, CGS_ST_loss_to_bounds,
                                      CGS_ST_loss_floor};
    for (int i = 0; i < 3; i++)
        assert_string_equal(try_on(needs[i], &f).outside, "singular covariance");
    /* on the data's own subspace the sandwich is true */
    cgs_theory_trial t = try_on(CGS_ST_data_subspace, &f);
    assert_true(!t.outside && !t.violations && t.comparisons);
    cgs_quantity q[CGS_QUANTITIES_MAX];
    int n = cgs_system_quantities(&f, &work, 0, q), named = 0;
    for (int i = 0; i < n; i++)
        if (q[i].outside && !strcmp(q[i].outside, "singular covariance")) named++;
    assert_int_equal(named, 3); /* rho, rho^2 R, eps from the loss */
}

/* one action, two latents, B = e1, A = I + delta e2 e1^T */
static void test_weak_direction(void **state) {
    (void)state;
    const double deltas[] = {0.2, 0.05, 1e-2, 1e-3};
    for (int i = 0; i < 4; i++) {
        work.used = 0;
        double d = deltas[i], d2 = d * d;
        cgs_system s;
        cgs_facts f =
            facts(&s, MATRIX(2, 2, 1, 0, d, 1), MATRIX(2, 1, 1, 0), cgs_identity(&work, 3), 2, 1);
        NEAR(f.drift * f.drift, d2, 1e-14);
        NEAR(f.mixed, 0, 1e-15);
        NEAR(f.control, 0, 1e-15);
        NEAR(f.eps, d2, 1e-14);
        NEAR(f.xi, d2 * pow(1 + sqrt(1 + d2), 2), 1e-14);
        const double gamma[] = {1, 1, d, 0}, G[] = {1 + d2, 1, 1, 1};
        for (int k = 0; k < 4; k++) {
            NEAR(f.gamma.x[k], gamma[k], 1e-15);
            NEAR(f.G.x[k], G[k], 1e-15);
        }
        double root = sqrt(4 + d2 * d2);
        NEAR(f.lambda.x[0], (2 + d2 + root) / 2, 1e-13);
        NEAR(f.lambda.x[1] / ((2 + d2 - root) / 2), 1, 1e-7); /* the formula cancels */
        assert_int_equal(f.controllable, 2);
        NEAR(f.gap, d2 / 2, 1e-14);
        double kappa = f.lambda.x[0] / f.lambda.x[1];
        NEAR(kappa * d2 / 4, 1, d2); /* 4 / delta^2 in the limit */
        cgs_theory_trial t = try_on(CGS_ST_additional, &f);
        assert_true(!t.outside && !t.violations);
        /* the bound of the square case is no bound here */
        assert_true(kappa > (1 + f.xi) / (1 - f.xi));
        assert_string_equal(try_on(CGS_ST_effective_condition, &f).outside, "d != d_a");
    }
}

/* more actions than latents: a loss that cannot vanish */
static void test_few_latents(void **state) {
    (void)state;
    work.used = 0;
    cgs_system s;
    cgs_facts f = facts(&s, MATRIX(1, 1, 1), MATRIX(1, 2, 2, 0), cgs_identity(&work, 3), 2, 4);
    NEAR(f.loss, 16, 1e-12); /* rho^2 c^2 (d_a - d), attained */
    assert_string_equal(try_on(CGS_ST_best_control, &f).outside, "d < d_a");
}

/* without the mixed bound sqrt(eps) cannot be improved: A = (1 + sqrt(eps)) I, B = sqrt(c) I */
static void test_square_root_order(void **state) {
    (void)state;
    for (double eps = 1e-2; eps > 1e-9; eps /= 10) {
        work.used = 0;
        double a = 1 + sqrt(eps), b = sqrt(3);
        cgs_system s;
        cgs_facts f = facts(&s, MATRIX(2, 2, a, 0, 0, a), MATRIX(2, 2, b, 0, 0, b),
                            cgs_identity(&work, 4), 4, 3);
        NEAR(f.eps_ts, eps, 1e-12);
        assert_true(f.gap > sqrt(eps)); /* of order sqrt(eps), within 2 (H - 1) of it */
        assert_true(f.gap <= cgs_xi_ts(4, eps) * (1 + 1e-9));
    }
}

/* A = I, B a scaled rotation: one gradient step ends the planning, MPPI contracts evenly */
static void test_ideal(void **state) {
    (void)state;
    work.used = 0;
    double u = sqrt(2) * cos(0.3), v = sqrt(2) * sin(0.3);
    cgs_system s;
    cgs_facts f =
        facts(&s, cgs_identity(&work, 2), MATRIX(2, 2, u, -v, v, u), cgs_identity(&work, 4), 3, 2);
    NEAR(f.loss, 0, 1e-20);
    NEAR(f.xi, 0, 1e-14);
    NEAR(f.gap, 0, 1e-14);
    cgs_mat plan = cgs_random_normal(&work, &(cgs_rng){1, 0}, f.n, 1);
    cgs_mat step = cgs_mul(&work, f.G, cgs_plus(&work, plan, -1, f.best));
    plan = cgs_plus(&work, plan, -1 / (f.c * f.H), step);
    NEAR(cgs_system_cost(&s, &work, plan), 0, 1e-25);
    for (int i = 0; i < 2; i++) NEAR(1 / (1 + f.lambda.x[i]), 1 / (1 + f.s_mppi), 1e-14);
}

/* an even cost seen through an uneven proposal is uneven */
static void test_uneven_proposal(void **state) {
    (void)state;
    work.used = 0;
    cgs_system s;
    cgs_facts f =
        facts(&s, cgs_identity(&work, 2), cgs_identity(&work, 2), cgs_identity(&work, 4), 1, 1);
    cgs_mat root = MATRIX(2, 2, 2, 0, 0, 0.5), v, values;
    cgs_eigen(&work, cgs_mul(&work, root, cgs_mul(&work, f.G, root)), &values, &v);
    NEAR(values.x[0] / values.x[1], 16, 1e-12);
}

/* unequal drift gives unequal singular values, drift above c none at all */
static void test_best_control_examples(void **state) {
    (void)state;
    struct {
        double drift[2], square[2];
    } cases[] = {{{0, 0.5}, {1, 0.75}}, {{1.5, 2}, {0, 0}}, {{0, 0}, {1, 1}}};
    for (int i = 0; i < 3; i++) {
        work.used = 0;
        const double *d = cases[i].drift;
        cgs_system s;
        cgs_facts f = facts(&s, MATRIX(2, 2, 1 + d[0], 0, 0, 1 + d[1]), cgs_identity(&work, 2),
                            cgs_identity(&work, 4), 2, 1);
        cgs_quantity q[CGS_QUANTITIES_MAX];
        int n = cgs_system_quantities(&f, &work, 0, q), found = 0;
        for (int k = 0; k < n; k++) {
            if (!strcmp(q[k].name, "B*: largest squared singular value")) {
                NEAR(q[k].value, cases[i].square[0], 1e-12);
                found++;
            }
            if (!strcmp(q[k].name, "B*: smallest squared singular value")) {
                NEAR(q[k].value, cases[i].square[1], 1e-12);
                found++;
            }
        }
        assert_int_equal(found, 2);
        assert_int_equal(try_on(CGS_ST_best_control, &f).violations, 0);
    }
}

static void test_hypotheses_are_named(void **state) {
    (void)state;
    work.used = 0;
    cgs_system s;
    cgs_mat one = cgs_identity(&work, 2), cov = cgs_identity(&work, 4);
    cgs_facts far = facts(&s, cgs_scaled(&work, 3, one), one, cov, 3, 1);
    assert_true(far.eps >= 1 && isnan(far.xi));
    assert_string_equal(try_on(CGS_ST_hessian_gap, &far).outside, "eps >= 1");
    cgs_facts mid = facts(&s, cgs_scaled(&work, 1.2, one), one, cov, 3, 1);
    assert_true(mid.eps < 1 && mid.xi >= 1);
    assert_string_equal(try_on(CGS_ST_effective_condition, &mid).outside, "xi_H >= 1");
    assert_true(!try_on(CGS_ST_hessian_gap, &mid).outside);
    cgs_facts half = facts(&s, cgs_scaled(&work, 1.07, one), one, cov, 3, 1);
    assert_true(half.xi >= 0.5 && half.xi < 1);
    assert_string_equal(try_on(CGS_ST_cem_balance, &half).outside, "xi_H >= 1/2");
}

/* ---- numbers used by the statements ------------------------------------------------- */

static void test_quadratic_form(void **state) {
    (void)state;
    const double even[] = {1, 1, 1, 1}, pair[] = {2, 2}, uneven[] = {3, 0.4};
    for (double t = 0.1; t < 20; t *= 1.7) {
        NEAR(cgs_form_below(even, NULL, 4, -1, t), cgs_chi2_below(4, t), 1e-9);
        NEAR(cgs_form_below(even, NULL, 4, 2, t), cgs_chi2_below(6, t), 1e-9);
        NEAR(cgs_form_below(pair, NULL, 2, -1, t), 1 - exp(-t / 4), 1e-9);
    }
    NEAR(cgs_chi2_below(1, 3.841458820694124), 0.95, 1e-12);
    NEAR(cgs_chi2_quantile(3, 0.5), 2.365973884375338, 1e-10);
    NEAR(cgs_form_below(uneven, NULL, 2, -1, cgs_form_quantile(uneven, NULL, 2, 0.3)), 0.3, 1e-9);
    double q = -2 * log(0.75); /* r = 2 has a closed form */
    NEAR(cgs_cem_beta(0.25, 2), (1 - exp(-q / 2) * (1 + q / 2)) / 0.25, 1e-12);
    /* a shifted mean: one coordinate is a difference of normal distribution functions */
    const double l[] = {1}, m[] = {0.7};
    double root = sqrt(1.3),
           want = 0.5 * (erf((root - 0.7) / sqrt(2)) + erf((root + 0.7) / sqrt(2)));
    NEAR(cgs_form_below(l, m, 1, -1, 1.3), want, 1e-9);
    /* ... and its truncated first moment */
    double pi = acos(-1),
           tail = (exp(-pow(root + 0.7, 2) / 2) - exp(-pow(root - 0.7, 2) / 2)) / sqrt(2 * pi);
    NEAR(0.7 * cgs_form_below(l, m, 1, 0, 1.3), 0.7 * want + tail, 1e-9);
}

static void test_xi(void **state) {
    (void)state;
    NEAR(cgs_xi(1, 0.3), 0.3, 1e-15); /* one step: the control error alone */
    NEAR(cgs_xi_ts(1, 0.3), 0.3, 1e-15);
    for (int H = 2; H < 9; H++) NEAR(cgs_xi(H, 1e-12) / 1e-12, 2 * H * H - 3 * H + 2, 1e-3);
}

static void test_linearisation(void **state) {
    (void)state;
    cgs_device d;
    cgs_lewm *m = NULL;
    cgs_linearise *l = NULL;
    assert_int_equal(cgs_device_open(&d, "cpu", 0), CGS_OK);
    assert_int_equal(random_model(&m, &d, 4), CGS_OK);
    assert_int_equal(cgs_linearise_create(&l, m), CGS_OK);
    int D = m->config.width, n = cgs_lewm_action_block(&m->config);
    float *z = malloc(sizeof *z * (size_t)(D + n));
    double *A = malloc(sizeof *A * (size_t)(D * D + D * n)), error;
    assert_true(z && A);
    cgs_rng r = cgs_rng_stream(2, CGS_STREAM_TEST, 1);
    for (int i = 0; i < D + n; i++) z[i] = (float)cgs_rng_normal(&r);
    assert_int_equal(cgs_linearise_at(l, z, z + D, A, A + D * D), CGS_OK);
    for (uint64_t seed = 0; seed < 3; seed++) {
        assert_int_equal(cgs_linearise_check(l, z, z + D, A, A + D * D, seed, &error), CGS_OK);
        print_message("derivative against difference: %.2g\n", error);
        assert_true(error < 5e-3);
    }
    for (int i = 0; i < D * n; i++) A[D * D + i] *= 1.05; /* five hundredths off are seen */
    assert_int_equal(cgs_linearise_check(l, z, z + D, A, A + D * D, 0, &error), CGS_OK);
    assert_true(error > 5e-3);
    free(z);
    free(A);
    cgs_linearise_destroy(l);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

static void test_reading(void **state) {
    (void)state;
    const char *bad[][2] = {
        {"{", "not a JSON object"},
        {"{\"A\":[[1]],\"B\":[[1]],\"H\":2,\"c\":1}", "\"Sigma_x\" is not an array of rows"},
        {"{\"A\":[[1,2]],\"B\":[[1]],\"cov\":[[1,0],[0,1]],\"H\":2,\"c\":1}", "\"A\" is 1 x 2"},
        {"{\"A\":[[1]],\"B\":[[1]],\"cov\":[[1,0],[0]],\"H\":2,\"c\":1}", "row 1 has 1 numbers"},
        {"{\"A\":[[\"x\"]],\"B\":[[1]],\"cov\":[[1,0],[0,1]],\"H\":2,\"c\":1}",
         "entry (0, 0) is no finite number"},
        {"{\"A\":[[1]],\"B\":[[1]],\"cov\":[[1,0],[0,1]],\"H\":2.5,\"c\":1}", "\"H\" is 2.5"},
        {"{\"A\":[[1]],\"B\":[[1]],\"cov\":[[1,0],[0,1]],\"H\":2,\"c\":-1}",
         "\"c\" is not a positive number"},
        {"{\"A\":[[1]],\"B\":[[1]],\"cov\":[[1,2],[2,1]],\"H\":2,\"c\":1}",
         "has the eigenvalue -1"},
        {"{\"A\":[[1]],\"B\":[[1]],\"cov\":[[1,0.5],[0,1]],\"H\":2,\"c\":1}", "differ"},
    };
    char path[] = "/tmp/cgs-theory-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cgs_system s;
        cgs_work w;
        assert_int_equal(cgs_write_file(path, bad[i][0], strlen(bad[i][0])), CGS_OK);
        assert_int_equal(cgs_system_read(&s, &w, path), CGS_EFORMAT);
        if (!strstr(cgs_last_error(), bad[i][1])) fail_msg("%s", cgs_last_error());
        cgs_work_destroy(&w);
    }
    const char *good = "{\"A\":[[0.9]],\"B\":[[1.1]],\"Sigma_x\":[[1,0],[0,1]],\"H\":3,\"c\":1}";
    cgs_system s;
    cgs_work w;
    cgs_facts f;
    assert_int_equal(cgs_write_file(path, good, strlen(good)), CGS_OK);
    assert_int_equal(cgs_system_read(&s, &w, path), CGS_OK);
    cgs_facts_derive(&f, &s, &w);
    NEAR(f.drift, 0.1, 1e-15);
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++)
        assert_int_equal(
            cgs_statement_try(&cgs_statements[k], &f, &w, (cgs_rng){7, 0}, 1).violations, 0);
    cgs_work_destroy(&w);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_hold),
        cmocka_unit_test(test_broken_bounds_are_caught),
        cmocka_unit_test(test_same_seed_same_result),
        cmocka_unit_test(test_correlated_coverage),
        cmocka_unit_test(test_singular_moment),
        cmocka_unit_test(test_weak_direction),
        cmocka_unit_test(test_few_latents),
        cmocka_unit_test(test_square_root_order),
        cmocka_unit_test(test_ideal),
        cmocka_unit_test(test_uneven_proposal),
        cmocka_unit_test(test_best_control_examples),
        cmocka_unit_test(test_hypotheses_are_named),
        cmocka_unit_test(test_quadratic_form),
        cmocka_unit_test(test_xi),
        cmocka_unit_test(test_linearisation),
        cmocka_unit_test(test_reading),
    };
    return cmocka_run_group_tests(tests, make_work, drop_work);
}
