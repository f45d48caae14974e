"""Promises about answers that hold for finite samples, of any model and any distribution.

Every function takes calibration queries whose truth is known, over the gallery that is searched
later. The one assumption is that a future query is exchangeable with them: the same kind of
questions, in the same proportions. `Confidence.check` tests it. Promises are on average over
calibration sets and future queries, but `certified_threshold`, which holds with a stated
probability over calibration sets.
"""

import dataclasses
import math
import sys

import numpy as np
from scipy.special import bdtr

from zoo.confidence import checks
from zoo.confidence.scores import dense

RISK, FAILURE = 0.2, 0.1  # of what is certified by default
_ROUNDING = 1e-9  # (n + 1)·error is meant exactly: 0.1 · 10 is 1, whatever binary says
_FOR_GROWTH = 0.1  # share of the error that a gallery's growth may use


def smallest_k(ranks, error, num_items=None, groups=None, grown_to=None):
    """The k of which the first k answers hold a match with probability at least 1 − error.

    Proof sketch. Among n calibration queries and a future one, exchangeable, the future rank is
    equally likely to be the 1st, … (n + 1)-th smallest. So it is at most the
    ⌈(n + 1)(1 − error)⌉-th smallest of the n with at least that probability; ties help.

    In a gallery that has grown from N to N' items, of those before the match a share Beta(k, N − k)
    of the new items comes, if these are like the old ones. So k' = k + the 1 − α₂ quantile of
    BetaBinomial(N' − N; k, N − k), where k keeps 1 − α₁ and α₁ + α₂ = error.

    Args:
        ranks: `(Q,)`, rank of each calibration query's first match, 1 = first. A query without a
            match in the gallery has rank `num_items + 1`.
        error: in (0, 1).
        num_items: number of items in the gallery, or None.
        groups: `(Q,)`, which queries belong together, such as the captions of one image. Each group
            counts once; None: each query does.
        grown_to: number of items now, where more have come since the ranks were taken; needs
            `num_items`. Nothing is known of a gallery that has shrunk: then k stays.

    Returns:
        An int; the number of items + 1 where the queries are too few and nothing can be promised:
        where error < 1 / (Q + 1). Without `num_items` that is `sys.maxsize`.

    Raises:
        ValueError: if ranks are not whole numbers of at least 1, `error` is not in (0, 1), or
            `grown_to` comes without `num_items`.

    Assumptions: exchangeable queries, of groups exchangeable groups; the same model, and the same
        gallery but for growth by items like those that are there.

    Reference: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005;
        Angelopoulos and Bates, "Conformal Prediction: A Gentle Introduction", 2023, section 1.
    """
    error = checks.share(error, "error")
    ranks = checks.vector(ranks, "ranks")
    if (ranks < 1).any() or (ranks != np.floor(ranks)).any():
        raise ValueError("`ranks` must be whole numbers of at least 1, 1 = first")
    size = None if num_items is None else checks.whole(num_items, "num_items")
    if size is not None and ranks.max() > size + 1:
        raise ValueError(
            f"`ranks` must be at most num_items + 1 = {size + 1}; received {ranks.max():.0f}"
        )
    groups = None if groups is None else numbered(groups, len(ranks))
    nothing = sys.maxsize if size is None else size + 1
    if grown_to is None:
        k = conformal_quantile(ranks, error, groups)
        return int(min(k, nothing))
    if size is None:
        raise ValueError("`grown_to` needs `num_items`, the number of items there were")
    grown_to = checks.whole(grown_to, "grown_to")
    if grown_to <= size:
        return int(min(conformal_quantile(ranks, error, groups), grown_to + 1))
    k = conformal_quantile(ranks, (1 - _FOR_GROWTH) * error, groups)
    if k >= size:  # any of the new items may come first too
        return grown_to + 1
    from scipy.stats import betabinom  # here: a question needs none of it

    before = betabinom.ppf(1 - _FOR_GROWTH * error, grown_to - size, k, size - k)
    return int(k + before)


def score_threshold(match_scores, error, groups=None):
    """The λ of which {items with score ≥ λ} holds the best match with probability ≥ 1 − error.

    Proof sketch. As for `smallest_k`: the future query's best match has a score that is equally
    likely at each place among n + 1, so it is below the ⌊error·(n + 1)⌋-th smallest of the n with
    probability `error` at most. The set is one range search in the index' space.

    Args:
        match_scores: `(Q,)`, the score of each calibration query's best match.
        error: in (0, 1).
        groups: as of `smallest_k`.

    Returns:
        A float; −inf, the whole gallery, where the queries are too few to promise less.

    Raises:
        ValueError: if a score is not finite, or `error` is not in (0, 1).

    Assumptions: exchangeable queries, each with a match in the same gallery.

    Reference: Papadopoulos et al., "Inductive Confidence Machines for Regression", ECML 2002.
    """
    error = checks.share(error, "error")
    scores = checks.vector(match_scores, "match_scores")
    groups = None if groups is None else numbered(groups, len(scores))
    return -conformal_quantile(-scores, error, groups)


