/* completion.h - completion scripts of shells, from the option tables (see manual.h for how they
 * are reached). */
#ifndef CGS_CLI_COMPLETION_H
#define CGS_CLI_COMPLETION_H

#include "cli/options.h"

/* The script of "bash", "zsh" or "fish" on standard output; false: another shell.  verbs: (count)
 */
bool cgs_completion(const char *shell, const cgs_verb *const *verbs, int count);

/* Prints a verb's part of a script when arg asks for it; otherwise returns false. */
bool cgs_completion_answer(const char *arg, const cgs_verb *verb, const cgs_opt *opts, int count);

#endif /* CGS_CLI_COMPLETION_H */
