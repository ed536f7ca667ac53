/* recording_lerobot.c - temporary */
#include "convert/recording.h"
bool cgs_is_lerobot(const char *path) { return (void)path, false; }
cgs_status cgs_recording_open_lerobot(cgs_recording *r, const cgs_choices *c) {
    return (void)r, (void)c, cgs_fail(CGS_EARG, "no");
}
