"""What a model with probes says of galleries of many sizes, and what is so, both ways.

    python -m studies.preset_galleries photos_pfe --data-dir flickr8k --training 3000
    python -m studies.preset_galleries birds_infonce --data-dir cub --per-class 5 10 25 60

Draws photos of the test split, or so many of each class, and asks their captions over them, and
them over their captions. The model's probes calibrate on each gallery. Of classes the questions are
also those of other photos of the same classes, which the gallery does not hold. With `--halves`
half of the photos are the probes, and galleries are of the other half: what is then off is no fault
of the model's probes. With `--training` the last gallery also holds photos that training has seen,
with their captions. The table has means over the draws, least and greatest in brackets.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from studies.opened import some_of
from zoo import evaluation
from zoo.cli import OneLineParser, run
from zoo.confidence import Probes, abstention_auc, expected_calibration_error
from zoo.data.datasets import SPLITS
from zoo.embeddings.arrays import joined, length, take
from zoo.retriever.parts import HUBS, bank_of
from zoo.search import Index

ERROR = 0.1
DEPTH = 20
OTHERS = 600  # photos that a gallery of classes does not hold, at most, which are asked about
DIRECTIONS = ("t2i", "i2t")
COLUMNS = (
    *("said", "right", "said − right", "error", "k at 90 %", "holds", "nAUC", "interval holds"),
    *("R@5", "R@10"),
)


class Part(NamedTuple):
    """Images and captions, dicts of arrays, their labels, and the row of each caption's image."""

    images: dict
    captions: dict
    image_labels: np.ndarray
    caption_labels: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, model, split):
        encoded = evaluation.encode(model, split.records, split.source)
        records = split.records
        labels = records.image_labels, records.caption_labels
        return cls(encoded.images, encoded.captions, *labels, records.caption_image)

    def select(self, images):
        """Some images and their captions."""
        captions = np.flatnonzero(np.isin(self.owners, images))
        return Part(
            take(self.images, images),
            take(self.captions, captions),
            self.image_labels[images],
            self.caption_labels[captions],
            self.owners[captions],
        )


