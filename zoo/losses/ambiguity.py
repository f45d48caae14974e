"""Variances that say how many other captions describe an item: its ambiguity."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor, gaussian
from zoo.losses.base import Auxiliary, mean_over, positive

_NEVER = -1e9  # log weight of a caption that does not count


@keras.saving.register_keras_serializable(package="halo")
class Ambiguity(Auxiliary):
    """Makes Σσ² of an item grow with the number of other captions that lie near its mean.

    mean over items q of [(log Σσ_q² − a) − slope · (log n_q − b)]², with
    n_q = Σ_c exp(cos(μ_q, μ_c) / temperature)

    over the batch's captions c that do not match q, and a, b the batch's means of log Σσ² and of
    log n. The images' mean and the captions' mean are added. n_q is a target: no gradient reaches
    the means. Only differences between items are learnt, so another term has to set the level of
    the variances, such as `MutualLikelihood`. A likelihood of pairs and the matching loss see only
    the own photo of a caption, not the number of photos that fit.

    ```python
    means = np.array([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], "float32")
    same = {"mean": means, "log_variance": np.zeros((4, 2), "float32")}
    zoo.losses.Ambiguity()(same, same, matches=np.eye(4, dtype="float32"))
    ```

    Args:
        weight, name: of `Auxiliary`.
        temperature: width of the kernel, in cosines.
        slope: what log Σσ² grows by where log n grows by one. A large slope lets the variances
            decide ranks: CSD adds Σσ² to every distance.

    Call arguments: Gaussians of images and captions; matches `(N, M)`, above 0 where they match.
        Two captions match where they match the same image. Matches do not count in n: the captions
        of one photo say how alike its authors write. Items that match all captions are left out.

    Raises:
        ValueError: if a side is no Gaussian, or the temperature or the slope is not above 0.

    Relations: n is a kernel density of captions, up to a factor, by von Mises' and Fisher's kernel.

    Reference: none; measured beside PCME++'s pseudo-positives and ProLIP's inclusion in
        docs/results/ambiguity.md.
    """

    reads = ("matches",)

    def __init__(
        self,
        weight: float = 100.0,
        temperature: float = 0.08,
        slope: float = 0.1,
        name: str = "ambiguity",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        self.temperature = positive("temperature", temperature)
        self.slope = positive("slope", slope)

    def call(self, images: Embedding, captions: Embedding, matches: Tensor) -> Tensor:
        matches = ops.cast(ops.convert_to_tensor(matches) > 0, "float32")
        alike = ops.matmul(ops.transpose(matches), matches) > 0
        (image_means, image_logs), (means, logs) = (
            gaussian(images, "images"),
            gaussian(captions, "captions"),
        )
        others = _unit(means)
        of_images = self._error(_unit(image_means), image_logs, others, matches > 0)
        return of_images + self._error(others, logs, others, alike)

    def _error(self, queries, log_variance, others, is_own):
        cosines = ops.matmul(queries, ops.transpose(others))
        logits = ops.where(is_own, _NEVER, cosines / self.temperature)
        log_count = ops.stop_gradient(ops.logsumexp(logits, axis=1))
        counts = ops.cast(ops.logical_not(ops.all(is_own, axis=1)), "float32")
        error = ops.logsumexp(log_variance, axis=1) - self.slope * log_count
        error = error - mean_over(error, counts)
        return mean_over(ops.square(error), counts)


def _unit(means):
    means = ops.stop_gradient(means)
    return ops.normalize(means, axis=-1)
