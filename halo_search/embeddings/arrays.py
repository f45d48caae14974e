"""Embeddings as NumPy arrays: checked, taken apart by rows, of unit length, seen in a plane."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from halo_search.embeddings import as_embedding

KEYS = ("mean", "log_variance", "elements", "mask")
_FEW = 8  # queries, and numbers of all their products, that the calling thread takes alone
_SMALL = 2**23
# Of means, elements and standard deviations: float32 then holds the squares of all distances.
LARGEST = 1e15
_LARGEST_LOG = float(np.log(LARGEST**2))  # of a variance


def parts_of(embedding, name="embedding"):
    """The parts of an embedding as NumPy arrays, float32, unchecked; a mask stays boolean. Raises
    ValueError if a part does not consist of real numbers."""
    parts = as_embedding(embedding, name)
    return {
        key: _as_numbers(parts[key], bool if key == "mask" else np.float32, f"`{name}`: {key!r}")
        for key in KEYS
        if parts.get(key) is not None
    }


def _as_numbers(values, kind, what):
    """Numbers of any library as an array of one type; a ValueError that begins with `what`."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return array.astype(kind, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be an array of real numbers; {error}") from error


def as_arrays(embedding, name="embedding"):
    """An embedding, no token sequence, as a dict of checked float32 arrays; a mask stays boolean.
    Raises ValueError if it is none, its parts do not fit, or as `check_numbers`."""
    with np.errstate(over="ignore"):  # of float64, which `check_numbers` then refuses
        arrays = parts_of(embedding, name)
    if "mean" not in arrays and "elements" not in arrays:
        raise ValueError(f"`{name}` must have vectors to search by; received a token sequence")
    main = "elements" if "elements" in arrays else "mean"
    rank = 3 if main == "elements" else 2
    if arrays[main].ndim != rank:
        raise ValueError(
            f"`{name}` must have {main!r} of rank {rank}; received shape {arrays[main].shape}"
        )
    for key, rank in (("log_variance", 2), ("mask", 2)):
        if key in arrays and arrays[key].shape != arrays[main].shape[:rank]:
            raise ValueError(
                f"`{name}` must have {key!r} of shape {arrays[main].shape[:rank]}; "
                f"received {arrays[key].shape}"
            )
    check_numbers(arrays, name)
    return arrays


def check_numbers(arrays, name="embedding"):
    """The one check of what an embedding may be, of items and questions, in memory and on disk.

    Raises ValueError, with the first bad item, unless every number is finite and at most `LARGEST`,
    as is every standard deviation, each item has a number, and each set an element.
    """
    for key, values in arrays.items():
        if 0 in values.shape[1:]:
            raise ValueError(f"`{name}` must hold numbers in {key!r}; its shape is {values.shape}")
        if key == "mask":
            _refuse_items(~values.any(axis=1), f"`{name}` must have an element in every set")
            continue
        others = tuple(range(1, values.ndim))
        low, high = values.min(axis=others), values.max(axis=others)
        is_finite = np.isfinite(low) & np.isfinite(high)
        _refuse_items(~is_finite, f"`{name}` must hold finite numbers in {key!r}")
        said = f"`{name}` must hold numbers from {-LARGEST:.0e} to {LARGEST:.0e} in {key!r}"
        _refuse_items((low < -LARGEST) | (high > LARGEST), said)
        if key == "log_variance":
            said = f"`{name}` must have log variances of at most {_LARGEST_LOG:.1f}"
            _refuse_items(high > _LARGEST_LOG, said)


def _refuse_items(is_bad, expected):
    """Raises ValueError if there is an item, of booleans `(items,)`, that is not as expected."""
    if is_bad.any():
        raise ValueError(f"{expected}; item {is_bad.argmax()} does not")


def length(arrays):
    """How many items an embedding has."""
    return len(arrays["elements"] if "elements" in arrays else arrays["mean"])


def take(arrays, rows):
    """Some items of an embedding, which may be kept in float16; rows are a slice, a mask or
    numbers."""
    some = {key: value[rows] for key, value in arrays.items()}
    return {key: v.astype(np.float32) if v.dtype == np.float16 else v for key, v in some.items()}


def joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of several parts of an embedding as one; `{}` of none."""
    keys = parts[0] if parts else {}
    return {key: np.concatenate([part[key] for part in parts]) for key in keys}


def thinned(arrays, most):
    """At most so many items, evenly spaced."""
    return take(arrays, slice(None, None, max(1, -(-length(arrays) // most))))


def total_variance(arrays):
    """Σ_d σ_d² of every item, `(items,)`."""
    return np.exp(arrays["log_variance"]).sum(axis=1)


def uncertainty_of(arrays, measure):
    """`zoo.embeddings.uncertainty` of Gaussians and sets by NumPy, `(items,)`."""
    if measure == "circular_variance":
        return _circular_variance(arrays["elements"], arrays.get("mask"))
    if measure == "total_variance":
        return total_variance(arrays)
    if measure == "geometric_mean":
        return np.exp(0.5 * arrays["log_variance"].mean(axis=1))
    return arrays["log_variance"].sum(axis=1)


def _circular_variance(elements, mask):
    """1 − ‖mean of the normalised elements‖ of sets `(items, num_elements, dim)`, `(items,)`."""
    weights = np.ones(elements.shape[:2], np.float32) if mask is None else mask.astype(np.float32)
    counts = np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    means = np.einsum("bk,bkd->bd", weights, unit(elements)) / counts
    return 1.0 - np.linalg.norm(means, axis=-1)


def unit(vectors):
    """Vectors over their lengths, along the last axis; a zero vector stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def products(queries, rows):
    """Inner products of `(Q, dim)` and `(n, dim)`, `(Q, n)`. BLAS' threads spin for 40 ms after a
    product, so small ones keep to the calling thread."""
    if len(queries) <= _FEW and queries.size * len(rows) <= _SMALL:
        return np.vecdot(queries[:, None], rows)
    return queries @ rows.T


def element_owners(arrays):
    """The item of every row of the space `"elements"`: sets are laid out one after the other."""
    items, num_elements, _ = arrays["elements"].shape
    owners = np.repeat(np.arange(items), num_elements)
    return owners if "mask" not in arrays else owners[arrays["mask"].reshape(-1)]


def centres(embedding):
    """Where embeddings lie, `(B, dim)`: their means, of sets and tokens those of the elements."""
    if "mean" in embedding:
        return np.asarray(embedding["mean"])
    values = np.asarray(embedding["elements" if "elements" in embedding else "tokens"])
    if "mask" not in embedding:
        return values.mean(axis=1)
    weights = np.asarray(embedding["mask"], values.dtype)
    return np.einsum("bl,bld->bd", weights, values) / weights.sum(axis=1, keepdims=True)


def coordinates(embeddings):
    """Vectors in which strange embeddings lie apart, `(B, dim')`: of Gaussians mean and log
    variance, of others what `centres` says."""
    if "log_variance" not in embeddings:
        return centres(embeddings)
    parts = [np.asarray(embeddings[name]) for name in ("mean", "log_variance")]
    return np.concatenate([parts[0], np.broadcast_to(parts[1], parts[0].shape)], axis=1)


def as_rows(embedding: Any) -> Any:
    """An embedding with its first axis, without which one of a single item may come."""
    if isinstance(embedding, dict):
        main = "elements" if "elements" in embedding else "mean"
        if np.ndim(embedding[main]) == (2 if main == "elements" else 1):
            return {name: np.asarray(values)[None] for name, values in embedding.items()}
        return embedding
    return np.asarray(embedding)[None] if np.ndim(embedding) == 1 else embedding


@dataclasses.dataclass(frozen=True)
class Plane:
    """A plane in the space of embeddings and the projection onto it."""

    origin: np.ndarray
    axes: np.ndarray
    explained: np.ndarray | None

    def project(self, mean, log_variance):
        """Means `(n, 2)` and full covariances `(n, 2, 2)` of diagonal Gaussians in the plane."""
        mean = (np.asarray(mean, float) - self.origin) @ self.axes
        variance = np.exp(np.asarray(log_variance, float))
        return mean, np.einsum("nd,dk,dl->nkl", variance, self.axes, self.axes)


def principal_plane(mean: np.ndarray) -> "Plane":
    """The plane of the two main directions of the means; the space itself if it has two. Raises
    ValueError if there are fewer than two dimensions or items."""
    mean = np.asarray(mean, float)
    if mean.ndim != 2 or min(mean.shape) < 2:
        raise ValueError(f"`mean` must be (n, dim), both at least 2; received shape {mean.shape}")
    if mean.shape[1] == 2:
        return Plane(np.zeros(2), np.eye(2), None)
    origin = mean.mean(axis=0)
    # Eigenvectors of the covariance: a singular value decomposition of all means takes far longer.
    size, directions = np.linalg.eigh((mean - origin).T @ (mean - origin))
    share = np.maximum(size[::-1], 0.0) / max(size.sum(), np.finfo(float).tiny)
    return Plane(origin, directions[:, :-3:-1], share[:2])


def ellipse_axes(covariance, confidence=0.95):
    """Full widths, heights and angles of the ellipses that hold a share of each Gaussian."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"`confidence` must be in (0, 1); received {confidence}")
    # The squared Mahalanobis radius of two dimensions is exponential with mean 2.
    radius = np.sqrt(-2.0 * np.log1p(-confidence))
    values, vectors = np.linalg.eigh(covariance)
    lengths = 2.0 * radius * np.sqrt(np.maximum(values, 0.0))
    angle = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    return lengths[:, 1], lengths[:, 0], angle
