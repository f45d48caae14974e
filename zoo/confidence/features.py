"""Numbers about a query, made of its scores, that tell whether its first answer is right."""

import numpy as np
from scipy.special import log_ndtr, logsumexp

from zoo.confidence import checks
from zoo.confidence.answer_agreement import RANKS as AGREEMENT_RANKS
from zoo.confidence.answer_agreement import reached_ranks
from zoo.confidence.scores import FOLLOWING, QueryScores

AGREEMENTS = tuple(f"agreement_{rank}" for rank in AGREEMENT_RANKS)
# Whatever the gallery, an answer is not less likely right for a greater one of these, nor more
# likely for a greater uncertainty. Few calibration queries would find the opposite by chance.
SIGNS = {
    "best": 1,
    "best_minus_mean": 1,
    "z_score": 1,
    **dict.fromkeys(AGREEMENTS, 1),
    "uncertainty": -1,
}
# These mean the same in galleries of other sizes, with more or fewer matches of a query.
PORTABLE = tuple(SIGNS)
RANKS = tuple(f"rank_{rank}_minus_mean" for rank in FOLLOWING)
LOG_GAPS = tuple(f"log_gap_{rank}" for rank in FOLLOWING)
LEAST_GAP = 0.1  # of the scores' standard deviation, which is added so that a tie has a logarithm
# What is read where the calibration is made on the gallery that is asked: in another one the next
# answers are nearer or farther.
JUDGED = (*PORTABLE, *LOG_GAPS)
TEMPERED = ("entropy", "log_mean_exp_minus_mean")  # the only ones that read τ
TEMPERATURES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # of the scores' standard deviation


def feature_names(scores, uncertainty=None, extra=None):
    """The names of `query_features`' columns: ranks that a search does not reach are left out."""
    scores = QueryScores.of(scores)
    depth = scores.top.shape[1]
    agreeing = 0 if scores.agreement is None else len(reached_ranks(depth))
    return (
        "best",
        "best_minus_mean",
        "z_score",
        *(name for rank, name in zip(FOLLOWING, RANKS, strict=True) if rank <= depth),
        *(name for rank, name in zip(FOLLOWING, LOG_GAPS, strict=True) if rank <= depth),
        *TEMPERED,
        *AGREEMENTS[:agreeing],
        *(() if uncertainty is None else ("uncertainty",)),
        *(extra or {}),
    )


def check_names(names, there):
    """The features to read, in the order in which they are made.

    Args:
        names: a list of names, some of which the scores may not give; None for all.
        there: those that they give.

    Raises:
        ValueError: if it is a text, holds an unknown name or none that is there.
    """
    if names is None:
        return tuple(there)
    if isinstance(names, str):
        raise ValueError(f"`names` must be a list of names; received the text {names!r}")
    every = {*there, *JUDGED, *RANKS, *TEMPERED}
    unknown = [name for name in names if name not in every]
    chosen = tuple(name for name in there if name in names)
    if unknown or not chosen:
        found = f"received {', '.join(map(repr, unknown))}" if unknown else "received none of them"
        raise ValueError(f"`names` must be of {', '.join(there)}; {found}")
    return chosen


def query_features(scores, temperature, uncertainty=None, names=None, extra=None):
    """Features of queries from full score rows or from an approximate search, the same of both.

    With s₁ ≥ s₂ ≥ … the scores of a query, m and v their mean and variance over the gallery of n
    items, and π = softmax(s / τ):

    | name | value |
    |---|---|
    | `best` | s₁ |
    | `best_minus_mean` | s₁ − m |
    | `z_score` | (s₁ − m) / √v, 0 where v = 0 |
    | `rank_R_minus_mean` | s_R − m, for R = 2, 5, 10, 20, copies passed over |
    | `log_gap_R` | log(s₁ − s_R + √v / 10) for the same R, 0 where v = 0 |
    | `entropy` | −Σ π log π, in nats |
    | `log_mean_exp_minus_mean` | τ log(mean of exp(s / τ)) − m |
    | `agreement_R` | mean cosine of the first answer and answers 2 … R, for R = 5, 10, 20 |
    | `uncertainty` | as given |

    In `entropy` and `log_mean_exp_minus_mean` the best R = 20 scores are exact and the other n − R
    are taken for a normal distribution that has the mean and variance of the rest and is cut off at
    s_R, over which sums of exp(s / τ) are closed forms. Nothing else is approximated.

    Args:
        scores: a `QueryScores`, or a matrix `(queries, items)`, higher is better.
        temperature: τ, in units of the scores.
        uncertainty: `(queries,)`, such as log det Σ, or None.
        names: which features; None for all that there are.
        extra: dict from further names to `(queries,)`, such as `KnownQueries.features`, or None.

    Returns:
        `(queries, features)` float64, in the order of `names` or `feature_names`.

    Raises:
        ValueError: if a feature cannot be had of these scores, a shape differs or a number is not
            finite.
    """
    scores = QueryScores.of(scores)
    if not temperature > 0 or not np.isfinite(temperature):
        raise ValueError(f"`temperature` must be positive; received {temperature}")
    if uncertainty is not None:
        uncertainty = checks.vector(uncertainty, "uncertainty", len(scores))
    extra = {
        name: checks.vector(values, name, len(scores)) for name, values in (extra or {}).items()
    }
    there = feature_names(scores, uncertainty, extra)
    if len(set(there)) < len(there):
        raise ValueError(f"`extra` must have names of its own; received {', '.join(extra)}")
    names = there if names is None else tuple(names)
    missing = [name for name in names if name not in there]
    if scores.agreement is None and not set(missing).isdisjoint(AGREEMENTS):
        raise ValueError(
            "this confidence reads how like the first answer the next ones are: give scores that "
            "know it, of `QueryScores.of_matrix(similarity, vectors=gallery)` or of "
            "`Index.query_scores`; received scores alone"
        )
    if missing:
        raise ValueError(
            f"the features {', '.join(missing)} were expected; received {', '.join(there)}, from "
            f"the best {scores.top.shape[1]} scores"
        )
    columns = _Columns(scores, temperature, {"uncertainty": uncertainty, **extra})
    found = np.empty((len(scores), len(names)))
    for place, name in enumerate(names):
        found[:, place] = columns[name]
    return found


