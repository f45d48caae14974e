"""One look for every figure, without touching matplotlib's global state."""

import functools
import math

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from zoo.files.atomic import atomic

# Okabe and Ito's palette, which colour-blind readers tell apart, without its yellow (too faint on
# white). Markers differ as well, so that nothing hangs on colour alone.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#8A8A8A"
DIRECTIONS = {"i2t": "image → text", "t2i": "text → image"}
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
    """Decorates a function that makes a figure, so that it draws in the zoo's style."""

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


def save(figure, path, dpi=150):
    """Writes a figure atomically, in the format of the suffix (`.png`, `.svg`, `.pdf`).

    Args:
        figure: what a function of `zoo.report` returned.
        path: the file. Its folder is made when missing.
        dpi: pixels per inch.

    Returns:
        The path.

    Raises:
        InputError: if the file cannot be written.
    """
    with matplotlib.rc_context(STYLE), atomic(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
    return path


def format_spearman(value):
    """Spearman's ρ for a title."""
    return "ρ undefined" if math.isnan(value) else f"ρ = {with_minus(f'{value:+.2f}')}"


def with_minus(number):
    """A formatted number with a true minus sign, as on the axes."""
    return number.replace("-", "−")
