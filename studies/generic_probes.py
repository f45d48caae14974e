"""What photos of others say of a public model's answers, and how much thirty own photos help.

    python -m studies.generic_probes ../shared/data --cache CACHE > table.md

What is told is P, that the first result fits; whether it does an oracle of the photos' captions
says (`zoo.evaluation.relevance`), and of product photos, which have one description each, whether
it is the wanted one. `photos_points` is judged on Flickr8k's test photos as it comes: by the
packaged photos of COCO. CLIP's real vectors are of models that are not here, so that the packaged
photos cannot be encoded: of COCO 170 photos, of Flickr8k 60 of the 98 that have captions stand for
them, drawn at random (*alike*) or those that are furthest in a random direction of what photos show
(*other contents*). All other photos with vectors fill the gallery.

Each is judged alone and with the pairs of own photos, of the gallery's kind and not in it: 30, of
Flickr8k's CLIP 15. A row is of several galleries. An interval holds what is true in nine galleries
of ten; its width comes from the other models of this table, never from the model of the row.
"""

import csv
import dataclasses
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from halo_search.confidence import Probes
from halo_search.confidence.calibrate import calibrated_elsewhere
from halo_search.confidence.judge import Asked, Judge
from halo_search.confidence.probes import OWN
from halo_search.embeddings.arrays import length, take, unit
from halo_search.index import Index
from studies.people_data import Encoded
from zoo import evaluation, similarities
from zoo.cli import OneLineParser, run
from zoo.evaluation.captioned import Captioned
from zoo.evaluation.fits import learn_fits
from zoo.evaluation.gallery import scores_over
from zoo.evaluation.relevance import relevance, score_scale, sentence_vectors
from zoo.presets import from_preset

MODEL, SIZES, SIDES = "photos_points", (100, 250, 500, 900), {"t2i": "images", "i2t": "captions"}
CONTENTS = 5  # principal directions of what photos show
COLUMNS = "said | true | shift | error | most | interval holds | its width"


class World(NamedTuple):
    """Photos and captions of a model, which captions are whose, and what fits what."""

    model: str
    name: str
    images: dict
    captions: dict
    owners: np.ndarray
    fit: np.ndarray  # (captions, photos)
    probes: Probes | None = None  # of the packaged photos; without any some of these stand for them
    stand_in: int = 170
    num_own: int = OWN
    has_rho: bool = True

    def part(self, photos):
        """Probes and what else fits, of some photos."""
        rows = np.flatnonzero(np.isin(self.owners, photos))
        owners = np.searchsorted(photos, self.owners[rows])
        sides = take(self.images, photos), take(self.captions, rows)
        numbers, is_whole = np.arange(len(photos)), np.ones(len(photos), bool)
        return Probes.of(*sides, numbers, owners, owners, whole=is_whole), rows, owners


class Answers(NamedTuple):
    """Of one gallery: the share of firsts that fit, and by a spread what is said, and where."""

    true: float
    shift: float
    judged: object


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.generic_probes", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with clip_vectors, flickr8k and captions")
    parser.add_argument("--draws", type=int, default=6, help="galleries per row (default 6)")
    parser.add_argument("--cache", type=Path, help="folder to keep encoded photos in")
    options = parser.parse_args(argv)
    results = {}
    for world in [*worlds_of_clip(options.data), world_of_preset(options)]:
        for kind in ("other contents", "alike") if world.probes is None else ("COCO's",):
            for seed in range(options.draws):
                for row, gallery in galleries(world, kind, seed):
                    results.setdefault(row, []).append(gallery)
    report(results)


def report(results):
    """Prints the table of lists of `Answers` by `(model, photos, items, way, probes)`."""
    general = {row: of for row, of in results.items() if "alike" not in row[-1]}
    models = list(dict.fromkeys(row[0] for row in results))
    shifts = {
        model: [of for row, of in general.items() if row[0] == model and "+" not in row[-1]]
        for model in models
    }
    print(f"| model | photos | items | way | calibrated by | {COLUMNS} |\n{'|---' * 12}|")
    errors = {False: [], True: []}
    for row, of in results.items():
        others = [rows for model, rows in shifts.items() if model != row[0]]
        line, away, holds = _line(of, *elsewhere(others))
        print(f"| {' | '.join(map(str, row))} | {line} |")
        if row in general:
            errors["+" in row[-1]].extend(zip(away, holds, strict=True))
    shifts_text = ", ".join(
        f"{model} {elsewhere([rows])[0]:+.2f}" for model, rows in shifts.items()
    )
    mean, deviation = elsewhere(shifts.values())
    print(f"\nThe mean shift: {shifts_text}; together {mean:+.2f}, deviation {deviation:.2f}.")
    for name, of in (("Other photos alone", errors[False]), (f"With {OWN} own", errors[True])):
        away, holds = np.array(of).T
        print(
            f"{name}: off by {away.mean():.2f} on average, {np.quantile(away, 0.9):.2f} at most in "
            f"9 of 10; the interval holds in {holds.mean():.2f} of {len(of)} galleries."
        )


