"""Questions that the model does not know: unknown words and strange embeddings, with reasons."""

import dataclasses

import numpy as np

from zoo.confidence import checks
from zoo.confidence.seen_texts import SeenTexts
from zoo.confidence.shrinkage import ShrunkGaussian

KEPT = 1000  # held-out distances that are kept to compare with
# Held-out queries that may be declined for their vectors. Of 201 strange questions to `photos_pfe`
# 0.965, 0.955 and 0.945 are declined at 0.02, 0.015 and 0.01, and of 201 everyday ones 0.995, all
# and all are understood.
ERROR = 0.015
LEAST = 99  # of fewer held-out queries hardly one could be declined
MOSTLY = 0.5  # share of unknown words from which a question is not understood


@dataclasses.dataclass(frozen=True, eq=False)
class KnownQueries:
    """What the model was trained on, and how far from it held-out queries of the same kind lie.

    ```python
    rng = np.random.default_rng(0)
    seen, held_out = rng.normal(size=(500, 8)), rng.normal(size=(200, 8))
    zoo.confidence.KnownQueries.fit(seen, held_out, rank=4)
    ```

    A query is declined if most of its words that name something are unknown to the tokenizer, or if
    it has a word that is, and its vector lies farther from the training queries' than 98.5 % of
    held-out queries do. A tokenizer that spells every word out of pieces knows no unknown words;
    then, and of images, the vector alone tells. How short a question is says nothing: "a dog" is
    vague, and understood.

    Farther means the distance of `shape`, compared with the held-out queries' by a conformal
    p-value, (1 + how many of them are at least as far) / (n + 1).

    Attributes:
        shape: the `ShrunkGaussian` of the training queries' vectors, for their Mahalanobis
            distance; of word pieces the `SeenTexts`.
        kept: the sorted held-out distances, at most 1,000.

    Reference: Lee et al., "A Simple Unified Framework for Detecting Out-of-Distribution Samples",
        NeurIPS 2018, for the distance; Bates et al., "Testing for outliers with conformal
        p-values", Annals of Statistics 2023.
    """

    shape: ShrunkGaussian | SeenTexts
    kept: np.ndarray

    @classmethod
    def fit(cls, training_means, means, *, rank=64, seed=0):
        """Learns the usual range.

        Args:
            training_means: `(N, dim)`, vectors of queries that the model was trained with: means,
                of Gaussians with the log variance behind them, which tells more.
            means: `(Q, dim)` of held-out queries of the same kind; training's own would lie too
                near.
            rank: directions of which the variance is kept; the rest share one.
            seed: of the sample of held-out distances that is kept.

        Returns:
            A `KnownQueries`.

        Raises:
            ValueError: if shapes differ, a number is not finite, or there are fewer than 99
                held-out queries: of so few, hardly one could be declined.
        """
        means = checks.matrix(means, "means")
        if len(means) < LEAST:
            raise ValueError(f"`means` must be of {LEAST} held-out queries; received {len(means)}")
        return cls.of(ShrunkGaussian.fit(training_means, rank), means, seed)

    @classmethod
    def of(cls, shape, means, seed=0):
        """Of a shape and held-out queries, as of `fit`."""
        chosen = np.random.default_rng(seed).permutation(len(means))[:KEPT]
        return cls(shape, np.sort(_stored(shape.distance(means[chosen]))))

    def p_values(self, means):
        """How usual some queries' vectors are, `(Q,)`, small for strange.

        Args:
            means: `(Q, dim)`.

        Raises:
            ValueError: if the dimension differs or a number is not finite.
        """
        nearer = np.searchsorted(self.kept, _stored(self.shape.distance(means)), side="left")
        return (1 + len(self.kept) - nearer) / (len(self.kept) + 1)

    def declined(self, means, words=None, unknown=None, error=ERROR):
        """Which queries the model does not know, `(Q,)` booleans; arguments as of `reasons`."""
        found = self.reasons(means, words, unknown, error)
        return np.array([reason is not None for reason in found], bool)

    def reasons(self, means, words=None, unknown=None, error=ERROR):
        """Why each query is declined, in words: a list of strings, None for a query that is known.

        Args:
            means: `(Q, dim)`.
            words: `(Q,)`, the number of words of each query that name something; None for images.
            unknown: for each query a list of its words that the tokenizer does not know; None where
                it spells every word, and for images.
            error: how many queries like the held-out ones may be declined for their vectors.

        Raises:
            ValueError: as `p_values`, or if `error` is not between 0 and 1.
        """
        strange = self.p_values(means) <= checks.share(error, "error")
        return reasons(strange, words, unknown)

    def to_arrays(self):
        """A dict of arrays, from which `of_arrays` makes the same again."""
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
        """The inverse of `to_arrays`.

        Raises:
            KeyError: if one is missing.
            ValueError: if they do not fit, or a number is not finite.
        """
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
    """Why each query is not understood, a list of strings and None.

    Args:
        strange: `(Q,)` booleans, whether its vector lies far from all that was learned.
        words, unknown: as of `KnownQueries.reasons`.
    """
    found = []
    for query, is_strange in enumerate(strange):
        lost = [] if unknown is None else list(unknown[query])
        if words is not None and not words[query]:
            found.append("it has no words that name something")
        elif len(lost) > MOSTLY * (len(lost) if words is None else words[query]):
            found.append(f"it does not know {_listed(lost)}")
        elif is_strange and (lost or unknown is None):
            what = f"it does not know {_listed(lost)}, and " if lost else ""
            found.append(f"{what}the question lies far from all that was learned")
        else:
            found.append(None)
    return found


def _listed(words, most=5):
    shown = [f"“{word}”" for word in dict.fromkeys(words)]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more words"
    head = ", ".join(shown[:-1])
    return f"the word{'s' if head else ''} {head}{' and ' if head else ''}{shown[-1]}"


def _stored(values):
    """As they are stored, so that equal values stay equal when a calibration is read again."""
    return np.asarray(values, np.float32)
