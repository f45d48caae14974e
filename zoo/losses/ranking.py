"""Hinge losses: a match must be more similar than what does not match, by a margin."""

import re
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.numerics import product, unit
from zoo.losses.base import Auxiliary, MatrixLoss, choice
from zoo.similarities.sampled import sample

MINING = ("sum", "hardest", "semi_hard")
# Further away than any similarity, yet finite, so that no difference of two becomes a NaN.
FAR = 1e30


@keras.saving.register_keras_serializable(package="halo")
class TripletRanking(MatrixLoss):
    """[margin + s(negative) − s(positive)]₊ for every positive pair, in both directions.

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.TripletRanking(mining="hardest")(np.eye(2), logits)
    ```

    A positive pair is an entry with a label above 0, and its label weighs its hinges; a negative
    is an entry with the label 0. Several captions of one image are therefore never negatives of
    each other. A query without a positive or without a negative contributes nothing.

    Args:
        margin: α, in units of the similarity.
        mining: which negatives of a query a positive pair (v, t) is compared with: `"sum"`, all of
            them, a hinge each (VSE0); `"hardest"`, the most similar one (VSE++); `"semi_hard"`, the
            most similar of those that are less similar than t (FaceNet), and if none is, the least
            similar one, the usual fallback.
        reduction: `"sum"` over all hinges, or `"mean"`, the weighted mean over the hinges of each
            direction; either way both directions are added.

    Raises:
        ValueError: if `mining` or `reduction` is another.
    Relations: with one negative a query all three minings are equal. `"sum"` and `"hardest"` with
        `reduction="sum"` on `zoo.similarities.Cosine` are the losses of VSE0 and VSE++; with
        `"mean"` on `SmoothChamfer` DivE's.
    Reference: VSE++ (Faghri et al., BMVC 2018) equations 5, 6; FaceNet (Schroff et al., CVPR 2015)
        section 3.2; DivE (Kim et al., CVPR 2023) section 3.4.
    Paper differs: DivE's equation 9 sums the hinges of a batch; its code takes the mean, beside
        which 0.01 weighs the other terms.
    Released code differs: PVSE's mean over all hinges counts the zeroed diagonal, so it is
        (N − 1)/N of this one · DivE's "semi-hard" clips hinges at the margin, which has no slope
        where the negative is more similar, and means over those above 0.
    """

    def __init__(
        self,
        margin: float = 0.2,
        mining: str = "sum",
        reduction: str = "sum",
        name: str | None = None,
    ):
        super().__init__(name=name)
        self.margin = float(margin)
        self.mining = choice("mining", mining, MINING)
        self.reduction = choice("reduction", reduction, ("sum", "mean"))

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        rows = self._direction(matches, logits)
        columns = self._direction(ops.transpose(matches), ops.transpose(logits))
        return rows + columns

    def _direction(self, matches, logits):
        """The hinges of one direction, rows as queries: their sum, or their mean over active
        triplets."""
        mine = _hardest if self.mining == "hardest" else _one_positive_at_a_time
        total, hinges = mine(matches, logits, self.margin, self.mining)
        return total if self.reduction == "sum" else ops.divide_no_nan(total, hinges)


