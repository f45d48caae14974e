"""Vectors that are there already, as items and as queries of an index."""

from pathlib import Path

import numpy as np

from zoo.data.vector_files import located, read_column, read_vectors
from zoo.errors import InputError


def reads_vectors(model, side):
    """Whether a model takes stored vectors of `"images"` or of `"captions"`."""
    if side == "captions":
        return model.reads_caption_vectors
    shape = getattr(model.image_encoder, "input_shape", None)
    return isinstance(shape, tuple) and len(shape) == 2


def vector_items(model, side, source, names=None):
    """The rows of a file of vectors as items for `zoo.search.encode.encode_shards`.

    Args:
        model: a `DualEncoder` that takes vectors of this side.
        side: `"images"` or `"captions"`.
        source: `FILE` or `FILE:NAME`, see `zoo.data.vector_files`.
        names: what to call the items, a text file or `FILE:COLUMN`; None for their rows.

    Returns:
        `(names, rows, encoder, identity)`: the encoder takes a list of rows, the identity says
        which file they are of.

    Raises:
        InputError: if the file is no such file, or of another width than the model takes.
    """
    array = read_vectors(source, side)
    _check_width(model, side, array, source)
    rows = list(range(len(array)))
    named = [f"{side[:-1]} {row}" for row in rows]
    if names is not None:
        named = [str(name) for name in read_column(names)]
        if len(named) != len(rows):
            raise InputError(f"{names}: expected {len(rows):,} names, found {len(named):,}")
    encode = _encoder(model, side)
    path, column = located(source)
    found = Path(path).resolve().stat()
    identity = {"source": str(source), "column": column, "bytes": found.st_size}
    identity["modified"] = found.st_mtime_ns
    return named, rows, lambda chosen: encode(array[chosen]), identity


def vector_query(model, side, source, row):
    """The embedding of one row of a file of vectors.

    Raises:
        InputError: as `vector_items`, or if there is no such row.
    """
    if not reads_vectors(model, side):
        raise InputError(f"--vector: the model reads no vectors of {side}")
    array = read_vectors(source, side)
    _check_width(model, side, array, source)
    if not 0 <= row < len(array):
        raise InputError(f"{source}: expected --row below {len(array):,}; received {row}")
    return _encoder(model, side)(array[row : row + 1])


def _encoder(model, side):
    encode = model.encode_captions if side == "captions" else model.encode_images
    return lambda vectors: encode(np.asarray(vectors, np.float32), batch_size=4096)


def _check_width(model, side, array, source):
    encoder = model.caption_encoder if side == "captions" else model.image_encoder
    dim = encoder.input_shape[-1]
    if array.shape[1] != dim:
        raise InputError(
            f"{source}: expected vectors of {dim} channels, which the model takes for {side}; "
            f"found {array.shape[1]}"
        )
