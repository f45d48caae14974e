"""What is said of words that the model hardly knows: the ends of the scale, typos, paraphrases.

    python -m studies.ends photos_pfe ../shared/data

Asks the kept half of the fresh labels (`data/fresh_labels.csv`), the typos and the paraphrases
beside them over Flickr8k's first 500 test photos and the packaged photos. Reports what is said of
first results and what is true by bands; how many typos get the answer of the right spelling; how
far two wordings of one question are apart; and what is said of parts of 1, 2, 5 and 10 photos.
"""

import csv
import itertools
from pathlib import Path

import numpy as np

from halo_search.confidence.judge import ABSENT, LIKELY, NOT_UNDERSTOOD
from halo_search.retriever import Retriever
from studies.people_data import fresh_galleries, fresh_labels_of, parser_of
from studies.statistics import auroc
from zoo import evaluation
from zoo.cli import run
from zoo.presets import from_preset

DATA = Path(__file__).parent / "data"
BANDS = (0.0, 0.08, 0.2, 0.4, 0.6, 0.8, 1.01)
LISTED = 12  # results whose labels are read
PARTS, SIZES = 200, (1, 2, 5, 10)


def main(argv=None):
    parser = parser_of("ends", __doc__, "flickr8k and coco_subset")
    parser.add_argument("--learnt", action="store_true", help="also the half that taught")
    options = parser.parse_args(argv)
    model, probes = from_preset(options.model), evaluation.probes_of(options.model)
    galleries = fresh_galleries(options.folder, options.model, options.cache)
    retrievers = [
        Retriever.build(model, encoded.images, probes=probes) for encoded, _ in galleries.values()
    ]
    halves = ("kept", "learn") if options.learnt else ("kept",)
    labels = [
        pair
        for half in halves
        for pair in zip(
            retrievers,
            fresh_labels_of(options.folder, options.model, half, options.cache),
            strict=True,
        )
    ]
    of_firsts([first_results(*pair) for pair in labels])
    of_pairs(labels)
    of_typos(retrievers[0], retrievers[1])
    of_paraphrases(retrievers)
    of_parts(labels, options.seed)
    answer = retrievers[1].ask("people outdoors")
    print(f"\npeople outdoors, packaged photos: {answer.verdict} {answer.probability:.2f}")
    return 0


def truth_of(labelled):
    """By question and photo, whether it fits."""
    return {
        (labelled.texts[question], int(photo)): fit
        for question, photo, fit in zip(
            labelled.questions, labelled.photos, labelled.fit, strict=True
        )
    }


def first_results(retriever, labelled):
    """What is said of the first listed result of each question, and whether it fits: `(n, 2)` of
    those that are labelled."""
    truth, rows = truth_of(labelled), []
    for answer in retriever.ask(labelled.texts, LISTED):
        key = answer.question, int(answer.ids[0])
        if answer.fits is not None and key in truth:
            rows.append((answer.probability, truth[key]))
    return np.array(rows)


def of_firsts(parts):
    """A table of first results by what is said of them."""
    probability, fit = np.concatenate(parts).T
    print("| said of first results | number | said | true | difference |\n|---|---|---|---|---|")
    for low, high in itertools.pairwise(BANDS):
        part = (probability >= low) & (probability < high)
        if part.any():
            predicted, true = probability[part].mean(), fit[part].mean()
            print(
                f"| {low:.2f}–{min(high, 1):.2f} | {part.sum()} | {predicted:.2f} | {true:.2f} | "
                f"{predicted - true:+.2f} |"
            )
    area = auroc(probability[fit == 1], probability[fit == 0])
    print(
        f"\n{len(probability)} first results: {probability.mean():.2f} / {fit.mean():.2f}, "
        f"AUC {area:.2f}"
    )


def of_pairs(labels):
    """Log loss and area under the curve of all labelled pairs, and whether order ever rises."""
    for retriever, labelled in labels:
        truth, predicted, fits, rising = truth_of(labelled), [], [], 0
        for answer in retriever.ask(labelled.texts, 2 * LISTED):
            if answer.fits is None:
                continue
            rising += bool((np.diff(answer.fits) > 0).any())
            for photo, probability in zip(answer.ids.tolist(), answer.fits, strict=True):
                if (answer.question, photo) in truth:
                    predicted.append(probability)
                    fits.append(truth[answer.question, photo])
        predicted, fits = np.clip(predicted, 1e-6, 1 - 1e-6), np.array(fits)
        loss = -np.mean(fits * np.log(predicted) + (1 - fits) * np.log(1 - predicted))
        area = auroc(predicted[fits == 1], predicted[fits == 0])
        print(f"{len(fits)} pairs: log loss {loss:.3f}, AUC {area:.2f}, {rising} lists that rise")


def rows_of(name):
    """The rows of a table beside the studies."""
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_typos(*retrievers):
    """How many typos get the verdict of the right spelling and say what was asked."""
    for retriever in retrievers:
        right, lost = 0, []
        for row in rows_of("typos.csv"):
            typed, meant = retriever.ask([row["typed"], row["meant"]])
            is_right = typed.verdict == meant.verdict and typed.asked is not None
            right += is_right
            lost += [] if is_right else [f"{row['typed']} ({typed.asked}: {typed.verdict})"]
        print(
            f"\ntypos: {right} of 40 get the verdict of the right spelling; not {', '.join(lost)}"
        )


def of_paraphrases(retrievers):
    """How far apart is what is said of two wordings of a question."""
    for retriever in retrievers:
        apart, opposite, lost = [], [], 0
        for row in rows_of("paraphrases.csv"):
            first, second = retriever.ask([row["first"], row["second"]])
            verdicts = {first.verdict, second.verdict}
            if LIKELY in verdicts and verdicts & {ABSENT, NOT_UNDERSTOOD}:
                opposite.append(f"{row['first']} / {row['second']}")
            if first.fits is None or second.fits is None:
                lost += 1
            else:
                apart.append(abs(first.probability - second.probability))
        print(
            f"\nparaphrases: median difference {np.median(apart):.3f}, {lost} not understood, "
            f"{len(opposite)} opposite: {', '.join(opposite)}"
        )


def of_parts(labels, seed):
    """What is said of the first photo of small parts, and what is true of it by the labels: parts
    are of a question's labelled photos."""
    print("\n| photos in the part | said | true |\n|---|---|---|")
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
                rows.append((answer.probability, truth[key]))
        probability, fit = np.array(rows).T
        print(f"| {size} | {probability.mean():.2f} | {fit.mean():.2f} | ({len(rows)})")


if __name__ == "__main__":
    run(main)
