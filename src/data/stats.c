/* stats.c - two passes in double over a column: mean, then squared deviations.
 *
 * Sums run in row order on one thread, so the result has the same bits everywhere. */
#include "data/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

enum { PIECE = 8192 }; /* rows read together */

typedef struct pass {
    const cgs_source *src;
    int column, dims;
    float *rows; /* (PIECE, dims) */
} pass;

static bool has_nan(const float *row, int dims) {
    for (int j = 0; j < dims; j++)
        if (isnan(row[j])) return true;
    return false;
}

/* calls `take` for every row without NaN, episode by episode; counts the others */
static cgs_status for_rows(const pass *p, cgs_stats *s, void (*take)(cgs_stats *, const float *)) {
    const cgs_source *src = p->src;
    for (int e = 0; e < src->episodes; e++) {
        for (int i = 0; i < src->ep_len[e]; i += PIECE) {
            int n = src->ep_len[e] - i < PIECE ? src->ep_len[e] - i : PIECE;
            CGS_TRY(src->read_rows(src->self, p->column, src->ep_offset[e] + i, n, 1, p->rows));
            for (int r = 0; r < n; r++) {
                const float *row = p->rows + (size_t)r * p->dims;
                for (int j = 0; j < p->dims; j++)
                    if (isinf(row[j]))
                        return cgs_fail(CGS_ENUMERIC,
                                        "%s: column \"%s\" is infinite in row %d of episode %d",
                                        src->path, src->columns[p->column].name, i + r, e);
                if (has_nan(row, p->dims))
                    s->skipped++;
                else
                    take(s, row);
            }
        }
    }
    return CGS_OK;
}

static void take_sum(cgs_stats *s, const float *row) {
    for (int j = 0; j < s->dims; j++) {
        s->mean[j] += row[j];
        if (!s->rows || row[j] < s->low[j]) s->low[j] = row[j];
        if (!s->rows || row[j] > s->high[j]) s->high[j] = row[j];
    }
    s->rows++;
}

static void take_square(cgs_stats *s, const float *row) {
    for (int j = 0; j < s->dims; j++) {
        double deviation = row[j] - s->mean[j];
        s->std_population[j] += deviation * deviation;
    }
}

cgs_status cgs_stats_compute(cgs_stats *s, const cgs_source *src, const char *column) {
    memset(s, 0, sizeof *s);
    int k = cgs_source_find(src, column);
    if (k < 0)
        return cgs_fail(CGS_EFORMAT, "%s: it has no column \"%s\" of numbers", src->path, column);
    const size_t dims = src->columns[k].values;
    if (dims > CGS_STATS_MAX)
        return cgs_fail(CGS_EARG, "%s: column \"%s\" has %zu values, at most %d are expected",
                        src->path, column, dims, CGS_STATS_MAX);
    s->dims = (int)dims;
    pass p = {src, k, (int)dims, malloc(PIECE * dims * sizeof(float))};
    if (!p.rows) return cgs_fail(CGS_ENOMEM, "no memory");

    cgs_status rc = for_rows(&p, s, take_sum);
    if (rc == CGS_OK && s->rows == 0)
        rc = cgs_fail(CGS_ENUMERIC, "%s: column \"%s\" has no row without NaN", src->path, column);
    if (rc == CGS_OK) {
        int64_t skipped = s->skipped;
        for (int j = 0; j < s->dims; j++) s->mean[j] /= (double)s->rows;
        rc = for_rows(&p, s, take_square);
        s->skipped = skipped; /* the second pass counted them again */
    }
    free(p.rows);
    CGS_TRY(rc);
    for (int j = 0; j < s->dims; j++) {
        double sum = s->std_population[j];
        s->constant[j] = s->low[j] == s->high[j];
        if (s->constant[j]) {
            cgs_log(CGS_WARN,
                    "%s: channel %d of \"%s\" is always %g; its standard deviation is taken as 1",
                    src->path, j, column, s->low[j]);
            s->mean[j] = s->low[j];
            s->std_population[j] = s->std_unbiased[j] = 1;
            continue;
        }
        s->std_population[j] = sqrt(sum / (double)s->rows);
        s->std_unbiased[j] = sqrt(sum / (double)(s->rows - 1));
    }
    return CGS_OK;
}
