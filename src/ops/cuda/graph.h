/* graph.h - the part of the backend's table that graph.c fills; see ops/ops.h. */
#ifndef CGS_OPS_CUDA_GRAPH_H
#define CGS_OPS_CUDA_GRAPH_H

#include "ops/ops.h"

cgs_status cgs_cuda_graph_capture(cgs_device *d, void **graph, void (*calls)(void *), void *ctx);
cgs_status cgs_cuda_graph_launch(cgs_device *d, void *graph);
void cgs_cuda_graph_drop(cgs_device *d, void *graph);
unsigned cgs_cuda_graphs_moved(const cgs_device *d);

void cgs_cuda_run_pass(cgs_device *d, void **pass, uint64_t step, void (*calls)(void *), void *ctx);
void cgs_cuda_forget_pass(cgs_device *d, void *pass);

#endif /* CGS_OPS_CUDA_GRAPH_H */
