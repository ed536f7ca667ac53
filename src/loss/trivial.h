/* trivial.h - what predictors that know nothing would score, to compare a model's with. */
#ifndef CGS_LOSS_TRIVIAL_H
#define CGS_LOSS_TRIVIAL_H

/* Mean squared errors, as L_pred measures a model's. */
typedef struct cgs_trivial {
    double copy; /* predicting that the latent stays as it was  */
    double mean; /* predicting the mean latent: their variance  */
} cgs_trivial;

/* z (windows, frames, width) latents */
cgs_trivial cgs_trivial_errors(const float *z, int windows, int frames, int width);

#endif /* CGS_LOSS_TRIVIAL_H */
