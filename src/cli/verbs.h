/* verbs.h - every verb of the program, one row each, in the order of the help. */
#ifndef CGS_CLI_VERBS_H
#define CGS_CLI_VERBS_H

#include "cli/options.h"

#define CGS_VERBS(X)                                                                               \
    X(envs)                                                                                        \
    X(replay)                                                                                      \
    X(collect)                                                                                     \
    X(data)                                                                                        \
    X(pretrain)                                                                                    \
    X(train)                                                                                       \
    X(watch)                                                                                       \
    X(prior)                                                                                       \
    X(plan)                                                                                        \
    X(eval)                                                                                        \
    X(probe)                                                                                       \
    X(geometry)                                                                                    \
    X(theory)                                                                                      \
    X(decode)                                                                                      \
    X(surprise)                                                                                    \
    X(reproduce)                                                                                   \
    X(report)                                                                                      \
    X(encode)                                                                                      \
    X(rollout)                                                                                     \
    X(import)                                                                                      \
    X(export)                                                                                      \
    X(bench)                                                                                       \
    X(info)

#define DECLARE(name) extern const cgs_verb cmd_##name;
CGS_VERBS(DECLARE)
#undef DECLARE

#endif /* CGS_CLI_VERBS_H */
