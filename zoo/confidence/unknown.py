"""Questions that the model does not know: unusual words, lengths and embeddings, with reasons."""

import dataclasses

import numpy as np

from zoo.confidence import checks
from zoo.confidence.shrinkage import ShrunkGaussian

KEPT = 1000  # held-out values a feature keeps to compare with
ERROR = 0.01  # held-out queries that may be declined
FEATURES = ("unknown_share", "length", "distance")


@dataclasses.dataclass(frozen=True, eq=False)
class KnownQueries:
    """What the model was trained on, and how far from it held-out queries of the same kind lie.

    ```python
    rng = np.random.default_rng(0)
    seen, held_out = rng.normal(size=(500, 8)), rng.normal(size=(200, 8))
    zoo.confidence.KnownQueries.fit(seen, held_out, rank=4)
    ```

    A query has up to three numbers, each 0 or more and greater for stranger queries:

    | name | value |
    |---|---|
    | `unknown_share` | share of its words that the tokenizer does not know; 1 without words |
    | `length` | log of how many times it is shorter or longer than usual, 0 within the range |
    | `distance` | Mahalanobis distance of its vector to the training queries', shrunk |

    Each is compared with the held-out queries' by a conformal p-value, (1 + how many of them are at
    least as great) / (n + 1). `declined` takes the least of them by Bonferroni, so that a held-out
    query is declined with probability `error` at most.

    Attributes:
        names: which of the three there are.
        shape: the `ShrunkGaussian` of the training queries' vectors.
        lengths: `(least, most)` usual number of words, or None.
        kept: name to the sorted held-out values, at most 1,000 each.

    Reference: Lee et al., "A Simple Unified Framework for Detecting Out-of-Distribution Samples",
        NeurIPS 2018, for the distance; Bates et al., "Testing for outliers with conformal
        p-values", Annals of Statistics 2023.
    """

    names: tuple
    shape: ShrunkGaussian
    lengths: tuple | None
    kept: dict

    @classmethod
    def fit(cls, training_means, means, words=None, unknown_words=None, *, rank=64, seed=0):
        """Learns what is usual.

        Args:
            training_means: `(N, dim)`, vectors of queries that the model was trained with: means,
                of Gaussians with the log variance behind them, which tells more.
            means: `(Q, dim)` of held-out queries of the same kind; training's own would lie too
                near.
            words: `(Q,)`, number of words of each held-out query; None for images.
            unknown_words: `(Q,)`, how many of them the tokenizer does not know; needs `words`.
            rank: directions of which the variance is kept; the rest share one.
            seed: of the sample of held-out values that is kept.

        Returns:
            A `KnownQueries`.

        Raises:
            ValueError: if shapes differ, a number is not finite, or there are fewer than 20
                held-out queries.
        """
        means = checks.matrix(means, "means")
        if len(means) < 20:
            raise ValueError(f"`means` must be of 20 held-out queries; received {len(means)}")
        shape = ShrunkGaussian.fit(training_means, rank)
        names, lengths = ["distance"], None
        if words is not None:
            words = _counts(words, "words", len(means))
            least, most = np.quantile(words, (0.005, 0.995), method="inverted_cdf")
            names, lengths = ["length", *names], (max(1, int(least)), max(1, int(most)))
        if unknown_words is not None:
            names = ["unknown_share", *names]
        known = cls(tuple(names), shape, lengths, {})
        columns = known.features(means, words, unknown_words)
        chosen = np.random.default_rng(seed).permutation(len(means))[:KEPT]
        kept = {name: np.sort(column[chosen]) for name, column in columns.items()}
        return dataclasses.replace(known, kept=kept)

    def features(self, means, words=None, unknown_words=None):
        """The numbers of some queries, a dict from the names to `(Q,)`.

        Raises:
            ValueError: if something that `fit` had is missing, or a shape differs.
        """
        means = checks.matrix(means, "means")
        columns = {"distance": self.shape.distance(means)}
        if "length" in self.names:
            words = _counts(_given(words, "words"), "words", len(means))
            least, most = self.lengths
            some = np.maximum(words, 0.5)  # of an empty query
            columns["length"] = np.maximum(np.log(np.maximum(least / some, some / most)), 0.0)
        if "unknown_share" in self.names:
            words = _counts(_given(words, "words"), "words", len(means))
            unknown = _counts(_given(unknown_words, "unknown_words"), "unknown_words", len(means))
            if (unknown > words).any():
                raise ValueError("`unknown_words` must not exceed `words`")
            columns["unknown_share"] = np.where(words > 0, unknown / np.maximum(words, 1), 1.0)
        # As they are stored, so that equal values stay equal when a calibration is read again.
        return {name: columns[name].astype(np.float32) for name in self.names}

    def p_values(self, means, words=None, unknown_words=None):
        """How usual some queries are: a dict from the names to `(Q,)` p-values, small for strange.

        Raises:
            ValueError: as `features`.
        """
        return self._p_values(self.features(means, words, unknown_words))

    def declined(self, means, words=None, unknown_words=None, error=ERROR):
        """Which queries the model does not know, `(Q,)` booleans.

        Args:
            error: how many queries like the held-out ones may be declined at most.

        Raises:
            ValueError: as `features`, or if `error` is not between 0 and 1.
        """
        error = checks.share(error, "error")
        return self.least_p_value(means, words, unknown_words) <= error

    def least_p_value(self, means, words=None, unknown_words=None):
        """The least of the p-values of each query by Bonferroni, `(Q,)`, at most 1.

        Raises:
            ValueError: as `features`.
        """
        p_values = self.p_values(means, words, unknown_words)
        least = np.min([p_values[name] for name in self.names], axis=0)
        return np.minimum(least * len(self.names), 1.0)

    def reasons(self, means, words=None, unknown_words=None, error=ERROR):
        """Why each query is declined, in words: a list of strings, None for a query that is known.

        Raises:
            ValueError: as `declined`.
        """
        error = checks.share(error, "error")
        columns = self.features(means, words, unknown_words)
        p_values = self._p_values(columns)
        reasons = []
        for query in range(len(columns["distance"])):
            values = {name: p_values[name][query] for name in self.names}
            said = [
                self._reason(name, query, columns, words, unknown_words)
                for name, value in values.items()
                if value * len(self.names) <= error
            ]
            reasons.append("; ".join(said) or None)
        return reasons

    def _p_values(self, columns):
        result = {}
        for name in self.names:
            kept = self.kept[name]
            greater = len(kept) - np.searchsorted(kept, columns[name], side="left")
            result[name] = (1 + greater) / (len(kept) + 1)
        return result

    def _reason(self, name, query, columns, words, unknown_words):
        if name == "unknown_share":
            count = int(words[query])
            if not count:
                return "it has no words"
            return f"{int(unknown_words[query])} of its {count} words are unknown"
        if name == "length":
            least, most = self.lengths
            return f"it has {int(words[query])} words, usual are {least} to {most}"
        kept = self.kept["distance"]
        further = float(np.mean(kept < columns["distance"][query]))
        return f"it lies farther from what was learned than {100 * further:.1f} % of such queries"


def _given(values, name):
    if values is None:
        raise ValueError(f"`{name}` must be given, since the calibration has it; received None")
    return values


def _counts(values, name, length):
    values = checks.vector(values, name, length)
    if (values < 0).any() or (values != np.floor(values)).any():
        raise ValueError(f"`{name}` must be whole numbers of at least 0")
    return values
