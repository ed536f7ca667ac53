/* team.h - teams of threads that share loops.
 *
 * One thread, the leader, calls cgs_together(); free helpers run the same function beside it, as
 * the threads of a CUDA block run one kernel.  Inside, loops are divided into pieces, and
 * cgs_meet() is the barrier before a loop that reads what others wrote:
 *
 *     static void halve(void *context) {
 *         job *j = context;
 *         CGS_SHARE(i, j->n) j->x[i] /= 2;
 *         cgs_meet();
 *         if (cgs_member() == 0) finish(j);
 *     }
 *     cgs_together(0, halve, &j);
 *
 * A helper may come late or not at all: the others then take its pieces.  So a busy neighbour on
 * one core does not hold up all others; OpenMP's barriers, in contrast, wait for every thread.
 * Which thread takes a piece must therefore not matter: partial sums belong to pieces, never to
 * threads.
 *
 * Every member must reach the same loops and barriers in the same order. */
#ifndef CGS_CORE_TEAM_H
#define CGS_CORE_TEAM_H

#include <stdbool.h>
#include <stddef.h>

typedef void cgs_job(void *context);

/* Runs work(context) by up to `threads` threads at once, 0: cgs_threads(), and returns when all
 * that began have ended.  Helpers are made on first use and belong to the calling thread.  Called
 * by a member of a team, it runs the work alone. */
void cgs_together(int threads, cgs_job *work, void *context);

/* Index of this thread: 0 is the leader; below the requested number.  0 outside. */
int cgs_member(void);

/* Called by one member: runs work(context) by it alone, whose loops are then its own and whose
 * barriers wait for nobody.  cgs_member() remains what it is. */
void cgs_apart(cgs_job *work, void *context);

/* A barrier: afterwards each member sees what the others wrote. */
void cgs_meet(void);

/* ---- shared loops ----------------------------------------------------------------------- */

typedef struct cgs_piece {
    size_t first, end; /* what to do now */
    size_t n, loop;
    int share;  /* whose share this thread takes from, from its own on */
    bool alone; /* all at once */
} cgs_piece;

cgs_piece cgs_pieces(size_t n);
bool cgs_next_piece(cgs_piece *p);
/* one after the other in order, for pieces of very different length */
bool cgs_next_single(cgs_piece *p);

/* The statement after it runs once for each i in 0 .. n-1, on any thread.  Neighbours tend to
 * stay on one thread, the same from loop to loop. */
#define CGS_SHARE(i, n)                                                                            \
    for (cgs_piece i##_piece = cgs_pieces(n); cgs_next_piece(&i##_piece);)                         \
        for (size_t i = i##_piece.first; i < i##_piece.end; i++)
#define CGS_QUEUE(i, n)                                                                            \
    for (cgs_piece i##_piece = cgs_pieces(n); cgs_next_single(&i##_piece);)                        \
        for (size_t i = i##_piece.first; i < i##_piece.end; i++)

#endif /* CGS_CORE_TEAM_H */
