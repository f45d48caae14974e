"""What an embedding is: a point, a Gaussian, a set or tokens, as a dict of tensors.

| kind | dict | shapes |
|---|---|---|
| point | `{"mean"}` | `(batch, dim)` |
| Gaussian (diagonal) | `{"mean", "log_variance"}` | `(batch, dim)` each |
| set | `{"elements"}` | `(batch, num_elements, dim)` |
| token sequence | `{"tokens", "mask", "pooled"}` | `(batch, length, dim)`, bool, `(batch, dim)` |

Tokens are for cross-attention: they have no uncertainty, and no vector that an index could hold. A
set of varying size has a `"mask"` too. A dict survives `fit`, `predict`, saving, export and
replicas, which a TFP distribution, what `distribution` makes of a Gaussian, does not. Every
function of the zoo takes either form.
"""

from collections.abc import Sequence
from typing import Any

from keras import ops

from halo_search.embeddings import (
    GAUSSIAN,
    GAUSSIAN_UNCERTAINTIES,
    POINT,
    SET,
    SET_UNCERTAINTIES,
    TOKENS,
    UNCERTAINTIES,
    Embedding,
    EmbeddingLike,
    has_uncertainty,
    is_distribution,
    is_logarithm,
    kind,
    measure_of,
)
from halo_search.embeddings import as_embedding as as_embedding_of_arrays

__all__ = [
    "GAUSSIAN",
    "GAUSSIAN_UNCERTAINTIES",
    "POINT",
    "SET",
    "SET_UNCERTAINTIES",
    "TOKENS",
    "Embedding",
    "EmbeddingLike",
    "Tensor",
    "as_embedding",
    "concatenate",
    "distribution",
    "elements",
    "gaussian",
    "has_uncertainty",
    "is_logarithm",
    "kind",
    "log_uncertainty",
    "measure_of",
    "points",
    "tokens",
    "uncertainty",
]

Tensor = Any  # a tensor of Keras' backend or a NumPy array; the backends share no class


def as_embedding(embedding: EmbeddingLike, name: str = "embedding") -> Embedding:
    """The dict of tensors behind whatever `encode_images` or `encode_captions` returned, as
    `halo_search.embeddings.as_embedding`; of a distribution tensors, through which gradients flow.
    """
    if is_distribution(embedding):
        # From σ, not σ²: the square of a small σ underflows in float32.
        return {"mean": embedding.mean(), "log_variance": 2.0 * ops.log(embedding.stddev())}
    return as_embedding_of_arrays(embedding, name)


def gaussian(embedding: EmbeddingLike, name: str = "embedding") -> tuple[Tensor, Tensor]:
    """`(mean, log_variance)` of a Gaussian, float32, both `(batch, dim)`. Raises ValueError if it
    has no `log_variance`, or the two shapes differ."""
    embedding = as_embedding(embedding, name)
    if "mean" not in embedding or "log_variance" not in embedding:
        raise ValueError(
            f"`{name}` must be a Gaussian with 'mean' and 'log_variance'; "
            f"received {kind(embedding)}"
        )
    mean, log_variance = _float32(embedding["mean"]), _float32(embedding["log_variance"])
    if len(mean.shape) != 2 or tuple(mean.shape) != tuple(log_variance.shape):
        raise ValueError(
            f"`{name}` must have 'mean' and 'log_variance' of one shape (batch, dim); "
            f"received {tuple(mean.shape)} and {tuple(log_variance.shape)}"
        )
    return mean, log_variance


def points(embedding: EmbeddingLike, name: str = "embedding") -> Tensor:
    """The means of points or Gaussians, float32 `(batch, dim)`. Raises ValueError if a set was
    given, or the rank is not two."""
    embedding = as_embedding(embedding, name)
    if "mean" not in embedding:
        raise ValueError(f"`{name}` must be points (batch, dim); received {kind(embedding)}")
    mean = _float32(embedding["mean"])
    if len(mean.shape) != 2:
        raise ValueError(f"`{name}` must be points (batch, dim); received shape {mean.shape}")
    return mean


def elements(embedding: EmbeddingLike, name: str = "embedding") -> tuple[Tensor, Tensor | None]:
    """`(elements, mask)` of sets: float32 `(batch, num_elements, dim)` and bool or None. Raises
    ValueError if points or Gaussians were given, or the rank is not three."""
    embedding = as_embedding(embedding, name)
    if "elements" not in embedding:
        raise ValueError(
            f"`{name}` must be sets (batch, num_elements, dim); received {kind(embedding)}"
        )
    values = _float32(embedding["elements"])
    if len(values.shape) != 3:
        raise ValueError(
            f"`{name}` must be sets (batch, num_elements, dim); received shape {values.shape}"
        )
    return values, embedding.get("mask")


