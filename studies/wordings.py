"""What is said of typos, and of two wordings of one question (`data/README.md`)."""

import csv
from pathlib import Path

import numpy as np

from halo_search.confidence.judge import ABSENT, LIKELY, NOT_UNDERSTOOD
from studies.table_rows import Row

DATA = Path(__file__).parent / "data"
ENOUGH_RIGHT, APART, MOST_OPPOSITE = 36, 0.1, 3  # typos; paraphrases, per gallery


def rows_of(name):
    """The rows of a table beside the studies."""
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def typo_row(retrievers):
    """A `Row` on how many typos get the verdict of the right spelling and say what was asked."""
    counts, rows = [], rows_of("typos.csv")
    for retriever in retrievers:
        missed = []
        for row in rows:
            typed, meant = retriever.ask([row["typed"], row["meant"]])
            if typed.verdict != meant.verdict or typed.asked is None:
                missed.append(f"{row['typed']} ({typed.asked}: {typed.verdict})")
        print(f"\ntypos that are not answered as the right spelling: {', '.join(missed)}")
        counts.append(len(rows) - len(missed))
    measured = " and ".join(map(str, counts))
    what = f"of {len(rows)} typos, answered as the right spelling"
    return Row.of(what, measured, f">= {ENOUGH_RIGHT}", min(counts) >= ENOUGH_RIGHT)


def paraphrase_rows(retrievers):
    """`Row`s on how far apart is what is said of two wordings, and how often verdicts are
    opposite: one likely, the other that nothing matches."""
    apart, opposite, pairs = [], [], rows_of("paraphrases.csv")
    for retriever in retrievers:
        asked = [text for row in pairs for text in (row["first"], row["second"])]
        answers, contradictions = retriever.ask(asked), []
        for row, first, second in zip(pairs, answers[::2], answers[1::2], strict=True):
            verdicts = {first.verdict, second.verdict}
            if LIKELY in verdicts and verdicts & {ABSENT, NOT_UNDERSTOOD}:
                contradictions.append(f"{row['first']} / {row['second']}")
            if first.fits is not None and second.fits is not None:
                apart.append(abs(first.probability - second.probability))
        print(f"\nparaphrases with opposite verdicts: {', '.join(contradictions)}")
        opposite.append(len(contradictions))
    median = np.median(apart)
    most, measured = max(opposite), " and ".join(map(str, opposite))
    return [
        Row.of("paraphrases: median difference", median, "<= .10", median <= APART),
        Row.of(
            f"of {len(pairs)} paraphrases, opposite",
            measured,
            f"<= {MOST_OPPOSITE}",
            most <= MOST_OPPOSITE,
        ),
    ]
