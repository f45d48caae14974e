"""Texts that a model has seen, kept as vectors, beside the direction in which made-up ones lie."""

import dataclasses

import numpy as np

from zoo.arrays import unit
from zoo.confidence import checks
from zoo.confidence.logistic import Logistic

NEAREST = 5  # kept texts that are looked at
TILT = 0.5  # standard deviations of the direction that weigh as one of nearness
PENALTY = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """How far a text lies from the captions and phrases that were seen in training.

    A tokenizer of word pieces spells every word, so no word is unknown, and the vector has to tell.
    Its distance is one less the mean cosine to the nearest five texts that are kept, less its place
    along a direction that leads from made-up texts, whose pieces are drawn at random, to real ones.
    Captions alone lie far from "a cow"; the phrases within them do not.

    Attributes:
        seen: `(n, dim)` float16, unit vectors of captions and of phrases.
        tilt: `(dim,)` float32.

    Relations: without the tilt this is a nearest-neighbour score. Measured beside it and beside
        `ShrunkGaussian` in docs/results/confidence.md.

    Reference: Sun et al., "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022;
        Hendrycks et al., "Deep Anomaly Detection with Outlier Exposure", ICLR 2019, for the tilt.
    """

    seen: np.ndarray
    tilt: np.ndarray

    def __post_init__(self):
        if self.seen.ndim != 2 or len(self.seen) < NEAREST:
            raise ValueError(f"`seen` must be ({NEAREST} texts or more, dim); {self.seen.shape}")
        if self.tilt.shape != self.seen.shape[1:]:
            raise ValueError(f"`tilt` must be {self.seen.shape[1:]}; received {self.tilt.shape}")
        object.__setattr__(self, "seen", self.seen.astype(np.float16))
        object.__setattr__(self, "tilt", self.tilt.astype(np.float32))
        object.__setattr__(self, "_rows", self.seen.astype(np.float32))

    @classmethod
    def fit(cls, seen, others, strange):
        """Of vectors of texts, `(n, dim)` each.

        Args:
            seen: of captions and phrases of training, which are kept.
            others: of more of them, which are not.
            strange: of made-up texts.

        Raises:
            ValueError: if dimensions differ, a number is not finite, or there are fewer than five
                to keep.
        """
        seen, others, strange = (
            unit(checks.matrix(one, name))
            for one, name in ((seen, "seen"), (others, "others"), (strange, "strange"))
        )
        both = np.concatenate([others, strange])
        is_real = np.arange(len(both)) < len(others)
        shares = np.where(is_real, 1 / len(others), 1 / len(strange))
        learned = Logistic.fit(both, is_real, PENALTY, weights=shares)
        near = -cls(seen, np.zeros(seen.shape[1])).distance(others)
        slope = learned.weights / learned.spread
        scale = TILT * near.std() / max(float((others @ slope).std()), 1e-12)
        return cls(seen, scale * slope)

    def distance(self, points):
        """`(Q,)`, of points `(Q, dim)`; greater is stranger.

        Of points with more coordinates the first `dim` are looked at: of Gaussians the mean.

        Raises:
            ValueError: if there are fewer coordinates or a number is not finite.
        """
        points = checks.matrix(points, "means")
        dim = len(self.tilt)
        if points.shape[1] < dim:
            raise ValueError(f"`means` must be (queries, {dim}); received shape {points.shape}")
        points = unit(points[:, :dim].astype(np.float32))
        cosines = points @ self._rows.T
        nearest = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
        return (1 - nearest - points @ self.tilt).astype(np.float64)
