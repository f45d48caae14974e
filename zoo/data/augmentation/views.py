"""Several views of every picture, for features that are stored once and augmented all the same."""

import tensorflow as tf

from zoo.data.augmentation.random_crops import RandomCrop
from zoo.reading.seeding import step_seed

WHOLE = 0  # the number of the view that nothing was done to


class Views:
    """The pictures of some records, then their mirror images, then random parts of them.

    View 0 is the picture as it is, view 1 its mirror image; of the others each is a random part,
    every other one mirrored. The parts follow from the seed, so that a file of features says what
    it holds.

    ```python
    views = Views(zoo.data.sources.Pictures(records, 224), records, count=4)
    ```

    Args:
        pictures: `sources.Pictures`, which say how a whole picture is read.
        records: whose pictures.
        count: views of a picture.
        crop: a `RandomCrop`, of the parts.
        seed: of the parts.

    Attributes:
        count: rows in all, view after view, `count · N`.
        shape: of a picture.
        resizing: what the pixels follow from, for names of files.
    """

    def __init__(self, pictures, records, count, crop=None, seed=0):
        self.crop = crop or RandomCrop(area=(0.5, 1.0))
        self.shape = pictures.shape
        self.count = count * records.num_images
        self.resizing = (*pictures.resizing, count, repr(self.crop), seed)
        self._pictures, self._views, self._seed = pictures, count, seed
        self._paths = tf.constant(list(records.image_paths), tf.string)

    def in_order(self, batch_size):
        """All views, the last batch of each as small as it is."""
        batches = self._pictures.in_order(batch_size)
        for view in range(1, self._views):
            batches = batches.concatenate(self._view(view, batch_size))
        return batches

    def _view(self, view, batch_size):
        if view == 1:
            return self._pictures.in_order(batch_size).map(lambda batch: tf.reverse(batch, [2]))
        draws = self.crop.draws(
            step_seed(self._seed, tf.constant(view, tf.int64)), len(self._paths)
        )

        def part(path, numbers):
            picture = self.crop.cut(tf.io.read_file(path), self.shape[0], numbers)
            return tf.reverse(picture, [1]) if view % 2 else picture

        rows = tf.data.Dataset.from_tensor_slices((self._paths, draws))
        return rows.map(part, num_parallel_calls=tf.data.AUTOTUNE).batch(batch_size)
