/* learned_table.h - learned.json as text: after a training, and in cgs info. */
#ifndef CGS_CLI_LEARNED_TABLE_H
#define CGS_CLI_LEARNED_TABLE_H

#include <cJSON.h>
#include <stdio.h>

#include "core/status.h"
#include "ops/ops.h"

void cgs_learned_print(const cJSON *doc, FILE *to);

/* Measures a model on data and stores learned.json in its directory.  *doc: the document, which the
 * caller deletes.  quiet: without a progress bar. */
cgs_status cgs_learned_store(cJSON **doc, const char *model, const char *data, cgs_device *d,
                             const char *command, bool quiet);

#endif /* CGS_CLI_LEARNED_TABLE_H */
