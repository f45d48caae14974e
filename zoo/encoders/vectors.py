"""The backbone of vectors that exist: those of CLIP, SigLIP or any other model."""

import keras
from keras import layers, ops

from zoo.layers.masking import UnitLength


def vectors(dim: int, normalize: bool = False, positions: int = 1) -> keras.Model:
    """Stored vectors in place of pictures or words, for either tower of every builder.

    ```python
    model = zoo.models.pcmepp(
        zoo.encoders.vectors(512), caption_backbone=zoo.encoders.vectors(512), dim=512
    )
    ```

    Args:
        dim: channels of a vector.
        normalize: whether vectors are brought to unit length first, so that a model takes them
            with any length, when it is served too.
        positions: local features a vector. One is the vector itself; more are learned linear maps
            of it, for what chooses among local features, such as the slots of DivE.

    Returns:
        A Functional `keras.Model` named `"backbone"` from float `(batch, dim)` to a dict:
        `"features"` `(batch, positions, dim)`, `"pooled"` `(batch, dim)`, the vector, and
        `"mask"` bool `(batch, positions)`, always True.

    Raises:
        ValueError: if a size is no whole number of at least 1.

    Relations: `zoo.encoders.regions` is the backbone of several vectors an item.
    """
    for name, value in (("dim", dim), ("positions", positions)):
        if value != int(value) or value < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1; received {value!r}")
    inputs = keras.Input((dim,), name="vectors")
    vector = UnitLength(name="unit_length")(inputs) if normalize else inputs
    local = vector
    if positions > 1:
        local = layers.Dense(positions * dim, name="projections")(vector)
    features = layers.Reshape((positions, dim), name="positions")(local)
    mask = ops.ones_like(features[:, :, 0], dtype="bool")
    outputs = {"features": features, "pooled": vector, "mask": mask}
    return keras.Model(inputs, outputs, name="backbone")
