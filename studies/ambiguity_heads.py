"""Ways to learn variances over frozen points, for `studies.ambiguity`: terms, heads, training."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from zoo import losses, models, training
from zoo.embeddings import gaussian
from zoo.losses.base import mean_over

BATCH, EPOCHS, RATE = 512, 3, 3e-3  # as own_pairs.py


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
    """The mutual likelihood of the likeliest pairs of a batch, weighted by how likely they fit."""

    reads = ("semantic",)
    pairs_per_image = 4

    def call(self, images, captions, semantic):
        rows, columns = semantic.shape
        weights, places = ops.top_k(ops.reshape(semantic, (-1,)), self.pairs_per_image * rows)
        sides = (images, places // columns), (captions, places % columns)
        sides = ({k: ops.take(v, at, axis=0) for k, v in side.items()} for side, at in sides)
        return -mean_over(losses.mutual_likelihood(*sides), weights)


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
    rate = training.cosine_decay_after_a_twentieth(RATE)(EPOCHS, of_epoch)
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
