/* geometry.h - control geometry of models: paths and heat maps of chosen windows, summaries over
 * many anchors, and the mechanism of one MPPI update.
 *
 * Windows: the action path and each model's aligned latent path (paths.h), and the response of the
 * predicted end to changes of the plan (response.h).  As chosen windows prove nothing, four numbers
 * are measured at many random anchors:
 *
 *   gram_error        distance of the response matrix from the ideal one
 *   isotropy          lambda_min / lambda_max of M_Q = Q'J'JQ, the curvature of a plan in the
 *                     plane of the first two action channels
 *   pair_error        root of the mean squared difference between the cosine of two actions of a
 *                     plan and the cosine of the latent changes they cause: what CGS trains
 *   direction_cosine  of an action and the latent change it causes, after one orthogonal map for
 *                     all; the map is fitted to the other half of the anchors */
#ifndef CGS_ANALYSIS_GEOMETRY_H
#define CGS_ANALYSIS_GEOMETRY_H

#include <cJSON.h>

#include "analysis/anchors.h"
#include "analysis/jacobian.h"
#include "analysis/mechanism.h"
#include "analysis/probe_run.h"

enum { CGS_MAX_WINDOWS = 64 };

/* a window: where it begins, and the frame that the response starts from (1 is the first) */
typedef struct cgs_window {
    cgs_anchor at;
    int frame;
} cgs_window;

typedef struct cgs_geometry_options {
    const char *const *models;
    int model_count;
    const char *data, *env;
    const cgs_window *window;
    int window_count; /* 0: `windows` drawn ones */
    int windows;      /* 2 */
    int frames;       /* of a window: 30 */
    int anchors;      /* of the summary: 128; of the mechanism: 32 */
    int horizon;      /* 5 */
    bool exact;       /* responses from Jacobians, not from changes of CGS_RESPONSE_STEP */
    uint64_t seed;    /* 0 */
    const char *device, *precision;
    int threads;
    bool (*progress)(void *user, const char *what, double done, double total);
    void *user;
} cgs_geometry_options;

cgs_geometry_options cgs_geometry_defaults(void);

/* Each makes one document, which the caller deletes: geometry.json, mechanism.json. */
cgs_status cgs_geometry_run(cJSON **doc, const cgs_geometry_options *o, const char *command);
cgs_status cgs_mechanism_run(cJSON **doc, const cgs_geometry_options *o, const char *command);
/* curvature.json: of each model the curvature of its planning cost (eval/curvature.h), the
 * temperature that follows from it, the known one, and the strength s of an update at that. */
cgs_status cgs_curvature_run(cJSON **doc, const cgs_geometry_options *o, const char *command);

/* ---- what both share --------------------------------------------------------------- */

typedef struct cgs_gallery {
    const cgs_geometry_options *o;
    cgs_dataset *data;
    const cgs_env_class *env; /* NULL: the data are of none that is known */
    const char *world;        /* its id, or "" */
    cgs_device device;
    int models;
    cgs_loaded_model loaded[CGS_ANALYSIS_MODELS];
    cgs_terminal *terminal[CGS_ANALYSIS_MODELS];
    char name[CGS_ANALYSIS_MODELS][128], method[CGS_ANALYSIS_MODELS][64];
} cgs_gallery;

/* Close after a failure too. */
cgs_status cgs_gallery_open(cgs_gallery *g, const cgs_geometry_options *o);
void cgs_gallery_close(cgs_gallery *g);
bool cgs_gallery_tell(cgs_gallery *g, const char *what, double done, double total);
/* Allocates a stretch of the models' images and actions. */
cgs_status cgs_gallery_stretch(const cgs_gallery *g, cgs_stretch *s, int frames);

#endif /* CGS_ANALYSIS_GEOMETRY_H */
