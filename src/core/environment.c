/* environment.c - see environment.h. */
#include "core/environment.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096 }; /* of a value; longer ones are truncated */

static const cgs_variable_row rows[CGS_ENV_COUNT] = {
#define X(id, name, values, help) [CGS_ENV_##id] = {name, values, help},
    CGS_ENVIRONMENT(X)
#undef X
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char value[CGS_ENV_COUNT][LONGEST];

static void read_all(void) {
    for (int i = 0; i < CGS_ENV_COUNT; i++) {
        const char *text = getenv(rows[i].name);
        value[i][0] = '\0';
        if (text) strncat(value[i], text, LONGEST - 1);
    }
}

const char *cgs_environment(cgs_variable v) {
    pthread_once(&once, read_all);
    return value[v][0] ? value[v] : NULL;
}

void cgs_environment_reread(void) {
    pthread_once(&once, read_all);
    read_all();
}

cgs_variable_row cgs_environment_row(cgs_variable v) { return rows[v]; }
