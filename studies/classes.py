"""Whether confidence is true where matches are by class: probes of other unseen classes.

    python -m studies.classes birds.npz --per-class 40 20 5 --draws 20

A file has `images` and `captions`, unit vectors of a model, `image_labels` and `caption_labels`,
classes, and `split` (N,) of the images: `"validation"` for the classes of the probes, `"test"` for
those that are asked. Of each draw a gallery has so many photos of every test class. The table has
the mean probability less the share of right answers: as calibrated on the validation gallery of
40 photos a class (before), and by probes on the gallery itself, of which the number of photos a
class is seen, or said (`matches_in_gallery`). `Confidence.interval` at 90 %, where it is seen,
should hold the share in nine draws of ten. The last column is an oracle: what is left when the
asked classes' own captions, the other half of them, are the probes.
"""

from pathlib import Path

import numpy as np

from zoo.cli import OneLineParser, run
from zoo.confidence import PORTABLE, Confidence, calibrate_on, expected_calibration_error
from zoo.search import Index

PROBES, OWN, ASKED, BEFORE = 1000, 1000, 3000, 40


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.classes", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="a model, .npz")
    parser.add_argument("--per-class", type=int, nargs="+", default=[40, 20, 5], help="photos")
    parser.add_argument("--draws", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--share", type=float, default=0.5, help="of the classes, a draw (0.5)")
    options = parser.parse_args(argv)
    with np.load(options.file, allow_pickle=False) as file:
        data = dict(file)
    print(
        "| photos a class | said − right: mean, least, most | interval holds, half width | error | "
        "their number said: mean, its ends | before: mean, its ends | oracle: mean, its ends |"
    )
    print("|---|---|---|---|---|---|---|")
    for count in options.per_class:
        away, held, width, error, given, before, oracle = np.array(
            [draw(data, count, seed, options.share) for seed in range(options.draws)]
        ).T
        print(
            f"| {count} | {_ends(away)} | {held.mean():.2f}, {width.mean():.3f} | "
            f"{error.mean():.3f} | {_ends(given)} | {_ends(before)} | {_ends(oracle)} |",
            flush=True,
        )
    return 0


def _ends(values):
    return f"{values.mean():+.3f}, {values.min():+.3f}, {values.max():+.3f}"


def draw(data, count, seed, share=0.5):
    """Of one draw of classes, of a share of those of the probes and of those that are asked:
    `(said − right, whether the interval holds it, half its width, calibration error)`, and said −
    right with the number of photos said, before, and by the oracle."""
    rng = np.random.default_rng(seed)
    test, validation = (_some(data, name, share, rng) for name in ("test", "validation"))
    images, labels = _gallery(data, test, count, rng)
    index = Index.build({"mean": data["images"][images]}, "cosine")
    asked = _captions(data, test, ASKED, rng)
    queries = {"mean": data["captions"][asked]}
    right = labels[index.search(queries, 1)[1][:, 0]] == data["caption_labels"][asked]
    told = _captions(data, validation, PROBES, rng)
    own = rng.permutation(np.flatnonzero(np.isin(data["image_labels"], validation)))[:OWN]
    matches = data["caption_labels"][told][:, None] == data["image_labels"][own]
    probes = {"mean": data["captions"][told]}
    confidence, by_number = (
        calibrate_on(
            index,
            probes,
            {"mean": data["images"][own]},
            matches,
            matches_in_gallery=number,
            seed=seed,
        )
        for number in (None, count)
    )
    said = index.probability(queries, confidence)
    given = index.probability(queries, by_number).mean() - right.mean()
    old, old_labels = _gallery(data, validation, BEFORE, rng)
    there = Index.build({"mean": data["images"][old]}, "cosine")
    correct = old_labels[there.search(probes, 1)[1][:, 0]] == data["caption_labels"][told]
    before = Confidence.fit(there.query_scores(probes), correct, names=PORTABLE, penalty=0.03)
    before = before.probability(index.query_scores(queries)).mean() - right.mean()
    low, high = (ends.mean() for ends in confidence.interval(said))
    return (
        said.mean() - right.mean(),
        low <= right.mean() <= high,
        (high - low) / 2,
        expected_calibration_error(said, right),
        given,
        before,
        _oracle(index, queries, right, rng),
    )


def _oracle(index, queries, right, rng):
    """Said less right of one half of the questions, calibrated on the other half."""
    rows = rng.permutation(len(right))
    told, asked = np.array_split(rows, 2)
    scores = index.query_scores(queries)
    confidence = Confidence.fit(scores.take(told), right[told], names=PORTABLE)
    return confidence.probability(scores.take(asked)).mean() - right[asked].mean()


def _some(data, split, share, rng):
    classes = np.unique(data["image_labels"][data["split"] == split])
    return rng.permutation(classes)[: int(np.ceil(share * len(classes)))]


def _gallery(data, classes, count, rng):
    rows = [np.flatnonzero(data["image_labels"] == one) for one in classes]
    rows = np.concatenate([rng.permutation(one)[:count] for one in rows])
    return rows, data["image_labels"][rows]


def _captions(data, classes, most, rng):
    return rng.permutation(np.flatnonzero(np.isin(data["caption_labels"], classes)))[:most]


if __name__ == "__main__":
    run(main)
