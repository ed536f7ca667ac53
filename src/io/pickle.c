/* pickle.c - the stack machine of pickle protocols 2 to 4, as far as torch.save uses it.
 *
 * Every length is checked against the stream and every instruction against the stack;
 * memory is bounded, since a byte of pickle can cost no more than a node.  Nodes lie in
 * blocks that are freed together, so no failure path can leak one. */
#include "io/pickle.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 18)
#define MAX_MEMORY ((size_t)512 << 20)
#define MAX_STACK ((size_t)4 << 20)

/* ---- memory -------------------------------------------------------------------- */

typedef struct cgs_pickle_block {
    struct cgs_pickle_block *next;
    size_t used, capacity;
    max_align_t data[];
} block;

static void *take(cgs_pickle *p, size_t bytes) {
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    block *b = p->blocks;
    if (!b || b->capacity - b->used < bytes) {
        size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        if (capacity > MAX_MEMORY - p->used) return NULL;
        b = malloc(sizeof *b + capacity);
        if (!b) return NULL;
        *b = (block){.next = p->blocks, .capacity = capacity};
        p->blocks = b;
        p->used += capacity;
    }
    void *at = (char *)b->data + b->used;
    b->used += bytes;
    return at;
}

void cgs_pickle_free(cgs_pickle *p) {
    while (p->blocks) {
        block *next = p->blocks->next;
        free(p->blocks);
        p->blocks = next;
    }
    memset(p, 0, sizeof *p);
}

/* ---- the machine --------------------------------------------------------------- */

typedef struct machine {
    cgs_pickle *out;
    unsigned char *code;
    size_t bytes, at;
    cgs_pkl **stack;
    size_t depth, capacity;
    size_t *mark; /* depths of the stack */
    size_t marks, mark_room;
    cgs_pkl **memo; /* holes are NULL */
    size_t memo_count, memo_room;
} machine;

static cgs_status bad(const machine *m, const char *what) {
    return cgs_fail(CGS_EFORMAT, "its pickle is damaged at byte %zu: %s", m->at, what);
}

static cgs_status no_memory(void) {
    return cgs_fail(CGS_ENOMEM, "its pickle needs more than %zu MB of memory", MAX_MEMORY >> 20);
}

static cgs_status fetch(machine *m, size_t n, unsigned char **out) {
    if (m->bytes - m->at < n) return bad(m, "it ends inside an instruction");
    *out = m->code + m->at;
    m->at += n;
    return CGS_OK;
}

static cgs_status fetch_number(machine *m, int bytes, uint64_t *out) {
    unsigned char *p = NULL;
    CGS_TRY(fetch(m, (size_t)bytes, &p));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | p[i];
    return CGS_OK;
}

/* makes space for one more element of `size` bytes in a growing array */
static void *grow(void *array, size_t size, size_t count, size_t *capacity) {
    if (count < *capacity) return array;
    size_t more = *capacity ? 2 * *capacity : 256;
    void *p = realloc(array, more * size);
    if (p) *capacity = more;
    return p;
}

static cgs_status push(machine *m, cgs_pkl *v) {
    if (!v) return no_memory();
    if (m->depth >= MAX_STACK) return bad(m, "its stack is too deep");
    cgs_pkl **s = grow(m->stack, sizeof *s, m->depth, &m->capacity);
    if (!s) return no_memory();
    m->stack = s;
    m->stack[m->depth++] = v;
    return CGS_OK;
}

/* values below a mark are unreachable until the mark is popped */
static size_t floor_of(const machine *m) { return m->marks ? m->mark[m->marks - 1] : 0; }

static cgs_status pop(machine *m, cgs_pkl **v) {
    if (m->depth <= floor_of(m)) return bad(m, "its stack is empty");
    *v = m->stack[--m->depth];
    return CGS_OK;
}

static cgs_status top(machine *m, cgs_pkl **v) {
    if (m->depth <= floor_of(m)) return bad(m, "its stack is empty");
    *v = m->stack[m->depth - 1];
    return CGS_OK;
}

static cgs_status push_mark(machine *m) {
    if (m->marks >= MAX_STACK) return bad(m, "it has too many marks");
    size_t *p = grow(m->mark, sizeof *p, m->marks, &m->mark_room);
    if (!p) return no_memory();
    m->mark = p;
    m->mark[m->marks++] = m->depth;
    return CGS_OK;
}

