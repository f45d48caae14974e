"""What is said of words that the model hardly knows: bands, typos, paraphrases, absent words.

    python -m studies.ends photos_pfe ../shared/data --cache CACHE

Asks the questions of the eye labels that taught nothing: the kept half of those of Flickr8k's test
photos and COCO's subset, and of the fresh ones (`data/README.md`). Then the typos and paraphrases
beside them, single words that a gallery shows or does not, and small parts of galleries. Prints a
table of each and, last, what must hold. `--learnt` asks the halves that taught as well.
"""

import csv
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search.confidence import calibrate_on
from halo_search.confidence.judge import ABSENT, LIKELY, NOT_UNDERSTOOD
from halo_search.index import Index
from halo_search.retriever import Retriever
from studies.absent_words import refusals
from studies.people_data import fresh_labels_of, labels_of, parser_of
from studies.statistics import auroc
from zoo import evaluation
from zoo.cli import run

DATA = Path(__file__).parent / "data"
BANDS = (0.0, 0.08, 0.2, 0.4, 0.6, 0.8, 1.01)
ENOUGH, APART = 20, 0.1  # first results of a band that counts, and how far off it may be
LISTED = 100  # results whose labels are read
PARTS, SIZES = 200, (1, 2, 5, 10)
DRAWS, GALLERIES, PROBES = 20, (100, 250, 1000, 4000), 1000  # of own vectors


class Row(NamedTuple):
    """A line of the last table."""

    what: str
    measured: str
    must: str
    holds: bool


def main(argv=None):
    parser = parser_of("ends", __doc__, "flickr8k, coco_subset and coco_annotations")
    parser.add_argument("--learnt", action="store_true", help="also the halves that taught")
    options = parser.parse_args(argv)
    labels, fresh = asked_labels(options, "kept")
    rows = [
        *of_firsts("handed-out, kept", labels),
        *of_firsts("fresh, kept", fresh),
        *of_firsts("all kept", labels + fresh),
        *of_pairs(labels),
        of_order(labels + fresh),
    ]
    if options.learnt:
        for name, part in zip(("handed-out", "fresh"), asked_labels(options, "learn"), strict=True):
            of_firsts(f"{name}, taught", part)
    first, packaged = (retriever for retriever, _ in fresh)
    rows += [of_typos(first, packaged), *of_paraphrases(first, packaged)]
    rows += of_words(options)
    rows += of_parts(labels + fresh, options.seed)
    rows += of_own_vectors(options.seed)
    outdoors = packaged.ask("people outdoors").probability
    rows.append(Row("people outdoors, packaged", f"{outdoors:.2f}", ">= .5", outdoors >= 0.5))
    print("\n| What | Measured | Must | Holds |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.measured} | {row.must} | {'yes' if row.holds else 'no'} |")
    return 0


def asked_labels(options, part):
    """Pairs of a `Retriever` and its `Labelled`: of the handed-out labels, and of the fresh."""
    probes = evaluation.probes_of(options.model)
    labelled_galleries = []
    for labels in (
        labels_of(options.folder, options.model, options.cache, part),
        fresh_labels_of(options.folder, options.model, part, options.cache),
    ):
        retrievers = [
            Retriever.build(options.model, gallery.images, probes=probes) for gallery in labels
        ]
        labelled_galleries.append(list(zip(retrievers, labels, strict=True)))
    return labelled_galleries


def truth_of(labelled):
    """By question and photo, whether it fits and how many pairs it stands for."""
    return {
        (labelled.texts[question], int(photo)): (fit, weight)
        for question, photo, fit, weight in zip(*labelled[2:], strict=True)
    }


def first_results(retriever, labelled):
    """What is said of the first listed result of each question, and whether it fits: `(n, 2)` of
    those that are labelled."""
    truth, rows = truth_of(labelled), []
    for answer in retriever.ask(labelled.texts):
        if answer.fits is not None and (answer.question, int(answer.ids[0])) in truth:
            rows.append((answer.probability, truth[answer.question, int(answer.ids[0])][0]))
    return np.array(rows)


