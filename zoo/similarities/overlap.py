"""How much two Gaussians overlap: expected likelihood and Bhattacharyya distance."""

import math

import keras
from keras import ops

from zoo.embeddings import GAUSSIAN
from zoo.numerics import about_common_centre, gaussian_pair, outer_sum
from zoo.similarities.base import Similarity
from zoo.similarities.summed_variance import SummedVarianceTerms


def log_expected_likelihood(images, captions):
    """log ∫ p(z) q(z) dz, the log of the expected likelihood kernel.

    −½ Σ_d [ log 2π + log(σ_v² + σ_t²) + (μ_v − μ_t)² / (σ_v² + σ_t²) ]

    Computed in blocks, as it is no matrix product: see `SummedVarianceTerms`.

    Args:
        images: Gaussians, N of dimension dim.
        captions: Gaussians, M of the same dimension.

    Returns:
        `(N, M)` float32, in nats.

    Raises:
        ValueError: if one side is not a Gaussian or the dimensions differ.

    Relations: symmetric; the log density of μ_v − μ_t under N(0, Σ_v + Σ_t).

    Reference: Jebara and Kondor, "Bhattacharyya and expected likelihood kernels", COLT 2003;
        PCME (Chun et al., CVPR 2021), table E.1.
    """
    images, captions, log_scale = about_common_centre(*gaussian_pair(images, captions))
    terms = SummedVarianceTerms(quadratic=1.0, log=1.0)(*images, *captions)
    constant = images[0].shape[-1] * math.log(2.0 * math.pi) + ops.sum(log_scale)
    return -0.5 * (terms + constant)


def bhattacharyya_distance(images, captions):
    """−log ∫ √(p(z) q(z)) dz of diagonal Gaussians.

    ¼ Σ_d (μ_v − μ_t)² / (σ_v² + σ_t²) + ½ Σ_d log( (σ_v² + σ_t²) / (2 σ_v σ_t) )

    Computed in blocks, as it is no matrix product: see `SummedVarianceTerms`.

    Args:
        images: Gaussians, N of dimension dim.
        captions: Gaussians, M of the same dimension.

    Returns:
        `(N, M)` float32 ≥ 0, in nats.

    Raises:
        ValueError: if one side is not a Gaussian or the dimensions differ.

    Relations: symmetric. With equal variances, a quarter of the Jeffreys divergence.

    Reference: Jebara and Kondor, COLT 2003; PCME (Chun et al., CVPR 2021), table E.1.
    """
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    terms = SummedVarianceTerms(quadratic=0.25, log=0.5)(*images, *captions)
    rows, columns = (ops.sum(log + math.log(2.0), axis=-1) for _, log in (images, captions))
    return ops.maximum(terms - 0.25 * outer_sum(rows, columns), 0.0)


@keras.saving.register_keras_serializable(package="halo")
class ExpectedLikelihood(Similarity):
    """log ∫ p q, for Gaussians; `(N, M)` float32. See `log_expected_likelihood`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.ExpectedLikelihood()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "elk"
    embeddings = (GAUSSIAN,)
    space = "csd"
    function = staticmethod(log_expected_likelihood)

    def call(self, images, captions):
        return log_expected_likelihood(images, captions)


@keras.saving.register_keras_serializable(package="halo")
class Bhattacharyya(Similarity):
    """−Bhattacharyya distance, for Gaussians; `(N, M)` ≤ 0. See `bhattacharyya_distance`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.Bhattacharyya()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "bhattacharyya"
    embeddings = (GAUSSIAN,)
    space = "wasserstein_2"
    function = staticmethod(bhattacharyya_distance)
    is_distance = True

    def call(self, images, captions):
        return -bhattacharyya_distance(images, captions)
