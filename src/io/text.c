/* text.c - see text.h. */
#include "io/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_LIMIT = 4096 };

void cgs_text_free(cgs_text *t) {
    free(t->s);
    memset(t, 0, sizeof *t);
}

/* makes space for n more bytes and the NUL */
static bool reserve(cgs_text *t, size_t n) {
    if (t->failed) return false;
    if (n < t->capacity - t->used && t->capacity > t->used) return true;
    if (n > SIZE_MAX / 4 - t->used) {
        t->failed = true;
        return false;
    }
    size_t capacity = 2 * (t->used + n) + 64;
    char *more = realloc(t->s, capacity);
    if (!more) {
        t->failed = true;
        return false;
    }
    t->s = more;
    t->capacity = capacity;
    return true;
}

void cgs_text_bytes(cgs_text *t, const char *s, size_t n) {
    if (!reserve(t, n)) return;
    memcpy(t->s + t->used, s, n);
    t->used += n;
    t->s[t->used] = '\0';
}

void cgs_text_put(cgs_text *t, const char *s) { cgs_text_bytes(t, s, strlen(s)); }

void cgs_text_printf(cgs_text *t, const char *format, ...) {
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    if (n < 0) t->failed = true;
    if (n >= 0 && reserve(t, (size_t)n)) {
        vsnprintf(t->s + t->used, (size_t)n + 1, format, again);
        t->used += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

/* Bytes of the UTF-8 character at s that XML allows, or 0. */
static int character(const unsigned char *s) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F;
    int n = s[0] >= 0xC2 && s[0] < 0xE0   ? 2
            : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
            : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                          : 0;
    uint32_t code = n == 2 ? s[0] & 0x1Fu : n == 3 ? s[0] & 0x0Fu : s[0] & 0x07u;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    bool bad = (n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10FFFF)) ||
               (code >= 0xD800 && code < 0xE000) || code == 0xFFFE || code == 0xFFFF ||
               (code >= 0x80 && code < 0xA0) ||      /* C1 controls */
               (code >= 0x202A && code <= 0x202E) || /* these reorder the text around them */
               (code >= 0x2066 && code <= 0x2069);
    return bad ? 0 : n;
}

static const char *entity(char c) {
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

static void put_characters(cgs_text *t, const char *s, bool escape) {
    int count = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p; count++) {
        if (count == ESCAPE_LIMIT) {
            cgs_text_put(t, "\xE2\x80\xA6"); /* an ellipsis */
            return;
        }
        int n = character(p);
        if (n == 0) {
            /* white space becomes a space; anything else a replacement character */
            cgs_text_put(t, *p == '\n' || *p == '\t' || *p == '\r' ? " " : "\xEF\xBF\xBD");
            p++;
            continue;
        }
        const char *instead = escape ? entity((char)*p) : NULL;
        if (instead)
            cgs_text_put(t, instead);
        else
            cgs_text_bytes(t, (const char *)p, (size_t)n);
        p += n;
    }
}

void cgs_text_escape(cgs_text *t, const char *s) { put_characters(t, s, true); }
void cgs_text_line(cgs_text *t, const char *s) { put_characters(t, s, false); }

void cgs_text_base64(cgs_text *t, const void *data, size_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;
    if (!reserve(t, n / 3 * 4 + 4)) return;
    char *out = t->s + t->used;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < n) v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n) v |= p[i + 2];
        *out++ = digit[v >> 18];
        *out++ = digit[v >> 12 & 63];
        *out++ = i + 1 < n ? digit[v >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digit[v & 63] : '=';
    }
    *out = '\0';
    t->used = (size_t)(out - t->s);
}

cgs_status cgs_text_check(const cgs_text *t, const char *what) {
    if (t->failed)
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu bytes of text", what, t->used);
    return CGS_OK;
}
