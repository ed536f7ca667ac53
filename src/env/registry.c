/* registry.c - the environments that there are: those of the library, and those that were added. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"

static const cgs_env_class *const classes[] = {
    &cgs_pusht_class, &cgs_tworooms_class, &cgs_wall_class,
#ifdef CGS_WITH_MUJOCO
    &cgs_umaze_class, &cgs_medium_class,   &cgs_reacher_class, &cgs_cube_class,
#endif
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0], ADDED_MAX = 64 };

/* what was added stays: environments point to it */
typedef struct added {
    cgs_env_class cls; /* must be first: a class is the address of its entry */
    cgs_env_origin origin;
} added;
static added *extra[ADDED_MAX];
static int extras;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both */

int cgs_env_count(void) {
    pthread_mutex_lock(&lock);
    int n = CLASS_COUNT + extras;
    pthread_mutex_unlock(&lock);
    return n;
}

/* entries are never changed or moved: no lock */
const cgs_env_class *cgs_env_at(int index) {
    return index < CLASS_COUNT ? classes[index] : &extra[index - CLASS_COUNT]->cls;
}

cgs_status cgs_env_find(const char *id, const cgs_env_class **out) {
    char known[512] = "";
    int n = cgs_env_count();
    for (int i = 0; i < n; i++) {
        const cgs_env_class *c = cgs_env_at(i);
        if (!strcmp(c->id, id)) {
            *out = c;
            return CGS_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%.64s", i ? ", " : "", c->id);
    }
    size_t length = strlen(id);
    if (length > 3 && !strcmp(id + length - 3, ".so"))
        return cgs_fail(CGS_EARG, "\"%.200s\": a plug-in is named by its path: ./%.200s", id, id);
    return cgs_fail(CGS_EARG, "unknown environment \"%.80s\"; known: %s", id, known);
}

cgs_status cgs_env_register(const cgs_env_class *table, const cgs_env_origin *origin) {
    added *a = calloc(1, sizeof *a);
    if (!a) return cgs_fail(CGS_ENOMEM, "%s: no memory for an environment", table->id);
    a->cls = *table;
    a->origin = *origin;
    cgs_status rc = CGS_OK;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CLASS_COUNT + extras && rc == CGS_OK; i++)
        if (!strcmp(cgs_env_at(i)->id, table->id))
            rc = cgs_fail(CGS_EARG, "there is already an environment \"%.64s\"", table->id);
    if (rc == CGS_OK && extras == ADDED_MAX)
        rc = cgs_fail(CGS_EARG, "more than %d environments were added", ADDED_MAX);
    if (rc == CGS_OK) extra[extras++] = a;
    pthread_mutex_unlock(&lock);
    if (rc != CGS_OK) free(a);
    return rc;
}

bool cgs_env_is_added(const cgs_env_class *cls) {
    for (int i = CLASS_COUNT; i < cgs_env_count(); i++)
        if (cgs_env_at(i) == cls) return true;
    return false;
}

cgs_env_origin cgs_env_origin_of(const cgs_env_class *cls) {
    cgs_env_origin none = {"", ""};
    return cgs_env_is_added(cls) ? ((const added *)cls)->origin : none;
}

cgs_status cgs_env_use_model(const char *id, const char *path) {
    const cgs_env_class *cls;
    char error[CGS_ENV_ERROR] = "";
    if (!id) return cgs_fail(CGS_EARG, "%s: name the environment it is for", path);
    CGS_TRY(cgs_env_find(id, &cls));
    if (!cls->use_model) return cgs_fail(CGS_EARG, "%s has no physical model to replace", id);
    return cgs_env_heard(cls, "use_model", cls->use_model(path, error), error);
}

/* ---- protocols ------------------------------------------------------------------ */

static const char *const judges[CGS_JUDGES] = {"official", "moderate", "strict"};

cgs_status cgs_judge_parse(cgs_judge *j, const char *name) {
    for (int i = 0; i < CGS_JUDGES; i++)
        if (!strcmp(name, judges[i])) {
            *j = (cgs_judge)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "protocol: \"%.40s\" is not official, moderate or strict", name);
}

const char *cgs_judge_name(cgs_judge j) { return (unsigned)j < CGS_JUDGES ? judges[j] : "?"; }

cgs_status cgs_env_has_judge(const cgs_env_class *cls, cgs_judge judge) {
    if (cls->predicate[judge].sentence) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s has no predicate for the %s protocol", cls->id,
                    cgs_judge_name(judge));
}

cgs_status cgs_env_can_plan(const cgs_env_class *cls) {
    if (!(cls->can & CGS_ENV_RENDER))
        return cgs_fail(CGS_EARG, "%s does not draw itself, and models see images", cls->id);
    if (!(cls->can & CGS_ENV_SET_STATE))
        return cgs_fail(CGS_EARG,
                        "%s cannot be set to a state, which episodes start from; cgs eval "
                        "--recorded needs none",
                        cls->id);
    return CGS_OK;
}

/* ---- physical features ---------------------------------------------------------- */

int cgs_env_feature_count(const cgs_env_class *cls) {
    return cls->feature_count ? cls->feature_count : cls->state_dim;
}

cgs_env_feature cgs_env_feature_at(const cgs_env_class *cls, int index) {
    cgs_env_feature component = {"state", false};
    return cls->feature_count ? cls->features[index] : component;
}

void cgs_env_features(const cgs_env_class *cls, const double *state, double *out) {
    if (cls->feature_count)
        cls->probe_state(state, out);
    else
        memcpy(out, state, (size_t)cls->state_dim * sizeof *out);
}
