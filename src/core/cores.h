/* cores.h - how many cores this process can keep busy: those it may run on, limited by the CPU
 * quota of its control groups (which is how containers are limited). */
#ifndef CGS_CORE_CORES_H
#define CGS_CORE_CORES_H

typedef struct cgs_cores {
    int allowed;  /* cores that the scheduler may put this process on            */
    double quota; /* cores' worth of time that its groups may use; 0: no limit   */
    int use;      /* allowed, or the quota rounded to a whole number, at least 1 */
} cgs_cores;

cgs_cores cgs_cores_ask(void);

/* The smallest quota among the process's own group and its ancestors, of both versions of control
 * groups; 0: none.  root: "" or a folder that stands in for "/" in tests. */
double cgs_cores_quota(const char *root);

#endif /* CGS_CORE_CORES_H */
