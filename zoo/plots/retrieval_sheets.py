"""Sheets of queries with what they retrieve, and of images with the attention of sets."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from zoo.data.records import Records
from zoo.evaluation.sets import nearest_captions
from zoo.plots.style import RIGHT, WRONG, mark, new_figure, show_image, styled, with_minus

TOP = 5
_PALE = "#5A5A5A"
_CELL = 1.35  # inches
_TEXT = 2.6
_MAP, _BELOW = 1.7, 0.62  # of a sheet of attention
_WIDTH = 30  # letters of a caption in a line there
_DARK = 0.6  # of the median brightness of a sheet's pictures; Toy Birds at dusk are below it


@styled
def text_to_image_sheet(
    captions: Sequence[str],
    images: Sequence,
    correct: np.ndarray,
    query_uncertainty: np.ndarray | None = None,
    image_uncertainty: np.ndarray | None = None,
    scores: np.ndarray | None = None,
) -> Figure:
    """One row a caption: the caption, then the images that it retrieves, the best first; correct
    ones have a solid frame and a check mark, wrong ones a dashed frame and a cross.

    ```python
    pictures = [[np.zeros((64, 64, 3)), np.ones((64, 64, 3))]]
    figure = text_to_image_sheet(["a red bird"], pictures, [[True, False]])
    ```

    Args:
        captions, images: `q` texts, and `q` lists of `k` images `(height, width, 3)` of 0 … 255.
        correct: `(q, k)` booleans.
        query_uncertainty, image_uncertainty: of the captions `(q,)` and of the images `(q, k)`.
        scores: `(q, k)` similarities, or None.
    """
    correct = np.asarray(correct, bool)
    rows, columns = correct.shape
    figure = new_figure(_TEXT + _CELL * columns, (_CELL + 0.3) * rows + 0.3)
    figure.get_layout_engine().set(h_pad=0.07)
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[_TEXT, *[_CELL] * columns])
    for row in range(rows):
        axis = figure.add_subplot(grid[row, 0])
        uncertainty = None if query_uncertainty is None else query_uncertainty[row]
        _write(axis, captions[row], uncertainty)
        for column in range(columns):
            axis = figure.add_subplot(grid[row, column + 1])
            show_image(axis, images[row][column])
            right = correct[row, column]
            _frame(axis, right)
            below = f"{mark(right)}  " + "\n".join(_notes(row, column, scores, image_uncertainty))
            axis.set_xlabel(below, color=RIGHT if right else WRONG, fontsize=8)
            if row == 0:
                axis.set_title(f"{column + 1}", loc="center", fontsize=9)
    _explain(figure, scores, image_uncertainty, [picture for row in images for picture in row])
    return figure


@styled
def image_to_text_sheet(
    images: Sequence,
    captions: Sequence,
    correct: np.ndarray,
    query_uncertainty: np.ndarray | None = None,
    caption_uncertainty: np.ndarray | None = None,
    scores: np.ndarray | None = None,
) -> Figure:
    """One row an image: the image, then the captions that it retrieves, the best first; arguments
    as of `text_to_image_sheet`, images and captions exchanged.

    ```python
    captions = [["a red bird", "a cat"]]
    figure = image_to_text_sheet([np.zeros((64, 64, 3))], captions, [[True, False]])
    ```
    """
    correct = np.asarray(correct, bool)
    rows, columns = correct.shape
    figure = new_figure(9.2, (_CELL + 0.3) * rows + 0.2)
    figure.get_layout_engine().set(hspace=0.03)
    grid = figure.add_gridspec(rows, 2, width_ratios=[1.5, 7.7])
    for row in range(rows):
        axis = figure.add_subplot(grid[row, 0])
        show_image(axis, images[row])
        if query_uncertainty is not None:
            axis.set_xlabel(f"uncertainty {_number(query_uncertainty[row])}", fontsize=8)
        axis = figure.add_subplot(grid[row, 1])
        axis.set_axis_off()
        for column in range(columns):
            right = correct[row, column]
            style = {
                "y": 1.0 - (column + 0.5) / columns,
                "va": "center",
                "transform": axis.transAxes,
                "fontsize": 8.5,
            }
            line = textwrap.shorten(str(captions[row][column]), 84, placeholder=" …")
            axis.text(0.0, s=f"{column + 1}", color=_PALE, **style)
            axis.text(0.02, s=mark(right), color=RIGHT if right else WRONG, **style)
            axis.text(0.045, s=line, **style)
            notes = _notes(row, column, scores, caption_uncertainty)
            for x, note in zip((1.0, 0.9), reversed(notes), strict=False):
                axis.text(x, s=note, ha="right", color=_PALE, **style)
    _explain(figure, scores, caption_uncertainty, images)
    return figure


def sheet_of_captions(split, pairs, picture, queries):
    """`text_to_image_sheet` of some captions, by their rows, of an `EncodedSplit` and its pairs;
    `picture` takes an image's index."""
    records = split.records
    rows, scores = best(pairs.transposed(), queries)
    return text_to_image_sheet(
        [records.captions[query] for query in queries],
        [[picture(image) for image in row] for row in rows],
        records.image_labels[rows] == records.caption_labels[queries][:, None],
        _taken(split.caption_uncertainty, queries),
        _taken(split.image_uncertainty, rows),
        scores,
    )