def of_firsts(name, labels):
    """A table of first results by what is said of them, and what must hold of them."""
    probability, fit = np.concatenate([first_results(*pair) for pair in labels]).T
    print(f"\n| {name}: said of first results | number | said | true | difference |")
    print("|---|---|---|---|---|")
    worst = []
    for low, high in itertools.pairwise(BANDS):
        part = (probability >= low) & (probability < high)
        if part.any():
            predicted, true = probability[part].mean(), fit[part].mean()
            if part.sum() >= ENOUGH:
                worst.append(abs(predicted - true))
            print(
                f"| {low:.2f}–{min(high, 1):.2f} | {part.sum()} | {predicted:.2f} | {true:.2f} | "
                f"{predicted - true:+.2f} |"
            )
    area = auroc(probability[fit == 1], probability[fit == 0])
    print(
        f"\n{len(probability)} first results: {probability.mean():.2f} / {fit.mean():.2f}, "
        f"AUC {area:.2f}"
    )
    off, bands = max(worst, default=0.0), f"{len(worst)} bands of {ENOUGH} or more"
    return [
        Row(f"{name}: first results, said − true", f"{off:.2f} ({bands})", "<= .10", off <= APART),
        Row(f"{name}: AUC of first results", f"{area:.3f}", ">= .85", area >= 0.85),
    ]


def of_pairs(labels):
    """Weighted log loss and area under the curve of all labelled pairs of the best results."""
    results = []
    for (retriever, labelled), name, most in zip(
        labels, ("Flickr8k", "COCO"), (0.30, 0.26), strict=True
    ):
        truth, rows = truth_of(labelled), []
        for answer in retriever.ask(labelled.texts, LISTED):
            if (likely := answer.fits) is None:
                continue
            for photo, probability in zip(answer.ids.tolist(), likely, strict=True):
                if (answer.question, photo) in truth:
                    rows.append((probability, *truth[answer.question, photo]))
        probability, fit, weight = np.array(rows).T
        probability = np.clip(probability, 1e-3, 1 - 1e-3)
        loss = -np.average(
            fit * np.log(probability) + (1 - fit) * np.log(1 - probability), weights=weight
        )
        area = auroc(probability[fit == 1], probability[fit == 0])
        results += [
            Row(f"{name}, kept: log loss", f"{loss:.3f}", f"<= {most}", loss <= most),
            Row(f"{name}, kept: AUC of all pairs", f"{area:.3f}", ">= .87", area >= 0.87),
        ]
    return results


def of_order(labels):
    """How many lists rise."""
    answers = [
        answer for retriever, labelled in labels for answer in retriever.ask(labelled.texts, LISTED)
    ]
    rising = sum(
        bool((np.diff(retriever.fits) > 0).any())
        for retriever in answers
        if retriever.fits is not None
    )
    return Row(f"of {len(answers)} lists of {LISTED}, rising", str(rising), "0", not rising)


def rows_of(name):
    """The rows of a table beside the studies."""
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_typos(*retrievers):
    """How many typos get the verdict of the right spelling and say what was asked."""
    counts = []
    for retriever in retrievers:
        right, lost = 0, []
        for row in rows_of("typos.csv"):
            typed, meant = retriever.ask([row["typed"], row["meant"]])
            is_right = typed.verdict == meant.verdict and typed.asked is not None
            right += is_right
            lost += [] if is_right else [f"{row['typed']} ({typed.asked}: {typed.verdict})"]
        print(f"\ntypos: {right} of 40 are answered as the right spelling; not {', '.join(lost)}")
        counts.append(right)
    measured = " and ".join(map(str, counts))
    return Row("of 40 typos, answered as the right spelling", measured, ">= 36", min(counts) >= 36)


