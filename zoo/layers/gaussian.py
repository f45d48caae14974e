"""What a Gaussian is made of: its covariance, and it as TFP's distribution."""

import math
from typing import Any

import keras
from keras import ops

from zoo import embeddings
from zoo.embeddings import GAUSSIAN, Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.compat import is_called_alone

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
            `middle + half · tanh((x − middle) / half)`, the identity near the middle, so that no
            gradient is cut off at the bounds as clipping would do.

    Call arguments:
        features: `(batch, dim)`.

    Output: log σ², `(batch, dim)` float32 whatever the precision.

    Raises:
        ValueError: on an unknown kind, or bounds that are not 0 < lowest < highest.

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


@keras.saving.register_keras_serializable(package="halo")
class Distribution(Layer):
    """What a head gives, as a `tfp` distribution in eager code; in a model the tensors themselves.

    Keras can save, export, compile and spread over replicas what is made of tensors alone. So this
    layer gives a distribution where it is called by itself, outside of `tf.function`. In a
    Functional graph, inside of another layer or model, in `fit` and `predict`, and on another
    backend than TensorFlow it hands on the dict of tensors that it gets.

    ```python
    head = {"mean": np.zeros((2, 8), "float32"), "log_variance": np.zeros((2, 8), "float32")}
    distribution = zoo.layers.Distribution()(head)  # tfp.distributions.MultivariateNormalDiag
    distribution.entropy()  # (2,), of what a model gives: Distribution()(model.image_encoder(x))
    ```

    Call arguments:
        embedding: a Gaussian, `{"mean": (batch, dim), "log_variance": (batch, dim)}`.

    Output: a distribution with batch shape `(batch,)` and event shape `(dim,)`, through which
        gradients flow; or the embedding as it is.

    Raises:
        ValueError: if the embedding is a point, a set or tokens, which are no distribution.

    Relations: `zoo.embeddings.distribution`, which `encode_images` and `encode_captions` call.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.built = True

    def call(self, embedding: Embedding) -> Any:
        _check(embedding)
        is_alone = is_called_alone(self)
        if not (is_alone and _is_eager()):
            return embedding
        return embeddings.distribution(embedding)

    def compute_output_spec(self, embedding):
        _check(embedding)
        return {
            name: keras.KerasTensor(value.shape, dtype=value.dtype)
            for name, value in embedding.items()
        }


def _check(embedding):
    what = embeddings.kind(embedding)
    if what != GAUSSIAN:
        raise ValueError(f"`embedding` must be a Gaussian; received {what}")


def _is_eager():
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return tf.executing_eagerly()
