/* kind.h - what a file is, by how it begins: so that a message about a wrong file can name it. */
#ifndef CGS_IO_KIND_H
#define CGS_IO_KIND_H

#include <stdbool.h>

/* "a safetensors file, weights of a model: cgs info describes it", to follow "it is "; of a file
 * that cannot be read, "of an unknown kind".  Never NULL; lives forever. */
const char *cgs_file_kind(const char *path);

/* Does it begin as HDF5 does?  One that cannot be opened then is damaged. */
bool cgs_file_is_hdf5(const char *path);

#endif /* CGS_IO_KIND_H */
