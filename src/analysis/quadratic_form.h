/* quadratic_form.h - the distribution of y = sum_i l_i x_i^2 for independent x_i ~ N(m_i, 1).
 *
 * CEM keeps the candidates with y below a quantile, so its population mean is a moment of this
 * distribution on y <= t.  The Laplace transform of the distribution function,
 *
 *     (1/p) prod_i (1 + 2 l_i p)^-1/2 exp(-m_i^2 l_i p / (1 + 2 l_i p)),
 *
 * has all its singularities on the negative axis, where Talbot's contour inverts it to about ten
 * digits with two dozen nodes.  The moments need no other distribution: integrating x_j or x_j^2
 * against the density only adds two degrees of freedom to coordinate j,
 *
 *     E[x_j 1{y <= t}] = m_j P(y + l_j chi2_2 <= t),
 *     E[x_j^2 1{y <= t}] = P(y + l_j chi2_2 <= t)      when all m are 0. */
#ifndef CGS_ANALYSIS_QUADRATIC_FORM_H
#define CGS_ANALYSIS_QUADRATIC_FORM_H

/* P(y <= t), with two further degrees of freedom for coordinate `extra` unless it is negative.
 * l, m: (n), l >= 0 and not all 0; m may be NULL for zeros. */
double cgs_form_below(const double *l, const double *m, int n, int extra, double t);
/* The t with P(y <= t) = alpha, 0 < alpha < 1. */
double cgs_form_quantile(const double *l, const double *m, int n, double alpha);

/* CEM's population mean in the eigenbasis of its cost: out (n) for means m (n). */
void cgs_cem_mean(const double *l, const double *m, int n, double alpha, double *out);
/* ... and its Jacobian at m = 0, a diagonal (n). */
void cgs_cem_jacobian(const double *l, int n, double alpha, double *out);

/* Of a chi-squared variable with r degrees of freedom. */
double cgs_chi2_below(double r, double t);
double cgs_chi2_quantile(double r, double alpha);
/* beta = E[chi2_r | chi2_r <= its alpha-quantile] / r */
double cgs_cem_beta(double alpha, int r);

#endif /* CGS_ANALYSIS_QUADRATIC_FORM_H */
