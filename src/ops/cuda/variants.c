/* variants.c - which form of an operation runs: the first row of variants.h that fits, or the
 * generic one.
 *
 * Predicates know nothing of each other.  They are asked when a tape joins records and again when
 * a record is prepared and run; what they look at does not change in between. */
#include <string.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/variants.h"

#define CGS_OP_none CGS_OP_COUNT

/* ---- the table ------------------------------------------------------------------------------- */

/* before, after: the neighbours of the pattern; `after` is NULL while it is not known */
typedef bool (*fits_fn)(const cgs_device *d, const cgs_record *before, const cgs_record *r,
                        const cgs_record *after);

typedef struct variant {
    const char *name;
    cgs_opcode before, op, after;
    bool other_readers; /* of what passes between the records of the pattern */
    fits_fn fits;
    cgs_status (*prepare)(cgs_device *d, const cgs_record *r);
    cgs_op_fn run[2]; /* by direction; NULL: the generic form */
} variant;

/* the functions of each row, which the .cu files define */
#define DECLARE_device(id)
#define DECLARE_joined(id)                                                                         \
    bool cgs_cuda_##id##_fits(const cgs_device *d, const cgs_record *before, const cgs_record *r,  \
                              const cgs_record *after);
#define DECLARE_run(id, direction)                                                                 \
    cgs_status cgs_cuda_##id##_prepare(cgs_device *d, const cgs_record *r);                        \
    void cgs_cuda_##id##_##direction(cgs_device *d, const cgs_record *r);
#define DECLARE_forward(id) DECLARE_joined(id) DECLARE_run(id, forward)
#define DECLARE_backward(id) DECLARE_joined(id) DECLARE_run(id, backward)
#define DECLARE_both(id) DECLARE_forward(id) DECLARE_run(id, backward)
#define X(id, before, operation, after, between, runs, timed, when, worth) DECLARE_##runs(id)
CGS_CUDA_VARIANTS(X)
#undef X

#define ROW_device(id) .fits = NULL
#define ROW_joined(id) .fits = cgs_cuda_##id##_fits
#define ROW_run(id) ROW_joined(id), .prepare = cgs_cuda_##id##_prepare
#define ROW_forward(id) ROW_run(id), .run = {[CGS_CUDA_FORWARD] = cgs_cuda_##id##_forward}
#define ROW_backward(id) ROW_run(id), .run = {[CGS_CUDA_BACKWARD] = cgs_cuda_##id##_backward}
#define ROW_both(id) ROW_run(id), .run = {cgs_cuda_##id##_forward, cgs_cuda_##id##_backward}

enum { alone, shared }; /* the words of the table */

static const variant variants[] = {
#define X(id, first, operation, last, between, runs, timed, when, worth)                           \
    {.name = #id,                                                                                  \
     .before = CGS_OP_##first,                                                                     \
     .op = CGS_OP_##operation,                                                                     \
     .after = CGS_OP_##last,                                                                       \
     .other_readers = between == shared,                                                           \
     ROW_##runs(id)},
    CGS_CUDA_VARIANTS(X)
#undef X
};
enum { COUNT = sizeof variants / sizeof variants[0] };
_Static_assert(COUNT <= 32, "a variant is a bit of cgs_cuda.off");

static const cgs_op_fn generic_forms[2][CGS_OP_COUNT] = {
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_cuda_##name##_forward,
    {CGS_OPS(X)},
#undef X
#define X(name, reads_in, reads_out) [CGS_OP_##name] = cgs_cuda_##name##_backward,
    {CGS_OPS(X)},
#undef X
};

/* ---- switches -------------------------------------------------------------------------------- */

static cgs_status no_such_variant(const char *word, size_t length) {
    char names[512] = "";
    for (int i = 0; i < COUNT; i++) {
        strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, variants[i].name, sizeof names - strlen(names) - 1);
    }
    return cgs_fail(CGS_EARG, "cuda: unknown variant \"%.*s\": use %s",
                    length < 40 ? (int)length : 40, word, names);
}

cgs_status cgs_cuda_without(cgs_device *d, const char *words) {
    static const char between[] = " ,";
    unsigned off = 0;
    for (words += strspn(words, between); *words; words += strspn(words, between)) {
        size_t length = strcspn(words, between);
        int i = 0;
        while (i < COUNT &&
               (strlen(variants[i].name) != length || strncmp(variants[i].name, words, length)))
            i++;
        if (i == COUNT) return no_such_variant(words, length);
        off |= 1u << i;
        words += length;
    }
    cgs_cuda_of(d)->off = off;
    return CGS_OK;
}

static bool is_on(const cgs_device *d, int i) { return !(cgs_cuda_of(d)->off >> i & 1); }

bool cgs_cuda_variant_on(const cgs_device *d, const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(variants[i].name, name)) return is_on(d, i);
    return false;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* whether a neighbour, or none, is what the pattern has there */
static bool matches(const cgs_record *neighbour, cgs_opcode op) {
    return op == CGS_OP_none || (neighbour && neighbour->op == op);
}

static const variant *variant_of(const cgs_device *d, const cgs_record *r,
                                 cgs_cuda_direction direction) {
    for (int i = 0; i < COUNT; i++) {
        const variant *v = &variants[i];
        if (v->op == r->op && v->run[direction] && is_on(d, i) && matches(r->before, v->before) &&
            matches(r->next, v->after) && v->fits(d, r->before, r, r->next))
            return v;
    }
    return NULL;
}

bool cgs_cuda_joins(cgs_device *d, const cgs_record *first, const cgs_record *second,
                    bool only_reader) {
    for (int i = 0; i < COUNT; i++) {
        const variant *v = &variants[i];
        if (!is_on(d, i) || !v->fits || !(only_reader || v->other_readers)) continue;
        /* what follows `second` is not known yet */
        if (v->before == first->op && v->op == second->op && v->fits(d, first, second, NULL))
            return true;
        if (v->op == first->op && v->after == second->op && matches(first->before, v->before) &&
            v->fits(d, first->before, first, second))
            return true;
    }
    return false;
}

cgs_status cgs_cuda_prepare_variants(cgs_device *d, const cgs_record *r, bool *generic) {
    *generic = false;
    for (int direction = 0; direction < 2; direction++) {
        const variant *v = variant_of(d, r, (cgs_cuda_direction)direction);
        if (v) CGS_TRY(v->prepare(d, r));
        *generic |= !v && (direction == CGS_CUDA_FORWARD || r->out->grad);
    }
    return CGS_OK;
}

bool cgs_cuda_done_by_neighbour(const cgs_device *d, const cgs_record *r,
                                cgs_cuda_direction direction) {
    const variant *next = r->next ? variant_of(d, r->next, direction) : NULL;
    if (next && next->before != CGS_OP_none) return true;
    const variant *before = r->before ? variant_of(d, r->before, direction) : NULL;
    return before && before->after != CGS_OP_none;
}

static void run(cgs_device *d, const cgs_record *r, cgs_cuda_direction direction) {
    if (cgs_cuda_done_by_neighbour(d, r, direction)) return;
    const variant *v = variant_of(d, r, direction);
    cgs_op_fn fn = v ? v->run[direction] : generic_forms[direction][r->op];
    fn(d, r);
}

void cgs_cuda_forward(cgs_device *d, const cgs_record *r) { run(d, r, CGS_CUDA_FORWARD); }
void cgs_cuda_backward(cgs_device *d, const cgs_record *r) { run(d, r, CGS_CUDA_BACKWARD); }
