"""Does a caption's σ say how many photos fit it? Variance heads over frozen points, and people.

    python -m studies.ambiguity photos_pfe --data-dir flickr8k

Trains the variances of the preset's points by PFE, and by PFE with `zoo.losses.Ambiguity`, on
Flickr8k's training photos. Compares a caption's Σσ² with the number of test photos that fit it: as
people judged, and by an oracle, fitted on the judgments of the other half of the photos. The means
never change.
Prints a table of numbers that need no training and one of the heads: means over the seeds and both
halves ± one standard deviation over the seeds.
"""

import os
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import own_pairs
from halo_search.confidence.features import Logistic
from halo_search.embeddings.arrays import unit
from studies.judgments import Judgments
from studies.statistics import mean_and_deviation
from zoo import evaluation, models, training
from zoo.cli import OneLineParser, run
from zoo.data.datasets import SPLITS
from zoo.metrics.confidence import abstention_auc
from zoo.metrics.statistics import spearman

HEADS = {"PFE": {}, "PFE, Ambiguity": {"ambiguity_weight": 100.0}}  # of `zoo.models.pfe`
BATCH, EPOCHS, RATE = 512, 3, 3e-3  # as own_pairs.py
PENALTY = 1e-4  # of the oracle
REFERENCE, KERNEL = 10, 0.08  # photos of r, width of the density
NUMBERS = "ρ of captions, people", "ρ, oracle"
COLUMNS = (*NUMBERS, "ρ of photos, people", "ρ, oracle ", "nAUC of σ", "nAUC of best − mean")
RETRIEVAL = "R@1 i2t", "R@1 t2i"
OWN = "nAUC of −σ, own first, i2t", "t2i"
ALL = (*COLUMNS, *RETRIEVAL, *OWN)


class Points(NamedTuple):
    """Photos and captions of a split as the points of a model."""

    images: np.ndarray  # `(N, dim)` and `(M, dim)`, unit vectors
    captions: np.ndarray  # `(N, dim)` and `(M, dim)`, unit vectors
    spreads: tuple[np.ndarray, np.ndarray] | None
    sentences: np.ndarray
    owners: np.ndarray  # `(M,)`, the row of each caption's photo
    names: list[str]  # N files, relative to the folder of the data
    texts: list[str]  # M captions

    @classmethod
    def of(cls, name, data_dir, split):
        """Encodes a split by a preset or a run of `own_pairs.py`, whose vectors are cached."""
        model, opened = evaluation.open_run(name, data_dir, split)
        stored = own_pairs.stored(opened, model)
        run = training.Run(None)
        run.read_features(stored, stored, stored)
        encoded = evaluation.encode(run.reader(model), stored.records, stored.source)
        records, sides = stored.records, (encoded.images, encoded.captions)
        spreads = None
        if "log_variance" in encoded.images:
            spreads = tuple(np.exp(np.asarray(side["log_variance"])).sum(axis=1) for side in sides)
        vectors = records.caption_vectors.gather(np.arange(records.num_captions))
        return cls(
            *(unit(np.asarray(side["mean"])) for side in sides),
            spreads,
            unit(np.asarray(vectors)),
            records.caption_image,
            [os.path.relpath(path, data_dir) for path in records.image_paths],
            [" ".join(text.split()) for text in records.captions],
        )

    def table(self):
        """`(N, most captions of a photo)`, the captions of each photo, then −1."""
        counts = np.bincount(self.owners, minlength=len(self.images))
        table = np.full((len(counts), counts.max()), -1)
        order = np.argsort(self.owners, kind="stable")
        table[np.arange(counts.max()) < counts[:, None]] = order
        return table

    def features(self, rows, images, table):
        """What the oracle reads of some captions and images, `(Q, B, 3)`."""
        columns = table[images]
        cosines = self.sentences[rows] @ self.sentences[columns.ravel()].T
        cosines = cosines.reshape(len(rows), *columns.shape)
        is_other = (columns >= 0) & (columns != np.asarray(rows)[:, None, None])
        best = np.sort(np.where(is_other, cosines, -1.0), axis=2)
        own_cosines = self.captions[rows] @ self.images[images].T
        return np.stack([best[..., -1], best[..., -2], own_cosines], axis=2)


