/* torchfile.c - finds the tensors in the object graph of a torch zip file.
 *
 * The archive holds data.pkl, a pickle, and data/KEY, one raw storage each.  A tensor in
 * the pickle is a call of torch._utils._rebuild_tensor_v2 with a persistent id for the
 * storage, an offset, sizes and strides, all counted in elements.  Only such calls become
 * entries, and only after every element was found to lie inside its storage. */
#include "io/torchfile.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/pickle.h"
#include "io/zip.h"

#define MAX_PICKLE (UINT64_C(64) << 20)
#define MAX_DEPTH 64
#define MAX_TENSORS 100000
#define MAX_STEPS 4000000 /* nodes may be shared, so even a small graph can take a long walk */
#define MAX_NAME 1024

typedef struct reader {
    cgs_weights *w;
    cgs_zip zip;
    char folder[256];    /* in which all members lie: "archive/" */
    char name[MAX_NAME]; /* of the place in the graph: "encoder.layer.0" */
    size_t steps;
} reader;

/* names of torch classes and dtypes, and the safetensors type that they are */
static const struct {
    const char *storage, *dtype, *type;
} TYPES[] = {
    {"torch.DoubleStorage", "torch.float64", "F64"},
    {"torch.FloatStorage", "torch.float32", "F32"},
    {"torch.HalfStorage", "torch.float16", "F16"},
    {"torch.BFloat16Storage", "torch.bfloat16", "BF16"},
    {"torch.LongStorage", "torch.int64", "I64"},
    {"torch.IntStorage", "torch.int32", "I32"},
    {"torch.ShortStorage", "torch.int16", "I16"},
    {"torch.CharStorage", "torch.int8", "I8"},
    {"torch.ByteStorage", "torch.uint8", "U8"},
    {"torch.BoolStorage", "torch.bool", "BOOL"},
    {"", "torch.uint16", "U16"},
    {"", "torch.uint32", "U32"},
    {"", "torch.uint64", "U64"},
    {"", "torch.float8_e4m3fn", "F8_E4M3"},
    {"", "torch.float8_e5m2", "F8_E5M2"},
};
#define TYPE_COUNT (sizeof TYPES / sizeof TYPES[0])

static const char *shown(const reader *r) { return r->name[0] ? r->name : "the whole file"; }

static cgs_status refuse(const reader *r, const cgs_pkl *v) {
    return cgs_fail(CGS_EFORMAT, "%s: refuses to load %s (%s)", r->w->path, cgs_pkl_name(v),
                    shown(r));
}

/* ---- one tensor ---------------------------------------------------------------- */

/* v is a call of a function of torch._utils with at least `args` arguments */
static bool calls(const cgs_pkl *v, const char *function, size_t args) {
    static const char MODULE[] = "torch._utils.";
    return v->kind == CGS_PKL_OBJECT && v->fn->kind == CGS_PKL_GLOBAL &&
           strncmp(v->fn->s, MODULE, sizeof MODULE - 1) == 0 &&
           strcmp(v->fn->s + sizeof MODULE - 1, function) == 0 && v->args->count >= args;
}

/* the tensor inside a Parameter, or v itself */
static const cgs_pkl *unwrap(const cgs_pkl *v) {
    bool parameter =
        calls(v, "_rebuild_parameter", 1) || calls(v, "_rebuild_parameter_with_state", 1);
    return parameter ? v->args->item[0] : v;
}

static bool is_tensor(const cgs_pkl *v) {
    return calls(v, "_rebuild_tensor_v2", 4) || calls(v, "_rebuild_tensor", 4) ||
           calls(v, "_rebuild_tensor_v3", 7);
}

