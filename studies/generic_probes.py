"""How far off probes of other photos are, and how much thirty own photos help.

    python -m studies.generic_probes ../shared/data > table.md

Three models. `photos_points` asks Flickr8k's test photos with COCO's packaged photos as probes, and
these with Flickr8k's. Of CLIP's real vectors, whose models are not here, the probes are photos of
other contents: photos are halved by a random direction of their vectors. Each is asked alone and
with the pairs of thirty photos of the gallery's kind that lie outside it; and with probes of its
own kind alone, halved at random.

A row is of several galleries, and all captions or photos of each ask; where nearly all probes are
right, as of photos that ask for any of five captions, nothing can be calibrated, and there is no
row. An interval is one of nine
galleries of ten. With other photos its width comes from the other models of this table, never from
the model of the row; a line below has the number of all.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from studies.people_data import Encoded
from zoo import evaluation
from zoo.cli import OneLineParser, run
from zoo.confidence import Probes
from zoo.confidence.calibrate import calibrated_elsewhere
from zoo.confidence.probes import OWN
from zoo.embeddings.arrays import length
from zoo.models.presets import from_preset
from zoo.search import Index

MODEL = "photos_points"
SIZES = (100, 500)
CLIP = {  # files of vectors: the model, what it shows
    "flickr8k_clip_b32_pairs": ("CLIP B/32", "Flickr8k"),
    "coco_val2017_clip_b16_pairs": ("CLIP B/16", "COCO"),
    "fashion_clip_pairs": ("fashion CLIP", "products"),
}
CONTENTS = 5  # principal directions that halve photos by what they show
COLUMNS = "said | right | shift | \\|said − right\\| | most | interval holds | its width"


class Row(NamedTuple):
    """Galleries that are asked alike: `draw(rng)` gives a `Gallery`, its probes and own ones."""

    model: str
    asked: str
    direction: str
    probes: str
    is_general: bool
    similarity: object
    draw: Callable


class Answers(NamedTuple):
    """Of one gallery: the share of right ones, and by a spread what is said and its interval."""

    right: float
    shift: float
    deviation: float
    judged: Callable


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.generic_probes", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with clip_vectors and flickr8k")
    parser.add_argument("--draws", type=int, default=10, help="galleries per row (default 10)")
    parser.add_argument("--cache", type=Path, help="folder to keep encoded photos in")
    options = parser.parse_args(argv)
    rows = [*rows_of_preset(options), *rows_of_clip(options.data / "clip_vectors")]
    found = {}
    for row in rows:
        drawn = (row.draw(np.random.default_rng(seed)) for seed in range(options.draws))
        galleries = [one for gallery in drawn if (one := answers(row, *gallery)) is not None]
        if len(galleries) > options.draws // 2:
            found[row] = galleries
    spreads = {model: spread(found, model) for model in dict.fromkeys(row.model for row in found)}
    print(f"| model | gallery | way | probes | {COLUMNS} |")
    print("|---" * 11 + "|")
    errors = {False: [], True: []}
    for row, galleries in found.items():
        rest = [value for model, value in spreads.items() if model != row.model]
        line, away, holds = _line(row, galleries, np.sqrt(np.mean(np.square(rest))))
        print(line)
        if row.is_general:
            errors["own" in row.probes].extend(zip(away, holds, strict=True))
    told = ", ".join(f"{model} {value:.2f}" for model, value in spreads.items())
    together = np.sqrt(np.mean(np.square(list(spreads.values()))))
    print(f"\nThe shift's standard deviation: {told}; together {together:.2f}.")
    for name, of in (("Other photos alone", errors[False]), (f"With {OWN} own", errors[True])):
        away, holds = np.array(of).T
        print(
            f"{name}: off by {away.mean():.2f} on average, {away.max():.2f} at most; the interval "
            f"holds in {holds.mean():.2f} of {len(of)} galleries."
        )
    return 0


def rows_of_preset(options):
    """Flickr8k's photos by COCO's, and the reverse."""
    model = from_preset(MODEL)
    encoded = Encoded.of(options.data / "flickr8k", MODEL, cache=options.cache)
    rows = np.arange(len(encoded.names))
    flickr = Probes.of(encoded.images, encoded.captions, rows, encoded.owners, encoded.owners)
    coco = dataclasses.replace(evaluation.general_probes(model), general=None)
    sixth = part(flickr, np.arange(0, len(rows), 6))
    for name, photos, general, of in (
        ("Flickr8k", flickr, coco, "COCO"),
        ("COCO", coco, sixth, "Flickr8k"),
    ):
        for size in SIZES:
            if size + OWN > length(photos.images):
                continue

            def draw(rng, own, photos=photos, general=general, size=size):
                order = rng.permutation(length(photos.images))
                return part(photos, order[:size]), general, part(photos, order[len(order) - own :])

            yield from _both(
                (MODEL, f"{name}, {size}"),
                f"{of}, {length(general.images)}",
                model.similarity,
                draw,
                OWN,
            )


def rows_of_clip(folder):
    """Photos by those of other contents, and by those of their own."""
    for file, (model, name) in CLIP.items():
        with np.load(folder / f"{file}.npz") as stored:
            sides = [{"mean": stored[key].astype(np.float32)} for key in ("images", "captions")]
            rows = np.arange(length(sides[0]))
            owners = stored.get("owner", rows)
            pairs = Probes.of(*sides, rows, owners, owners)
        half, own = len(rows) // 2, OWN if len(rows) > 4 * OWN else 0

        def by_contents(rng, own, pairs=pairs, half=half):
            order = rng.permutation(np.argsort(_contents(pairs.images["mean"], rng))[half:])
            rest = np.setdiff1d(np.arange(2 * half), order)
            end = len(order) - own
            return part(pairs, order[:end]), part(pairs, rest), part(pairs, order[end:])

        def by_chance(rng, own, pairs=pairs, half=half):
            order = rng.permutation(length(pairs.images))
            return part(pairs, order[half:]), part(pairs, order[:half]), None

        place = model, f"{name}, {half}"
        yield from _both(place, f"other contents, {half}", "cosine", by_contents, own)
        yield from _both(place, f"its own, {half}", "cosine", by_chance, 0, False)


def _both(place, told, similarity, draw, own, is_general=True):
    """Rows of both directions, without own photos and with them."""
    for direction in ("t2i", "i2t"):
        for count in (0, own) if own else (0,):
            beside = f" + {count} own" if count else ""

            def drawn(rng, count=count):
                return draw(rng, count)

            yield Row(*place, direction, told + beside, is_general, similarity, drawn)


def part(probes, photos):
    """Those of some photos."""
    photos = np.sort(photos)
    return probes.take(photos, np.flatnonzero(np.isin(probes.caption_images, photos)))


def answers(row, gallery, probes, own=None):
    """The `Answers` of one gallery; None where it cannot be calibrated."""
    if row.is_general and own is not None and length(own.images):
        probes = probes.beside(own)
    pairs = gallery.pairs(row.direction)
    side = "images" if row.direction == "t2i" else "captions"
    index = Index.build(pairs["own"], row.similarity, side=side)
    try:
        plain = dataclasses.replace(probes, general=None).calibrate(index, row.direction)
    except ValueError:
        return None
    scores, ids = index.search(pairs["queries"], 20)
    scores = index.scores_of(pairs["queries"], scores, ids, plain.copies)
    right = float(pairs["matches"][np.arange(len(ids)), ids[:, 0]].mean())
    asked = probes.pairs(row.direction)

    def judged(spread):
        found = plain
        if row.is_general:
            is_own = np.zeros(len(asked["matches"]), bool)
            if probes.general is not None:
                is_own = probes.own_questions(row.direction)
            found = calibrated_elsewhere(plain, index, asked, is_own, spread)
        said = found.probability(scores)
        return said.mean(), *(end.mean() for end in found.interval(said))

    shift = _missing(plain.probability(scores), right)
    return Answers(right, shift, plain.in_gallery.deviation, judged)


def spread(found, model):
    """The deviation of a model's shifts, but for what the number of probes explains."""
    squares = [
        one.shift**2 - one.deviation**2
        for row, galleries in found.items()
        if row.model == model and row.is_general and "own" not in row.probes
        for one in galleries
    ]
    return float(np.sqrt(max(0.0, np.mean(squares))))


