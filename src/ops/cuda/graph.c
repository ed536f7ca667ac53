/* graph.c - programs: graphs that hold any sequence of calls, for planners; and the table of
 * what this backend offers to them. */
#include "ops/cuda/planning.h"

static cgs_status record(cgs_device *d, void **program, void (*calls)(void *), void *ctx) {
    cgs_cuda *c = cgs_cuda_of(d);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    *program = NULL;
    CGS_TRY(d->ops->sync(d)); /* failures from before are not the program's */
    cudaError_t e = cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal);
    if (e == cudaSuccess) {
        c->capturing = true;
        calls(ctx);
        c->capturing = false;
        e = cudaStreamEndCapture(c->stream, &graph);
    }
    if (e == cudaSuccess) e = cudaGraphInstantiate(&exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (e == cudaSuccess && c->failure[0]) {
        cudaGraphExecDestroy(exec);
        return d->ops->sync(d); /* a call failed while it was recorded: this says which */
    }
    if (e != cudaSuccess) {
        cudaGetLastError();
        c->failure[0] = 0; /* a consequence of it */
        return cgs_fail(CGS_EDEVICE, "cuda: recording a program: %s", cudaGetErrorString(e));
    }
    *program = exec;
    return CGS_OK;
}

static cgs_status launch(cgs_device *d, void *program) {
    cudaError_t e = cudaGraphLaunch((cudaGraphExec_t)program, cgs_cuda_of(d)->stream);
    if (e == cudaSuccess) return CGS_OK;
    cudaGetLastError();
    return cgs_fail(CGS_EDEVICE, "cuda: launching a program: %s", cudaGetErrorString(e));
}

static void drop(cgs_device *d, void *program) {
    cudaStreamSynchronize(cgs_cuda_of(d)->stream);
    cudaGraphExecDestroy((cudaGraphExec_t)program);
}

static unsigned moved(const cgs_device *d) { return cgs_cuda_of(d)->scratch_moved; }

const cgs_planning cgs_cuda_planning = {
    .record = record,
    .launch = launch,
    .drop = drop,
    .moved = moved,
    .most_candidates = CGS_CUDA_MOST_CANDIDATES,
    .sample = cgs_cuda_plan_sample,
    .refit = cgs_cuda_plan_refit,
    .reweight = cgs_cuda_plan_reweight,
    .adam = cgs_cuda_plan_adam,
    .gather = cgs_cuda_plan_gather,
    .blend = cgs_cuda_plan_blend,
    .tails = cgs_cuda_plan_tails,
    .predictor_open = cgs_cuda_predictor_open,
    .predictor_run = cgs_cuda_predictor_run,
    .predictor_close = cgs_cuda_predictor_close,
};
