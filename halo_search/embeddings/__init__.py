"""What an embedding is: a point, a Gaussian, a set or tokens, as a dict of arrays.

| kind | dict | shapes |
|---|---|---|
| point | `{"mean"}` | `(batch, dim)` |
| Gaussian (diagonal) | `{"mean", "log_variance"}` | `(batch, dim)` each |
| set | `{"elements"}` | `(batch, num_elements, dim)` |
| token sequence | `{"tokens", "mask", "pooled"}` | `(batch, length, dim)`, bool, `(batch, dim)` |

Tokens are for cross-attention: they have no uncertainty, and no vector that an index could hold. A
set of varying size has a `"mask"` too. `zoo.embeddings` has the same kinds as tensors.
"""

import contextlib
from typing import Any

import numpy as np

Embedding = dict[str, Any]  # of arrays, or of tensors of any library
EmbeddingLike = Any  # an embedding, an array, or a TFP distribution

# The kinds of embedding, as `kind` and errors call them.
POINT, GAUSSIAN, SET, TOKENS = "a point", "a Gaussian", "a set", "a token sequence"
GAUSSIAN_UNCERTAINTIES = ("log_det", "geometric_mean", "total_variance")
SET_UNCERTAINTIES = ("circular_variance",)
UNCERTAINTIES = {GAUSSIAN: GAUSSIAN_UNCERTAINTIES, SET: SET_UNCERTAINTIES}


def is_distribution(embedding: Any) -> bool:
    """Whether it is a TFP distribution, as `zoo.embeddings.distribution` returns it."""
    return hasattr(embedding, "log_prob") and hasattr(embedding, "stddev")


def as_embedding(embedding: EmbeddingLike, name: str = "embedding") -> Embedding:
    """The dict of tensors behind whatever `encode_images` or `encode_captions` returned: a dict as
    above (returned as it is), a TFP distribution with a diagonal covariance, a `(batch, dim)` array
    of points or a `(batch, num_elements, dim)` array of set elements, or lists of numbers. Raises
    ValueError if it is none of these; it is called `name`."""
    if isinstance(embedding, dict):
        if {"mean", "elements", "tokens"} & embedding.keys():
            return embedding
        raise ValueError(
            f"`{name}` must have the key 'mean' (point, Gaussian), 'elements' (set) or 'tokens' "
            f"(token sequence); received the keys {sorted(embedding)}"
        )
    if is_distribution(embedding):
        # From σ, not σ²: the square of a small σ underflows in float32.
        return {"mean": embedding.mean(), "log_variance": 2.0 * np.log(embedding.stddev())}
    if isinstance(embedding, list | tuple):
        with contextlib.suppress(ValueError, TypeError):  # rows of unequal lengths, or no numbers
            embedding = np.asarray(embedding, np.float32)
    rank = len(getattr(embedding, "shape", ()))
    if rank == 2:
        return {"mean": embedding}
    if rank == 3:
        return {"elements": embedding}
    raise ValueError(
        f"`{name}` must be a dict of tensors, a distribution, a (batch, dim) array of points or a "
        f"(batch, num_elements, dim) array of sets; received {_describe(embedding)}"
    )


def kind(embedding: EmbeddingLike) -> str:
    """`"a point"`, `"a Gaussian"`, `"a set"` or `"a token sequence"`, to choose a path by."""
    embedding = as_embedding(embedding)
    if "tokens" in embedding:
        return TOKENS
    if "elements" in embedding:
        return SET
    return GAUSSIAN if "log_variance" in embedding else POINT


def has_uncertainty(embedding: EmbeddingLike) -> bool:
    """Whether `uncertainty` is defined for this kind of embedding."""
    return kind(embedding) in UNCERTAINTIES


def measure_of(embedding: EmbeddingLike, measure: str | None = None) -> str | None:
    """By what `uncertainty` measures: as given, else the first that applies; None of points."""
    what = kind(embedding)
    if what not in UNCERTAINTIES:
        return None
    return measure or UNCERTAINTIES[what][0]


def is_logarithm(embedding: EmbeddingLike, measure: str | None = None) -> bool:
    """Whether `uncertainty` is a logarithm as it is: `"log_det"`, the default of Gaussians."""
    return measure_of(embedding, measure) == "log_det"


def _describe(value):
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"an array of shape {tuple(shape)}"