def of_paraphrases(*retrievers):
    """How far apart is what is said of two wordings of a question."""
    apart, opposite = [], []
    for retriever in retrievers:
        for row in rows_of("paraphrases.csv"):
            first, second = retriever.ask([row["first"], row["second"]])
            verdicts = {first.verdict, second.verdict}
            if LIKELY in verdicts and verdicts & {ABSENT, NOT_UNDERSTOOD}:
                opposite.append(f"{row['first']} / {row['second']}")
            if first.fits is not None and second.fits is not None:
                apart.append(abs(first.probability - second.probability))
    print(f"\nparaphrases with opposite verdicts: {', '.join(opposite)}")
    middle = np.median(apart)
    most = 3 * len(retrievers)
    return [
        Row("paraphrases: median difference", f"{middle:.3f}", "<= .10", middle <= APART),
        Row(
            f"of {60 * len(retrievers)} pairs, opposite",
            str(len(opposite)),
            f"<= {most}",
            len(opposite) <= most,
        ),
    ]


def of_words(options):
    """How many single words are refused, by what the gallery shows."""
    must = {"common": (0.05, -1), "absent, known": (0.60, 1), "absent, unknown": (0.95, 1)}
    results = []
    for kind, (number, share) in refusals(options).items():
        print(f"{kind} words: {number:.0f}, refused {share:.3f}")
        if kind in must:
            limit, sign = must[kind]
            sentence = f"{'>=' if sign > 0 else '<='} {limit}"
            holds = sign * share >= sign * limit
            results.append(Row(f"{kind} words refused", f"{share:.3f}", sentence, holds))
    return results


def of_parts(labels, seed):
    """What is said of the first photo of small parts, and what is true of it by the labels: parts
    are of a question's labelled photos."""
    results = []
    for size in SIZES:
        rng, rows = np.random.default_rng(seed), []
        for _ in range(PARTS):
            retriever, labelled = labels[int(rng.integers(len(labels)))]
            question = int(rng.integers(len(labelled.texts)))
            photos = labelled.photos[labelled.questions == question].astype(int)
            rest = np.setdiff1d(np.arange(len(retriever)), photos)
            members = rng.permutation(photos)[: min(size, len(photos))]
            part = np.append(members, rng.permutation(rest)[: size - len(members)])
            answer = retriever.ask(labelled.texts[question], 1, among=part)
            key = labelled.texts[question], int(answer.ids[0])
            if answer.fits is not None and key in (truth := truth_of(labelled)):
                rows.append((answer.probability, truth[key][0]))
        probability, fit = np.array(rows).mean(axis=0)
        measured = f"{probability:.2f} / {fit:.2f} ({len(rows)})"
        holds = abs(probability - fit) <= APART
        results.append(Row(f"parts of {size}: said / true of the first", measured, "± .10", holds))
    return results


def of_own_vectors(seed):
    """How often `first_k(0.1)` results include the wanted item, over drawn vectors of 60 kinds."""
    results = []
    for size in GALLERIES:
        shares = []
        for draw in range(DRAWS):
            rng = np.random.default_rng([seed, size, draw])
            centres = rng.normal(size=(60, 10))
            kinds = rng.integers(60, size=size + PROBES)
            items = (0.8 * centres[kinds] + rng.normal(size=(len(kinds), 10))).astype(np.float32)
            asked = (items + 1.2 * rng.normal(size=items.shape)).astype(np.float32)
            index = Index.build(items[:size], "cosine")
            k = calibrate_on(index, asked[size:], items[size:]).first_k(0.1)
            _, ids = index.search(asked[: min(size, 500)], min(k, size))
            shares.append((ids == np.arange(len(ids))[:, None]).any(axis=1).mean())
        share = float(np.mean(shares))
        results.append(
            Row(f"wanted within first_k(0.1) of {size:,}", f"{share:.3f}", ">= .89", share >= 0.89)
        )
    return results


if __name__ == "__main__":
    run(main)
