"""Cosines of points, scaled as CLIP's and SigLIP's."""

import math

import keras
from keras import ops

from zoo.embeddings import GAUSSIAN, POINT
from zoo.embeddings.numerics import point_pair, product, unit
from zoo.similarities.base import Bounded, Similarity, unchanged


def cosine(images, captions):
    """Cosine of every pair of points, or of Gaussians' means, N and M of one dimension dim.

    Returns:
        `(N, M)` float32 in [−1, 1]. A zero vector has cosine 0 with everything.

    Raises:
        ValueError: if a set was given or the dimensions differ.
    Relations: for unit vectors 1 − ‖a − b‖² / 2, so it ranks as the Euclidean distance does.
    Reference: VSE++ (Faghri et al., BMVC 2018), section 3.1.
    """
    images, captions = point_pair(images, captions)
    return product(unit(images), unit(captions))


@keras.saving.register_keras_serializable(package="halo")
class Cosine(Similarity):
    """scale · cosine: plain for VSE++, with a learned scale for InfoNCE (CLIP).

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.Cosine()(images, captions)  # (1, 2)
    ```

    Args:
        scale: the factor, > 0. CLIP starts at 1/0.07 = 14.3.
        learn_scale: whether log scale is a trained weight, as in CLIP.
        max_scale: the learned scale is clipped to it after every step; CLIP takes 100.
    Output: `(N, M)` float32 in [−scale, scale]. Raises ValueError if the scale is not positive or,
        when learned, above `max_scale`.
    Relations: `MaximumPair` with one element a side.
    Reference: VSE++ (Faghri et al., BMVC 2018); CLIP (Radford et al., ICML 2021), section 2.3.
    """

    identifier = "cosine"
    embeddings = (POINT, GAUSSIAN)
    space = "cosine"
    from_space = staticmethod(unchanged)
    function = staticmethod(cosine)

    def __init__(self, scale=1.0, learn_scale=False, max_scale=100.0, **kwargs):
        super().__init__(**kwargs)
        if not scale > 0:
            raise ValueError(f"`scale` must be positive; received {scale}")
        if learn_scale and scale > max_scale:
            raise ValueError(f"`scale` must be at most `max_scale` = {max_scale}; received {scale}")
        self.initial_scale = float(scale)
        self.learn_scale = bool(learn_scale)
        self.max_scale = float(max_scale)
        if self.learn_scale:
            self.log_scale = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(math.log(scale)),
                constraint=Bounded(maximum=math.log(max_scale)),
                name="log_scale",
            )

    @property
    def scale(self):
        """The factor as it is now."""
        return ops.exp(self.log_scale) if self.learn_scale else self.initial_scale

    def call(self, images, captions):
        similarity = cosine(images, captions)
        if self.learn_scale or self.initial_scale != 1.0:
            similarity = self.scale * similarity
        return similarity

    def scorer(self):
        scale = float(self.scale)
        return lambda value: scale * value


@keras.saving.register_keras_serializable(package="halo")
class CosineLogit(Similarity):
    """scale · cosine + shift, both learned: log-odds of a match for `MatchingCrossentropy`.

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    zoo.similarities.CosineLogit()(images, captions)  # (1, 2)
    ```

    Args:
        scale, shift: initial factor, > 0 (else a ValueError), and summand.
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
