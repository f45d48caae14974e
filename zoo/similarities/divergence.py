"""Divergences between diagonal Gaussians, and how much two of them overlap."""

import math

import keras
from keras import ops

from zoo.embeddings import GAUSSIAN
from zoo.embeddings.numerics import about_common_centre, gaussian_pair, outer_sum, product
from zoo.similarities.base import Plain
from zoo.similarities.summed_variance import SummedVarianceTerms


def kl_divergence(images, captions):
    """KL(image ‖ caption) of diagonal Gaussians, N and M of one dimension dim, in nats.

    ½ Σ_d [ log σ_t² − log σ_v² + (σ_v² + (μ_v − μ_t)²) / σ_t² − 1 ]

    Returns:
        `(N, M)` float32 ≥ 0. The absolute error is a few float32 roundings of
        Σ_d (μ − centre)² / σ_t², about the common centre of both batches.

    Raises:
        ValueError: if one side is not a Gaussian or the dimensions differ.
    Relations: with equal variances it is the Mahalanobis distance, squared and halved.
    Reference: Pishdad et al., 2022, section 3. PCME (Chun et al., CVPR 2021), table E.1.
        Released code differs: PCME's `kl` has the sign of the log term reversed.
    """
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    return ops.maximum(_kl(images, captions), 0.0)


def reverse_kl_divergence(images, captions):
    """KL(caption ‖ image) in nats: `(N, M)` float32 ≥ 0, otherwise as `kl_divergence`."""
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    return ops.maximum(ops.transpose(_kl(captions, images)), 0.0)


def min_kl_divergence(images, captions):
    """min(KL(image ‖ caption), KL(caption ‖ image)) in nats, pair by pair: symmetric, otherwise as
    `kl_divergence`. Reference: Pishdad et al., 2022, section 3."""
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    lesser = ops.minimum(_kl(images, captions), ops.transpose(_kl(captions, images)))
    return ops.maximum(lesser, 0.0)


def jeffreys_divergence(images, captions):
    """½ KL(image ‖ caption) + ½ KL(caption ‖ image): symmetric, otherwise as `kl_divergence`.

    Reference: PCME (Chun et al., CVPR 2021), table E.1, where "JS" is this, not the Jensen–Shannon
        divergence.
    """
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    both = _kl(images, captions) + ops.transpose(_kl(captions, images))
    return ops.maximum(0.5 * both, 0.0)


class _Divergence(Plain):
    """Base of those that are minus a divergence: W2 finds their candidates."""

    embeddings = (GAUSSIAN,)
    space = "wasserstein_2"
    is_distance = True


@keras.saving.register_keras_serializable(package="halo")
class KLDivergence(_Divergence):
    """−KL(image ‖ caption), for Gaussians; `(N, M)` float32 ≤ 0. See `kl_divergence`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.KLDivergence()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "kl"
    function = staticmethod(kl_divergence)


@keras.saving.register_keras_serializable(package="halo")
class ReverseKLDivergence(_Divergence):
    """−KL(caption ‖ image), for Gaussians; `(N, M)` float32 ≤ 0. See `reverse_kl_divergence`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.ReverseKLDivergence()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "reverse_kl"
    function = staticmethod(reverse_kl_divergence)


@keras.saving.register_keras_serializable(package="halo")
class MinKLDivergence(_Divergence):
    """−min of both KLs, for Gaussians; `(N, M)` float32 ≤ 0. See `min_kl_divergence`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.MinKLDivergence()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "min_kl"
    function = staticmethod(min_kl_divergence)


@keras.saving.register_keras_serializable(package="halo")
class JeffreysDivergence(_Divergence):
    """−Jeffreys divergence, for Gaussians; `(N, M)` float32 ≤ 0. See `jeffreys_divergence`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.JeffreysDivergence()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "jeffreys"
    function = staticmethod(jeffreys_divergence)


def log_expected_likelihood(images, captions):
    """log ∫ p(z) q(z) dz in nats, the log of the expected likelihood kernel; arguments, shape and
    errors as of `kl_divergence`.

    −½ Σ_d [ log 2π + log(σ_v² + σ_t²) + (μ_v − μ_t)² / (σ_v² + σ_t²) ]

    Computed in blocks, as it is no matrix product: see `SummedVarianceTerms`.
    Relations: symmetric; the log density of μ_v − μ_t under N(0, Σ_v + Σ_t).
    Reference: Jebara and Kondor, "Bhattacharyya and expected likelihood kernels", COLT 2003;
        PCME (Chun et al., CVPR 2021), table E.1.
    """
    images, captions, log_scale = about_common_centre(*gaussian_pair(images, captions))
    terms = SummedVarianceTerms(quadratic=1.0, log=1.0)(*images, *captions)
    constant = images[0].shape[-1] * math.log(2.0 * math.pi) + ops.sum(log_scale)
    return -0.5 * (terms + constant)


def bhattacharyya_distance(images, captions):
    """−log ∫ √(p(z) q(z)) dz ≥ 0 in nats; arguments, shape and errors as of `kl_divergence`.

    ¼ Σ_d (μ_v − μ_t)² / (σ_v² + σ_t²) + ½ Σ_d log( (σ_v² + σ_t²) / (2 σ_v σ_t) )
    Relations: symmetric. With equal variances, a quarter of the Jeffreys divergence.
    Reference: as of `log_expected_likelihood`, and computed in blocks likewise.
    """
    images, captions, _ = about_common_centre(*gaussian_pair(images, captions))
    terms = SummedVarianceTerms(quadratic=0.25, log=0.5)(*images, *captions)
    rows, columns = (ops.sum(log + math.log(2.0), axis=-1) for _, log in (images, captions))
    return ops.maximum(terms - 0.25 * outer_sum(rows, columns), 0.0)


@keras.saving.register_keras_serializable(package="halo")
class ExpectedLikelihood(Plain):
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


@keras.saving.register_keras_serializable(package="halo")
class Bhattacharyya(_Divergence):
    """−Bhattacharyya distance, for Gaussians; `(N, M)` ≤ 0. See `bhattacharyya_distance`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.Bhattacharyya()(gaussian, gaussian)  # (2, 2)
    ```
    """

    identifier = "bhattacharyya"
    function = staticmethod(bhattacharyya_distance)


def _kl(p, q):
    """KL(p_i ‖ q_j) before the clamp, from `(mean, log_variance)` about a common centre."""
    (p_mean, p_log), (q_mean, q_log) = p, q
    precision = ops.exp(-q_log)
    weighted = q_mean * precision
    rows = -ops.sum(p_log, axis=-1)
    columns = ops.sum(q_log + q_mean * weighted - 1.0, axis=-1)
    second_moment = ops.exp(p_log) + p_mean * p_mean
    products = product(second_moment, precision) - product(2.0 * p_mean, weighted)
    return 0.5 * (products + outer_sum(rows, columns))
