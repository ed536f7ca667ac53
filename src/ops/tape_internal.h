/* tape_internal.h - shared by the tape's files: recording (record.c), memory planning (memory.c),
 * running (tape.c). */
#ifndef CGS_OPS_TAPE_INTERNAL_H
#define CGS_OPS_TAPE_INTERNAL_H

#include "ops/tape.h"

/* Records and tensors are referenced by address, so they are in chunks that never move. */
#define TAPE_CHUNK 256

typedef struct tape_node { /* one tensor made by the tape */
    cgs_tensor tensor;
    int producer; /* record that writes it, or -1 for an input */
    int readers;  /* inputs of records that are it or a view of it */
    bool seeded;  /* the caller writes its gradient */
    int segment;  /* whose lanes it exists in only, or -1 */
    bool whole;   /* ... all of it in each */
} tape_node;

struct cgs_tape {
    cgs_device *device;
    cgs_dtype act; /* of activations recorded from now on */
    uint64_t step;
    bool frozen;          /* parameters recorded from now on get no gradient */
    bool batch_invariant; /* products recorded from now on do not depend on how many rows they have
                           */

    cgs_record **record_chunks;
    tape_node **node_chunks;
    int records, nodes, record_room, node_room; /* capacities, in chunks */

    bool *active;         /* (records) lies between a wanted gradient and the loss */
    bool one_by_one;      /* no segments */
    int directions;       /* that push takes tangents along, 0: none */
    cgs_segment *segment; /* (segments), in the order of their records */
    int segments;
    cgs_record **in_order;         /* (records) what segments point to */
    cgs_share (*share)[CGS_SLOTS]; /* (records) */
    cgs_tensor *loss;
    bool seeded;  /* some gradients are written by the caller */
    void *memory; /* all planned memory, one allocation on the device */
    size_t bytes;
    bool finished;
    void *pass[2]; /* the backend's cached graphs of forward and backward */

    cgs_status status; /* first failure while recording */
    char error[512];
    cgs_tensor nothing; /* returned by operations on a failed tape */
};

static inline cgs_record *tape_record(const cgs_tape *t, int i) {
    return &t->record_chunks[i / TAPE_CHUNK][i % TAPE_CHUNK];
}
static inline tape_node *tape_node_at(const cgs_tape *t, int i) {
    return &t->node_chunks[i / TAPE_CHUNK][i % TAPE_CHUNK];
}
static inline cgs_tensor *tape_root(cgs_tensor *x) {
    while (x->view_of) x = x->view_of;
    return x;
}

/* Appends; NULL (with the tape marked failed) when out of memory. */
cgs_record *tape_new_record(cgs_tape *t, cgs_opcode op);
cgs_tensor *tape_new_tensor(cgs_tape *t, cgs_dtype dtype, int rank, const int *dim, int producer);

/* Marks the tape as failed with the sentence of the thread's last error. */
cgs_tensor *tape_fail(cgs_tape *t, cgs_status status);

/* Whether backward of an active record reads in[i], and whether it reads its output. */
bool tape_backward_reads_in(const cgs_record *r, int i);
bool tape_backward_reads_out(const cgs_record *r);

/* Decides active records and accumulate flags, then plans and allocates memory. */
cgs_status tape_plan_memory(cgs_tape *t);

/* The node of a tensor of the tape, -1 of a parameter. */
int tape_node_of(const cgs_tape *t, const cgs_tensor *x);

/* Finds the segments of a tape's forward pass, and marks what exists only in lanes. */
cgs_status tape_find_segments(cgs_tape *t);
/* bytes of a node's tensor in a lane, which has the elements of a chunk */
size_t tape_lane_bytes(const cgs_tape *t, const tape_node *n);
void tape_free_segments(cgs_tape *t);

#endif /* CGS_OPS_TAPE_INTERNAL_H */
