/* straighten.cu - the two losses on latent steps D_t = z_{t+1} - z_t: straightness (TS) and
 * agreement with control geometry (CGS).  The reference has the formulas.
 *
 * A warp takes one window.  It first finds the few numbers that describe all its pairs, in
 * double and in shared memory, because masks depend on tiny norms; gradients follow from
 * those.  Each window leaves a sum and a count; one block adds them. */
#include "ops/cuda/kernels.cuh"

namespace {

template <class T> struct latents { /* one window, (steps+1, D) */
    const T *z;
    int D;
    __device__ double step(int t, int d) const {
        return (double)widen(z[(size_t)(t + 1) * D + d]) - (double)widen(z[(size_t)t * D + d]);
    }
    __device__ double dot(int t, int s) const {
        double sum = 0;
        for (int d = threadIdx.x; d < D; d += 32) sum += step(t, d) * step(s, d);
        return warp_sum(sum);
    }
};

/* ---- straightness --------------------------------------------------------------------------- */

struct corner {
    double length[2], cosine; /* lengths are 0 for a pair that does not count */
};

/* pairs (T-2) in shared memory; returns how many count */
template <class T>
__device__ int look_at_corners(corner *pairs, latents<T> w, int T_, double least) {
    int count = 0;
    for (int t = 0; t + 2 < T_; t++) {
        double aa = sqrt(w.dot(t, t)), bb = sqrt(w.dot(t + 1, t + 1)), ab = w.dot(t, t + 1);
        bool valid = aa > least && bb > least;
        if (threadIdx.x == 0) {
            pairs[t].length[0] = valid ? aa : 0;
            pairs[t].length[1] = valid ? bb : 0;
            pairs[t].cosine = valid ? ab / (aa * bb) : 0;
        }
        count += valid;
    }
    __syncwarp();
    return count;
}

template <class T>
__global__ void __launch_bounds__(32)
    corners(double *sums, const T *z, int T_, int D, float least) {
    extern __shared__ double shared[];
    corner *pairs = (corner *)shared;
    int count = look_at_corners(pairs, latents<T>{z + (size_t)blockIdx.x * T_ * D, D}, T_, least);
    if (threadIdx.x > 0) return;
    double sum = 0;
    for (int t = 0; t + 2 < T_; t++)
        if (pairs[t].length[0] > 0) sum += 1 - pairs[t].cosine;
    sums[2 * blockIdx.x] = sum;
    sums[2 * blockIdx.x + 1] = count;
}

/* with unit vectors u, w of steps t, t+1: d cos / dD_t = (w - cos u) / |D_t|, the other alike */
template <class T>
__global__ void __launch_bounds__(32)
    corners_back(T *dz, bool add, const float *g, const float *pairs_in_all, const T *z, int T_,
                 int D, float least) {
    extern __shared__ double shared[];
    corner *pairs = (corner *)shared;
    latents<T> w = {z + (size_t)blockIdx.x * T_ * D, D};
    look_at_corners(pairs, w, T_, least);
    dz += (size_t)blockIdx.x * T_ * D;
    double scale = *pairs_in_all > 0 ? *g / (double)*pairs_in_all : 0;
    for (int d = threadIdx.x; d < D; d += 32)
        for (int t = 0; t < T_; t++) { /* z_t is in the corners t-2, t-1 and t */
            double sum = 0;
            for (int c = t - 2; c <= t; c++) {
                if (c < 0 || c + 2 >= T_ || pairs[c].length[0] == 0) continue;
                double l0 = pairs[c].length[0], l1 = pairs[c].length[1], cosine = pairs[c].cosine;
                double u = w.step(c, d) / l0, v = w.step(c + 1, d) / l1;
                double du = -(v - cosine * u) / l0, dv = -(u - cosine * v) / l1;
                sum += c == t ? -du : c == t - 1 ? du - dv : dv;
            }
            give_one(dz + (size_t)t * D + d, (float)(scale * sum), add);
        }
}

/* ---- control geometry ------------------------------------------------------------------------ */

struct geometry {   /* one window; arrays in shared memory */
    double *length; /* (N) of D_t, 0 where t does not count        */
    double *Kz, *E; /* (N,N), 0 where a pair does not count        */
    double pairs;
};

template <class T, class TR>
__device__ geometry look_at_window(double *shared, latents<T> w, const TR *r, const float *mask,
                                   int N, int R, double least) {
    geometry g = {shared, shared + N, shared + N + N * N, 0};
    double *Ka = g.E; /* of pairs, then replaced */
    for (int t = 0; t < N; t++)
        for (int s = t; s < N; s++) {
            double z = w.dot(t, s), a = 0;
            for (int i = threadIdx.x; i < R; i += 32)
                a += (double)widen(r[t * R + i]) * (double)widen(r[s * R + i]);
            a = warp_sum(a);
            if (threadIdx.x == 0) {
                g.Kz[t * N + s] = g.Kz[s * N + t] = z;
                Ka[t * N + s] = Ka[s * N + t] = a;
            }
        }
    __syncwarp();
    for (int t = threadIdx.x; t < N; t += 32) {
        double z = sqrt(g.Kz[t * N + t]), a = sqrt(Ka[t * N + t]);
        bool valid = (!mask || mask[t] != 0) && z >= least && a >= least;
        g.length[t] = valid ? z : 0;
    }
    __syncwarp();
    /* the diagonals are needed until the end: pairs first, then they are cleared */
    for (int i = threadIdx.x; i < N * N; i += 32) {
        int t = i / N, s = i % N;
        bool valid = t != s && g.length[t] > 0 && g.length[s] > 0;
        if (t == s) continue;
        double kz = valid ? g.Kz[i] / (g.length[t] * g.length[s]) : 0;
        double ka = valid ? Ka[i] / sqrt(Ka[t * N + t] * Ka[s * N + s]) : 0;
        g.Kz[i] = kz;
        g.E[i] = kz - ka;
    }
    __syncwarp();
    for (int t = threadIdx.x; t < N; t += 32) g.Kz[t * N + t] = g.E[t * N + t] = 0;
    __syncwarp();
    int counted = 0;
    for (int t = 0; t < N; t++) counted += g.length[t] > 0;
    g.pairs = (double)counted * (counted - 1);
    return g;
}

template <class T, class TR>
__global__ void __launch_bounds__(32)
    windows(double *sums, const T *z, const TR *r, const float *mask, int N, int D, int R,
            float least, bool per_window) {
    extern __shared__ double shared[];
    size_t b = blockIdx.x;
    geometry g = look_at_window(shared, latents<T>{z + b * (N + 1) * D, D}, r + b * N * R,
                                mask ? mask + b * N : NULL, N, R, least);
    if (threadIdx.x > 0) return;
    double squares = 0;
    for (int i = 0; i < N * N; i++) squares += g.E[i] * g.E[i];
    bool any = g.pairs > 0;
    sums[2 * b] = !any ? 0 : per_window ? squares / g.pairs : squares;
    sums[2 * b + 1] = !any ? 0 : per_window ? 1 : g.pairs;
}

template <class T, class TR>
__global__ void __launch_bounds__(32)
    windows_back(T *dz, bool add, const float *out_grad, const float *count, const T *z,
                 const TR *r, const float *mask, int N, int D, int R, float least,
                 bool per_window) {
    extern __shared__ double shared[];
    size_t b = blockIdx.x;
    latents<T> w = {z + b * (N + 1) * D, D};
    geometry g = look_at_window(shared, w, r + b * N * R, mask ? mask + b * N : NULL, N, R, least);
    double Q = per_window ? *count * g.pairs : *count;
    dz += b * (N + 1) * D;
    for (int d = threadIdx.x; d < D; d += 32) {
        double before = 0; /* dD_{t-1} */
        for (int t = 0; t <= N; t++) {
            double dD = 0;
            if (t < N && g.pairs > 0 && g.length[t] > 0) {
                double dot = 0;
                for (int s = 0; s < N; s++) dot += g.E[t * N + s] * g.Kz[t * N + s];
                dD = -dot * w.step(t, d) / g.length[t];
                for (int s = 0; s < N; s++)
                    if (g.length[s] > 0) dD += g.E[t * N + s] * w.step(s, d) / g.length[s];
                dD *= 4 / (Q * g.length[t]);
            }
            give_one(dz + (size_t)t * D + d, (float)(*out_grad * (before - dD)), add);
            before = dD;
        }
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* out = sum / count, 0 without any */
__global__ void __launch_bounds__(256)
    average(float *out, float *count_out, const double *sums, int B) {
    __shared__ double partial[32];
    double sum = 0, count = 0;
    for (int b = threadIdx.x; b < B; b += 256) {
        sum += sums[2 * b];
        count += sums[2 * b + 1];
    }
    sum = block_sum(sum, partial);
    count = block_sum(count, partial);
    if (threadIdx.x > 0) return;
    *count_out = (float)count;
    *out = count > 0 ? (float)(sum / count) : 0;
}

void launch_average(cgs_device *d, const cgs_record *r) {
    average<<<1, 256, 0, stream_of(d)>>>((float *)r->out->data, (float *)r->saved[0]->data,
                                         (const double *)cgs_cuda_of(d)->scratch, r->in[0]->dim[0]);
    LAUNCHED(d, "average over windows");
}

size_t shared_bytes(const cgs_record *r) {
    size_t T = (size_t)r->in[0]->dim[1], N = T - 1;
    return r->op == CGS_OP_cgs ? (N + 2 * N * N) * sizeof(double) : T * sizeof(corner);
}

} // namespace

extern "C" {

cgs_status cgs_cuda_cgs_prepare(cgs_device *d, const cgs_record *r) {
    if (shared_bytes(r) > 48 * 1024)
        return cgs_fail(CGS_EARG, "%s: windows of %d frames are too long for the GPU",
                        cgs_op_name(r->op), r->in[0]->dim[1]);
    return cgs_cuda_need(d, 2 * (size_t)r->in[0]->dim[0] * sizeof(double));
}

void cgs_cuda_straighten_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0];
    WITH_TYPE(T, z->dtype,
              corners<T><<<z->dim[0], 32, shared_bytes(r), stream_of(d)>>>(
                  (double *)cgs_cuda_of(d)->scratch, (const T *)z->data, z->dim[1], z->dim[2],
                  r->arg.straighten.min_norm));
    LAUNCHED(d, "straighten");
    launch_average(d, r);
}

void cgs_cuda_straighten_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0];
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(T, z->dtype,
              corners_back<T><<<z->dim[0], 32, shared_bytes(r), stream_of(d)>>>(
                  (T *)z->grad, r->accumulate[0], (const float *)r->out->grad,
                  (const float *)r->saved[0]->data, (const T *)z->data, z->dim[1], z->dim[2],
                  r->arg.straighten.min_norm));
    LAUNCHED(d, "straighten backward");
}

