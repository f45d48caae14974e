"""PCME's match probability and average distance of Gaussians, by samples and by moments."""

import math

import keras
import numpy as np
from keras import ops

from zoo.embeddings import GAUSSIAN, SET, elements, gaussian, kind
from zoo.embeddings.numerics import (
    common_centre,
    element_pair,
    elements_first,
    gaussian_pair,
    outer_sum,
    product,
    safe_sqrt,
    sizes,
    squared_distance,
)
from zoo.similarities.base import Similarity, add_scale_and_shift
from zoo.similarities.gaussian import EuclideanDistance, closed_form_sampled_distance
from zoo.similarities.sets import SetMatchProbability

# Nodes and weights for the standard normal: ∫ f(x) φ(x) dx ≈ Σ w f(x).
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODES = _NODES.reshape(-1, 1, 1).astype("float32")
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum()).reshape(-1, 1, 1).astype("float32")


def moment_matched_match_probability(images, captions, scale, shift):
    """E sigmoid(−scale · ‖Z_v − Z_t‖₂ + shift) for Gaussians, without sampling.

    ‖Z_v − Z_t‖² is a weighted sum of χ² variables with

        mean      m = Σ (μ_v − μ_t)² + Σ s                 (CSD),   s = σ_v² + σ_t²
        variance  v = 2 Σ s² + 4 Σ (μ_v − μ_t)² s

    both sums of matrix products. A χ² with these two moments has a nearly normal cube root
    (Wilson and Hilferty): ‖Z_v − Z_t‖ ≈ √m · (1 − h + √h · x)^(3/2) with h = v / 9m², x ~ N(0, 1),
    over which nine Gauss–Hermite points integrate.

    Args:
        images, captions: Gaussians, N and M of one dimension dim; else a ValueError.
        scale, shift: a > 0, in 1 / units of the space, and b.

    Returns:
        `(N, M)` float32 in [0, 1].
    Relations: what `match_probability` converges to as J grows, up to an error of 1e-3 and less
        from some ten dimensions on (`python -m benchmarks moment_matching`). In two dimensions,
        where a χ² is far from normal and nine points are few for a steep sigmoid, a few 1e-2.
    Reference: the probability is PCME's (Chun et al., CVPR 2021, equation 3). Wilson and Hilferty,
        "The distribution of chi-square", PNAS 1931.
    """
    return ops.sigmoid(moment_matched_logit(images, captions, scale, shift))


def moment_matched_logit(images, captions, scale, shift):
    """log p − log(1 − p) of `moment_matched_match_probability`, in log space: `(N, M)` float32."""
    mean = closed_form_sampled_distance(images, captions)
    root = safe_sqrt(squared_distance_variance(images, captions)) / (3.0 * mean)
    # v ≤ 2m² for any such sum; rounding must not leave that range.
    root = ops.expand_dims(ops.minimum(root, math.sqrt(2.0) / 3.0), 0)
    cube_root = ops.maximum(1.0 - root * root + root * _NODES, 0.0)
    x = shift - scale * ops.expand_dims(safe_sqrt(mean), 0) * cube_root * safe_sqrt(cube_root)
    log_match = ops.log_sigmoid(x)
    log_mismatch = log_match - x
    return ops.logsumexp(log_match + _LOG_WEIGHTS, axis=0) - ops.logsumexp(
        log_mismatch + _LOG_WEIGHTS, axis=0
    )


def squared_distance_variance(images, captions):
    """Var ‖Z_v − Z_t‖² = 2 Σ (σ_v² + σ_t²)² + 4 Σ (μ_v − μ_t)² (σ_v² + σ_t²): `(N, M)` ≥ 0."""
    (image_mean, image_log), (caption_mean, caption_log) = gaussian_pair(images, captions)
    centre = common_centre(image_mean, caption_mean)
    a, b = image_mean - centre, caption_mean - centre
    p, q = ops.exp(image_log), ops.exp(caption_log)
    # Σ (p + q)² and Σ (a − b)² (p + q), multiplied out and collected by factor.
    rows = ops.sum(p * (2.0 * p + 4.0 * a * a), axis=-1)
    columns = ops.sum(q * (2.0 * q + 4.0 * b * b), axis=-1)
    products = product(p, q + b * b) + product(a * a, q) - 2.0 * product(a * p, b)
    products = products - 2.0 * product(a, b * q)
    return ops.maximum(outer_sum(rows, columns) + 4.0 * products, 0.0)


