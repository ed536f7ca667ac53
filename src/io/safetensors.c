/* safetensors.c - reading and writing safetensors headers.
 *
 * cJSON parses; what it accepts but the format forbids is checked here: bytes that are not UTF-8,
 * "\u0000" in a name (which would cut a C string short), names that occur twice, and numbers that
 * are not counts. */
#include "io/safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

#define MAX_HEADER (UINT64_C(100) << 20)
/* each JSON value costs the parser about a hundred bytes */
#define MAX_VALUES ((size_t)4000000)
/* doubles hold every whole number up to here */
#define MAX_COUNT 0x1p53

/* ---- reading ------------------------------------------------------------------- */

/* checks what the JSON parser would not, before it runs */
static cgs_status check_text(const cgs_weights *w, const char *text, size_t n) {
    if (n == 0 || text[0] != '{')
        return cgs_fail(CGS_EFORMAT, "%s: its header does not begin with {", w->path);
    if (!cgs_is_utf8(text, n))
        return cgs_fail(CGS_EFORMAT, "%s: its header is not UTF-8 text", w->path);
    size_t values = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ',' || text[i] == ':') values++;
        if (text[i] != '\\') continue;
        if (n - i > 5 && memcmp(text + i + 1, "u0000", 5) == 0)
            return cgs_fail(CGS_EFORMAT, "%s: a NUL character in its header", w->path);
        i++;
    }
    if (values > MAX_VALUES)
        return cgs_fail(CGS_EFORMAT, "%s: its header holds %zu values, at most %zu are expected",
                        w->path, values, MAX_VALUES);
    return CGS_OK;
}

static bool count_of(const cJSON *v, int64_t *out) {
    if (!cJSON_IsNumber(v)) return false;
    double d = v->valuedouble;
    if (!(d >= 0 && d <= MAX_COUNT) || d != floor(d)) return false;
    *out = (int64_t)d;
    return true;
}

/* the one member of that name; NULL when it is missing or there are two */
static const cJSON *member(const cJSON *object, const char *name) {
    const cJSON *hit = NULL, *v;
    cJSON_ArrayForEach(v, object) {
        if (strcmp(v->string, name) != 0) continue;
        if (hit) return NULL;
        hit = v;
    }
    return hit;
}

static cgs_status read_metadata(cgs_weights *w, const cJSON *object) {
    if (w->metas > 0 || !cJSON_IsObject(object))
        return cgs_fail(CGS_EFORMAT, "%s: __metadata__ is not one object", w->path);
    const cJSON *v;
    cJSON_ArrayForEach(v, object) {
        if (!cJSON_IsString(v))
            return cgs_fail(CGS_EFORMAT, "%s: __metadata__ %s is not a string", w->path, v->string);
        CGS_TRY(cgs_weights_add_meta(w, v->string, v->valuestring));
    }
    return CGS_OK;
}

/* one tensor of the header; payload: bytes of the file after the header */
static cgs_status read_entry(cgs_weights *w, const cJSON *j, uint64_t start, uint64_t payload) {
    cgs_weight e = {.name = j->string, .range = -1};
    bool object = cJSON_IsObject(j); /* only members of an object have names */
    const cJSON *dtype = object ? member(j, "dtype") : NULL;
    const cJSON *shape = object ? member(j, "shape") : NULL;
    const cJSON *span = object ? member(j, "data_offsets") : NULL, *v;
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) || !cJSON_IsArray(span))
        return cgs_fail(CGS_EFORMAT, "%s: %s: not an object of dtype, shape and data_offsets",
                        w->path, e.name);

    cJSON_ArrayForEach(v, shape) {
        if (e.rank == CGS_WEIGHT_RANK)
            return cgs_fail(CGS_EFORMAT, "%s: %s: more than %d dimensions", w->path, e.name,
                            CGS_WEIGHT_RANK);
        if (!count_of(v, &e.dim[e.rank]))
            return cgs_fail(CGS_EFORMAT, "%s: %s: dimension %d of its shape is not a count",
                            w->path, e.name, e.rank);
        e.rank++;
    }
    int64_t begin = 0, end = 0;
    const cJSON *first = span->child, *second = first ? first->next : NULL;
    if (!second || second->next || !count_of(first, &begin) || !count_of(second, &end) ||
        begin > end || (uint64_t)end > payload)
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s: data_offsets %" PRId64 "..%" PRId64 " do not lie in the %" PRIu64
                        " bytes after the header",
                        w->path, e.name, begin, end, payload);

    e.type = cgs_weight_type_of(dtype->valuestring, &e.element);
    snprintf(e.type_name, sizeof e.type_name, "%s", dtype->valuestring);
    uint64_t bytes = (uint64_t)(end - begin);
    char text[CGS_SHAPE_TEXT];
    if (!cgs_weight_measure(&e))
        return cgs_fail(CGS_EFORMAT, "%s: %s: shape %s is too large", w->path, e.name,
                        cgs_weights_shape(&e, text));
    if (e.element == 0) e.bytes = bytes; /* a type we cannot measure can still be listed */
    if (e.bytes != bytes)
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s: %s of shape %s needs %zu bytes, the file gives %" PRIu64, w->path,
                        e.name, e.type_name, cgs_weights_shape(&e, text), e.bytes, bytes);
    for (int64_t i = e.rank - 1, step = 1; i >= 0 && e.count > 0; i--) {
        e.stride[i] = step;
        step *= e.dim[i];
    }
    e.offset = start + (uint64_t)begin;
    return cgs_weights_add(w, &e);
}

