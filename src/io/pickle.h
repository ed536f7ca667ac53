/* pickle.h - a pickle stream as a graph of plain values.  Nothing is executed.
 *
 * A pickle is a program for a small stack machine; two of its instructions call any function by
 * name, which is the danger.  Here a call only becomes a node that names the function and its
 * arguments; the reader of the graph decides which names it knows.  A few constructors of plain
 * containers are understood at once: OrderedDict, defaultdict, set, frozenset and torch.Size.
 *
 * The graph may share nodes and may contain cycles: a walk must bound its steps. */
#ifndef CGS_IO_PICKLE_H
#define CGS_IO_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef enum cgs_pkl_kind {
    CGS_PKL_NONE,
    CGS_PKL_BOOL,       /* i                                                     */
    CGS_PKL_INT,        /* i                                                     */
    CGS_PKL_BIGINT,     /* more than 64 bits: s, n (little endian)               */
    CGS_PKL_FLOAT,      /* f                                                     */
    CGS_PKL_TEXT,       /* s, n: not terminated, not checked                     */
    CGS_PKL_BYTES,      /* s, n                                                  */
    CGS_PKL_TUPLE,      /* item[0..count)                                        */
    CGS_PKL_LIST,       /* item[0..count)                                        */
    CGS_PKL_SET,        /* item[0..count)                                        */
    CGS_PKL_DICT,       /* item: key, value, key, value, ...; count is even      */
    CGS_PKL_GLOBAL,     /* s: "module.name", terminated                          */
    CGS_PKL_PERSISTENT, /* args: what identifies it                              */
    CGS_PKL_OBJECT      /* fn called with args, then given state (may be NULL)   */
} cgs_pkl_kind;

typedef struct cgs_pkl {
    cgs_pkl_kind kind;
    int64_t i;
    double f;
    const char *s;
    size_t n;
    struct cgs_pkl **item;
    size_t count, capacity;
    struct cgs_pkl *fn, *args, *state;
} cgs_pkl;

typedef struct cgs_pickle {
    cgs_pkl *root;
    struct cgs_pickle_block *blocks; /* memory of all nodes */
    size_t used;                     /* bytes in them       */
} cgs_pickle;

/* Reads a stream.  The graph points into data and changes it (names become C strings),
 * so data lives as long as the graph.  Free the graph also after a failure. */
cgs_status cgs_pickle_read(cgs_pickle *p, char *data, size_t bytes);
void cgs_pickle_free(cgs_pickle *p);

/* The value of a text key in a DICT, or NULL; the last one if it occurs twice. */
const cgs_pkl *cgs_pkl_get(const cgs_pkl *dict, const char *key);
bool cgs_pkl_is_text(const cgs_pkl *v, const char *text);

/* The "module.name" an object is made by; for other values what they are: "a list". */
const char *cgs_pkl_name(const cgs_pkl *v);

#endif /* CGS_IO_PICKLE_H */
