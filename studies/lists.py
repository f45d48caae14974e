"""Lists of conformal length: how often they hold the match over 1,000 splits, by confidence.

    python -m studies.lists seed-0.npz --splits 1000

A file is a model on one data set, as of `studies.galleries`. Captions of the test images ask the
gallery of all test images; their confidence is learnt on the validation gallery. Half of the images
with their captions then say how long lists have to be at 90 %, and those of the others are asked.
With `image_labels` and `caption_labels` in place of `caption_image` what is right is a class, and
every caption is drawn by itself.
"""

from pathlib import Path

import numpy as np

from zoo.cli import OneLineParser, run
from zoo.confidence import PORTABLE, Confidence, QueryScores, smallest_k
from zoo.confidence.list_length import ListLength

ERROR, MOST = 0.1, 5000


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.lists", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="models, .npz files")
    parser.add_argument("--splits", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    options = parser.parse_args(argv)
    print("| model | holds | least and most tenth | mean k | one k for all, holds |")
    print("|---|---|---|---|---|")
    for path in options.files:
        with np.load(path, allow_pickle=False) as file:
            found = study(dict(file), options.splits, options.seed)
        print(
            f"| {path.stem} | {found['holds']:.3f} | {found['tenths'].min():.3f}, "
            f"{found['tenths'].max():.3f} | {found['mean_k']:.1f} | {found['fixed']:.1f}, "
            f"{found['fixed_holds']:.3f} |"
        )
    return 0


def study(data, splits, seed=0):
    """Means over the splits of one model."""
    rng = np.random.default_rng(seed)
    calibration, test = (_asked(data, name, rng) for name in ("validation", "test"))
    confidence = Confidence.fit(calibration[0], calibration[1] == 1, names=PORTABLE)
    logits, ranks, groups, size = confidence.logit(test[0]), *test[1:]
    held, tenths, length, fixed, fixed_held = [], [], [], [], []
    for _ in range(splits):
        order = rng.permutation(np.unique(groups))
        is_known = np.isin(groups, order[: len(order) // 2])
        known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        own = np.unique(groups[known], return_inverse=True)[1]
        found = ListLength.fit(ranks[known], logits[known], own, ERROR, size + 1)(logits[new])
        k = smallest_k(ranks[known], ERROR, groups=own)
        parts = np.array_split(np.argsort(logits[new], kind="stable"), 10)
        held.append(np.mean(ranks[new] <= found))
        tenths.append([np.mean(ranks[new][part] <= found[part]) for part in parts])
        length.append(found.mean())
        fixed.append(k)
        fixed_held.append(np.mean(ranks[new] <= k))
    return {
        "holds": np.mean(held),
        "tenths": np.mean(tenths, axis=0),
        "mean_k": np.mean(length),
        "fixed": np.mean(fixed),
        "fixed_holds": np.mean(fixed_held),
    }


def _asked(data, name, rng):
    """`(scores, ranks, groups, items)` of captions of one split over its images."""
    images = np.flatnonzero(data["split"] == name)
    if "caption_labels" in data:
        labels = data["image_labels"][images]
        told = np.flatnonzero(np.isin(data["caption_labels"], labels))
        told = rng.permutation(told)[:MOST]
        own, groups = data["caption_labels"][told], np.arange(len(told))
    else:
        labels = images
        told = np.flatnonzero(np.isin(data["caption_image"], images))
        own = groups = data["caption_image"][told]
    scores = data["captions"][told] @ data["images"][images].T
    best = np.where(own[:, None] == labels, scores, -np.inf).max(axis=1)
    ranks = (scores > best[:, None]).sum(axis=1) + 1.0
    found = QueryScores.of_matrix(scores, vectors=data["images"][images])
    return found, ranks, groups, len(images)


if __name__ == "__main__":
    run(main)
