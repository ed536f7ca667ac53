/* cgs.h - public C API of cgs: latent world models that are easy to plan with.
 *
 * Everything a program may rely on is declared here; anything else can change.
 *
 * Ownership: a *_create call hands the object to the caller; the matching
 * *_destroy takes it back and accepts NULL.  Pointers returned by getters are
 * borrowed and live as long as the object they came from.
 *
 * Errors: functions that can fail return cgs_status.  cgs_last_error() holds one
 * sentence for the calling thread, until its next failing call.
 *
 * Threads: two objects may be used from two threads; one object may not. */
#ifndef CGS_CGS_H
#define CGS_CGS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CGS_VERSION_MAJOR 0
#define CGS_VERSION_MINOR 1
#define CGS_VERSION_PATCH 0
#define CGS_VERSION "0.1.0"

typedef enum cgs_status {
    CGS_OK = 0,
    CGS_EARG,     /* the caller passed something impossible              */
    CGS_ENOMEM,   /* host or device memory ran out                       */
    CGS_EIO,      /* a file could not be opened, read or written         */
    CGS_EFORMAT,  /* a file was read but is not what it claims to be     */
    CGS_EDEVICE,  /* no such device, or the device reported a failure    */
    CGS_ENUMERIC, /* NaN or Inf where a finite number is required        */
    CGS_ESTOPPED  /* the caller asked for a stop; what was saved is valid */
} cgs_status;

/* One sentence on the last failure of the calling thread. */
const char *cgs_last_error(void);

/* A word for a status code: "ok", "argument", "memory", ... */
const char *cgs_status_name(cgs_status s);

/* The version of the library that runs, as text. */
const char *cgs_version(void);

/* Where log lines go.  level: 0 debug, 1 information, 2 warning, 3 error.
 * NULL restores the default, which drops everything below a warning and writes
 * the rest to standard error. */
typedef void (*cgs_log_fn)(void *user, int level, const char *line);
void cgs_set_log(cgs_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif /* CGS_CGS_H */
