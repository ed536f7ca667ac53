/* method.h - the displayed name and the plot style of a method. */
#ifndef CGS_REPORT_METHOD_H
#define CGS_REPORT_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "train/method.h"

/* What a method preset adds to its family: "lewm-ts" is CGS_ROLE_TS of "lewm".  family: (64) */
cgs_role cgs_method_role(const char *method, char *family);

/* Its style in plots (plot.h). */
int cgs_method_style(const char *method);

/* A style not in `taken` (count), or the given one where all are taken. */
int cgs_style_apart(int style, const int *taken, int count);

/* "PG-MPPI" for "pg-mppi", "TwoRooms" for "tworooms"; other names stay. */
const char *cgs_planner_name(const char *planner);
const char *cgs_env_name(const char *env);

#endif /* CGS_REPORT_METHOD_H */