def worlds_of_clip(data):
    """The `World`s of the vectors."""
    folder, sentences_of_image = data / "clip_vectors", {}
    with open(data / "flickr8k" / "pairs.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sentences_of_image.setdefault(Path(row["image"]).name, []).append(row["caption"])
    text = (data / "coco_annotations/captions_val2017.json").read_text("utf-8")
    for annotation in json.loads(text)["annotations"]:
        sentences_of_image.setdefault(f"{annotation['image_id']:012}.jpg", []).append(
            annotation["caption"]
        )
    pairs, photos = (np.load(folder / f"flickr8k_clip_b32_{x}.npz") for x in ("pairs", "images"))
    coco = np.load(folder / "coco_val2017_clip_b16_pairs.npz")
    new = ~np.isin(photos["image_names"], pairs["image_names"])
    images = np.concatenate([pairs["images"], photos["images"][new]])
    names = [*pairs["image_names"], *photos["image_names"][new]]
    for model, name, vectors, photos, stored, owners, more in (
        ("CLIP B/32", "Flickr8k", images, names, pairs, pairs["owner"], (None, 60, OWN // 2)),
        ("CLIP B/16", "COCO", coco["images"], coco["image_names"], coco, np.arange(500), ()),
    ):
        sides = [{"mean": unit(x.astype(np.float32))} for x in (vectors, stored["captions"])]
        texts = [
            (row, text.strip())
            for row, photo in enumerate(photos)
            for text in sentences_of_image[photo]
        ]
        place = {pair: number for number, pair in enumerate(texts)}
        captions_of_owner = zip(owners, stored["caption_texts"], strict=True)
        rows = [place[owner, text.strip()] for owner, text in captions_of_owner]
        sentences = sentence_vectors([text for _, text in texts])
        fit = _fit(sides, owners, sentences, np.array(rows), np.array([row for row, _ in texts]))
        yield World(model, name, *sides, owners, fit, *more)
    stored = np.load(folder / "fashion_clip_pairs.npz")
    sides = [{"mean": unit(stored[side].astype(np.float32))} for side in ("images", "captions")]
    count = np.arange(len(stored["images"]))
    fit = np.eye(len(count), dtype=np.float32)
    yield World("fashion CLIP", "products", *sides, count, fit, has_rho=False)


def world_of_preset(options):
    """Flickr8k's photos, and the preset as a model without probes."""
    model = from_preset(MODEL)
    encoded = Encoded.of(options.data / "flickr8k", MODEL, cache=options.cache)
    sides, rows = (encoded.images, encoded.captions), np.arange(len(encoded.owners))
    fit = _fit(sides, encoded.owners, encoded.sentences, rows, encoded.owners, encoded.similarity)
    return World(MODEL, "Flickr8k", *sides, encoded.owners, fit, evaluation.general_probes(model))


def _fit(sides, owners, sentences, rows, captioned, similarity=None):
    """How likely each photo fits each caption; `rows` of the sentences, whose photos are `told`."""
    similarity = similarity or similarities.Cosine()
    scores = scores_over(*sides, similarity, "images")
    scale = score_scale(scores, owners[:, None] == np.arange(scores.shape[1]))
    return relevance(sentences, rows, captioned, scores.shape[1], scores, scale)


def galleries(world, kind, seed):
    """`(row of the table, Answers)` of galleries of several sizes, both ways."""
    rng = np.random.default_rng(seed)
    captioned, every = np.unique(world.owners), np.arange(length(world.images))
    order, used, probes, num_own = rng.permutation(captioned), 0, world.probes, world.num_own
    if probes is None:
        used = world.stand_in
        if kind == "other contents":
            vectors = world.images["mean"][captioned]
            order = captioned[np.argsort(_contents(vectors, rng))]
        order = np.concatenate([rng.permutation(order[:used]), rng.permutation(order[used:])])
        probes, rows, owners = world.part(np.sort(order[:used]))
        if world.has_rho:
            fit = world.fit[np.ix_(rows, np.sort(order[:used]))]
            captioned_probes = probes.images, probes.captions, owners, [""] * len(rows), None
            captioned_probes = Captioned(
                *captioned_probes, similarities.Cosine(), None, relevance=fit
            )
            probes = dataclasses.replace(probes, fits=learn_fits(captioned_probes, hubs=False))
        probes = dataclasses.replace(probes, general=np.ones(len(rows), bool))
    mine = world.part(np.sort(order[used : used + num_own]))[0]
    remaining = order[used + num_own :]
    others = rng.permutation(np.setdiff1d(every, captioned))
    for way, side in SIDES.items():
        for size in SIZES if way == "t2i" else SIZES[:2]:
            filled = np.concatenate([remaining, others if way == "t2i" else remaining[:0]])[:size]
            if len(filled) < 0.8 * size:
                continue
            for beside in (0, num_own):
                asked = probes.beside(mine) if beside else probes
                by = f"{kind}, {used or 170}" + (f" + {num_own} own" if beside else "")
                answered = answers(world, way, side, filled, asked)
                if answered is not None:
                    yield (world.model, world.name, len(filled), way, by), answered


def answers(world, way, side, photos, probes):
    """The `Answers` of a gallery of photos, or of their captions; None where nothing is told."""
    rows = np.flatnonzero(np.isin(world.owners, photos))
    items, queries = take(world.images, photos), take(world.captions, rows)
    fit = world.fit[np.ix_(rows, photos)]
    if way == "i2t":
        photos = photos[np.isin(photos, world.owners)]
        items, queries, fit = queries, take(world.images, photos), world.fit[np.ix_(rows, photos)].T
    similarity = similarities.Cosine()
    index = Index.build(items, similarity, side=side)
    try:
        plain = dataclasses.replace(probes, general=None).calibrate(index, way)
    except ValueError:
        return None
    fits = probes.fits.get(way)
    fits = fits and dataclasses.replace(fits, trials=(), most=fits.ceiling)
    scores_at_20, ids = index.search(queries, 20)
    scores = index.scores_of(queries, scores_at_20, ids, plain.copies)
    true = float(np.take_along_axis(fit, ids[:, :1], axis=1).mean())
    # The interval is of questions about all photos; of Flickr8k's CLIP few have captions to ask.
    kinds, seen = plain.in_gallery.num_kinds, plain.in_gallery
    asking = len(np.intersect1d(photos, world.owners))
    few = (1 + kinds / min(kinds, asking)) / (1 + kinds / min(kinds, len(photos)))
    seen = dataclasses.replace(seen, deviation=seen.deviation * np.sqrt(few))
    plain = dataclasses.replace(plain, in_gallery=seen)

    def first(confidence, mean=0.0):
        shifted_fits = fits and dataclasses.replace(fits, sentence=np.add(fits.sentence, (0, mean)))
        probability = Judge(confidence, shifted_fits).probabilities(scores, scores.top, Asked())
        return probability["wanted"] if fits is None else probability["fits"][:, 0]

    def judged(mean, spread):
        is_own = probes.own_questions(way)
        confidence = calibrated_elsewhere(plain, index, probes.pairs(way), is_own, spread, mean)
        probability = first(confidence, mean)
        return probability.mean(), *(end.mean() for end in confidence.interval(probability))

    return Answers(true, _missing(first(plain), true), judged)


def elsewhere(models):
    """Mean and deviation of the rows' mean shifts of all log odds; models count alike."""
    of_each = [
        np.array([np.mean([gallery.shift for gallery in of]) for of in rows]) for rows in models
    ]
    mean = np.mean([shifts.mean() for shifts in of_each])
    squares = [np.mean((shifts - mean) ** 2) for shifts in of_each]
    return float(mean), float(np.sqrt(np.mean(squares)))


def _missing(probability, true):
    """The shift of all log odds by which what is said becomes what is true."""
    true = np.clip(true, 0.5 / len(probability), 1 - 0.5 / len(probability))
    probability = np.clip(probability, 1e-9, 1 - 1e-9)
    return brentq(lambda by: expit(logit(probability) + by).mean() - true, -30, 30)


def _contents(vectors, rng):
    """The places of photos along a random direction of what they show."""
    left_vectors, sizes, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    return left_vectors[:, :CONTENTS] * sizes[:CONTENTS] @ rng.normal(size=CONTENTS)


def _line(of, mean, spread):
    """`(cells of a row, errors, whether the interval holds)`."""
    predicted, low, high = np.array([gallery.judged(mean, spread) for gallery in of]).T
    true = np.array([gallery.true for gallery in of])
    away, holds = np.abs(predicted - true), (low <= true) & (true <= high)
    shift, width = np.mean([gallery.shift for gallery in of]), (high - low).mean()
    cells = f"{predicted.mean():.3f} | {true.mean():.3f} | {shift:+.2f} | {away.mean():.3f}"
    return f"{cells} | {away.max():.3f} | {holds.mean():.2f} | {width:.2f}", away, holds


if __name__ == "__main__":
    run(main)
