"""Draws one toy bird, and says which of its parts can be seen."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance

from zoo.data.toy.birds.attributes import COLOURS, NAMES, SHAPES, SHOWN_BY

PARTS = ("back", "breast", "belly", "crown", "wing", "tail", "bill", "eye", "legs", "face")
OVERSAMPLE = 3  # pixels drawn for each of the picture's, so that edges come out smooth
_MARGIN = 0.3  # of the image on each side, so that what lies out of frame is counted too
SCALE = {"small": 0.51, "medium": 0.63, "large": 0.76}
_BACKGROUNDS = (
    ((196, 222, 240), (226, 238, 244)),  # sky
    ((176, 206, 160), (216, 230, 196)),  # foliage
    ((222, 212, 186), (238, 230, 212)),  # sand
    ((200, 208, 214), (226, 230, 232)),  # mist
    ((160, 196, 206), (204, 224, 226)),  # water
)


class Canvas:
    """A picture and, beside it, the number of the part that each pixel shows (0: none)."""

    def __init__(self, picture, place):
        self.picture, self.place = picture, place
        self.parts = Image.new("L", picture.size, 0)
        self._on_picture = ImageDraw.Draw(picture)
        self._on_parts = ImageDraw.Draw(self.parts)

    def polygon(self, points, colour, part, edge=True):
        """Fills a polygon of points `(x, y)` in the bird's frame, and marks its part."""
        points = [self.place(point) for point in points]
        outline = tuple(int(0.55 * c) for c in colour) if edge else None
        self._on_picture.polygon(points, fill=colour, outline=outline, width=OVERSAMPLE - 1)
        self._on_parts.polygon(points, fill=PARTS.index(part) + 1)

    def disc(self, centre, radius, colour, part, edge=False):
        self.polygon(ellipse(centre, radius, radius), colour, part, edge)

    def line(self, points, colour, width, part):
        """Draws a line through points in the bird's frame; without a part it erases the mark."""
        points = [self.place(point) for point in points]
        width = max(1, round(width * self.place.scale))
        self._on_picture.line(points, fill=colour, width=width, joint="curve")
        self._on_parts.line(points, fill=PARTS.index(part) + 1 if part else 0, width=width)

    def occlude(self, points, colour):
        """Covers a polygon: its pixels belong to no part."""
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


def in_frame(origin, along, across, point):
    """A point given in the frame of a part (a wing, a tail) in the frame of the bird."""
    return (
        origin[0] + along[0] * point[0] + across[0] * point[1],
        origin[1] + along[1] * point[0] + across[1] * point[1],
    )


def draw(rng, bird, size):
    """Draws a bird by its attributes: `(picture, box, visible)`, a Pillow image, (x, y, width,
    height) of what is seen of it, and the attributes that can be told."""
    side = size * OVERSAMPLE
    margin = int(_MARGIN * side)
    full = side + 2 * margin
    difficulty = rng.choice(3, p=(0.6, 0.25, 0.15))  # clear, partly hidden, badly hidden
    shift = (0.05, 0.09, 0.24)[difficulty] * side
    dx, dy = rng.uniform(-1, 1, 2)
    place = Placement(
        centre=(full / 2 + dx * shift, full / 2 + 0.02 * side + 0.6 * dy * shift),
        scale=side * SCALE[bird["size"]] * rng.uniform(0.96, 1.04),
        tilt=rng.uniform(-0.22, 0.22),
        mirror=rng.random() < 0.5,
    )
    canvas = Canvas(background(rng, full), place)
    draw_bird(rng, canvas, bird, on_branch=True)
    frame = (margin, margin, margin + side, margin + side)
    complete = count_parts(canvas.parts)
    if difficulty:
        _draw_leaves(rng, canvas, (4, 11)[difficulty - 1], (0.10, 0.15)[difficulty - 1] * side)
    seen_parts = canvas.parts.crop(frame)
    picture = canvas.picture.crop(frame).resize((size, size), Image.Resampling.BOX)
    dusk = rng.random() < (0.04, 0.1, 0.2)[difficulty]
    if dusk:
        picture = ImageEnhance.Color(picture).enhance(0.06)
        picture = ImageEnhance.Brightness(picture).enhance(rng.uniform(0.45, 0.6))
        picture = Image.blend(picture, Image.new("RGB", picture.size, (40, 52, 96)), 0.25)
    box = box_seen(seen_parts, size)
    return picture, box, attributes_seen(complete, count_parts(seen_parts), bird, dusk)