def missed_matches_threshold(similarity, relevance, error):
    """The λ of which {items with score ≥ λ} leaves out a share of the matches ≤ error, on average.

    The share of a query's matches that are left out, L(λ) = 1 − |S_λ ∩ M| / |M|, falls as λ falls,
    and is at most 1. λ̂ is the greatest λ with (n·mean L(λ) + 1) / (n + 1) ≤ error.

    Proof sketch. Let λ* be the greatest λ at which the mean loss of all n + 1 queries is at most
    `error`. The future query's loss is at most 1, so λ̂ ≤ λ*, and L is monotone, so
    E L(λ̂) ≤ E L(λ*). λ* does not depend on which of the queries is the future one; given them as a
    set its loss is the mean, ≤ error.

    Args:
        similarity: `(Q, R)` of calibration queries, higher is better.
        relevance: `(Q, R)` booleans, dense or scipy sparse. Queries without a match are left out.
        error: in (0, 1).

    Returns:
        A float; −inf, the whole gallery, where the queries are too few to promise less.

    Raises:
        ValueError: if shapes differ, a score is not finite, no query has a match or `error` is not
            in (0, 1).

    Assumptions: exchangeable queries with at least one match, the same gallery.

    Reference: Angelopoulos et al., "Conformal Risk Control", ICLR 2024, theorem 1.
    """
    error = checks.share(error, "error")
    similarity = checks.matrix(similarity, "similarity")
    relevance = dense(relevance, similarity.shape)
    matches = relevance.sum(axis=1)
    if not matches.any():
        raise ValueError("`relevance` must have a match of one query at least; received none")
    count = int((matches > 0).sum())
    scores = similarity[relevance]
    weights = (1 / np.maximum(matches, 1))[np.nonzero(relevance)[0]]
    budget = error * (count + 1) - 1 + _ROUNDING  # of the sum of losses
    if budget < 0:
        return -math.inf
    levels, group = np.unique(scores, return_inverse=True)
    missed = np.cumsum(np.bincount(group, weights)) - np.bincount(group, weights)  # below a level
    return float(levels[np.flatnonzero(missed <= budget)[-1]])


def certified_threshold(confidence, correct, risk, failure, candidates, groups=None, seed=0):
    """The λ of which answers with confidence ≥ λ are wrong in a share ≤ risk, with certainty.

    With probability at least 1 − failure over the certifying queries, of what is answered at λ at
    most a share `risk` is wrong. The share of wrong ones among the answered is not monotone in λ,
    so conformal risk control does not hold for it; this is learn-then-test.

    Proof sketch. Whether the threshold λ_j is too bold is a hypothesis. Given how many certifying
    queries it answers, the number of wrong ones is binomial, so
    p_j = P(Bin(answered_j, risk) ≤ wrong_j) is a p-value. Candidates are tested strictest first,
    each at the level `failure`, until one fails. To return a bold one, the first bold one in the
    order had to pass, which happens with probability `failure` at most.

    Args:
        confidence: `(Q,)` of certifying queries, higher is surer.
        correct: `(Q,)` booleans, whether the answer is right.
        risk: in (0, 1), the share of wrong answers among those given.
        failure: in (0, 1), how often the promise may fail.
        candidates: thresholds, chosen without these queries, for instance by
            `candidate_thresholds` on others. One that answers fewer than
            log(failure) / log(1 − risk) queries can never pass, and ends the search.
        groups: as of `smallest_k`. The number of wrong answers is binomial only of independent
            queries, so of each group one query certifies, drawn at random.
        seed: of that draw.

    Returns:
        The last threshold that passes, or None: then nothing can be certified.

    Raises:
        ValueError: if shapes differ, something is not finite, there is no candidate, or `risk` or
            `failure` is not in (0, 1).

    Assumptions: certifying and future queries are independent draws of one distribution, on one
        gallery; candidates and confidence were chosen without the certifying queries.

    Reference: Angelopoulos et al., "Learn then Test: Calibrating Predictive Algorithms to Achieve
        Risk Control", Annals of Applied Statistics 2025 (arXiv 2021), section 3.
    """
    risk, failure = checks.share(risk, "risk"), checks.share(failure, "failure")
    confidence = checks.vector(confidence, "confidence")
    correct = checks.truths(correct, "correct", len(confidence))
    if groups is not None:
        chosen = one_of_each(numbered(groups, len(confidence)), np.random.default_rng(seed))
        confidence, correct = confidence[chosen], correct[chosen]
    thresholds = np.unique(checks.vector(candidates, "candidates"))[::-1]
    order = np.argsort(-confidence)
    wrong = np.concatenate([[0], np.cumsum(~correct[order])])
    answered = np.searchsorted(-confidence[order], -thresholds, side="right")
    passed = bdtr(wrong[answered], answered, risk) <= failure
    if not passed[0]:
        return None
    failed = np.flatnonzero(~passed)
    return float(thresholds[failed[0] - 1 if len(failed) else -1])


