/* gaussian_head.h - a head that gives a Gaussian for each value: means first, then as many numbers
 * that bounded log-variances are made of. */
#ifndef CGS_MODEL_GAUSSIAN_HEAD_H
#define CGS_MODEL_GAUSSIAN_HEAD_H

/* The log-variance of output x: x near 0, and never outside -8 ... 3.  No start is so certain that
 * its likelihood outweighs all others, and none is given up. */
double cgs_log_variance(double x);

/* out (2 n): means and the numbers above.  Returns the sum over n of half the log-variance and half
 * the squared distance of target (n) from the mean by the variance: the negative log-likelihood up
 * to a constant.  gradient (2 n): of that sum times `weight`; may be NULL. */
double cgs_gaussian_loss(const float *out, const float *target, int n, double weight,
                         float *gradient);

#endif /* CGS_MODEL_GAUSSIAN_HEAD_H */
