/* measured.c - see measured.h. */
#include "core/measured.h"

#include "core/statistics.h"

enum { PARTS = 5 };

cgs_measured cgs_measured_count(double value) { return (cgs_measured){value, value, value, 0}; }
cgs_measured cgs_measured_once(double value) { return (cgs_measured){value, value, value, 1}; }

cgs_measured cgs_measured_percentile(double *x, int n, double q) {
    int parts = n < PARTS ? n : PARTS;
    cgs_measured m = {.runs = n};
    for (int i = 0; i < parts; i++) { /* sorts only the part */
        int first = n / parts * i, end = i + 1 < parts ? first + n / parts : n;
        double value = cgs_percentile(x + first, end - first, q);
        if (i == 0 || value < m.least) m.least = value;
        if (i == 0 || value > m.most) m.most = value;
    }
    m.value = cgs_percentile(x, n, q);
    /* a percentile of all may lie outside those of the parts */
    if (m.value < m.least) m.least = m.value;
    if (m.value > m.most) m.most = m.value;
    return m;
}

cgs_measured cgs_measured_median(double *x, int n) { return cgs_measured_percentile(x, n, 50); }

cgs_measured cgs_measured_times(cgs_measured m, double factor) {
    return (cgs_measured){m.value * factor, m.least * factor, m.most * factor, m.runs};
}

cgs_measured cgs_measured_rate(double amount, cgs_measured seconds) {
    return (cgs_measured){amount / seconds.value, amount / seconds.most, amount / seconds.least,
                          seconds.runs};
}

cgs_measured cgs_measured_ratio(cgs_measured now, cgs_measured before) {
    int fewer = now.runs < before.runs ? now.runs : before.runs;
    int more = now.runs < before.runs ? before.runs : now.runs;
    return (cgs_measured){now.value / before.value, now.least / before.most,
                          now.most / before.least,
                          fewer ? fewer : more /* a count has no spread */};
}

bool cgs_ratio_differs(cgs_measured ratio) {
    return ratio.runs != 1 && (ratio.least > 1 || ratio.most < 1);
}
