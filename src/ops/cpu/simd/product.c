/* product.c - our own matrix product, for builds without oneDNN and for cases without fast oneDNN
 * code (bf16 on processors without instructions for it).
 *
 * Blocks of both factors are packed as f32 in the order in which a register tile reads
 * them, so one inner loop serves all layouts and types.  A task is a block of C; sums
 * over K stay with the task, so no result depends on the number of threads. */
#include "ops/cpu/simd/simd.h"
#include "ops/cpu/simd/tile.h"

enum { MC = 8 * TILE_M, NC = 6 * TILE_N, KC = 256 };

size_t CGS_FN(product_scratch)(void) {
    return ((size_t)MC * KC + (size_t)KC * NC + (size_t)MC * NC) * sizeof(float);
}

/* a factor inside memory: element (i, j) is p[i*row + j*col] */
typedef struct matrix {
    const void *p;
    cgs_dtype type;
    size_t row, col;
} matrix;

static inline float element(matrix m, size_t i, size_t j) {
    size_t at = i * m.row + j * m.col;
    return m.type == CGS_F32 ? ((const float *)m.p)[at]
                             : cgs_bf16_to_f32(((const uint16_t *)m.p)[at]);
}

static inline cgs_vec vector_at(matrix m, size_t at) {
    if (m.type == CGS_BF16) return widened((const uint16_t *)m.p + at);
    return *(const cgs_vec_loose *)((const float *)m.p + at);
}

/* n rows of m, `depth` elements of each from k0 on, to columns of `to`: squares of them turned by
 * vectors where elements of a row are adjacent, the others one by one */
static void pack_turned(float *to, matrix m, size_t i0, size_t n, size_t k0, size_t depth,
                        size_t width) {
    size_t turned = m.col == 1 ? n / VECTOR * VECTOR : 0, whole = depth / VECTOR * VECTOR;
    for (size_t i = 0; i < turned; i += VECTOR)
        for (size_t k = 0; k < whole; k += VECTOR) {
            cgs_vec row[VECTOR];
#pragma GCC unroll 16
            for (size_t l = 0; l < VECTOR; l++)
                row[l] = vector_at(m, (i0 + i + l) * m.row + k0 + k);
            turn_square(to + k * width + i, width, row);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i < turned ? whole : 0; k < depth; k++)
            to[k * width + i] = element(m, i0 + i, k0 + k);
}

/* rows i0.. of m and columns k0.. into panels of `width` rows: to[panel][k][row in panel],
 * padded with zeros; the right factor comes transposed */
static void pack(float *to, matrix m, size_t i0, size_t rows, size_t k0, size_t depth,
                 size_t width) {
    for (size_t panel = 0; panel < rows; panel += width, to += width * depth) {
        size_t n = min_size(width, rows - panel);
        if (m.row == 1) { /* adjacent in the panel and in memory */
            for (size_t k = 0; k < depth; k++) {
                float *row = to + k * width;
                const float *from = row_in(m.p, m.type, i0 + panel + (k0 + k) * m.col, n, row);
                if (from != row) memcpy(row, from, n * sizeof *row);
                for (size_t i = n; i < width; i++) row[i] = 0;
            }
        } else {
            if (n < width) memset(to, 0, width * depth * sizeof *to);
            pack_turned(to, m, i0 + panel, n, k0, depth, width);
        }
    }
}

static void finish(const cgs_product *p, void *C, const float *bias, const float *tile_c, size_t i0,
                   size_t rows, size_t j0, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        float v[NC];
        memcpy(v, tile_c + i * NC, cols * sizeof *v);
        if (bias)
            for (size_t j = 0; j < cols; j++) v[j] += bias[j0 + j];
        size_t at = (i0 + i) * p->N + j0;
        if (p->accumulate)
            add_to(C, p->out, at, cols, v);
        else
            row_done(C, p->out, at, cols, v);
    }
}

void CGS_FN(product)(cgs_device *d, const cgs_product *p, void *C, const void *A, const void *B,
                     const float *bias) {
    matrix a = {A, p->in, p->a_transposed ? 1 : p->K, p->a_transposed ? p->M : 1};
    matrix bt = {B, p->in, p->b_transposed ? p->K : 1, p->b_transposed ? 1 : p->N};
    size_t row_tasks = (p->M + MC - 1) / MC, col_tasks = (p->N + NC - 1) / NC;
    CGS_SHARE (task, row_tasks * col_tasks) {
        float *pa = thread_scratch(d), *pb = pa + MC * KC, *c = pb + KC * NC;
        size_t i0 = task / col_tasks * MC, j0 = task % col_tasks * NC;
        size_t rows = min_size(MC, p->M - i0), cols = min_size(NC, p->N - j0);
        memset(c, 0, (size_t)MC * NC * sizeof *c);
        for (size_t k0 = 0; k0 < p->K; k0 += KC) {
            size_t depth = min_size(KC, p->K - k0);
            pack(pa, a, i0, rows, k0, depth, TILE_M);
            pack(pb, bt, j0, cols, k0, depth, TILE_N);
            for (size_t j = 0; j < cols; j += TILE_N)
                for (size_t i = 0; i < rows; i += TILE_M)
                    tile(c + i * NC + j, NC, pa + i * depth, 1, TILE_M, pb + j * depth, TILE_N,
                         depth, true);
        }
        finish(p, C, bias, c, i0, rows, j0, cols);
    }
}
