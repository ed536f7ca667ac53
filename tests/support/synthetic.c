/* synthetic.c - a disc that moves as the actions say. */
#include "synthetic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "data/writer.h"

void synthetic_render(const float *p, int size, uint8_t *rgb) {
    const float r = SYNTHETIC_RADIUS(size);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            float dx = (float)x - p[0], dy = (float)y - p[1];
            uint8_t *px = rgb + ((size_t)y * (size_t)size + (size_t)x) * 3;
            uint8_t floor = dx * dx + dy * dy <= r * r ? 0 : 255;
            px[0] = 255;
            px[1] = px[2] = floor;
        }
}

static float clamp(float v, float low, float high) { return v < low ? low : v > high ? high : v; }

void synthetic_episode(int index, int length, int size, uint64_t seed, uint8_t *pixels,
                       float *action, float *state) {
    cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_TEST, (uint64_t)index);
    const float r = SYNTHETIC_RADIUS(size), high = (float)(size - 1) - r;
    const size_t frame = (size_t)size * (size_t)size * 3;
    float p[2], a[2] = {0, 0};
    for (int k = 0; k < 2; k++) p[k] = (float)cgs_rng_range(&rng, r, high);
    for (int t = 0; t < length; t++) {
        for (int k = 0; k < 2; k++) state[2 * t + k] = p[k];
        synthetic_render(p, size, pixels + (size_t)t * frame);
        if (t % 4 == 0)
            for (int k = 0; k < 2; k++) a[k] = (float)cgs_rng_range(&rng, -1, 1);
        for (int k = 0; k < 2; k++) {
            action[2 * t + k] = t + 1 < length ? a[k] : NAN;
            p[k] = clamp(p[k] + SYNTHETIC_STEP(size) * a[k], r, high);
        }
    }
}

static void change(synthetic_change what, int length, int size, uint8_t *pixels, float *action,
                   float *joints) {
    size_t bytes = (size_t)length * (size_t)size * (size_t)size * 3;
    for (size_t i = 0; what == SYNTHETIC_SEEN && i < bytes; i++) pixels[i] = 255 - pixels[i];
    for (int i = 0; i < 2 * length; i++) {
        if (what == SYNTHETIC_SEEN) action[i] *= 50;
        if (what == SYNTHETIC_JOINTS) joints[i] *= 50;
    }
}

static cgs_status write_dataset(const char *path, int episodes, int length, int size, uint64_t seed,
                                bool with_joints, const uint8_t *changed, synthetic_change what) {
    const cgs_column_spec columns[] = {{"pixels", CGS_COL_U8, 3, {size, size, 3}},
                                       {"action", CGS_COL_F32, 1, {2}},
                                       {"proprio", CGS_COL_F32, 1, {2}},
                                       {"state", CGS_COL_F32, 1, {2}},
                                       {"qpos", CGS_COL_F32, 1, {2}}};
    cgs_writer *w = NULL;
    uint8_t *pixels = malloc((size_t)length * (size_t)size * (size_t)size * 3);
    float *action = malloc((size_t)length * 2 * sizeof(float));
    float *state = malloc((size_t)length * 2 * sizeof(float));
    float *joints = malloc((size_t)length * 2 * sizeof(float));
    cgs_status rc = CGS_OK;
    int64_t done = 0;
    if (!pixels || !action || !state || !joints) rc = cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    if (rc == CGS_OK) rc = cgs_writer_create(&w, path, columns, with_joints ? 5 : 4);
    if (rc == CGS_OK) rc = cgs_writer_text(w, "env", "synthetic");
    if (rc == CGS_OK) rc = cgs_writer_integer(w, "env_version", 1);
    if (rc == CGS_OK) rc = cgs_writer_text(w, "policy", "random");
    if (rc == CGS_OK) rc = cgs_writer_integer(w, "seed", seed);
    if (rc == CGS_OK) rc = cgs_writer_integer(w, "image_size", (uint64_t)size);
    if (rc == CGS_OK) rc = cgs_writer_integer(w, "action_dim", 2);
    if (rc == CGS_OK) rc = cgs_writer_real(w, "frame_rate", 10);
    if (rc == CGS_OK) rc = cgs_writer_begin(w, &done);
    for (int e = (int)done; e < episodes && rc == CGS_OK; e++) {
        synthetic_episode(e, length, size, seed, pixels, action, state);
        for (int i = 0; i < 2 * length; i++) joints[i] = state[i] / (float)size;
        if (changed && changed[e]) change(what, length, size, pixels, action, joints);
        rc = cgs_writer_add(w, length, (const void *const[]){pixels, action, state, state, joints});
    }
    if (rc == CGS_OK) rc = cgs_writer_finish(w);
    cgs_writer_destroy(w);
    free(pixels);
    free(action);
    free(state);
    free(joints);
    return rc;
}

cgs_status synthetic_dataset(const char *path, int episodes, int length, int size, uint64_t seed) {
    return write_dataset(path, episodes, length, size, seed, false, NULL, SYNTHETIC_SEEN);
}

cgs_status synthetic_dataset_changed(const char *path, int episodes, int length, int size,
                                     uint64_t seed, const uint8_t *changed, synthetic_change what) {
    return write_dataset(path, episodes, length, size, seed, true, changed, what);
}
