"""An embedding as a distribution of TensorFlow Probability, where one can be held."""

from typing import Any

import keras

from zoo import embeddings
from zoo.compat import is_called_alone
from zoo.embeddings import GAUSSIAN, Embedding


@keras.saving.register_keras_serializable(package="halo")
class Distribution(keras.layers.Layer):
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
