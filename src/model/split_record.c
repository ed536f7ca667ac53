/* split_record.c - see split_record.h. */
#include "model/split_record.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX 0x1p53 /* whole numbers up to here are exact in JSON */

cgs_split_record cgs_card_split(const cgs_model_card *card) {
    cgs_split_record r = {.dataset_bytes = card->dataset_bytes,
                          .dataset_episodes = card->dataset_episodes,
                          .train_fraction = card->train_fraction,
                          .seed = card->seed};
    memcpy(r.dataset, card->dataset, sizeof r.dataset);
    memcpy(r.split, card->split, sizeof r.split);
    return r;
}

cJSON *cgs_split_record_json(const cgs_split_record *r) {
    cJSON *j = cJSON_CreateObject();
    char seed[24]; /* as text: not every 64-bit number survives JSON */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->seed);
    if (j && cJSON_AddStringToObject(j, "by", r->split) &&
        cJSON_AddNumberToObject(j, "train_fraction", r->train_fraction) &&
        cJSON_AddStringToObject(j, "seed", seed) &&
        cJSON_AddStringToObject(j, "dataset", r->dataset) &&
        cJSON_AddNumberToObject(j, "dataset_bytes", (double)r->dataset_bytes) &&
        cJSON_AddNumberToObject(j, "dataset_episodes", (double)r->dataset_episodes))
        return j;
    cJSON_Delete(j);
    return NULL;
}

static bool text(const cJSON *j, const char *key, char *out, size_t size) {
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
    if (!v || strlen(v) >= size) return false;
    memcpy(out, v, strlen(v) + 1);
    return true;
}

static bool number(const cJSON *j, const char *key, double high, double *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= high)) return false;
    *out = v->valuedouble;
    return true;
}

cgs_status cgs_split_record_parse(cgs_split_record *r, const char *path, const cJSON *j) {
    char seed[24], *end = NULL;
    double bytes = 0, episodes = 0;
    memset(r, 0, sizeof *r);
    if (!j) return CGS_OK;
    bool ok = text(j, "by", r->split, sizeof r->split) &&
              text(j, "dataset", r->dataset, sizeof r->dataset) &&
              text(j, "seed", seed, sizeof seed) &&
              number(j, "train_fraction", 1, &r->train_fraction) &&
              number(j, "dataset_bytes", WHOLE_MAX, &bytes) &&
              number(j, "dataset_episodes", WHOLE_MAX, &episodes);
    if (ok && seed[0] >= '0' && seed[0] <= '9') r->seed = strtoull(seed, &end, 10);
    if (!end || *end)
        return cgs_fail(CGS_EFORMAT, "%s: \"split\" is not the record of a split", path);
    r->dataset_bytes = (int64_t)bytes;
    r->dataset_episodes = (int64_t)episodes;
    return CGS_OK;
}
