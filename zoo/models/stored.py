"""What a `DualEncoder` is in a file, and as a Functional model that Keras can export."""

import warnings
from typing import Any

import keras

from zoo import losses

_SHARED = ("image_encoder", "caption_encoder", "similarity")
SIDES = ("images", "captions")


def parts(model: keras.Model, loss: keras.losses.Loss | None) -> dict[str, Any]:
    """The config of a model with its own loss, to be read by `arguments`."""
    serialize = keras.saving.serialize_keras_object
    trained = model.trained_as_log_odds
    if trained is None and model.loss is not loss:
        trained = isinstance(model.loss, losses.MatchingCrossentropy)
    one_encoder = model.caption_encoder is model.image_encoder
    config = {
        "image_encoder": model.image_encoder,
        "caption_encoder": None if one_encoder else model.caption_encoder,
        "similarity": model.similarity,
        "loss": serialize(loss),
        "auxiliaries": [serialize(term) for term in model.auxiliaries],
        "tokenizer": serialize(model.tokenizer),
        "uncertainty_measure": model.uncertainty_measure,
    }
    return config if trained is None else {**config, "trained_as_log_odds": trained}


def arguments(config: dict[str, Any], custom_objects: dict[str, Any] | None) -> dict[str, Any]:
    """The constructor's arguments."""
    config = dict(config)

    def read(value):
        return keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)

    for key in _SHARED:  # dicts in a file, objects in the config of a model that is there
        config[key] = read(keras.saving.serialize_keras_object(config[key]))
    if config["caption_encoder"] is None:
        config["caption_encoder"] = config["image_encoder"]
    for key in _SHARED:
        if not isinstance(config[key], keras.layers.Layer):
            received = type(config[key]).__name__
            raise ValueError(f"{key!r} must be a Keras layer or model; received {received}")
    for key in ("image_encoder", "caption_encoder"):
        _freeze_again(config[key])
    config["tokenizer"] = read(config["tokenizer"])
    config["auxiliaries"] = [read(term) for term in config["auxiliaries"]]
    config["loss"] = _known_loss(config["loss"], read)
    return config


def flat_model(model: keras.Model) -> keras.Model:
    """A Functional model of both towers, `{"images_mean": …, "captions_mean": …}` its outputs.
    Raises ValueError if an encoder does not say what it takes."""
    inputs = {}
    for side, encoder in zip(SIDES, (model.image_encoder, model.caption_encoder), strict=True):
        taken = getattr(encoder, "input", None)
        if not isinstance(taken, keras.KerasTensor):
            raise ValueError(f"the encoder of {side} must say what it takes, as Functional models")
        inputs[side] = keras.Input(taken.shape[1:], dtype=taken.dtype, name=side)
    outputs = {
        f"{side}_{key}": values
        for side, embedding in model(inputs).items()
        for key, values in embedding.items()
    }
    return keras.Model(inputs, outputs, name=model.name)


def _known_loss(stored, read):
    """The loss, or None where it is a user's that is not here: encoding needs none."""
    try:
        return read(stored)
    except (TypeError, ValueError):
        name = stored.get("registered_name") or stored.get("class_name")
        name = stored["config"] if name == "function" else name
        warnings.warn(
            f"the model's loss {name!r:.60} is not known here, and is left out: give it by "
            "`custom_objects` or by `compile(loss=…)` to train further",
            stacklevel=2,
        )
        return None


def _freeze_again(encoder):
    """Keras restores `trainable` of a layer, but not to the layers and weights inside of it."""
    for layer in getattr(encoder, "layers", ()):
        if not layer.trainable:
            layer.trainable = True  # a value that is there already is not handed down
            layer.trainable = False
