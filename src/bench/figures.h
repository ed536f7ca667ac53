/* figures.h - files of measured figures, one JSON object per line, to compare later runs with. */
#ifndef CGS_BENCH_FIGURES_H
#define CGS_BENCH_FIGURES_H

#include <cJSON.h>

#include "core/measured.h"
#include "core/status.h"

/* What a figure depends on.  Figures of other code are meant to be compared; those of another
 * machine or setting may be, if that is said. */
typedef struct cgs_conditions {
    char device[32], processor[128], isa[16]; /* processor: the GPU of a GPU's figures */
    int threads;
    char machine[80], version[32], commit[48]; /* machine: as uname has it */
} cgs_conditions;

typedef struct cgs_figure {
    char bench[32], name[192], unit[32];
    cgs_measured m;
    bool taken;
} cgs_figure;

typedef struct cgs_figures {
    cgs_conditions conditions;
    cgs_figure *at;
    int count;
} cgs_figures;

/* A figure as an object; NULL without memory. */
cJSON *cgs_figure_json(const cgs_figure *f, const cgs_conditions *c);

/* Reads a file of such lines, all measured under the same conditions. */
cgs_status cgs_figures_read(cgs_figures *f, const char *path);
void cgs_figures_free(cgs_figures *f);

/* The first figure of this bench, name and unit that was not taken before, or NULL. */
const cgs_figure *cgs_figures_take(cgs_figures *f, const cgs_figure *like);

/* "processor is A, was B; threads is 1, was 2": how conditions differ except in the code; "" where
 * they do not. */
void cgs_conditions_differ(char *out, size_t size, const cgs_conditions *now,
                           const cgs_conditions *before);

#endif /* CGS_BENCH_FIGURES_H */
