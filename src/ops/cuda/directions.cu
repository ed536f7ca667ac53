/* directions.cu - random unit rows (P,D): normal draws, each row divided by its length. */
#include "ops/cuda/normal.cuh"

namespace {

__global__ void __launch_bounds__(64) draw(float *out, int D, uint64_t key, const uint64_t *step) {
    __shared__ double partial[32];
    uint64_t k = update_key(key, step);
    size_t first = (size_t)blockIdx.x * D;
    double square = 0;
    for (int c = threadIdx.x; c < D; c += 64) {
        float v = normal_at(k, first + c);
        out[first + c] = v; /* this thread's again below */
        square += (double)v * v;
    }
    double length = sqrt(block_sum(square, partial));
    for (int c = threadIdx.x; c < D; c += 64) out[first + c] = (float)(out[first + c] / length);
}

} // namespace

extern "C" {

void cgs_cuda_directions_forward(cgs_device *d, const cgs_record *r) {
    draw<<<(unsigned)cgs_rows(r->out), 64, 0, stream_of(d)>>>(
        (float *)r->out->data, cgs_cols(r->out), r->arg.directions.key, cgs_cuda_step(d, r));
    LAUNCHED(d, "directions");
}

/* nothing goes in */
void cgs_cuda_directions_backward(cgs_device *, const cgs_record *) {}

} /* extern "C" */