def tokens(embedding: EmbeddingLike, name: str = "embedding") -> tuple[Tensor, Tensor, Tensor]:
    """`(tokens, mask, pooled)` of token sequences: float32, bool, float32. Raises ValueError if
    something else was given, or a part is missing."""
    embedding = as_embedding(embedding, name)
    if not {"tokens", "mask", "pooled"} <= embedding.keys():
        what = f"{kind(embedding)} with {sorted(embedding)}"
        raise ValueError(f"`{name}` must have 'tokens', 'mask' and 'pooled'; received {what}")
    mask = ops.cast(ops.convert_to_tensor(embedding["mask"]), "bool")
    return _float32(embedding["tokens"]), mask, _float32(embedding["pooled"])


def distribution(embedding: EmbeddingLike) -> Any:
    """The Gaussian as `tfp.distributions.MultivariateNormalDiag`, in float32, of batch shape
    `(batch,)` and event shape `(dim,)`. Raises ValueError if the embedding is no Gaussian.

    `.mean()`, `.variance()`, `.sample(n)`, `.log_prob(z)`, `.kl_divergence(other)` and `.entropy()`
    are TFP's. Do not broadcast it over pairs: `zoo.similarities` does that by matrix products.
    """
    import tensorflow_probability as tfp  # here, so that the zoo also imports on another backend

    mean, log_variance = gaussian(embedding)
    return tfp.distributions.MultivariateNormalDiag(
        loc=mean, scale_diag=ops.exp(0.5 * log_variance)
    )


def uncertainty(embedding: EmbeddingLike, measure: str | None = None) -> Tensor:
    """One number an item, float32 `(batch,)`: how unsure the embedding is. Higher is less sure.

    | measure | of | value |
    |---|---|---|
    | `"log_det"` (default) | Gaussian | log det Σ = Σ_d log σ_d², in nats |
    | `"geometric_mean"` | Gaussian | (Π_d σ_d)^(1/dim), in units of the space (PCME) |
    | `"total_variance"` | Gaussian | tr Σ = Σ_d σ_d², in squared units (PCME++) |
    | `"circular_variance"` | set | 1 − ‖mean of the normalised elements‖, in [0, 1] (DivE) |

    Args:
        embedding: a Gaussian or a set; points have no uncertainty.
        measure: one of the above, or None for the first that applies.

    Raises:
        ValueError: if the measure is unknown or does not apply to this kind of embedding.
    Relations: `log_det` = 2 · dim · log `geometric_mean`, so the two order items alike;
        `total_variance` may order them otherwise.
    Reference: PCME (Chun et al., CVPR 2021) section 4.4, Pishdad et al. section 3, PCME++ (Chun,
        ICLR 2024) section 3.4, DivE (Kim et al., CVPR 2023) section 4.6.
    """
    embedding = as_embedding(embedding)
    what = kind(embedding)
    if what not in UNCERTAINTIES:
        raise ValueError(f"`embedding` must be a Gaussian or a set here; received {what}")
    allowed = UNCERTAINTIES[what]
    measure = measure_of(embedding, measure)
    if measure not in allowed:
        raise ValueError(f"`measure` must be one of {allowed} for {what}; received {measure!r}")
    if measure == "circular_variance":
        return _circular_variance(*elements(embedding))
    _, log_variance = gaussian(embedding)
    if measure == "log_det":
        return ops.sum(log_variance, axis=-1)
    if measure == "geometric_mean":
        return ops.exp(0.5 * ops.mean(log_variance, axis=-1))
    return ops.sum(ops.exp(log_variance), axis=-1)


def log_uncertainty(embedding: EmbeddingLike, measure: str | None = None) -> Tensor:
    """The natural logarithm of `uncertainty`, which `"log_det"` already is, `(batch,)`: for
    calibrations. Not below log 1e-12, which the variance of a set of equal elements would be."""
    values = uncertainty(embedding, measure)
    if is_logarithm(embedding, measure):
        return values
    return ops.log(ops.maximum(values, 1e-12))


def concatenate(embeddings: Sequence[EmbeddingLike]) -> Embedding:
    """Joins embeddings of one kind and dimension along the batch, in order. Raises ValueError if
    the list is empty or the kinds differ."""
    embeddings = [as_embedding(embedding) for embedding in embeddings]
    if not embeddings:
        raise ValueError("`embeddings` must hold at least one embedding; received an empty list")
    keys = sorted(embeddings[0])
    for position, embedding in enumerate(embeddings):
        if sorted(embedding) != keys:
            raise ValueError(
                f"`embeddings` must all have the keys {keys}; number {position} has "
                f"{sorted(embedding)}"
            )
    return {key: ops.concatenate([e[key] for e in embeddings], axis=0) for key in keys}


def _circular_variance(values, mask):
    """1 − ‖mean direction‖ of each set: (batch, elements, dim) to (batch,), over unmasked
    elements."""
    directions = ops.normalize(values, axis=-1, order=2, epsilon=1e-12)
    if mask is None:
        mean = ops.mean(directions, axis=1)
    else:
        weight = ops.expand_dims(ops.cast(mask, "float32"), -1)
        count = ops.maximum(ops.sum(weight, axis=1), 1.0)
        mean = ops.sum(directions * weight, axis=1) / count
    return 1.0 - ops.norm(mean, axis=-1)


def _float32(value):
    return ops.cast(ops.convert_to_tensor(value), "float32")
