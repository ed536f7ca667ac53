/* h5.h - the rules for using libhdf5 in this process, and where its versions 1.10 to 1.14 differ.
 *
 * libhdf5 is not always built for threads, so every call of it happens between cgs_h5_lock and
 * cgs_h5_unlock.  The lock also disables its error printing (a per-thread setting) and its loading
 * of filter plugins, which a file could name. */
#ifndef CGS_DATA_H5_H
#define CGS_DATA_H5_H

#include <hdf5.h>
#include <stdbool.h>

void cgs_h5_lock(void);
void cgs_h5_unlock(void);

/* Why the last call of libhdf5 failed, in its own words; call before unlocking. */
const char *cgs_h5_reason(void);

/* The kind of object that a name in a group refers to; false when it cannot be opened. */
bool cgs_h5_object_type(hid_t group, const char *name, H5O_type_t *type);

/* Tries something in a child process first: 0 when it finished there, whatever the outcome, else
 * the signal that killed it.  libhdf5 crashes or never returns on some damaged files (those of the
 * old object formats, which carry no checksums), and this turns both into a return value; the limit
 * is `seconds` of CPU time.  Where no child can be made, or it waits for 20 times as long, it
 * returns 0.  The child may use libhdf5 and memory, nothing else: other threads do not exist in it.
 */
int cgs_h5_try_in_child(void (*attempt)(void *user), void *user, unsigned seconds);

#endif /* CGS_DATA_H5_H */
