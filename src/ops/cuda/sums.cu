/* sums.cu - sums over the rows of a matrix, in two steps: runs of rows, then their sums.
 *
 * Gradients of biases and norms are such sums, some ninety of them in an update, and adding up
 * parts takes longer to start than to run.  So their parts wait, and the end of a pass adds up all
 * of them at once. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { LANES = 8 }; /* rows that a block reads at the same time */

/* Block (x, y) sums rows [y * run, (y+1) * run) of 32 V columns into row y of `to`. */
template <int V, class T>
__global__ void __launch_bounds__(32 * LANES)
    column_sums(float *to, bool add, const T *x, size_t rows, size_t cols, size_t stride,
                size_t run) {
    __shared__ float part[LANES][32 * V];
    size_t col = ((size_t)blockIdx.x * 32 + threadIdx.x) * V;
    size_t first = (size_t)blockIdx.y * run;
    size_t end = first + run < rows ? first + run : rows;
    float sum[V] = {0};
    if (col < cols)
#pragma unroll 4
        for (size_t i = first + threadIdx.y; i < end; i += LANES) {
            float v[V];
            load<V>(v, x + i * stride + col);
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] += v[k];
        }
#pragma unroll
    for (int k = 0; k < V; k++) part[threadIdx.y][threadIdx.x * V + k] = sum[k];
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols) return;
#pragma unroll
    for (int k = 0; k < V; k++)
        for (int l = 1; l < LANES; l++) sum[k] += part[l][threadIdx.x * V + k];
    give<V>(to + (size_t)blockIdx.y * cols + col, sum, add);
}

/* Sums of few hundred rows of partial sums, by 32 columns per block of the `blocks` from `first`
 * on: as many rows at a time as fit, because little else runs meanwhile. */
__device__ __forceinline__ void add_up(const cgs_cuda_sum &s, unsigned block) {
    __shared__ float part[32][33];
    size_t col = (size_t)block * 32 + threadIdx.x;
    float sum = 0;
    if (col < s.cols) {
#pragma unroll 4
        for (size_t i = threadIdx.y; i < s.count; i += 32) sum += s.parts[i * s.stride + col];
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = warp_sum(part[threadIdx.x][threadIdx.y]); /* warp y has column y */
    col = (size_t)block * 32 + threadIdx.y;
    if (threadIdx.x == 0 && col < s.cols) give_one(s.to + col, sum, s.add);
}

__global__ void __launch_bounds__(1024) add_up_one(cgs_cuda_sum s) { add_up(s, blockIdx.x); }

struct list {
    cgs_cuda_sum sum[CGS_CUDA_SUMS];
};
__global__ void __launch_bounds__(1024) add_up_all(const __grid_constant__ list all) {
    int i = 0;
    unsigned block = blockIdx.x;
    while (block >= all.sum[i].blocks) block -= all.sum[i++].blocks;
    add_up(all.sum[i], block);
}

size_t parts_of(size_t rows) {
    size_t parts = (rows + 63) / 64;
    return parts > 256 ? 256 : parts;
}
size_t run_of(size_t rows) { return (rows + parts_of(rows) - 1) / parts_of(rows); }

template <class T>
void launch(cgs_device *d, float *to, bool add, const T *x, size_t rows, size_t cols, size_t stride,
            size_t run) {
    unsigned parts = blocks_for(rows, run);
    dim3 block(32, LANES);
    if (cols % 8 == 0 && stride % 8 == 0)
        column_sums<8><<<dim3(blocks_for(cols, 256), parts), block, 0, stream_of(d)>>>(
            to, add, x, rows, cols, stride, run);
    else
        column_sums<1><<<dim3(blocks_for(cols, 32), parts), block, 0, stream_of(d)>>>(
            to, add, x, rows, cols, stride, run);
    LAUNCHED(d, "sums of columns");
}

} // namespace

