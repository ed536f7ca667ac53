/* tiles_pack.cuh - weights of a predictor as the slabs of tiles.cuh. */
#ifndef CGS_ROLLOUT_CUDA_SM90_TILES_PACK_CUH
#define CGS_ROLLOUT_CUDA_SM90_TILES_PACK_CUH

#include "rollout/cuda/sm90/tiles.cuh"

namespace {

struct pack_task {
    int layers;
    float batch_eps;
    const uint16_t *qkv[CGS_PREDICTOR_LAYERS + 1], *out[CGS_PREDICTOR_LAYERS + 1];
    const uint16_t *in[CGS_PREDICTOR_LAYERS + 1], *down[CGS_PREDICTOR_LAYERS + 1];
    const float *in_b[CGS_PREDICTOR_LAYERS + 1]; /* the last of in, down, in_b: the projector's */
    const float *norm_w, *norm_b, *mean, *var;
};

/* a CTA packs a slab */
__global__ void __launch_bounds__(256) pack_slabs(unsigned char *slabs, pack_task p) {
    int layer = (int)blockIdx.x / LAYER_SLABS, r = (int)blockIdx.x % LAYER_SLABS, K = D;
    bool projector = layer == p.layers, rows = true; /* rows: 64 outputs of W; or 64 inputs */
    const uint16_t *W;
    int first;
    if (!projector && r < HEADS * HEAD_SLABS) {
        rows = r % HEAD_SLABS < 3;
        W = rows ? p.qkv[layer] : p.out[layer];
        first = rows ? r % HEAD_SLABS * INNER + r / HEAD_SLABS * WIDTH : r / HEAD_SLABS * WIDTH;
        if (!rows) K = INNER;
    } else {
        if (!projector) r -= HEADS * HEAD_SLABS;
        rows = r % UNIT_SLABS == 0;
        W = rows ? p.in[layer] : p.down[layer];
        first = r / UNIT_SLABS * 64;
        if (!rows) K = HIDDEN;
    }
    unsigned char *to = slabs + (size_t)blockIdx.x * PACKED;
    for (int i = threadIdx.x; i < SLAB / 2; i += 256) {
        int k = i % 64, n = i / 64, piece = 0; /* n: row of the operand in its piece */
        size_t from;
        if (rows) {
            piece = n / 64;
            n %= 64;
            from = (size_t)(first + n) * K + piece * 64 + k;
        } else { /* columns 16 i + 4 q + 2 h + e of rows are outputs 16 i + 8 h + 2 q + e here */
            int column = n / 16 * 16 + n % 8 / 2 * 4 + n % 16 / 8 * 2 + n % 2;
            from = (size_t)column * K + first + k;
        }
        size_t at = (size_t)piece * PIECE + n / 8 * ATOM + n % 8 * 128 + ((k / 8) ^ (n % 8)) * 16;
        *reinterpret_cast<uint16_t *>(to + at + k % 8 * 2) = W[from];
    }
    float *extra = (float *)(to + SLAB);
    for (int i = threadIdx.x; i < 64; i += 256) {
        float factor = 1, addend = 0;
        int u = first + i;
        if (rows && W == p.in[layer]) addend = p.in_b[layer][u];
        if (rows && projector) { /* batch norm of what was learned */
            factor = p.norm_w[u] / sqrtf(p.var[u] + p.batch_eps);
            addend = (addend - p.mean[u]) * factor + p.norm_b[u];
        }
        extra[i] = factor;
        extra[64 + i] = addend;
    }
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_SM90_TILES_PACK_CUH */
