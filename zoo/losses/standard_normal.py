"""How far a Gaussian is from N(0, I): keeps variances from collapsing (VIB)."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, gaussian
from zoo.losses.auxiliary import Auxiliary
from zoo.losses.base import choice

REDUCTIONS = ("sum", "mean", "mean_per_dimension")


def kl_to_standard_normal(embedding: EmbeddingLike) -> Tensor:
    """KL(N(μ, σ²) ‖ N(0, I)) = ½ Σ_d (μ² + σ² − 1 − log σ²), in nats.

    Args:
        embedding: a Gaussian, `{"mean": (batch, dim), "log_variance": (batch, dim)}`.

    Returns:
        float32 `(batch,)`, at least 0, summed over the dimensions.

    Raises:
        ValueError: if it is not a Gaussian.

    Relations: TFP's `kl_divergence` of the two distributions; the rate of the variational
        information bottleneck.

    Released code differs: PCME puts its head's log σ where log σ² belongs, and the mean of the
        drawn samples where μ belongs.
    """
    mean, log_variance = gaussian(embedding)
    return 0.5 * ops.sum(ops.square(mean) + ops.exp(log_variance) - 1.0 - log_variance, axis=-1)


@keras.saving.register_keras_serializable(package="halo")
class KLRegularizer(Auxiliary):
    """KL to N(0, I) of the images plus that of the captions.

    ```python
    gaussians = {name: np.zeros((4, 8), "float32") for name in ("mean", "log_variance")}
    zoo.losses.KLRegularizer()(gaussians, gaussians)  # 0.0, they are N(0, I)
    ```

    Args:
        weight: β.
        reduction: over the items of each modality: `"mean"`, of KL divergences that are summed
            over dim; `"sum"`, PCME's, beside a loss that is a sum as well; `"mean_per_dimension"`,
            `"mean"` divided by dim, PCME++'s mean over items and dimensions.
        name: under which it is logged.

    Call arguments:
        images: Gaussians, `(N, dim)`.
        captions: Gaussians, `(M, dim)`.

    Output: a float32 scalar in nats, unweighted.

    Raises:
        ValueError: if `reduction` is another, or an embedding is not a Gaussian.

    Reference: PCME (Chun et al., CVPR 2021) section 3.2; PCME++ (Chun, ICLR 2024) section 2.2 and
        figure A.1; deep VIB (Alemi et al., ICLR 2017).

    Released code differs: the totals of PCME and PCME++ count the matching loss twice and this
        term once, so beside our loss, which counts every pair once, the released strength is half
        the printed β.
    """

    def __init__(
        self, weight: float = 1e-4, reduction: str = "mean", name: str = "kl", **kwargs: Any
    ):
        super().__init__(weight, name, **kwargs)
        self.reduction = choice("reduction", reduction, REDUCTIONS)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return self._reduce(images) + self._reduce(captions)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "reduction": self.reduction}

    def _reduce(self, embedding):
        divergence = kl_to_standard_normal(embedding)
        if self.reduction == "sum":
            return ops.sum(divergence)
        if self.reduction == "mean":
            return ops.mean(divergence)
        return ops.mean(divergence) / embedding["mean"].shape[-1]
