"""Towers to several vectors an item: DivE's and PVSE's sets, SGRAF's regions and words.

`encoder.get_layer("backbone")` and, of sets, `encoder.get_layer("head")` are Keras models, so that
a head can be trained on stored features of a frozen backbone; `with_attention` looks into it.
"""

import keras
from keras import layers, ops

from zoo.encoders.stored_features import positions
from zoo.layers.attention import GlobalAttention, PolysemousEmbedding
from zoo.layers.masking import UnitLength, masked_max
from zoo.layers.slot_attention import SetPrediction

_SET_LAYERS = (SetPrediction, PolysemousEmbedding)


def set_image_encoder(
    backbone: keras.Model, dim: int, set_layer: keras.layers.Layer, project_map: bool = False
) -> keras.Model:
    """Images to sets `{"elements", "slots"}` (DivE, sections 3.1, 4.2) of a feature map, after a 1
    × 1 convolution where `project_map`, or of `{"features", "pooled", "mask"}`, as of `regions`."""
    head_inputs = _inputs_like(backbone.output, ("features", "pooled", "mask"))
    if isinstance(head_inputs, dict):
        features, pooled = head_inputs["features"], head_inputs["pooled"]
        mask = head_inputs["mask"]
        if pooled.shape[-1] != dim:  # of regions it is, of stored vectors it need not be
            features = layers.Dense(dim, name="local")(features)
            pooled = layers.Dense(dim, name="global")(pooled)
    else:
        features, mask = head_inputs, None
        if project_map:
            features = layers.Conv2D(dim, 1, name="local")(features)
        pooled = layers.GlobalAveragePooling2D(name="pooling")(features)
        if not project_map:
            pooled = layers.Dense(dim, name="global")(pooled)
    head = _head(head_inputs, set_layer, features, pooled, mask)
    images = keras.Input(backbone.input_shape[1:], name="images")
    return keras.Model(images, head(_chosen(backbone(images), head_inputs)), name="image_encoder")


def set_caption_encoder(
    backbone: keras.Model,
    dim: int,
    set_layer: keras.layers.Layer,
    dropout: float = 0.0,
    seed: int | None = None,
) -> keras.Model:
    """As `set_image_encoder`, of a backbone to `{"words", "sentence", "mask"}`, whose sentence has
    `dim` channels, else a ValueError; or to `{"features", "mask"}`, of which the maximum is global.
    """
    recurrent = "words" in backbone.output
    names = ("words", "sentence", "mask") if recurrent else ("features", "mask")
    head_inputs = _inputs_like(backbone.output, names)
    mask = head_inputs["mask"]
    if recurrent:
        features, pooled = head_inputs["words"], head_inputs["sentence"]
        if pooled.shape[-1] != dim:
            raise ValueError(
                f"`caption_backbone` must have a sentence of {dim} channels; received "
                f"{pooled.shape[-1]}"
            )
        if dropout:
            pooled = layers.Dropout(dropout, seed=seed, name="dropout")(pooled)
    else:
        features = layers.Dense(dim, name="local")(head_inputs["features"])
        pooled = masked_max(features, mask)
    head = _head(head_inputs, set_layer, features, pooled, mask)
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    return keras.Model(ids, head(_chosen(backbone(ids), head_inputs)), name="caption_encoder")