@keras.saving.register_keras_serializable(package="halo")
class AuxiliaryRanking(Auxiliary):
    """`SemanticPrecision` or `SmoothAveragePrecision` beside the loss that a model has already.

    ```python
    model = model.with_auxiliaries(AuxiliaryRanking(SemanticPrecision(0.01), weight=10.0))
    ```

    Args:
        loss: a `MatrixLoss`. It compares the batch's matches, or its `"semantic"` matrix, see
            `zoo.data.records.semantics`, if it is no loss of labels.
        weight, name: of `Auxiliary`; the name is None for that of the loss's class.
        num_samples: None ranks by the model's own logits. J ranks by the cosines of J samples of
            every Gaussian, each sample an item of its own, as DAA does with PCME: logits are then
            `(N · J, M · J)` in [−1, 1].
        seed: of the samples, an integer, or None for another draw each time it is built.

    Raises:
        ValueError: if the batch has no `"semantic"` and the loss needs it, if samples of points or
            sets are to be drawn, or `num_samples` is not positive.
    Reference: DAA (Li et al., NeurIPS 2022), equation 5, a cosine.
    Released code differs: of PCME it compares the samples of one modality with themselves, by
        products without a norm.
    """

    def __init__(
        self,
        loss: keras.losses.Loss,
        weight: float = 1.0,
        num_samples: int | None = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        # Not the loss's own name, to which Keras adds a number that differs between runs.
        name = name or re.sub(r"(?<!^)(?=[A-Z])", "_", type(loss).__name__).lower()
        super().__init__(weight, name, **kwargs)
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"`num_samples` must be at least 1 or None; received {num_samples!r}")
        self.loss = loss
        self.num_samples = num_samples
        self.seed = seed
        if num_samples is not None:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.target = "matches" if loss.target_is_label else "semantic"
        self.reads = (self.target,) if num_samples else (self.target, "logits")

    def call(
        self,
        images: Embedding,
        captions: Embedding,
        logits: Tensor | None = None,
        matches: Tensor | None = None,
        semantic: Tensor | None = None,
    ) -> Tensor:
        target = matches if self.target == "matches" else semantic
        if target is None:
            raise ValueError(
                f"{self.name!r} needs batches with {self.target!r} (images, captions); "
                "received none, see `zoo.data.records.semantics`"
            )
        if self.num_samples is None:
            return self.loss(target, logits)
        sides = [self._samples(images), self._samples(captions)]
        for axis in (0, 1):
            target = ops.repeat(target, self.num_samples, axis=axis)
        return self.loss(target, product(*sides))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "weight": self.weight,
            "loss": keras.saving.serialize_keras_object(self.loss),
            "num_samples": self.num_samples,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AuxiliaryRanking":
        loss = keras.saving.deserialize_keras_object(config["loss"])
        return cls(**{**config, "loss": loss})

    def _samples(self, embedding):
        """Unit samples of all Gaussians, (batch · samples, dim), those of an item one after the
        other."""
        samples = sample(embedding, self.num_samples, self.seed_generator)
        return unit(ops.reshape(samples, (-1, samples.shape[-1])))


def _hardest(matches, logits, margin, mining):
    """The sum of the hinges of the rows, and how many there are, by weight."""
    hardest = ops.max(ops.where(ops.equal(matches, 0.0), logits, -FAR), axis=1, keepdims=True)
    weights = ops.where(ops.greater(hardest, -FAR), matches, 0.0)
    return ops.sum(weights * ops.relu(margin + hardest - logits)), ops.sum(weights)


def _one_positive_at_a_time(matches, logits, margin, mining):
    """As `_hardest`, in O(rows · columns) memory however many positives a row has."""
    labels, scores = ops.stop_gradient(matches), ops.stop_gradient(logits)
    negatives = ops.equal(labels, 0.0)
    position = ops.cumsum(ops.cast(ops.logical_not(negatives), "int32"), axis=1)
    most = ops.max(position)

    def step(turn, total, hinges, slopes):
        anchor = ops.logical_and(ops.equal(position, turn), ops.logical_not(negatives))
        weight = ops.sum(ops.where(anchor, labels, 0.0), axis=1, keepdims=True)
        gap = scores - ops.sum(ops.where(anchor, scores, 0.0), axis=1, keepdims=True)
        chosen = ops.cast(negatives, "float32")
        if mining == "semi_hard":
            chosen = _semi_hard(negatives, gap)
        chosen = chosen * weight
        active = ops.where(ops.greater(margin + gap, 0.0), chosen, 0.0)
        slopes = slopes + active
        slopes = slopes - ops.where(anchor, ops.sum(active, axis=1, keepdims=True), 0.0)
        total = total + ops.sum(active * (margin + gap), axis=1)
        return turn + 1, total, hinges + ops.sum(chosen, axis=1), slopes

    nothing = ops.zeros_like(scores[:, 0])
    _, total, hinges, slopes = ops.while_loop(
        lambda turn, *_: ops.less_equal(turn, most),
        step,
        (ops.ones_like(most), nothing, nothing, ops.zeros_like(scores)),
    )
    slopes = ops.stop_gradient(slopes)
    total = ops.stop_gradient(ops.sum(total)) + ops.sum(slopes * (logits - scores))
    return total, ops.stop_gradient(ops.sum(hinges))


def _semi_hard(negatives, gap):
    """Which negative is compared with the positive: 1 in its column, ties sharing it."""
    below = ops.logical_and(negatives, ops.less(gap, 0.0))
    hardest = ops.max(ops.where(below, gap, -FAR), axis=1, keepdims=True)
    easiest = ops.min(ops.where(negatives, gap, FAR), axis=1, keepdims=True)
    target = ops.where(ops.greater(hardest, -FAR), hardest, easiest)
    chosen = ops.cast(ops.logical_and(negatives, ops.equal(gap, target)), "float32")
    return ops.divide_no_nan(chosen, ops.sum(chosen, axis=1, keepdims=True))


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>MatrixTerm"] = AuxiliaryRanking
