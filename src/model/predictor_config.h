/* predictor_config.h - settings shared by the predictors of all world models. */
#ifndef CGS_MODEL_PREDICTOR_CONFIG_H
#define CGS_MODEL_PREDICTOR_CONFIG_H

#define CGS_PREDICTOR_CONFIG(X)                                                                    \
    X(int, predictor_layers, 6, 1, 64, "model.predictor.layers", "predictor layers")               \
    X(int, predictor_heads, 16, 1, 64, "model.predictor.heads",                                    \
      "attention heads of the predictor")                                                          \
    X(int, predictor_head_width, 64, 4, 512, "model.predictor.head_width",                         \
      "width of one predictor head")                                                               \
    X(int, predictor_mlp, 2048, 8, 16384, "model.predictor.mlp", "hidden width of predictor MLPs") \
    X(float, dropout, 0.1, 0, 0.9, "model.predictor.dropout", "dropout of the predictor")          \
    X(int, history, 3, 1, 16, "model.history", "context N of the predictor, in frames")            \
    X(int, action_dim, 2, 1, 64, "model.action_dim", "numbers in one primitive action")            \
    X(int, frameskip, 5, 1, 64, "model.frameskip", "primitive actions in one model step")

#endif /* CGS_MODEL_PREDICTOR_CONFIG_H */
