"""Held-out pairs asked in front of a gallery: each with its own item put there, and without."""

import dataclasses

import numpy as np

from zoo.confidence.answer_agreement import beside_the_first, cosines
from zoo.confidence.scores import DEPTH, QueryScores

_BLOCK = 64  # probes at once, whose answers' vectors are looked at


@dataclasses.dataclass(frozen=True, eq=False)
class Probed:
    """What a gallery G says to probes; nothing is written into it.

    Attributes:
        scores: the `QueryScores` of each probe over G ∪ {its own items}.
        without: the `QueryScores` over G alone.
        is_there: `(Q,)` booleans: G holds the own item, or a copy, so nothing was put there.
        correct: `(Q,)` booleans: an own item comes first.
        ranks: `(Q,)`, of the probe's first own item, 1 = first. Ties count against it. NaN where it
            was not counted.
        match_scores: `(Q,)`, of the probe's best own item.
        size: number of items of G.
        own_scores: `(Q, n)`, of the own items that were brought, NaN where a probe has fewer.
    """

    scores: QueryScores
    without: QueryScores
    is_there: np.ndarray
    correct: np.ndarray
    ranks: np.ndarray
    match_scores: np.ndarray
    size: int
    own_scores: np.ndarray

    def __len__(self):
        return len(self.ranks)


def put_there(without, own_scores, answers=None, own_vectors=None, centre=None, copies=None):
    """Puts each probe's own items into the gallery for this probe alone.

    Mean and variance of the scores over G ∪ {own items} follow from those over G: with n items of
    mean m₁ and variance v₁ joined to N of m and v, the mean is (N m + n m₁) / (N + n), and the
    variance (N v + n v₁) / (N + n) + N n (m − m₁)² / (N + n)².

    Args:
        without: the `QueryScores` over G, whose agreement counts no `copies`.
        own_scores: `(Q, n)`, of each probe and its own items, higher is better; NaN where a probe
            has fewer.
        answers: function of a slice of the probes to the vectors `(q, R, dim)` of their best R
            answers in G, or None where answers have no vectors.
        own_vectors: function of a slice to `(q, n, dim)`, those of the own items.
        centre: `(dim,)`, mean of G's vectors.
        copies: see `zoo.confidence.agreement`.

    Returns:
        A `Probed`, whose ranks beyond the answers are NaN.
    """
    own = np.asarray(own_scores, np.float64)
    has = ~np.isnan(own)
    best_own = np.where(has, own, -np.inf).max(axis=1)
    depth = without.top.shape[1]
    is_there = np.zeros(len(own), bool)
    is_copy = np.zeros(without.top.shape, bool)
    if answers is not None and copies is not None:
        for rows in _slices(len(own)):
            is_copy[rows] = _copies_of(answers(rows), own_vectors(rows), has[rows], centre, copies)
        is_there = is_copy.any(axis=1)
    # Where the gallery holds the own item, its score there is the match's, and nothing is added.
    own = np.where(is_there[:, None], np.nan, own)
    there = np.where(is_copy, without.top, -np.inf).max(axis=1)
    match_scores = np.where(is_there, there, best_own)
    before = ((without.top >= match_scores[:, None]) & ~is_copy).sum(axis=1)
    in_sight = is_there | (before < depth) | (without.size == depth)
    ranks = np.where(in_sight, 1.0 + before, np.nan)
    scores = _joined(without, own, answers, own_vectors, centre, copies)
    size = int(without.size[0])
    given = np.asarray(own_scores, np.float64)
    return Probed(scores, without, is_there, before == 0, ranks, match_scores, size, given)


def _joined(without, own, answers, own_vectors, centre, copies):
    """The `QueryScores` over G ∪ own items, of `(Q, n)` scores that are NaN where there is none."""
    own = np.where(np.isfinite(own), own, np.nan)  # what a search does not find has no score
    size, (mean, variance) = without.size, (without.mean, without.variance)
    count = (~np.isnan(own)).sum(axis=1)
    some = np.maximum(count, 1)
    own_mean = np.where(count, np.nansum(own, axis=1) / some, mean)
    own_variance = np.nansum((own - own_mean[:, None]) ** 2, axis=1) / some
    total = size + count
    spread = size * count * (mean - own_mean) ** 2 / total
    variance = (size * variance + count * own_variance + spread) / total
    mean = mean + count / total * (own_mean - mean)
    # Own items behind equal scores: ties count against a probe.
    both = np.concatenate([without.top, np.where(np.isnan(own), -np.inf, own)], axis=1)
    depth = min(DEPTH, int(total.min()))
    order = np.argsort(-both, axis=1, kind="stable")[:, :depth]
    top = np.take_along_axis(both, order, axis=1)
    if answers is None or without.agreement is None:
        return QueryScores(top, mean, variance, total)
    found, copied = [], []
    for rows in _slices(len(own)):
        theirs, mine = answers(rows), own_vectors(rows)
        added = np.where(np.isnan(own[rows])[..., None], 0.0, mine).sum(axis=1)
        own_centre = (size[rows, None] * centre + added) / total[rows, None]
        vectors = np.concatenate([theirs, mine], axis=1)
        vectors = vectors[np.arange(len(vectors))[:, None], order[rows]]
        for kept, values in zip(
            (found, copied), beside_the_first(vectors, own_centre, copies), strict=True
        ):
            kept.append(values)
    return QueryScores(top, mean, variance, total, np.concatenate(found), np.concatenate(copied))


def _copies_of(answers, own, has, centre, copies):
    """Which answers `(q, R)` are copies of one of the probe's own items."""
    centre = centre.astype(np.float32)  # as the vectors are
    found = cosines(own - centre, answers - centre)
    return ((found > copies) & has[..., None]).any(axis=1)


def _slices(count):
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