def _missing(said, right):
    """The shift of all log odds by which what is said becomes what is right."""
    right = np.clip(right, 0.5 / len(said), 1 - 0.5 / len(said))
    return brentq(lambda by: expit(logit(said) + by).mean() - right, -30, 30)


def _contents(vectors, rng):
    """The places of photos along a random direction of what they show."""
    away = vectors.astype(np.float32) - vectors.mean(axis=0, dtype=np.float32)
    left, sizes, _ = np.linalg.svd(away, full_matrices=False)
    return left[:, :CONTENTS] * sizes[:CONTENTS] @ rng.normal(size=CONTENTS)


def _line(row, galleries, spread):
    """`(a row of the table, errors, whether the interval holds)`."""
    said, low, high = np.array([one.judged(spread) for one in galleries]).T
    right = np.array([one.right for one in galleries])
    away, holds = np.abs(said - right), (low <= right) & (right <= high)
    shift = np.mean([one.shift for one in galleries])
    cells = (
        f"{said.mean():.3f} | {right.mean():.3f} | {shift:+.2f} | {away.mean():.3f} | "
        f"{away.max():.3f} | {holds.mean():.2f} | {(high - low).mean():.2f}"
    )
    line = f"| {row.model} | {row.asked} | {row.direction} | {row.probes} | {cells} |"
    return line, away, holds


if __name__ == "__main__":
    run(main)
