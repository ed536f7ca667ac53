/* held_out.c - see held_out.h. */
#include "rollout/held_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/windows.h"

/* 0: not known */
static int64_t file_bytes(const cgs_source *data) {
    struct stat st;
    return stat(data->path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static bool by_episode(const cgs_split_record *r) {
    return !strcmp(r->split, CGS_SPLIT_BY_EPISODE) && r->train_fraction > 0;
}

/* whether the record is one of this file; what either side does not say is believed */
static bool of_file(const cgs_split_record *r, const cgs_source *data) {
    int64_t bytes = file_bytes(data);
    return (r->dataset_bytes == 0 || bytes == 0 || r->dataset_bytes == bytes) &&
           (r->dataset_episodes == 0 || r->dataset_episodes == data->episodes);
}

cgs_status cgs_loaded_model_held_out(const cgs_loaded_model *s, const cgs_source *data,
                                     uint8_t *held) {
    const cgs_split_record r = cgs_card_split(&s->card);
    if (!by_episode(&r))
        return cgs_fail(CGS_EARG,
                        "%s: the model was not trained with a split by episode (\"%s\"), "
                        "so no episode is held out",
                        s->dir, r.split);
    if (!of_file(&r, data))
        return cgs_fail(CGS_EARG,
                        "%s: the model was trained on %s of %lld bytes; %s has %lld, so nothing is "
                        "known of its held-out episodes",
                        s->dir, r.dataset, (long long)r.dataset_bytes, data->path,
                        (long long)file_bytes(data));
    return cgs_split_episodes(data->episodes, r.train_fraction, r.seed, held);
}

/* the split as a fit to this file records it */
static cgs_split_record record_of(const cgs_loaded_model *s, const cgs_source *data) {
    cgs_split_record r = cgs_card_split(&s->card);
    if (!by_episode(&r) || !of_file(&r, data)) r = (cgs_split_record){.split = ""};
    const char *slash = strrchr(data->path, '/');
    snprintf(r.dataset, sizeof r.dataset, "%.255s", slash ? slash + 1 : data->path);
    r.dataset_bytes = file_bytes(data);
    r.dataset_episodes = data->episodes;
    return r;
}

cgs_status cgs_fit_episodes_of(cgs_fit_episodes *f, const cgs_loaded_model *s,
                               const cgs_source *data) {
    size_t n = data->episodes > 0 ? (size_t)data->episodes : 1;
    *f = (cgs_fit_episodes){.split = record_of(s, data), .episode = malloc(n * sizeof *f->episode)};
    uint8_t *held = calloc(n, 1);
    cgs_status rc =
        f->episode && held ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for %zu episodes", n);
    if (rc == CGS_OK && by_episode(&f->split))
        rc = cgs_split_episodes(data->episodes, f->split.train_fraction, f->split.seed, held);
    for (int e = 0; rc == CGS_OK && e < data->episodes; e++)
        if (!held[e]) f->episode[f->count++] = e;
    free(held);
    return rc;
}

void cgs_fit_episodes_free(cgs_fit_episodes *f) {
    free(f->episode);
    memset(f, 0, sizeof *f);
}

cgs_status cgs_fitted_without_held_out(const cgs_split_record *r, const cgs_loaded_model *s,
                                       const cgs_source *data, const char *what, const char *verb) {
    const cgs_split_record m = record_of(s, data);
    bool same = by_episode(r) && by_episode(&m) && r->seed == m.seed &&
                r->train_fraction >= m.train_fraction && r->train_fraction <= m.train_fraction &&
                r->dataset_bytes == m.dataset_bytes && r->dataset_episodes == m.dataset_episodes;
    if (same) return CGS_OK;
    return cgs_fail(CGS_EARG,
                    "%s: the %s is not known to have been fitted without the model's held-out "
                    "episodes of %s; cgs %s fits it again",
                    s->dir, what, data->path, verb);
}

cgs_status cgs_prior_without_held_out(const cgs_loaded_model *s, const cgs_source *data,
                                      cgs_prior_kind kind) {
    cgs_prior_card card;
    CGS_TRY(cgs_prior_load_card(&card, s->dir, kind));
    return cgs_fitted_without_held_out(&card.split, s, data, "prior", "prior");
}
