"""Smooth-AP: the average precision itself as a loss."""

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
