"""Losses over a matrix of matches, auxiliary terms on embeddings, and their reductions."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from zoo.embeddings import Tensor, as_embedding
from zoo.embeddings.layer import Layer

_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")


def single_loss(loss: Any) -> Callable:
    """`compile(loss=…)` as one Keras loss object or function, of a `keras.losses.Loss`, a function
    or a name. Raises ValueError if it is several losses, or nothing that Keras knows."""
    if isinstance(loss, (list, tuple, dict)) and "class_name" not in loss:
        raise ValueError(
            f"`loss` must be one loss over (matches, logits); received {len(loss)}: {loss!r:.60}"
        )
    return keras.losses.get(loss)


def reduced(loss: Any, matches: Tensor, logits: Tensor) -> Tensor:
    """A loss of a batch as Keras reduces it: names and functions by the mean of their values."""
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


class MatrixLoss(keras.losses.Loss):
    """Base of the losses that read a whole `(images, captions)` matrix.

    ```python
    class Wrong(zoo.losses.MatrixLoss):
        def call(self, matches, logits):
            return keras.ops.mean((1.0 - matches) * logits)

    Wrong()(np.eye(2), np.ones((2, 2), "float32"))  # 0.5
    ```

    Subclasses write `call(matches, logits)` and return the finished scalar, in float32. Keras' own
    reduction, masks and scaling by the number of replicas are for losses of one value an item and
    are left out: nothing is scaled here, and `DualEncoder` scales once.
    Call arguments: matches `(N, M)` in [0, 1], how much image and caption match, where captions of
        one image, or images of one class, are all matches; logits `(N, M)`, higher is better.

    Raises:
        ValueError: if the shapes are not one `(N, M)`, or, outside of a traced function, if
            `matches` holds a NaN or leaves [0, 1]; if a `sample_weight` is given.
    """

    #: What the first argument is called in errors, and whether it is a label in [0, 1].
    target_name = "matches"
    target_is_label = True

    def __init__(self, name: str | None = None):
        super().__init__(name=name, reduction=None, dtype="float32")

    def __call__(self, matches, logits, sample_weight=None):
        if sample_weight is not None:
            raise ValueError(
                "`sample_weight` must be None, since the items of this loss are pairs; "
                f"received {sample_weight!r}"
            )
        values = _known_values(matches)
        matches, logits = _float32(matches), _float32(logits)
        self._check_shapes(tuple(matches.shape), tuple(logits.shape))
        if values is not None:
            self._check_values(values)
        with keras.name_scope(self.name):
            return self.call(matches, logits)

    def get_config(self) -> dict[str, Any]:
        # What the constructor takes, by its names.
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _check_shapes(self, targets, logits):
        """Raises ValueError unless both shapes are one (images, captions)."""
        are_matrices = len(targets) == len(logits) == 2 and all(
            None in (a, b) or a == b for a, b in zip(targets, logits, strict=True)
        )
        if not are_matrices:
            raise ValueError(
                f"`{self.target_name}` and `logits` must have one shape (images, captions); "
                f"received {targets} and {logits}"
            )

    def _check_values(self, targets):
        """Raises ValueError for targets that are not finite or, if they are labels, outside [0,
        1]."""
        finite = np.isfinite(targets)
        if not finite.all():
            raise ValueError(
                f"`{self.target_name}` must be finite; received "
                f"{np.count_nonzero(~finite)} NaN or infinite values"
            )
        # Mixtures λ + (1 − λ) may round to a little more than one, most of all in float16.
        low, high = targets.min(initial=0.0), targets.max(initial=0.0)
        if self.target_is_label and not -1e-3 <= low <= high <= 1.001:
            raise ValueError(
                f"`{self.target_name}` must lie in [0, 1]; received values from {low} to {high}"
            )


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """`value`, if it is one of the allowed ones. Raises ValueError if it is not."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {allowed}; received {value!r}")
    return value


def positive(name: str, value: Any) -> float:
    """`value` as a float, if it is above zero. Raises ValueError if it is not."""
    if not value > 0:
        raise ValueError(f"`{name}` must be above 0; received {value!r}")
    return float(value)


def mean_over(values: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of `values`; 0 where the weights sum to 0."""
    return ops.divide_no_nan(ops.sum(values * weights), ops.sum(weights))


class Auxiliary(Layer):
    """Base of the auxiliary terms: two batches of embeddings in, one unweighted float32 scalar out.

    ```python
    class MeanLength(zoo.losses.Auxiliary):
        def call(self, images, captions):
            return keras.ops.mean(images["mean"] ** 2)

    points = {"mean": np.ones((2, 4), "float32")}
    MeanLength(0.1, "length")(points, points)  # unweighted: 1.0
    ```

    `DualEncoder` multiplies by `weight`, adds to the loss and logs the scalar under `name`. They
    are layers so that random state (`Uniformity` on samples) is saved with the model.
    Call arguments: N embeddings of images, M of captions, dicts of tensors or what `encode_images`
        returned; and what the term `reads` of the batch, by name: `"ids"`, the captions' token ids
        `(M, length)`; `"matches"`, `"logits"` and `"semantic"`, each `(N, M)`.
    """

    reads: tuple[str, ...] = ()

    def __init__(self, weight: float, name: str, **kwargs: Any):
        kwargs.setdefault("dtype", "float32")
        super().__init__(name=name, **kwargs)
        self.weight = float(weight)
        self.built = True

    def __call__(self, images, captions, **kwargs):
        # Distributions are not tensors, so Keras must not see them as layer inputs.
        images, captions = as_embedding(images, "images"), as_embedding(captions, "captions")
        return super().__call__(images, captions, **kwargs)

    def compute_output_spec(self, *args, **kwargs):
        return keras.KerasTensor((), dtype="float32")


def _known_values(array):
    """The values of an eager array, float32; None while a graph is traced."""
    # Eager tensors have values, traced ones refuse, each backend with its own kind of error.
    try:
        return np.asarray(array, dtype="float32")
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None


def _float32(array):
    return ops.cast(ops.convert_to_tensor(array), "float32")
