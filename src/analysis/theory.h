/* theory.h - the statements of the theory, each with a check that can fail.
 *
 * One table (CGS_STATEMENTS) names every statement, says what it claims and under which hypotheses,
 * and points to the function that checks it on one linear system.  A check makes comparisons
 * through the three functions below; they keep the smallest margin and count what is violated.  A
 * system outside a statement's hypotheses is not a trial, and the failed hypothesis is stored by
 * name.
 *
 * tamper is 1 except in tests, where it corrupts every bound to show that the checks notice. */
#ifndef CGS_ANALYSIS_THEORY_H
#define CGS_ANALYSIS_THEORY_H

#include "analysis/linear_system.h"

typedef struct cgs_theory_trial {
    double tamper;
    cgs_rng rng;         /* of this statement and system */
    const char *outside; /* the hypothesis that does not hold, or NULL */
    int comparisons, violations;
    double margin;    /* smallest: (bound - value) / bound, or tolerance left over; < 0 violated */
    double tightness; /* largest value / bound; -1 when there was no inequality */
    double error;     /* largest relative error of an equality; -1 when there was none */
} cgs_theory_trial;

/* value <= bound, up to rounding of numbers of the size `scale` */
void cgs_at_most(cgs_theory_trial *t, double value, double bound, double scale);
/* value == expected, to 1e-8 of `scale` */
void cgs_equal(cgs_theory_trial *t, double value, double expected, double scale);
/* ... to `tolerance` of it, where numerical methods limit what can be seen */
void cgs_equal_within(cgs_theory_trial *t, double value, double expected, double scale,
                      double tolerance);
/* the mean of n samples is the expected one, within CGS_DEVIATIONS standard errors */
#define CGS_DEVIATIONS 6.0
void cgs_mean_is(cgs_theory_trial *t, double mean, double standard_error, double expected);

typedef void (*cgs_check_fn)(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t);

/* X(function, name, claim, hypotheses, how it is checked), in the order of the paper */
#define CGS_STATEMENTS(X)                                                                          \
    CGS_STATEMENTS_TRANSITION(X)                                                                   \
    CGS_STATEMENTS_HORIZON(X)                                                                      \
    CGS_STATEMENTS_QUADRATIC(X)                                                                    \
    CGS_STATEMENTS_MPPI(X)                                                                         \
    CGS_STATEMENTS_CEM(X)                                                                          \
    CGS_STATEMENTS_GD(X)                                                                           \
    CGS_STATEMENTS_GN(X)                                                                           \
    CGS_STATEMENTS_DRIFT(X)

/* clang-format off */
#define CGS_STATEMENTS_TRANSITION(X)                                                               \
    X(fixed_radius, "Appendix D.1, cosine", "cosine loss = L_G / r_delta^4", "fixed radii, D invertible",   \
      "both losses over all pairs of a finite set with fixed radii")                               \
    X(coverage, "Assumption 4.1", "rho I <= cov <= rho_bar I", "bounded features",                 \
      "largest eigenvalue against the largest |x|^2 of a finite set")                              \
    X(innovation, "Appendix D.1, innovation", "cov > 0 iff the action innovation's moment > 0", "cov_z > 0",    \
      "det cov = det cov_z det innovation")                                                        \
    X(trace_identity, "Appendix D.1, trace", "L_G = tr(Q cov Q cov) = |cov^1/2 Q cov^1/2|^2", "none",      \
      "sum over all pairs of a finite set with that second moment")                                \
    X(trace_sampled, "Appendix D.1, sampled", "L_G is the mean of (dz.dz' - c a.a')^2", "none",     \
      "2048 independent pairs, within 6 standard errors")                                          \
    X(defect_blocks, "Appendix D.1, blocks", "R(A,B) = |Q|_F^2", "none", "three blocks against the whole")  \
    X(sandwich_low, "Proposition 4.2, lower", "rho^2 R <= L_G", "cov not singular",                \
      "as stated, rho the smallest eigenvalue")                                                    \
    X(sandwich_high, "Proposition 4.2, upper", "L_G <= rho_bar^2 R", "none",                       \
      "as stated, rho_bar the largest eigenvalue")                                                 \
    X(zero_loss, "Proposition 4.2, zero", "L_G = 0 iff A = I and B^T B = c I",                     \
      "cov not singular, d >= d_a", "loss of the ideal system; of the given one > 0")              \
    X(data_subspace, "Appendix D.1, singular", "the sandwich on the range of a singular cov",      \
      "rank > 0", "eigenvalues of cov set to 0, Q restricted to the rest")                         \
    X(few_latents, "Appendix D.1, dimension", "L_G >= rho^2 c^2 (d_a - d)",                        \
      "d < d_a, cov not singular", "as stated")                                                    \
    X(loss_to_bounds, "Corollary 4.3", "|D|^2 <= eps, |D^T B| <= sqrt(c) eps, |B^T B - cI| <= c eps", \
      "cov not singular", "epsilon from the loss")                                                 \
    X(loss_to_frobenius, "Corollary 4.3, Frobenius", "the three Frobenius bounds",                 \
      "cov not singular", "as stated")                                                             \
    X(control_condition, "Corollary 4.3, condition", "kappa(B^T B) <= (1+eps)/(1-eps)",            \
      "three bounds with eps < 1", "singular values of B")