/* the storage of a tensor: its member, how many elements it holds, and their type */
static cgs_status find_storage(reader *r, const cgs_pkl *tensor, cgs_weight *e,
                               cgs_zip_member **member, uint64_t *elements) {
    const char *path = r->w->path;
    const cgs_pkl *id = tensor->args->item[0];
    if (id->kind != CGS_PKL_PERSISTENT) return refuse(r, id);
    id = id->args;
    if (id->kind != CGS_PKL_TUPLE || id->count < 5 || !cgs_pkl_is_text(id->item[0], "storage") ||
        id->item[2]->kind != CGS_PKL_TEXT || id->item[4]->kind != CGS_PKL_INT || id->item[4]->i < 0)
        return cgs_fail(CGS_EFORMAT, "%s: %s: its storage is not described as torch does it", path,
                        shown(r));

    /* a tensor of the third kind has bytes for a storage and names its own dtype */
    const cgs_pkl *cls = id->item[1];
    bool v3 = calls(tensor, "_rebuild_tensor_v3", 7);
    const cgs_pkl *by = v3 ? tensor->args->item[6] : cls;
    const char *type = NULL;
    for (size_t i = 0; i < TYPE_COUNT && by->kind == CGS_PKL_GLOBAL; i++)
        if (strcmp(by->s, v3 ? TYPES[i].dtype : TYPES[i].storage) == 0) type = TYPES[i].type;
    if (!type) return refuse(r, by);
    e->type = cgs_weight_type_of(type, &e->element);
    snprintf(e->type_name, sizeof e->type_name, "%s", type);
    bool untyped =
        cls->kind == CGS_PKL_GLOBAL && strcmp(cls->s, "torch.storage.UntypedStorage") == 0;
    if (v3 && !untyped) return refuse(r, cls);

    char name[sizeof r->folder + 64];
    const cgs_pkl *key = id->item[2];
    int length = key->n < 40 ? (int)key->n : 40;
    snprintf(name, sizeof name, "%sdata/%.*s", r->folder, length, key->s);
    CGS_TRY(cgs_zip_find(&r->zip, name, member));
    if (!*member || key->n > 40)
        return cgs_fail(CGS_EFORMAT, "%s: %s: there is no member %s", path, shown(r), name);

    uint64_t claimed = (uint64_t)id->item[4]->i, unit = v3 ? 1 : e->element;
    if (claimed > (*member)->bytes / unit)
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s: claims %" PRIu64 " elements of %zu bytes, %s holds %" PRIu64
                        " bytes",
                        path, shown(r), claimed, e->element, name, (*member)->bytes);
    *elements = claimed * unit / e->element;
    return CGS_OK;
}

static bool counts_of(const cgs_pkl *tuple, int64_t out[CGS_WEIGHT_RANK]) {
    if (tuple->kind != CGS_PKL_TUPLE || tuple->count > CGS_WEIGHT_RANK) return false;
    for (size_t i = 0; i < tuple->count; i++) {
        if (tuple->item[i]->kind != CGS_PKL_INT || tuple->item[i]->i < 0) return false;
        out[i] = tuple->item[i]->i;
    }
    return true;
}

/* adds a tensor under the name of the current place */
static cgs_status add_tensor(reader *r, const cgs_pkl *v) {
    const char *path = r->w->path;
    const cgs_pkl *offset = v->args->item[1], *size = v->args->item[2], *stride = v->args->item[3];
    /* a Lightning checkpoint keeps the model in a field of that name */
    const char *name = r->name + (strncmp(r->name, "model.", 6) == 0 ? 6 : 0);
    cgs_weight e = {.name = name[0] ? name : "tensor", .range = -1};
    if (r->w->count >= MAX_TENSORS)
        return cgs_fail(CGS_EFORMAT, "%s: more than %d tensors", path, MAX_TENSORS);
    cgs_zip_member *member = NULL;
    uint64_t elements = 0;
    CGS_TRY(find_storage(r, v, &e, &member, &elements));
    if (offset->kind != CGS_PKL_INT || offset->i < 0 || !counts_of(size, e.dim) ||
        !counts_of(stride, e.stride) || size->count != stride->count)
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s: its offset, size or stride is negative, not a number, or of more "
                        "than %d dimensions",
                        path, shown(r), CGS_WEIGHT_RANK);
    e.rank = (int)size->count;
    char text[CGS_SHAPE_TEXT];
    if (!cgs_weight_measure(&e))
        return cgs_fail(CGS_EFORMAT, "%s: %s: shape %s is too large", path, shown(r),
                        cgs_weights_shape(&e, text));
    if (e.count > 0) {
        /* index of the last element */
        uint64_t last = (uint64_t)offset->i;
        bool fits = true;
        for (int i = 0; i < e.rank; i++) {
            uint64_t reach;
            fits =
                fits &&
                !__builtin_mul_overflow((uint64_t)(e.dim[i] - 1), (uint64_t)e.stride[i], &reach) &&
                !__builtin_add_overflow(last, reach, &last);
        }
        if (!fits || last >= elements)
            return cgs_fail(CGS_EFORMAT,
                            "%s: %s: shape %s reaches beyond the %" PRIu64
                            " elements of its storage",
                            path, shown(r), cgs_weights_shape(&e, text), elements);
        if (member->range < 0)
            CGS_TRY(cgs_weights_add_range(
                r->w, (cgs_weight_range){member->offset, member->bytes, member->crc, 0},
                &member->range));
        e.offset = member->offset + (uint64_t)offset->i * e.element;
        e.range = member->range;
    }
    return cgs_weights_add(r->w, &e);
}

