"""Matching logits of the distance of means alone."""

import keras

from zoo.embeddings import GAUSSIAN, POINT
from zoo.numerics import point_pair, safe_sqrt, squared_distance
from zoo.similarities.base import root
from zoo.similarities.scale import ScaledSimilarity


@keras.saving.register_keras_serializable(package="halo")
class EuclideanDistance(ScaledSimilarity):
    """Matching logits −scale · ‖μ_v − μ_t‖₂ + shift, both learned: "μ only".

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.EuclideanDistance()(images, captions)  # (1, 2)
    ```

    Args:
        scale: initial value of the learned scale, > 0. See `Bounded` on how it stays positive.
        shift: initial value of the learned shift.

    Call arguments:
        images: points or Gaussians (their means), N of dimension dim.
        captions: M embeddings, in the same form.

    Output: `(N, M)` float32 logits.

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
