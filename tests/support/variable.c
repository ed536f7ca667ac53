/* variable.c - see variable.h. */
#include "variable.h"

#include <stdlib.h>

#include "core/environment.h"

void set_variable(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    cgs_environment_reread();
}