def draw_bird(rng, canvas, bird, on_branch):
    """A bird where the canvas places it, with or without the branch that it sits on."""
    colour = {
        part: _jitter(rng, COLOURS[bird[part]])
        for part in ("crown", "back", "wing", "tail", "breast", "belly", "legs")
    }
    if on_branch:
        draw_branch(rng, canvas, 1.4)
    for x in (-0.05, 0.07):
        canvas.line([(x, 0.18), (x + 0.03, 0.44)], colour["legs"], 0.042, "legs")
        canvas.line([(x - 0.03, 0.44), (x + 0.11, 0.44)], colour["legs"], 0.04, "legs")
    reach = {"short": 0.22, "long": 0.46}[bird["tail_length"]]
    root, along, across = (-0.24, 0.10), (-0.90, 0.42), (0.42, 0.90)
    tail = [(0.0, -0.07), (reach, -0.10), (reach + 0.04, 0.0), (reach, 0.10), (0.0, 0.08)]
    canvas.polygon([in_frame(root, along, across, p) for p in tail], colour["tail"], "tail")
    body = [_body(angle) for angle in range(0, 360, 6)]
    canvas.polygon(body, colour["back"], "back")
    _region(canvas, 74, 172, (-0.10, 0.05), colour["belly"], "belly")
    _region(canvas, -28, 74, (0.06, -0.02), colour["breast"], "breast")
    _draw_pattern(rng, canvas, bird, colour["breast"])
    _draw_wing(canvas, bird, colour["wing"])
    _draw_head(rng, canvas, bird, colour)


def draw_branch(rng, canvas, reach):
    """The branch under a bird, `reach` of its units to both sides."""
    canvas.line([(-reach, 0.47), (reach, 0.47)], _jitter(rng, (112, 92, 74)), 0.075, part=None)


def _draw_pattern(rng, canvas, bird, breast):
    """Draws streaks or spots on the breast, light on dark or dark on light."""
    if bird["breast_pattern"] == "plain":
        return
    ink = (48, 40, 36) if sum(breast) > 240 else (236, 232, 224)
    for angle in range(-12, 74, 17):
        for depth in (0.9, 0.66):
            x, y = _body(angle + rng.uniform(-3, 3), depth)
            if bird["breast_pattern"] == "streaked":
                canvas.line([(x + 0.01, y - 0.035), (x - 0.01, y + 0.035)], ink, 0.02, "breast")
            else:
                canvas.disc((x, y), 0.021, ink, "breast")


def _draw_wing(canvas, bird, colour):
    start, along, across = (0.13, -0.12), (-0.88, 0.47), (0.47, 0.88)
    outline = [(0.0, 0.0), (0.06, -0.055), (0.22, -0.075), (0.52, 0.02), (0.58, 0.07)]
    outline += [(0.42, 0.14), (0.24, 0.19), (0.08, 0.15), (0.0, 0.07)]
    canvas.polygon([in_frame(start, along, across, p) for p in outline], colour, "wing")
    if bird["wing_bars"] != "no":
        for x in (0.17, 0.29):
            bar = [in_frame(start, along, across, p) for p in ((x, -0.05), (x + 0.03, 0.165))]
            canvas.line(bar, COLOURS[bird["wing_bars"]], 0.042, "wing")


def _draw_head(rng, canvas, bird, colour):
    centre, radius = (0.25, -0.27), 0.165
    if bird["crest"] == "yes":
        crest = [(0.30, -0.42), (0.20, -0.50), (0.06, -0.56), (0.10, -0.46), (0.02, -0.44)]
        canvas.polygon([*crest, (0.09, -0.36), (0.12, -0.28)], colour["crown"], "crown")
    _draw_bill(rng, canvas, bird)
    canvas.disc(centre, radius, colour["breast"], "face", edge=True)
    angles = [math.radians(angle) for angle in range(150, 352, 8)]
    cap = [(centre[0] + radius * math.cos(t), centre[1] + radius * math.sin(t)) for t in angles]
    canvas.polygon([*cap, (0.28, -0.265)], colour["crown"], "crown")
    eye = (0.305, -0.29)
    if bird["eye_ring"] != "no":
        canvas.disc(eye, 0.07, COLOURS[bird["eye_ring"]], "eye", edge=True)
    canvas.disc(eye, 0.036, (18, 18, 20), "eye", edge=sum(colour["crown"]) < 200)
    canvas.disc((0.316, -0.302), 0.012, (250, 250, 250), "eye")


