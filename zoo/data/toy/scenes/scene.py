"""A scene: one to three toy birds in one picture."""

from typing import NamedTuple

import numpy as np
from PIL import Image

from zoo.data.toy.birds import attributes
from zoo.data.toy.birds.drawing import (
    OVERSAMPLE,
    SCALE,
    Canvas,
    Placement,
    attributes_seen,
    background,
    box_seen,
    count_parts,
    draw_bird,
    draw_branch,
)

MAX_BIRDS = 3
_MARGIN = 0.2  # of the side, so that what lies out of the picture counts as not seen
_HOW_MANY = (0.3, 0.4, 0.3)  # of scenes with one, two, three birds
# Centres as shares of the side, left to right, and the birds' size relative to a portrait.
_LAYOUTS = {
    1: (((0.5, 0.5),), 0.9),
    2: (((0.27, 0.42), (0.73, 0.6)), 0.66),
    3: (((0.22, 0.27), (0.5, 0.73), (0.78, 0.29)), 0.56),
}


class Bird(NamedTuple):
    """One bird of a scene: the number of its species, its `toy_birds.attributes`, which of them can
    be told from the picture, and the (x, y, width, height) in pixels of what is seen of it."""

    species: int
    attributes: dict[str, str]
    visible: frozenset[str]
    box: tuple[float, float, float, float]


def draw_scene(rng, species, size):
    """Draws a scene of `size` (width, height): a Pillow image, and its `Bird`s from left to right.
    Everything comes from the generator; species are attribute dicts."""
    side = size * OVERSAMPLE
    margin = int(_MARGIN * side)
    count = 1 + rng.choice(MAX_BIRDS, p=_HOW_MANY)
    centres, share = _LAYOUTS[count]
    upside_down = count > 1 and rng.random() < 0.5  # the high ones low and the low ones high
    picture = background(rng, side + 2 * margin)
    kinds = rng.integers(len(species), size=count)
    birds = [attributes.individual(rng, species[kind]) for kind in kinds]
    canvases = []
    for (x, y), bird in zip(centres, birds, strict=True):
        dx, dy = rng.uniform(-0.03, 0.03, 2)
        place = Placement(
            centre=(
                margin + (x + dx) * side,
                margin + ((1 - y if upside_down else y) + dy) * side,
            ),
            scale=side * share * SCALE[bird["size"]] * rng.uniform(0.96, 1.04),
            tilt=rng.uniform(-0.22, 0.22),
            mirror=rng.random() < 0.5,
        )
        canvases.append(Canvas(picture, place))
    # All branches lie behind all birds, so that what hides a bird is another bird alone.
    for canvas in canvases:
        draw_branch(rng, canvas, 0.8)
    whole = []
    for number, (canvas, bird) in enumerate(zip(canvases, birds, strict=True)):
        draw_bird(rng, canvas, bird, on_branch=False)
        whole.append(count_parts(canvas.parts))
        covered = canvas.parts.point(lambda part: 255 if part else 0)
        for behind in canvases[:number]:
            behind.parts.paste(0, mask=covered)
    frame = (margin, margin, margin + side, margin + side)
    shown = [canvas.parts.crop(frame) for canvas in canvases]
    seen = [
        Bird(
            int(kind),
            bird,
            frozenset(attributes_seen(all_of_it, count_parts(parts), bird, dusk=False)),
            box_seen(parts, size),
        )
        for kind, bird, parts, all_of_it in zip(kinds, birds, shown, whole, strict=True)
    ]
    return picture.crop(frame).resize((size, size), Image.Resampling.BOX), seen


def centre(box):
    """Where the middle of a box is."""
    return np.array((box[0] + box[2] / 2, box[1] + box[3] / 2))