class Half(NamedTuple):
    """A gallery of half of the photos, and the judged captions of these photos."""

    questions: np.ndarray  # `(Q,)`, rows of captions
    gallery: np.ndarray  # `(N,)`, rows of photos
    people: np.ndarray  # `(Q, N)`, 1 and 0 as judged, 1 for the caption's own photo, else NaN
    likely: np.ndarray
    oracle: Logistic  # the `Logistic` of `Points.features`

    @property
    def counts(self):
        """How many photos fit each question, by people and by the oracle."""
        return np.nansum(self.people, axis=1), self.likely.sum(axis=1)


def halves(points, judgments, seed):
    """Both halves of a split's photos, each with an oracle of the other."""
    row = {name: place for place, name in enumerate(points.names)}
    caption = {
        pair: place for place, pair in enumerate(zip(points.owners, points.texts, strict=True))
    }
    asked = np.array(
        [
            caption[row[photo], " ".join(text.split())]
            for photo, text in zip(judgments.photo, judgments.captions, strict=True)
        ]
    )
    judged = np.array([row[name] for name in judgments.images])
    is_own, table = points.owners[asked] == judged, points.table()
    questions, place = np.unique(asked, return_inverse=True)
    everything = points.features(questions, np.arange(len(points.images)), table)
    people = np.full(everything.shape[:2], np.nan)
    people[np.arange(len(questions)), points.owners[questions]] = 1.0
    people[place, judged] = judgments.fits
    first = np.random.default_rng(seed).permutation(len(points.images)) < len(points.images) // 2
    for part in (first, ~first):
        learn = ~part[points.owners[asked]] & ~part[judged] & ~is_own
        oracle = Logistic.fit(everything[place, judged][learn], judgments.fits[learn], PENALTY)
        rows, gallery = np.flatnonzero(part[points.owners[questions]]), np.flatnonzero(part)
        likely = oracle.probability(everything[np.ix_(rows, gallery)])
        likely[points.owners[questions[rows]][:, None] == gallery] = 1.0
        yield Half(questions[rows], gallery, people[np.ix_(rows, gallery)], likely, oracle)


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.ambiguity", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a preset or a run of own_pairs.py")
    parser.add_argument("--data-dir", type=Path, required=True, help="Flickr8k and judgments.csv")
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS), help="to train")
    parser.add_argument("--draws", type=int, default=3, help="seeds and halves (default 3)")
    options = parser.parse_args(argv)
    data = [Points.of(options.model, options.data_dir, name) for name in SPLITS]
    judgments = Judgments.read(options.data_dir)
    trials = {seed: list(halves(data[-1], judgments, seed)) for seed in range(options.draws)}
    weights = [np.append(*half.oracle.plain()) for halves in trials.values() for half in halves]
    text = ", ".join(mean_and_deviation(column, ".2f") for column in np.transpose(weights))
    print(f"oracle: greatest, second, cosine of the points, bias: {text}")
    _header(NUMBERS)
    for name, measured_by_seed in plain_numbers(*data, trials).items():
        _row(name, NUMBERS, measured_by_seed)
    _header(ALL)
    for name in options.heads:
        measured_by_seed = of_head(HEADS[name], data[0], data[-1], trials)
        _row(name, ALL, measured_by_seed)
    return 0


def plain_numbers(train, validation, test, trials):
    """Rows of numbers of a caption that need no training: `{name: {seed: rows of columns}}`."""
    best = np.sort(test.captions @ validation.images.T, axis=1)[:, -REFERENCE:]
    density = np.concatenate(
        [
            np.log(np.exp((part @ train.captions.T - 1) / KERNEL).sum(axis=1))
            for part in np.array_split(test.captions, 20)
        ]
    )
    known = {
        "number of words": np.array([len(text.split()) for text in test.texts]),
        f"mean of its {REFERENCE} best cosines with validation photos": best.mean(axis=1),
        "density of training captions": density,
    }
    if test.spreads is not None:
        known["σ of the preset"] = test.spreads[1]
    by_name = {name: {} for name in [*known, "best cosine"]}
    for seed, parts in trials.items():
        for half in parts:
            cosines = test.captions[half.questions] @ test.images[half.gallery].T
            numbers = {name: values[half.questions] for name, values in known.items()}
            for name, values in {**numbers, "best cosine": cosines.max(axis=1)}.items():
                row = [spearman(values, counts) for counts in half.counts]
                by_name[name].setdefault(seed, []).append(row)
    return by_name