static int compare_offset(const void *a, const void *b) {
    const cgs_weight *x = *(const cgs_weight *const *)a, *y = *(const cgs_weight *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* the tensors must cover the payload: no gap, no overlap, nothing left over */
static cgs_status check_cover(const cgs_weights *w, uint64_t start) {
    const cgs_weight **order = malloc((w->count + 1) * sizeof *order);
    if (!order) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu tensors", w->path, w->count);
    for (size_t i = 0; i < w->count; i++) order[i] = &w->entry[i];
    qsort(order, w->count, sizeof *order, compare_offset);

    cgs_status rc = CGS_OK;
    uint64_t at = start;
    for (size_t i = 0; i < w->count && rc == CGS_OK; i++) {
        const cgs_weight *e = order[i];
        if (e->offset < at)
            rc = cgs_fail(CGS_EFORMAT, "%s: %s overlaps %s", w->path, e->name, order[i - 1]->name);
        else if (e->offset > at)
            rc = cgs_fail(CGS_EFORMAT, "%s: %" PRIu64 " bytes before %s belong to no tensor",
                          w->path, e->offset - at, e->name);
        at = e->offset + e->bytes;
    }
    if (rc == CGS_OK && at != w->file_bytes)
        rc = cgs_fail(CGS_EFORMAT, "%s: its last %" PRIu64 " bytes belong to no tensor", w->path,
                      w->file_bytes - at);
    free(order);
    return rc;
}

static cgs_status read_header(cgs_weights *w, const char *text, size_t n) {
    CGS_TRY(check_text(w, text, n));
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text, n, &end, 0);
    if (!root)
        return cgs_fail(CGS_EFORMAT, "%s: its header is not valid JSON at byte %zu", w->path,
                        end ? (size_t)(end - text) : 0);
    cgs_status rc = CGS_OK;
    for (; end < text + n && rc == CGS_OK; end++)
        if (*end != ' ' && *end != '\n' && *end != '\r' && *end != '\t')
            rc = cgs_fail(CGS_EFORMAT, "%s: text after the JSON object of its header", w->path);

    uint64_t start = 8 + (uint64_t)n, payload = w->file_bytes - start;
    for (const cJSON *j = root->child; j && rc == CGS_OK; j = j->next)
        rc = strcmp(j->string, "__metadata__") == 0 ? read_metadata(w, j)
                                                    : read_entry(w, j, start, payload);
    if (rc == CGS_OK) rc = check_cover(w, start);
    cJSON_Delete(root);
    return rc;
}

cgs_status cgs_safetensors_contents(cgs_weights *w) {
    w->format = "safetensors";
    unsigned char raw[8];
    if (w->file_bytes < sizeof raw)
        return cgs_fail(CGS_EFORMAT, "%s: %" PRIu64 " bytes are too few for a safetensors file",
                        w->path, w->file_bytes);
    CGS_TRY(cgs_weights_pread(w, 0, raw, sizeof raw));
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | raw[i];
    if (n > MAX_HEADER || n > w->file_bytes - 8)
        return cgs_fail(CGS_EFORMAT,
                        "%s: header claims %" PRIu64 " bytes, the file holds %" PRIu64
                        " and the limit is %" PRIu64,
                        w->path, n, w->file_bytes - 8, MAX_HEADER);
    char *text = malloc((size_t)n + 1);
    if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory for its header", w->path);
    text[n] = '\0';
    cgs_status rc = cgs_weights_pread(w, 8, text, (size_t)n);
    if (rc == CGS_OK) rc = read_header(w, text, (size_t)n);
    free(text);
    return rc;
}

/* ---- writing ------------------------------------------------------------------- */

/* the tensors in the order of the file: wide elements first, else as given */
static cgs_status plan_order(const char *path, const cgs_save *t, size_t count, size_t *order) {
    static const size_t WIDTHS[] = {8, 4, 2, 1};
    size_t n = 0, element;
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < count; i++) {
            cgs_weight_type_name(t[i].type, &element);
            if (element == WIDTHS[k]) order[n++] = i;
        }
    if (n != count)
        return cgs_fail(CGS_EARG, "%s: %zu tensors have an unknown type", path, count - n);
    return CGS_OK;
}

