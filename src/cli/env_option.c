/* env_option.c - see env_option.h. */
#include "cli/env_option.h"

#include <string.h>

#include "cgs/env.h"

cgs_status cgs_env_option(const char **env) {
    return *env && strchr(*env, '/') ? cgs_env_load(*env, env) : CGS_OK;
}
