/* csv.h - tables of text: a line of names, then lines of as many cells, separated by commas,
 * semicolons or tabs, whichever the first line has; cells may stand in quotes. */
#ifndef CGS_IO_CSV_H
#define CGS_IO_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

typedef struct cgs_csv {
    char *text;  /* the file; cells point into it */
    char **name; /* (columns) */
    char **cell; /* (rows, columns) */
    size_t rows, columns;
} cgs_csv;

/* Fine to free after a failure.  Lines without text are skipped. */
cgs_status cgs_csv_read(cgs_csv *c, const char *path);
void cgs_csv_free(cgs_csv *c);

/* The number in a cell: NaN where it is empty or says so; false where it is something else. */
bool cgs_csv_number(const cgs_csv *c, size_t row, size_t column, double *out);

#endif /* CGS_IO_CSV_H */
