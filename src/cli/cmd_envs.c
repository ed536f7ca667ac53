/* cmd_envs.c - cgs envs: the environments and their policies. */
#include "cli/env_option.h"
#include "cli/verbs.h"
#include "env/policy.h"

#include <string.h>

static void list_policies(const cgs_env_class *env, const char *before, const char *between,
                          const char *after) {
    bool first = true;
    for (int i = 0; i < cgs_policy_count(); i++) {
        const cgs_policy_class *p = cgs_policy_at(i);
        if (!cgs_policy_fits(p, env)) continue;
        printf("%s%s%s%s", first ? "" : between, before, p->name, after);
        first = false;
    }
}

static void print_json(const cgs_env_class *c) {
    printf("{\"id\":\"%s\",\"version\":%d,\"summary\":\"%s\",\"state_dim\":%d,\"action_dim\":%d,"
           "\"size\":%d,\"success\":\"%s\",",
           c->id, c->version, c->summary, c->state_dim, c->action_dim, c->native,
           c->predicate[CGS_JUDGE_OFFICIAL].sentence);
    for (int j = CGS_JUDGE_MODERATE; j < CGS_JUDGES; j++)
        if (c->predicate[j].sentence)
            printf("\"%s\":\"%s\",", cgs_judge_name((cgs_judge)j), c->predicate[j].sentence);
    printf("\"columns\":[");
    for (int i = 0; i < c->column_count; i++)
        printf("%s{\"name\":\"%s\",\"dim\":%d}", i ? "," : "", c->columns[i].name,
               c->columns[i].dim);
    printf("],\"policies\":[");
    list_policies(c, "\"", ",", "\"");
    printf("]}\n");
}

static void print_text(const cgs_env_class *c) {
    printf("%s, version %d: %s\n", c->id, c->version, c->summary);
    printf(" state %d, action %d, images %d x %d\n", c->state_dim, c->action_dim, c->native,
           c->native);
    printf("    success: %s\n", c->predicate[CGS_JUDGE_OFFICIAL].sentence);
    for (int j = CGS_JUDGE_MODERATE; j < CGS_JUDGES; j++)
        if (c->predicate[j].sentence)
            printf("    %s: %s\n", cgs_judge_name((cgs_judge)j), c->predicate[j].sentence);
    printf("    policies: ");
    list_policies(c, "", ", ", "");
    printf("\n");
}

static int run(int argc, char **argv, const cgs_verb *self) {
    bool json = false;
    const char *only = NULL;
    const cgs_opt opts[] = {
        {"env", "ID", "one of them, or a plug-in's path: ./libmine.so", OPT_STR, &only, false},
        {"json", NULL, "one JSON object per line", OPT_FLAG, &json, false}};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_env_option(&only);
    const cgs_env_class *cls;
    if (rc == CGS_OK && only) rc = cgs_env_find(only, &cls);
    for (int i = 0; rc == CGS_OK && i < cgs_env_count(); i++)
        if (!only || cgs_env_at(i) == cls) (json ? print_json : print_text)(cgs_env_at(i));
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_envs = {"envs", "[--env ID] [--json]",
                           "the environments: sizes, success predicates, policies", NULL, run};
