"""Does a caption's σ say how many photos fit it? Variance heads over frozen points, and people.

    python -m studies.ambiguity photos_pfe --data-dir flickr8k

Trains the variances of the preset's points in several ways, on Flickr8k's training photos, and
compares a caption's Σσ² with the number of test photos that fit it: as people judged, and by an
oracle that is fitted on the judgments of the other half of the photos. The means never change.
Prints a table of numbers that need no training and one of the heads: means over the seeds and both
halves ± one standard deviation over the seeds.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from studies.fitting import Points, halves
from studies.judgments import Judgments
from zoo import losses, models, similarities, training
from zoo.cli import OneLineParser, run
from zoo.confidence import abstention_auc
from zoo.embeddings import gaussian
from zoo.losses.base import mean_over
from zoo.metrics.statistics import mean_and_deviation, spearman

BATCH, EPOCHS, RATE = 512, 3, 3e-3  # as own_pairs.py
REFERENCE, KERNEL = 10, 0.08  # photos of r, width of the density
NUMBERS = "ρ of captions, people", "ρ, oracle"
COLUMNS = (*NUMBERS, "ρ of photos, people", "ρ, oracle ", "nAUC of σ", "nAUC of best − mean")
RETRIEVAL = "R@1 i2t", "R@1 t2i"


@keras.saving.register_keras_serializable(package="halo_studies")
class OraclePseudoPositives(losses.MatrixLoss):
    """PCME++'s pseudo-positives, whose label is the oracle's probability in place of the match's.

    Targets are 1 for an image and its own caption, else the probability that they fit.
    """

    def call(self, matches, logits):
        own = ops.cast(matches >= 1.0, "float32")
        found = ops.binary_crossentropy(own, logits, from_logits=True)
        for axis in (1, 0):
            least = ops.min(ops.where(own > 0, logits, 1e9), axis=axis, keepdims=True)
            soft = ops.where(logits >= least, matches, own)
            found = found + 0.5 * ops.binary_crossentropy(soft, logits, from_logits=True)
        return ops.mean(found)


@keras.saving.register_keras_serializable(package="halo_studies")
class SoftLikelihood(losses.Auxiliary):
    """The mutual likelihood of all pairs, weighted by how likely they fit."""

    reads = ("semantic",)

    def call(self, images, captions, semantic):
        pairs = similarities.log_expected_likelihood(images, captions)
        return -mean_over(pairs, semantic) / images["mean"].shape[-1]


@keras.saving.register_keras_serializable(package="halo_studies")
class OracleCounts(losses.Auxiliary):
    """A regression of log Σσ² on the log of the oracle's number of fitting items of a batch."""

    reads = ("semantic",)
    slope = 0.1

    def call(self, images, captions, semantic):
        others = ops.where(semantic >= 1.0, 0.0, semantic)
        total = 0.0
        for axis, side in ((1, images), (0, captions)):
            error = ops.logsumexp(gaussian(side)[1], axis=1)
            error = error - self.slope * ops.log(ops.sum(others, axis=axis) + 1e-6)
            total += ops.mean(ops.square(error - ops.mean(error)))
        return total


class Head(NamedTuple):
    """A way to learn variances.

    Attributes:
        build: from the dimension, a `DualEncoder` of vectors as they are.
        target: what a batch calls the oracle's probabilities, `"semantic"` or `"matches"`; None
            where it needs none.
        loss: in place of the matching loss.
    """

    build: Callable
    target: str | None = None
    loss: keras.losses.Loss | None = None


def _head(*terms, target=None, loss=None, **options):
    def build(dim):
        model = models.pfe(models.vector_points(dim), **options)
        return model.with_auxiliaries(*(term() for term in terms))

    return Head(build, target, loss)


ALONE = {"likelihood_weight": 0.0}
HEADS = {
    "PFE": _head(),
    "matching alone": _head(**ALONE),
    "matching, pseudo-positives": _head(loss=losses.MatchingCrossentropy(0.1), **ALONE),
    "the same, labels by the oracle": _head(
        lambda: losses.AuxiliaryRanking(OraclePseudoPositives()), target="semantic", **ALONE
    ),
    "matching of soft matches": _head(target="matches", **ALONE),
    "PFE, inclusion": _head(lambda: losses.Inclusion(0.01)),
    "likelihood of soft matches": _head(
        lambda: SoftLikelihood(1.0, "soft_likelihood"), target="semantic", **ALONE
    ),
    "PFE, regression on the oracle's counts": _head(
        lambda: OracleCounts(100.0, "oracle_counts"), target="semantic"
    ),
    "PFE, Ambiguity": _head(ambiguity_weight=100.0),
}


