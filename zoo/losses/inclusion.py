"""Inclusion of one Gaussian in another: a caption includes the picture that it says less than."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor
from zoo.losses.auxiliary import Auxiliary
from zoo.losses.base import positive
from zoo.numerics import gaussian_rows

_LOG_2 = 0.6931471805599453
_LARGEST = 60.0  # an exponent whose square in a gradient is a finite float32


def inclusion(inner: EmbeddingLike, outer: EmbeddingLike) -> Tensor:
    """How much of each Gaussian lies inside of another: mean over dim of log ∫ p²_inner p_outer.

    ```python
    narrow = {"mean": np.zeros((1, 4)), "log_variance": np.full((1, 4), -2.0)}
    wide = {"mean": np.zeros((1, 4)), "log_variance": np.zeros((1, 4))}
    zoo.losses.inclusion(narrow, wide) > zoo.losses.inclusion(wide, narrow)  # True
    ```

    Args:
        inner, outer: Gaussians, row i of one with row i of the other, `(batch, dim)`.

    Returns:
        float32 `(batch,)` in nats a dimension.

    Raises:
        ValueError: if they are no Gaussians, or not as many.

    Reference: ProLIP (Chun et al., ICLR 2025), the inclusion hypothesis.

    Released code differs: it takes −2 log σ² − log σ² of the two, which are the weights of log σ;
        half of that belongs to log σ², or scaling both Gaussians alike changes the comparison.
    """
    (mean, log), (other_mean, other_log) = gaussian_rows(inner, outer, ("inner", "outer"))
    # ∫ exp(−(z−m)²/s − (z−n)²/2t) dz, s and t the variances: 1/s + 1/2t = (2t + s)/2st.
    # In logarithms, since the gradient of a quotient divides by total², which underflows.
    log_total = ops.logaddexp(_LOG_2 + other_log, log)
    exponent = -ops.square(mean - other_mean) * ops.exp(ops.minimum(-log_total, _LARGEST))
    # log: −log 2πs − ½ log 2πt + ½ log π + ½ log(2st / (2t + s))
    constant = -1.8378770664093453  # −log 2π
    return ops.mean(exponent - 0.5 * log - 0.5 * log_total + constant, axis=-1)


def inclusion_loss(inner, outer, scale):
    """−log σ(scale · (inclusion of inner in outer − of outer in inner)), mean over pairs."""
    difference = inclusion(inner, outer) - inclusion(outer, inner)
    return ops.mean(ops.softplus(-scale * difference))


@keras.saving.register_keras_serializable(package="halo")
class Inclusion(Auxiliary):
    """−log σ(scale · (inclusion of images in captions − of captions in images)), mean over pairs.

    A caption says less than its picture shows, so its Gaussian is to include the picture's. Row i
    of the images belongs to row i of the captions, as in batches of `image_caption_pairs`.

    ```python
    narrow = {"mean": np.zeros((1, 4)), "log_variance": np.full((1, 4), -2.0)}
    wide = {"mean": np.zeros((1, 4)), "log_variance": np.zeros((1, 4))}
    zoo.losses.Inclusion(scale=1.0)(narrow, wide)  # less than the other way round
    ```

    Args:
        weight: of the term.
        scale: of the comparison; ProLIP takes 1000.
        name: under which it is logged.

    Call arguments:
        images: Gaussians `(N, dim)`, which are to be included.
        captions: Gaussians `(N, dim)`, which are to include them.

    Output: a float32 scalar, unweighted.

    Raises:
        ValueError: if there are not as many images as captions, or the scale is not positive.

    Reference: ProLIP (Chun et al., ICLR 2025), section on the inclusion loss.
    """

    def __init__(
        self, weight: float = 1e-7, scale: float = 1000.0, name: str = "inclusion", **kwargs: Any
    ):
        super().__init__(weight, name, **kwargs)
        self.scale = positive("scale", scale)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return inclusion_loss(images, captions, self.scale)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": self.scale}
