"""PCME++'s head: a Gaussian from all local features, pooled by rank."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.gaussian_head import Covariance
from zoo.layers.masking import drop_positions, masked_mean, unit_length
from zoo.layers.pooling import GeneralizedPooling

POOLINGS = ("generalized", "mean", "last")


@keras.saving.register_keras_serializable(package="halo")
class PooledGaussianHead(Layer):
    """Mean and log variance of a Gaussian embedding, each a pooled linear map of all features.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.PooledGaussianHead(4)(features)["mean"]  # (2, 4), of unit length
    ```

    - mean = L2-normalised pool(Linear(features))
    - log variance = pool′(Linear′(variance features)) + bias

    Args:
        dim: dimension of the embedding (D).
        covariance: of `Covariance`; None for a point without log variance.
        pooling: `"generalized"` (`GeneralizedPooling`), `"mean"`, or `"last"`: the last position
            that counts, such as CLIP's end of text.
        log_variance_bias: initial bias of log σ². With dim = 1024 a bias of 0 means CSD ≥ 2048 and
            first logits near −10⁴, which no gradient survives. None takes −log(dim) − 3: a total
            variance of 0.05 beside squared distances of 0 to 4.
        variance_bounds: `(lowest, highest)` variance σ², or None.
        normalize: whether the mean is L2-normalised.
        drop_rate: size augmentation: the share of the features, of mean and variance alike, that a
            training step leaves out of each item. One always stays.
        drop_varies: whether an item loses the share `drop_rate` · u, with u uniform in [0, 1], and
            nothing where u ≤ `drop_rate`: 9.6 % on average for 0.2, as in PCME++'s released code.
        seed: of the dropping.
    Call arguments: features `(batch, positions, channels)`: tokens, cells of a map, words;
        variance_features, those for the log variance, or None for the same (one position alone
        always counts); mask, bool `(batch, positions)`, True where one counts; training.
    Output: `{"mean", "log_variance"}`, each `(batch, dim)` float32; `{"mean"}` with
        `covariance=None`. Raises ValueError on an unknown pooling, or a rate outside of [0, 1).
    Relations: with `covariance=None` it is the aggregator of VSE∞ without its residual MLP.
    Reference: PCME++ (Chun, ICLR 2024), section 2.5; GPO and size augmentation: VSE∞ (Chen et
        al., CVPR 2021), sections 3.2 and 3.3.
    Released code differs: the bias of log σ² starts at 0.
    """

    def __init__(
        self,
        dim: int,
        covariance: str | None = "ellipsoidal",
        pooling: str = "generalized",
        log_variance_bias: float | None = None,
        variance_bounds: tuple[float, float] | None = None,
        normalize: bool = True,
        drop_rate: float = 0.0,
        drop_varies: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"`pooling` must be one of {POOLINGS}; received {pooling!r}")
        if not 0 <= drop_rate < 1:
            raise ValueError(f"`drop_rate` must be in [0, 1); received {drop_rate}")
        self.dim = dim
        self.pooling = pooling
        self.normalize = normalize
        self.drop_rate = drop_rate
        self.drop_varies = drop_varies
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if drop_rate else None
        self.covariance = None
        self.mean_map = self._dense("mean_map")
        self.mean_pooling = self._pooling("mean_pooling")
        if covariance is None:
            return
        if log_variance_bias is None:
            log_variance_bias = small_log_variance(dim)
        self.covariance = Covariance(
            covariance,
            log_variance_bias,
            variance_bounds,
            dtype=self.dtype_policy,
            name="covariance",
        )
        # `Covariance` has the one bias.
        self.variance_map = self._dense("variance_map", use_bias=False)
        self.variance_pooling = self._pooling("variance_pooling")

    def build(self, features_shape, variance_features_shape=None):
        parts = [("mean", features_shape)]
        if self.covariance is not None:
            parts.append(("variance", variance_features_shape or features_shape))
            self.covariance.build((features_shape[0], self.dim))
        for name, shape in parts:
            getattr(self, f"{name}_map").build(shape)
            if self.pooling == "generalized":
                getattr(self, f"{name}_pooling").build((*shape[:-1], self.dim))

    def call(
        self,
        features: Tensor,
        variance_features: Tensor | None = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Embedding:
        if training and self.drop_rate:
            shape = ops.shape(features)[:2]
            mask = drop_positions(
                shape, mask, self.drop_rate, self.seed_generator, self.drop_varies
            )
        mean = self._pool(self.mean_pooling, self.mean_map(features), mask)
        mean = unit_length(mean) if self.normalize else ops.cast(mean, "float32")
        if self.covariance is None:
            return {"mean": mean}
        variance = features if variance_features is None else variance_features
        mask = None if variance.shape[1] == 1 else mask
        variance = self._pool(self.variance_pooling, self.variance_map(variance), mask)
        return {"mean": mean, "log_variance": self.covariance(variance)}

    def compute_output_spec(self, features, variance_features=None, mask=None, training=False):
        # Said, since to trace four recurrent networks takes most of the time of building a model.
        names = ["mean"] if self.covariance is None else ["mean", "log_variance"]
        return {name: keras.KerasTensor((features.shape[0], self.dim), "float32") for name in names}

    @property
    def variance_parts(self):
        """The layers that only the log variance depends on; none for points."""
        if self.covariance is None:
            return []
        parts = (self.variance_map, self.variance_pooling, self.covariance)
        return [part for part in parts if part is not None]

    def _dense(self, name, **options):
        return keras.layers.Dense(self.dim, dtype=self.dtype_policy, name=name, **options)

    def _pooling(self, name):
        """A layer that pools, or None where pooling needs no weights."""
        if self.pooling != "generalized":
            return None
        return GeneralizedPooling(dtype=self.dtype_policy, name=name)

    def _pool(self, pooling, features, mask):
        """(batch, positions, channels) to (batch, channels): by `pooling`, the last unmasked
        position, or the mean of the unmasked ones."""
        if pooling is not None:
            return pooling(features, mask=mask)
        if self.pooling == "last":
            mask = ops.ones_like(features[..., 0], "bool") if mask is None else mask
            following = ops.pad(mask[:, 1:], ((0, 0), (0, 1)))
            mask = ops.logical_and(mask, ops.logical_not(following))
        return masked_mean(features, mask)


def small_log_variance(dim: int) -> float:
    """A first log σ² whose total over `dim` dimensions, e⁻³ = 0.05, is small on the unit sphere."""
    return -math.log(dim) - 3.0
