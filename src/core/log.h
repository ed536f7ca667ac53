/* log.h - log lines, through one replaceable sink (cgs_set_log). */
#ifndef CGS_CORE_LOG_H
#define CGS_CORE_LOG_H

#include "cgs/cgs.h"

enum { CGS_DEBUG, CGS_INFO, CGS_WARN, CGS_ERROR };

void cgs_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* CGS_CORE_LOG_H */
