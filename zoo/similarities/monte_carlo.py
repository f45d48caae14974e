"""The layers that rank Gaussians by samples: PCME's match probability and average distance."""

import keras
import numpy as np

from zoo.embeddings import GAUSSIAN, SET, elements, gaussian, kind
from zoo.similarities.base import Similarity
from zoo.similarities.euclidean import EuclideanDistance
from zoo.similarities.moment_matched import moment_matched_logit
from zoo.similarities.sampled import average_l2, reparameterize, sample, sampled_logit
from zoo.similarities.scale import add_scale_and_shift
from zoo.similarities.set_probability import SetMatchProbability

METHODS = ("sampled", "moment_matched")


class SampledSimilarity(Similarity):
    """Base of the similarities that look at `num_samples` draws of every Gaussian.

    In training every item draws its own noise. In inference the noise is two constant tables
    `(num_samples, dim)`, one for images and one for captions, that follow from the seed alone: all
    items share them, so a query alone gets the row that it gets in a batch, and a matrix computed
    in blocks is the matrix computed at once.

    Args:
        num_samples: J, draws per item.
        seed: int; of the training noise and of the tables.
    """

    def __init__(self, num_samples=7, seed=0, **kwargs):
        super().__init__(**kwargs)
        if num_samples < 1:
            raise ValueError(f"`num_samples` must be at least 1; received {num_samples}")
        self.num_samples = int(num_samples)
        self.seed = int(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def samples(self, embedding, name, training):
        if kind(embedding) == SET:
            values, mask = elements(embedding, name)
            return {"elements": values} if mask is None else {"elements": values, "mask": mask}
        mean, log_variance = gaussian(embedding, name)
        if training:
            return {"elements": sample(embedding, self.num_samples, self.seed_generator)}
        return {"elements": reparameterize(mean, log_variance, self._table(name, mean.shape[-1]))}

    def _table(self, name, dim):
        # NumPy's generator, not the backend's, so that every device and backend has one table.
        stream = np.random.default_rng([self.seed, 0 if name == "images" else 1])
        return stream.standard_normal((1, self.num_samples, dim), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "num_samples": self.num_samples, "seed": self.seed}


@keras.saving.register_keras_serializable(package="halo")
class MatchProbability(SampledSimilarity):
    """The logit of PCME's match probability, log p − log(1 − p), computed in log space.

    Fresh noise in training, constant tables in inference: see `SampledSimilarity`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.MatchProbability(scale=5.0, shift=5.0)(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        scale: initial value of the learned scale a > 0. See `Bounded` on how it stays positive.
            The default is the paper's for CUB; for COCO it has 30.
        shift: initial value of the learned shift b, likewise.
        num_samples: J, draws per item.
        seed: int; of the training noise and of the tables.
        method: `"sampled"`, or `"moment_matched"`, which replaces the samples by a nine-point
            quadrature (`moment_matched_match_probability`): deterministic, closer and cheaper.

    Call arguments:
        images: Gaussians, N of dimension dim; with `"sampled"` also sets, whose elements are then
            taken for the samples.
        captions: M embeddings, in the same form.
        training: whether to draw fresh noise.

    Output: `(N, M)` float32 logits; their sigmoid is the match probability.

    Raises:
        ValueError: if an argument is out of range, one side is a point, or the dimensions differ.

    Relations: `MatchingCrossentropy` on this logit is PCME's loss. With σ → 0 it is
        −scale · ‖μ_v − μ_t‖₂ + shift.

    Reference: PCME (Chun et al., CVPR 2021), equations 3 and 4.
        Released code differs: its a and b are half of ours, as its p is sigmoid(2x).
    """

    identifier = "match_probability"
    embeddings = (GAUSSIAN, SET)
    space = "csd"
    is_log_odds = True

    def __init__(self, scale=10.0, shift=10.0, num_samples=7, seed=0, method="sampled", **kwargs):
        super().__init__(num_samples, seed, **kwargs)
        if method not in METHODS:
            raise ValueError(f"`method` must be one of {METHODS}; received {method!r}")
        add_scale_and_shift(self, scale, shift)
        self.method = method

    @classmethod
    def for_ranking(cls, trained=None):
        """PCME's a = b = 10, or those of a layer trained on the same, unsquared distance."""
        if isinstance(trained, (EuclideanDistance, SetMatchProbability)):
            return cls(float(trained.scale), float(trained.shift))
        return cls()

    def call(self, images, captions, training=False):
        if self.method == "moment_matched":
            return moment_matched_logit(images, captions, self.scale, self.shift)
        images = self.samples(images, "images", training)
        captions = self.samples(captions, "captions", training)
        return sampled_logit(images, captions, self.scale, self.shift)

    def get_config(self):
        return {
            **super().get_config(),
            "scale": self.initial_scale,
            "shift": self.initial_shift,
            "method": self.method,
        }


@keras.saving.register_keras_serializable(package="halo")
class AverageL2(SampledSimilarity):
    """−mean ‖z_v − z_t‖₂ over the pairs of samples; see `average_l2`.

    ```python
    gaussian = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.similarities.AverageL2()(gaussian, gaussian)  # (2, 2)
    ```

    Args:
        num_samples: J, draws per item.
        seed: int; of the training noise and of the tables, see `SampledSimilarity`.

    Call arguments: as `MatchProbability` with `"sampled"`.

    Output: `(N, M)` float32 ≤ 0.

    Reference: PCME (Chun et al., CVPR 2021), table E.1.
    """

    identifier = "average_l2"
    embeddings = (GAUSSIAN, SET)
    space = "csd"

    def call(self, images, captions, training=False):
        images = self.samples(images, "images", training)
        return -average_l2(images, self.samples(captions, "captions", training))
