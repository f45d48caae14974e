"""What can be promised of a list, and the most that may be said."""

import sys

import numpy as np

from halo_search.embeddings import checks
from halo_search.embeddings.checks import numbered, weights

SEEN, BOUND = 50, 0.99  # of the most likely trials, whose share that fits is bounded
_ROUNDING = 1e-9  # (n + 1)·error is meant exactly: 0.1 · 10 is 1, whatever binary says
_FOR_GROWTH = 0.1  # share of the error that a gallery's growth may use


def smallest_k(ranks, error, num_items=None, groups=None, grown_to=None):
    """The k of which the first k answers hold a match with probability at least 1 − error.

    Proof sketch. The rank of a future query, exchangeable with n others, is equally likely to be
    the 1st, … (n + 1)-th smallest: at most the ⌈(n + 1)(1 − error)⌉-th smallest of the n with at
    least that probability. In a gallery that has grown from N to N', a share Beta(k, N − k) of new
    items like the old ones comes before the match: k' = k + the 1 − α₂ quantile of BetaBinomial(N'
    − N; k, N − k), where k keeps 1 − α₁ and α₁ + α₂ = error.

    Args:
        ranks: `(Q,)`, of each calibration query's first match, 1 = first; `num_items + 1` without
            one.
        error: in (0, 1).
        num_items: number of items in the gallery, or None.
        groups: `(Q,)`, which queries belong together, as captions of one image; each counts once.
        grown_to: number of items now, where more have come since; of fewer k stays.

    Returns:
        An int; where error < 1 / (Q + 1) nothing can be promised, and it is the number of items
        + 1, without `num_items` `sys.maxsize`.

    Raises:
        ValueError: if ranks are not whole numbers of at least 1, `error` is not in (0, 1), or
            `grown_to` comes without `num_items`.

    Assumptions: exchangeable queries or groups; the same model and gallery but for such growth.

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
    if grown_to is None:
        nothing = sys.maxsize if size is None else size + 1
        return int(min(conformal_quantile(ranks, error, groups), nothing))
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


def ceiling(probability, right, groups=None):
    """The most that may be said: Clopper and Pearson's upper bound, at 99 %, of the share that is
    right among the 50 most likely trials; of groups, each is one trial."""
    best = np.argsort(-probability, kind="stable")[:SEEN]
    groups = numbered(None if groups is None else groups[best], len(best))
    count = float(groups.max()) + 1
    found = count * np.average(np.asarray(right, np.float64)[best], weights=weights(groups))
    if found >= count:
        return 1.0
    from scipy.special import betaincinv  # here: a question needs none of it

    return float(betaincinv(found + 1, count - found, BOUND))


def conformal_quantile(values, error, groups=None):
    """The value of `(queries,)` that a new query's exceeds with probability ≤ error; may be ∞."""
    # Every group has the same mass, shared by its members, and so has the new query, at infinity
    # (Lee, Barber and Willett, 2023). Without groups: the ⌈(n + 1)(1 − error)⌉-th smallest value.
    values = checks.vector(values, "values")
    groups = numbered(groups, len(values))
    order = np.argsort(values, kind="stable")
    # In units of one over the groups and the new query, so that (n + 1)·error is meant exactly.
    mass = np.cumsum(weights(groups)[order])
    needed = (1 - error) * (int(groups.max()) + 2) - _ROUNDING
    place = np.searchsorted(mass, needed, side="left")
    return float(values[order[place]]) if place < len(order) else float("inf")