class _Columns(dict):
    """The features by name, made when they are asked for."""

    def __init__(self, scores, temperature, given):
        super().__init__(given)
        self._scores, self._temperature = scores, temperature

    def __missing__(self, name):
        scores, temperature = self._scores, self._temperature
        if name == "best":
            self[name] = scores.top[:, 0]
        elif name == "best_minus_mean":
            self[name] = scores.top[:, 0] - scores.mean
        elif name == "z_score":
            deviation, above = np.sqrt(scores.variance), self["best_minus_mean"]
            self[name] = np.divide(above, deviation, out=np.zeros_like(above), where=deviation > 0)
        elif name in AGREEMENTS:
            self[name] = scores.agreement[:, AGREEMENTS.index(name)]
        elif name in RANKS:
            self[name] = scores.following[:, RANKS.index(name)] - scores.mean
        elif name in LOG_GAPS:
            least = LEAST_GAP * np.sqrt(scores.variance)
            gap = scores.top[:, 0] - scores.following[:, LOG_GAPS.index(name)] + least
            self[name] = np.log(gap, out=np.zeros_like(gap), where=least > 0)
        else:
            log_sum, self["entropy"] = _softmax(scores, temperature)
            log_mean = temperature * (log_sum - np.log(scores.size))
            self["log_mean_exp_minus_mean"] = log_mean - scores.mean
        return self[name]


def candidate_temperatures(scores):
    """Temperatures to choose τ from: shares of the median standard deviation of a query's scores.

    Raises:
        ValueError: if all scores of a query are equal for half of the queries or more.
    """
    spread = float(np.median(np.sqrt(QueryScores.of(scores).variance)))
    if not spread > 0:
        raise ValueError("the scores of a query must differ; received equal ones")
    return tuple(spread * share for share in TEMPERATURES)


def _softmax(scores, temperature):
    """log Σ exp(s / τ) and the entropy of softmax(s / τ), both `(queries,)`."""
    logits = scores.top / temperature
    best = logsumexp(logits, axis=1)
    rest, rest_energy = _normal_rest(scores, temperature)
    log_sum = np.logaddexp(best, rest)
    # The mean of s / τ under the softmax: of the best, and of the rest where there is one.
    energy = (np.exp(logits - log_sum[:, None]) * logits).sum(axis=1)
    energy = energy + np.exp(rest - log_sum) * np.where(np.isfinite(rest), rest_energy, 0.0)
    return log_sum, np.maximum(log_sum - energy, 0.0)


def _normal_rest(scores, temperature):
    """log Σ exp(s / τ) of the scores below the best R, and the mean of s / τ under that softmax.

    With x ~ N(m, v) cut off at c, E[exp(x)] = exp(m + v/2) Φ((c − m − v)/√v) / Φ((c − m)/√v), and
    weighed by exp(x) it is N(m + v, v) cut off at c.
    """
    top, count = scores.top / temperature, scores.top.shape[1]
    rest = (scores.size - count).astype(np.float64)
    some = np.maximum(rest, 1.0)
    mean = (scores.size * scores.mean / temperature - top.sum(axis=1)) / some
    # The mean of squares about the rest's own mean, by the parallel axis theorem.
    about = scores.mean / temperature
    squares = scores.size * scores.variance / temperature**2 - ((top - about[:, None]) ** 2).sum(1)
    variance = np.maximum(squares / some - (mean - about) ** 2, 1e-12)
    deviation = np.sqrt(variance)
    cut = np.maximum(top[:, -1], mean)  # a rest above its own cut is rounding, or not sorted out
    at, tilted = (cut - mean) / deviation, (cut - mean - variance) / deviation
    log_mean = mean + variance / 2 + log_ndtr(tilted) - log_ndtr(at)
    hazard = np.exp(-0.5 * tilted**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(tilted))
    with np.errstate(divide="ignore"):
        return np.log(rest) + log_mean, mean + variance - deviation * hazard
