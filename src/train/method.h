/* method.h - the paper's methods: what each adds to a family of models, and its name. */
#ifndef CGS_TRAIN_METHOD_H
#define CGS_TRAIN_METHOD_H

/* What a method adds to its family: nothing, TS, CGS with the reference of the main tables, or
 * CGS with another reference. */
typedef enum cgs_role { CGS_ROLE_PLAIN, CGS_ROLE_TS, CGS_ROLE_CGS, CGS_ROLE_OTHER } cgs_role;

typedef struct cgs_method {
    const char *name;   /* in settings and files: "lewm-cgs"           */
    const char *family; /* "lewm", "dinowm-patch", "dinowm-cls"        */
    const char *title;  /* in the paper's tables: "LeWM+CGS"           */
    cgs_role role;
    const char *reference; /* of CGS (loss/reference.h); NULL: the environment's */
} cgs_method;

/* The index-th, in the order of the paper; NULL behind the last. */
const cgs_method *cgs_method_at(int index);
/* NULL: unknown method. */
const cgs_method *cgs_method_find(const char *name);

/* "LeWM+CGS" for "lewm-cgs"; an unknown method keeps its name. */
const char *cgs_method_title(const char *name);

#endif /* CGS_TRAIN_METHOD_H */
