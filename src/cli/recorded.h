/* recorded.h - cgs eval --recorded: the options of an evaluation, used without a simulator. */
#ifndef CGS_CLI_RECORDED_H
#define CGS_CLI_RECORDED_H

#include "eval/evaluate.h"

/* Evaluates and prints.  o: of what it lists, the first number of samples, iterations, temperatures
 * and seeds counts; several of one are refused. */
cgs_status cgs_eval_recorded(const cgs_eval_options *o, const char *command, bool json, bool quiet);

#endif /* CGS_CLI_RECORDED_H */