def _draw_bill(rng, canvas, bird):
    length = {"short": 0.11, "long": 0.29}[bird["bill_length"]]
    depth = {"straight": 0.045, "curved": 0.05, "thick": 0.085}[bird["bill_shape"]]
    root = (0.385, -0.25)
    if bird["bill_shape"] == "curved":
        drop = 0.07 + 0.3 * length
        bill = [(0.0, -depth), (0.6 * length, -0.7 * depth), (length, 0.4 * drop), (length, drop)]
        bill += [(0.62 * length, 0.5 * depth + 0.15 * drop), (0.0, depth)]
    elif bird["bill_shape"] == "thick":
        bill = [(0.0, -depth), (0.5 * length, -0.8 * depth), (length, 0.01), (0.0, depth)]
    else:
        bill = [(0.0, -depth), (length, 0.0), (0.0, depth)]
    canvas.polygon(
        [(root[0] + x, root[1] + y) for x, y in bill],
        _jitter(rng, COLOURS[bird["bill_colour"]]),
        "bill",
    )


def _draw_leaves(rng, canvas, count, length):
    """Leaves in front of the bird, round a point on it, so that some parts stay clear."""
    anchor = np.array(canvas.place(rng.uniform((-0.35, -0.35), (0.4, 0.2))))
    for _ in range(count):
        x, y = anchor + rng.normal(0.0, 1.1 * length, 2)
        tilt, half = rng.uniform(0, math.pi), length * rng.uniform(0.7, 1.2)
        turn = (math.cos(tilt), math.sin(tilt))
        leaf = [(-half, 0), (-0.3 * half, -0.42 * half), (0.4 * half, -0.34 * half), (half, 0)]
        leaf += [(0.4 * half, 0.34 * half), (-0.3 * half, 0.42 * half)]
        points = [(x + turn[0] * u - turn[1] * v, y + turn[1] * u + turn[0] * v) for u, v in leaf]
        canvas.occlude(points, _jitter(rng, (88, 122, 70), 16))


def background(rng, side):
    """A square of sky, foliage, sand, mist or water."""
    top, bottom = _BACKGROUNDS[rng.integers(len(_BACKGROUNDS))]
    cells = np.linspace(top, bottom, 7)[:, None, :] + rng.normal(0, 5, (7, 7, 3))
    cells += rng.normal(0, 9, (7, 7, 1))
    image = Image.fromarray(np.clip(cells, 0, 255).astype(np.uint8))
    return image.resize((side, side), Image.Resampling.BICUBIC)


def attributes_seen(complete, seen, bird, dusk):
    """The attributes that can be told, from `count_parts` of the whole and of what is seen."""
    complete, seen = dict(complete), dict(seen)
    complete["bird"], seen["bird"] = sum(complete.values()), sum(seen.values())
    names = set()
    for name in NAMES:
        part, share = SHOWN_BY[name]
        if dusk and name not in SHAPES:
            continue
        if seen[part] >= share * complete[part]:
            names.add(name)
    return names


def count_parts(parts):
    """How many pixels show each part."""
    histogram = parts.histogram()
    return {part: histogram[index + 1] for index, part in enumerate(PARTS)}


def box_seen(parts, size):
    """The box (x, y, width, height) round all parts, in pixels of a picture of that size."""
    left, top, right, bottom = parts.getbbox() or (0, 0, *parts.size)
    scale = size / parts.size[0]
    return tuple(round(v * scale, 1) for v in (left, top, right - left, bottom - top))


def _region(canvas, first, last, inner, colour, part):
    """A patch of the body between two angles of its outline and a point inside."""
    arc = [_body(angle) for angle in range(first, last + 1, 6)]
    canvas.polygon([*arc, inner], colour, part, edge=False)
    canvas.line(arc, tuple(int(0.55 * c) for c in colour), 0.012, part)


def _body(angle, depth=1.0):
    """A point of the body's outline (`depth` 1) or inside it; 0 is the front, 90 below."""
    x = depth * 0.345 * math.cos(math.radians(angle))
    y = depth * 0.235 * math.sin(math.radians(angle))
    cos, sin = math.cos(-0.52), math.sin(-0.52)
    return cos * x - sin * y, sin * x + cos * y


def _jitter(rng, colour, spread=7):
    """A colour moved by normal noise, within 0 to 255."""
    noise = rng.normal(0, spread, 3)
    return tuple(int(np.clip(c + n, 0, 255)) for c, n in zip(colour, noise, strict=True))
