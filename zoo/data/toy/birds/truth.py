"""The truth about Toy Birds: which captions fit which images."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search.errors import InputError
from zoo.data.toy.birds.attributes import ATTRIBUTES, NAMES, codes, decode

_IMAGES, _CAPTIONS = "truth/image_attributes.csv", "truth/caption_attributes.csv"
_NEVER = 1e-9  # not 0, so that of two images the one that contradicts less comes first


class Truth(NamedTuple):
    """Of N images the bird's attributes as codes `(N, 16)`, of `attributes.decode`, and whether the
    picture shows each; of M captions those named `(M, 16)`, −1 where it names none."""

    images: np.ndarray
    visible: np.ndarray
    captions: np.ndarray


def true_matches(root, records):
    """How ambiguous every caption of a split really is: int64 `(M,)`, the number of images whose
    bird has every attribute that it names, its own image among them. `root` is the folder of
    `generate`. Raises InputError if it has no truth files, or not for the images of the records."""
    truth = read_truth(root, records)
    counts = np.zeros(len(truth.captions), np.int64)
    # In blocks: captions × images × attributes at once would take gigabytes on a large set.
    for start in range(0, len(counts), 512):
        block = truth.captions[start : start + 512, None]
        counts[start : start + 512] = ((block < 0) | (block == truth.images)).all(-1).sum(1)
    return counts


def oracle(records, seed=0):
    """Ideal ranking, float32 `(N, M)`; the seed breaks ties at random.

    `log p(caption | image) − log Σ p(caption | other image)`: a caption cannot be of an image that
    visibly contradicts it, what is hidden has the value that the caption names with the
    probability of that value among species, and a caption that few images fit says more. Raises as
    `true_matches`.
    """
    truth = read_truth(Path(records.image_paths[0]).parents[2], records)
    fits = np.zeros((len(truth.images), len(truth.captions)))
    for column, name in enumerate(NAMES):
        weights = np.array(list(ATTRIBUTES[name].values()))
        named = truth.captions[:, column]
        by_chance = (weights / weights.sum())[named]
        drawn, visible = truth.images[:, column, None], truth.visible[:, column, None]
        seen = np.where(drawn == named, 1.0, _NEVER)
        fits += np.where(named < 0, 0.0, np.log(np.where(visible, seen, by_chance)))
    fits -= np.log(np.exp(fits).sum(0))
    equals = np.random.default_rng(seed).random(fits.shape)
    return (fits + 1e-3 * equals).astype(np.float32)


def read_truth(root, records):
    """The attributes of a split's images and captions, in the order of its records."""
    root = Path(root).expanduser()
    images = {row[0]: row[1:] for row in _rows(root / _IMAGES)}
    captions = {(row[0], int(row[1])): row[2] for row in _rows(root / _CAPTIONS)}
    stems = ["/".join(Path(path).with_suffix("").parts[-2:]) for path in records.image_paths]
    unknown = next((stem for stem in stems if stem not in images), None)
    if unknown is not None:
        raise InputError(f"{root / _IMAGES}: no image {unknown}")
    values = np.array([codes(dict(zip(NAMES, images[s], strict=False))) for s in stems], np.int8)
    visible = np.array([[name in images[s][-1].split(";") for name in NAMES] for s in stems])
    named = np.full((len(records.captions), len(NAMES)), -1, np.int8)
    line = {}
    for index, image in enumerate(records.caption_image):
        line[image] = line.get(image, -1) + 1
        text = captions[stems[image], line[image]]
        for name in text.split(";") if text else ():
            column = NAMES.index(name)
            named[index, column] = values[image, column]
    return Truth(values, visible, named)


def write(root, stems, made):
    """Writes one row per image: class codes, visible attributes, those that each caption names."""
    (root / "truth").mkdir()
    with open(root / _IMAGES, "w", newline="") as images:
        table = csv.writer(images, lineterminator="\n")
        table.writerow(["image", *NAMES, "visible"])
        for stem, (row, visible, _) in zip(stems, made, strict=True):
            seen = ";".join(name for name in NAMES if name in visible)
            table.writerow([stem, *decode(row).values(), seen])
    with open(root / _CAPTIONS, "w", newline="") as captions:
        table = csv.writer(captions, lineterminator="\n")
        table.writerow(["image", "caption", "named"])
        for stem, (_, _, named) in zip(stems, made, strict=True):
            table.writerows([stem, line, ";".join(names)] for line, names in enumerate(named))


def _rows(path):
    """The rows of a CSV file below its header; an InputError if it cannot be read."""
    try:
        with open(path, newline="") as file:
            return list(csv.reader(file))[1:]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; is this a Toy Birds folder?") from error
