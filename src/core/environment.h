/* environment.h - all environment variables that affect the library.
 *
 * They are read once, at the first query, so that a solve or a step never reads them, and nothing
 * changes in the middle of a run. */
#ifndef CGS_CORE_ENVIRONMENT_H
#define CGS_CORE_ENVIRONMENT_H

/* identifier, name, values, help */
#define CGS_ENVIRONMENT(X)                                                                         \
    X(CACHE, "CGS_CACHE", "a folder",                                                              \
      "for what is made from datasets whose own folder cannot be written")                         \
    X(XDG_CACHE, "XDG_CACHE_HOME", "a folder", "likewise, its folder cgs")                         \
    X(HOME, "HOME", "a folder", "likewise, its folder .cache/cgs")                                 \
    X(LOG, "CGS_LOG", "debug", "print everything that is logged, also timings")                    \
    X(PROGRESS, "CGS_PROGRESS", "seconds",                                                         \
      "between lines of progress where there is no terminal (30); 0: none")                        \
    X(ISA, "CGS_ISA", "base, v3, v4 or amx", "the highest instruction set to use, as --isa")       \
    X(ONEDNN_ISA, "ONEDNN_MAX_CPU_ISA", "as oneDNN has it", "respected where it is lower")         \
    X(DNNL_ISA, "DNNL_MAX_CPU_ISA", "as oneDNN has it", "the older name of the former")            \
    X(VARIANTS_OFF, "CGS_VARIANTS_OFF", "names",                                                   \
      "variants that a GPU does without: see docs/cuda-variants.md")                               \
    X(DEVICE_LOOP, "CGS_DEVICE_LOOP", "0", "the loop of a solve runs on the host, also on a GPU")  \
    X(ROLLOUT, "CGS_ROLLOUT", "tape, clusters or tiles",                                           \
      "how a GPU runs rollouts, whatever the batch: see docs/performance.md")                      \
    X(CLUSTER_BARRIERS, "CGS_CLUSTER_BARRIERS", "1",                                               \
      "a barrier after every wait of a cluster, for checkers of races")

typedef enum cgs_variable {
#define X(id, name, values, help) CGS_ENV_##id,
    CGS_ENVIRONMENT(X)
#undef X
        CGS_ENV_COUNT
} cgs_variable;

/* Its value; NULL where it is not set or empty.  Thread-safe. */
const char *cgs_environment(cgs_variable v);

/* Reads all of them again, after the process changed its own environment; no other thread may be
 * running. */
void cgs_environment_reread(void);

/* The table, for help. */
typedef struct cgs_variable_row {
    const char *name, *values, *help;
} cgs_variable_row;
cgs_variable_row cgs_environment_row(cgs_variable v);

#endif /* CGS_CORE_ENVIRONMENT_H */
