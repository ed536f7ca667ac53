/* test_eval.c - planning through a model, the closed loop, and evaluations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_model.h"

int main(int argc, char **argv) {
    /* for the scripts: test_eval --model DIR ENV DATASET SEED */
    if (argc == 6 && !strcmp(argv[1], "--model")) {
        cgs_status rc = random_model_dir(argv[2], argv[3], argv[4], (uint64_t)atoi(argv[5]));
        if (rc != CGS_OK) fprintf(stderr, "%s\n", cgs_last_error());
        return rc != CGS_OK;
    }
    return 1;
}
