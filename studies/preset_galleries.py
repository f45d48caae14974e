"""What a model with probes says of galleries of many sizes, and what is so, both ways.

    python -m studies.preset_galleries photos_pfe --data-dir flickr8k --training 3000
    python -m studies.preset_galleries birds_infonce --data-dir cub --per-class 5 10 25 60

Draws photos of the test split, or so many of each class, and asks their captions over them, and
them over their captions. The model's probes calibrate on each gallery. With `--training` the last
gallery also holds photos that training has seen, with their captions. The table has means over the
draws, least and greatest in brackets.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from studies.opened import some_of
from zoo import evaluation
from zoo.arrays import joined, length, take
from zoo.cli import OneLineParser, run
from zoo.confidence import abstention_auc, expected_calibration_error
from zoo.retriever.retriever import HUBS, bank_of
from zoo.search import Index

ERROR = 0.1
DEPTH = 20
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
    model, split = evaluation.open_run(options.model, options.data_dir)
    probes = evaluation.probes_of(options.model)
    test, more = Part.of(model, split), None
    if options.training:
        split = evaluation.open_run(options.model, options.data_dir, "train")[1]
        more = Part.of(model, some_of(split, options.training))
    print(f"| gallery | direction | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 2)}|")
    count = length(test.images)
    for number in options.per_class:
        _row(f"{number} a class", model, probes, test, number, options, by_class=True)
    if options.per_class:
        return 0
    for size in (*options.sizes, count):
        _row(f"{size:,}", model, probes, test, size, options)
    _row(f"{count // 2:,}, each twice", model, probes, test, count // 2, options, times=2)
    if more is not None:
        name = f"{count:,}, {options.training:,} of training"
        _row(name, model, probes, test, count, options, more)
    return 0


def _row(name, model, probes, test, size, options, more=None, times=1, by_class=False):
    """Prints both directions of one gallery."""
    count = length(test.images)
    draws = options.draws if size < count else 1
    for direction in DIRECTIONS:
        found = []
        for draw in range(draws):
            rng = np.random.default_rng(options.seed + draw)
            photos = rng.permutation(count)
            photos = _of_each(test.image_labels, photos, size) if by_class else photos[:size]
            part, hubs = test.select(photos), HUBS[options.hubs]
            found.append(measured(model, probes, part, direction, more, times, hubs))
        cells = []
        for column in zip(*found, strict=True):
            ends = f" [{min(column):.3f}, {max(column):.3f}]" if draws > 1 else ""
            cells.append(f"{np.mean(column):.3f}{ends}")
        print(f"| {name} | {direction} | {' | '.join(cells)} |", flush=True)


def _of_each(labels, order, most):
    """The first so many of each label's rows, in an order."""
    return np.concatenate([order[labels[order] == one][:most] for one in np.unique(labels)])


def measured(model, probes, asked, direction, more=None, times=1, hubs=False):
    """The numbers of `COLUMNS`, of one gallery and all questions that have an answer there.

    Args:
        model, probes: a `DualEncoder` and its `zoo.confidence.Probes`.
        asked: a `Part`, the gallery and its questions.
        direction: `"t2i"` or `"i2t"`.
        more: a `Part` of items that no question wants, or None.
        times: how often the gallery holds each of its items.
        hubs: of `zoo.Retriever.build`.
    """
    sides = (asked.captions, asked.caption_labels), (asked.images, asked.image_labels)
    (queries, wants), (items, labels) = sides if direction == "t2i" else sides[::-1]
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
    parser.add_argument("--training", type=int, default=0, help="photos of training, of the last")
    parser.add_argument(
        "--hubs", choices=HUBS, default="auto", help="whether they are corrected (default auto)"
    )
    parser.add_argument("--draws", type=int, default=3, help="of each gallery (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
