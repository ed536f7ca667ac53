/* method.c - see method.h. */
#include "train/method.h"

#include <stddef.h>
#include <string.h>

static const cgs_method methods[] = {
    {"lewm", "lewm", "LeWM", CGS_ROLE_PLAIN, "action"},
    {"lewm-ts", "lewm", "LeWM+TS", CGS_ROLE_TS, "action"},
    {"lewm-cgs", "lewm", "LeWM+CGS", CGS_ROLE_CGS, NULL},
    {"lewm-cgs-transition", "lewm", "LeWM+CGS (transition)", CGS_ROLE_OTHER, "transition"},
    {"lewm-cgs-xyz-all", "lewm", "LeWM+CGS (XYZ, all)", CGS_ROLE_OTHER, "xyz"},
    {"lewm-cgs-full", "lewm", "LeWM+CGS (full)", CGS_ROLE_OTHER, "full"},
    {"dinowm-cls", "dinowm-cls", "DINO-WM CLS", CGS_ROLE_PLAIN, "action"},
    {"dinowm-cls-ts", "dinowm-cls", "DINO-WM CLS+TS", CGS_ROLE_TS, "action"},
    {"dinowm-cls-cgs", "dinowm-cls", "DINO-WM CLS+CGS", CGS_ROLE_CGS, "action"},
    {"dinowm-patch", "dinowm-patch", "DINO-WM patch", CGS_ROLE_PLAIN, "action"},
    {"dinowm-patch-ts", "dinowm-patch", "DINO-WM patch+TS", CGS_ROLE_TS, "action"},
    {"dinowm-patch-cgs", "dinowm-patch", "DINO-WM patch+CGS", CGS_ROLE_CGS, "action"},
};

const cgs_method *cgs_method_at(int index) {
    return (size_t)index < sizeof methods / sizeof *methods ? &methods[index] : NULL;
}

const cgs_method *cgs_method_find(const char *name) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i].name, name)) return &methods[i];
    return NULL;
}

const char *cgs_method_title(const char *name) {
    const cgs_method *m = cgs_method_find(name);
    return m ? m->title : name;
}
