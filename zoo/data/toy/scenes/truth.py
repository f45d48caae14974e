"""The truth about toy scenes: which captions fit which scenes."""

import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from halo_search.errors import InputError
from halo_search.files.text_files import read_lines
from zoo.data.toy.birds import attributes
from zoo.data.toy.birds.attributes import ATTRIBUTES, NAMES, choose, codes, enumerate_words, mention
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
    """One bird of a scene: its species, its attributes, which of them can be told from the picture,
    and the (x, y, width, height) in pixels of what is seen of it."""

    species: int
    attributes: dict[str, str]
    visible: frozenset[str]
    box: tuple[float, float, float, float]


def draw_scene(rng, species, size):
    """Draws a scene of a width and height: a Pillow image, and its `Bird`s from left to right."""
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
    complete = []
    for number, (canvas, bird) in enumerate(zip(canvases, birds, strict=True)):
        draw_bird(rng, canvas, bird, on_branch=False)
        complete.append(count_parts(canvas.parts))
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
        for kind, bird, parts, all_of_it in zip(kinds, birds, shown, complete, strict=True)
    ]
    return picture.crop(frame).resize((size, size), Image.Resampling.BOX), seen


CAPTIONS_PER_IMAGE = 5
# From what fits a third of all scenes to what fits one.
_KINDS = {"count": 0.12, "one": 0.3, "several": 0.28, "counted": 0.15, "beside": 0.15}
_NUMBERS = ("a single", "two", "three")
_VAGUE = (
    "{} on {}.",
    "there {} {} in the picture.",
    "a picture of {}.",
    "{} sitting on {}.",
)
_OPENINGS = ("", "", "there is ", "the picture shows ")
_FILE = "truth/scenes.jsonl"


class Statement(NamedTuple):
    """What a caption says about a scene."""

    birds: tuple[dict[str, str], ...]
    count: int | None = None
    ordered: bool = False


def describe_scene(rng, birds):
    """`(caption, statement)` of the birds of a scene, from left to right."""
    kinds = [kind for kind in _KINDS if len(birds) > 1 or kind in ("count", "one")]
    weights = [_KINDS[kind] for kind in kinds]
    kind = kinds[rng.choice(len(kinds), p=[w / sum(weights) for w in weights])]
    number = f"{_NUMBERS[len(birds) - 1]} bird{'s' * (len(birds) > 1)}"
    if kind == "count":
        branch = "a branch" if len(birds) == 1 else "branches"
        verb = "is" if len(birds) == 1 else "are"
        form = _VAGUE[rng.integers(len(_VAGUE))]
        words = (verb, number) if form.startswith("there") else (number, branch)
        return form.format(*words), Statement((), len(birds))
    if kind == "one":
        described = [int(rng.integers(len(birds)))]
    elif kind == "beside":
        described = sorted(rng.choice(len(birds), 2, replace=False))
    else:
        described = list(rng.permutation(len(birds)))
    named = [choose(rng, birds[i].attributes, birds[i].visible) for i in described]
    phrases = [
        mention(rng, birds[i].attributes, names) for i, names in zip(described, named, strict=True)
    ]
    statements = tuple(
        {name: birds[i].attributes[name] for name in sorted(names)}
        for i, names in zip(described, named, strict=True)
    )
    if kind == "beside":
        if rng.random() < 0.5:
            return f"{phrases[0]} to the left of {phrases[1]}.", Statement(statements, None, True)
        return f"{phrases[1]} to the right of {phrases[0]}.", Statement(statements, None, True)
    if kind == "counted":
        return f"{number}, {enumerate_words(phrases)}.", Statement(statements, len(birds))
    opening = _OPENINGS[rng.integers(len(_OPENINGS))]
    return f"{opening}{enumerate_words(phrases)}.", Statement(statements)


class SceneTruth(NamedTuple):
    """What was drawn in one scene, and what each of its captions states, in their order."""

    birds: tuple[Bird, ...]
    statements: tuple[Statement, ...]


def truth_matrix(root, records):
    """Whether each caption is true of each scene of a split, bool `(N, M)`. Raises InputError if
    the folder of `generate` has not the truth of these records."""
    truths = read_truth(root)
    numbers = [_number(image_id) for image_id in records.image_ids]
    unknown = next((number for number in numbers if number not in truths), None)
    if unknown is not None:
        raise InputError(f"{Path(root) / _FILE}: no scene {unknown}")
    scenes = [truths[number].birds for number in numbers]
    table = np.full((len(scenes), MAX_BIRDS, len(NAMES)), -1, np.int8)
    for row, birds in enumerate(scenes):
        for column, bird in enumerate(birds):
            table[row, column] = codes(bird.attributes)
    counts = np.array([len(birds) for birds in scenes])
    columns = [
        true_of(statement, table, counts) for statement in _statements(records, numbers, truths)
    ]
    return np.stack(columns, axis=1)


def true_of(statement, table, counts):
    """The scenes of which a statement is true, bool `(N,)`. The table holds each scene's birds from
    left to right, `(N, MAX_BIRDS, attributes)`, −1 where there is none."""
    agrees = []
    for named in statement.birds:
        fit = table[:, :, 0] >= 0
        for name, value in named.items():
            fit &= table[:, :, NAMES.index(name)] == tuple(ATTRIBUTES[name]).index(value)
        agrees.append(fit)
    matched = np.zeros(len(table), bool)
    for places in itertools.permutations(range(MAX_BIRDS), len(agrees)):
        if not statement.ordered or list(places) == sorted(places):
            rows = [fit[:, place] for fit, place in zip(agrees, places, strict=True)]
            matched |= np.all(rows, axis=0) if rows else True
    return matched if statement.count is None else matched & (counts == statement.count)


def read_truth(root):
    """`{image number: SceneTruth}` of all scenes of a folder."""
    path = Path(root).expanduser() / _FILE
    truths = {}
    for text in read_lines(path):
        row = json.loads(text)
        birds = tuple(
            Bird(b["species"], b["attributes"], frozenset(b["visible"]), tuple(b["box"]))
            for b in row["birds"]
        )
        statements = tuple(Statement(**fields) for fields in row["captions"])
        truths[row["image_id"]] = SceneTruth(birds, statements)
    return truths


def write(root, scenes):
    """Writes the truth of `{image number: SceneTruth}`."""
    (root / _FILE).parent.mkdir()
    with open(root / _FILE, "w") as file:
        for number, scene in scenes.items():
            birds = [{**bird._asdict(), "visible": sorted(bird.visible)} for bird in scene.birds]
            captions = [statement._asdict() for statement in scene.statements]
            row = {"image_id": number, "birds": birds, "captions": captions}
            file.write(json.dumps(row) + "\n")


def _statements(records, numbers, truths):
    """Yields the statement behind each caption: by the caption's id, else by its place among its
    image's captions."""
    line = {}
    for index, image in enumerate(records.caption_image):
        statements = truths[numbers[image]].statements
        if records.caption_ids is not None:
            # Captions may have been chosen by their ids, of which an image's are consecutive.
            line[image] = int(records.caption_ids[index]) % len(statements)
        else:
            line[image] = line.get(image, -1) + 1
        yield statements[line[image]]


def _number(image_id):
    """The number of a scene, by which every layout names its image."""
    digits = re.findall(r"\d+", str(image_id))
    return int(digits[-1]) if digits else None