def main(argv=None):
    options = _parser().parse_args(argv)
    data = [Points.of(options.model, options.data_dir, name) for name in options.splits]
    judgments = Judgments.read(options.data_dir)
    trials = {
        seed: list(halves(data[-1], judgments, seed))
        for seed in range(options.seed, options.seed + options.draws)
    }
    oracles = [half.oracle for seed in trials for half in trials[seed]]
    weights = [[*oracle.weights, oracle.bias] for oracle in oracles]
    text = ", ".join(mean_and_deviation(column, ".2f") for column in np.transpose(weights))
    print(f"oracle: greatest, second, cosine of the points, bias: {text}\n")
    _print(NUMBERS, plain_numbers(*data, trials))
    _print((*COLUMNS, *RETRIEVAL), heads(data[0], data[-1], trials, options.heads))
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
    found = {name: {} for name in [*known, "best cosine"]}
    for seed, parts in trials.items():
        for half in parts:
            cosines = test.captions[half.questions] @ test.images[half.gallery].T
            numbers = {name: values[half.questions] for name, values in known.items()}
            for name, values in {**numbers, "best cosine": cosines.max(axis=1)}.items():
                row = [spearman(values, counts) for counts in half.counts]
                found[name].setdefault(seed, []).append(row)
    return found


def heads(train, test, trials, names):
    """Rows of variance heads, as of `plain_numbers`; those without an oracle train once a seed."""
    found = {}
    for name in names:
        found[name], start = {}, time.process_time()
        for seed, parts in trials.items():
            model = None
            for half in parts:
                if model is None or HEADS[name].target:
                    model = fitted(HEADS[name], train, half.oracle, seed)
                found[name].setdefault(seed, []).append(measured(model, test, half))
        print(f"{name}: {time.process_time() - start:.0f} CPU-seconds", flush=True)
    return found


def fitted(head, train, oracle, seed):
    """The `DualEncoder` of a head, trained on some points."""
    keras.utils.set_random_seed(seed)
    model, table = head.build(train.images.shape[1]), train.table()
    of_epoch = max(1, len(train.captions) // BATCH)
    steps = EPOCHS * of_epoch

    def batches():
        rng, left = np.random.default_rng(seed), np.empty(0, int)
        for _ in range(steps):
            if len(left) < min(BATCH, len(train.captions)):
                left = rng.permutation(len(train.captions))
            rows, left = left[:BATCH], left[BATCH:]
            yield _batch(train, rows, head.target, oracle, table)

    signature = tf.nest.map_structure(
        lambda array: tf.TensorSpec(array.shape, array.dtype), next(batches())
    )
    rate = training.cosine_after_a_twentieth(RATE)(EPOCHS, of_epoch)
    model.compile(keras.optimizers.Adam(rate, beta_2=0.98), loss=head.loss)
    model.fit(
        tf.data.Dataset.from_generator(batches, output_signature=signature),
        epochs=1,
        steps_per_epoch=steps,
        verbose=0,
    )
    return model


def _batch(train, rows, target, oracle, table):
    photos = train.owners[rows]
    batch = {"images": train.images[photos], "captions": train.captions[rows]}
    batch |= {name: photos.astype("int32") for name in ("image_labels", "caption_labels")}
    if target:
        fits = oracle.probability(train.features(rows, photos, table)).T
        own = photos[:, None] == photos
        batch[target] = np.where(own, 1.0, np.minimum(fits, 0.999)).astype("float32")
    return batch


def measured(model, test, half):
    """The columns of one half, and R@1 of all test photos and captions, in percent."""
    sides = (model.image_encoder, test.images), (model.caption_encoder, test.captions)
    spreads = [
        np.exp(np.asarray(encoder(side)["log_variance"])).sum(axis=1) for encoder, side in sides
    ]
    scores = 2 * test.captions @ test.images.T - spreads[0] - spreads[1][:, None]
    recall = (
        100 * np.mean(test.owners[scores.argmax(axis=0)] == np.arange(len(test.images))),
        100 * np.mean(scores.argmax(axis=1) == test.owners),
    )
    of_photos, of_captions = spreads[0][half.gallery], spreads[1][half.questions]
    found = [spearman(of_captions, counts) for counts in half.counts]
    found += [
        spearman(of_photos, counts.sum(axis=0))
        for counts in (np.nan_to_num(half.people), half.likely)
    ]
    scores = scores[np.ix_(half.questions, half.gallery)]
    fits = half.people[np.arange(len(scores)), scores.argmax(axis=1)]
    judged = ~np.isnan(fits)
    for number in (of_captions, scores.max(axis=1) - scores.mean(axis=1)):
        found.append(abstention_auc(number[judged], fits[judged] > 0))
    return [*found, *recall]


def _print(columns, found):
    print(f"\n| | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|")
    for name, rows in found.items():
        by_seed = np.array([np.mean(parts, axis=0) for parts in rows.values()])
        forms = [".1f" if column in RETRIEVAL else "+.2f" for column in columns]
        cells = [mean_and_deviation(one, form) for one, form in zip(by_seed.T, forms, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _parser():
    parser = OneLineParser(prog="python -m studies.ambiguity", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a preset or a run of own_pairs.py")
    parser.add_argument(
        "--data-dir", type=Path, required=True, help="Flickr8k, with judgments.csv beside pairs.csv"
    )
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS), help="to train")
    parser.add_argument("--draws", type=int, default=3, help="seeds and halves (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them (default 0)")
    parser.set_defaults(splits=("train", "validation", "test"))
    return parser


if __name__ == "__main__":
    run(main)