static cgs_status tensor_bytes(const char *path, const cgs_save *t, size_t *bytes) {
    cgs_weight e = {.rank = t->rank};
    cgs_weight_type_name(t->type, &e.element);
    if (t->rank < 0 || t->rank > CGS_WEIGHT_RANK)
        return cgs_fail(CGS_EARG, "%s: %s: rank %d", path, t->name, t->rank);
    memcpy(e.dim, t->dim, sizeof e.dim);
    if (!cgs_weight_measure(&e) || (e.count > 0 && !t->data))
        return cgs_fail(CGS_EARG, "%s: %s: impossible shape, or no data", path, t->name);
    *bytes = e.bytes;
    return CGS_OK;
}

static int compare_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static cgs_status check_names(const char *path, const char **names, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++)
        if (!names[i] || !cgs_is_utf8(names[i], strlen(names[i])) ||
            strcmp(names[i], "__metadata__") == 0)
            return cgs_fail(CGS_EARG, "%s: %s %zu has no usable name", path, what, i);
    qsort(names, n, sizeof *names, compare_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            return cgs_fail(CGS_EARG, "%s: %s \"%s\" is given twice", path, what, names[i]);
    return CGS_OK;
}

/* the JSON header, padded; NULL when memory ran out.  bytes and order: (count) */
static char *build_header(const cgs_save *t, const size_t *bytes, const size_t *order, size_t count,
                          const cgs_meta *meta, size_t metas) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root != NULL;
    if (ok && metas > 0) {
        cJSON *m = cJSON_AddObjectToObject(root, "__metadata__");
        for (size_t i = 0; i < metas && ok; i++)
            ok = m && cJSON_AddStringToObject(m, meta[i].key, meta[i].value);
    }
    uint64_t at = 0;
    for (size_t k = 0; k < count && ok; k++) {
        const cgs_save *s = &t[order[k]];
        size_t element;
        cJSON *e = cJSON_AddObjectToObject(root, s->name);
        ok = e && cJSON_AddStringToObject(e, "dtype", cgs_weight_type_name(s->type, &element));
        cJSON *shape = ok ? cJSON_AddArrayToObject(e, "shape") : NULL;
        ok = shape != NULL;
        for (int i = 0; i < s->rank && ok; i++)
            ok = cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)s->dim[i]));
        cJSON *span = ok ? cJSON_AddArrayToObject(e, "data_offsets") : NULL;
        ok = span && cJSON_AddItemToArray(span, cJSON_CreateNumber((double)at));
        at += bytes[order[k]];
        ok = ok && cJSON_AddItemToArray(span, cJSON_CreateNumber((double)at));
    }
    char *text = ok ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (!text) return NULL;
    size_t n = strlen(text), padded = (n + 7) / 8 * 8;
    char *out = malloc(padded + 1);
    if (out) {
        memcpy(out, text, n);
        memset(out + n, ' ', padded - n);
        out[padded] = '\0';
    }
    cJSON_free(text);
    return out;
}

cgs_status cgs_safetensors_write(const char *path, const cgs_save *tensors, size_t count,
                                 const cgs_meta *meta, size_t metas) {
    cgs_status rc = CGS_OK;
    char *header = NULL;
    size_t most = (count > metas ? count : metas) + 1;
    size_t *order = malloc(most * sizeof *order), *bytes = malloc(most * sizeof *bytes);
    const char **names = malloc(most * sizeof *names);
    cgs_newfile file = {0};
    if (!order || !bytes || !names) {
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for %zu names", path, most);
        goto done;
    }
    for (size_t i = 0; i < metas; i++) {
        names[i] = meta[i].key;
        if (!meta[i].value || !cgs_is_utf8(meta[i].value, strlen(meta[i].value))) {
            rc = cgs_fail(CGS_EARG, "%s: metadata %zu is not UTF-8 text", path, i);
            goto done;
        }
    }
    if ((rc = check_names(path, names, metas, "metadata")) != CGS_OK) goto done;
    for (size_t i = 0; i < count; i++) names[i] = tensors[i].name;
    if ((rc = check_names(path, names, count, "tensor")) != CGS_OK) goto done;
    if ((rc = plan_order(path, tensors, count, order)) != CGS_OK) goto done;
    for (size_t i = 0; i < count; i++)
        if ((rc = tensor_bytes(path, &tensors[i], &bytes[i])) != CGS_OK) goto done;

    header = build_header(tensors, bytes, order, count, meta, metas);
    if (!header) {
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its header", path);
        goto done;
    }
    if ((rc = cgs_newfile_open(&file, path)) != CGS_OK) goto done;
    uint64_t n = strlen(header);
    unsigned char raw[8];
    for (int i = 0; i < 8; i++) raw[i] = (unsigned char)(n >> 8 * i);
    bool ok = fwrite(raw, 1, 8, file.f) == 8 && fwrite(header, 1, n, file.f) == n;
    for (size_t k = 0; k < count && ok; k++) {
        size_t size = bytes[order[k]];
        ok = size == 0 || fwrite(tensors[order[k]].data, 1, size, file.f) == size;
    }
    if (!ok) {
        rc = cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
        cgs_newfile_abandon(&file);
        goto done;
    }
    rc = cgs_newfile_commit(&file);
done:
    free(header);
    free(names);
    free(bytes);
    free(order);
    return rc;
}
