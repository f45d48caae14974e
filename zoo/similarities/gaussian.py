"""Distances that are one matrix product: CSD, 2-Wasserstein, and those of the means alone."""

import keras
import numpy as np
from keras import ops

from zoo.embeddings import GAUSSIAN, POINT
from zoo.embeddings.numerics import (
    gaussian_pair,
    joint_squared_distance,
    outer_sum,
    point_pair,
    safe_sqrt,
    squared_distance,
)
from zoo.similarities.base import ScaledSimilarity, Similarity, root, unchanged


def closed_form_sampled_distance(images, captions):
    """CSD: the expected squared distance of one draw of each, E‖Z_v − Z_t‖².

    ‖μ_v − μ_t‖² + Σ_d σ_v² + Σ_d σ_t² of Gaussians, N and M of one dimension dim.

    Returns:
        `(N, M)` float32 ≥ 0, in squared units of the space.

    Raises:
        ValueError: if one side is not a Gaussian or the dimensions differ.
    Relations: with σ → 0 it is the squared Euclidean distance of the means. As the variances only
        add one number to each row and column, ranking one query's gallery is L2 search with one
        more coordinate, √Σσ².
    Reference: Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, equation 1.
    """
    (image_mean, image_log), (caption_mean, caption_log) = gaussian_pair(images, captions)
    spread = outer_sum(ops.sum(ops.exp(image_log), axis=-1), ops.sum(ops.exp(caption_log), axis=-1))
    return squared_distance(image_mean, caption_mean) + spread


def wasserstein_2(images, captions, squared=False):
    """The 2-Wasserstein distance of diagonal Gaussians, √(‖μ_v − μ_t‖² + ‖σ_v − σ_t‖²).

    Returns:
        `(N, M)` float32 ≥ 0, in units of the space, or where `squared` in their squares. The
        gradient of the root is zero, not infinite, where the distance is zero.

    Raises:
        ValueError: if one side is not a Gaussian or the dimensions differ.
    Relations: symmetric; with σ → 0 (or equal σ) it is the Euclidean distance of the means.
    Reference: Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic
        Representations", 2022, section 3.
    Paper differs: its equation 8 prints differences of the variances σ², not of the deviations σ;
        this is the distance that it names.
    """
    (image_mean, image_log), (caption_mean, caption_log) = gaussian_pair(images, captions)
    image_deviation, caption_deviation = ops.exp(0.5 * image_log), ops.exp(0.5 * caption_log)
    distance = joint_squared_distance(
        [(image_mean, caption_mean), (image_deviation, caption_deviation)]
    )
    return distance if squared else safe_sqrt(distance)


@keras.saving.register_keras_serializable(package="halo")
class ClosedFormSampledDistance(ScaledSimilarity):
    """Matching logits −scale · CSD + shift, both learned (PCME++), of Gaussians.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.ClosedFormSampledDistance(scale=5.0, shift=5.0)(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        scale, shift: initial values, learned; the scale is > 0, see `Bounded` on how it stays so.
    Output: `(N, M)` float32 logits; their sigmoid is the matching probability.
    Reference: Chun, ICLR 2024, equation 2, which initialises both at 5. Start log σ² at a negative
        bias: at 0 and dim = 1024 the initial logits are near −10⁴.
    """

    identifier = "csd"
    embeddings = (GAUSSIAN,)
    space = "csd"
    from_space = staticmethod(unchanged)
    function = staticmethod(closed_form_sampled_distance)
    is_distance = True
    is_log_odds = True

    def __init__(self, scale=5.0, shift=5.0, **kwargs):
        super().__init__(scale, shift, **kwargs)

    def call(self, images, captions):
        return self.shift - self.scale * closed_form_sampled_distance(images, captions)


@keras.saving.register_keras_serializable(package="halo")
class Wasserstein2(Similarity):
    """−W2, the negative 2-Wasserstein distance (Gaussian VSE++ and VSRN), or −W2² where `squared`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.Wasserstein2()(gaussian, gaussian)  # (2, 2), at most 0
    ```

    Reference: Pishdad et al., 2022, section 3.
    """

    identifier = "wasserstein_2"
    embeddings = (GAUSSIAN,)
    space = "wasserstein_2"
    from_space = staticmethod(root)
    function = staticmethod(wasserstein_2)
    is_distance = True

    def __init__(self, squared=False, **kwargs):
        super().__init__(**kwargs)
        self.squared = bool(squared)

    def call(self, images, captions):
        return -wasserstein_2(images, captions, squared=self.squared)

    def scorer(self):
        return lambda value: -np.maximum(value, 0.0) if self.squared else -root(value)


@keras.saving.register_keras_serializable(package="halo")
class SquaredWasserstein2(ScaledSimilarity):
    """Matching logits −scale · W2² + shift, both learned: W2 as PCME++'s training distance.

    W2² = ‖μ_v − μ_t‖² + ‖σ_v − σ_t‖² is 0 for equal Gaussians however wide they are, so it asks
    only that variances agree, and no uncertainty is learned.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.SquaredWasserstein2()(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        scale, shift: as of `ClosedFormSampledDistance`.
    Reference: PCME++ (Chun, ICLR 2024), section 2.3 and the row "Wasserstein" of table 4.
    """

    identifier = "squared_wasserstein_2"
    embeddings = (GAUSSIAN,)
    space = "wasserstein_2"
    from_space = staticmethod(unchanged)
    is_log_odds = True

    def __init__(self, scale=5.0, shift=5.0, **kwargs):
        super().__init__(scale, shift, **kwargs)

    def call(self, images, captions):
        return self.shift - self.scale * wasserstein_2(images, captions, squared=True)


@keras.saving.register_keras_serializable(package="halo")
class SquaredEuclidean(ScaledSimilarity):
    """Matching logits −scale · ‖μ_v − μ_t‖² + shift, both learned: PCME++'s "μ only".

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.SquaredEuclidean()(images, captions)  # (1, 2)
    ```

    Args:
        scale, shift: as of `ClosedFormSampledDistance`.
    Relations: `ClosedFormSampledDistance` with σ → 0; on unit vectors a cosine with learned scale
        and shift, as SigLIP's.
    Reference: PCME++ (Chun, ICLR 2024), equation 1.
    """

    identifier = "squared_euclidean"
    embeddings = (POINT, GAUSSIAN)
    space = "euclidean"
    from_space = staticmethod(unchanged)
    is_log_odds = True

    def __init__(self, scale=5.0, shift=5.0, **kwargs):
        super().__init__(scale, shift, **kwargs)

    def call(self, images, captions):
        return self.shift - self.scale * squared_distance(*point_pair(images, captions))


@keras.saving.register_keras_serializable(package="halo")
class EuclideanDistance(ScaledSimilarity):
    """Matching logits −scale · ‖μ_v − μ_t‖₂ + shift, both learned: "μ only".

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.EuclideanDistance()(images, captions)  # (1, 2)
    ```

    Args:
        scale, shift: as of `ClosedFormSampledDistance`.
    Relations: `MatchProbability` with σ → 0; on unit vectors it ranks as `Cosine`.
    Reference: PCME (Chun et al., CVPR 2021), the rows "μ only" of table 1.
    """

    identifier = "euclidean"
    embeddings = (POINT, GAUSSIAN)
    space = "euclidean"
    from_space = staticmethod(root)
    is_log_odds = True

    def __init__(self, scale=1.0, shift=0.0, **kwargs):
        super().__init__(scale, shift, **kwargs)

    def call(self, images, captions):
        distance = safe_sqrt(squared_distance(*point_pair(images, captions)))
        return self.shift - self.scale * distance
