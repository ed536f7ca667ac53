/* method.h - how a method is called and drawn. */
#ifndef CGS_REPORT_METHOD_H
#define CGS_REPORT_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "train/method.h"

/* What a method preset adds to its family: "lewm-ts" is CGS_ROLE_TS of "lewm".  family: (64) */
cgs_role cgs_method_role(const char *method, char *family);

/* Its style in plots (plot.h). */
int cgs_method_style(const char *method);

/* A style that none of the `taken` (count) has, or the given one where all are taken. */
int cgs_style_apart(int style, const int *taken, int count);

/* "pg-mppi" as "PG-MPPI", "tworooms" as "TwoRooms"; others stay. */
const char *cgs_planner_name(const char *planner);
const char *cgs_env_name(const char *env);

#endif /* CGS_REPORT_METHOD_H */
