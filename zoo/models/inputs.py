"""Checks of the inputs of a `DualEncoder`; each error says what was expected."""

import warnings

import keras
import numpy as np

from zoo.embeddings import POINT, kind

_MAKERS = (
    "`zoo.data.batches.image_caption_pairs(records, tokenizer, source, batch_size)` makes such "
    "batches out of a loader's records"
)

_STRINGS = ("str", "bytes", "object")  # beginnings of the names of dtypes


def check_gives_points(encoder, name):
    """Raises unless an encoder can be continued, and gives points. Raises ValueError if it is no
    Functional model, or its embeddings are of another kind."""
    output = getattr(encoder, "output", None) if isinstance(encoder, keras.Model) else None
    received = kind(output) if isinstance(output, dict) else type(encoder).__name__
    if received != POINT:
        raise ValueError(
            f"`{name}` must be a Functional keras.Model to points; received {received}"
        )


def check_training_batch(data):
    """Raises ValueError unless a batch, of tensors or symbolic ones, is what `DualEncoder.fit`
    reads: a dict with all keys, and numbers in place of strings."""
    batch, *_ = keras.utils.unpack_x_y_sample_weight(data)
    expected = (
        "a training batch must be a dict with 'images', 'captions' (token ids or vectors) and "
        "either 'image_labels' and 'caption_labels' or 'matches'"
    )
    if not isinstance(batch, dict):
        kind = "a tuple" if isinstance(data, (tuple, list)) and len(data) > 1 else "one tensor"
        raise ValueError(f"{expected}; received {kind}. {_MAKERS}")
    missing = [key for key in ("images", "captions") if key not in batch]
    if "matches" not in batch:
        missing += [key for key in ("image_labels", "caption_labels") if key not in batch]
    if missing:
        raise ValueError(f"{expected}; received {sorted(batch)}, without {missing}. {_MAKERS}")
    for key in ("images", "captions"):
        if _kind(batch[key]) == "string":
            raise ValueError(f"{expected}; received strings as {key!r}. {_MAKERS}")


def check_nothing_else(y, sample_weight):
    """Raises unless a batch came alone. Raises ValueError if answers or weights came beside it,
    which no loss of pairs reads."""
    for name, value, instead in (
        ("y", y, "what matches is in the batch, as labels or as 'matches'"),
        ("sample_weight", sample_weight, "the items of the loss are pairs, which have no weights"),
    ):
        if value is not None:
            received = f"{value!r:.60}"
            if hasattr(value, "shape"):
                received = f"a tensor of the shape {tuple(value.shape)}"
            raise ValueError(f"`{name}` must be None: {instead}; received {received}")


def check_no_strings(inputs, has_tokenizer):
    """Raises unless a model is called with numbers. Raises ValueError if it holds strings."""
    for name in ("images", "captions") if isinstance(inputs, dict) else ():
        if _kind(inputs.get(name)) == "string":
            raise ValueError(_no_strings(name, has_tokenizer))


def _no_strings(name, has_tokenizer):
    """The message for strings where numbers are needed, with what to do."""
    if name == "images":
        return (
            "`images` must be pixels; received strings. `zoo.data.images.prepare(contents, size)` "
            "makes pixels of a file's bytes, and `zoo.data.sources.Pictures` of many files"
        )
    if not has_tokenizer:
        return "`captions` must be token ids or vectors; received strings"
    return (
        "`captions` in a dataset or a batch must be token ids; received strings: map the dataset "
        "by `model.tokenizer` first"
    )


def is_text(captions):
    """Whether captions are strings. Raises ValueError if only some of them are, with the first that
    is not."""
    if isinstance(captions, np.ndarray) and captions.dtype.kind in "SU":
        return True
    if isinstance(captions, (list, tuple)) or _kind(captions) == "object":
        kinds = [isinstance(caption, (str, bytes)) for caption in captions]
        if any(kinds) and not all(kinds):
            item = kinds.index(False)
            raise ValueError(
                "`captions` must all be strings, or all be token ids; item "
                f"{item} is {captions[item]!r:.40} of type {type(captions[item]).__name__}"
            )
        return bool(kinds) and all(kinds)
    return _kind(captions) == "string"


def image_array(images, shape=None):
    """Images as `predict` takes them: an array that was checked, or the dataset that was given.
    Raises ValueError if it is no array that fits the encoder's input shape, where that is known."""
    array = _array(images, "images", "pictures (N, height, width, 3) or features")
    if not hasattr(array, "shape"):
        return array
    if _kind(array).startswith(_STRINGS):
        raise ValueError(_no_strings("images", False))
    _check_shape(array, "images", shape)
    if len(array.shape) == 4 and array.shape[-1] == 3 and "float" in _kind(array):
        largest = float(np.max(array, initial=0.0))
        if 0 < largest <= 1:
            warnings.warn(
                f"`images` must be in 0 … 255; the largest value is {largest:.3g}, as of pictures "
                "that were divided by 255",
                stacklevel=3,
            )
    return array


def caption_array(captions, shape=None, has_tokenizer=True):
    """Like `image_array`, for token ids or vectors."""
    expected = "strings, token ids (M, length) or vectors (M, dim)"
    array = _array(captions, "captions", expected, has_tokenizer)
    if hasattr(array, "shape"):
        if _kind(array).startswith(_STRINGS):
            raise ValueError(f"`captions` must be numbers; received {captions!r:.60}")
        _check_shape(array, "captions", shape)
    return array


def _kind(values):
    """The name of the dtype, such as "float32" or "string"; "" of what has none."""
    dtype = getattr(values, "dtype", "")
    return getattr(dtype, "name", str(dtype))


def _array(values, name, expected, has_tokenizer=True):
    """The values as an array, or as they are if they are a dataset or a generator. Raises
    ValueError for anything else."""
    if hasattr(values, "element_spec"):
        if isinstance(values.element_spec, dict):
            raise ValueError(
                f"`{name}` must be a dataset of batches of {name} alone; received one of dicts "
                f"with {sorted(values.element_spec)}: map it to `batch[{name!r}]`"
            )
        if _kind(values.element_spec) == "string":
            raise ValueError(_no_strings(name, has_tokenizer))
        return values
    if hasattr(values, "shape"):
        return values
    if isinstance(values, (list, tuple)):
        shapes = list(dict.fromkeys(np.shape(value) for value in values))
        if len(shapes) > 1:
            raise ValueError(f"`{name}` must be of one shape; received {shapes[0]} and {shapes[1]}")
        return np.asarray(values)
    if hasattr(values, "__iter__") and not isinstance(values, (str, bytes, dict)):
        return values  # a generator or a keras.utils.PyDataset, which `predict` reads
    raise ValueError(f"`{name}` must be {expected}; received {values!r:.60}")


def _check_shape(array, name, shape):
    """Raises ValueError unless an array has the shape (N, …) that the encoder reads; None fits any
    size."""
    if shape is None or not len(array):
        return
    received = tuple(array.shape)
    wanted = f"(N, {', '.join('any' if size is None else str(size) for size in shape[1:])})"
    if len(received) == len(shape) - 1:
        raise ValueError(
            f"`{name}` must have the shape {wanted}; received {received}: one item without the "
            f"axis of the batch, which `{name}[None]` adds"
        )
    matches = len(received) == len(shape) and all(
        size is None or size == received_size
        for size, received_size in zip(shape[1:], received[1:], strict=True)
    )
    if not matches:
        raise ValueError(f"`{name}` must have the shape {wanted}; received {received}")
