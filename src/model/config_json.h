/* config_json.h - config.json: sizes in upstream's nested form, and the model card. */
#ifndef CGS_MODEL_CONFIG_JSON_H
#define CGS_MODEL_CONFIG_JSON_H

#include "model/sizes.h"
#include "model/store.h"

/* The text of a config.json; the caller frees it. */
cgs_status cgs_config_json_write(char **text, const cgs_lewm_config *c, const cgs_model_card *card);

/* Claims the sizes in a text of upstream's form or ours, and fills the card from it; a text without
 * a card leaves it unchanged.  what: the file, for messages.  cgs_card_check checks the number of
 * action statistics once the sizes are known. */
cgs_status cgs_config_json_read(cgs_sizes *s, cgs_model_card *card, const char *text, size_t bytes,
                                const char *what);

/* The card alone, to and from its JSON object. */
struct cJSON;
bool cgs_card_json_write(struct cJSON *to, const cgs_model_card *card, int action_dim);
cgs_status cgs_card_json_read(cgs_model_card *card, const struct cJSON *from, const char *file);

#endif /* CGS_MODEL_CONFIG_JSON_H */
