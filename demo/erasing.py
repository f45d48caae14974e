"""Erasing a region of an image, and what that does to its uncertainty (PCME, figure 7)."""

from typing import NamedTuple

import numpy as np

from demo import answers
from zoo.files.decoding import IMAGENET_MEAN

GRID = 5  # places along each side that the sweep tries
_WINDOW = 2  # of them that a window covers
SHARES = tuple(range(0, 100, 10))  # percent of the area


class Box(NamedTuple):
    """A region, in percent of the width and the height of the picture."""

    left: float
    top: float
    width: float
    height: float


class Erased(NamedTuple):
    """A picture without a region: `pixels`, and its uncertainty before and after in words."""

    pixels: np.ndarray
    before: float | None
    after: float | None
    percentile: float | None
    meaning: str


def erase(pixels, box):
    """A copy with the mean colour of ImageNet in the box, as Cutout in training leaves it.

    Args:
        pixels: uint8 `(height, width, 3)`.
        box: a `Box`; what lies outside the picture is cut off.
    """
    height, width, _ = pixels.shape
    top, bottom = (_pixel(v, height) for v in (box.top, box.top + box.height))
    left, right = (_pixel(v, width) for v in (box.left, box.left + box.width))
    erased = np.array(pixels)
    erased[top:bottom, left:right] = np.round(IMAGENET_MEAN)
    return erased


def effect(gallery, pixels, box):
    """What erasing a region does.

    Args:
        gallery: a `Gallery`.
        pixels: uint8 `(size, size, 3)`, as `Gallery.pixels` returns them.
        box: a `Box`.

    Returns:
        An `Erased`.
    """
    erased = erase(pixels, box)
    embedding = gallery.of_pixels([pixels, erased])
    values = gallery.uncertainty(embedding)
    second = {key: value[1:] for key, value in embedding.items()}
    after, share, meaning = answers.certainty(gallery, second, "images")
    before = None if values is None else float(values[0])
    return Erased(erased, before, after, share, meaning)


def sweep(gallery, pixels):
    """Where the image says what it is: the change of uncertainty when each place is covered.

    Returns:
        `(GRID, GRID)`, rows from the top, or None for points.
    """
    windows = [
        Box(*(100 * (v - (_WINDOW - 1) / 2) / GRID for v in (x, y)), *([100 * _WINDOW / GRID] * 2))
        for y in range(GRID)
        for x in range(GRID)
    ]
    changes = _changes(gallery, pixels, [_inside(window) for window in windows])
    return None if changes is None else changes.reshape(GRID, GRID)


def growing(gallery, pixels, box):
    """The uncertainty while a square around the middle of a box grows over the picture.

    Returns:
        `(len(SHARES),)`, for every share of the area in `SHARES`, or None for points.
    """
    x, y = box.left + box.width / 2, box.top + box.height / 2
    sides = [10.0 * share**0.5 for share in SHARES]
    # The square is moved to stay inside, so that its share of the area is what it says.
    boxes = [
        Box(min(max(x - s / 2, 0), 100 - s), min(max(y - s / 2, 0), 100 - s), s, s) for s in sides
    ]
    return _changes(gallery, pixels, boxes, from_original=False)


def _changes(gallery, pixels, boxes, from_original=True):
    pictures = [pixels, *(erase(pixels, box) for box in boxes)]
    values = gallery.uncertainty(gallery.of_pixels(pictures))
    if values is None:
        return None
    return values[1:] - values[0] if from_original else values[1:]


def _inside(box):
    left, top = max(box.left, 0.0), max(box.top, 0.0)
    right, bottom = min(box.left + box.width, 100.0), min(box.top + box.height, 100.0)
    return Box(left, top, right - left, bottom - top)


def _pixel(percent, size):
    return round(min(max(percent, 0.0), 100.0) * size / 100)