def candidate_thresholds(confidence, count=20, least_share=0.1):
    """Thresholds that answer from `least_share` to all of some queries, evenly spaced.

    Args:
        confidence: `(Q,)`, of other queries than those that certify.
        count: how many thresholds.
        least_share: of the queries that the strictest answers. It has to answer enough of the
            certifying queries to be able to pass, see `certified_threshold`.

    Returns:
        Thresholds, strictest first; fewer than `count` where confidences are equal.

    Raises:
        ValueError: if a confidence is not finite, or an option is out of range.
    """
    confidence = checks.vector(confidence, "confidence")
    shares = np.linspace(checks.share(least_share, "least_share"), 1, checks.whole(count, "count"))
    return np.unique(np.quantile(confidence, 1 - shares, method="lower"))[::-1]


def absence_p_values(confidence, absent_confidence):
    """p-values of "nothing in the gallery matches this query".

    The calibration is a world in which it is true: the confidences c_i of queries whose matches
    were taken out of the gallery (`without_matches`). Then p = (1 + #{c_i ≥ c}) / (n + 1). A query
    is answered if and only if p ≤ error: then of the queries that nothing matches a share `error`
    at most is answered.

    Proof sketch. If nothing matches, c and the c_i are exchangeable, so the place of c among the
    n + 1 is uniform, and P(p ≤ a) ≤ a; ties only raise p.

    Args:
        confidence: `(Q,)`, higher is surer, of any kind: a probability, the best score.
        absent_confidence: `(n,)`, the same quantity of calibration queries without their matches.

    Returns:
        `(Q,)` in [1 / (n + 1), 1]; small means that something matches.

    Raises:
        ValueError: if something is not finite.

    Assumptions: queries that nothing matches are exchangeable with the calibration queries after
        their matches were taken out: the same kind of questions, about things that are missing.

    Reference: Bates et al., "Testing for outliers with conformal p-values", Annals of Statistics
        2023.
    """
    confidence = checks.vector(confidence, "confidence")
    absent = np.sort(checks.vector(absent_confidence, "absent_confidence"))
    at_least = len(absent) - np.searchsorted(absent, confidence, side="left")
    return (1 + at_least) / (len(absent) + 1)


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What `certified_threshold` promises of a `Confidence`, to travel with it.

    ```python
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(400, 20))
    correct = similarity.max(axis=1) > 1.5
    confidence = zoo.confidence.Confidence.fit(similarity[:200], correct[:200])
    certified = confidence.certified(similarity[200:], correct[200:], risk=0.2, failure=0.1)
    certified.certificate.threshold  # answer from this probability on
    ```

    Attributes:
        risk: the share of wrong answers among those given, at most.
        failure: how often the promise may fail, over certifying queries.
        threshold: the probability from which a query is answered; None where nothing could be
            promised.
        num_queries: how many queries certified it.

    Raises:
        ValueError: if a share or the threshold is out of range.
    """

    risk: float
    failure: float
    threshold: float | None
    num_queries: int

    def __post_init__(self):
        checks.share(self.risk, "risk")
        checks.share(self.failure, "failure")
        checks.whole(self.num_queries, "num_queries")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(f"`threshold` must be in [0, 1] or None; received {self.threshold}")


def numbered(groups, count, name="groups"):
    """Group numbers 0 … K − 1 of `count` queries, int64 `(count,)`; each its own where None.

    Raises:
        ValueError: if the shape differs.
    """
    if groups is None:
        return np.arange(count)
    groups = np.asarray(groups)
    if groups.shape != (count,):
        raise ValueError(
            f"`{name}` must be of shape ({count},), one a query; received {groups.shape}"
        )
    return np.unique(groups, return_inverse=True)[1]


def weights(groups):
    """One over the size of each query's group, `(queries,)`."""
    return 1 / np.bincount(groups)[groups]


def one_of_each(groups, rng):
    """A query of every group, drawn at random: sorted row numbers."""
    order = rng.permutation(len(groups))
    return np.sort(order[np.unique(groups[order], return_index=True)[1]])


def halves(groups, seed):
    """The queries of half of the groups, drawn at random, and those of the others."""
    chosen = np.random.default_rng(seed).permutation(int(groups.max()) + 1)
    first = np.isin(groups, chosen[: (len(chosen) + 1) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def conformal_quantile(values, error, groups=None):
    """The value of `(queries,)` that a new query's exceeds with probability ≤ error; may be ∞.

    Every group has the same mass, shared by its members, and so has the new query, at infinity.
    Without groups this is the ⌈(n + 1)(1 − error)⌉-th smallest value.

    Reference: Lee, Barber and Willett, "Distribution-free inference with hierarchical data", 2023,
        for groups: a new query of a new group.
    """
    values = checks.vector(values, "values")
    groups = numbered(groups, len(values))
    order = np.argsort(values, kind="stable")
    # In units of one over the groups and the new query, so that (n + 1)·error is meant exactly.
    mass = np.cumsum(weights(groups)[order])
    needed = (1 - error) * (int(groups.max()) + 2) - _ROUNDING
    place = np.searchsorted(mass, needed, side="left")
    return float(values[order[place]]) if place < len(order) else float("inf")
