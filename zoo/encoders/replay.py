"""Encoders replayed: what inner layers give, and the head without its backbone."""

import keras


def replay(encoder, is_wanted):
    """A model with the encoder's own layers, and symbolic outputs of those that are wanted, by
    layer. `keras.Model(model.input, {**model.output, "more": output})` gives both."""
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


def head_alone(encoder: keras.Model) -> keras.Model:
    """What follows the backbone of an encoder, as a model of the backbone's features.

    ```python
    model = zoo.models.infonce("mobilenet_v2", tokenizer)
    heads = model.with_image_encoder(zoo.encoders.head_alone(model.image_encoder))
    ```

    Args:
        encoder: an encoder of one of the builders, whose `"backbone"` gives one array of features,
            or a dict of which only `"pooled"` is read, as by `vector_encoder`.

    Returns:
        A Functional `keras.Model` from features `(batch, …)` to embeddings. It shares the weights
        of the encoder.

    Raises:
        ValueError: if the encoder has no backbone, or one with several outputs.
    """
    backbone = next((layer for layer in encoder.layers if layer.name == "backbone"), None)
    several = backbone is not None and isinstance(backbone.output, dict)
    if backbone is None or (several and "pooled" not in backbone.output):
        found = None if backbone is None else sorted(backbone.output)
        raise ValueError(
            "`encoder` must have a backbone with one output, such as a convolutional one; "
            f"received one with {found or 'no backbone'}"
        )
    whole, outputs = replay(encoder, lambda layer: layer is backbone)
    read = outputs[backbone]["pooled"] if several else outputs[backbone]
    try:
        return keras.Model(read, whole.output, name=encoder.name.replace("encoder", "head"))
    except ValueError as error:  # another output of the backbone is read too
        raise ValueError(
            f"`encoder` must read nothing of its backbone but one output; {error}"
        ) from error
