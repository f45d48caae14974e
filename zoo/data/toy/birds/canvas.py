"""A canvas that remembers which part of a bird each of its pixels shows."""

import math

import numpy as np
from PIL import Image, ImageDraw

PARTS = ("back", "breast", "belly", "crown", "wing", "tail", "bill", "eye", "legs", "face")
OVERSAMPLE = 3  # pixels drawn for each of the picture's, so that edges come out smooth


class Canvas:
    """A picture and, beside it, the number of the part that each pixel shows (0: none)."""

    def __init__(self, picture, place):
        self.picture, self.place = picture, place
        self.parts = Image.new("L", picture.size, 0)
        self._on_picture = ImageDraw.Draw(picture)
        self._on_parts = ImageDraw.Draw(self.parts)

    def polygon(self, points, colour, part, edge=True):
        points = [self.place(point) for point in points]
        outline = tuple(int(0.55 * c) for c in colour) if edge else None
        self._on_picture.polygon(points, fill=colour, outline=outline, width=OVERSAMPLE - 1)
        self._on_parts.polygon(points, fill=PARTS.index(part) + 1)

    def disc(self, centre, radius, colour, part, edge=False):
        self.polygon(ellipse(centre, radius, radius), colour, part, edge)

    def line(self, points, colour, width, part):
        points = [self.place(point) for point in points]
        width = max(1, round(width * self.place.scale))
        self._on_picture.line(points, fill=colour, width=width, joint="curve")
        self._on_parts.line(points, fill=PARTS.index(part) + 1 if part else 0, width=width)

    def occlude(self, points, colour):
        edge = tuple(int(0.75 * c) for c in colour)
        self._on_picture.polygon(points, fill=colour, outline=edge, width=OVERSAMPLE - 1)
        self._on_parts.polygon(points, fill=0)


class Placement:
    """From the bird's own frame (facing right, y down, about one unit long) to pixels."""

    def __init__(self, centre, scale, tilt, mirror):
        self.centre, self.scale = centre, scale
        self._cos, self._sin = math.cos(tilt), math.sin(tilt)
        self._mirror = -1.0 if mirror else 1.0

    def __call__(self, point):
        x = self._cos * point[0] - self._sin * point[1]
        y = self._sin * point[0] + self._cos * point[1]
        return (
            self.centre[0] + self.scale * self._mirror * x,
            self.centre[1] + self.scale * y,
        )


def ellipse(centre, a, b):
    """The outline of an ellipse with axes along x and y."""
    steps = np.linspace(0, 2 * math.pi, 24, endpoint=False)
    return [(centre[0] + a * math.cos(t), centre[1] + b * math.sin(t)) for t in steps]


def on_circle(centre, radius, angle):
    """The point of a circle at an angle in degrees, clockwise from the right."""
    t = math.radians(angle)
    return centre[0] + radius * math.cos(t), centre[1] + radius * math.sin(t)


def in_frame(origin, along, across, point):
    """A point given in the frame of a part (a wing, a tail) in the frame of the bird."""
    return (
        origin[0] + along[0] * point[0] + across[0] * point[1],
        origin[1] + along[1] * point[0] + across[1] * point[1],
    )
