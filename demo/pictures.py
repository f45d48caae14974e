"""Pictures with something drawn over them: erased regions, changes by place, attention."""

import numpy as np
from PIL import Image

from demo.cards import escape
from demo.gallery import data_uri

_SIZE = 256
_RISE, _FALL = np.array([213, 94, 0]), np.array([0, 114, 178])  # of the report's palette
_ROWS = ("the top", "the upper half", "the middle", "the lower half", "the bottom")
_COLUMNS = ("far left", "left", "middle", "right", "far right")


def row(*pictures):
    """Pictures side by side; each is `(pixels, alternative text, words below)`."""
    items = "".join(
        f'<li><img src="{_uri(pixels)}" alt="{escape(said)}"><p>{escape(below)}</p></li>'
        for pixels, said, below in pictures
    )
    return f'<ul class="halo-pictures">{items}</ul>'


def change_by_place(pixels, changes, reference):
    """A picture with the change of uncertainty over it, for `row`.

    Args:
        pixels: uint8 `(size, size, 3)`.
        changes: `(rows, columns)`, the change when the place is covered.
        reference: the `Reference` of images.
    """
    changes, symbol = np.asarray(changes), reference.symbol
    strength = np.abs(changes) / (np.abs(changes).max() or 1.0)
    color = np.where(changes[..., None] >= 0, _RISE, _FALL)
    most = changes.max()
    if most <= 0:
        words = f"Covering no place raises {symbol}."
    else:
        words = f"Covering {_place(changes)} raises {symbol} most, by {reference.change(most)}."
    said = f"The image, orange where covering it raises {symbol}, blue where it lowers it. {words}"
    return _blend(pixels, color, 0.75 * strength), said, words


def attended(pixels, weights, words):
    """A picture that is bright where an element attends, for `row`; `words` go below it."""
    weights = np.asarray(weights)
    share = weights / (weights.max() or 1.0)
    said = f"The image, bright where the element attends: most at {_place(weights)}."
    dark = np.zeros((*weights.shape, 3))
    return _blend(pixels, dark, 0.8 * (1 - share)), said, words


def _place(values):
    """Where the largest value lies, in words."""
    row, column = np.unravel_index(np.argmax(values), values.shape)
    vertical = _ROWS[int(len(_ROWS) * (row + 0.5) / values.shape[0])]
    horizontal = _COLUMNS[int(len(_COLUMNS) * (column + 0.5) / values.shape[1])]
    return vertical if vertical.endswith(horizontal) else f"{vertical}, {horizontal}"


def _blend(pixels, color, alpha):
    """Colours `(rows, columns, 3)` over a picture with an opacity `(rows, columns)`."""
    size = (_SIZE, _SIZE)
    under = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS), float)
    cover = Image.fromarray(np.uint8(255 * np.clip(alpha, 0, 1)))
    alpha = np.asarray(cover.resize(size, Image.Resampling.BILINEAR), float)[..., None] / 255
    over = Image.fromarray(np.uint8(color)).resize(size, Image.Resampling.NEAREST)
    return np.uint8(np.round(under * (1 - alpha) + np.asarray(over, float) * alpha))


def _uri(pixels):
    picture = Image.fromarray(pixels)
    if picture.width < _SIZE:
        picture = picture.resize((_SIZE, _SIZE), Image.Resampling.LANCZOS)
    return data_uri(picture)
