"""Losses that are a smooth average precision: by matches, and by semantic similarity."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss, mean_over, positive
from zoo.losses.soft_ranks import soft_ranks


@keras.saving.register_keras_serializable(package="halo")
class SmoothAveragePrecision(MatrixLoss):
    """1 − AP, the mean over the queries with a positive, half of each direction (Smooth-AP).

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.SmoothAveragePrecision(0.1)(np.eye(2), logits)
    ```

    AP of a query is Σ_{i∈P} R(i, P) / R(i, all) / |P|, the rank of each positive among the
    positives over its rank in the gallery, both ranks made smooth, see `zoo.losses.soft_ranks`.
    Labels between 0 and 1 weigh: an item counts as that share of a positive. A query without a
    positive contributes nothing.

    Args:
        temperature: τ, in units of the logits.
        name: of the loss.

    Raises:
        ValueError: as `MatrixLoss`, and if the temperature is not above 0.

    Relations: as τ → 0 it is one minus the mean average precision over the whole gallery. DAA's
        baseline, in place of `SemanticPrecision`.

    Reference: Smooth-AP (Brown et al., ECCV 2020) equations 4 to 6.
    """

    def __init__(self, temperature: float = 0.01, name: str | None = None):
        super().__init__(name=name)
        self.temperature = positive("temperature", temperature)

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        columns = self.of_rows(ops.transpose(matches), ops.transpose(logits))
        return 0.5 * (self.of_rows(matches, logits) + columns)

    def of_rows(self, matches: Tensor, logits: Tensor) -> Tensor:
        """The loss of one direction: the rows of `(N, M)` are the queries."""
        among_positives = soft_ranks(logits, self.temperature, matches)
        among_all = soft_ranks(logits, self.temperature)
        positives = ops.sum(matches, axis=1)
        precision = ops.sum(matches * among_positives / among_all, axis=1)
        query = 1.0 - ops.divide_no_nan(precision, positives)
        return mean_over(query, ops.cast(ops.greater(positives, 0.0), "float32"))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature}


@keras.saving.register_keras_serializable(package="halo")
class SemanticPrecision(MatrixLoss):
    """1 − ASP, the mean over the queries of both directions, image → text and back (DAA).

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    semantic = np.array([[1.0, 0.2], [0.3, 1.0]], "float32")
    zoo.losses.SemanticPrecision(0.1)(semantic, logits)
    ```

    ASP of a query is the mean over the gallery of min(R(i, C), R(i, S)) / max(R(i, C), R(i, S)):
    how well the rank of item i by similarity, R(i, S), agrees with its rank by semantics, R(i, C).
    Both ranks are made smooth, see `zoo.losses.soft_ranks`. Every query ranks its own row (an
    image) or column (a caption).

    Args:
        temperature: τ of the ranks, in units of the logits. The released code has 0.01 for the
            cosines of PCME's samples, 0.001 for SGRAF.
        semantic_temperature: τ of the ranks by semantics, in their units; None for the same, as in
            the paper.
        name: of the loss.

    Call arguments:
        semantic_similarity: `(N, M)`, finite, in any unit; a constant for the gradient. DAA takes
            the mean CIDEr of a caption with the positives of an image, `zoo.metrics.cider`.
        logits: `(N, M)`.

    Output: a float32 scalar in [0, 1), 0 if both rank alike.

    Raises:
        ValueError: as `MatrixLoss`, and if a temperature is not above 0.

    Relations: as τ → 0 it is one minus the mean of both values of
        `zoo.metrics.average_semantic_precision`. With as many images as captions it is equation
        12's mean over all queries.

    Reference: DAA (Li et al., NeurIPS 2022) equations 4 to 12. The paper prints neither the weight
        of the term nor τ.

    Released code differs: it adds the directions, where this is their mean. So a released weight w
        is 2 · w here: SGRAF's 10 (Flickr30K) and 25 (COCO) are 20 and 50. Beside PCME's loss, which
        it counts twice too, 1000 stays 1000 · a missing transpose ranks the wrong items unless the
        matrix is symmetric · the PCME variant never reads the captions.
    """

    target_name = "semantic_similarity"
    target_is_label = False

    def __init__(
        self,
        temperature: float = 0.01,
        semantic_temperature: float | None = None,
        name: str | None = None,
    ):
        super().__init__(name=name)
        self.temperature = positive("temperature", temperature)
        if semantic_temperature is not None:
            semantic_temperature = positive("semantic_temperature", semantic_temperature)
        self.semantic_temperature = semantic_temperature

    def call(self, semantic_similarity: Tensor, logits: Tensor) -> Tensor:
        rows = self._disagreement(semantic_similarity, logits)
        columns = self._disagreement(ops.transpose(semantic_similarity), ops.transpose(logits))
        return 0.5 * (rows + columns)

    def get_config(self) -> dict[str, Any]:
        temperatures = {
            "temperature": self.temperature,
            "semantic_temperature": self.semantic_temperature,
        }
        return {**super().get_config(), **temperatures}

    def _disagreement(self, semantics, logits):
        temperature = self.semantic_temperature or self.temperature
        by_semantics = soft_ranks(ops.stop_gradient(semantics), temperature)
        by_similarity = soft_ranks(logits, self.temperature)
        agreement = ops.minimum(by_semantics, by_similarity)
        agreement = agreement / ops.maximum(by_semantics, by_similarity)
        return ops.mean(1.0 - agreement)
