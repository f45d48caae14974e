"""Sheets of images with the attention of sets."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from zoo.data.records import Records
from zoo.evaluation.sets import nearest_captions
from zoo.plots.style import new_figure, show_image, styled, with_minus

_CELL = 1.7  # inches
_TEXT = 0.62
_WIDTH = 30  # letters of a caption in a line


@styled
def attention_sheet(
    images: Sequence,
    attention: np.ndarray,
    captions: Sequence | None = None,
    cosines: np.ndarray | None = None,
) -> Figure:
    """One row an image: the image, then the attention and the nearest caption of each element.

    Colour is attention, pale grey is none. Each map has its own scale, from none to its largest
    value, which is written below it as a multiple of even attention.

    ```python
    maps = np.full((1, 2, 7, 7), 1 / 49)
    figure = attention_sheet(np.zeros((1, 56, 56, 3)), maps)
    ```

    Args:
        images: `q` images `(height, width, 3)`, 0 … 255.
        attention: `(q, K, rows, columns)`, each map summing to one, such as the attention of
            `zoo.encoders.with_attention` in the shape of `zoo.encoders.map_size`.
        captions, cosines: `q` lists of `K` texts, the caption nearest to each element, and `(q, K)`
            of their cosines, or None.
    """
    attention = np.asarray(attention, np.float32)
    rows, count = attention.shape[:2]
    figure = new_figure(_CELL * (count + 1), (_CELL + (_TEXT if captions else 0.25)) * rows + 0.3)
    grid = figure.subplots(rows, count + 1, squeeze=False)
    for row, axes in enumerate(grid):
        image = np.clip(np.asarray(images[row]), 0, 255).astype(np.uint8)
        show_image(axes[0], image)
        if row == 0:
            axes[0].set_title("image", fontsize=9)
        for k, axis in enumerate(axes[1:]):
            show_image(axis, overlay(image, attention[row, k]))
            if row == 0:
                axis.set_title(f"element {k + 1}", fontsize=9)
            even = attention[row, k].max() * attention[row, k].size
            lines = [f"peak {even:.1f} × even"]
            if cosines is not None:
                lines[0] += f", cos {with_minus(f'{cosines[row][k]:.2f}')}"
            if captions is not None:
                wrapped = textwrap.wrap(
                    str(captions[row][k]), _WIDTH, max_lines=3, placeholder=" …"
                )
                lines = wrapped + [""] * (3 - len(wrapped)) + lines
            axis.set_xlabel("\n".join(lines), fontsize=6.5, loc="left", linespacing=1.25)
    return figure


def overlay(image: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """An image, uint8 `(height, width, 3)`, that is pale and grey where there is no attention
    `(rows, columns)` and unchanged where there is most."""
    attention = np.asarray(attention, np.float32)
    relative = Image.fromarray(attention / max(float(attention.max()), 1e-12))
    size = (image.shape[1], image.shape[0])
    smooth = np.asarray(relative.resize(size, Image.Resampling.BILINEAR))[..., None]
    seen = np.clip(smooth, 0, 1)
    pale = 200 + 0.2 * image.mean(axis=-1, keepdims=True)
    return (seen * image + (1 - seen) * pale).astype(np.uint8)


def attention_sheet_of(
    sets: dict[str, Any], records: Records, picture: Callable, size: Any, rows: int = 6
) -> Figure:
    """`attention_sheet` of some images of a split, with the nearest captions of all of it.

    Args:
        sets: of `zoo.evaluation.encode_sets`.
        records: of the split.
        picture: function from an image's index to its pixels.
        size: `(rows, columns)` of the feature map.
        rows: number of images, evenly spaced.
    """
    shown = np.linspace(0, records.num_images - 1, min(rows, records.num_images)).astype(int)
    found, cosines = nearest_captions(
        sets["images"]["elements"][shown], sets["captions"]["elements"]
    )
    attention = sets["images"]["attention"][shown]
    return attention_sheet(
        [picture(index) for index in shown],
        attention.reshape(*attention.shape[:2], *size),
        [[records.captions[caption] for caption in row] for row in found],
        cosines,
    )
