"""How much retrieval gains by asking the gallery twice, for one or several runs.

    python -m studies.expansion runs/seed-0 runs/seed-1              # means ± deviations
    python -m studies.expansion runs/seed-0 runs/seed-1 --together   # of both as one model

compares retrieval as encoded with that by an augmented gallery, by expanded queries, and by both.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.publishing import publish, ranking
from studies.query_expansion import NEIGHBOURS, WEIGHT, augment_gallery, check, expand_queries
from studies.statistics import mean_and_deviation
from studies.together import together
from zoo import metrics, similarities
from zoo.cli import OneLineParser, run
from zoo.errors import InputError
from zoo.evaluation import EncodedSplit, encode, open_run
from zoo.metrics.retrieval import summarise

WAYS = {
    "plain": "as encoded",
    "gallery": "gallery augmented",
    "queries": "queries expanded",
    "both": "both",
}
MEASURES = ("r_precision", "recall@1", "map@r")


def main(argv=None):
    options = _parser().parse_args(argv)
    if options.together and options.ranking != "own":
        raise InputError("--ranking must not be given with --together, which ranks by the cosine")
    publish("expansion", options, _study_of, expansion_table, options.together)


def expansion_study(
    encoded: EncodedSplit,
    similarity: Any,
    neighbours: int = NEIGHBOURS,
    weight: float = WEIGHT,
) -> dict[str, dict[str, float]]:
    """Retrieval of a split as encoded, with its gallery augmented, its queries expanded, and both.

    A query is expanded alone, by the gallery of the other side. Queries do not see each other.

    Args:
        encoded: the `EncodedSplit`.
        similarity: to rank by, such as the model's.
        neighbours, weight: see `augment_gallery`.

    Returns:
        A dict from `"plain"`, `"gallery"`, `"queries"` and `"both"` to figures in percent, such as
        `"i2t_r_precision"`.

    Raises:
        ValueError: as `augment_gallery`.
    """
    sides = {"i2t": (encoded.images, encoded.captions), "t2i": (encoded.captions, encoded.images)}
    found = {way: {} for way in WAYS}
    for direction, (queries, gallery) in sides.items():
        augmented = augment_gallery(gallery, neighbours, weight)
        ways = {
            "plain": (queries, gallery),
            "gallery": (queries, augmented),
            "queries": (expand_queries(queries, gallery, neighbours, weight), gallery),
            "both": (expand_queries(queries, augmented, neighbours, weight), augmented),
        }
        for way, asked in ways.items():
            images, captions = asked if direction == "i2t" else asked[::-1]
            if way == "plain":
                pairs = encoded.kept_pairs(similarity)
            else:
                pairs = metrics.PairwiseSimilarity(images, captions, similarity)
            truth = encoded.relevance
            if direction == "t2i":
                pairs, truth = pairs.transposed(), truth.transposed()
            figures = summarise(metrics.rank_queries(pairs, truth))
            found[way] |= {f"{direction}_{name}": figures[name] for name in MEASURES}
    return found


def expansion_table(studies: Sequence[dict[str, Any]]) -> str:
    """The table of some runs' `expansion_study` in Markdown, means ± standard deviations."""
    lines = ["| | R-P i2t / t2i | R@1 i2t / t2i | mAP@R i2t / t2i |", f"|{'---|' * 4}"]
    for way, title in WAYS.items():
        cells = [
            " / ".join(
                mean_and_deviation([study[way][f"{direction}_{name}"] for study in studies], ".1f")
                for direction in ("i2t", "t2i")
            )
            for name in MEASURES
        ]
        lines.append(f"| {' | '.join((title, *cells))} |")
    return "\n".join(lines) + "\n"


def _study_of(names, options):
    splits = []
    try:
        for name in names:
            model, test = open_run(name, options.data_dir)
            similarity = ranking(model, options.ranking)
            fewest = min(test.records.num_images, test.records.num_captions)
            check(options.neighbours, options.weight, fewest)  # before minutes of encoding
            splits.append(encode(model, test.records, test.source))
        if options.together:
            splits, similarity = [together(splits)], similarities.Cosine()
        return expansion_study(*splits, similarity, options.neighbours, options.weight)
    except ValueError as error:
        raise InputError(f"{' and '.join(names)}: {error}") from error


def _parser():
    parser = OneLineParser(prog="python -m studies.expansion", description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or presets")
    parser.add_argument("--out", type=Path, help="folder for expansion.json and expansion.md")
    parser.add_argument("--data-dir", type=Path, help="the runs' data set, if it has moved")
    names = ", ".join(similarities.NAMES)
    parser.add_argument("--ranking", default="own", help=f"own (default), {names}")
    parser.add_argument(
        "--together", action="store_true", help="take the runs as one model, by their mean cosine"
    )
    parser.add_argument(
        "--neighbours", type=int, default=NEIGHBOURS, help=f"averaged (default {NEIGHBOURS})"
    )
    parser.add_argument(
        "--weight", type=float, default=WEIGHT, help=f"of the neighbours (default {WEIGHT})"
    )
    return parser


if __name__ == "__main__":
    run(main)
