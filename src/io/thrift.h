/* thrift.h - reading Thrift's compact protocol from memory, as far as Parquet's headers need it.
 *
 * Nothing is trusted: the first value that does not lie inside the bytes sets `bad`, after which
 * everything reads as 0 and every struct ends. */
#ifndef CGS_IO_THRIFT_H
#define CGS_IO_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cgs_thrift {
    const uint8_t *at, *end;
    bool bad;
} cgs_thrift;

typedef enum cgs_thrift_type {
    CGS_THRIFT_STOP,
    CGS_THRIFT_TRUE,
    CGS_THRIFT_FALSE,
    CGS_THRIFT_BYTE,
    CGS_THRIFT_I16,
    CGS_THRIFT_I32,
    CGS_THRIFT_I64,
    CGS_THRIFT_DOUBLE,
    CGS_THRIFT_BINARY,
    CGS_THRIFT_LIST,
    CGS_THRIFT_SET,
    CGS_THRIFT_MAP,
    CGS_THRIFT_STRUCT
} cgs_thrift_type;

/* The next field of a struct: false at its end.  *id holds the last one, 0 at the struct's begin.
 */
bool cgs_thrift_field(cgs_thrift *t, int *id, cgs_thrift_type *type);

/* The value of a field of a whole number, whatever its width; other types are skipped and are 0. */
int64_t cgs_thrift_integer(cgs_thrift *t, cgs_thrift_type type);

/* Bytes that stay where they are; *length is 0 for other types, which are skipped. */
const char *cgs_thrift_binary(cgs_thrift *t, cgs_thrift_type type, size_t *length);

/* The number of elements of a list that follow; 0 for other types, which are skipped.  No more than
 * there are bytes left. */
size_t cgs_thrift_list(cgs_thrift *t, cgs_thrift_type type, cgs_thrift_type *element);

void cgs_thrift_skip(cgs_thrift *t, cgs_thrift_type type);

#endif /* CGS_IO_THRIFT_H */
