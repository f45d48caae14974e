"""Recall@K as a Keras metric, for `compile(metrics=…)`."""

from typing import Any

import keras
from keras import ops

_DIRECTIONS = ("i2t", "t2i")


@keras.saving.register_keras_serializable(package="halo")
class RecallAtK(keras.metrics.Mean):
    """Recall@K within each batch, averaged over the queries of an epoch.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    model.compile("adam", metrics=[zoo.metrics.RecallAtK(5), zoo.metrics.RecallAtK(5, "t2i")])
    ```

    `fit` and `evaluate` report it as `i2t_recall@5` and `t2i_recall@5`. A query ranks the items of
    its own batch, so values compare at one batch size only.

    Args:
        k: the number of first items, at least 1.
        direction: `"i2t"`, images are the queries, or `"t2i"`, captions are.
        name: default: as above.
        **kwargs: as in Keras.

    Call arguments:
        y_true: matches `(images, captions)`; a pair above ½ is a match.
        y_pred: logits `(images, captions)`, higher is better. Ties count against the model.

    Raises:
        ValueError: if `k` is below 1 or the direction is neither.

    Relations: `zoo.metrics.recall_at_k` on a whole gallery, as a fraction.
    """

    def __init__(self, k: int = 1, direction: str = "i2t", name: str | None = None, **kwargs: Any):
        if k != int(k) or k < 1:
            raise ValueError(f"`k` must be a whole number of at least 1; received {k}")
        if direction not in _DIRECTIONS:
            raise ValueError(f"`direction` must be one of {_DIRECTIONS}; received {direction!r}")
        super().__init__(name or f"{direction}_recall@{k}", **kwargs)
        self.k, self.direction = int(k), direction

    def update_state(self, y_true, y_pred, sample_weight=None):
        matches = ops.greater(ops.cast(y_true, "float32"), 0.5)
        logits = ops.cast(y_pred, "float32")
        if self.direction == "t2i":
            matches, logits = ops.transpose(matches), ops.transpose(logits)
        best = ops.max(ops.where(matches, logits, -float("inf")), axis=1, keepdims=True)
        before = ops.logical_and(ops.logical_not(matches), ops.greater_equal(logits, best))
        ahead = ops.sum(ops.cast(before, "int32"), axis=1)
        counted = ops.cast(ops.any(matches, axis=1), self.dtype)
        return super().update_state(ops.cast(ahead < self.k, self.dtype), counted)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "k": self.k, "direction": self.direction}
