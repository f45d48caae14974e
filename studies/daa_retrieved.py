"""DAA's figure 1 (c): the items that each of several models retrieves first, with their CIDEr."""

import textwrap

import numpy as np

from zoo.plots.style import RIGHT, new_figure, show_image, styled

COLUMNS = 10
CELL = 0.95  # inches


def choose(pairs, matrix, annotated, shown):
    """The caption whose retrieved sets differ most in meaning though all runs are right at once."""
    best = None
    by_caption = {name: scores.transposed() for name, scores in pairs.items()}
    meaning = matrix.transposed()
    for caption in range(meaning.shape[0]):
        found = {
            name: np.argsort(-scores.rows(caption, caption + 1)[0], kind="stable")[:shown]
            for name, scores in by_caption.items()
        }
        scores = meaning.rows(caption, caption + 1)[0]
        values = {name: scores[images] for name, images in found.items()}
        means = [of_run.mean() for of_run in values.values()]
        own = annotated(caption)
        is_right = all(images[0] in own for images in found.values())
        key = (is_right, max(means) - min(means))
        if best is None or key > best[0]:
            best = key, caption, found, values
    return best[1:]


@styled
def draw(caption, found, values, picture, annotated):
    """One block of pictures a run, the best first, the CIDEr of each below it."""
    shown = len(next(iter(found.values())))
    rows = -(-shown // COLUMNS)
    figure = new_figure(CELL * COLUMNS, len(found) * (rows * (CELL + 0.2) + 0.35) + 0.5)
    figure.suptitle(textwrap.fill(f"“{caption}”", 90))
    blocks = np.atleast_1d(figure.subfigures(len(found), 1))
    for block, (name, images) in zip(blocks, found.items(), strict=True):
        block.suptitle(f"{name}: mean CIDEr {values[name].mean():.3f}", fontsize=9)
        grid = block.subplots(rows, COLUMNS, squeeze=False)
        for axis in grid.ravel()[shown:]:
            axis.set_axis_off()
        for axis, image, value in zip(grid.ravel(), images, values[name], strict=False):
            show_image(axis, picture(image))
            is_own = image in annotated
            axis.set_xlabel(
                f"{value:.2f}",
                fontsize=7,
                color=RIGHT if is_own else "black",
                fontweight="bold" if is_own else "normal",
            )
    return figure
