/* h5.h - the manners of libhdf5 inside this process.
 *
 * libhdf5 is not always built for threads, so every call of it happens between
 * cgs_h5_lock and cgs_h5_unlock.  The lock also silences its error printing (a setting
 * of each thread) and forbids it to load filter plugins, which a file could name. */
#ifndef CGS_DATA_H5_H
#define CGS_DATA_H5_H

void cgs_h5_lock(void);
void cgs_h5_unlock(void);

/* Why the last call of libhdf5 failed, in its own words; ask before unlocking. */
const char *cgs_h5_reason(void);

#endif /* CGS_DATA_H5_H */
