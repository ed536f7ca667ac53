/* eval_bed.c - see eval_bed.h. */
#include "eval_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/collect.h"
#include "expect.h"
#include "random_model.h"

char bed_data[128], bed_model_a[128], bed_model_b[128];
static char folder[64];

const char *bed_path(const char *name) {
    static char path[8][192];
    static int next;
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

int bed_setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs_eval_XXXXXX");
    if (!mkdtemp(folder)) return 1;
    strcpy(bed_data, bed_path("data.h5"));
    strcpy(bed_model_a, bed_path("a"));
    strcpy(bed_model_b, bed_path("b"));
    cgs_collect_options c = {
        .env = "tworooms", .out = bed_data, .episodes = BED_EPISODES, .side = BED_SIDE};
    cgs_collect_result r;
    if (cgs_collect(&c, &r) != CGS_OK || random_model_dir(bed_model_a, "tworooms", bed_data, 1) ||
        random_model_dir(bed_model_b, "tworooms", bed_data, 2)) {
        print_error("%s\n", cgs_last_error());
        return 1;
    }
    return 0;
}

int bed_teardown(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

void bed_open(bed *b, int threads, int count, int context) {
    memset(b, 0, sizeof *b);
    OK(cgs_device_open(&b->d, "cpu", threads));
    OK(cgs_dataset_open(&b->data, bed_data));
    OK(cgs_loaded_model_open(&b->s, bed_model_a, &b->d, "f32", 4, b->data));
    OK(cgs_dataset_env(b->data, NULL, &b->env));
    OK(cgs_loaded_model_fits(&b->s, b->env, cgs_dataset_source(b->data)));
    const cgs_source *src = cgs_dataset_source(b->data);
    int64_t length[BED_EPISODES];
    for (int i = 0; i < src->episodes; i++) length[i] = src->ep_len[i];
    cgs_episodes ep = {src->episodes, length, src->ep_offset, NULL};
    cgs_start_rule rule = {.count = count, .goal_offset = 25};
    OK(cgs_starts_choose(&b->starts, &ep, &rule, NULL, NULL));
    OK(cgs_start_states_build(&b->cases, b->data, b->env, &b->starts, b->s.encoder, b->s.model,
                              &b->s.scale, NULL, context));
}

void bed_close(bed *b) {
    cgs_start_states_free(&b->cases);
    cgs_starts_free(&b->starts);
    cgs_loaded_model_close(&b->s);
    cgs_dataset_close(b->data);
    cgs_device_close(&b->d);
}
