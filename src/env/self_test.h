/* self_test.h - what a table of functions from elsewhere is asked before it is believed. */
#ifndef CGS_ENV_SELF_TEST_H
#define CGS_ENV_SELF_TEST_H

#include "env/env.h"

/* The table alone, without a call of its functions.  *copy is the host's, with zeros for what an
 * older table does not have. */
cgs_status cgs_env_check_table(cgs_env_class *copy, const cgs_env_class *table);

/* Calls every function.  stage (64): which one is being called, for whoever learns of a crash. */
cgs_status cgs_env_self_test(const cgs_env_class *cls, char *stage);

#endif /* CGS_ENV_SELF_TEST_H */
