"""Maps of local features as one vector: their means and their maxima, side by side."""

from collections.abc import Sequence

import keras
from keras import ops


def mean_and_max(backbone: keras.Model, layers: Sequence[str] = ()) -> keras.Model:
    """A convolutional backbone whose maps are pooled in two ways: what is there on the whole, and
    what is anywhere.

    ```python
    network = zoo.encoders.convolutional("mobilenet_v2", trainable=False)
    zoo.encoders.mean_and_max(network, ["block_13_expand_relu"])  # to (batch, 2 · (576 + 1280))
    ```

    Args:
        backbone: what `zoo.encoders.convolutional` returns.
        layers: names of inner layers of its network whose maps are pooled beside the last one.

    Returns:
        A Functional `keras.Model` named `"backbone"` from images to one vector
        `(batch, 2 · channels)`: mean and maximum of each of `layers`, then of the last map.

    Raises:
        ValueError: if the network has no such layer.

    Reference: Vilalta et al., "Full-Network Embedding in a Multimodal Embedding Pipeline", 2017,
        for layers side by side.
    """
    network = next(layer for layer in backbone.layers if isinstance(layer, keras.Model))
    maps = [*(network.get_layer(name).output for name in layers), network.output]
    inner = keras.Model(network.input, maps, name=network.name)
    images = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="images")
    found = inner(backbone.get_layer("preprocessing")(images))
    found = found if isinstance(found, (list, tuple)) else [found]
    pooled = [part for one in found for part in (ops.mean(one, (1, 2)), ops.max(one, (1, 2)))]
    model = keras.Model(images, ops.concatenate(pooled, axis=-1), name="backbone")
    model.trainable = backbone.trainable
    return model
