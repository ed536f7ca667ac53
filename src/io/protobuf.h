/* protobuf.h - writing messages in protobuf's wire format: fields of a number and a wire type, in
 * any order.
 *
 *   0  varint       whole numbers, seven bits a byte, least significant first
 *   2  bytes        a length and that many bytes: text, arrays, messages
 *   5  four bytes   f32
 *
 * A message is built in memory.  A failure (no memory) is remembered: what follows does nothing,
 * and the last call reports it. */
#ifndef CGS_IO_PROTOBUF_H
#define CGS_IO_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_message {
    unsigned char *data; /* (bytes); freed by cgs_message_free */
    size_t bytes, capacity;
    bool failed;
} cgs_message;

void cgs_message_number(cgs_message *m, unsigned field, int64_t value);
void cgs_message_float(cgs_message *m, unsigned field, float value);
void cgs_message_bytes(cgs_message *m, unsigned field, const void *data, size_t n);
void cgs_message_text(cgs_message *m, unsigned field, const char *text);

/* A message within: what is written between the two calls belongs to it. */
size_t cgs_message_open(cgs_message *m, unsigned field);
void cgs_message_close(cgs_message *m, size_t opened);

/* CGS_ENOMEM where something is missing. */
cgs_status cgs_message_check(const cgs_message *m);
void cgs_message_free(cgs_message *m);

#endif /* CGS_IO_PROTOBUF_H */