#define CGS_STATEMENTS_HORIZON(X)                                                                  \
    X(powers, "Appendix D.2, powers", "|A^k - I| and its remainder after kD are at most s_H and r_H",       \
      "eps < 1", "k = 0 ... H-1")                                                                  \
    X(xi_expansion, "Theorem 4.4, order", "xi_H = (2H^2-3H+2) eps + O_H(eps^3/2)", "none",         \
      "remainder <= (xi_H(1) - coefficient) eps^3/2")                                              \
    X(hessian_gap, "Theorem 4.4", "|G_H/(cH) - P_H| <= xi_H", "three bounds with eps < 1",         \
      "the smallest eps with which the three bounds hold")                                         \
    X(eigen_interval, "Theorem 4.4, interval", "leading eigenvalues in cH [1-xi, 1+xi], others 0", \
      "xi_H < 1, d = d_a", "eigenvalues of G_H")                                                   \
    X(effective_condition, "Theorem 4.4, kappa_eff", "kappa_eff(G_H) <= (1+xi)/(1-xi)",            \
      "xi_H < 1, d = d_a", "eigenvalues of G_H")                                                   \
    X(ideal_hessian, "Section 4.2", "A = I, B^T B = cI: G_H = c H P_H", "d >= d_a",                \
      "the ideal system with the given sizes")                                                     \
    X(straightening_gap, "Appendix D.2, no mixed", "without the mixed bound: eps + (1+eps)(2 s_H + s_H^2)",   \
      "two bounds with eps < 1", "the smallest eps of the two")                                    \
    X(mixed_orders, "Appendix D.2, mixed", "|D^T B| <= sqrt(c(1+eps)eps); |B^T D B| <= c sqrt(1+eps) eps", \
      "eps < 1", "as stated")                                                                      \
    X(shared_spectrum, "Appendix D.2, Gramian", "G_H and W_H share their positive spectrum, kappa_eff = kappa(gamma)^2", \
      "none", "eigenvalues of both, singular values of gamma")                                     \
    X(leading_directions, "Remark 4.5", "d_a < d: the gap and the interval on the leading d_a",    \
      "xi_H < 1, d > d_a", "eigenvalues of G_H and W_H")                                           \
    X(invariant_range, "Corollary D.1", "A range(B) in range(B): rank d_a and kappa_eff <= (1+xi)/(1-xi)", \
      "xi_H < 1, d >= d_a", "the system with its drift projected to range(B)")                     \
    X(controllable_bound, "Corollary D.1, general", "W_H >= gamma_H c H on its range: kappa_eff <= (1+xi)/gamma_H", \
      "xi_H < 1, d >= d_a", "gamma_H the smallest positive eigenvalue of W_H/(cH)")                \
    X(additional, "Remark D.2", "the other eigenvalues are at most c H xi", "xi_H < 1, rank > d_a", \
      "eigenvalues beyond the first d_a")

#define CGS_STATEMENTS_QUADRATIC(X)                                                                \
    X(expansion, "Appendix D.3, expansion", "C(a) = C(a*) + (a-a*)^T G (a-a*) / 2", "none",                    \
      "rollouts of random plans, goals in and out of reach")                                       \
    X(nonlinear_hessian, "Appendix D.3, nonlinear", "nonlinear: Hessian = J^T J + residual-weighted second order", \
      "none", "central differences of a quadratic predictor's cost")                               \
    X(whitening, "Appendix D.3, whitening", "in proposal coordinates the Hessian is S^1/2 G S^1/2", "none",    \
      "rollouts of whitened plans")                                                                \
    X(mean_recursion, "Corollary D.3", "|e_I| <= q^I |e_0| + (1-q^I)/(1-q) eps_K",                 \
      "xi_H < 1, K >= minimum", "MPPI updates with K samples, before exit")                        \
    X(mean_budget, "Corollary D.3, budget", "the stated I and K reach the tolerance",          \
      "xi_H < 1", "the recursion at equality with these budgets")

