"""Held-out pairs asked in front of a gallery: each with its own items put there, and without."""

import dataclasses

import numpy as np

from halo_search.confidence.scores import DEPTH, QueryScores, agreement, cosines
from halo_search.embeddings.arrays import unit

SHARE = 0.999  # of pairs of different kinds, which are less alike than the bound
SEEN = 2000  # items of the gallery that are looked at
_BLOCK = 64  # probes at once, whose answers' vectors are looked at


@dataclasses.dataclass(frozen=True, eq=False)
class Probed:
    """What a gallery G says to probes; nothing is written into it."""

    scores: QueryScores  # of each probe over G ∪ {its own items}
    without: QueryScores  # over G alone
    is_own: np.ndarray  # (Q, R), which of the best answers in `scores` are own items
    is_there: np.ndarray  # (Q, n): G holds this own item, or a copy, so it was not put there
    ranks: np.ndarray  # (Q,), of the first own item, 1 = first, behind ties; NaN: not counted
    match_scores: np.ndarray  # (Q,), of the probe's best own item
    size: int  # number of items of G
    listed: np.ndarray  # (Q, R), scores that `is_own` is about; NaN beyond what is known

    def __len__(self):
        return len(self.ranks)

    @property
    def correct(self):
        """`(Q,)` booleans: an own item comes first."""
        return self.is_own[:, 0]


def put_there(without, own_scores, answers=None, own_vectors=None, centre=None, copies=None):
    """Puts each probe's own items into the gallery for this probe alone; returns a `Probed`, whose
    ranks beyond the answers are NaN."""
    # `without` is over G and counts no copies; `own_scores` `(Q, n)` is NaN where a probe has
    # fewer. `answers` and `own_vectors` are functions of a slice of the probes to the vectors of
    # their best answers in G and of their own items, or None. An own item of which G holds a copy
    # is not put there twice: the copy is then the own item.
    own = np.asarray(own_scores, np.float64)
    depth = without.top.shape[1]
    is_there = np.zeros(own.shape, bool)
    is_copy = np.zeros(without.top.shape, bool)
    if answers is not None and copies is not None:
        about = centre.astype(np.float32)  # as the vectors are
        for rows in _slices(len(own)):
            alike = cosines(own_vectors(rows) - about, answers(rows) - about) > copies
            alike &= ~np.isnan(own[rows])[..., None]
            is_there[rows], is_copy[rows] = alike.any(axis=2), alike.any(axis=1)
    added = np.where(is_there | ~np.isfinite(own), np.nan, own)
    copied = np.where(is_copy, without.top, -np.inf).max(axis=1)
    best_own = np.where(np.isnan(own) | is_there, -np.inf, own).max(axis=1)
    match_scores = np.maximum(copied, best_own)
    before = ((without.top >= match_scores[:, None]) & ~is_copy).sum(axis=1)
    in_sight = is_copy.any(axis=1) | (before < depth) | (without.size == depth)
    ranks = np.where(in_sight, 1.0 + before, np.nan)
    scores, order = _joined(without, added, answers, own_vectors, centre, copies)
    labels = np.concatenate([is_copy, ~np.isnan(added)], axis=1)
    is_own = np.take_along_axis(labels, order, axis=1)
    is_own[:, 0] = before == 0  # a copy that ties with a stranger comes first, as it is there
    size = int(without.size[0])
    return Probed(scores, without, is_own, is_there, ranks, match_scores, size, scores.top)


def thinned(probed, shares, seed=0):
    """Probes whose strangers are as few as the own items that they bring."""
    # Of a kind the gallery holds more items than a probe brings, which come first too rarely among
    # all strangers. So each stranger stays with the share `(Q,)` that it brings; scores stay.
    rng = np.random.default_rng(seed)
    top, is_own = probed.scores.top, probed.is_own
    stays = is_own | (rng.random(top.shape) < shares[:, None])
    order = np.argsort(~stays, axis=1, kind="stable")
    listed = np.take_along_axis(np.where(stays, top, np.nan), order, axis=1)
    own = np.take_along_axis(is_own & stays, order, axis=1)
    before = np.where(np.isnan(probed.ranks), 0, probed.ranks - 1).astype(np.int64)
    ranks = 1.0 + rng.binomial(before, shares)
    first = is_own.any(axis=1)
    # One draw for the list and the rank: what stands before the first own item in the list.
    ranks = np.where(first, 1.0 + np.argmax(own, axis=1), ranks)
    ranks = np.where(np.isnan(probed.ranks), np.nan, ranks)
    own[:, 0] = np.where(np.isnan(ranks), own[:, 0], ranks == 1)
    return dataclasses.replace(probed, is_own=own, ranks=ranks, listed=listed)


