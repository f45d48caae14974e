"""A `DualEncoder` as a Functional model of flat outputs, which Keras can export."""

from typing import Any

import keras

SIDES = ("images", "captions")


def flat_model(
    model: keras.Model, signature: Any = None, called_with: dict[str, Any] | None = None
) -> keras.Model:
    """A Functional model of both towers, `{"images_mean": …, "captions_mean": …}` its outputs.

    Args:
        model: a `DualEncoder`.
        signature: what it takes, a dict of `keras.InputSpec`s or a list of that dict; None for
            what the encoders say.
        called_with: `(shape, dtype)` of the inputs that it has been called with, by side: of
            encoders that are layers and say nothing.

    Raises:
        ValueError: if what a side takes is not known.
    """
    if isinstance(signature, (list, tuple)) and len(signature) == 1:
        (signature,) = signature
    known = {**(called_with or {}), **_of_encoders(model)}
    if signature is not None:
        known.update({side: (spec.shape, spec.dtype) for side, spec in signature.items()})
    if missing := [side for side in SIDES if side not in known]:
        raise ValueError(
            f"what the model takes as {' and '.join(map(repr, missing))} must be known: call it "
            "once, or give `input_signature={'images': keras.InputSpec(…), 'captions': …}`"
        )
    inputs = {}
    for side in SIDES:
        shape, dtype = known[side]
        dtype = keras.backend.standardize_dtype(dtype)
        inputs[side] = keras.Input(tuple(shape)[1:], dtype=dtype, name=side)
    outputs = {
        f"{side}_{key}": values
        for side, embedding in model(inputs).items()
        for key, values in embedding.items()
    }
    return keras.Model(inputs, outputs, name=model.name)


def _of_encoders(model):
    encoders = {"images": model.image_encoder, "captions": model.caption_encoder}
    inputs = {side: getattr(encoder, "input", None) for side, encoder in encoders.items()}
    return {
        side: (tensor.shape, tensor.dtype)
        for side, tensor in inputs.items()
        if isinstance(tensor, keras.KerasTensor)
    }
