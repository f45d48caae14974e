"""Similarity of points on the sphere with distributions over directions."""

import keras
import numpy as np
from keras import ops

from zoo.embeddings import DIRECTION, POINT, as_embedding, direction, points
from zoo.embeddings.numerics import outer_sum, product, unit
from zoo.embeddings.sphere import (
    power_spherical_log_constant,
    von_mises_fisher_log_constant,
)
from zoo.similarities.base import Bounded, Similarity, unchanged

FAMILIES = ("von_mises_fisher", "power_spherical")


def von_mises_fisher_log_likelihood(images, captions):
    """log of each caption's von Mises–Fisher density at each image, over the uniform density.

    κ (μᵀx − 1) + `zoo.embeddings.sphere.von_mises_fisher_log_constant`(κ).

    Args:
        images: points, N of dimension dim, which are brought to unit length.
        captions: directions `{"mean", "log_concentration"}`, M of the same dimension. Either side
            may be the distribution; the other one is the points.

    Returns:
        `(N, M)` float32.

    Raises:
        ValueError: if one side is no point, or the other no direction.

    Reference: AsymVLM (NeurIPS 2025), section 3.
    """
    cosines, concentration, of_captions, dim = _parts(images, captions)
    constant = von_mises_fisher_log_constant(concentration, dim)
    return _by_side(concentration, constant, cosines - 1.0, of_captions)


def power_spherical_log_likelihood(images, captions):
    """log of each caption's Power Spherical density at each image, over the uniform density.

    κ log((1 + μᵀx)/2) + `zoo.embeddings.sphere.power_spherical_log_constant`(κ).

    Args, Returns, Raises: as of `von_mises_fisher_log_likelihood`.

    Reference: AsymVLM (NeurIPS 2025), section 3; De Cao and Aziz, 2020.
    """
    cosines, concentration, of_captions, dim = _parts(images, captions)
    constant = power_spherical_log_constant(concentration, dim)
    # An image opposite to a caption has density 0, and so would every gradient be lost.
    shape = ops.log(ops.maximum(0.5 * (1.0 + cosines), 1e-6))
    return _by_side(concentration, constant, shape, of_captions)


class _LogLikelihood(Similarity):
    """What both families share: a learned temperature, and where their neighbours are found."""

    def __init__(self, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        if not scale > 0:
            raise ValueError(f"`scale` must be positive; received {scale}")
        self.initial_scale = float(scale)
        self.log_scale = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(np.log(scale)),
            constraint=Bounded(minimum=np.log(1e-3), maximum=np.log(100.0)),
            name="log_scale",
        )

    @property
    def scale(self):
        """The current temperature T."""
        return ops.exp(self.log_scale)

    def get_config(self):
        return {**super().get_config(), "scale": self.initial_scale}


@keras.saving.register_keras_serializable(package="halo")
class VonMisesFisherLikelihood(_LogLikelihood):
    """T · log density of the caption's von Mises–Fisher distribution at the image.

    ```python
    images = {"mean": np.eye(3)}
    captions = {"mean": np.eye(3), "log_concentration": np.log([1.0, 5.0, 50.0])}
    zoo.similarities.VonMisesFisherLikelihood()(images, captions)  # (3, 3)
    ```

    Args:
        scale: the first T, which is learned as its logarithm.

    Call arguments:
        images: points, N of dimension dim.
        captions: directions, M of the same dimension; the sides may be exchanged.

    Output: `(N, M)` float32: log density over the uniform one, times T.

    Raises:
        ValueError: if the scale is not positive.

    Relations: for captions of one κ it ranks as `Cosine` does. The best image of a caption is the
        one of the greatest cosine in any case; the best caption of an image depends on κ too.

    Reference: AsymVLM (NeurIPS 2025), section 3.
    """

    identifier = "von_mises_fisher"
    embeddings = (POINT, DIRECTION)
    space = "von_mises_fisher"
    from_space = staticmethod(unchanged)
    function = staticmethod(von_mises_fisher_log_likelihood)
    family = "von_mises_fisher"

    def call(self, images, captions):
        return self.scale * von_mises_fisher_log_likelihood(images, captions)

    def scorer(self):
        scale = float(self.scale)
        return lambda value: scale * value


@keras.saving.register_keras_serializable(package="halo")
class PowerSphericalLikelihood(_LogLikelihood):
    """T · log density of the caption's Power Spherical distribution at the image.

    ```python
    images = {"mean": np.eye(3)}
    captions = {"mean": np.eye(3), "log_concentration": np.log([1.0, 5.0, 50.0])}
    zoo.similarities.PowerSphericalLikelihood()(images, captions)  # (3, 3)
    ```

    Args, Call arguments, Output, Raises: as of `VonMisesFisherLikelihood`.

    Relations: as of `VonMisesFisherLikelihood`, whose space finds the candidates.

    Reference: AsymVLM (NeurIPS 2025), section 3; De Cao and Aziz, 2020.
    """

    identifier = "power_spherical"
    embeddings = (POINT, DIRECTION)
    space = "von_mises_fisher"
    function = staticmethod(power_spherical_log_likelihood)
    family = "power_spherical"

    def call(self, images, captions):
        return self.scale * power_spherical_log_likelihood(images, captions)


def _parts(images, captions):
    """Cosines `(N, M)`, the concentration of the side that has one, which side, the dimension."""
    images, captions = as_embedding(images, "images"), as_embedding(captions, "captions")
    of_captions = "log_concentration" in captions
    if of_captions == ("log_concentration" in images):
        raise ValueError(
            "one of `images` and `captions` must be directions and the other one points; received "
            f"{'directions' if of_captions else 'points'} twice"
        )
    if of_captions:
        mean, log_concentration = direction(captions, "captions")
        first, second = points(images, "images"), mean
    else:
        mean, log_concentration = direction(images, "images")
        first, second = mean, points(captions, "captions")
    cosines = ops.clip(product(unit(first), unit(second)), -1.0, 1.0)
    return cosines, ops.exp(log_concentration), of_captions, mean.shape[-1]


def _by_side(concentration, constant, shape, of_captions):
    if of_captions:
        return outer_sum(ops.zeros_like(shape[:, 0]), constant) + concentration[None] * shape
    return outer_sum(constant, ops.zeros_like(shape[0])) + concentration[:, None] * shape
