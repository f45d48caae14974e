"""Sinusoidal encodings of positions."""

import math

from keras import ops

from zoo.embeddings import Tensor


def sinusoidal_encoding(positions: Tensor, dim: int) -> Tensor:
    """Sine and cosine in turn, of `positions / 10000^(2i / dim)`: float32, the shape of `positions`
    (radians at the highest frequency) and `dim`.

    Raises:
        ValueError: if `dim` is odd.

    Reference: Vaswani et al., NeurIPS 2017, section 3.5.
    """
    if dim % 2:
        raise ValueError(f"`dim` must be even, a sine and a cosine each; received {dim}")
    frequencies = ops.exp(ops.arange(0, dim, 2, dtype="float32") * (-math.log(10000.0) / dim))
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * frequencies
    waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    return ops.reshape(waves, (*ops.shape(positions), dim))


def sequence_encoding(length: int, dim: int, mask: Tensor | None = None) -> Tensor:
    """Encodings of the relative place in a sequence, 2π at its last position: `(batch, length,
    dim)`, or `(1, length, dim)` without mask. Places are relative to the number of words, those
    that are True in the mask `(batch, length)`, so padding more changes nothing."""
    places = ops.expand_dims(ops.arange(1, length + 1, dtype="float32"), 0)
    count = length
    if mask is not None:
        count = ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)
    return sinusoidal_encoding(places * (2 * math.pi) / count, dim)


def map_encoding(height: int, width: int, dim: int) -> Tensor:
    """Encodings of the cells of a feature map, `(1, height · width, dim)` row by row: half the
    channels for the row, half the column; `dim` is a multiple of four."""
    if dim % 4:
        raise ValueError(f"`dim` must be a multiple of 4 to encode a map; received {dim}")
    rows = ops.expand_dims(sequence_encoding(height, dim // 2), 2)
    columns = ops.expand_dims(sequence_encoding(width, dim // 2), 1)
    shape = (1, height, width, dim // 2)
    both = [ops.broadcast_to(rows, shape), ops.broadcast_to(columns, shape)]
    return ops.reshape(ops.concatenate(both, axis=-1), (1, height * width, dim))
