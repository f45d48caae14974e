"""The truth about toy scenes: which captions fit which scenes."""

import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from zoo.data.toy.birds.attributes import ATTRIBUTES, NAMES, codes
from zoo.data.toy.scenes.scene import MAX_BIRDS, Bird
from zoo.data.toy.scenes.statements import Statement
from zoo.errors import InputError
from zoo.files.text_files import read_lines

_FILE = "truth/scenes.jsonl"


class SceneTruth(NamedTuple):
    """What was drawn in one scene, and what its captions, in their order, say."""

    birds: tuple[Bird, ...]
    statements: tuple[Statement, ...]


def true_matches(root, records):
    """The number of the split's scenes that each caption is true of.

    Args:
        root: the folder of `generate`.
        records: of a split, from `coco.load`, `flickr30k.load` or `regions.load`.

    Returns:
        int64 `(M,)`, never 0: a caption's own scene is one.

    Raises:
        InputError: if the folder has no truth, or not that of these images.
    """
    return truth_matrix(root, records).sum(0)


def truth_matrix(root, records):
    """Whether each caption is true of each scene of a split, bool `(N, M)`.

    Args and Raises as for `true_matches`.
    """
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
    """Of which scenes a statement is true.

    Args:
        statement: what a caption says.
        table: int `(N, MAX_BIRDS, attributes)`, each scene's birds from left to right as `codes`,
            −1 where there is none.
        counts: `(N,)`, how many birds each scene has.

    Returns:
        bool `(N,)`.
    """
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
        truths[row["image_id"]] = SceneTruth(
            birds, tuple(map(Statement.from_json, row["captions"]))
        )
    return truths


def write(root, scenes):
    """Writes the truth of `{image number: SceneTruth}`."""
    (root / _FILE).parent.mkdir()
    with open(root / _FILE, "w") as file:
        for number, scene in scenes.items():
            birds = [{**bird._asdict(), "visible": sorted(bird.visible)} for bird in scene.birds]
            captions = [statement.as_json() for statement in scene.statements]
            row = {"image_id": number, "birds": birds, "captions": captions}
            file.write(json.dumps(row) + "\n")


def _statements(records, numbers, truths):
    line = {}
    for index, image in enumerate(records.caption_image):
        own = truths[numbers[image]].statements
        if records.caption_ids is not None:
            # Captions may have been chosen by their ids, of which an image's are consecutive.
            line[image] = int(records.caption_ids[index]) % len(own)
        else:
            line[image] = line.get(image, -1) + 1
        yield own[line[image]]


def _number(image_id):
    """The number of a scene, by which every layout names its image."""
    digits = re.findall(r"\d+", str(image_id))
    return int(digits[-1]) if digits else None
