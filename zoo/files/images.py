"""Pictures: reading, and the augmentations of the papers as stateless operations on batches."""

import math
from collections.abc import Sequence

import tensorflow as tf

from zoo.embeddings import Tensor
from zoo.files.decoding import IMAGENET_MEAN, decoded
from zoo.files.seeding import uniform

_FLIP, _CUTOUT, _ERASE = 2, 3, 4  # 1 is that of random crops
RESIZES = ("crop", "stretch")


def decode(contents: Tensor) -> tf.Tensor:
    """The bytes of a picture to uint8 `(height, width, 3)` by `decoding.decoded`, in a graph too.

    It is for pipelines of this process; `decode_portable` stays within TensorFlow.
    """
    strings = tf.convert_to_tensor(contents, tf.string)
    image = tf.numpy_function(_decoded, [strings], tf.uint8, stateful=False)
    return tf.ensure_shape(image, (None, None, 3))


def _decoded(contents):
    # Eagerly it is an array of one object.
    return decoded(contents if isinstance(contents, bytes) else contents.item())


def decode_portable(contents: Tensor) -> tf.Tensor:
    """The bytes of an upright JPEG or PNG by TensorFlow alone, for models that leave Python.

    An EXIF orientation is not read; other formats are refused or read wrongly.
    """
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
    """One picture to a square, float32 `(size, size, 3)` in 0 … 255, with antialiasing.

    Args:
        image: `(height, width, 3)`.
        size: the new height and width.
        mode: `"crop"` keeps the aspect and takes the square in the middle; `"stretch"` keeps
            everything and not the aspect, as VSE∞ and PCME++ do.
        crop_fraction: with `"crop"`, the side of that square relative to the shorter side:
            224 / 256 is "resize to 256, crop 224", as VSE++ and PCME evaluate.

    Raises:
        ValueError: if the mode is unknown.
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
    """The bytes of a picture to what an image encoder is fed, uint8 `(size, size, 3)`.

    Training, evaluation, search, the server and the demo feed these pixels.

    Args:
        contents: a string scalar, the bytes of a file.
        size, mode, crop_fraction: see `resize`.
    """
    return fit(decode(contents), size, mode, crop_fraction)


def fit(image: Tensor, size: int, mode: str = "crop", crop_fraction: float = 1.0) -> tf.Tensor:
    """A decoded picture to what an image encoder is fed, uint8 `(size, size, 3)`.

    Args:
        image: `(height, width, 3)`, see `zoo.files.decoding.decoded`.
        size, mode, crop_fraction: see `resize`.
    """
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
    area: tuple[float, float] = (0.02, 1 / 3),
    aspect: tuple[float, float] = (0.3, 1 / 0.3),
    fill: Sequence[float] | float = IMAGENET_MEAN,
    shard: tuple[int, int] = (0, 1),
) -> tf.Tensor:
    """Erases a random rectangle of some pictures, or of some feature maps.

    Args:
        images: `(batch, height, width, channels)`.
        probability: share of the pictures that lose a rectangle.
        seed: int64 `(2,)`, see `seeding.step_seed`.
        area: smallest and largest share of the area.
        aspect: smallest and largest height / width.
        fill: what comes in its place, a scalar or one value a channel.
        shard: see `seeding.uniform`.

    Reference: DeVries and Taylor, "Improved Regularization … with Cutout"; sizes as in Random
        Erasing (Zhong et al., AAAI 2020), which PCME's code uses under this name.
    """
    rows = images.shape[0]
    draw = uniform(seed, _CUTOUT, rows, 5, shard)
    shares = area[0] + (area[1] - area[0]) * draw[:, 1]
    low, high = math.log(aspect[0]), math.log(aspect[1])
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
    """Erases a rectangle of a given share of every picture's area, of the picture's own shape.

    Used to see uncertainty rise with what is lost.
    """
    rows = images.shape[0]
    place = uniform(seed, _ERASE, rows, 2, shard)
    return _fill_rectangle(images, tf.fill([rows], float(share)), tf.ones([rows]), place, fill)


def _fill_rectangle(images, shares, aspects, place, fill):
    _, height, width, _ = images.shape
    # An elongated rectangle that does not fit is shortened, not moved out of the picture.
    tall = tf.minimum(tf.round(tf.sqrt(shares * aspects) * height), height)
    wide = tf.minimum(tf.round(tf.sqrt(shares / aspects) * width), width)
    top, left = (
        tf.floor(place[:, 0] * (height - tall + 1)),
        tf.floor(place[:, 1] * (width - wide + 1)),
    )
    y, x = tf.range(height, dtype=tf.float32), tf.range(width, dtype=tf.float32)
    rows = (y >= top[:, None]) & (y < (top + tall)[:, None])
    columns = (x >= left[:, None]) & (x < (left + wide)[:, None])
    inside = (rows[:, :, None] & columns[:, None, :])[..., None]
    fill = tf.cast(tf.round(fill) if images.dtype.is_integer else fill, images.dtype)
    return tf.where(inside, fill, images)
