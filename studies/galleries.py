"""Whether confidence is true on the gallery that is asked: galleries of many sizes, one model.

    python -m studies.galleries seed-0.npz seed-1.npz seed-2.npz --out galleries

Each file is a model on one data set: `images` (N, dim) and `captions` (M, dim), unit vectors of the
model; `caption_image` (M,), the row of each caption's image; `split` (N,), which images are
`"train"`, `"validation"` and `"test"`. Captions ask for images, and the answer is right if the
caption's own image comes first. Probes are two captions each of the validation images. For every
gallery the table has the mean probability and the share of right answers, the calibration error
over ten bins, and the first k promised at 90 % with what it holds: as calibrated on the validation
gallery (before), and by probes on the gallery itself, with how often `Confidence.interval` at 90 %
holds the share of right answers. Small galleries are drawn several times.
"""

import json
from pathlib import Path

import numpy as np

from zoo.cli import OneLineParser, run
from zoo.confidence import (
    PORTABLE,
    Confidence,
    calibrate_on,
    expected_calibration_error,
    smallest_k,
)
from zoo.search import Index

ERROR = 0.1
PER_IMAGE = 2  # captions of a validation image that are probes


def main(argv=None):
    options = _parser().parse_args(argv)
    rows = {}
    for path in options.files:
        with np.load(path, allow_pickle=False) as file:
            for name, found in study(dict(file), options).items():
                rows.setdefault(name, []).extend(found)
    table = _table(rows)
    print(table)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "galleries.md").write_text(table + "\n", encoding="utf-8")
        (options.out / "galleries.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def study(data, options):
    """The figures of every gallery of one model: by its name a list of dicts, one a draw."""
    rng = np.random.default_rng(options.seed)
    owner, split = data["caption_image"], data["split"]
    rows = {name: np.flatnonzero(split == name) for name in ("train", "validation", "test")}
    asked = _some_captions(owner, rows["validation"], rng, PER_IMAGE)
    asked = rng.permutation(asked)[: options.probes]
    queries, own, groups = data["captions"][asked], data["images"][owner[asked]], owner[asked]
    before = _on_validation(data, rows["validation"], asked)
    found = {}
    for draw in range(options.draws):
        for name, items in _galleries(rows["test"], rows["train"], rng).items():
            if draw and len(rows["test"]) <= len(np.unique(items)):
                continue  # there is one such gallery
            index = Index.build({"mean": data["images"][items]}, "cosine")
            confidence = calibrate_on(
                index, {"mean": queries}, {"mean": own}, groups=groups, seed=options.seed
            )
            told = np.flatnonzero(np.isin(owner, np.intersect1d(items, rows["test"])))
            captions, owners = data["captions"][told], owner[told]
            here = _measured(index, items, captions, owners, confidence)
            old = _measured(index, items, captions, owners, *before)
            here |= {f"before_{key}": value for key, value in old.items()}
            found.setdefault(name, []).append(here)
    return found


def _galleries(test, train, rng):
    """Rows of images by the gallery's name."""
    test, train = rng.permutation(test), rng.permutation(train)
    return {
        **{f"{n:,} test": test[:n] for n in (100, 250, 1000) if n <= len(test)},
        **{
            f"{len(test):,} test + {n:,} training": np.concatenate([test, train[:n]])
            for n in (3000, len(train))
            if 0 < n <= len(train)
        },
        f"{len(test) // 2:,} test, each twice": np.repeat(test[: len(test) // 2], 2),
    }


def _on_validation(data, images, asked):
    """A calibration as it was made before: over the validation gallery. With the k at 90 %."""
    owner = data["caption_image"][asked]
    index = Index.build({"mean": data["images"][images]}, "cosine")
    queries = {"mean": data["captions"][asked]}
    ids = index.search(queries, len(index))[1]
    ranks = 1 + np.argmax(images[ids] == owner[:, None], axis=1)
    scores = index.query_scores(queries)
    confidence = Confidence.fit(scores, ranks == 1, names=PORTABLE)
    return confidence, smallest_k(ranks, ERROR, len(index))


def _measured(index, items, captions, owner, confidence, k=None):
    """What a calibration says of a gallery, and what is so."""
    queries = {"mean": captions}
    scores = index.query_scores(queries, copies=confidence.copies)
    probability = confidence.probability(scores)
    ids = index.search(queries, len(index))[1]
    is_own = items[ids] == owner[:, None]
    correct, ranks = is_own[:, 0], 1 + np.argmax(is_own, axis=1)
    result = {
        "questions": len(owner),
        "said": float(probability.mean()),
        "right": float(correct.mean()),
        "error": expected_calibration_error(probability, correct),
    }
    if k is None:
        k = confidence.first_k(ERROR)
        lengths = confidence.first_k(ERROR, scores)
        tenths = np.array_split(np.argsort(probability, kind="stable"), 10)
        held = [float(np.mean(ranks[part] <= lengths[part])) for part in tenths]
        low, high = (ends.mean() for ends in confidence.interval(probability, ERROR))
        result |= {
            "within": float(low <= correct.mean() <= high),
            "half_width": float(high - low) / 2,
            "list": float(lengths.mean()),
            "list_holds": float(np.mean(ranks <= lengths)),
            "least_tenth": min(held),
            "most_tenth": max(held),
        }
    return {**result, "k": int(k), "holds": float(np.mean(ranks <= k))}


def _some_captions(owner, images, rng, count):
    """At most `count` captions of each image, drawn at random."""
    order = rng.permutation(np.flatnonzero(np.isin(owner, images)))
    place = np.argsort(owner[order], kind="stable")
    owners = owner[order][place]
    rank = np.arange(len(place)) - np.searchsorted(owners, owners, side="left")
    return np.sort(order[place][rank < count])


def _table(rows):
    """Means over models and draws, the greatest difference in brackets."""
    lines = [
        "| gallery | before: said / right, error | k at 90 %: holds | "
        "with probes: said / right (greatest difference), error | interval: half, holds | "
        "k at 90 %: holds | a list for each question: mean k, holds, least and most tenth |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, draws in rows.items():
        mean = {key: float(np.mean([one[key] for one in draws])) for key in draws[0]}
        away = max(abs(one["said"] - one["right"]) for one in draws)
        lines.append(
            f"| {name} | {mean['before_said']:.2f} / {mean['before_right']:.2f}, "
            f"{mean['before_error']:.2f} | {mean['before_k']:.0f}: {mean['before_holds']:.3f} | "
            f"{mean['said']:.3f} / {mean['right']:.3f} ({away:.3f}), {mean['error']:.3f} | "
            f"{mean['half_width']:.3f}, {mean['within']:.2f} of {len(draws)} | "
            f"{mean['k']:.0f}: {mean['holds']:.3f} | {mean['list']:.0f}: {mean['list_holds']:.3f}, "
            f"{mean['least_tenth']:.2f}, {mean['most_tenth']:.2f} |"
        )
    return "\n".join(lines)


def _parser():
    parser = OneLineParser(prog="python -m studies.galleries", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="models, .npz files")
    parser.add_argument("--out", type=Path, help="folder for galleries.md and galleries.json")
    parser.add_argument("--probes", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--draws", type=int, default=5, help="of small galleries (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