/* the values above the last mark; they stay valid until the next push */
static cgs_status pop_mark(machine *m, cgs_pkl ***items, size_t *n) {
    if (m->marks == 0) return bad(m, "a mark is missing");
    size_t to = m->mark[--m->marks];
    *items = m->stack + to;
    *n = m->depth - to;
    m->depth = to;
    return CGS_OK;
}

static cgs_pkl *node(machine *m, cgs_pkl_kind kind) {
    cgs_pkl *v = take(m->out, sizeof *v);
    if (v) *v = (cgs_pkl){.kind = kind};
    return v;
}

static cgs_status push_kind(machine *m, cgs_pkl_kind kind) { return push(m, node(m, kind)); }

static cgs_status push_int(machine *m, cgs_pkl_kind kind, int64_t i) {
    cgs_pkl *v = node(m, kind);
    if (v) v->i = i;
    return push(m, v);
}

static cgs_status push_string(machine *m, cgs_pkl_kind kind, int length_bytes) {
    uint64_t n = 0;
    unsigned char *p = NULL;
    CGS_TRY(fetch_number(m, length_bytes, &n));
    if (n > m->bytes) return bad(m, "a string is longer than the file");
    CGS_TRY(fetch(m, (size_t)n, &p));
    cgs_pkl *v = node(m, kind);
    if (v) {
        v->s = (const char *)p;
        v->n = (size_t)n;
    }
    return push(m, v);
}

/* two's complement of any length */
static cgs_status push_long(machine *m, int length_bytes) {
    CGS_TRY(push_string(m, CGS_PKL_BIGINT, length_bytes));
    cgs_pkl *v = m->stack[m->depth - 1];
    if (v->n > 8) return CGS_OK;
    uint64_t bits = 0;
    for (size_t i = 0; i < v->n; i++) bits |= (uint64_t)(unsigned char)v->s[i] << 8 * i;
    if (v->n > 0 && v->n < 8 && (v->s[v->n - 1] & 0x80)) bits |= ~UINT64_C(0) << 8 * v->n;
    v->kind = CGS_PKL_INT;
    v->i = (int64_t)bits;
    return CGS_OK;
}

static cgs_status append(machine *m, cgs_pkl *to, cgs_pkl **items, size_t n) {
    if (n > to->capacity - to->count) {
        size_t capacity = to->capacity ? 2 * to->capacity : 4;
        if (capacity < to->count + n) capacity = to->count + n;
        cgs_pkl **more = take(m->out, capacity * sizeof *more);
        if (!more) return no_memory();
        if (to->count) memcpy(more, to->item, to->count * sizeof *more);
        to->item = more;
        to->capacity = capacity;
    }
    if (n) memcpy(to->item + to->count, items, n * sizeof *items);
    to->count += n;
    return CGS_OK;
}

static cgs_status push_group(machine *m, cgs_pkl_kind kind, cgs_pkl **items, size_t n) {
    cgs_pkl *v = node(m, kind);
    if (!v) return no_memory();
    CGS_TRY(append(m, v, items, n));
    return push(m, v);
}

static cgs_status push_last(machine *m, size_t n) {
    if (m->depth - floor_of(m) < n) return bad(m, "its stack is empty");
    m->depth -= n;
    return push_group(m, CGS_PKL_TUPLE, m->stack + m->depth, n);
}

static cgs_status push_marked(machine *m, cgs_pkl_kind kind) {
    cgs_pkl **items = NULL;
    size_t n = 0;
    CGS_TRY(pop_mark(m, &items, &n));
    return push_group(m, kind, items, n);
}

/* puts values into a container; an unknown object ignores them */
static cgs_status fill(machine *m, cgs_pkl_kind kind, cgs_pkl **items, size_t n) {
    cgs_pkl *to = NULL;
    CGS_TRY(top(m, &to));
    if (to->kind == CGS_PKL_OBJECT) return CGS_OK;
    if (to->kind != kind) return bad(m, "values are put into something that holds none");
    if (kind == CGS_PKL_DICT && n % 2) return bad(m, "a key has no value");
    return append(m, to, items, n);
}

static cgs_status fill_marked(machine *m, cgs_pkl_kind kind) {
    cgs_pkl **items = NULL;
    size_t n = 0;
    CGS_TRY(pop_mark(m, &items, &n));
    return fill(m, kind, items, n);
}

