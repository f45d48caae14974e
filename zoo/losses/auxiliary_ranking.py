"""A loss over the matrix of similarities as a further term of a model's own loss."""

import re
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.losses.auxiliary import Auxiliary
from zoo.numerics import product, unit
from zoo.similarities.sampled import sample


@keras.saving.register_keras_serializable(package="halo")
class AuxiliaryRanking(Auxiliary):
    """`SemanticPrecision` or `SmoothAveragePrecision` beside the loss that a model has already.

    ```python
    model = model.with_auxiliaries(AuxiliaryRanking(SemanticPrecision(0.01), weight=10.0))
    ```

    Args:
        loss: a `MatrixLoss`. It compares the batch's matches, or its `"semantic"` matrix if it is
            no loss of labels.
        weight: factor of the term in the loss.
        num_samples: None ranks by the model's own logits. J ranks by the cosines of J samples of
            every Gaussian, each sample an item of its own, as DAA does with PCME: logits are then
            `(N · J, M · J)` in [−1, 1].
        seed: of the samples, an integer, or None for another draw each time it is built.
        name: under which it is logged; None for that of the loss's class.

    Call arguments:
        images: embeddings, `(N, dim)` Gaussians where samples are drawn.
        captions: M embeddings, in the same form.
        logits: `(N, M)`, the model's own; not read where samples are drawn.
        matches: `(N, M)` in [0, 1].
        semantic: `(N, M)`, see `zoo.data.records.semantics`.

    Output: a float32 scalar, unweighted.

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
            "loss": keras.saving.serialize_keras_object(self.loss),
            "num_samples": self.num_samples,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AuxiliaryRanking":
        loss = keras.saving.deserialize_keras_object(config["loss"])
        return cls(**{**config, "loss": loss})

    def _samples(self, embedding):
        samples = sample(embedding, self.num_samples, self.seed_generator)
        return unit(ops.reshape(samples, (-1, samples.shape[-1])))


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>MatrixTerm"] = AuxiliaryRanking
