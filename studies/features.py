"""What each feature of the probability is worth: fitted without it, and with it alone.

    python -m studies.features photos_pfe --data-dir flickr8k --sizes 250
    python -m studies.features birds_infonce --data-dir cub --per-class 10

The model's probes teach the regression in front of galleries of the test split, and its questions
are asked over them. Prints nAUC (0 random, 1 an oracle) and said − right of the one item in mind,
means over galleries.
"""

import itertools
from pathlib import Path

import numpy as np

from studies.preset_galleries import DEPTH, DIRECTIONS, Part, of_each, sides_of
from zoo import evaluation
from zoo.cli import OneLineParser, run
from zoo.confidence import Confidence, abstention_auc, feature_names
from zoo.confidence import guarantees as of_groups
from zoo.confidence.calibrate import ask_probes, moved
from zoo.embeddings.arrays import length
from zoo.search import Index


def main(argv=None):
    options = _parser().parse_args(argv)
    model, split = evaluation.open_run(options.model, options.data_dir)
    probes, test = evaluation.probes_of(options.model), Part.of(model, split)
    print("| features | gallery | direction | nAUC | said − right |\n|---|---|---|---|---|")
    galleries = [(size, False) for size in options.sizes]
    galleries += [(number, True) for number in options.per_class]
    for (size, by_class), direction in itertools.product(galleries, DIRECTIONS):
        found = {}
        for draw in range(options.draws):
            photos = np.random.default_rng(options.seed + draw).permutation(length(test.images))
            photos = of_each(test.image_labels, photos, size) if by_class else photos[:size]
            for name, row in measured(model, probes, test.select(photos), direction).items():
                found.setdefault(name, []).append(row)
        name = f"{size} a class" if by_class else f"{size:,}"
        for features, rows in found.items():
            area, away = np.mean(rows, axis=0)
            print(f"| {features} | {name} | {direction} | {area:.3f} | {away:+.3f} |", flush=True)
    return 0


def measured(model, probes, part, direction):
    """`{features: (nAUC, said − right)}` over one gallery, a `Part` whose questions are asked."""
    (queries, wants), (items, labels) = sides_of(part, part, direction)
    index = Index.build(
        items, model.similarity, side="images" if direction == "t2i" else "captions"
    )
    pairs = probes.pairs(direction)
    probed, _, copies, _ = ask_probes(index, pairs["queries"], pairs["own"], pairs["matches"])
    numbers = of_groups.numbered(pairs["groups"], len(probed))
    scores, ids = index.search(queries, DEPTH)
    asked = index.query_scores(queries, scores, ids, copies)
    right, found = labels[ids[:, 0]] == wants, {}
    for name, names in subsets(feature_names(probed.scores)).items():
        confidence = Confidence.fit(probed.scores, probed.correct, names=names, groups=numbers)
        shift = confidence.logistic.missing_bias(
            confidence.features(probed.scores), probed.correct, of_groups.weights(numbers)
        )
        said = moved(confidence, shift).probability(asked)
        found[name] = abstention_auc(said, right), said.mean() - right.mean()
    return found


def subsets(names):
    """All features, all but one, and each alone: lists of names by what they are called."""
    found = {"all": list(names)}
    found |= {f"without {left}": [name for name in names if name != left] for left in names}
    return found | {f"{name} alone": [name] for name in names}


def _parser():
    parser = OneLineParser(prog="python -m studies.features", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a preset or a run with probes")
    parser.add_argument("--data-dir", type=Path, help="its data, where they have moved")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="of galleries")
    parser.add_argument("--per-class", nargs="+", type=int, default=[], help="photos of each class")
    parser.add_argument("--draws", type=int, default=3, help="of each gallery (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
