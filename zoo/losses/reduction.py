"""Any Keras loss over a batch's matrix as one number."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss

_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")


def single_loss(loss: Any) -> Callable:
    """A loss as `compile(loss=…)` takes it, as a Keras loss object or a function.

    Args:
        loss: a `keras.losses.Loss`, a function `(matches, logits) -> values`, or a name that Keras
            knows, such as `"mse"`.

    Raises:
        ValueError: if it is several losses, or nothing that Keras knows.
    """
    if isinstance(loss, (list, tuple, dict)) and "class_name" not in loss:
        raise ValueError(
            f"`loss` must be one loss over (matches, logits); received {len(loss)}: {loss!r:.60}"
        )
    return keras.losses.get(loss)


def reduced(loss: Any, matches: Tensor, logits: Tensor) -> Tensor:
    """A loss of a batch as Keras reduces it: names and functions by the mean of their values.

    Keras' own reductions also divide by the number of replicas. Here they do not, since every
    replica knows the whole batch: `DualEncoder` divides once.

    Args:
        loss: see `single_loss`.
        matches: `(N, M)` in [0, 1].
        logits: `(N, M)` similarities.

    Returns:
        A scalar.

    Raises:
        ValueError: if there are several losses, if Keras knows no such loss, or if the values of a
            loss are not reduced (`reduction=None`).
    """
    loss = single_loss(loss)
    if isinstance(loss, MatrixLoss):
        return loss(matches, logits)
    reduction = getattr(loss, "reduction", "sum_over_batch_size")
    if isinstance(loss, keras.losses.Loss):
        matches, logits = ops.cast(matches, loss.dtype), ops.cast(logits, loss.dtype)
        if type(loss).__call__ is keras.losses.Loss.__call__:
            loss = loss.call  # without Keras' reduction
    values = ops.convert_to_tensor(loss(matches, logits))
    if not values.shape:
        return values
    if reduction in _MEANS:
        return ops.mean(values)
    if reduction == "sum":
        return ops.sum(values)
    raise ValueError(
        "`loss` must give one number; received values of the shape "
        f"{tuple(values.shape)} and reduction={reduction!r}"
    )
