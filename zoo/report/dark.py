"""Figures on a dark ground: the same figure, its neutral colours exchanged.

The functions of `zoo.report` draw on white. Reports and the site's dark scheme save a figure twice,
and no function draws twice.
"""

import numpy as np
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from zoo.report.style import PALETTE, RIGHT, WRONG

GROUND, INK, FAINT = "#1e2129", "#e2e4e9", "#3a3e49"
BLUE = "#2e94d6"  # the palette's is too dark here; 4.8:1
EXCHANGED = {
    "white": GROUND,
    "black": INK,
    "#4D4D4D": "#a3a9b5",  # axes
    "#555555": "#a3a9b5",
    "#666666": "#a3a9b5",
    "#E3E3E3": FAINT,  # grid
    RIGHT: "#35c79a",  # 8:1
    WRONG: "#ff9d5c",
    PALETTE[0]: BLUE,
}
_COLOURS = {to_rgba(light)[:3]: to_rgba(dark)[:3] for light, dark in EXCHANGED.items()}


def darken(figure):
    """Exchanges the neutral colours of all that is drawn; pixels of images stay."""
    for thing in figure.findobj():
        if isinstance(thing, Text):
            if thing.get_bbox_patch() is None:  # a letter on a colour of its own keeps both
                thing.set_color(_dark(thing.get_color()))
        elif isinstance(thing, Line2D):
            thing.set_color(_dark(thing.get_color()))
            thing.set_markerfacecolor(_dark(thing.get_markerfacecolor()))
            thing.set_markeredgecolor(_dark(thing.get_markeredgecolor()))
        elif isinstance(thing, Patch):
            edge = _dark(thing.get_edgecolor())
            thing.set_facecolor(_dark(thing.get_facecolor()))
            thing.set_edgecolor(edge)
        elif isinstance(thing, Collection):
            edges = [_dark(color) for color in thing.get_edgecolor()]
            thing.set_facecolor([_dark(color) for color in thing.get_facecolor()])
            thing.set_edgecolor(edges)


def _dark(color):
    if isinstance(color, str) and color in ("none", "auto"):
        return color
    red, green, blue, alpha = to_rgba(color)
    for light, dark in _COLOURS.items():
        if np.allclose((red, green, blue), light, atol=0.01):
            return (*dark, alpha)
    return (red, green, blue, alpha)
