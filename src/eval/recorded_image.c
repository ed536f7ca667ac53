/* recorded_image.c - see recorded_image.h. */
#include "eval/recorded_image.h"

#include <string.h>

#include "eval/start_states.h"

cgs_status cgs_recorded_images_open(cgs_recorded_images *p, cgs_dataset *data,
                                    const cgs_env_class *env) {
    const cgs_source *s = cgs_dataset_source(data);
    *p = (cgs_recorded_images){.data = data};
    if (s->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no images", s->path);
    if (!env) return CGS_OK;
    CGS_TRY(cgs_state_column(s, env, &p->state));
    if (s->pixels_every == 1) return CGS_OK;
    if (s->height != s->width)
        return cgs_fail(CGS_EFORMAT, "%s: images of %d x %d pixels cannot be rendered again",
                        s->path, s->height, s->width);
    return cgs_env_create(&p->env, env);
}

void cgs_recorded_images_close(cgs_recorded_images *p) {
    cgs_env_destroy(p->env);
    memset(p, 0, sizeof *p);
}

cgs_status cgs_recorded_images_read(cgs_recorded_images *p, int64_t first, int64_t step,
                                    uint8_t *rgb) {
    const cgs_source *s = cgs_dataset_source(p->data);
    if (step % s->pixels_every == 0) return cgs_dataset_read_pixels(p->data, first + step, 1, rgb);
    if (!p->env)
        return cgs_fail(CGS_EARG,
                        "%s: row %lld has no image, and there is no environment to draw it",
                        s->path, (long long)(first + step));
    double state[CGS_ENV_MAX_DIM];
    CGS_TRY(cgs_dataset_read_rows_f64(p->data, p->state, first + step, 1, state));
    /* a fresh environment: PushT remembers contacts, and the previously rendered image is arbitrary
     */
    CGS_TRY(cgs_env_start(p->env, state, p->env->cls->state_dim));
    return cgs_env_render(p->env, s->height, rgb);
}