#define CGS_STATEMENTS_MPPI(X)                                                                     \
    X(mppi_map, "Proposition D.4", "T_M(nu) = (I + s M_H)^-1 nu", "none",                          \
      "numerical integration of the tilted law along each eigenvector")                            \
    X(mppi_contraction, "Theorem 4.6", "q_M = 1/(1 + sigma^2/tau lambda_r) <= 1/(1 + s(1-xi))",    \
      "xi_H < 1, d >= d_a", "norm of the Jacobian on the leading space")                           \
    X(mppi_condition, "Theorem 4.6, kappa", "kappa(J_M) <= [1+s(1+xi)]/[1+s(1-xi)]",               \
      "xi_H < 1, d >= d_a", "eigenvalues of the Jacobian on the leading space")                    \
    X(mppi_ideal, "Proposition D.4, ideal", "J_M^0 = P/(1+s) + I - P", "none",                     \
      "inverse of I + s P_H")                                                                      \
    X(mppi_perturbation, "Proposition D.4, perturbation", "|J_M - J_M^0| <= s xi",                 \
      "xi_H < 1", "as stated")                                                                     \
    X(mppi_controllable, "Appendix D.2, MPPI", "|J_M| on range(G_H) <= 1/(1 + s gamma_H)",             \
      "rank > 0", "slowest positive eigenvalue")                                                   \
    X(normalizer, "Proposition D.5, normalizer", "Z exact, and Z >= Z_low(R)", "xi_H < 1, d >= d_a",               \
      "numerical integration along each eigenvector")                                              \
    X(mppi_sampling, "Proposition D.5", "sampling error <= C(1+R)/Z sqrt(r log(4r/zeta)/K)",       \
      "xi_H < 1, K >= minimum", "one update, C = 11.1, zeta = 1e-6")                               \
    X(cost_recursion, "Corollary D.6", "sqrt(gap) contracts by q_M up to b_K; gap after I updates", \
      "xi_H < 1, rank = d_a, K >= minimum", "MPPI updates with K samples, before exit")            \
    X(cost_budget, "Corollary D.6, budget", "the stated I and b_K reach the target",           \
      "xi_H < 1, rank = d_a", "the recursion at equality with these budgets")

#define CGS_STATEMENTS_CEM(X)                                                                      \
    X(cem_jacobian, "Proposition D.7", "J_C = E[X X^T | elite], T_C(0) = 0", "M_H not 0",          \
      "central differences of the population map")                                                 \
    X(cem_sampled, "Proposition D.7, sampled", "E[x_j^2 | elite] is the Jacobian", "M_H not 0",    \
      "4000 candidates, within 6 standard errors")                                                \
    X(cem_ideal, "Proposition D.7, ideal", "J_C(P_H) = beta P_H + I - P_H, 0 < beta < 1", "none",  \
      "Laplace inversion against the incomplete gamma function")                                   \
    X(cem_balance, "Proposition D.7, balance", "|J_C - beta I| on the leading space <= omega(xi)", \
      "xi_H < 1/2, d >= d_a", "omega's value at the two extreme spectra")                          \
    X(cem_limit, "Proposition D.7, limit", "omega(delta) -> 0", "none",                            \
      "omega at 0.1/n, 0.01/n, 0.001/n: at most half each time")                \
    X(cem_contraction, "Proposition D.7, contraction", "|Pi T_C(nu)| <= q_C |Pi nu| near 0",       \
      "xi_H < 1/2, beta + omega < 1", "random small means, q_C half way to 1")                     \
    X(cem_sampling, "Proposition D.8", "sampling error of one CEM update", "xi_H < 1, d >= d_a",   \
      "one update, C = 4.8, zeta = 1e-6")                                                          \
    X(cem_recursion, "Appendix D.5, repeated", "|e_I| <= q_C^I |e_0| + (1-q_C^I)/(1-q_C) eps_K",              \
      "xi_H < 1/2, beta + omega < 1, before exit", "CEM updates with K samples")

#define CGS_STATEMENTS_GD(X)                                                                       \
    X(gd_update, "Proposition D.9, update", "a - a* is multiplied by I - G/(cH)", "none",          \
      "three steps on the rolled-out cost's gradient")                                             \
    X(gd_dominant, "Proposition D.9", "|I - G/(cH)| <= xi on the leading space; its cost by xi^2I", \
      "xi_H < 1, d >= d_a", "five steps")                                                          \
    X(gd_full, "Proposition D.9, full", "rank = d_a: the whole gap by xi^2I",                      \
      "xi_H < 1, rank = d_a", "five steps on the rolled-out cost")                                 \
    X(gd_best_step, "Appendix D.6, step", "h = 2/(L+m): gap by ((kappa-1)/(kappa+1))^2I", "rank > 0",  \
      "five steps; no other step does better")                                                     \
    X(gd_best_rate, "Appendix D.6, rate", "rank = d_a: q_GD <= xi", "xi_H < 1, rank = d_a",      \
      "as stated")                                                                                 \
    X(square_condition, "Corollary D.10", "kappa_eff by |A-I| and |B^T B - cI|/c alone",           \
      "d = d_a, both < 1", "the chain of three bounds")                                            \
    X(square_condition_eps, "Corollary D.10, eps", "kappa_eff by epsilon", "d = d_a, eps < 1",     \
      "as stated")

