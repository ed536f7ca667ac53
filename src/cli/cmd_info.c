/* cmd_info.c - cgs info: what a model directory or weight file is, before trusting it. */
#include "cli/verbs.h"

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_words words;
    cgs_status rc = cgs_options_parse(self, NULL, 0, argc, argv, &words);
    if (rc == CGS_OK) rc = cgs_fail(CGS_EARG, "needs a model directory or file");
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_info = {"info", "DIR|FILE", "what a model directory or file is", NULL, run};
