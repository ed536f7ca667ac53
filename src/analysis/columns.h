/* columns.h - the columns of numbers of a dataset, whatever they are called: what a stranger
 * recorded beside pictures and actions. */
#ifndef CGS_ANALYSIS_COLUMNS_H
#define CGS_ANALYSIS_COLUMNS_H

#include "data/dataset.h"

enum { CGS_NUMERIC_COLUMNS = 16, CGS_NUMERIC_WIDTH = 64 };

/* Some columns, side by side in one matrix. */
typedef struct cgs_numeric {
    int count, width;               /* columns, and numbers of all together */
    int index[CGS_NUMERIC_COLUMNS]; /* of the source */
    int first[CGS_NUMERIC_COLUMNS]; /* in the matrix */
    int left_out;                   /* for which there was no room */
} cgs_numeric;

/* The readable columns of at most CGS_NUMERIC_WIDTH numbers a row, in the order of the file, but
 * pictures, actions, the index of episodes and flags of their ends.  `only` (count): these alone,
 * where it is not NULL; an unknown one is CGS_EARG with those that there are. */
cgs_status cgs_numeric_columns(cgs_numeric *n, const cgs_source *s, const char *const *only,
                               int count);

/* Rows first, first + stride, ... : out (count, width). */
cgs_status cgs_numeric_read(const cgs_numeric *n, const cgs_source *s, int64_t first, int count,
                            int stride, double *out);

#endif /* CGS_ANALYSIS_COLUMNS_H */