static cgs_status fill_last(machine *m, cgs_pkl_kind kind, size_t n) {
    if (m->depth - floor_of(m) < n) return bad(m, "its stack is empty");
    m->depth -= n;
    return fill(m, kind, m->stack + m->depth, n);
}

static cgs_status put(machine *m, uint64_t index) {
    cgs_pkl *v = NULL;
    CGS_TRY(top(m, &v));
    /* memo numbers are consecutive, and each costs at least one byte */
    if (index >= m->bytes || index >= MAX_STACK) return bad(m, "a memo number is too large");
    while (m->memo_count <= index) {
        cgs_pkl **p = grow(m->memo, sizeof *p, m->memo_count, &m->memo_room);
        if (!p) return no_memory();
        m->memo = p;
        m->memo[m->memo_count++] = NULL;
    }
    m->memo[index] = v;
    return CGS_OK;
}

static cgs_status get(machine *m, uint64_t index) {
    if (index >= m->memo_count || !m->memo[index]) return bad(m, "an unknown memo number");
    return push(m, m->memo[index]);
}

/* "module\nname\n": the line ends become a dot and a NUL */
static cgs_status push_global(machine *m) {
    unsigned char *p = m->code + m->at, *first, *second;
    size_t left = m->bytes - m->at;
    first = memchr(p, '\n', left);
    second = first ? memchr(first + 1, '\n', left - (size_t)(first + 1 - p)) : NULL;
    if (!second || memchr(p, 0, (size_t)(second - p))) return bad(m, "a global has no name");
    *first = '.';
    *second = '\0';
    m->at += (size_t)(second + 1 - p);
    cgs_pkl *v = node(m, CGS_PKL_GLOBAL);
    if (v) v->s = (const char *)p;
    return push(m, v);
}

static cgs_status push_stack_global(machine *m) {
    cgs_pkl *name = NULL, *module = NULL;
    CGS_TRY(pop(m, &name));
    CGS_TRY(pop(m, &module));
    if (name->kind != CGS_PKL_TEXT || module->kind != CGS_PKL_TEXT || memchr(name->s, 0, name->n) ||
        memchr(module->s, 0, module->n))
        return bad(m, "a global has no name");
    char *s = take(m->out, module->n + name->n + 2);
    cgs_pkl *v = node(m, CGS_PKL_GLOBAL);
    if (!s || !v) return no_memory();
    memcpy(s, module->s, module->n);
    s[module->n] = '.';
    memcpy(s + module->n + 1, name->s, name->n);
    s[module->n + 1 + name->n] = '\0';
    v->s = s;
    return push(m, v);
}

static bool named(const cgs_pkl *fn, const char *a, const char *b) {
    return fn->kind == CGS_PKL_GLOBAL && (strcmp(fn->s, a) == 0 || strcmp(fn->s, b) == 0);
}

/* OrderedDict(), or OrderedDict([(key, value), ...]) */
static cgs_status push_ordered(machine *m, const cgs_pkl *args) {
    CGS_TRY(push_kind(m, CGS_PKL_DICT));
    if (args->count == 0 || args->item[0]->kind != CGS_PKL_LIST) return CGS_OK;
    const cgs_pkl *pairs = args->item[0];
    for (size_t i = 0; i < pairs->count; i++) {
        cgs_pkl *pair = pairs->item[i];
        if ((pair->kind != CGS_PKL_LIST && pair->kind != CGS_PKL_TUPLE) || pair->count != 2)
            return bad(m, "a dictionary is made of something else than pairs");
        CGS_TRY(append(m, m->stack[m->depth - 1], pair->item, 2));
    }
    return CGS_OK;
}

/* fn(*args): a node that says so, or one of the few containers we know */
static cgs_status call(machine *m, cgs_pkl *fn, cgs_pkl *args) {
    if (args->kind != CGS_PKL_TUPLE) return bad(m, "a call has no argument tuple");
    if (named(fn, "collections.OrderedDict", "collections.defaultdict"))
        return push_ordered(m, args);
    cgs_pkl *first = args->count > 0 ? args->item[0] : NULL;
    bool set = named(fn, "builtins.set", "__builtin__.set") ||
               named(fn, "builtins.frozenset", "__builtin__.frozenset");
    if (set && !first) return push_kind(m, CGS_PKL_SET);
    if (set && first->kind == CGS_PKL_LIST)
        return push_group(m, CGS_PKL_SET, first->item, first->count);
    if (named(fn, "torch.Size", "torch.Size") && first && first->kind == CGS_PKL_TUPLE)
        return push(m, first);
    cgs_pkl *v = node(m, CGS_PKL_OBJECT);
    if (v) {
        v->fn = fn;
        v->args = args;
    }
    return push(m, v);
}

