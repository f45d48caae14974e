"""Pictures: reading, and the augmentations of the papers as stateless operations on batches."""

import math
from collections.abc import Sequence

import tensorflow as tf

from halo_search.files.decoding import IMAGENET_MEAN, decoded
from zoo.embeddings import Tensor
from zoo.images.seeding import uniform

_FLIP, _CUTOUT, _ERASE = 2, 3, 4  # 1 is that of random crops
_AREA, _ASPECT = (0.02, 1 / 3), (0.3, 1 / 0.3)  # of `cutout`
RESIZES = ("crop", "stretch")


def decode(contents: Tensor) -> tf.Tensor:
    """The bytes of a picture to uint8 `(height, width, 3)` by `decoding.decoded`, in a graph of
    this process too; `decode_portable` stays within TensorFlow."""
    strings = tf.convert_to_tensor(contents, tf.string)
    image = tf.numpy_function(_decoded, [strings], tf.uint8, stateful=False)
    return tf.ensure_shape(image, (None, None, 3))


def _decoded(contents):
    """A picture file's bytes as `(height, width, 3)` uint8."""
    # Eagerly it is an array of one object.
    return decoded(contents if isinstance(contents, bytes) else contents.item())


def decode_portable(contents: Tensor) -> tf.Tensor:
    """The bytes of an upright JPEG or PNG by TensorFlow alone, for models that leave Python. An
    EXIF orientation is not read; other formats are refused or read wrongly."""
    # The accurate transform gives Pillow's pixels; the default is off by one on average.
    image = tf.cond(
        tf.io.is_jpeg(contents),
        lambda: tf.io.decode_jpeg(contents, channels=3, dct_method="INTEGER_ACCURATE"),
        lambda: tf.io.decode_png(contents, channels=3),
    )
    return tf.ensure_shape(image, (None, None, 3))


def read(path: Tensor) -> tf.Tensor:
    """The picture in a file, uint8 `(height, width, 3)`."""
    return decode(tf.io.read_file(path))


def resize(image: Tensor, size: int, mode: str = "crop", crop_fraction: float = 1.0) -> tf.Tensor:
    """One picture `(height, width, 3)` to a square, float32 `(size, size, 3)` in 0 … 255, with
    antialiasing: `"crop"` takes the square in the middle, `"stretch"` all of it, as PCME++ does.
    The square's side is `crop_fraction` of the shorter side: 224 / 256 as VSE++ and PCME evaluate.
    """
    if mode not in RESIZES:
        raise ValueError(f"`mode` must be one of {RESIZES}; received {mode!r}")
    if mode == "crop":
        height, width = tf.shape(image)[0], tf.shape(image)[1]
        side = tf.cast(tf.minimum(height, width), tf.float32) * crop_fraction
        side = tf.maximum(tf.cast(tf.round(side), tf.int32), 1)
        top, left = (height - side) // 2, (width - side) // 2
        image = image[top : top + side, left : left + side]
    image = tf.image.resize(image, (size, size), antialias=True)
    return tf.clip_by_value(tf.ensure_shape(image, (size, size, 3)), 0.0, 255.0)


def prepare(
    contents: Tensor, size: int, mode: str = "crop", crop_fraction: float = 1.0
) -> tf.Tensor:
    """The bytes of a picture to what an image encoder is fed, uint8 `(size, size, 3)`, in training,
    evaluation, search, the server and the demo; arguments as of `resize`."""
    return fit(decode(contents), size, mode, crop_fraction)


def fit(image: Tensor, size: int, mode: str = "crop", crop_fraction: float = 1.0) -> tf.Tensor:
    """A decoded picture `(height, width, 3)` to what an image encoder is fed, see `prepare`."""
    picture = resize(image, size, mode, crop_fraction)
    # A quarter of float32's bytes: batches are copied several times before the model sees them.
    return tf.cast(tf.round(picture), tf.uint8)


def random_flip(images: Tensor, seed: Tensor, shard: tuple[int, int] = (0, 1)) -> tf.Tensor:
    """Mirrors every other picture, left to right."""
    flipped = uniform(seed, _FLIP, images.shape[0], 1, shard)[:, 0] < 0.5
    # Whole pictures are chosen: `tf.where` would compare pixel by pixel, and a slice with a
    # negative stride takes ten times as long as `tf.reverse`.
    return tf.raw_ops.Select(condition=flipped, x=tf.reverse(images, [2]), y=images)


def cutout(
    images: Tensor,
    probability: float,
    seed: Tensor,
    fill: Sequence[float] | float = IMAGENET_MEAN,
    shard: tuple[int, int] = (0, 1),
) -> tf.Tensor:
    """Erases, with a probability, a rectangle of 2 % to a third of each of `(batch, height, width,
    channels)`, its sides 0.3 to 3.3 to one; `fill` is a number or one per channel."""
    # DeVries and Taylor, "Improved Regularization … with Cutout"; sizes as in Random Erasing (Zhong
    # et al., AAAI 2020), which PCME's code uses under this name.
    rows = images.shape[0]
    draw = uniform(seed, _CUTOUT, rows, 5, shard)
    shares = _AREA[0] + (_AREA[1] - _AREA[0]) * draw[:, 1]
    low, high = math.log(_ASPECT[0]), math.log(_ASPECT[1])
    aspects = tf.exp(low + (high - low) * draw[:, 2])
    shares = tf.where(draw[:, 0] < probability, shares, 0.0)
    return _fill_rectangle(images, shares, aspects, draw[:, 3:], fill)


def erase(
    images: Tensor,
    share: float,
    seed: Tensor,
    fill: Sequence[float] | float = IMAGENET_MEAN,
    shard: tuple[int, int] = (0, 1),
) -> tf.Tensor:
    """Erases a rectangle of a given share of every picture's area, of the picture's own shape."""
    rows = images.shape[0]
    place = uniform(seed, _ERASE, rows, 2, shard)
    return _fill_rectangle(images, tf.fill([rows], float(share)), tf.ones([rows]), place, fill)


def _fill_rectangle(images, shares, aspects, place, fill):
    """Images with a rectangle of `fill` each: `shares` (batch,) of the area, `aspects` (batch,)
    height by width, `place` (batch, 2) in 0 … 1."""
    _, height, width, _ = images.shape
    # An elongated rectangle that does not fit is shortened, not moved out of the picture.
    tall = tf.minimum(tf.round(tf.sqrt(shares * aspects) * height), height)
    wide = tf.minimum(tf.round(tf.sqrt(shares / aspects) * width), width)
    top = tf.floor(place[:, 0] * (height - tall + 1))
    left_edge = tf.floor(place[:, 1] * (width - wide + 1))
    y, x = tf.range(height, dtype=tf.float32), tf.range(width, dtype=tf.float32)
    rows = (y >= top[:, None]) & (y < (top + tall)[:, None])
    columns = (x >= left_edge[:, None]) & (x < (left_edge + wide)[:, None])
    inside = (rows[:, :, None] & columns[:, None, :])[..., None]
    fill = tf.cast(tf.round(fill) if images.dtype.is_integer else fill, images.dtype)
    return tf.where(inside, fill, images)
