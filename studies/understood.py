"""How many everyday questions a preset understands, and how many strange texts it declines.

    python -m studies.understood photos_pfe ../shared/data

Asks the packaged photos by the lists in tests/questions, which were written before any preset was
asked, and by every tenth caption of Flickr8k's test photos.
"""

import csv
from pathlib import Path

import numpy as np

from halo_search import Retriever, packaged_photos
from halo_search.confidence.judge import NOT_UNDERSTOOD
from studies.people_data import parser_of
from zoo.cli import run

LISTS = Path(__file__).parents[1] / "tests" / "questions"


def main(argv=None):
    options = parser_of("understood", __doc__, "flickr8k").parse_args(argv)
    retriever = Retriever.build(options.model, packaged_photos())
    questions = {
        "everyday questions": lines_of("ordinary_photos"),
        "captions of test photos": captions_of(options.folder / "flickr8k"),
        "strange texts": lines_of("strange"),
    }
    print("| asked | number | understood |\n|---|---|---|")
    for name, texts in questions.items():
        answers = retriever.ask(texts, k=1)
        share = np.mean([answer.verdict != NOT_UNDERSTOOD for answer in answers])
        print(f"| {name} | {len(texts)} | {100 * share:.1f} % |", flush=True)
    return 0


def lines_of(name):
    """The questions of a list."""
    return (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def captions_of(folder):
    """Every tenth caption of the test photos."""
    with open(folder / "pairs.csv", encoding="utf-8", newline="") as file:
        return [row["caption"] for row in csv.DictReader(file) if row["split"] == "test"][::10]


if __name__ == "__main__":
    run(main)
