/* env_option.h - the option --env of verbs that simulate: an id, or the path of a plug-in. */
#ifndef CGS_CLI_ENV_OPTION_H
#define CGS_CLI_ENV_OPTION_H

#include "core/status.h"

#define CGS_ENV_OPTION_HELP "environment, see cgs envs, or a plug-in's path: ./libmine.so"
#define CGS_ENV_OPTION_OF_DATA "environment (the dataset's), or a plug-in's path: ./libmine.so"

/* Loads the plug-in that *env names by a path, and makes it that environment's id; leaves an id and
 * NULL alone.  Nothing else in this program loads code. */
cgs_status cgs_env_option(const char **env);

#endif /* CGS_CLI_ENV_OPTION_H */
