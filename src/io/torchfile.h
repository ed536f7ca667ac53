/* torchfile.h - weights from the zip files that torch.save writes (.pt, .pth, .ckpt).
 *
 * Accepted: a state dict; a mapping that holds one under "state_dict" (a leading "model." is taken
 * off the names, "sigreg.*" and "callbacks_*" are left out); a pickled module, or a mapping of
 * modules; a single tensor, which gets the name "tensor".  Nothing in the file is executed: its
 * pickle is read as data, and a file that calls some other function where a tensor is expected is
 * refused, naming the function. */
#ifndef CGS_IO_TORCHFILE_H
#define CGS_IO_TORCHFILE_H

#include "io/weights.h"

/* Fills the list of an open file; called by cgs_weights_open. */
cgs_status cgs_torchfile_contents(cgs_weights *w);

#endif /* CGS_IO_TORCHFILE_H */