void cgs_cuda_cgs_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0], *a = r->in[1];
    const float *mask = r->in[2] ? (const float *)r->in[2]->data : NULL;
    WITH_TYPE(T, z->dtype,
              WITH_TYPE(TR, a->dtype,
                        windows<T, TR><<<z->dim[0], 32, shared_bytes(r), stream_of(d)>>>(
                            (double *)cgs_cuda_of(d)->scratch, (const T *)z->data,
                            (const TR *)a->data, mask, a->dim[1], z->dim[2], a->dim[2],
                            r->arg.cgs.min_norm, r->arg.cgs.per_window)));
    LAUNCHED(d, "cgs");
    launch_average(d, r);
}

void cgs_cuda_cgs_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *z = r->in[0], *a = r->in[1];
    const float *mask = r->in[2] ? (const float *)r->in[2]->data : NULL;
    cgs_cuda_clear_grad(d, r, 1); /* references carry no gradient */
    cgs_cuda_clear_grad(d, r, 2);
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(T, z->dtype,
              WITH_TYPE(TR, a->dtype,
                        windows_back<T, TR><<<z->dim[0], 32, shared_bytes(r), stream_of(d)>>>(
                            (T *)z->grad, r->accumulate[0], (const float *)r->out->grad,
                            (const float *)r->saved[0]->data, (const T *)z->data,
                            (const TR *)a->data, mask, a->dim[1], z->dim[2], a->dim[2],
                            r->arg.cgs.min_norm, r->arg.cgs.per_window)));
    LAUNCHED(d, "cgs backward");
}

} /* extern "C" */
