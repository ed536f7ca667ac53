/* recording.h - other people's episodes, whatever they are stored as.
 *
 * A recording has columns of numbers, one of which is the action, and one picture for every row of
 * every episode.  Each kind of input (arrays of HDF5 or npz, folders, LeRobot) makes one; convert.c
 * turns any of them into a dataset.  Episodes are opened one after the other. */
#ifndef CGS_CONVERT_RECORDING_H
#define CGS_CONVERT_RECORDING_H

#include "convert/picture.h"
#include "data/source.h"

#define CGS_RECORDED_COLUMNS 48

typedef struct cgs_recorded {
    char name[CGS_COLUMN_NAME]; /* as it will be called */
    int values;                 /* of one row */
    bool wide;                  /* f32 would lose digits: f64 */
} cgs_recorded;

/* What the user said where a recording leaves a choice; NULL: the only one there is. */
typedef struct cgs_choices {
    const char *pixels, *action; /* names of arrays, features or columns */
    double frame_rate;           /* of videos, 0: theirs */
} cgs_choices;

/* Called with every picture of an episode in order. */
typedef cgs_status (*cgs_take_picture)(void *user, const cgs_picture *p);

typedef struct cgs_recording {
    char path[4096];
    cgs_recorded column[CGS_RECORDED_COLUMNS];
    int columns, action; /* which of them is the action */
    int64_t episodes;
    double frame_rate; /* rows per second, 0: not known */
    char note[1024];   /* how it was understood, for the user */
    void *self;
    /* Rows of the episode, which the following two are about. */
    cgs_status (*begin)(void *self, int64_t episode, int64_t *rows);
    /* (rows, values); NaN in a last row that has none */
    cgs_status (*numbers)(void *self, int column, double *out);
    cgs_status (*pictures)(void *self, cgs_take_picture take, void *user);
    void (*close)(void *self);
} cgs_recording;

/* By what the path is. */
cgs_status cgs_recording_open(cgs_recording **out, const char *path, const cgs_choices *choices);
void cgs_recording_close(cgs_recording *r);

/* The kinds: fill everything but path. */
cgs_status cgs_recording_open_arrays(cgs_recording *r, const cgs_choices *c);
cgs_status cgs_recording_open_folder(cgs_recording *r, const cgs_choices *c);
cgs_status cgs_recording_open_lerobot(cgs_recording *r, const cgs_choices *c);
bool cgs_is_lerobot(const char *path); /* whether a folder has meta/info.json */

/* Adds a column under a name that a dataset can have: "observation." and the like go, slashes and
 * blanks become "_".  *index: -1 where it has no room or a name that is taken. */
void cgs_recording_add(cgs_recording *r, const char *name, int values, bool wide, int *index);

/* Names of a folder's files with one of the endings (".png", ...; NULL ends them), in the order of
 * the numbers in them: 2 before 10.  Freed by cgs_listing_free; none is no failure. */
typedef struct cgs_listing {
    char **name; /* (count) without the folder */
    size_t count;
} cgs_listing;
cgs_status cgs_listing_read(cgs_listing *n, const char *folder, const char *const *endings);
void cgs_listing_free(cgs_listing *n);
/* The same order for anything. */
int cgs_natural_order(const char *a, const char *b);
bool cgs_is_folder(const char *path);

#endif /* CGS_CONVERT_RECORDING_H */
