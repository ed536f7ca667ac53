/* sums.cu - sums over the rows of a matrix, in two steps: runs of rows, then their sums. */
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

/* Sums of few hundred rows of partial sums, `stride` floats apart, by 32 columns per block: as
 * many rows at a time as fit, because nothing else runs meanwhile. */
__global__ void __launch_bounds__(1024)
    add_up(float *to, bool add, const float *parts, size_t count, size_t stride, size_t cols) {
    __shared__ float part[32][33];
    size_t col = (size_t)blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (col < cols) {
#pragma unroll 4
        for (size_t i = threadIdx.y; i < count; i += 32) sum += parts[i * stride + col];
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = warp_sum(part[threadIdx.x][threadIdx.y]); /* warp y has column y */
    col = (size_t)blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && col < cols) give_one(to + col, sum, add);
}

size_t parts_of(size_t rows) {
    size_t parts = (rows + 63) / 64;
    return parts > 256 ? 256 : parts;
}

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

size_t cgs_cuda_column_scratch(size_t rows, size_t cols) {
    return parts_of(rows) * cols * sizeof(float);
}

void cgs_cuda_add_parts(cgs_device *d, float *to, bool accumulate, const float *parts, size_t count,
                        size_t stride, size_t cols) {
    add_up<<<blocks_for(cols, 32), dim3(32, 32), 0, stream_of(d)>>>(to, accumulate, parts, count,
                                                                    stride, cols);
    LAUNCHED(d, "sums of columns");
}

void cgs_cuda_column_sums(cgs_device *d, float *to, bool accumulate, const void *x, cgs_dtype type,
                          size_t rows, size_t cols, float *scratch) {
    size_t parts = parts_of(rows), run = (rows + parts - 1) / parts;
    parts = (rows + run - 1) / run;
    bool whole = parts == 1;
    WITH_TYPE(
        T, type,
        launch(d, whole ? to : scratch, whole && accumulate, (const T *)x, rows, cols, cols, run));
    if (!whole) cgs_cuda_add_parts(d, to, accumulate, scratch, parts, cols, cols);
}

} /* extern "C" */