def of_head(options, train, test, trials):
    """`{seed: rows of columns}` of the variances that some options of `zoo.models.pfe` train."""
    results = {}
    for seed, parts in trials.items():
        model = fitted(options, train, seed)
        results[seed] = [measured(model, test, half) for half in parts]
    return results


def fitted(options, train, seed):
    """The `DualEncoder` of options of `zoo.models.pfe`, trained on some points."""
    keras.utils.set_random_seed(seed)
    model = models.pfe(models.vector_points(train.images.shape[1]), **options)
    of_epoch = max(1, len(train.captions) // BATCH)
    steps = EPOCHS * of_epoch

    def batches():
        rng, remaining = np.random.default_rng(seed), np.empty(0, int)
        for _ in range(steps):
            if len(remaining) < min(BATCH, len(train.captions)):
                remaining = rng.permutation(len(train.captions))
            rows, remaining = remaining[:BATCH], remaining[BATCH:]
            labels = train.owners[rows].astype("int32")
            batch = {"images": train.images[labels], "captions": train.captions[rows]}
            yield batch | {"image_labels": labels, "caption_labels": labels}

    signature = tf.nest.map_structure(
        lambda array: tf.TensorSpec(array.shape, array.dtype), next(batches())
    )
    rate = training.cosine_decay_after_a_twentieth(RATE)(EPOCHS, of_epoch)
    model.compile(keras.optimizers.Adam(rate, beta_2=0.98))
    model.fit(
        tf.data.Dataset.from_generator(batches, output_signature=signature),
        epochs=1,
        steps_per_epoch=steps,
        verbose=0,
    )
    return model


def measured(model, test, half):
    """The columns of one half, and of all test photos and captions R@1 in percent, and `OWN`."""
    sides = (model.image_encoder, test.images), (model.caption_encoder, test.captions)
    spreads = [
        np.exp(np.asarray(encoder(side)["log_variance"])).sum(axis=1) for encoder, side in sides
    ]
    scores = 2 * test.captions @ test.images.T - spreads[0] - spreads[1][:, None]
    is_right = (
        test.owners[scores.argmax(axis=0)] == np.arange(len(test.images)),
        scores.argmax(axis=1) == test.owners,
    )
    recall = [100 * np.mean(right) for right in is_right]
    aucs = [abstention_auc(-side, right) for side, right in zip(spreads, is_right, strict=True)]
    of_photos, of_captions = spreads[0][half.gallery], spreads[1][half.questions]
    values = [spearman(of_captions, counts) for counts in half.counts]
    values += [
        spearman(of_photos, counts.sum(axis=0))
        for counts in (np.nan_to_num(half.people), half.likely)
    ]
    scores = scores[np.ix_(half.questions, half.gallery)]
    fits = half.people[np.arange(len(scores)), scores.argmax(axis=1)]
    judged = ~np.isnan(fits)
    for number in (of_captions, scores.max(axis=1) - scores.mean(axis=1)):
        values.append(abstention_auc(number[judged], fits[judged] > 0))
    return [*values, *recall, *aucs]


def _header(columns):
    print(f"\n| | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|")


def _row(name, columns, by_seed_rows):
    by_seed = np.array([np.mean(parts, axis=0) for parts in by_seed_rows.values()])
    forms = [".1f" if column in RETRIEVAL else "+.2f" for column in columns]
    cells = [
        mean_and_deviation(values, form) for values, form in zip(by_seed.T, forms, strict=True)
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    run(main)