/* not in the paper: theory_gauss_newton.c has the proofs */
#define CGS_STATEMENTS_GN(X)                                                                       \
    X(gn_span, "Sampled Gauss-Newton, span", "K > n: one step ends at the ridge solution", "none", \
      "the planner's formula against the solution of (G + gamma I) a = G a* + gamma start")        \
    X(gn_projection, "Sampled Gauss-Newton, projection", "a step removes an H-orthogonal part of the error, H = G + gamma I", \
      "none", "|e|_H^2 = |e'|_H^2 + |e - e'|_H^2")                                                 \
    X(gn_rank, "Sampled Gauss-Newton, rank", "gamma = 0, K > rank G: one step reaches the least cost", \
      "rank > 0", "least squares along rank G directions")                                         \
    X(gn_even, "Sampled Gauss-Newton, even", "H = h I: E|e'|^2 = (1 - (K-1)/n) |e|^2", "n > 1",    \
      "300 steps, within 6 standard errors")                                                       \
    X(gn_rate, "Sampled Gauss-Newton, rate", "E|e'|_H^2 <= |e_T|_H^2 + tr(H_T)/(K-r-2) |e_L|^2",   \
      "n >= r + 2", "300 steps along r + 2 ... n directions, up to 6 standard errors")             \
    X(gn_cgs, "Sampled Gauss-Newton, CGS", "tr(H_T)/((K-r-2) lambda_r) <= (n-r)(xi+g)/((1-xi+g)(K-r-2)), g = gamma/(cH)", \
      "xi_H < 1, d >= d_a, n >= r + 2", "eigenvalues of G_H")

#define CGS_STATEMENTS_DRIFT(X)                                                                    \
    X(loss_floor, "Appendix D.7, floor", "L_G >= rho^2 |D|^4", "cov not singular", "as stated")            \
    X(best_control, "Proposition D.11", "no B has a lower defect than B*", "d >= d_a",             \
      "64 random B, near and far from B*")                                                         \
    X(best_control_value, "Proposition D.11, value", "B* is stationary, R_B as in the proof",      \
      "d >= d_a", "gradient 4 (D D^T B + B (B^T B - cI)) and the sum over k")                      \
    X(best_control_kernel, "Appendix D.7, kernel", "dim ker D^T >= d_a: drift, no coupling, even control", \
      "d > d_a", "the system with d_a directions of its drift removed")
/* clang-format on */

typedef enum cgs_statement_id {
#define X(function, name, what, hypotheses, check) CGS_ST_##function,
    CGS_STATEMENTS(X)
#undef X
        CGS_STATEMENT_COUNT
} cgs_statement_id;

typedef struct cgs_statement {
    const char *key, *name, *what, *hypotheses, *check;
    cgs_check_fn run;
} cgs_statement;
extern const cgs_statement cgs_statements[CGS_STATEMENT_COUNT];

#define X(function, name, what, hypotheses, check)                                                 \
    void cgs_check_##function(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t);
CGS_STATEMENTS(X)
#undef X

/* One statement on one system. */
cgs_theory_trial cgs_statement_try(const cgs_statement *s, const cgs_facts *f, cgs_work *w,
                                   cgs_rng rng, double tamper);

/* Result of a run over many systems for one statement. */
typedef struct cgs_finding {
    int trials, outside, violations;
    double worst_margin, median_tightness, worst_error; /* NaN when there is none */
    uint64_t worst_system;                              /* index of the worst margin */
} cgs_finding;

typedef struct cgs_theory_run {
    int systems;
    uint64_t seed;
    double tamper; /* 1, but in tests */
    cgs_finding finding[CGS_STATEMENT_COUNT];
} cgs_theory_run;

/* Called now and then from one thread; false stops. */
typedef bool (*cgs_theory_watch)(void *user, int done, int total);

/* Draws the systems and tries every statement on each, on all threads; the result depends on
 * seed and number only. */
cgs_status cgs_theory_try_all(cgs_theory_run *run, cgs_theory_watch watch, void *user);

#endif /* CGS_ANALYSIS_THEORY_H */