extern "C" {

size_t cgs_cuda_column_parts(size_t rows, size_t cols) { return parts_of(rows) * cols; }
size_t cgs_cuda_column_scratch(size_t rows, size_t cols) {
    return cgs_cuda_column_parts(rows, cols) * sizeof(float);
}

static cgs_cuda_sum sum_of(float *to, bool add, const float *parts, size_t count, size_t stride,
                           size_t cols) {
    return {to, parts, (unsigned)count, (unsigned)stride, (unsigned)cols, blocks_for(cols, 32),
            add};
}

void cgs_cuda_column_sums(cgs_device *d, float *to, bool accumulate, const void *x, cgs_dtype type,
                          size_t rows, size_t cols, float *scratch) {
    size_t run = run_of(rows), parts = (rows + run - 1) / run;
    bool whole = parts == 1;
    WITH_TYPE(
        T, type,
        launch(d, whole ? to : scratch, whole && accumulate, (const T *)x, rows, cols, cols, run));
    if (whole) return;
    cgs_cuda_sum s = sum_of(to, accumulate, scratch, parts, cols, cols);
    add_up_one<<<s.blocks, dim3(32, 32), 0, stream_of(d)>>>(s);
    LAUNCHED(d, "sums of columns");
}

/* ---- gradients of parameters ------------------------------------------------------------------
 */

static size_t rounded(size_t floats) { return (floats + 3) / 4 * 4; } /* to 16 bytes */

cgs_status cgs_cuda_need_parts(cgs_device *d, size_t floats) {
    cgs_cuda *c = cgs_cuda_of(d);
    const size_t most = (size_t)16 << 20; /* a larger pass adds up more than once */
    void *fresh;
    floats = rounded(floats);
    c->parts_wanted += floats;
    size_t size = c->parts_wanted < most ? c->parts_wanted : most;
    if (size < floats) size = floats;
    if (size <= c->parts_floats) return CGS_OK;
    if (size < 2 * c->parts_floats) size = 2 * c->parts_floats;
    CGS_TRY(d->ops->alloc(d, &fresh, size * sizeof(float)));
    d->ops->release(d, c->parts);
    c->parts = (float *)fresh;
    c->parts_floats = size;
    c->scratch_moved++;
    return CGS_OK;
}

void cgs_cuda_settle_parts(cgs_device *d) {
    cgs_cuda *c = cgs_cuda_of(d);
    list all = {};
    unsigned blocks = 0;
    for (int i = 0; i < c->sum_count; i++) {
        all.sum[i] = c->sum[i];
        blocks += c->sum[i].blocks;
    }
    if (blocks) {
        add_up_all<<<blocks, dim3(32, 32), 0, stream_of(d)>>>(all);
        LAUNCHED(d, "gradients of biases and norms");
    }
    c->sum_count = 0;
    c->parts_used = 0;
}

float *cgs_cuda_parts(cgs_device *d, size_t floats) {
    cgs_cuda *c = cgs_cuda_of(d);
    floats = rounded(floats);
    if (c->parts_used + floats > c->parts_floats) cgs_cuda_settle_parts(d);
    float *parts = c->parts + c->parts_used;
    c->parts_used += floats;
    return parts;
}

/* whoever writes a gradient at once comes after what waits for it */
static void settle_for(cgs_device *d, const float *to) {
    cgs_cuda *c = cgs_cuda_of(d);
    for (int i = 0; i < c->sum_count; i++)
        if (c->sum[i].to == to) {
            /* parts that are not in the list yet stay where they are: nothing is made meanwhile */
            size_t used = c->parts_used;
            cgs_cuda_settle_parts(d);
            c->parts_used = used;
            return;
        }
}

void cgs_cuda_give_parts(cgs_device *d, const cgs_record *r, int k, const float *parts,
                         size_t count, size_t stride, size_t cols) {
    cgs_cuda *c = cgs_cuda_of(d);
    float *to = (float *)r->in[k]->grad;
    settle_for(d, to);
    c->sum[c->sum_count++] = sum_of(to, r->accumulate[k], parts, count, stride, cols);
    /* outside of a pass nobody would add them up, and what is no parameter is read in this pass */
    if (!c->collects || !r->in[k]->outside || c->sum_count == CGS_CUDA_SUMS) {
        size_t used = c->parts_used;
        cgs_cuda_settle_parts(d);
        if (c->collects) c->parts_used = used;
    }
}

void cgs_cuda_give_column_sums(cgs_device *d, const cgs_record *r, int k, const void *x,
                               cgs_dtype type, size_t rows, size_t cols) {
    size_t run = run_of(rows), count = (rows + run - 1) / run;
    float *to = (float *)r->in[k]->grad;
    bool whole = count == 1;
    if (whole) settle_for(d, to);
    float *parts = whole ? to : cgs_cuda_parts(d, count * cols);
    WITH_TYPE(T, type,
              launch(d, parts, whole && r->accumulate[k], (const T *)x, rows, cols, cols, run));
    if (!whole) cgs_cuda_give_parts(d, r, k, parts, count, cols, cols);
}

} /* extern "C" */
