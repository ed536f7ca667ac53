/* unfold.cu - every cell of a grid with its eight neighbours: x (F,n*n,C) -> (F,n*n,C*9). */
#include "ops/cuda/kernels.cuh"

namespace {

/* the row of the cell at distance (k/3 - 1, k%3 - 1) of a row, or -1 outside the grid */
__device__ __forceinline__ long neighbour(long row, int k, int n) {
    int cell = (int)(row % ((long)n * n)), y = cell / n + k / 3 - 1, x = cell % n + k % 3 - 1;
    return y >= 0 && y < n && x >= 0 && x < n ? row - cell + y * n + x : -1;
}

template <class TX, class TY> struct gather {
    int n, C;
    const TX *x;
    TY *out;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
#pragma unroll
        for (int e = 0; e < V; e++) {
            size_t j = i + e, row = j / (9 * (size_t)C);
            int in = (int)(j % (9 * (size_t)C)), c = in / 9;
            long from = neighbour((long)row, in % 9, n);
            v[e] = from < 0 ? 0.0f : widen(x[from * C + c]);
        }
        store<V>(out + i, v);
    }
};

/* element (row, c) of x is seen by nine cells, in a fixed order */
template <class TX, class TY> struct scatter {
    int n, C;
    bool add;
    const TY *g;
    TX *dx;
    template <int V> __device__ void at(size_t i) const {
        float v[V];
#pragma unroll
        for (int e = 0; e < V; e++) {
            long row = (long)((i + e) / C);
            int c = (int)((i + e) % C);
            v[e] = 0;
            for (int k = 0; k < 9; k++) {
                long from = neighbour(row, 8 - k, n);
                if (from >= 0) v[e] += widen(g[(from * C + c) * 9 + k]);
            }
        }
        give<V>(dx + i, v, add);
    }
};

} // namespace

extern "C" {

void cgs_cuda_unfold_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        launch_each(d, cgs_numel(y), true, "unfold",
                                    gather<TX, TY>{r->arg.unfold.side, cgs_cols(x),
                                                   (const TX *)x->data, (TY *)y->data})));
}

void cgs_cuda_unfold_backward(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    const cgs_tensor *x = r->in[0], *y = r->out;
    WITH_TYPE(
        TX, x->dtype,
        WITH_TYPE(TY, y->dtype,
                  launch_each(d, cgs_numel(x), false, "unfold backward",
                              scatter<TX, TY>{r->arg.unfold.side, cgs_cols(x), r->accumulate[0],
                                              (const TY *)y->grad, (TX *)x->grad})));
}

} /* extern "C" */