def with_attention(encoder: keras.Model) -> keras.Model:
    """The encoder of a set model, with what each element looks at. It shares the weights.

    Args:
        encoder: `image_encoder` or `caption_encoder` of a `dive` or `pvse` model; else a
            ValueError.

    Returns:
        A Functional `keras.Model` with the encoder's inputs and outputs, and among the outputs
        `"attention"` float32 `(batch, K, positions)`, each row of which sums to one over regions,
        words, or the cells of a feature map row by row: of DivE that of the last round, the mean
        over heads. Where the backbone knows of padding it also gives its `"mask"`.
    """
    parts = {layer.name: layer for layer in encoder.layers}
    head = parts.get("head")
    makers = [layer for layer in getattr(head, "layers", []) if isinstance(layer, _SET_LAYERS)]
    if "backbone" not in parts or not makers:
        raise ValueError(
            "`encoder` must be an encoder of `dive` or `pvse`, with a backbone and a head that "
            f"makes sets; received {encoder.name!r}"
        )
    # Keras keeps what a layer returned as a flat list.
    names = dict.fromkeys(("attention", "elements", "slots"))
    sets = keras.tree.pack_sequence_as(names, makers[0].output)
    outputs = {**head.output, "attention": sets["attention"]}
    looking = keras.Model(head.input, outputs, name="head")
    features = parts["backbone"](encoder.input)
    results = looking(_chosen(features, head.input))
    if isinstance(features, dict) and "mask" in features:
        results = {**results, "mask": features["mask"]}
    return keras.Model(encoder.input, results, name=encoder.name)


def map_size(encoder: keras.Model) -> tuple[int, int] | None:
    """`(height, width)` of the feature map that an image encoder attends to, or None."""
    shape = encoder.get_layer("backbone").output_shape
    return tuple(shape[1:3]) if isinstance(shape, tuple) and len(shape) == 4 else None


def region_token_encoder(
    backbone: keras.Model, dim: int, dropout: float = 0.4, seed: int | None = None
) -> keras.Model:
    """Images to token sequences `{"tokens", "mask", "pooled"}`: regions projected, zero where there
    is none, and what they attend to together (SGRAF, section 3.1)."""
    images = keras.Input(backbone.input_shape[1:], name="images")
    features, mask = positions(backbone(images))
    if mask is None:
        mask = ops.ones_like(features[:, :, 0], dtype="bool")
    projected = layers.Dense(dim, name="projection")(features)
    return _sequences(images, projected, mask, "image_encoder", True, dropout, seed)


def word_token_encoder(
    backbone: keras.Model, dropout: float = 0.4, seed: int | None = None, dim: int | None = None
) -> keras.Model:
    """Like `region_token_encoder`, for a backbone's `"states"` or `"features"`, projected to `dim`
    channels where they have others."""
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    features = output["states"] if "states" in output else output["features"]
    if dim is not None and features.shape[-1] != dim:
        features = layers.Dense(dim, name="projection")(features)
    return _sequences(ids, features, output["mask"], "caption_encoder", False, dropout, seed)


def _head(inputs, set_layer, features, pooled, mask):
    """The model from features to a set: unit `elements` (batch, K, dim), and `slots` as float32."""
    # The attention is computed anyway; as an output of the layer, `with_attention` finds it.
    options = {} if mask is None else {"mask": mask}
    sets = set_layer(features, pooled, return_attention=True, **options)
    outputs = {
        "elements": UnitLength(name="unit_length")(sets["elements"]),
        "slots": ops.cast(sets["slots"], "float32"),
    }
    return keras.Model(inputs, outputs, name="head")


def _inputs_like(outputs, names):
    """Inputs of the shapes of a backbone's outputs, by name if these are a dict."""
    if not isinstance(outputs, dict):
        return keras.Input(outputs.shape[1:], name="features")
    return {
        name: keras.Input(outputs[name].shape[1:], name=name, dtype=outputs[name].dtype)
        for name in names
    }


def _chosen(outputs, inputs):
    """The outputs that a tower's inputs name; all of them where it has one input."""
    return {name: outputs[name] for name in inputs} if isinstance(inputs, dict) else outputs


def _sequences(inputs, features, mask, name, normalize, dropout, seed):
    """The model from features to `tokens` (batch, positions, dim) of unit length, 0 at padding,
    their `mask` and a `pooled` vector."""
    unit = UnitLength(name="unit_length")(features)
    tokens = ops.where(ops.expand_dims(mask, -1), unit, 0.0)
    pooling = GlobalAttention(normalize, dropout, seed, name="pooling")
    outputs = {"tokens": tokens, "mask": mask, "pooled": pooling(tokens, mask=mask)}
    return keras.Model(inputs, outputs, name=name)