/* REDUCE and NEWOBJ (two values), NEWOBJ_EX (a third, keyword arguments, not kept) */
static cgs_status reduce(machine *m, bool keywords) {
    cgs_pkl *fn = NULL, *args = NULL;
    if (keywords) CGS_TRY(pop(m, &args));
    CGS_TRY(pop(m, &args));
    CGS_TRY(pop(m, &fn));
    return call(m, fn, args);
}

static cgs_status build(machine *m) {
    cgs_pkl *state = NULL, *object = NULL;
    CGS_TRY(pop(m, &state));
    CGS_TRY(top(m, &object));
    if (object->kind == CGS_PKL_OBJECT)
        object->state = state;
    else if (object->kind != CGS_PKL_DICT && object->kind != CGS_PKL_SET)
        return bad(m, "state is given to a plain value");
    return CGS_OK; /* attributes of a dictionary, such as _metadata, are ignored */
}

static cgs_status persist(machine *m) {
    cgs_pkl *id = NULL, *v = node(m, CGS_PKL_PERSISTENT);
    CGS_TRY(pop(m, &id));
    if (v) v->args = id;
    return push(m, v);
}

static cgs_status push_float(machine *m) {
    unsigned char *p = NULL;
    CGS_TRY(fetch(m, 8, &p));
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i]; /* the only big-endian number */
    cgs_pkl *v = node(m, CGS_PKL_FLOAT);
    if (v) memcpy(&v->f, &bits, sizeof bits);
    return push(m, v);
}

static cgs_status discard(machine *m) {
    cgs_pkl *v = NULL;
    if (m->marks && m->mark[m->marks - 1] == m->depth) {
        m->marks--; /* POP removes a mark when that is on top */
        return CGS_OK;
    }
    return pop(m, &v);
}

static cgs_status step(machine *m, unsigned char op) {
    uint64_t n = 0;
    cgs_pkl *v = NULL;
    cgs_pkl **items = NULL;
    size_t count = 0;
    switch (op) {
    case 0x80: /* PROTO */
        CGS_TRY(fetch_number(m, 1, &n));
        return n >= 2 && n <= 5 ? CGS_OK : bad(m, "an unknown protocol");
    case 0x95: return fetch_number(m, 8, &n); /* FRAME: a hint for buffering */
    case '(': return push_mark(m);
    case '0': return discard(m);
    case '1': return pop_mark(m, &items, &count);
    case '2': /* DUP */ CGS_TRY(top(m, &v)); return push(m, v);
    case 'N': return push_kind(m, CGS_PKL_NONE);
    case 0x88: return push_int(m, CGS_PKL_BOOL, 1);
    case 0x89: return push_int(m, CGS_PKL_BOOL, 0);
    case 'J': /* BININT */
        CGS_TRY(fetch_number(m, 4, &n));
        return push_int(m, CGS_PKL_INT, (int64_t)n - (n >> 31 ? INT64_C(0x100000000) : 0));
    case 'K': /* BININT1 */
        CGS_TRY(fetch_number(m, 1, &n));
        return push_int(m, CGS_PKL_INT, (int64_t)n);
    case 'M': /* BININT2 */
        CGS_TRY(fetch_number(m, 2, &n));
        return push_int(m, CGS_PKL_INT, (int64_t)n);
    case 0x8A: return push_long(m, 1);
    case 0x8B: return push_long(m, 4);
    case 'G': return push_float(m);
    case 'U': return push_string(m, CGS_PKL_TEXT, 1);   /* SHORT_BINSTRING  */
    case 'T': return push_string(m, CGS_PKL_TEXT, 4);   /* BINSTRING        */
    case 0x8C: return push_string(m, CGS_PKL_TEXT, 1);  /* SHORT_BINUNICODE */
    case 'X': return push_string(m, CGS_PKL_TEXT, 4);   /* BINUNICODE       */
    case 0x8D: return push_string(m, CGS_PKL_TEXT, 8);  /* BINUNICODE8      */
    case 'C': return push_string(m, CGS_PKL_BYTES, 1);  /* SHORT_BINBYTES   */
    case 'B': return push_string(m, CGS_PKL_BYTES, 4);  /* BINBYTES         */
    case 0x8E: return push_string(m, CGS_PKL_BYTES, 8); /* BINBYTES8        */
    case 0x96: return push_string(m, CGS_PKL_BYTES, 8); /* BYTEARRAY8       */
    case ')': return push_kind(m, CGS_PKL_TUPLE);
    case 0x85: return push_last(m, 1);
    case 0x86: return push_last(m, 2);
    case 0x87: return push_last(m, 3);
    case 't': return push_marked(m, CGS_PKL_TUPLE);
    case ']': return push_kind(m, CGS_PKL_LIST);
    case 'l': return push_marked(m, CGS_PKL_LIST);
    case 'a': return fill_last(m, CGS_PKL_LIST, 1);
    case 'e': return fill_marked(m, CGS_PKL_LIST);
    case '}': return push_kind(m, CGS_PKL_DICT);
    case 's': return fill_last(m, CGS_PKL_DICT, 2);
    case 'u': return fill_marked(m, CGS_PKL_DICT);
    case 0x8F: return push_kind(m, CGS_PKL_SET);
    case 0x90: return fill_marked(m, CGS_PKL_SET);
    case 0x91: return push_marked(m, CGS_PKL_SET); /* FROZENSET */
    case 'c': return push_global(m);
    case 0x93: return push_stack_global(m);
    case 'R': return reduce(m, false);
    case 0x81: return reduce(m, false); /* NEWOBJ    */
    case 0x92: return reduce(m, true);  /* NEWOBJ_EX */
    case 'b': return build(m);
    case 'Q': return persist(m);
    case 'q': /* BINPUT */ CGS_TRY(fetch_number(m, 1, &n)); return put(m, n);
    case 'r': /* LONG_BINPUT */ CGS_TRY(fetch_number(m, 4, &n)); return put(m, n);
    case 0x94: return put(m, m->memo_count); /* MEMOIZE */
    case 'h': /* BINGET */ CGS_TRY(fetch_number(m, 1, &n)); return get(m, n);
    case 'j': /* LONG_BINGET */ CGS_TRY(fetch_number(m, 4, &n)); return get(m, n);
    default:
        return cgs_fail(CGS_EFORMAT, "its pickle has an unknown instruction 0x%02x at byte %zu", op,
                        m->at - 1);
    }
}

