"""Where the images of a batch come from: pictures, or features; and a split of a data set."""

import copy
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from halo_search.errors import InputError
from zoo.data.records import Records
from zoo.images import pictures as images

_CACHE_LIMIT = 1 << 29  # bytes of decoded pictures
_SMALL = 1 << 29  # bytes, of files that are read whole


class Pictures:
    """The pictures of some records, decoded and resized as by `images.resize`, uint8: all at once
    (`cache`), for each batch, or as all take at most half a GiB of memory or more (None)."""

    fill = images.IMAGENET_MEAN  # what Cutout leaves behind

    def __init__(self, records, image_size=224, mode="crop", crop_fraction=1.0, cache=None):
        self.count = records.num_images
        self.shape = (image_size, image_size, 3)
        with tf.device("CPU:0"):
            self._paths = tf.constant(list(records.image_paths), tf.string)
        self.resizing = (mode, crop_fraction)
        small = self.count * image_size * image_size * 3 <= _CACHE_LIMIT
        self._cached = self._decode_all() if (small if cache is None else cache) else None

    def take(self, indices):
        """From a dataset of indices, int `(batch,)`, to one of pictures, in the same order."""
        if self._cached is not None:
            return _gather(self._cached, indices)
        batch = indices.element_spec.shape[0]
        loaded = indices.unbatch().map(self._load, num_parallel_calls=tf.data.AUTOTUNE)
        return loaded.batch(batch, drop_remainder=True)

    def take_parts(self, indices, draws, crop):
        """As `take`, by `draws`, a dataset of `crop.draws`: a random part of each original."""
        batch = indices.element_spec.shape[0]
        chosen = tf.data.Dataset.zip(indices, draws).unbatch()
        parts = chosen.map(
            lambda index, numbers: crop.cut(
                tf.io.read_file(self._paths[index]), self.shape[0], numbers
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        return parts.batch(batch, drop_remainder=True)

    def in_order(self, batch_size):
        """All pictures, the last batch as small as it is."""
        indices = tf.data.Dataset.range(self.count)
        if self._cached is not None:
            return _gather(self._cached, indices.batch(batch_size))
        return indices.map(self._load, num_parallel_calls=tf.data.AUTOTUNE).batch(batch_size)

    def picture(self, index):
        """One picture, uint8 `(height, width, 3)`."""
        picture = self._load(index) if self._cached is None else self._cached[index]
        return picture.numpy()

    @tf.autograph.experimental.do_not_convert  # as `training` of zoo.data.pipeline.batches
    def _load(self, index):
        """The picture at an index, float32 (size, size, 3) in 0 … 255."""
        mode, fraction = self.resizing
        contents = tf.io.read_file(self._paths[index])
        return images.prepare(contents, self.shape[0], mode, fraction)

    def _decode_all(self):
        """All pictures on the CPU, uint8 (pictures, size, size, 3)."""
        decoded = np.empty((self.count, *self.shape), np.uint8)
        pictures = tf.data.Dataset.range(self.count).map(
            self._load, num_parallel_calls=tf.data.AUTOTUNE
        )
        for index, picture in enumerate(pictures.as_numpy_iterator()):
            decoded[index] = picture
        with tf.device("CPU:0"):
            return tf.constant(decoded)


class Features:
    """Features in place of pictures, `(rows, …)` in memory or a memory map, such as a frozen
    backbone's maps or detected regions; `rows` are of the images, None for row i of image i."""

    fill = 0.0

    def __init__(self, array, rows=None):
        self.count, self.shape = len(array if rows is None else rows), tuple(array.shape[1:])
        if isinstance(array, np.memmap) and array.nbytes > _SMALL:
            self._read = functools.partial(_of_file, array)
        else:
            with tf.device("CPU:0"):
                self._read = functools.partial(tf.gather, tf.constant(np.asarray(array)))
        self._rows = None if rows is None else tf.constant(rows, tf.int64)

    def take(self, indices):
        """From a dataset of indices, int `(batch,)`, to one of features, in the same order."""
        return indices.map(self.gather, num_parallel_calls=tf.data.AUTOTUNE)

    def take_parts(self, indices, draws, crop):
        """Raises ValueError: features are of whole pictures."""
        raise ValueError(f"`augmentation.crop` must be None for stored features; received {crop}")

    def in_order(self, batch_size):
        """All features, the last batch as small as it is."""
        return self.take(tf.data.Dataset.range(self.count).batch(batch_size))

    def select(self, chosen):
        """The features of some items, in the order given; nothing is copied."""
        rows = np.arange(self.count) if self._rows is None else self._rows.numpy()
        selected = copy.copy(self)
        selected.count, selected._rows = len(chosen), tf.constant(rows[chosen], tf.int64)
        return selected

    def gather(self, indices):
        """The features of some items, int `(n,)`, in the graph."""
        return self._read(indices if self._rows is None else tf.gather(self._rows, indices))


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set: its `Records`, and how its images are read.

    ```python
    split = zoo.data.open({"loader": "cub", "root": "CUB_200_2011", "image_size": 64}, "test")
    split.picture(0)  # uint8 (64, 64, 3)
    ```

    Attributes:
        source: of its images or features, see `zoo.data.sources`.
        picture: function from an image's index to its pixels, or None where there are none.
        true_matches: `(M,)`, how many images each caption is true of, where that is known.
        truth: bool `(N, M)`, whether each caption is true of each image, likewise.
    """

    records: Records
    source: Any
    picture: Callable | None = None
    true_matches: np.ndarray | None = None
    truth: np.ndarray | None = None

    def with_records(self, records: Records) -> "Split":
        """This split with other captions of the same images."""
        return dataclasses.replace(self, records=records)


def pictures(
    records: Records,
    image_size: int,
    split: str = "test",
    resize: str = "crop",
    crop_fraction: float = 1.0,
) -> Split:
    """A `Split` of pictures; those of the split `"test"` are read once and not kept in memory."""
    if resize not in images.RESIZES:
        raise InputError(
            f"data: `resize` must be one of {', '.join(images.RESIZES)}; received {resize!r}"
        )
    if not isinstance(crop_fraction, int | float) or not 0 < crop_fraction <= 1:
        raise InputError(f"data: `crop_fraction` must be in (0, 1]; received {crop_fraction!r}")
    cache = False if split == "test" else None
    source = Pictures(records, image_size, resize, crop_fraction, cache)
    return Split(records, source, source.picture)


def _of_file(array, rows):
    """Rows of a memory map, in the graph."""
    rows_of_file = tf.numpy_function(lambda rows: array[rows], [rows], array.dtype, stateful=False)
    return tf.ensure_shape(rows_of_file, (*rows.shape, *array.shape[1:]))


def _gather(array, indices):
    """A dataset of rows of an array, by a dataset of indices."""
    return indices.map(lambda index: tf.gather(array, index), num_parallel_calls=tf.data.AUTOTUNE)
