"""Runs an encoder's layers on a new input, to reach the outputs of inner layers."""

import keras


def replay(encoder, is_wanted):
    """The same encoder, weights included, and what some of its layers give in it.

    Args:
        encoder: a Functional `keras.Model`.
        is_wanted: function of a layer of it.

    Returns:
        `(model, outputs)`: a model with the encoder's own layers, and symbolic outputs of it by
        layer. `keras.Model(model.input, {**model.output, "more": output})` gives both.
    """
    outputs = {}

    def call(layer, *args, **kwargs):
        output = layer(*args, **kwargs)
        if is_wanted(layer):
            outputs[layer] = output
        return output

    model = keras.models.clone_model(
        encoder, clone_function=lambda layer: layer, call_function=call
    )
    return model, outputs