METHODS = ("sampled", "moment_matched")


def sample(embedding, num_samples, seed=None):
    """Draws z = μ + σ·ε from Gaussians `(batch, dim)`, ε ~ N(0, I): `(batch, num_samples, dim)`
    float32. The seed is Keras', an int or a `keras.random.SeedGenerator`."""
    mean, log_variance = gaussian(embedding)
    shape = (ops.shape(mean)[0], num_samples, mean.shape[-1])
    return reparameterize(mean, log_variance, keras.random.normal(shape, seed=seed))


def reparameterize(mean, log_variance, noise):
    """μ + σ·ε of `(batch, dim)` twice and noise `(batch or 1, J, dim)`: `(batch, J, dim)`."""
    deviation = ops.exp(0.5 * log_variance)
    return ops.expand_dims(mean, 1) + ops.expand_dims(deviation, 1) * noise


def match_probability(images, captions, scale, shift):
    """PCME's probability that an image and a caption match.

    Mean over the J × J' pairs of samples of sigmoid(−scale · ‖z_v − z_t‖₂ + shift).

    Args:
        images, captions: samples `(N, J, dim)`, `(M, J', dim)`, or sets with an optional mask.
        scale, shift: a > 0, in 1 / units of the space, and b.

    Returns:
        `(N, M)` float32 in [0, 1].

    Raises:
        ValueError: if one side has not rank three or the dimensions differ.
    Relations: its logit is what `MatchProbability` returns. With J = 1 it is the sigmoid of a
        scaled and shifted negative distance.
    Reference: PCME (Chun et al., CVPR 2021), equation 3; HIB (Oh et al., ICLR 2019).
        Released code differs: its softmax over (x, −x) is sigmoid(2x), so its a and b are half.
    """
    return ops.sigmoid(sampled_logit(images, captions, scale, shift))


def average_l2(images, captions):
    """Mean over the J × J' pairs of samples of ‖z_v − z_t‖₂: `(N, M)` float32 ≥ 0, in units of the
    space; arguments and errors as of `match_probability`.

    Reference: PCME (Chun et al., CVPR 2021), table E.1.
    """
    distance, log_weight = _sample_distances(images, captions)
    if log_weight is None:
        return ops.mean(distance, axis=(0, 2))
    return ops.sum(distance * ops.exp(log_weight), axis=(0, 2))


def sampled_logit(images, captions, scale, shift):
    """log p − log(1 − p) of `match_probability`, without ever forming p: `(N, M)` float32."""
    distance, log_weight = _sample_distances(images, captions)
    x = shift - scale * distance
    log_match = ops.log_sigmoid(x)
    log_mismatch = log_match - x
    if log_weight is not None:
        log_match, log_mismatch = log_match + log_weight, log_mismatch + log_weight
    return ops.logsumexp(log_match, axis=(0, 2)) - ops.logsumexp(log_mismatch, axis=(0, 2))


