/* short_float.h - numbers as people write them. */
#ifndef CGS_CORE_SHORT_FLOAT_H
#define CGS_CORE_SHORT_FLOAT_H

#include <stddef.h>

/* The fewest digits that read back the same: 0.001, not 0.00100000005.  Returns out. */
const char *cgs_short_float(char *out, size_t size, float v);

#endif /* CGS_CORE_SHORT_FLOAT_H */
