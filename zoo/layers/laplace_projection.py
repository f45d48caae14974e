"""A linear map whose weights have a Kronecker-factored Gaussian posterior."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor


@keras.saving.register_keras_serializable(package="halo")
class LaplaceProjection(keras.layers.Layer):
    """The predictive mean and variance of g = Wφ, W having the covariance Ã⁻¹ ⊗ B̃⁻¹.

    - mean = Wφ
    - σ² = (φᵀ Ã⁻¹ φ) diag(B̃⁻¹)

    Nothing here is trained: `zoo.models.laplace` computes the weights.

    ```python
    found = zoo.layers.LaplaceProjection(3)(np.ones((2, 5), "float32"))
    found["log_variance"]  # (2, 3)
    ```

    Args:
        dim: channels of g (q).
        identity: whether W is the identity, of vectors whose projection is not at hand.

    Call arguments:
        features: φ, `(batch, p)`.

    Output: `{"mean", "log_variance"}`, each `(batch, dim)` float32.

    Reference: BayesVLM (ICLR 2026), equations of the predictive distribution.
    """

    def __init__(self, dim: int, identity: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.dim = dim
        self.identity = identity

    def build(self, features_shape):
        channels = features_shape[-1]
        if self.identity and channels != self.dim:
            raise ValueError(
                f"`features` must have {self.dim} channels for `identity`; received {channels}"
            )
        options = {"trainable": False, "autocast": False}  # float32, as the variance is
        if not self.identity:
            self.kernel = self.add_weight(shape=(channels, self.dim), name="kernel", **options)
        # Ã⁻¹ = R Rᵀ: squares of Rᵀφ cannot be negative, as rounding makes φᵀÃ⁻¹φ.
        self.root = self.add_weight(
            shape=(channels, channels), initializer="identity", name="root", **options
        )
        self.log_diagonal = self.add_weight(
            shape=(self.dim,), initializer="zeros", name="log_diagonal", **options
        )

    def call(self, features: Tensor) -> Embedding:
        features = ops.cast(features, "float32")
        mean = features if self.identity else ops.matmul(features, self.kernel)
        spread = ops.sum(ops.square(ops.matmul(features, self.root)), axis=-1, keepdims=True)
        log_variance = ops.log(ops.maximum(spread, 1e-30)) + self.log_diagonal
        return {"mean": mean, "log_variance": log_variance}

    def compute_output_spec(self, features):
        shape = (*features.shape[:-1], self.dim)
        return {
            name: keras.KerasTensor(shape, dtype="float32") for name in ("mean", "log_variance")
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dim": self.dim, "identity": self.identity}
