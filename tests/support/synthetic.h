/* synthetic.h - small datasets of known geometry for the tests.
 *
 * A red disc on a white floor moves by p' = clamp(p + SYNTHETIC_STEP(size) * action);
 * positions are in pixels, actions in [-1, 1] and constant for a few steps.  Columns:
 * pixels u8 (size, size, 3), action f32 (2), proprio f32 (2) = p, state f32 (2) = p. */
#ifndef CGS_TESTS_SYNTHETIC_H
#define CGS_TESTS_SYNTHETIC_H

#include <stdint.h>

#include "core/status.h"

#define SYNTHETIC_STEP(size) ((float)(size) / 32.0f)
#define SYNTHETIC_RADIUS(size) ((float)(size) / 12.0f)

/* Writes `episodes` episodes of `length` rows (length - 1 actions) each. */
cgs_status synthetic_dataset(const char *path, int episodes, int length, int size, uint64_t seed);

/* The same with a column of joint positions, qpos f32 (2) = p / size, where the marked episodes
 * have other images and larger actions, or larger joint positions.  changed: (episodes), or NULL */
typedef enum synthetic_change { SYNTHETIC_SEEN, SYNTHETIC_JOINTS } synthetic_change;
cgs_status synthetic_dataset_changed(const char *path, int episodes, int length, int size,
                                     uint64_t seed, const uint8_t *changed, synthetic_change what);

/* Episode `index` alone: pixels (length, size, size, 3), action and state (length, 2). */
void synthetic_episode(int index, int length, int size, uint64_t seed, uint8_t *pixels,
                       float *action, float *state);

void synthetic_render(const float *p /* (2) x, y */, int size, uint8_t *rgb /* (size, size, 3) */);

#endif /* CGS_TESTS_SYNTHETIC_H */
