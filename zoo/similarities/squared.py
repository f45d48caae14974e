"""Matching logits of other squared distances than CSD: what PCME++ is compared with."""

import keras

from zoo.embeddings import GAUSSIAN, POINT
from zoo.numerics import point_pair, squared_distance
from zoo.similarities.base import unchanged
from zoo.similarities.gaussian import wasserstein_2
from zoo.similarities.scale import ScaledSimilarity


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
        scale: initial value of the learned scale, > 0. See `Bounded` on how it stays positive.
        shift: initial value of the learned shift.

    Call arguments:
        images: Gaussians, N of dimension dim.
        captions: Gaussians, M of the same dimension.

    Output: `(N, M)` float32 logits.

    Relations: ranks as `Wasserstein2` does.

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
        scale: initial value of the learned scale, > 0. See `Bounded` on how it stays positive.
        shift: initial value of the learned shift.

    Call arguments:
        images: points or Gaussians (their means), N of dimension dim.
        captions: M embeddings, in the same form.

    Output: `(N, M)` float32 logits.

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
