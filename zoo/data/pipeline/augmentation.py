"""Which augmentations a training pipeline applies, and the random parts of pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from zoo.data.text.captions import WordIds, delete_words, drop_words
from zoo.embeddings import Tensor
from zoo.images import pictures as images
from zoo.images.pictures import decode, resize
from zoo.images.seeding import step_seed, uniform

_CROP = 1  # the purpose of these draws, see `seeding.uniform`
_ATTEMPTS = 10
NUMBERS = 2 * _ATTEMPTS + 2
# Of the words that are lost: how many are deleted, replaced, masked (BERT's and VSE∞'s shares).
_SHARES = (("delete", 0.4), ("random", 0.1), ("mask", 0.5))


@dataclass(frozen=True)
class RandomCrop:
    """Random crop. The area, or the side, is drawn from (smallest, largest).

    The papers print no values. Ours are those of the released codes: VSE++'s data.py, PCME's
    _transforms.py and PCME++'s datasets.py.
    """

    # Of the area, as torchvision's `RandomResizedCrop`: width / height is between 3/4 and 4/3; of
    # ten draws the first that fits is taken, else the middle. VSE++ and PCME take (0.08, 1.0).
    area: tuple[float, float] | None = None
    # Of the height, and the same of the width: VSE∞ and PCME++ take (0.6, 1.0).
    sides: tuple[float, float] | None = None

    def draws(self, seed, rows, shard=(0, 1)):
        """The random numbers of a step's pictures, float32 `(rows, NUMBERS)`."""
        return uniform(seed, _CROP, rows, NUMBERS, shard)

    def cut(self, contents, size, numbers):
        """A part of the picture in a file's bytes, uint8 `(size, size, 3)`, by a row of `draws`."""
        picture = decode(contents)
        top, left, tall, wide = self.box(tf.shape(picture)[0], tf.shape(picture)[1], numbers)
        part = resize(picture[top : top + tall, left : left + wide], size, mode="stretch")
        return tf.cast(tf.round(part), tf.uint8)

    def box(self, height, width, numbers):
        """`(top, left, height, width)` of the part, int32, of a picture of this size."""
        height, width = tf.cast(height, tf.float32), tf.cast(width, tf.float32)
        tall, wide, placed = (self._by_area if self.area else self._by_sides)(
            height, width, numbers
        )
        tall, wide = tf.maximum(tall, 1.0), tf.maximum(wide, 1.0)
        place = tf.where(placed, numbers[-2:], 0.5)
        top = tf.floor(place[0] * (height - tall + tf.cast(placed, tf.float32)))
        left = tf.floor(place[1] * (width - wide + tf.cast(placed, tf.float32)))
        return tuple(tf.cast(value, tf.int32) for value in (top, left, tall, wide))

    def _by_area(self, height, width, numbers):
        """`(height, width, placed)` of a part: the first of ten draws that fits into the picture;
        else `placed` is False, and the part is the largest in the middle."""
        low, high = self.area
        shares = (low + (high - low) * numbers[:_ATTEMPTS]) * height * width
        bound = math.log(4 / 3)
        ratios = tf.exp(bound * (2 * numbers[_ATTEMPTS : 2 * _ATTEMPTS] - 1))
        wide, tall = tf.round(tf.sqrt(shares * ratios)), tf.round(tf.sqrt(shares / ratios))
        inside = (wide <= width) & (tall <= height)
        first = tf.argmax(inside)
        # The largest part in the middle whose shape is within the bounds.
        most_wide = tf.minimum(width, tf.round(height * 4 / 3))
        most_tall = tf.minimum(height, tf.round(width * 4 / 3))
        placed = tf.reduce_any(inside)
        return (
            tf.where(placed, tall[first], most_tall),
            tf.where(placed, wide[first], most_wide),
            placed,
        )

    def _by_sides(self, height, width, numbers):
        """`(height, width, placed)` of a part whose sides are one random share of the picture's."""
        low, high = self.sides
        share = low + (high - low) * numbers[0]
        return tf.floor(height * share), tf.floor(width * share), tf.constant(True)


class Views:
    """The pictures of some records, then their mirror images, then random parts of them, every
    other one mirrored. From `resizing` the pixels follow."""

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
        """A dataset of one view of all pictures: view 1 is mirrored, later ones are random parts,
        the odd ones mirrored."""
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


@dataclass(frozen=True)
class Augmentation:
    """What training does to pictures and words; the default is nothing.

    ```python
    zoo.data.Augmentation(flip=True, word_dropping=0.1)
    ```

    Attributes:
        crop: the random part of each original picture, a `RandomCrop`; None: what the source shows.
        flip: mirror half of the pictures.
        cutout: probability that a picture (or feature map) loses a rectangle.
        word_dropping: probability that a word becomes unknown.
        word_deleting: share of a caption's words that go besides, rounded down, as PCME's code.
    """

    crop: RandomCrop | None = None
    flip: bool = False
    cutout: float = 0.0
    word_dropping: float = 0.0
    word_deleting: float = 0.0

    def on_images(
        self, batch: Tensor, seed: Tensor, fill: Sequence[float], shard: tuple[int, int] = (0, 1)
    ) -> Tensor:
        """The pictures or feature maps, mirrored and erased. `fill` is what Cutout leaves."""
        if self.flip:
            batch = images.random_flip(batch, seed, shard)
        if self.cutout:
            batch = images.cutout(batch, self.cutout, seed, fill=fill, shard=shard)
        return batch

    def on_captions(
        self,
        ids: Tensor,
        seed: Tensor,
        words: WordIds | None = None,
        shard: tuple[int, int] = (0, 1),
    ) -> Tensor:
        """The ids with some words lost; `words` are the tokenizer's `word_ids`."""
        if self.word_dropping:
            ids = drop_words(ids, self.word_dropping, seed, "mask", words, shard)
        if self.word_deleting:
            ids = delete_words(ids, self.word_deleting, seed, words, shard)
        return ids


@dataclass(frozen=True)
class SizeAugmentation(Augmentation):
    """`Augmentation` whose `word_dropping` is 50 % masking, 10 % replacing and 40 % deleting.

    Reference: VSE∞ (Chen et al., CVPR 2021), section 3.3; PCME++ (Chun, ICLR 2024), table B.1.
    """

    def on_captions(self, ids, seed, words=None, shard=(0, 1)):
        """Token ids `(n, length)` with words masked, replaced or deleted, each by its share of
        `word_dropping`."""
        remaining = 1.0
        for purpose, (mode, share) in enumerate(_SHARES):
            # Rates of what the ways before have left over, each with draws of its own.
            lost = self.word_dropping * share
            key = tf.random.fold_in(seed, purpose, alg="philox")
            ids = drop_words(ids, lost / remaining, key, mode, words, shard)
            remaining -= lost
        return ids
