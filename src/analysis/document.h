/* document.h - the JSON files of analyses: one object that begins with format, version, the
 * command and the code that made it.  Numbers have six digits and are finite or null. */
#ifndef CGS_ANALYSIS_DOCUMENT_H
#define CGS_ANALYSIS_DOCUMENT_H

#include <cJSON.h>
#include <stdio.h>

#include "core/statistics.h"
#include "core/status.h"

/* command may be NULL.  The caller frees *out with cJSON_Delete. */
cgs_status cgs_document_create(cJSON **out, const char *format, const char *command,
                               const char *env);
/* Adds what identifies an environment that is a plug-in, beside its id. */
void cgs_document_env(cJSON *to, const char *env);
/* Writes it on one line, atomically. */
cgs_status cgs_document_save(const cJSON *doc, const char *path);
/* The same line to a stream. */
cgs_status cgs_document_print(const cJSON *doc, FILE *to);

/* Adds to an object (name) or an array (name NULL).  Out of memory nothing is added; adding to NULL
 * does nothing. */
cJSON *cgs_document_object(cJSON *to, const char *name);
cJSON *cgs_document_array(cJSON *to, const char *name);
void cgs_document_number(cJSON *to, const char *name, double value);
void cgs_document_text_field(cJSON *to, const char *name, const char *value);
/* an array of n numbers */
void cgs_document_numbers(cJSON *to, const char *name, const double *value, int n);
/* {"mean":m,"lo":l,"hi":h} with the 95 % bootstrap interval of the mean of x (n) */
cgs_status cgs_document_mean(cJSON *to, const char *name, const double *x, int n);
/* {"median":m,"lo":l,"hi":h} in the same way */
cgs_status cgs_document_median(cJSON *to, const char *name, const double *x, int n);

#endif /* CGS_ANALYSIS_DOCUMENT_H */
