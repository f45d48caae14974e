"""What is said of words that the model hardly knows: every row of one table, measured.

    python -m studies.ends photos_pfe ../shared/data --cache CACHE --out TABLE

Asks the questions of the eye labels that taught nothing: the kept half of those of Flickr8k's test
photos and COCO's subset, and of the fresh ones (`data/README.md`). Then typos, paraphrases, single
words, small parts of galleries, and how many results hold the wanted one. Prints what each measure
found and, last, the table. `--only` runs some of the measures: their rows take the place of earlier
ones in the table, so that a run that was stopped goes on where it was.
"""

import csv
import functools
from collections.abc import Callable
from pathlib import Path

from halo_search.retriever import Retriever
from studies import first_k, wordings
from studies.absent_words import KINDS, refusals
from studies.labelled_answers import (
    LabelledAnswers,
    first_result_rows,
    order_row,
    pair_rows,
    part_rows,
)
from studies.people_data import Encoded, fresh_galleries, fresh_labels_of, labels_of, parser_of
from studies.table_rows import COLUMNS, Row
from zoo import evaluation
from zoo.cli import run

MUST = {"common": (0.05, -1), "absent, known": (0.60, 1), "absent, unknown": (0.95, 1)}
OUTDOORS = "people outdoors", 0.5


def main(argv=None):
    options = _parser().parse_args(argv)
    study = Study(options)
    table = read_table(options.out)
    for name in options.only or MEASURES:
        table[name] = MEASURES[name](study)
        if options.out is not None:
            write_table(options.out, table)
    print(f"\n| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for name in MEASURES:
        for row in table.get(name, ()):
            print(f"| {' | '.join(row)} |")
    return 0


class Study:
    """What the measures share: each is made when the first of them asks for it."""

    def __init__(self, options):
        self.options = options

    @functools.cached_property
    def handed_out(self):
        """The `LabelledAnswers` of Flickr8k's test photos and of COCO's subset."""
        options = self.options
        return self._answers(labels_of(options.folder, options.model, options.cache, options.half))

    @functools.cached_property
    def fresh(self):
        """The `LabelledAnswers` of the first test photos and of the packaged photos."""
        options = self.options
        return self._answers(
            fresh_labels_of(options.folder, options.model, options.half, options.cache)
        )

    @functools.cached_property
    def retrievers(self):
        """`Retriever`s over the first test photos and over the packaged photos."""
        options = self.options
        galleries = fresh_galleries(options.folder, options.model, options.cache).values()
        return [self.retriever(encoded.images) for encoded, _ in galleries]

    @functools.cached_property
    def test(self):
        """The `Encoded` test photos of Flickr8k."""
        options = self.options
        return Encoded.of(options.folder / "flickr8k", options.model, "test", options.cache)

    def retriever(self, images, ids=None):
        """A `Retriever` of the model over encoded photos."""
        return Retriever.build(self.options.model, images, ids=ids, probes=self._probes)

    @functools.cached_property
    def _probes(self):
        return evaluation.probes_of(self.options.model)

    def _answers(self, galleries):
        return [LabelledAnswers(self.retriever(one.images), one) for one in galleries]


def labelled_rows(study):
    """Bands of first results, log loss and areas of pairs, and the order of lists."""
    every = study.handed_out + study.fresh
    half = study.options.half
    return [
        *first_result_rows(f"handed-out, {half}", study.handed_out),
        *first_result_rows(f"fresh, {half}", study.fresh),
        *first_result_rows(f"all, {half}", every),
        *pair_rows(study.handed_out, ("Flickr8k", "COCO"), (0.30, 0.26)),
        *pair_rows(study.fresh, ("Flickr8k, fresh", "packaged, fresh"), (None, None)),
        order_row(every),
    ]


def word_rows(study):
    """How many single words are refused, by what a gallery shows."""
    rows = []
    shares = refusals(study.options)
    for kind in KINDS:
        number, share = shares[kind]
        if kind in MUST:
            limit, sign = MUST[kind]
            must = f"{'>=' if sign > 0 else '<='} {limit}"
            holds = sign * share >= sign * limit
            rows.append(Row.of(f"{kind} words ({number:.0f}), refused", share, must, holds))
        else:
            rows.append(Row.of(f"{kind} words ({number:.0f}), refused", share))
    return rows


def outdoors_rows(study):
    """What is said of a question that fits much of a gallery."""
    question, least = OUTDOORS
    probability = study.retrievers[1].ask(question).probability
    return [Row.of(f"{question!r}, packaged", probability, f">= {least}", probability >= least)]


MEASURES: dict[str, Callable[[Study], list[Row]]] = {
    "labels": labelled_rows,
    "typos": lambda study: [wordings.typo_row(study.retrievers)],
    "paraphrases": lambda study: wordings.paraphrase_rows(study.retrievers),
    "words": word_rows,
    "parts": lambda study: part_rows(study.handed_out + study.fresh, study.options.seed),
    "listed_k": lambda study: first_k.listed_rows(study.test, study.retriever, study.options.seed),
    "own_vectors": lambda study: first_k.own_vector_rows(study.options.seed),
    "outdoors": outdoors_rows,
}


def read_table(path):
    """The rows of an earlier run by their measure; none where there is no file."""
    table = {}
    if path is not None and path.is_file():
        with open(path, encoding="utf-8", newline="") as file:
            for measure, *cells in list(csv.reader(file))[1:]:
                table.setdefault(measure, []).append(Row(*cells))
    return table


def write_table(path, table):
    """Writes the rows of all measures."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("measure", *COLUMNS))
        for name in MEASURES:
            writer.writerows((name, *row) for row in table.get(name, ()))


def _parser():
    parser = parser_of("ends", __doc__, "flickr8k, coco_subset and coco_annotations")
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="measures (default all)")
    parser.add_argument(
        "--half", choices=("kept", "learn"), default="kept", help="of the labels (default kept)"
    )
    parser.add_argument("--out", type=Path, help="table (CSV) to write, or to go on with")
    return parser


if __name__ == "__main__":
    run(main)
