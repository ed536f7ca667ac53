/* shared_starts.c - see shared_starts.h. */
#include "eval/shared_starts.h"

#include <stdlib.h>
#include <string.h>

#include "rollout/held_out.h"

cgs_status cgs_shared_starts(cgs_starts *out, const cgs_loaded_model *s, int models,
                             const cgs_source *data, const cgs_start_rule *rule) {
    size_t n = (size_t)data->episodes;
    int64_t *length = malloc(n * sizeof *length);
    uint8_t *use = malloc(2 * n), *held = use ? use + n : NULL;
    cgs_status rc = length && use ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for episodes");
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n && rc == CGS_OK; i++) {
        length[i] = data->ep_len[i];
        use[i] = 1;
    }
    for (int k = 0; k < models && rule->held_out && rc == CGS_OK; k++) {
        rc = cgs_loaded_model_held_out(&s[k], data, held);
        for (size_t i = 0; i < n && rc == CGS_OK; i++) use[i] &= held[i];
    }
    if (rc == CGS_OK) {
        cgs_episodes ep = {data->episodes, length, data->ep_offset, rule->held_out ? use : NULL};
        rc = cgs_starts_choose(out, &ep, rule, NULL, NULL);
    }
    free(length);
    free(use);
    return rc;
}
