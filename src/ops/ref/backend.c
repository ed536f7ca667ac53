/* backend.c - the table of the reference backend, its memory and the optimiser. */
#include <stdlib.h>

#include "core/arena.h"
#include "ops/ref/ref.h"

static cgs_status open_ref(cgs_device *d) {
    d->threads = 1;
    return CGS_OK;
}

static void close_ref(cgs_device *d) { (void)d; }

static cgs_status alloc(cgs_device *d, void **p, size_t bytes) {
    (void)d;
    size_t size = cgs_align_up(bytes ? bytes : 1);
    *p = size >= bytes ? aligned_alloc(CGS_ALIGN, size) : NULL;
    if (!*p) return cgs_fail(CGS_ENOMEM, "no memory for %zu bytes", bytes);
    memset(*p, 0, size);
    return CGS_OK;
}

static void release(cgs_device *d, void *p) {
    (void)d;
    free(p);
}

static cgs_status copy(cgs_device *d, void *dst, const void *src, size_t bytes) {
    (void)d;
    if (bytes) memcpy(dst, src, bytes);
    return CGS_OK;
}

static cgs_status sync_ref(cgs_device *d) {
    (void)d;
    return CGS_OK;
}

/* ---- records ---------------------------------------------------------------------- */

static size_t scratch_bytes(const cgs_record *r) {
    switch (r->op) {
    case CGS_OP_attention: return cgs_ref_attention_scratch(r);
    case CGS_OP_attend_first: return cgs_ref_attend_first_scratch(r);
    case CGS_OP_sigreg: return cgs_ref_sigreg_scratch(r);
    case CGS_OP_straighten: return cgs_ref_straighten_scratch(r);
    case CGS_OP_cgs: return cgs_ref_cgs_scratch(r);
    default: return 0;
    }
}

static cgs_status prepare(cgs_device *d, cgs_record *r) {
    size_t bytes = scratch_bytes(r);
    r->impl = NULL;
    return bytes ? alloc(d, &r->impl, bytes) : CGS_OK;
}

static void unprepare(cgs_device *d, cgs_record *r) {
    release(d, r->impl);
    r->impl = NULL;
}

#define X(name, reads_in, reads_out)                                                               \
    static void name##_forward(cgs_device *d, const cgs_record *r) {                               \
        (void)d;                                                                                   \
        cgs_ref_##name##_forward(r);                                                               \
    }                                                                                              \
    static void name##_backward(cgs_device *d, const cgs_record *r) {                              \
        (void)d;                                                                                   \
        cgs_ref_##name##_backward(r);                                                              \
    }                                                                                              \
    static void name##_tangent(cgs_device *d, const cgs_record *r) {                               \
        (void)d;                                                                                   \
        for (size_t i = 0, n = (size_t)r->directions; i < n; i += CGS_LANES)                       \
            cgs_ref_##name##_tangent(r, (cgs_lanes){i, n - i < CGS_LANES ? n - i : CGS_LANES});    \
    }
CGS_OPS(X)
#undef X

/* ---- the whole model at once ------------------------------------------------------ */

static double sum_squares(cgs_device *d, const float *x, size_t n) {
    (void)d;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

static void round_bf16(cgs_device *d, uint16_t *to, const float *from, size_t n) {
    (void)d;
    for (size_t i = 0; i < n; i++) to[i] = cgs_f32_to_bf16(from[i]);
}

/* decoupled decay first, then a step along the bias-corrected moments */
static void adamw(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                  uint16_t *bf16, size_t n) {
    double lr = a->lr, b1 = a->beta1, b2 = a->beta2;
    double correct1 = 1 - pow(b1, (double)a->step), correct2 = 1 - pow(b2, (double)a->step);
    for (size_t i = 0; i < n; i++) {
        double gi = (double)a->clip_scale * g[i];
        double mi = b1 * m[i] + (1 - b1) * gi, vi = b2 * v[i] + (1 - b2) * gi * gi;
        double pi = p[i] - lr * a->weight_decay * p[i];
        p[i] = (float)(pi - lr * (mi / correct1) / (sqrt(vi / correct2) + a->eps));
        m[i] = (float)mi;
        v[i] = (float)vi;
    }
    if (bf16) round_bf16(d, bf16, p, n);
}

const cgs_backend cgs_backend_ref = {
    .name = "ref",
    .kind = CGS_DEVICE_CPU,
    .open = open_ref,
    .close = close_ref,
    .alloc = alloc,
    .release = release,
    .upload = copy,
    .download = copy,
    .sync = sync_ref,
    .prepare = prepare,
    .unprepare = unprepare,
#define X(name, reads_in, reads_out) [CGS_OP_##name] = name##_forward,
    .forward = {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = name##_backward,
    .backward = {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = name##_tangent,
    .tangent = {CGS_OPS(X)},
#undef X
    .sum_squares = sum_squares,
    .adamw = adamw,
    .round_bf16 = round_bf16,
    .muon = cgs_ref_muon,
};