def _joined(without, own, answers, own_vectors, centre, copies):
    """`QueryScores` over G ∪ own items, NaN where none is added, and the order of both together."""
    # Joined to N of mean m and variance v, n items of m₁ and v₁ have the variance
    # (N v + n v₁) / (N + n) + N n (m − m₁)² / (N + n)².
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
        return QueryScores(top, mean, variance, total), order
    found, copied = [], []
    for rows in _slices(len(own)):
        theirs, mine = answers(rows), own_vectors(rows)
        added = np.where(np.isnan(own[rows])[..., None], 0.0, mine).sum(axis=1)
        own_centre = (size[rows, None] * centre + added) / total[rows, None]
        vectors = np.concatenate([theirs, mine], axis=1)
        vectors = vectors[np.arange(len(vectors))[:, None], order[rows]]
        for kept, values in zip(
            (found, copied), agreement(vectors, own_centre, copies), strict=True
        ):
            kept.append(values)
    beside = np.concatenate(found), np.concatenate(copied)
    return QueryScores(top, mean, variance, total, *beside), order


def _slices(count):
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


def numbered_kinds(matches):
    """Of `(Q, M)` booleans, who wants what: questions that want the same have the same number."""
    return np.unique(np.packbits(matches, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def own_rows(matches, count, num_items, most=None, seed=0):
    """The rows of the own items that each query brings, `(Q, n)`, −1 where it wants fewer: all that
    `matches` names, or `most` of them, drawn at random."""
    if matches is None:
        if num_items != count:
            raise ValueError(
                f"`own` must hold one item a question, {count}; received {num_items}. Give "
                "`matches` where questions want several"
            )
        return np.arange(count)[:, None]
    wanted = matches.sum(axis=1)
    if not wanted.all():
        raise ValueError(
            f"`matches` must name an own item of every question; row "
            f"{int(np.argmin(wanted))} has none"
        )
    width = int(wanted.max()) if most is None else most
    # A random order of every row with its own items first.
    order = np.where(matches, np.random.default_rng(seed).random(matches.shape), 2.0)
    rows = np.argsort(order, axis=1)[:, : min(width, int(wanted.max()))]
    return np.where(np.arange(rows.shape[1]) < wanted[:, None], rows, -1)


def kind_size(index, own, matches, seed=0):
    """The mean number of items of a kind in a gallery, seen from its vectors alone."""
    # Of own items `(M, dim)` of a kind a share p₁ of pairs, of others p₀, is more alike than a
    # bound. In a gallery of such kinds f = p₁ π + p₀ (1 − π) is, where a share π of pairs is of a
    # kind, which then has 1 + π (n − 1) items. Of classes own items are a sample; of an image's
    # captions the gallery holds no more. Where vectors do not tell: as many as so many kinds would
    # have here.
    wanted = matches.astype(np.float32)
    numbers = numbered_kinds(matches)
    same = (wanted.T @ wanted > 0) & ~np.eye(len(own), dtype=bool)
    num_items, num_kinds = len(index), int(numbers.max()) + 1
    most = 1 + int(np.ceil(same.sum(axis=1).mean()))
    gallery = index.vector_sample(SEEN, seed)
    if not same.any() or len(gallery) < 2:
        return min(most, num_items)
    usual = most
    if num_kinds < len(numbers):
        most, usual = num_items, max(1, round(num_items / num_kinds))
    alike = _cosines(own)
    others = ~same & ~np.eye(len(own), dtype=bool)
    bound = np.quantile(alike[others], SHARE) if others.any() else -1.0
    together, apart = np.mean(alike[same] > bound), 1 - SHARE
    # If kinds were as large as usual, pairs that are alike by their kind should be as many as those
    # by chance, or more.
    if (together - apart) * (usual - 1) < apart * (num_items - 1):
        return min(usual, num_items)
    found = _cosines(gallery)
    share = ((found > bound).sum() - len(found)) / (len(found) * (len(found) - 1))
    pairs = np.clip((share - apart) / max(together - apart, 1e-9), 0.0, 1.0)
    return int(np.clip(round(1 + pairs * (num_items - 1)), 1, most))


def _cosines(vectors):
    """Of all pairs, about the mean; those of a vector and itself are 2, above every bound."""
    units = unit(vectors - vectors.mean(axis=0))
    cosines = units @ units.T
    np.fill_diagonal(cosines, 2.0)
    return cosines
