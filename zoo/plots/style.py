"""The look that all figures share; matplotlib's global state is left alone."""

import functools
import math
import os
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from halo_search.files.atomic import atomic
from zoo.evaluation.printing import ARROWS, with_minus
from zoo.metrics import wilson_interval

# Okabe and Ito's palette, which colour-blind readers tell apart, without its yellow (too faint on
# white). Markers differ as well, so that nothing hangs on colour alone.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#8A8A8A"
RIGHT, WRONG = "#00694D", "#A84300"  # the palette's green and orange, 6:1 on white, for text
DIRECTIONS = ARROWS
DIRECTION_STYLE = {
    "i2t": {"color": PALETTE[0], "marker": MARKERS[0], "label": DIRECTIONS["i2t"]},
    "t2i": {"color": PALETTE[1], "marker": MARKERS[1], "label": DIRECTIONS["t2i"]},
}

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#4D4D4D",
    "axes.formatter.limits": (-3, 5),
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.facecolor": "white",
    "figure.titlesize": 12,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so figures look alike everywhere
    "font.size": 10,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
    "text.parse_math": False,  # a caption may hold a dollar sign
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def styled(draw):
    """Decorator of a function that makes a figure: it draws in the zoo's style."""

    @functools.wraps(draw)
    def wrapper(*args, **kwargs):
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return wrapper


def new_figure(width, height):
    """An empty figure of `width` × `height` inches that pyplot does not know of."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | os.PathLike, dpi: int = 150) -> Path:
    """Writes a figure atomically, in the format of the suffix (`.png`, `.svg`, `.pdf`), and returns
    the path, whose folder is made when missing. Raises InputError if it cannot be written.

    ```python
    save(training_curves({"loss": [2.0, 1.0]}), Path("loss.png"))
    ```
    """
    with matplotlib.rc_context(STYLE), atomic(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
    return path


def draw_shares(axis, x, successes, counts, **style):
    """Draws shares `successes / counts` in percent with their 95 % Wilson intervals, and returns
    the upper ends."""
    share = 100 * np.asarray(successes) / np.asarray(counts)
    low, high = (100 * end for end in wilson_interval(successes, counts))
    bars = np.maximum([share - low, high - share], 0.0)
    axis.errorbar(x, share, yerr=bars, capsize=2.5, elinewidth=1, **style)
    return high


def legend_below(figure, axis, columns=2):
    """The legend of one axis below all panels, where it covers no error bar."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def show_image(axis, image):
    """Shows pixels 0 … 255 without ticks, grid and frame."""
    axis.imshow(np.clip(np.asarray(image), 0, 255).astype(np.uint8), interpolation="lanczos")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    axis.spines[:].set_visible(False)


def mark(right):
    """A check mark or a cross."""
    return "✓" if right else "✗"


def format_spearman(value):
    """Spearman's ρ for a title."""
    return "ρ undefined" if math.isnan(value) else f"ρ = {with_minus(f'{value:+.2f}')}"
