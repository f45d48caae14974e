"""What makes log variances out of features."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer

COVARIANCES = ("ellipsoidal", "spherical_mean", "spherical_one")


@keras.saving.register_keras_serializable(package="halo")
class Covariance(Layer):
    """Makes log variances out of unconstrained features: adds a bias, ties them, bounds them.

    ```python
    zoo.layers.Covariance("spherical_mean", -2.0)(np.zeros((2, 8), "float32"))  # (2, 8)
    ```

    | kind | log variance of dimension d, before the bounds |
    |---|---|
    | `"ellipsoidal"` | `x_d + b_d`: each dimension has its own |
    | `"spherical_mean"` | log of the mean over dimensions of `exp(x_d + b_d)`, for all |
    | `"spherical_one"` | `w·x + b`: one value, for all |

    Args:
        kind: one of the above.
        initial_log_variance: initial value of the bias `b`, log σ² of squared units.
        bounds: `(lowest, highest)` variance σ², or None. The log variance goes through
            `middle + half · tanh((x − middle) / half)`, so that no gradient is cut off.

    Output: log σ², `(batch, dim)` float32, of features `(batch, dim)`. Raises ValueError on an
        unknown kind, or bounds that are not 0 < lowest < highest.

    Reference: Pishdad et al., section 3 (kinds and the bounds 0.1 and 10); PCME (Chun et al.,
        CVPR 2021), table D.2 (isotropic against full).
    """

    def __init__(
        self,
        kind: str = "ellipsoidal",
        initial_log_variance: float = 0.0,
        bounds: tuple[float, float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if kind not in COVARIANCES:
            raise ValueError(f"`kind` must be one of {COVARIANCES}; received {kind!r}")
        if bounds is not None and not (len(bounds) == 2 and 0 < bounds[0] < bounds[1]):
            raise ValueError(
                f"`bounds` must be two variances, 0 < lowest < highest; received {bounds}"
            )
        self.kind = kind
        self.initial_log_variance = initial_log_variance
        self.bounds = None if bounds is None else tuple(bounds)

    def build(self, features_shape):
        dim = features_shape[-1]
        one = self.kind == "spherical_one"
        if one:
            self.kernel = self.add_weight(
                shape=(dim, 1), initializer="glorot_uniform", name="kernel"
            )
        self.bias = self.add_weight(
            shape=(1 if one else dim,),
            initializer=keras.initializers.Constant(self.initial_log_variance),
            autocast=False,  # float32, as what it is added to
            name="bias",
        )

    def call(self, features: Tensor) -> Tensor:
        shape = ops.shape(features)
        if self.kind == "spherical_one":
            features = ops.matmul(features, self.kernel)
        # float32 from here on: the variance is the exponential of this
        value = ops.cast(features, "float32") + self.bias
        if self.kind == "spherical_mean":
            value = ops.logsumexp(value, axis=-1, keepdims=True) - math.log(shape[-1])
        if self.bounds is not None:
            low, high = (math.log(bound) for bound in self.bounds)
            middle, half = (high + low) / 2, (high - low) / 2
            value = middle + half * ops.tanh((value - middle) / half)
        return ops.broadcast_to(value, shape)
