"""Uniformity: keeps the points of a batch spread over the space."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, points
from zoo.losses.auxiliary import Auxiliary
from zoo.numerics import squared_distance
from zoo.similarities.sampled import sample


def uniformity(embedding: EmbeddingLike) -> Tensor:
    """log mean over the pairs i < j of exp(−2‖x_i − x_j‖²).

    Computed as a logsumexp, so it stays finite however far apart the points are. A single point
    has no pair; its value is 0, that of points that coincide, with no gradient.

    Args:
        embedding: points `(n, dim)`, or an embedding with a mean.

    Returns:
        A float32 scalar, at most 0: 0 if all points coincide, lower the more they spread.

    Raises:
        ValueError: if sets are given, or the rank is not two.

    Reference: Wang and Isola, ICML 2020, equation 2, with t = 2.

    Paper differs: PCME (appendix A.1) prints the plain sum of the exponentials, with each pair
        twice and every item beside itself; its code takes the logarithm of the mean, as here.

    Released code differs: PCME's is −∞ as soon as every exponential underflows and, above 128
        points, is taken on 128 of them drawn with replacement.
    """
    x = points(embedding, "embedding")
    count = ops.shape(x)[0]
    index = ops.arange(count)
    same = ops.equal(index[:, None], index[None, :])
    # Every pair stands twice in the matrix, itself left out.
    kernel = ops.where(same, -1e30, -2.0 * squared_distance(x, x))
    pairs = ops.cast(count, "float32") * (ops.cast(count, "float32") - 1.0)
    value = ops.logsumexp(kernel) - ops.log(ops.maximum(pairs, 1.0))
    return ops.where(ops.greater(pairs, 0.0), value, 0.0)


@keras.saving.register_keras_serializable(package="halo")
class Uniformity(Auxiliary):
    """Uniformity of all images and captions of the batch together.

    ```python
    points = {"mean": np.eye(4, dtype="float32")}
    zoo.losses.Uniformity()(points, points)
    ```

    Args:
        weight: λ.
        num_samples: None for the means, or J to draw J samples of every Gaussian (PCME).
        seed: of the samples, an integer, or None for another draw each time it is built.
        name: under which it is logged.

    Call arguments:
        images: points or Gaussians, `(N, dim)`.
        captions: points or Gaussians, `(M, dim)`.

    Output: a float32 scalar, unweighted.

    Raises:
        ValueError: if sets are given, or points where samples are to be drawn.

    Reference: PCME (Chun et al., CVPR 2021) appendix A.1, on the J samples of every item; its
        equation is a plain sum, see `uniformity`.
    """

    def __init__(
        self,
        weight: float = 10.0,
        num_samples: int | None = None,
        seed: int | None = None,
        name: str = "uniformity",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"`num_samples` must be at least 1 or None; received {num_samples!r}")
        self.num_samples = num_samples
        self.seed = seed
        if num_samples is not None:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        batch = [self._points(images, "images"), self._points(captions, "captions")]
        return uniformity(ops.concatenate(batch, axis=0))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_samples": self.num_samples, "seed": self.seed}

    def _points(self, embedding, name):
        if self.num_samples is None:
            return points(embedding, name)
        samples = sample(embedding, self.num_samples, self.seed_generator)
        return ops.reshape(samples, (-1, samples.shape[-1]))
