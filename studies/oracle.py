"""The oracle of what fits, from people's judgments: its weights, and how good it is.

    python -m studies.oracle ../shared/data/flickr8k --out zoo/evaluation/oracle.json

Reads the photos' captions through the sentence encoder of `photos_pfe` (MiniLM) and the scores of
that model. Halves of the photos say how good it is: fitted on pairs within one half, tested on
pairs within the other.
"""

from pathlib import Path

import numpy as np

from halo_search.confidence.features import Logistic
from halo_search.files.json_files import write_json
from studies.judgments import Judgments
from studies.people_data import Encoded
from studies.statistics import auroc
from zoo.cli import OneLineParser, run
from zoo.evaluation.relevance import COLUMNS, caption_features, score_scale

NAMES = (*COLUMNS, "score")
READS = {"captions": [0, 1, 2], "captions and score": [0, 1, 2, 3]}
PENALTY = 1e-4
DIGITS = 3  # that any processor prints alike
HALVES = 3


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.oracle", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="of Flickr8k, with judgments.csv")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--cache", type=Path, help="folder to keep the encoded photos in")
    options = parser.parse_args(argv)
    data = Encoded.of(options.folder, "photos_pfe", "test", cache=options.cache)
    table, truth = pairs_of(data, Judgments.read(options.folder))
    known = ~np.isnan(truth) & ~np.eye(len(truth), dtype=bool)
    print(f"{known.sum():,} judged pairs of strangers, {truth[known].mean():.1%} fit")
    print("| half | reads | AUC | said | fit |\n|---|---|---|---|---|")
    for seed in range(HALVES):
        is_first_half = np.random.default_rng(seed).permutation(len(truth)) < len(truth) // 2
        for name, columns in READS.items():
            for learn, test in ((is_first_half, ~is_first_half), (~is_first_half, is_first_half)):
                a, b = (known & part[:, None] & part for part in (learn, test))
                fitted = Logistic.fit(table[a][:, columns], truth[a], PENALTY)
                probability = fitted.probability(table[b][:, columns])
                area = auroc(probability[truth[b] > 0], probability[truth[b] == 0])
                print(
                    f"| {seed} | {name} | {area:.3f} | {probability.mean():.3f} "
                    f"| {truth[b].mean():.3f} |"
                )
    weights = weights_of(table[known], truth[known])
    print(weights)
    if options.out is not None:
        command = "python -m studies.oracle FLICKR8K --out zoo/evaluation/oracle.json"
        pairs = int(known.sum())
        write_json(options.out, {"weights": weights, "judged_pairs": pairs, "command": command})
    return 0


def weights_of(table, truth):
    """What `zoo.evaluation.relevance` reads, fitted on some judged pairs: `(P, 4)` and `(P,)`."""
    weights = {}
    for name, columns in READS.items():
        slopes, bias = Logistic.fit(table[:, columns], truth, PENALTY).plain()
        names = [*(NAMES[column] for column in columns), "bias"]
        weights[name] = dict(
            zip(names, np.append(slopes, bias).round(DIGITS).tolist(), strict=True)
        )
    return weights


def weights_within(table, truth, part):
    """Those of the judged pairs whose caption and photo are of a part `(N,)` of the photos."""
    known = ~np.isnan(truth) & ~np.eye(len(truth), dtype=bool)
    pairs = known & part[:, None] & part
    return weights_of(table[pairs], truth[pairs])


def pairs_of(data, judgments):
    """`(features (Q, N, 4), fits (Q, N))` of the third caption of each photo and all photos."""
    asked = np.array([np.flatnonzero(data.owners == photo)[2] for photo in range(len(data.names))])
    truth = judgments.matrix(data.names, data.names)
    scores = data.scores(asked)
    low, high = score_scale(scores, np.eye(len(scores), dtype=bool))
    captions_features = caption_features(data.sentences, asked, data.owners, len(data.names))
    columns = np.concatenate([part for _, part in captions_features], axis=1)
    share = (scores - low) / (high - low)
    return np.stack([*columns, share], axis=2), truth


if __name__ == "__main__":
    run(main)
