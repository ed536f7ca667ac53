/* graph.c - CUDA graphs: any sequence of calls as one launch, and the passes of tapes.
 *
 * A tape's pass runs call by call the first time, is captured into a graph the second time
 * and is that graph from then on: one launch instead of some hundreds.  A graph holds the
 * addresses it was captured with; those are fixed when a tape is finished, except for the
 * scratch buffer, which may grow with the next tape: then the pass is captured again. */
#include "ops/cuda/graph.h"

#include <stdlib.h>

#include "ops/cuda/cuda.h"

/* *graph is NULL where this fails; what calls noted is in c->failure either way */
static cudaError_t capture(cgs_cuda *c, cudaGraphExec_t *graph, void (*calls)(void *), void *ctx) {
    cudaGraph_t captured = NULL;
    *graph = NULL;
    cudaError_t e = cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal);
    if (e == cudaSuccess) {
        c->capturing = true;
        calls(ctx);
        c->capturing = false;
        e = cudaStreamEndCapture(c->stream, &captured);
    }
    if (e == cudaSuccess) e = cudaGraphInstantiate(graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    if (e == cudaSuccess) return e;
    cudaGetLastError();
    *graph = NULL;
    return e;
}

/* ---- graphs of any calls --------------------------------------------------------------------- */

cgs_status cgs_cuda_graph_capture(cgs_device *d, void **graph, void (*calls)(void *), void *ctx) {
    cgs_cuda *c = cgs_cuda_of(d);
    cudaGraphExec_t captured;
    *graph = NULL;
    CGS_TRY(d->ops->sync(d)); /* failures from before are not the graph's */
    cudaError_t e = capture(c, &captured, calls, ctx);
    if (e != cudaSuccess) {
        c->failure[0] = 0; /* a consequence of it */
        return cgs_fail(CGS_EDEVICE, "cuda: capturing a graph: %s", cudaGetErrorString(e));
    }
    if (c->failure[0]) {
        cudaGraphExecDestroy(captured);
        return d->ops->sync(d); /* a call failed while it was captured: this says which */
    }
    *graph = captured;
    return CGS_OK;
}

cgs_status cgs_cuda_graph_launch(cgs_device *d, void *graph) {
    cudaError_t e = cudaGraphLaunch((cudaGraphExec_t)graph, cgs_cuda_of(d)->stream);
    if (e == cudaSuccess) return CGS_OK;
    cudaGetLastError();
    return cgs_fail(CGS_EDEVICE, "cuda: launching a graph: %s", cudaGetErrorString(e));
}

void cgs_cuda_graph_drop(cgs_device *d, void *graph) {
    cudaStreamSynchronize(cgs_cuda_of(d)->stream);
    cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

unsigned cgs_cuda_graphs_moved(const cgs_device *d) { return cgs_cuda_of(d)->scratch_moved; }

/* ---- passes of tapes ------------------------------------------------------------------------- */

typedef struct pass {
    int runs;
    bool alone; /* cannot be captured: runs call by call */
    unsigned scratch_moved;
    cudaGraphExec_t graph;
} pass;

/* on failure the pass stays a list of calls */
static void capture_pass(cgs_cuda *c, pass *p, void (*calls)(void *), void *ctx) {
    bool was_fine = !c->failure[0];
    if (p->graph) cudaGraphExecDestroy(p->graph);
    p->scratch_moved = c->scratch_moved;
    if (capture(c, &p->graph, calls, ctx) == cudaSuccess) return;
    if (was_fine) c->failure[0] = 0; /* nothing ran, so nothing failed */
    p->alone = true;
}

/* the calls of a pass, and what waits for its end */
typedef struct whole {
    cgs_device *d;
    void (*calls)(void *);
    void *ctx;
} whole;

static void call_all(void *of) {
    const whole *w = of;
    cgs_cuda *c = cgs_cuda_of(w->d);
    c->collects = true;
    w->calls(w->ctx);
    cgs_cuda_settle_parts(w->d);
    c->collects = false;
}

void cgs_cuda_run_pass(cgs_device *d, void **remembered, uint64_t step, void (*calls)(void *),
                       void *ctx) {
    cgs_cuda *c = cgs_cuda_of(d);
    whole all = {d, calls, ctx};
    pass *p = *remembered;
    if (c->capturing) { /* part of a larger graph */
        call_all(&all);
        return;
    }
    if (!p) p = *remembered = calloc(1, sizeof *p);
    if (!p || p->alone || !cgs_cuda_variant_on(d, "graph") || p->runs++ == 0) {
        call_all(&all);
        return;
    }
    if (!p->graph || p->scratch_moved != c->scratch_moved) capture_pass(c, p, call_all, &all);
    if (!p->graph) {
        call_all(&all);
        return;
    }
    cgs_cuda_set_step(c, step);
    cgs_cuda_note(c, cudaGraphLaunch(p->graph, c->stream), "launching a graph");
}

void cgs_cuda_forget_pass(cgs_device *d, void *remembered) {
    pass *p = remembered;
    if (p->graph) cgs_cuda_graph_drop(d, p->graph);
    free(p);
}
