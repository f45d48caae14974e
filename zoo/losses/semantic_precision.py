"""Differentiable Average Semantic Precision: rank the gallery as its semantics does."""

import keras
from keras import ops

from zoo.losses.base import MatrixLoss, positive
from zoo.losses.soft_ranks import soft_ranks


@keras.saving.register_keras_serializable(package="halo")
class SemanticPrecision(MatrixLoss):
    """1 − ASP, the mean over all queries of both directions (DAA).

    ASP of a query is the mean over the gallery of min(R(i, C), R(i, S)) / max(R(i, C), R(i, S)):
    how well the rank of item i by similarity, R(i, S), agrees with its rank by semantics, R(i, C).
    Both ranks are made smooth, see `zoo.losses.soft_ranks`. Every query ranks its own row (an
    image) or column (a caption).

    Args:
        temperature: τ of both ranks, in units of the semantics and of the logits. 0.01 with PCME,
            0.001 with SGRAF.
        name: of the loss.

    Call arguments:
        semantic_similarity: `(N, M)`, finite, in any unit; a constant for the gradient. DAA takes
            the mean CIDEr of a caption with the positives of an image, `zoo.metrics.cider`.
        logits: `(N, M)`.

    Output: a float32 scalar in [0, 1), 0 if both rank alike.

    Raises:
        ValueError: as `MatrixLoss`, and if the temperature is not above 0.

    Relations: as τ → 0 it is one minus the mean of both values of
        `zoo.metrics.average_semantic_precision`.

    Reference: DAA (Li et al., NeurIPS 2022) equations 4 to 9.

    Released code differs: a missing transpose ranks the wrong items unless the matrix is
        symmetric · the PCME variant never reads the captions.
    """

    target_name = "semantic_similarity"
    target_is_label = False

    def __init__(self, temperature=0.01, name=None):
        super().__init__(name=name)
        self.temperature = positive("temperature", temperature)

    def call(self, semantic_similarity, logits):
        rows = self._disagreement(semantic_similarity, logits)
        columns = self._disagreement(ops.transpose(semantic_similarity), ops.transpose(logits))
        return 0.5 * (rows + columns)

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}

    def _disagreement(self, semantics, logits):
        by_semantics = soft_ranks(ops.stop_gradient(semantics), self.temperature)
        by_similarity = soft_ranks(logits, self.temperature)
        agreement = ops.minimum(by_semantics, by_similarity)
        agreement = agreement / ops.maximum(by_semantics, by_similarity)
        return ops.mean(1.0 - agreement)
