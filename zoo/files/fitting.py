"""Pictures as an image encoder is shown them, in NumPy: the pixels of `zoo.data.images.fit`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_BLOCK = 2**24  # numbers of a picture that are float32 at once
RESIZING = {"resize": "crop", "crop_fraction": 1.0}  # options of all pictures, their defaults


def fit(picture: np.ndarray, size: int, mode: str = "crop", crop_fraction: float = 1.0):
    """A decoded picture to what an image encoder is fed, uint8 `(size, size, 3)`.

    ```python
    from zoo.files.fitting import fit

    fit(np.zeros((480, 640, 3), "uint8"), 224).shape  # (224, 224, 3)
    ```

    Args:
        picture: uint8 `(height, width, 3)`, see `zoo.files.decoding.decoded`.
        size, mode, crop_fraction: see `zoo.data.images.resize`.

    Relations: `zoo.data.images.fit` is the same within TensorFlow; a sum in another order may round
        a pixel to the next value.
    """
    if mode == "crop":
        height, width = picture.shape[:2]
        side = np.float32(min(height, width)) * np.float32(crop_fraction)
        side = max(int(np.rint(side)), 1)
        top, left = (height - side) // 2, (width - side) // 2
        picture = picture[top : top + side, left : left + side]
    height, width, channels = picture.shape
    rows, columns = _weights(height, size), _weights(width, size)
    found = np.zeros((size, width * channels), np.float32)
    step = max(1, _BLOCK // (width * channels))
    for start in range(0, height, step):
        part = picture[start : start + step].reshape(-1, width * channels)
        found += rows[:, start : start + step] @ part.astype(np.float32)
    found = np.einsum("ow,hwc->hoc", columns, found.reshape(size, width, channels), optimize=True)
    return np.rint(np.clip(found, 0.0, 255.0)).astype(np.uint8)


def resizing(description: Mapping[str, Any]) -> dict[str, Any]:
    """How the pictures of a description for `zoo.data.open` become squares, `{"mode",
    "crop_fraction"}` for `zoo.data.images.prepare`. Whatever shows other pictures to a run's model
    (search, demo, serving) must do the same."""
    given = {**RESIZING, **{name: description[name] for name in RESIZING if name in description}}
    return {"mode": given["resize"], "crop_fraction": given["crop_fraction"]}


def _weights(before, after):
    """float32 `(after, before)`: a triangle as wide as a new pixel, at least as an old one.

    Reference: TensorFlow's ScaleAndTranslate, which `tf.image.resize(…, antialias=True)` calls.
    """
    step = np.float32(before) / np.float32(after)
    reach = max(step, np.float32(1.0))
    centres = (np.arange(after, dtype=np.float32) + np.float32(0.5)) * step
    places = np.arange(before, dtype=np.float32) + np.float32(0.5)
    weights = np.maximum(0.0, 1.0 - np.abs(places[None] - centres[:, None]) / reach)
    total = weights.sum(axis=1, keepdims=True)
    return (weights / np.where(total > math.ulp(1.0), total, 1.0)).astype(np.float32)