cgs_status cgs_pickle_read(cgs_pickle *p, char *data, size_t bytes) {
    memset(p, 0, sizeof *p);
    machine m = {.out = p, .code = (unsigned char *)data, .bytes = bytes};
    cgs_status rc = CGS_OK;
    bool stopped = false;
    while (rc == CGS_OK && !stopped) {
        unsigned char *op = NULL;
        rc = fetch(&m, 1, &op);
        if (rc != CGS_OK) break;
        if (*op == '.') {
            stopped = true;
            rc = pop(&m, &p->root);
        } else {
            rc = step(&m, *op);
        }
    }
    free(m.stack);
    free(m.mark);
    free(m.memo);
    return rc;
}

/* ---- looking at values --------------------------------------------------------- */

bool cgs_pkl_is_text(const cgs_pkl *v, const char *text) {
    return v->kind == CGS_PKL_TEXT && v->n == strlen(text) && memcmp(v->s, text, v->n) == 0;
}

const cgs_pkl *cgs_pkl_get(const cgs_pkl *dict, const char *key) {
    if (!dict || dict->kind != CGS_PKL_DICT) return NULL;
    for (size_t i = dict->count; i >= 2; i -= 2)
        if (cgs_pkl_is_text(dict->item[i - 2], key)) return dict->item[i - 1];
    return NULL;
}

const char *cgs_pkl_name(const cgs_pkl *v) {
    static const char *const KINDS[] = {
        "None",    "a truth value", "a number", "a number",  "a number", "a text",    "bytes",
        "a tuple", "a list",        "a set",    "a mapping", "a global", "a storage", "an object"};
    if (v->kind == CGS_PKL_GLOBAL) return v->s;
    if (v->kind != CGS_PKL_OBJECT) return KINDS[v->kind];
    /* the class stands inside the call that makes an empty instance of it */
    const cgs_pkl *fn = v->fn;
    if (named(fn, "copyreg._reconstructor", "copy_reg._reconstructor") && v->args->count > 0)
        fn = v->args->item[0];
    return fn->kind == CGS_PKL_GLOBAL ? fn->s : KINDS[v->kind];
}
