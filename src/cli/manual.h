/* manual.h - help and man page from the option tables; completion.h has the scripts of shells.
 *
 * A verb's table lives inside its run function.  To reach it, the verb is run with one of the
 * words below as its only argument; cgs_options_parse then prints the table and nothing runs. */
#ifndef CGS_CLI_MANUAL_H
#define CGS_CLI_MANUAL_H

#include "cli/options.h"

#define CGS_ASK_HELP "--help"
#define CGS_ASK_MAN "--help=man"

/* Prints the answer when arg is one of these words; otherwise returns false. */
bool cgs_manual_answer(const char *arg, const cgs_verb *verb, const cgs_opt *opts, int count);

/* The whole pages on standard output.  verbs: (count) */
void cgs_manual_man(const cgs_verb *const *verbs, int count);
/* runs a verb with a question in place of its arguments */
void cgs_manual_ask(const cgs_verb *verb, const char *question);
/* the keys of the settings that a verb takes */
void cgs_manual_each_key(const char *verb, void (*each)(const char *key));
/* every setting with its default and meaning */
void cgs_manual_settings(void);

#endif /* CGS_CLI_MANUAL_H */
