"""SigLIP's similarity: the log-odds of a match, from a cosine."""

import math

import keras
from keras import ops

from zoo.embeddings import POINT
from zoo.similarities.base import Similarity, unchanged
from zoo.similarities.points import cosine


@keras.saving.register_keras_serializable(package="halo")
class CosineLogit(Similarity):
    """scale · cosine + shift, both learned: log-odds of a match for `MatchingCrossentropy`.

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.CosineLogit()(images, captions)  # (1, 2)
    ```

    Args:
        scale: initial factor, > 0.
        shift: initial summand.

    Call arguments:
        images: points, N of dimension dim.
        captions: M embeddings, in the same form.

    Output: `(N, M)` float32.

    Raises:
        ValueError: if the scale is not positive.

    Relations: ranks as `Cosine`. CSD with Σσ² = 0 is 2 − 2 · cosine of unit vectors, so PCME++'s
        −a · CSD + b is this with the scale 2a and the shift b − 2a.

    Reference: Zhai et al., "Sigmoid Loss for Language Image Pre-Training", ICCV 2023, section 3.2;
        the defaults are its initial values.
    """

    identifier = "cosine_logit"
    embeddings = (POINT,)
    space = "cosine"
    from_space = staticmethod(unchanged)
    is_log_odds = True
    needs_model = True

    def __init__(self, scale=10.0, shift=-10.0, **kwargs):
        super().__init__(**kwargs)
        if not scale > 0:
            raise ValueError(f"`scale` must be positive; received {scale}")
        self.initial_scale, self.initial_shift = float(scale), float(shift)
        self.log_scale = self.add_weight(
            shape=(), initializer=keras.initializers.Constant(math.log(scale)), name="log_scale"
        )
        self.shift = self.add_weight(
            shape=(), initializer=keras.initializers.Constant(shift), name="shift"
        )

    def call(self, images, captions):
        return ops.exp(self.log_scale) * cosine(images, captions) + self.shift

    def scorer(self):
        scale, shift = math.exp(float(self.log_scale)), float(self.shift)
        return lambda value: scale * value + shift

    def get_config(self):
        return {
            **super().get_config(),
            "scale": self.initial_scale,
            "shift": self.initial_shift,
        }