class SampledSimilarity(Similarity):
    """Base of the similarities that look at `num_samples` (J) draws of every Gaussian.

    In training every item draws its own noise. In inference the noise is two constant tables
    `(num_samples, dim)`, one for images and one for captions, that follow from the seed alone: all
    items share them, so a query alone gets the row that it gets in a batch, and a matrix computed
    in blocks is the matrix computed at once.
    """

    def __init__(self, num_samples=7, seed=0, **kwargs):
        super().__init__(**kwargs)
        if num_samples < 1:
            raise ValueError(f"`num_samples` must be at least 1; received {num_samples}")
        self.num_samples = int(num_samples)
        self.seed = int(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def samples(self, embedding, name, training):
        """Samples as elements (batch, samples, dim): new ones in training, else a fixed table's;
        those of a set are its elements."""
        if kind(embedding) == SET:
            values, mask = elements(embedding, name)
            return {"elements": values} if mask is None else {"elements": values, "mask": mask}
        mean, log_variance = gaussian(embedding, name)
        if training:
            return {"elements": sample(embedding, self.num_samples, self.seed_generator)}
        return {"elements": reparameterize(mean, log_variance, self._table(name, mean.shape[-1]))}

    def _table(self, name, dim):
        """Standard normal numbers (1, samples, dim), the same for every call; images and captions
        have different ones."""
        # NumPy's generator, not the backend's, so that every device and backend has one table.
        stream = np.random.default_rng([self.seed, 0 if name == "images" else 1])
        return stream.standard_normal((1, self.num_samples, dim), dtype="float32")


@keras.saving.register_keras_serializable(package="halo")
class MatchProbability(SampledSimilarity):
    """The logit of PCME's match probability, log p − log(1 − p), computed in log space.

    Fresh noise in training, constant tables in inference: see `SampledSimilarity`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.MatchProbability(scale=5.0, shift=5.0)(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        scale, shift: initial values of the learned a > 0, see `Bounded` on how it stays so, and b.
            The defaults are twice the 5 that the paper prints for CUB, since its code computes
            sigmoid(2x); for COCO, where 15 is printed, take 30.
        num_samples: J, draws per item.
        seed: int; of the training noise and of the tables.
        method: `"sampled"`, or `"moment_matched"`, which replaces the samples by a nine-point
            quadrature (`moment_matched_match_probability`): deterministic, closer and cheaper.
    Call arguments: Gaussians of N images and M captions; with `"sampled"` also sets, whose elements
        are then taken for the samples; training, whether to draw fresh noise.
    Output: `(N, M)` float32 logits; their sigmoid is the match probability. Raises ValueError if an
        argument is out of range, one side is a point, or the dimensions differ.
    Relations: `MatchingCrossentropy` on this logit is PCME's loss. With σ → 0 it is
        −scale · ‖μ_v − μ_t‖₂ + shift.
    Reference: PCME (Chun et al., CVPR 2021), equations 3 and 4.
        Released code differs: its a and b are half of ours, as its p is sigmoid(2x).
    """

    identifier = "match_probability"
    embeddings = (GAUSSIAN, SET)
    space = "csd"
    is_log_odds = True

    def __init__(self, scale=10.0, shift=10.0, num_samples=7, seed=0, method="sampled", **kwargs):
        super().__init__(num_samples, seed, **kwargs)
        if method not in METHODS:
            raise ValueError(f"`method` must be one of {METHODS}; received {method!r}")
        add_scale_and_shift(self, scale, shift)
        self.method = method

    @classmethod
    def for_ranking(cls, trained=None):
        """a = b = 10, the defaults, or those of a layer trained on the same, unsquared distance."""
        if isinstance(trained, (EuclideanDistance, SetMatchProbability)):
            return cls(float(trained.scale), float(trained.shift))
        return cls()

    def call(self, images, captions, training=False):
        if self.method == "moment_matched":
            return moment_matched_logit(images, captions, self.scale, self.shift)
        images = self.samples(images, "images", training)
        captions = self.samples(captions, "captions", training)
        return sampled_logit(images, captions, self.scale, self.shift)


@keras.saving.register_keras_serializable(package="halo")
class AverageL2(SampledSimilarity):
    """−mean ‖z_v − z_t‖₂ over the pairs of samples; see `average_l2`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.AverageL2()(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        num_samples, seed: of `MatchProbability`, as are call arguments.
    Reference: PCME (Chun et al., CVPR 2021), table E.1.
    """

    identifier = "average_l2"
    embeddings = (GAUSSIAN, SET)
    space = "csd"

    def call(self, images, captions, training=False):
        images = self.samples(images, "images", training)
        return -average_l2(images, self.samples(captions, "captions", training))


def _sample_distances(images, captions):
    """Distances `(J, N, J', M)` from one product, and the log weight of each or None."""
    (images, image_mask), (captions, caption_mask) = element_pair(images, captions)
    n, j, _ = sizes(images)
    m, k, _ = sizes(captions)
    squared = squared_distance(elements_first(images), elements_first(captions))
    distance = safe_sqrt(ops.reshape(squared, (j, n, k, m)))
    if image_mask is None and caption_mask is None:
        return distance, None
    return distance, _log_weights(image_mask, j, n, 0) + _log_weights(caption_mask, k, m, 2)


def _log_weights(mask, count, batch, axis):
    """log of one over the number of valid samples, −1e30 at masked ones, `(J, N)` in 4-D."""
    shape = (count, batch, 1, 1) if axis == 0 else (1, 1, count, batch)
    if mask is None:
        return ops.full((1, 1, 1, 1), -math.log(count))
    mask = ops.cast(mask, "bool")
    valid = ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)
    return ops.reshape(ops.transpose(ops.where(mask, -ops.log(valid), -1e30)), shape)
