"""How likely matching pairs are of one point: the term that teaches variances what they mean."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor
from zoo.losses.auxiliary import Auxiliary
from zoo.numerics import gaussian_rows


def mutual_likelihood(images: EmbeddingLike, captions: EmbeddingLike) -> Tensor:
    """log ∫ p_i(z) q_i(z) dz of each pair, a mean over dimensions.

    −½ mean_d [ log 2π + log(σ_v² + σ_t²) + (μ_v − μ_t)² / (σ_v² + σ_t²) ]

    ```python
    near = {"mean": np.zeros((1, 4)), "log_variance": np.zeros((1, 4))}
    far = {"mean": np.ones((1, 4)), "log_variance": np.zeros((1, 4))}
    zoo.losses.mutual_likelihood(near, near) > zoo.losses.mutual_likelihood(near, far)  # True
    ```

    Args:
        images, captions: Gaussians, row i of one with row i of the other, `(batch, dim)`.

    Returns:
        float32 `(batch,)` in nats a dimension.

    Raises:
        ValueError: if they are no Gaussians, or not as many.

    Relations: the diagonal of `zoo.similarities.log_expected_likelihood` over dim. At given means
        it is greatest where σ_v² + σ_t² = (μ_v − μ_t)²: the variances of a pair add up to the
        squared distance of its means, dimension by dimension.

    Reference: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019, equation 3.
    """
    names = ("images", "captions")
    (mean, log), (other_mean, other_log) = gaussian_rows(images, captions, names)
    log_total = ops.logaddexp(log, other_log)
    quadratic = ops.square(mean - other_mean) * ops.exp(-log_total)
    constant = 1.8378770664093453  # log 2π
    return -0.5 * (ops.mean(log_total + quadratic, axis=-1) + constant)


@keras.saving.register_keras_serializable(package="halo")
class MutualLikelihood(Auxiliary):
    """−`mutual_likelihood`, mean over the pairs of a batch.

    It makes Σσ² of an image and of its caption add up to the squared distance that pairs like them
    have: an item whose matches lie far and wide is uncertain. Over frozen means that is all it does
    (`zoo.models.pfe`). Row i of the images belongs to row i of the captions, as in batches of
    `image_caption_pairs` and `class_pairs`.

    ```python
    points = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.losses.MutualLikelihood()(points, points)
    ```

    Args:
        weight: of the term.
        name: under which it is logged.

    Call arguments:
        images, captions: Gaussians `(N, dim)`.

    Output: a float32 scalar, unweighted.

    Raises:
        ValueError: if there are not as many images as captions, or they are no Gaussians.

    Reference: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019, equation 4.
    """

    def __init__(self, weight: float = 1.0, name: str = "mutual_likelihood", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return -ops.mean(mutual_likelihood(images, captions))