def main(argv=None):
    options = _parser().parse_args(argv)
    model, split = evaluation.open_run(options.model, options.data_dir, options.split)
    probes = evaluation.probes_of(options.model)
    test, more = Part.of(model, split), None
    if options.training:
        split = evaluation.open_run(options.model, options.data_dir, "train")[1]
        more = Part.of(model, some_of(split, options.training))
    print(f"| gallery | direction | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 2)}|")
    count = length(test.images)
    for number in options.per_class:
        for others in (False, True):
            _classes(number, model, probes, test, options, others)
    if options.halves:
        for size in (*options.sizes, count // 2):
            _halves(size, model, test, options)
    if options.per_class or options.halves:
        return 0
    for size in (*options.sizes, count):
        _row(f"{size:,}", model, probes, test, size, options)
    _row(f"{count // 2:,}, each twice", model, probes, test, count // 2, options, times=2)
    if more is not None:
        name = f"{count:,}, {options.training:,} of training"
        _row(name, model, probes, test, count, options, more)
    return 0


def _row(name, model, probes, test, size, options, more=None, times=1):
    """Prints both directions of one gallery."""
    count = length(test.images)
    draws = options.draws if size < count else 1
    for direction in DIRECTIONS:
        found = []
        for draw in range(draws):
            photos = np.random.default_rng(options.seed + draw).permutation(count)[:size]
            gallery = test.select(photos)
            hubs = HUBS[options.hubs]
            found.append(measured(model, probes, gallery, gallery, direction, more, times, hubs))
        _print(name, direction, found)


def _classes(number, model, probes, test, options, others):
    """Prints both directions of a gallery of so many photos of each class, asked about its own
    photos or about others of the same classes."""
    for direction in DIRECTIONS:
        found = []
        for draw in range(options.draws):
            rng = np.random.default_rng(options.seed + draw)
            photos = rng.permutation(length(test.images))
            chosen = asked = of_each(test.image_labels, photos, number)
            if others:
                asked = rng.permutation(np.setdiff1d(photos, chosen))[:OTHERS]
            if len(asked):
                parts = test.select(asked), test.select(chosen)
                found.append(measured(model, probes, *parts, direction, hubs=HUBS[options.hubs]))
        if found:
            of = ", other photos" if others else ""
            _print(f"{number} a class{of}", direction, found)


def _halves(size, model, test, options):
    """Prints both directions of galleries of one half of the photos; the other half are probes."""
    count = length(test.images)
    for direction in DIRECTIONS:
        found = []
        for draw in range(options.draws):
            order = np.random.default_rng(options.seed + draw).permutation(count)
            gallery, rest = test.select(order[: count // 2][:size]), np.sort(order[count // 2 :])
            part = test.select(rest)
            sides = part.images, part.captions, part.image_labels, part.caption_labels
            probes = Probes.of(*sides, np.searchsorted(rest, part.owners))
            hubs = HUBS[options.hubs]
            found.append(measured(model, probes, gallery, gallery, direction, hubs=hubs))
        _print(f"{size:,}, probes of the other half", direction, found)


def _print(name, direction, found):
    cells = []
    for column in zip(*found, strict=True):
        ends = f" [{min(column):.3f}, {max(column):.3f}]" if len(found) > 1 else ""
        cells.append(f"{np.mean(column):.3f}{ends}")
    print(f"| {name} | {direction} | {' | '.join(cells)} |", flush=True)


def of_each(labels, order, most):
    """The first so many of each label's rows, in an order."""
    return np.concatenate([order[labels[order] == one][:most] for one in np.unique(labels)])


def sides_of(asked, gallery, direction):
    """`(queries, labels), (items, labels)` of two `Part`s in a direction."""
    if direction == "t2i":
        return (asked.captions, asked.caption_labels), (gallery.images, gallery.image_labels)
    return (asked.images, asked.image_labels), (gallery.captions, gallery.caption_labels)


def measured(model, probes, asked, gallery, direction, more=None, times=1, hubs=False):
    """The numbers of `COLUMNS`, of one gallery and questions that have an answer there.

    Args:
        model, probes: a `DualEncoder` and its `zoo.confidence.Probes`.
        asked: a `Part` with the questions.
        gallery: a `Part` with the items.
        direction: `"t2i"` or `"i2t"`.
        more: a `Part` of items that no question wants, or None.
        times: how often the gallery holds each of its items.
        hubs: of `zoo.Retriever.build`.
    """
    (queries, wants), (items, labels) = sides_of(asked, gallery, direction)
    items, labels = joined([items] * times), np.tile(labels, times)
    if more is not None:
        others = more.images if direction == "t2i" else more.captions
        items = joined([items, others])
        labels = np.append(labels, np.full(length(others), -1))
    side = "images" if direction == "t2i" else "captions"
    bank, _ = bank_of(hubs, lambda: items, model.similarity, side, probes)
    index = Index.build(items, model.similarity, side=side, hubs=bank)
    confidence = probes.calibrate(index, direction)
    scores, ids = index.search(queries, len(index))
    best = index.query_scores(queries, scores[:, :DEPTH], ids[:, :DEPTH], confidence.copies)
    probability = confidence.probability(best)
    is_wanted = labels[ids] == wants[:, None]
    right, ranks = is_wanted[:, 0], 1 + np.argmax(is_wanted, axis=1)
    k = confidence.first_k(ERROR)
    low, high = (ends.mean() for ends in confidence.interval(probability, ERROR))
    return (
        probability.mean(),
        right.mean(),
        probability.mean() - right.mean(),
        expected_calibration_error(probability, right),
        k,
        np.mean(ranks <= k),
        abstention_auc(probability, right),
        low <= right.mean() <= high,
        np.mean(ranks <= 5),
        np.mean(ranks <= 10),
    )


def _parser():
    parser = OneLineParser(prog="python -m studies.preset_galleries", description=__doc__)
    parser.add_argument("model", help="a preset or a run with probes")
    parser.add_argument("--data-dir", type=Path, help="its data, where they have moved")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 250], help="of galleries")
    parser.add_argument("--per-class", nargs="+", type=int, default=[], help="photos of each class")
    parser.add_argument("--split", default="test", choices=SPLITS, help="that is asked (test)")
    parser.add_argument("--halves", action="store_true", help="one half are the probes")
    parser.add_argument("--training", type=int, default=0, help="photos of training, of the last")
    parser.add_argument(
        "--hubs", choices=HUBS, default="auto", help="whether they are corrected (default auto)"
    )
    parser.add_argument("--draws", type=int, default=3, help="of each gallery (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
