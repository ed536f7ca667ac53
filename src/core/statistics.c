/* statistics.c - means, intervals, paired comparisons and areas under curves. */
#include "core/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"

#define Z95 1.959963984540054 /* the normal quantile of 0.975 */

double cgs_mean(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return n > 0 ? sum / n : 0;
}

double cgs_sample_sd(const double *x, int n) {
    if (n < 2) return 0;
    double mean = cgs_mean(x, n), sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / (n - 1));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* of a sorted array */
static double quantile(const double *x, int n, double q) {
    double at = q * (n - 1);
    int i = (int)floor(at);
    if (i < 0) return x[0];
    if (i >= n - 1) return x[n - 1];
    return x[i] + (at - i) * (x[i + 1] - x[i]);
}

double cgs_percentile(double *x, int n, double q) {
    qsort(x, (size_t)n, sizeof *x, by_value);
    return quantile(x, n, q / 100);
}

double cgs_median(double *x, int n) { return cgs_percentile(x, n, 50); }

cgs_interval cgs_wilson(int successes, int n) {
    if (n <= 0) return (cgs_interval){0, 1};
    double p = (double)successes / n, z2 = Z95 * Z95;
    double centre = (p + z2 / (2.0 * n)) / (1 + z2 / n);
    double half = Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4.0 * n * n));
    /* the ends are exactly 0 and 1 for no and only successes; rounding would miss them */
    return (cgs_interval){successes == 0 ? 0 : centre - half, successes == n ? 1 : centre + half};
}

/* the statistic may put its n values in another order */
static cgs_status bootstrap(const double *x, int n, int resamples, uint64_t seed,
                            double (*statistic)(double *x, int n), cgs_interval *out) {
    if (n < 1 || resamples < 1)
        return cgs_fail(CGS_EARG, "bootstrap: %d resamples of %d values", resamples, n);
    double *found = malloc(sizeof *found * ((size_t)resamples + (size_t)n));
    if (!found) return cgs_fail(CGS_ENOMEM, "bootstrap: no memory for %d resamples", resamples);
    double *drawn = found + resamples;
    for (int b = 0; b < resamples; b++) {
        cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_STATS, (uint64_t)b);
        for (int i = 0; i < n; i++) drawn[i] = x[cgs_rng_below(&r, (uint64_t)n)];
        found[b] = statistic(drawn, n);
    }
    qsort(found, (size_t)resamples, sizeof *found, by_value);
    *out = (cgs_interval){quantile(found, resamples, 0.025), quantile(found, resamples, 0.975)};
    free(found);
    return CGS_OK;
}

static double mean_of(double *x, int n) { return cgs_mean(x, n); }

cgs_status cgs_bootstrap_mean(const double *x, int n, int resamples, uint64_t seed,
                              cgs_interval *out) {
    return bootstrap(x, n, resamples, seed, mean_of, out);
}

cgs_status cgs_bootstrap_median(const double *x, int n, int resamples, uint64_t seed,
                                cgs_interval *out) {
    return bootstrap(x, n, resamples, seed, cgs_median, out);
}

double cgs_mcnemar(int only_a, int only_b) {
    int n = only_a + only_b, few = only_a < only_b ? only_a : only_b;
    /* log of binomial(n, i) / 2^n, so that a large n does not underflow early */
    double term = -n * log(2), sum = 0;
    for (int i = 0; i <= few; i++) {
        if (i > 0) term += log((double)(n - i + 1) / i);
        sum += exp(term);
    }
    return 2 * sum < 1 ? 2 * sum : 1;
}

cgs_interval cgs_newcombe(int both, int only_a, int only_b, int neither) {
    double n = (double)both + only_a + only_b + neither;
    if (n <= 0) return (cgs_interval){-1, 1};
    int total = both + only_a + only_b + neither, a = both + only_a, b = both + only_b;
    cgs_interval wa = cgs_wilson(a, total), wb = cgs_wilson(b, total);
    double pa = a / n, pb = b / n;
    /* correlation of the two outcomes, drawn towards zero where positive */
    double cross = (double)both * neither - (double)only_a * only_b;
    if (cross > 0) cross = cross > n / 2 ? cross - n / 2 : 0;
    double margins = (double)a * (total - a) * b * (total - b);
    double phi = margins > 0 ? cross / sqrt(margins) : 0;
    double da = pa - wa.low, ub = wb.high - pb, ua = wa.high - pa, db = pb - wb.low;
    double below = sqrt(fmax(0, da * da - 2 * phi * da * ub + ub * ub));
    double above = sqrt(fmax(0, ua * ua - 2 * phi * ua * db + db * db));
    return (cgs_interval){pa - pb - below, pa - pb + above};
}

cgs_status cgs_compare_paired(const uint8_t *a, const uint8_t *b, int n, int resamples,
                              uint64_t seed, cgs_paired *out) {
    if (n < 1) return cgs_fail(CGS_EARG, "paired comparison: %d pairs", n);
    double *gain = malloc(sizeof *gain * (size_t)n);
    if (!gain) return cgs_fail(CGS_ENOMEM, "paired comparison: no memory for %d pairs", n);
    *out = (cgs_paired){.n = n};
    for (int i = 0; i < n; i++) {
        out->both += a[i] && b[i];
        out->only_a += a[i] && !b[i];
        out->only_b += !a[i] && b[i];
        out->neither += !a[i] && !b[i];
        gain[i] = (a[i] != 0) - (b[i] != 0);
    }
    out->difference = (double)(out->only_a - out->only_b) / n;
    out->newcombe = cgs_newcombe(out->both, out->only_a, out->only_b, out->neither);
    out->p = cgs_mcnemar(out->only_a, out->only_b);
    cgs_status rc = cgs_bootstrap_mean(gain, n, resamples, seed, &out->bootstrap);
    free(gain);
    return rc;
}

cgs_status cgs_nauc(const double *x, const double *s, int n, double *out) {
    if (n < 2) return cgs_fail(CGS_EARG, "nAUC: %d points, at least 2 are needed", n);
    double area = 0;
    for (int i = 0; i + 1 < n; i++) {
        if (!(x[i] < x[i + 1]) || !isfinite(x[i]) || !isfinite(x[i + 1]))
            return cgs_fail(CGS_EARG, "nAUC: x goes from %g to %g, it must increase", x[i],
                            x[i + 1]);
        area += (x[i + 1] - x[i]) * (s[i] + s[i + 1]) / 2;
    }
    if (!isfinite(area)) return cgs_fail(CGS_ENUMERIC, "nAUC: a value is not finite");
    *out = area / (x[n - 1] - x[0]);
    return CGS_OK;
}

void cgs_column_moments(const double *x, int fit, int k, double *mean, double *sd) {
    for (int c = 0; c < k; c++) mean[c] = sd[c] = 0;
    for (int i = 0; i < fit; i++)
        for (int c = 0; c < k; c++) mean[c] += x[(size_t)i * (size_t)k + (size_t)c] / fit;
    for (int i = 0; i < fit; i++)
        for (int c = 0; c < k; c++) {
            double d = x[(size_t)i * (size_t)k + (size_t)c] - mean[c];
            sd[c] += d * d / fit;
        }
    for (int c = 0; c < k; c++) {
        /* rounding alone makes the variance of equal numbers about (1e-16 mean)^2 */
        double least = 1e-12 * fabs(mean[c]);
        sd[c] = sqrt(sd[c]) > least ? sqrt(sd[c]) : 1;
    }
}
