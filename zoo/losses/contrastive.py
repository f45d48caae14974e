"""Matching as a choice among all captions (or images) of the batch."""

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss, mean_over


@keras.saving.register_keras_serializable(package="halo")
class InfoNCE(MatrixLoss):
    """Symmetric softmax cross-entropy over the batch (CLIP), with any number of positives.

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.InfoNCE()(np.eye(2), logits)
    ```

    Half the sum of both directions. Of one direction: the mean over its queries of
    −Σ_c m_c log softmax(logits)_c / Σ_c m_c, the mean over the query's positives, weighted by
    their labels. Positives stay in each other's denominators. A query without a positive
    contributes nothing.

    The temperature is the scale of the similarity, `zoo.similarities.Cosine`.

    Relations:
        - With one positive a query it is CLIP's loss.
        - With several it is SupCon's "outside" form (Khosla et al., NeurIPS 2020, equation 2).
        - With labels that sum to one (Mixup) it is the cross-entropy to the soft target.

    Reference: van den Oord et al., 2018, equation 4; CLIP (Radford et al., ICML 2021) figure 3.
    """

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        rows = _softmax_crossentropy(matches, logits)
        columns = _softmax_crossentropy(ops.transpose(matches), ops.transpose(logits))
        return 0.5 * (rows + columns)


def _softmax_crossentropy(matches, logits):
    total = ops.sum(matches, axis=1)
    query = -ops.sum(matches * ops.log_softmax(logits, axis=1), axis=1)
    return mean_over(ops.divide_no_nan(query, total), ops.cast(ops.greater(total, 0.0), "float32"))