/* ---- the graph ----------------------------------------------------------------- */

static cgs_status collect(reader *r, const cgs_pkl *v, size_t length, int depth);

static cgs_status too_much(const reader *r) {
    return cgs_fail(CGS_EFORMAT, "%s: its objects are nested too deeply at %s", r->w->path,
                    shown(r));
}

/* buffers of the training loop, not of a model */
static bool left_out(const char *name) {
    return strncmp(name, "sigreg.", 7) == 0 || strncmp(name, "callbacks_", 10) == 0;
}

/* extends the current name by a key; *skip when the key is not a name or belongs to training */
static cgs_status enter(reader *r, size_t length, const cgs_pkl *key, size_t *longer, bool *skip) {
    *skip = key->kind != CGS_PKL_TEXT;
    if (*skip) return CGS_OK;
    size_t dot = length > 0;
    if (!cgs_is_utf8(key->s, key->n) || key->n >= MAX_NAME - length - dot)
        return cgs_fail(CGS_EFORMAT, "%s: a name below %s is not text or too long", r->w->path,
                        shown(r));
    if (dot) r->name[length] = '.';
    memcpy(r->name + length + dot, key->s, key->n);
    *longer = length + dot + key->n;
    r->name[*longer] = '\0';
    *skip = left_out(r->name);
    if (*skip) cgs_weights_skip(r->w, r->name);
    return CGS_OK;
}

/* a search of a dictionary costs as many steps as it has keys */
static const cgs_pkl *look_up(reader *r, const cgs_pkl *dict, const char *key) {
    r->steps += dict->count / 2;
    return cgs_pkl_get(dict, key);
}

/* the attributes of a pickled torch.nn.Module, or NULL when v is something else */
static const cgs_pkl *module_state(reader *r, const cgs_pkl *v) {
    const cgs_pkl *s = v->kind == CGS_PKL_OBJECT ? v->state : NULL;
    return s && look_up(r, s, "_parameters") && look_up(r, s, "_modules") ? s : NULL;
}

static bool in_set(reader *r, const cgs_pkl *set, const cgs_pkl *text) {
    if (!set || set->kind != CGS_PKL_SET || text->kind != CGS_PKL_TEXT) return false;
    r->steps += set->count;
    for (size_t i = 0; i < set->count; i++) {
        const cgs_pkl *s = set->item[i];
        if (s->kind == CGS_PKL_TEXT && s->n == text->n && memcmp(s->s, text->s, s->n) == 0)
            return true;
    }
    return false;
}

/* parameters, buffers and submodules, in the order of a state dict */
static cgs_status collect_module(reader *r, const cgs_pkl *state, size_t length, int depth) {
    static const char *const PARTS[] = {"_parameters", "_buffers", "_modules"};
    const cgs_pkl *transient = look_up(r, state, "_non_persistent_buffers_set");
    for (int part = 0; part < 3; part++) {
        const cgs_pkl *dict = look_up(r, state, PARTS[part]);
        if (!dict || dict->kind != CGS_PKL_DICT) continue;
        for (size_t i = 0; i < dict->count; i += 2) {
            const cgs_pkl *key = dict->item[i], *v = unwrap(dict->item[i + 1]);
            size_t longer = length;
            bool skip;
            if (++r->steps > MAX_STEPS) return too_much(r);
            if (v->kind == CGS_PKL_NONE || (part == 1 && in_set(r, transient, key))) continue;
            CGS_TRY(enter(r, length, key, &longer, &skip));
            if (!skip && (part == 2 ? !module_state(r, v) : !is_tensor(v))) return refuse(r, v);
            if (!skip) CGS_TRY(collect(r, v, longer, depth + 1));
            r->name[length] = '\0';
        }
    }
    return CGS_OK;
}

/* adds the tensors below v; r->name[0..length) says where v is */
static cgs_status collect(reader *r, const cgs_pkl *v, size_t length, int depth) {
    if (depth > MAX_DEPTH || ++r->steps > MAX_STEPS) return too_much(r);
    v = unwrap(v);
    if (is_tensor(v)) return add_tensor(r, v);
    const cgs_pkl *state = module_state(r, v);
    if (state) return collect_module(r, state, length, depth);
    if (v->kind == CGS_PKL_OBJECT && strcmp(cgs_pkl_name(v), "torch.device") != 0)
        return refuse(r, v);

    /* other plain values (an epoch, a list of options) are not weights */
    for (size_t i = 0; v->kind == CGS_PKL_DICT && i < v->count; i += 2) {
        size_t longer = length;
        bool skip;
        CGS_TRY(enter(r, length, v->item[i], &longer, &skip));
        if (++r->steps > MAX_STEPS) return too_much(r);
        if (!skip) CGS_TRY(collect(r, v->item[i + 1], longer, depth + 1));
        r->name[length] = '\0';
    }
    return CGS_OK;
}

