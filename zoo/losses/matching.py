"""Losses that read a logit as the log-odds of a match, or as one of a softmax over a batch."""

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss, choice, mean_over, positive


@keras.saving.register_keras_serializable(package="halo")
class MatchingCrossentropy(MatrixLoss):
    """Binary cross-entropy of the match probability of every pair.

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.MatchingCrossentropy()(np.eye(2), logits)
    ```

    −m log p − (1 − m) log(1 − p) with p = sigmoid(logit), over all N × M pairs, computed from the
    logit, so that it is finite and exact in both tails.

    Args:
        pseudo_positive_weight: α of PCME++. Adds α · ½ (rows + columns), where `rows` is the same
            cross-entropy with the pseudo-positives of every image as matches and `columns` with
            those of every caption, see `with_pseudo_positives`. 0 leaves them out.
        reduction: `"mean"` (PCME++) or `"sum"` (PCME) over all pairs, of every part.
        pair_weight: weight of each pair, in every part. 1 counts a pair once, as the papers print
            it; 2 counts it once per direction, as the released codes do.

    Raises:
        ValueError: if `reduction` is another, a weight is negative, or `pair_weight` is 0.
    Relations: on `zoo.similarities.MatchProbability` with `"sum"` it is PCME's soft contrastive
        loss, on `zoo.similarities.ClosedFormSampledDistance` PCME++'s matching loss.
    Reference: PCME (Chun et al., CVPR 2021) equation 4; PCME++ (Chun, ICLR 2024) equations 2, 3.
    Released code differs: PCME and PCME++ count every pair once per direction (`pair_weight=2`).
        PCME++'s total is 2 · match + α · (rows + columns) + β · VIB, so beside the match α is as
        strong as printed, and only β half as strong.
    """

    def __init__(
        self,
        pseudo_positive_weight: float = 0.0,
        reduction: str = "mean",
        pair_weight: float = 1.0,
        name: str | None = None,
    ):
        super().__init__(name=name)
        if not pseudo_positive_weight >= 0:
            raise ValueError(
                f"`pseudo_positive_weight` must be at least 0; received {pseudo_positive_weight!r}"
            )
        self.pseudo_positive_weight = float(pseudo_positive_weight)
        self.reduction = choice("reduction", reduction, ("mean", "sum"))
        self.pair_weight = positive("pair_weight", pair_weight)

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        loss = self._crossentropy(matches, logits)
        if self.pseudo_positive_weight:
            rows = with_pseudo_positives(matches, logits)
            columns = with_pseudo_positives(ops.transpose(matches), ops.transpose(logits))
            pseudo = self._crossentropy(rows, logits)
            pseudo += self._crossentropy(ops.transpose(columns), logits)
            loss += 0.5 * self.pseudo_positive_weight * pseudo
        return self.pair_weight * loss

    def _crossentropy(self, matches, logits):
        """Binary cross-entropy of all pairs (images, captions), summed or averaged."""
        pairs = ops.binary_crossentropy(matches, logits, from_logits=True)
        return ops.sum(pairs) if self.reduction == "sum" else ops.mean(pairs)


def with_pseudo_positives(matches: Tensor, logits: Tensor) -> Tensor:
    """The matches of every row, and what looks at least as similar as the row's own match.

    The match of row v is its largest label, the first of several. Every t' whose logit reaches
    that of the match takes its label. Rows without a match stay as they are. Both matrices and the
    result are `(N, M)` float32; for the pseudo-positives of the columns, transpose all three.
    Reference: PCME++ (Chun, ICLR 2024) section 2.3.
    """
    label = ops.max(matches, axis=1, keepdims=True)
    first = ops.argmax(matches, axis=1)
    threshold = ops.take_along_axis(logits, ops.expand_dims(first, 1), axis=1)
    return ops.where(ops.greater_equal(logits, threshold), label, matches)


@keras.saving.register_keras_serializable(package="halo")
class InfoNCE(MatrixLoss):
    """Symmetric softmax cross-entropy over the batch (CLIP), with any number of positives.

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.InfoNCE()(np.eye(2), logits)
    ```

    Half the sum of both directions. The loss of a direction is the mean over its queries of
    −Σ_c m_c log softmax(logits)_c / Σ_c m_c, the mean over the query's positives, weighted by
    their labels. Positives stay in each other's denominators. A query without a positive
    contributes nothing. The temperature is the scale of `zoo.similarities.Cosine`.
    Relations: with one positive a query it is CLIP's loss; with several SupCon's "outside" form
        (Khosla et al., NeurIPS 2020, equation 2); with labels that sum to one (Mixup) the
        cross-entropy to the soft target.
    Reference: van den Oord et al., 2018, equation 4; CLIP (Radford et al., ICML 2021) figure 3.
    """

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        rows = _softmax_crossentropy(matches, logits)
        columns = _softmax_crossentropy(ops.transpose(matches), ops.transpose(logits))
        return 0.5 * (rows + columns)


def _softmax_crossentropy(matches, logits):
    """The mean over rows with a match of −Σ matches · log softmax / Σ matches, along the
    columns."""
    total = ops.sum(matches, axis=1)
    query = -ops.sum(matches * ops.log_softmax(logits, axis=1), axis=1)
    return mean_over(ops.divide_no_nan(query, total), ops.cast(ops.greater(total, 0.0), "float32"))