def sheet_of_images(split, pairs, picture, queries):
    """`image_to_text_sheet` of some images of a split, as `sheet_of_captions`."""
    records = split.records
    rows, scores = best(pairs, queries)
    return image_to_text_sheet(
        [picture(query) for query in queries],
        [[records.captions[caption] for caption in row] for row in rows],
        records.caption_labels[rows] == records.image_labels[queries][:, None],
        _taken(split.image_uncertainty, queries),
        _taken(split.caption_uncertainty, rows),
        scores,
    )


def best(pairs, queries, top=TOP):
    """The best answers of some queries and their similarities, `(queries, top)` each."""
    scores = np.concatenate([pairs.rows(query, query + 1) for query in queries])
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return rows, np.take_along_axis(scores, rows, axis=1)


def _taken(values, positions):
    """Values at positions, or None where there are none."""
    return None if values is None else values[positions]


def _notes(row, column, s=None, u=None):
    """The lines below a picture: its similarity and its uncertainty, as far as given."""
    notes = [] if s is None else [f"s = {with_minus(f'{float(s[row][column]):.2f}')}"]
    return notes if u is None else [*notes, f"u = {_number(u[row][column])}"]


def _number(value):
    return with_minus(f"{float(value):.3g}")


def _explain(figure, scores, uncertainty, pictures):
    """Writes the legend of marks and letters below a figure, and that dark pictures are no fault of
    the figure."""
    words = ["✓ match", "✗ no match"]
    words += [] if scores is None else ["s: similarity"]
    words += [] if uncertainty is None else ["u: uncertainty"]
    brightness = [np.mean(picture) for picture in pictures]
    if min(brightness) < _DARK * np.median(brightness):
        words.append("dark pictures: as dark in the data")
    figure.supxlabel("     ".join(words), x=0.005, ha="left", fontsize=8, color=_PALE)


def _write(axis, text, uncertainty):
    """Writes a wrapped text and its uncertainty into an axis without frame."""
    axis.set_axis_off()
    place = {"transform": axis.transAxes, "va": "top"}
    lines = textwrap.wrap(str(text), 32, max_lines=5, placeholder=" …")
    axis.text(0.0, 0.97, "\n".join(lines), fontsize=9.5, **place)
    if uncertainty is not None:
        y = 0.93 - 0.15 * len(lines)
        axis.text(0.0, y, f"uncertainty {_number(uncertainty)}", fontsize=8, color=_PALE, **place)


def _frame(axis, right):
    """Draws a frame around a picture: thick if it is a match, thin and dashed if not."""
    axis.add_patch(
        Rectangle(
            (0, 0),
            1,
            1,
            transform=axis.transAxes,
            fill=False,
            clip_on=False,
            edgecolor=RIGHT if right else WRONG,
            linewidth=3.0 if right else 1.5,
            linestyle="-" if right else (0, (4, 2)),
        )
    )


@styled
def attention_sheet(
    images: Sequence,
    attention: np.ndarray,
    captions: Sequence | None = None,
    cosines: np.ndarray | None = None,
) -> Figure:
    """One row an image: the image, then the attention and the nearest caption of each element.
    Colour is attention; each map has its own scale, its largest value is below it as a multiple of
    even.

    ```python
    maps = np.full((1, 2, 7, 7), 1 / 49)
    figure = attention_sheet(np.zeros((1, 56, 56, 3)), maps)
    ```

    Args:
        images: `q` images `(height, width, 3)`, 0 … 255.
        attention: `(q, K, rows, columns)`, each map summing to one, of
            `zoo.encoders.with_attention` in the shape of `zoo.encoders.map_size`.
        captions, cosines: of each element the nearest caption, `q` lists of `K` texts, and `(q, K)`
            of their cosines, or None.
    """
    attention = np.asarray(attention, np.float32)
    rows, count = attention.shape[:2]
    figure = new_figure(_MAP * (count + 1), (_MAP + (_BELOW if captions else 0.25)) * rows + 0.3)
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
    """`attention_sheet` of `rows` images of a split, evenly spaced, with the nearest captions of
    all of it: `sets` of `zoo.evaluation.encode_sets`, the `records`, a function from an image's
    index to its `picture`, and the `size` `(rows, columns)` of the feature map."""
    shown = np.linspace(0, records.num_images - 1, min(rows, records.num_images)).astype(int)
    captions, cosines = nearest_captions(
        sets["images"]["elements"][shown], sets["captions"]["elements"]
    )
    attention = sets["images"]["attention"][shown]
    return attention_sheet(
        [picture(index) for index in shown],
        attention.reshape(*attention.shape[:2], *size),
        [[records.captions[caption] for caption in row] for row in captions],
        cosines,
    )
