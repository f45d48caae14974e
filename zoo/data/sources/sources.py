"""Where the images of a batch come from: pictures on disk or in memory, or cached features."""

import copy

import numpy as np
import tensorflow as tf

from zoo.reading import images
from zoo.reading.row_reader import row_reader

_CACHE_LIMIT = 1 << 29  # bytes of decoded pictures


class Pictures:
    """The pictures of some records, decoded and resized, as uint8 whether cached or not.

    Args:
        records: whose pictures.
        image_size: height and width.
        mode: `"crop"` or `"stretch"`, see `images.resize`.
        crop_fraction: see `images.resize`.
        cache: True decodes everything once into memory as uint8, False decodes for each batch,
            None caches when that takes at most half a GiB.
    """

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
        """As `take`, a random part of each original, which is read anew whatever is cached.

        Args:
            indices: dataset of int `(batch,)`.
            draws: dataset of `crop.draws`, `(batch, …)`.
            crop: a `RandomCrop`.
        """
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

    @tf.autograph.experimental.do_not_convert  # see `training_steps.training`
    def _load(self, index):
        mode, fraction = self.resizing
        contents = tf.io.read_file(self._paths[index])
        return images.prepare(contents, self.shape[0], mode, fraction)

    def _decode_all(self):
        decoded = np.empty((self.count, *self.shape), np.uint8)
        pictures = tf.data.Dataset.range(self.count).map(
            self._load, num_parallel_calls=tf.data.AUTOTUNE
        )
        for index, picture in enumerate(pictures.as_numpy_iterator()):
            decoded[index] = picture
        with tf.device("CPU:0"):
            return tf.constant(decoded)


class Features:
    """Features in place of pictures, such as a frozen backbone's maps or detected regions.

    Args:
        array: `(rows, …)`, in memory or a memory map (see `row_reader`).
        rows: the row of each image; None: image i is row i.
    """

    fill = 0.0

    def __init__(self, array, rows=None):
        self.count, self.shape = len(array if rows is None else rows), tuple(array.shape[1:])
        self._read = row_reader(array)
        self._rows = None if rows is None else tf.constant(rows, tf.int64)

    def take(self, indices):
        """From a dataset of indices, int `(batch,)`, to one of features, in the same order."""
        return indices.map(self.gather, num_parallel_calls=tf.data.AUTOTUNE)

    def take_parts(self, indices, draws, crop):
        """Refuses: features are of whole pictures.

        Raises:
            ValueError: always.
        """
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


def _gather(array, indices):
    return indices.map(lambda index: tf.gather(array, index), num_parallel_calls=tf.data.AUTOTUNE)
