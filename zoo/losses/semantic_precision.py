"""Differentiable Average Semantic Precision: rank the gallery as its semantics does."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss, positive
from zoo.losses.soft_ranks import soft_ranks


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
