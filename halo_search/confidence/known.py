"""Questions that the model does not know: unknown words and strange embeddings, with reasons."""

import dataclasses

import numpy as np

from halo_search.confidence.bank import packed
from halo_search.confidence.features import Logistic
from halo_search.embeddings import checks
from halo_search.embeddings.arrays import products, unit

KEPT = 1000  # held-out distances that are kept to compare with
# Held-out queries that may be declined for their vectors. Of 201 strange questions to `photos_pfe`
# 0.965, 0.955 and 0.945 are declined at 0.02, 0.015 and 0.01, and of 201 everyday ones 0.995, all
# and all are understood.
ERROR = 0.015
LEAST = 99  # of fewer held-out queries hardly one could be declined
MOSTLY = 0.5  # share of unknown words from which a question is not understood
NEAREST = 5  # kept texts that are looked at
TILT = 0.5  # standard deviations of the direction that weigh as one of nearness
PENALTY = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class ShrunkGaussian:
    """Mean and shrunk covariance of points, for their Mahalanobis distance."""

    # (1 − ρ) S + ρ tr(S)/D I with Ledoit and Wolf's ρ (2004); the leading directions are kept and
    # the others share their mean variance, as in probabilistic PCA (Tipping and Bishop, 1999).

    mean: np.ndarray
    axes: np.ndarray
    variances: np.ndarray
    rest: float

    @classmethod
    def fit(cls, points, rank):
        """Of points `(N, dim)`; a ValueError if they are fewer than two, equal or not finite."""
        points = checks.matrix(points, "training_means")
        rank = checks.whole(rank, "rank")
        count, dim = points.shape
        mean = points.mean(axis=0)
        centred = points - mean
        covariance = centred.T @ centred / count
        average = np.trace(covariance) / dim
        if count < 2 or not average > 0:
            raise ValueError(
                "`training_means` must be of two different queries at least; received "
                f"{count} {'equal ones' if count > 1 else 'query'}"
            )
        shrinkage = ledoit_wolf(centred, covariance)
        values, vectors = np.linalg.eigh((1 - shrinkage) * covariance)
        values = np.maximum(values, 0.0) + shrinkage * average
        values = np.maximum(values, 1e-12 * average)
        rank = min(rank, dim - 1)
        rest = values[: dim - rank].mean()
        # In the precision of a stored calibration, so that reading it again changes nothing.
        mean, axes = (
            x.astype(np.float32).astype(float) for x in (mean, vectors[:, dim - rank :].T)
        )
        return cls(mean, axes, values[dim - rank :], float(rest))

    def distance(self, points):
        """Mahalanobis distance of points `(Q, dim)` to the mean, `(Q,)`, over √dim."""
        points = checks.matrix(points, "means")
        if points.shape[1] != len(self.mean):
            raise ValueError(
                f"`means` must be (queries, {len(self.mean)}); received shape {points.shape}"
            )
        centred = points - self.mean
        along = centred @ self.axes.T
        left = np.maximum((centred**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
        squared = (along**2 / self.variances).sum(axis=1) + left / self.rest
        return np.sqrt(squared / len(self.mean))


def ledoit_wolf(centred, covariance):
    """Ledoit and Wolf's ρ in [0, 1] of centred points `(N, dim)` and their covariance."""
    count, dim = centred.shape
    average = np.trace(covariance) / dim
    away = (covariance**2).sum() / dim - average**2  # squared distance of S to its target
    if away <= 0:
        return 1.0
    # Mean squared distance of x xᵀ to S over the points, by ‖x xᵀ‖² = ‖x‖⁴.
    noise = ((centred**2).sum(axis=1) ** 2).mean() - (covariance**2).sum()
    return float(np.clip(noise / (dim * count) / away, 0.0, 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """How far a text lies from captions and phrases of training, for a model whose tokenizer
    spells every word out of pieces."""

    # No word is unknown to it, so the vector has to tell: one less the mean cosine to the nearest
    # five kept texts (Sun et al., ICML 2022), less the place along a direction from made-up texts
    # to real ones (outlier exposure, Hendrycks et al., ICLR 2019).

    seen: np.ndarray  # (n, dim) directions, kept as int8
    tilt: np.ndarray

    def __post_init__(self):
        if self.seen.ndim != 2 or len(self.seen) < NEAREST:
            raise ValueError(f"`seen` must be ({NEAREST} texts or more, dim); {self.seen.shape}")
        if self.tilt.shape != self.seen.shape[1:]:
            raise ValueError(f"`tilt` must be {self.seen.shape[1:]}; received {self.tilt.shape}")
        if self.seen.dtype != np.int8:
            object.__setattr__(self, "seen", packed(self.seen))
        object.__setattr__(self, "tilt", self.tilt.astype(np.float32))
        object.__setattr__(self, "_rows", unit(self.seen.astype(np.float32)))

    @classmethod
    def fit(cls, seen, others, strange):
        """Of vectors `(n, dim)`: texts of training to keep, others of them, and made-up ones."""
        given = zip((seen, others, strange), ("seen", "others", "strange"), strict=True)
        seen, others, strange = (unit(checks.matrix(*one)) for one in given)
        both = np.concatenate([others, strange])
        is_real = np.arange(len(both)) < len(others)
        shares = np.where(is_real, 1 / len(others), 1 / len(strange))
        learned = Logistic.fit(both, is_real, PENALTY, weights=shares)
        near = -cls(seen, np.zeros(seen.shape[1])).distance(others)
        slope = learned.plain()[0]
        scale = TILT * near.std() / max(float((others @ slope).std()), 1e-12)
        return cls(seen, scale * slope)

    def distance(self, points):
        """`(Q,)`, greater is stranger, of points `(Q, dim)`; of Gaussians the mean is read."""
        points = checks.matrix(points, "means")
        dim = len(self.tilt)
        if points.shape[1] < dim:
            raise ValueError(f"`means` must be (queries, {dim}); received shape {points.shape}")
        points = unit(points[:, :dim].astype(np.float32))
        cosines = products(points, self._rows)
        nearest = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
        return (1 - nearest - points @ self.tilt).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class KnownQueries:
    """What the model was trained on, and how far from it held-out queries of the same kind lie."""

    # A query is declined if most words that name something are unknown to the tokenizer, or one is
    # and its vector lies farther from training's than 98.5 % of held-out queries, by a conformal
    # p-value (Bates et al., 2023) of `shape`'s distance (Lee et al., NeurIPS 2018). Of a tokenizer
    # that spells every word, and of images, the vector alone tells.

    shape: ShrunkGaussian | SeenTexts  # of training's vectors; the latter of word pieces
    kept: np.ndarray  # sorted held-out distances, at most 1,000

    @classmethod
    def fit(cls, training_means, means, *, rank=64, seed=0):
        """Learns from vectors `(N, dim)` of training and `(Q, dim)` of at least 99 held-out queries
        of the same kind. A Gaussian's vector is its mean, followed by its log variance."""
        means = checks.matrix(means, "means")
        if len(means) < LEAST:
            raise ValueError(f"`means` must be of {LEAST} held-out queries; received {len(means)}")
        return cls.of(ShrunkGaussian.fit(training_means, rank), means, seed)

    @classmethod
    def of(cls, shape, means, seed=0):
        """Of a shape and held-out queries `(Q, dim)`, as of `fit`."""
        chosen = np.random.default_rng(seed).permutation(len(means))[:KEPT]
        return cls(shape, np.sort(_stored(shape.distance(means[chosen]))))

    def p_values(self, means):
        """How usual the vectors `(Q, dim)` of queries are, `(Q,)`, small for strange."""
        nearer = np.searchsorted(self.kept, _stored(self.shape.distance(means)), side="left")
        return (1 + len(self.kept) - nearer) / (len(self.kept) + 1)

    def declined(self, *given, **named):
        """Which queries the model does not know, `(Q,)` booleans; arguments as of `reasons`."""
        return np.array([why is not None for why in self.reasons(*given, **named)], bool)

    def reasons(self, means, words=None, unknown=None, error=ERROR):
        """Why each query is declined, in words, or None for a query that is known. `words` `(Q,)`
        and `unknown` are of `halo_search.confidence.words.unknown_words`, None for images."""
        strange = self.p_values(means) <= checks.share(error, "error")
        return reasons(strange, words, unknown)

    def to_arrays(self):
        """A dict of arrays, from which `of_arrays` restores this object."""
        shape = self.shape
        if isinstance(shape, SeenTexts):
            return {"seen": shape.seen, "tilt": shape.tilt, "kept": self.kept}
        return {
            "mean": shape.mean.astype(np.float32),
            "axes": shape.axes.astype(np.float32),
            "variances": shape.variances,
            "rest": np.asarray(shape.rest),
            "kept": self.kept,
        }

    @classmethod
    def of_arrays(cls, arrays):
        """The inverse of `to_arrays`; KeyError or ValueError if arrays lack or do not fit."""
        if not all(np.isfinite(values).all() for values in arrays.values()):
            raise ValueError("what training has seen must be finite numbers")
        kept = arrays["kept"].astype(np.float32)
        if kept.ndim != 1 or not len(kept) or (np.diff(kept) < 0).any():
            raise ValueError("'kept' must be sorted numbers")
        if "seen" in arrays:
            return cls(SeenTexts(arrays["seen"], arrays["tilt"]), kept)
        mean, axes, variances = (
            np.asarray(arrays[name], np.float64) for name in ("mean", "axes", "variances")
        )
        if mean.ndim != 1 or axes.shape != (len(variances), len(mean)):
            raise ValueError(f"'mean' {mean.shape} and 'axes' {axes.shape} do not fit")
        rest = float(arrays["rest"])
        if not (variances > 0).all() or rest <= 0:
            raise ValueError("'variances' and 'rest' must be positive")
        return cls(ShrunkGaussian(mean, axes, variances, rest), kept)


def reasons(strange, words=None, unknown=None):
    """Why each query is not understood, a list of strings and None: its vector is strange, or words
    are unknown, see `KnownQueries.reasons`."""
    found = []
    for query, is_strange in enumerate(strange):
        lost = [] if unknown is None else list(unknown[query])
        if words is not None and not words[query]:
            found.append("it has no words that name something")
        elif len(lost) > MOSTLY * (len(lost) if words is None else words[query]):
            found.append(f"I don't know {listed_words(lost)}")
        elif is_strange and (lost or unknown is None):
            what = f"I don't know {listed_words(lost)}, and " if lost else ""
            found.append(f"{what}the question lies far from all that was learned")
        else:
            found.append(None)
    return found


def listed_words(words, most=5):
    """“The word “a”” or “the words “a” and “b””."""
    shown = [f"“{word}”" for word in dict.fromkeys(words)]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more words"
    head = ", ".join(shown[:-1])
    return f"the word{'s' if head else ''} {head}{' and ' if head else ''}{shown[-1]}"


def _stored(values):
    """As they are stored, so that equal values stay equal when a calibration is read again."""
    return np.asarray(values, np.float32)
