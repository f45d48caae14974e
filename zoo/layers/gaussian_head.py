"""What makes log variances, and PCME's head: global and attended local features of an item."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.attention import LocalAttention, PolysemousEmbedding
from zoo.layers.masking import unit_length

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
        is_shared = self.kind == "spherical_one"
        if is_shared:
            self.kernel = self.add_weight(
                shape=(dim, 1), initializer="glorot_uniform", name="kernel"
            )
        self.bias = self.add_weight(
            shape=(1 if is_shared else dim,),
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
class GaussianHead(Layer):
    """Mean and log variance of a Gaussian embedding, each with its own local attention.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    head = zoo.layers.GaussianHead(4)
    head(features, pooled=features.mean(axis=1))["log_variance"]  # (2, 4)
    ```

    - mean = L2-normalised LayerNorm(global + sigmoid(branch))
    - log variance = global′ + branch′, neither squashed nor normalised

    where a branch is Linear(LocalAttention(features)). For image features `global` and `global′`
    are two linear maps of one pooled feature; for sentences they are the states of two recurrent
    networks, taken as they are (`project_pooled=False`).

    Args:
        dim: dimension of the embedding (D).
        covariance: of `Covariance`; None for a point without log variance (the paper's "μ only").
        project_pooled: whether the pooled features go through linear layers. If not, they must
            have `dim` channels.
        hidden_dim: of the `LocalAttention`s.
        mean_attention, variance_attention: whether the mean, the log variance has its branch.
        squash_variance: whether the log variance goes through sigmoid and LayerNorm as the mean
            does, which hurts (table D.3).
        unit_mean: whether the mean is L2-normalised. In a plane that leaves a circle, on which
            classes cannot pass each other.
        log_variance_bias: initial bias of log σ², which sets the first uncertainties.
        variance_bounds: `(lowest, highest)` variance σ², or None.
        log_deviation: whether the sum of `global′` and `branch′` is log σ and is doubled, as
            PCME's released weights expect: its samples take it for log σ.
    Call arguments: features `(batch, positions, channels)`, cells of a map or words; pooled, the
        global feature for the mean `(batch, channels′)`; pooled_variance, that for the log
        variance, or None for the same; mask, bool `(batch, positions)`, True where one counts.
    Output: `{"mean", "log_variance"}`, each `(batch, dim)` float32; log_variance is log σ².
        Raises ValueError if features that are taken as they are do not have `dim` channels.
    Reference: PCME (Chun et al., CVPR 2021), section 3.2 and figure 3; ablations in table D.3.
    Released code differs: its head is read as log σ when sampling and as log σ² in the KL term.
    """

    def __init__(
        self,
        dim: int,
        covariance: str | None = "ellipsoidal",
        project_pooled: bool = True,
        hidden_dim: int | None = None,
        mean_attention: bool = True,
        variance_attention: bool = True,
        squash_variance: bool = False,
        unit_mean: bool = True,
        log_variance_bias: float = 0.0,
        variance_bounds: tuple[float, float] | None = None,
        log_deviation: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if squash_variance and not variance_attention:
            raise ValueError("`squash_variance` squashes the branch of `variance_attention`")
        self.dim = dim
        self.project_pooled = project_pooled
        self.hidden_dim = hidden_dim
        self.mean_attention = mean_attention
        self.variance_attention = variance_attention
        self.squash_variance = squash_variance
        self.unit_mean = unit_mean
        self.log_deviation = log_deviation
        self.covariance = None
        policy = self.dtype_policy
        if project_pooled:
            self.mean_global = keras.layers.Dense(dim, dtype=policy, name="mean_global")
        if mean_attention:
            self.mean_local = PolysemousEmbedding(
                dim, 1, hidden_dim, dtype=policy, name="mean_local"
            )
        if covariance is None:
            return
        self.covariance = Covariance(
            covariance, log_variance_bias, variance_bounds, dtype=policy, name="covariance"
        )
        # `Covariance` has the one bias of the sum.
        if project_pooled:
            self.variance_global = keras.layers.Dense(
                dim, use_bias=False, dtype=policy, name="variance_global"
            )
        if squash_variance:
            self.variance_local = PolysemousEmbedding(
                dim, 1, hidden_dim, dtype=policy, name="variance_local"
            )
        elif variance_attention:
            self.variance_pooling = LocalAttention(
                1, hidden_dim, dtype=policy, name="variance_pooling"
            )
            self.variance_local = keras.layers.Dense(
                dim, use_bias=False, dtype=policy, name="variance_local"
            )

    def build(self, features_shape, pooled_shape, pooled_variance_shape=None):
        batch, channels = features_shape[0], features_shape[-1]
        pooled_variance_shape = pooled_variance_shape or pooled_shape
        for name, shape in (("pooled", pooled_shape), ("pooled_variance", pooled_variance_shape)):
            if not self.project_pooled and shape[-1] != self.dim:
                raise ValueError(
                    f"`{name}` must have shape (batch, {self.dim}) where it is not projected; "
                    f"received {tuple(shape)}"
                )
        if self.project_pooled:
            self.mean_global.build(pooled_shape)
        if self.mean_attention:
            self.mean_local.build(features_shape, (batch, self.dim))
        if self.covariance is None:
            return
        self.covariance.build((batch, self.dim))
        if self.project_pooled:
            self.variance_global.build(pooled_variance_shape)
        if self.squash_variance:
            self.variance_local.build(features_shape, (batch, self.dim))
        elif self.variance_attention:
            self.variance_pooling.build(features_shape)
            self.variance_local.build((batch, channels))

    def call(
        self,
        features: Tensor,
        pooled: Tensor,
        pooled_variance: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Embedding:
        mean = self.mean_global(pooled) if self.project_pooled else pooled
        if self.mean_attention:
            mean = ops.squeeze(self.mean_local(features, mean, mask=mask), 1)
        # float32 whatever the precision, as a unit vector is
        mean = unit_length(mean) if self.unit_mean else ops.cast(mean, "float32")
        if self.covariance is None:
            return {"mean": mean}
        variance = pooled if pooled_variance is None else pooled_variance
        if self.project_pooled:
            variance = self.variance_global(variance)
        if self.squash_variance:
            variance = ops.squeeze(self.variance_local(features, variance, mask=mask), 1)
        elif self.variance_attention:
            attended = ops.squeeze(self.variance_pooling(features, mask=mask), 1)
            variance = variance + self.variance_local(attended)
        if self.log_deviation:
            variance = 2.0 * variance
        return {"mean": mean, "log_variance": self.covariance(variance)}

    def compute_output_spec(self, features, pooled, pooled_variance=None, mask=None):
        # Said, since to trace the head takes a third of the time in which a model is built.
        names = ["mean"] if self.covariance is None else ["mean", "log_variance"]
        return {name: keras.KerasTensor((features.shape[0], self.dim), "float32") for name in names}
