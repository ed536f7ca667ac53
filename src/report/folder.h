/* folder.h - reads the files of a run's folder, all of them untrusted.
 *
 * Nothing here fails: what is missing is NULL, what is broken is NULL and a warning. */
#ifndef CGS_REPORT_FOLDER_H
#define CGS_REPORT_FOLDER_H

#include <cJSON.h>

#include "report/page.h"

typedef struct cgs_folder {
    const char *path; /* as given: a folder, or a single result file */
    char name[128];   /* of the study, or the last part of the path  */
    char last[128];   /* last part of the path                       */
    bool single;      /* path is a result file                       */
    cJSON *study;     /* study.json, or NULL                         */
    cJSON *stages;    /* a list of the lines of stages.jsonl         */
    const char *env;  /* of the study, or ""                         */
} cgs_folder;

cgs_status cgs_folder_open(cgs_folder *f, const char *path, cgs_page *p);
void cgs_folder_close(cgs_folder *f);

/* A JSON file of this program: {"format": format, "version": 1, ...}.  Free with cJSON_Delete. */
cJSON *cgs_folder_json(const cgs_folder *f, cgs_page *p, const char *name, const char *format);

/* A text file of the folder, at most a megabyte; NULL where there is none.  The caller frees it. */
char *cgs_folder_text(const cgs_folder *f, cgs_page *p, const char *name);

/* Calls fn with every line of a file of JSON objects, or of NAME.gz where there is no NAME.  Other
 * lines are counted in one warning; an unfinished last line is still being written. */
void cgs_folder_lines(const cgs_folder *f, cgs_page *p, const char *name,
                      void (*fn)(void *user, const cJSON *line), void *user);

/* An image of the folder, by a relative name that does not leave it; it must begin with `magic`.
 * The caller frees *data.  Warnings use the name that the file gives. */
bool cgs_folder_image(const cgs_folder *f, cgs_page *p, const char *name, const char *magic,
                      char **data, size_t *bytes);

/* Names in a subfolder, sorted, at most `most`.  Free with cgs_names_free. */
typedef struct cgs_names {
    char **name;
    int count;
} cgs_names;
cgs_names cgs_folder_list(const cgs_folder *f, const char *below, int most);
void cgs_names_free(cgs_names *n);

/* The command of the stages that ran a verb, shown on the page. */
void cgs_folder_commands(const cgs_folder *f, cgs_page *p, const char *verb);

/* ---- values ------------------------------------------------------------------------ */

/* A text of an object, or `otherwise`. */
const char *cgs_json_text(const cJSON *object, const char *key, const char *otherwise);
/* A finite number of an object, or NAN. */
double cgs_json_number(const cJSON *object, const char *key);
/* The numbers of a list, NAN where an entry is not a number.  Returns how many, at most `most`. */
int cgs_json_numbers(const cJSON *list, double *out, int most);
/* The list's first entry, or NULL where it is not a list; for loops over next. */
const cJSON *cgs_json_list(const cJSON *object, const char *key);

/* A model of a list: its "name" or its method's, and how it is drawn. */
const char *cgs_json_model(const cJSON *model, char *name, size_t size, int *style);

#endif /* CGS_REPORT_FOLDER_H */