/* ---- the archive --------------------------------------------------------------- */

/* the one folder of the archive, from the place of its data.pkl */
static cgs_status find_folder(reader *r) {
    static const char PICKLE[] = "/data.pkl";
    const char *path = r->w->path;
    for (size_t i = 0; i < r->zip.count; i++) {
        const char *name = r->zip.member[i].name, *slash = strchr(name, '/');
        if (!slash || strcmp(slash, PICKLE) != 0) continue;
        if (r->folder[0]) return cgs_fail(CGS_EFORMAT, "%s: has two data.pkl", path);
        size_t n = (size_t)(slash + 1 - name);
        if (n >= sizeof r->folder) return cgs_fail(CGS_EFORMAT, "%s: folder name too long", path);
        memcpy(r->folder, name, n);
        r->folder[n] = '\0';
    }
    if (!r->folder[0])
        return cgs_fail(CGS_EFORMAT, "%s: a zip file, but not one of torch: no data.pkl", path);
    return CGS_OK;
}

/* the bytes of a small member, or NULL when there is no such member; the caller frees */
static cgs_status read_member(reader *r, const char *leaf, char **data, size_t *bytes) {
    char name[sizeof r->folder + 64];
    cgs_zip_member *m;
    *data = NULL;
    snprintf(name, sizeof name, "%s%s", r->folder, leaf);
    CGS_TRY(cgs_zip_find(&r->zip, name, &m));
    if (!m) return CGS_OK;
    if (m->bytes > MAX_PICKLE)
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s has %" PRIu64 " bytes, at most %" PRIu64 " are expected",
                        r->w->path, name, m->bytes, MAX_PICKLE);
    *bytes = (size_t)m->bytes;
    *data = malloc(*bytes + 1);
    if (!*data) return cgs_fail(CGS_ENOMEM, "%s: no memory for %s", r->w->path, name);
    cgs_status rc = cgs_weights_pread(r->w, m->offset, *data, *bytes);
    if (rc == CGS_OK && crc32(0, (const unsigned char *)*data, (uInt)*bytes) != m->crc)
        rc = cgs_fail(CGS_EFORMAT, "%s: %s is damaged, its checksum differs", r->w->path, name);
    if (rc != CGS_OK) {
        free(*data);
        *data = NULL;
    }
    return rc;
}

/* the model of a checkpoint, by the names that trainers give it; NULL: the file is the model */
static const cgs_pkl *inner_dict(const cgs_pkl *root) {
    static const char *const KEYS[] = {"state_dict", "model_state_dict", "model"};
    const cgs_pkl *hit = NULL;
    for (size_t i = 0; !hit && i < sizeof KEYS / sizeof KEYS[0]; i++)
        hit = cgs_pkl_get(root, KEYS[i]);
    return hit;
}

static cgs_status read_archive(reader *r) {
    const char *path = r->w->path;
    char *data;
    size_t bytes;
    CGS_TRY(cgs_zip_open(&r->zip, r->w, false));
    CGS_TRY(find_folder(r));
    CGS_TRY(read_member(r, "byteorder", &data, &bytes));
    bool little = !data || (bytes == 6 && memcmp(data, "little", 6) == 0);
    free(data);
    if (!little) return cgs_fail(CGS_EFORMAT, "%s: is not stored little endian", path);

    CGS_TRY(read_member(r, "data.pkl", &data, &bytes));
    cgs_pickle pickle;
    cgs_status rc = cgs_pickle_read(&pickle, data, bytes);
    if (rc != CGS_OK) {
        rc = cgs_fail_in(rc, path);
    } else {
        const cgs_pkl *inner = inner_dict(pickle.root);
        rc = collect(r, inner ? inner : pickle.root, 0, 0);
    }
    cgs_pickle_free(&pickle);
    free(data);
    if (rc == CGS_OK && r->w->count == 0)
        rc = cgs_fail(CGS_EFORMAT, "%s: holds no tensors that belong to a model", path);
    return rc;
}

cgs_status cgs_torchfile_contents(cgs_weights *w) {
    w->format = "torch";
    reader *r = calloc(1, sizeof *r);
    if (!r) return cgs_fail(CGS_ENOMEM, "%s: no memory to read it", w->path);
    r->w = w;
    cgs_status rc = read_archive(r);
    cgs_zip_close(&r->zip);
    free(r);
    return rc;
}
