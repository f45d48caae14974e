"""The cosine of two Gaussians: its mean and its variance, and a logit that is less sure of both."""

import math

import keras
from keras import ops

from zoo.embeddings import GAUSSIAN
from zoo.embeddings.numerics import gaussian_pair, product
from zoo.similarities.base import Similarity, unchanged


def expected_cosine(images, captions):
    """Mean of the cosine of every pair of diagonal Gaussians, to first order.

    E[cos] ≈ μ_g·μ_h / √(E_g E_h) with E = Σ(μ² + σ²), the expected squared length.

    Args:
        images, captions: Gaussians, N and M of one dimension dim.

    Returns:
        `(N, M)` float32 in [−1, 1].

    Raises:
        ValueError: if they are no Gaussians, or the dimensions differ.

    Relations: without variance the cosine of the means.

    Reference: BayesVLM (ICLR 2026), the mean of ProbCosine.
    """
    mean, _, other, _ = _scaled(images, captions)
    return product(mean, other)


def cosine_variance(images, captions):
    """Variance of the cosine of every pair of diagonal Gaussians, to first order.

    Var ≈ Σ[σ_g²(μ_h² + σ_h²) + μ_g²σ_h²] / (E_g E_h): that of the inner product, over the expected
    squared lengths. It is itself an approximation, which leaves out that lengths vary.

    Args, Returns, Raises: as of `expected_cosine`; `(N, M)` float32, not negative.

    Reference: BayesVLM (ICLR 2026), the variance of ProbCosine.
    """
    mean, variance, other, other_variance = _scaled(images, captions)
    first = product(variance, ops.square(other) + other_variance)
    return first + product(ops.square(mean), other_variance)


@keras.saving.register_keras_serializable(package="halo")
class ProbabilisticCosine(Similarity):
    """scale · E[cos] / √(1 + (π/8) scale² Var[cos]): a logit for the softmax over a gallery.

    ```python
    images = {"mean": np.eye(2), "log_variance": np.full((2, 2), -4.0)}
    zoo.similarities.ProbabilisticCosine(10.0)(images, images)  # (2, 2)
    ```

    Args:
        scale: t, the factor that the vectors were trained with, such as 100 for CLIP.
        probit: whether a pair of uncertain cosine gets a smaller logit (MacKay's correction of
            the expected sigmoid). Without it the logit is scale · E[cos].

    Call arguments:
        images, captions: Gaussians, N and M of one dimension dim.

    Output: `(N, M)` float32.

    Raises:
        ValueError: if the scale is not positive.

    Relations: as σ → 0 it is `Cosine(scale)`.

    Reference: BayesVLM (ICLR 2026); the correction: MacKay, "The evidence framework applied to
        classification networks", 1992.
    """

    identifier = "probabilistic_cosine"
    embeddings = (GAUSSIAN,)
    space = "expected_cosine"  # without `probit` in order; with it, it finds the candidates

    def __init__(self, scale=1.0, probit=True, **kwargs):
        super().__init__(**kwargs)
        if not scale > 0:
            raise ValueError(f"`scale` must be positive; received {scale}")
        self.scale = float(scale)
        self.probit = bool(probit)
        if not self.probit:  # the variance of a pair is no value of the space
            self.from_space = unchanged

    def call(self, images, captions):
        logits = self.scale * expected_cosine(images, captions)
        if not self.probit:
            return logits
        variance = cosine_variance(images, captions)
        return logits / ops.sqrt(1.0 + math.pi / 8 * self.scale**2 * variance)

    def scorer(self):
        return None if self.probit else lambda value: self.scale * value

    def get_config(self):
        return {**super().get_config(), "scale": self.scale, "probit": self.probit}


def _scaled(images, captions):
    """Means over √E and variances over E of both sides, so that products are the quantities."""
    sides = []
    for mean, log_variance in gaussian_pair(images, captions):
        variance = ops.exp(log_variance)
        energy = ops.sum(ops.square(mean) + variance, axis=-1, keepdims=True)
        energy = ops.maximum(energy, 1e-24)
        sides += [mean / ops.sqrt(energy), variance / energy]
    return sides
