"""Calibrates on the gallery that is asked: probes are put into it."""

import dataclasses
from typing import NamedTuple

import numpy as np

from halo_search.confidence import quality
from halo_search.confidence.confidence import (
    LEAST,
    LEAST_OF_EACH,
    PENALTY,
    Confidence,
    InGallery,
    fitted,
    rank_features,
)
from halo_search.confidence.features import (
    GAPS,
    Logistic,
    feature_names,
    query_features,
    temperature_of,
)
from halo_search.confidence.insertion import (
    SEEN,
    Probed,
    kind_size,
    numbered_kinds,
    own_rows,
    thinned,
)
from halo_search.confidence.scores import DEPTH, copy_threshold, dense
from halo_search.confidence.sigmoid import expit
from halo_search.embeddings import checks, kind
from halo_search.embeddings.arrays import as_arrays, length, take
from halo_search.embeddings.moments import GalleryIdentity

FOLDS = 5  # of the kinds of probes, each of which is told by a fit without it
KEPT = 2000  # values of each kind that travel with a calibration
LEAST_HELD_OUT = 104  # groups of the half that teaches no weights; with fewer, all teach
# What `python -m studies.generic_probes` prints, see docs/results/generic_probes.md: mean and
# standard deviation of the shift of all log odds from photos of one kind to another. Probes of
# another kind than the gallery stand out in it, so that they are found too often.
ELSEWHERE = (-0.27, 0.25)
ALIKE = 32  # leading directions by which a gallery is told from the probes' items
# Kinds of probes from which these are weighed, and as many as they are worth then, at least.
LEAST_KINDS, LEAST_ALIKE = 200, 40
_STEPS = 50  # of Newton's method
MOST_KINDS, MOST_OF_ALL = 200, 200  # wanted things and embeddings per side that show chance
BY_CHANCE = 4  # own items that are found first by chance, at most, in 99 of 100 models at chance


class AtChanceError(ValueError):
    """The model finds what probes want no more often than chance."""


def deviation(probability, correct, weights, kinds, num_kinds):
    """The standard deviation of a shift that all log odds of one gallery have in common."""
    # Kinds differ in difficulty by more than their scores tell. The probes are of K kinds, the
    # questions of C others, at most K, so what is said is off by the mean of either. `probability`
    # is of fits without a probe's kind. Error of a mean over clusters: Liang and Zeger, 1986.
    count = int(kinds.max()) + 1
    if count < 2:
        return 0.0
    weights = weights / weights.sum()
    by_kind = np.bincount(kinds, weights * (correct - probability))
    curve = (weights * probability * (1 - probability)).sum()
    variance = count / (count - 1) * (by_kind**2).sum() / curve**2
    return float(np.sqrt(variance * (1 + count / np.clip(num_kinds, 1, count))))


def calibrate_on(
    index,
    queries,
    own,
    matches=None,
    groups=None,
    uncertainty=None,
    *,
    known=None,
    names=None,
    seed=0,
):
    """A `Confidence` that is true on the gallery of an index.

    ```python
    rng = np.random.default_rng(0)
    photos = rng.normal(size=(500, 16))
    asked = photos + rng.normal(size=photos.shape)  # held-out questions and what each wants
    index = halo_search.index.Index.build(photos[:200], "cosine")
    confidence = halo_search.confidence.calibrate_on(index, asked[200:], photos[200:])
    index.probability(asked[:3], confidence)  # that the first answer is right, here
    ```

    A calibration learnt over one gallery is false over another. So each calibration query, a probe,
    asks this one with its own items inserted, for it alone, unless the index holds a copy; it is
    right if an own item comes first. The index stays as it is. In a gallery of one kind, such as an
    album, the likelier a probe's own items are in such a gallery, the more it counts.

    Args:
        index: a `halo_search.index.Index`.
        queries: Q embeddings of held-out questions, a dict of arrays or what `encode_*` returned.
        own: embeddings of the items that they want, row by row; with `matches` M items.
        matches: `(Q, M)` booleans, dense or scipy sparse, where several items are right, as of a
            class; a probe brings as many as this gallery holds.
        groups: `(Q,)`, which questions belong together, as captions of one image; each counts once.
        uncertainty: `(Q,)`, see `Confidence.fit`; then `Index.probability` takes it too.
        known: a `KnownQueries`, to travel with the calibration.
        names: the features to read, of those that the probes reach; None: a softmax over the
            gallery where a question wants one item, else gaps between scores.
        seed: of all that is drawn.

    Raises:
        AtChanceError: a ValueError, if the model matches the probes no better than chance.
        ValueError: if arguments do not fit, a number is not finite, there are fewer than 20 probes,
            the index is empty, or hardly a probe is right here, or wrong.

    Assumptions: the probes are exchangeable with future pairs of a question and the item that it
        wants; they need not be like training pairs.
    """
    queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
    count = length(queries)
    if count < LEAST:
        raise ValueError(f"a calibration needs at least {LEAST} probes; received {count}")
    numbers = checks.numbered(groups, count)
    if uncertainty is not None:
        uncertainty = checks.vector(uncertainty, "uncertainty", count)
    if matches is not None:
        matches = dense(matches, (count, length(own)), "matches", "(questions, own items)")
    probed, rows, copies, per_kind = ask_probes(index, queries, own, matches, seed)
    wants = numbers if matches is None else numbered_kinds(matches)
    check_chance(index, queries, own, rows, wants, seed)
    correct = probed.correct
    right = int(correct.sum())
    if min(right, count - right) < LEAST_OF_EACH:
        raise ValueError(
            f"of {count:,} probes {right:,} find their own item first among {len(index):,} items: "
            f"at least {LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong ones are needed to tell "
            "them apart. If few are right, check that row i of `own` is what row i of `queries` "
            "wants"
        )
    names = _names(probed, rows, uncertainty, names)
    learning, held_out = checks.halves(numbers, seed)
    if (
        len(np.unique(numbers[held_out])) < LEAST_HELD_OUT
        or min(correct[learning].sum(), (~correct[learning]).sum()) < LEAST_OF_EACH
    ):
        learning, held_out = np.arange(count), np.arange(0)
    weights, alike = _weights(index, own, rows, checks.weights(numbers), wants, seed)
    temperature = temperature_of(probed.scores)
    inside = query_features(probed.scores, uncertainty, names, temperature)
    logistic = fitted(names, inside[learning], correct[learning], weights[learning])
    taught = len(learning), int(correct[learning].sum())
    confidence = Confidence(names, logistic, *taught, temperature=temperature)
    # Half of the probes taught the weights; how often answers are right, all of them tell.
    shift = confidence.logistic.missing_bias(inside, correct, weights)
    confidence = moved(confidence, shift)
    outside = confidence.features(probed.without, uncertainty)
    given = _Asked(probed, numbers, weights, wants, learning, held_out, seed)
    unseen = expit(_unseen(given, confidence, inside) + shift)
    brought = (rows >= 0).sum(axis=1).mean()
    seen = _in_gallery(given, confidence, (inside, outside), unseen, brought, per_kind or 1)
    seen = dataclasses.replace(seen, likeness=alike)
    return dataclasses.replace(
        confidence,
        gallery=GalleryIdentity.of_index(index),
        known=known,
        copies=copies,
        in_gallery=seen,
    )


def likeness(gallery, items):
    """How much likelier each of `(m, dim)` items is in a gallery such as `(n, dim)` than among the
    items, `(m,)`."""
    # The odds of a logistic regression that tells the two apart, by the leading directions of both,
    # are the ratio of their densities (Bickel, Brückner and Scheffer, JMLR 2009).
    both = np.concatenate([gallery, items]).astype(np.float64)
    both -= both.mean(axis=0)
    is_here = np.arange(len(both)) < len(gallery)
    axes = np.linalg.eigh(both.T @ both)[1][:, -ALIKE:]  # the greatest are last
    shares = np.where(is_here, 1 / len(gallery), 1 / len(items))
    told = Logistic.fit(both @ axes, is_here, PENALTY, weights=shares)
    return np.exp(told.logit(both[len(gallery) :] @ axes))


def _weights(index, own, rows, weights, wants, seed):
    """`(weights of the probes (Q,), likeness of the own items or None)`."""
    if wants.max() + 1 < LEAST_KINDS or len(index) < ALIKE or index.own_space is None:
        return weights, None
    gallery = index.vector_sample(SEEN, seed)
    found = np.log(likeness(gallery, index.own_space.item_vectors(own)))
    for power in np.linspace(1, 0, 11):  # of a gallery that hardly any are like, less
        alike = np.exp(power * (found - found.max()))
        probes = weights * np.mean(alike[rows], axis=1, where=rows >= 0)
        by_kind = np.bincount(wants, probes)
        if by_kind.sum() ** 2 >= LEAST_ALIKE * (by_kind**2).sum():
            break
    return probes, alike


def check_chance(index, queries, own, rows, wants, seed=0):
    """Raises `AtChanceError` unless more probes find their own item than chance explains, by an
    exact test at 1 %: each probe ranks the own items of all. Arguments as of `found_first`."""
    # At chance all K! orders of items are equally likely, r given ones are found in (K − r)! at
    # most, so P(X ≥ r) ≤ C(K, r) (K − r)! / K! = 1 / r!; 1 / 5! < 1 %.
    found, count = found_first(index, queries, own, rows, wants, seed)
    if found <= BY_CHANCE < count:  # fewer than five cannot tell
        raise AtChanceError(
            f"the model matches questions with items no better than chance: {found} of {count:,} "
            "probes rank their own item first among all probes' items, and chance explains up to "
            f"{BY_CHANCE}"
        )


def found_first(index, queries, own, rows, wants, seed=0):
    """`(X, K)`: of K wanted things X come first among all of them, by the mean score of the
    questions and items of each; `rows` `(Q, n)` of `own` and `wants` `(Q,)` say what is wanted."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(int(wants.max()) + 1)[:MOST_KINDS]
    each = max(1, MOST_OF_ALL // len(kinds))
    asked = [rng.permutation(np.flatnonzero(wants == one))[:each] for one in kinds]
    wanted = [np.setdiff1d(rows[wants == one], -1) for one in kinds]
    wanted = [rng.permutation(one)[:each] for one in wanted]
    some, items = np.concatenate(asked), np.concatenate(wanted)
    pairs = np.broadcast_to(items, (len(some), len(items)))
    scores = index.pair_scores(take(queries, some), own, pairs)
    known = np.isfinite(scores)
    scores = np.where(known, scores, scores[known].min(initial=0.0))
    for parts, axis in ((asked, 0), (wanted, 1)):
        counts = np.array([len(part) for part in parts])
        sums = np.add.reduceat(scores, np.cumsum(counts) - counts, axis=axis)
        scores = sums / np.expand_dims(counts, 1 - axis)
    others = np.where(np.eye(len(kinds), dtype=bool), -np.inf, scores)
    return int((np.diag(scores) > others.max(axis=1)).sum()), len(kinds)


def ask_probes(index, queries, own, matches=None, seed=0):
    """Asks probes in front of an index; `(Probed, rows of own items, cosine of copies or None,
    items of a kind in the gallery or None)`. Arguments as of `calibrate_on`."""
    what, expected = kind(own), index.description.get("embedding")
    if expected not in (None, what):  # before its vectors are read
        raise ValueError(f"`own` must be {expected}; received {what}")
    space, copies, per_kind = index.own_space, None, None
    if space is not None and length(own) > 1:
        vectors = space.item_vectors(own)
        copies = copy_threshold(vectors)
        if matches is not None:
            per_kind = kind_size(index, vectors, matches, seed)
    rows = own_rows(matches, length(queries), length(own), per_kind, seed)
    probed = index.probe(queries, own, rows, copies, seed)
    if per_kind is not None:
        shares = np.minimum(1.0, (rows >= 0).sum(axis=1) / per_kind)
        if (shares < 1).any():
            probed = thinned(probed, shares, seed)
    return probed, rows, copies, per_kind


def _names(probed, rows, uncertainty, names):
    """The features to read, of ranks that the probes' own items and the gallery reach."""
    # Answers 2 … R of a real question may all be of its kind, which no probe that brings fewer can
    # show. Of items that the gallery holds several times few different ones are seen. A softmax
    # shares its probability among items of a kind, of which the gallery may hold more than a probe
    # brings.
    there = feature_names(probed.scores, uncertainty)
    reach = float(np.median(probed.without.different))
    brought = float(np.median((rows >= 0).sum(axis=1)))
    if brought > 1:
        reach = min(reach, brought)
    if names is None:
        unread = ("softmax",) if brought > 1 else GAPS
        names = [name for name in there if name not in unread]

    def is_reached(name):
        kind, _, rank = name.partition("_")
        return kind != "agreement" or int(rank) <= max(reach, 1)

    return tuple(name for name in there if name in names and is_reached(name))


class _Asked(NamedTuple):
    """Probes that were asked: which belong together, want the same, teach or are held out."""

    probed: Probed
    groups: np.ndarray
    weights: np.ndarray
    kinds: np.ndarray
    learning: np.ndarray
    held_out: np.ndarray
    seed: int


def _unseen(asked, confidence, features):
    """`(Q,)` log odds of probes, each by a fit of the learning ones without its kind."""
    correct, kinds = asked.probed.correct, asked.kinds
    fold = np.random.default_rng(asked.seed).permutation(int(kinds.max()) + 1)[kinds] % FOLDS
    odds = confidence.logistic.logit(features)
    for out in range(FOLDS):
        fit = asked.learning[fold[asked.learning] != out]
        if min(correct[fit].sum(), (~correct[fit]).sum()) >= LEAST_OF_EACH:
            found = fitted(confidence.names, features[fit], correct[fit], asked.weights[fit])
            odds[fold == out] = found.logit(features[fold == out])
    return odds


def moved(confidence, shift):
    """A confidence whose log odds are all greater by a shift."""
    logistic = confidence.logistic
    logistic = dataclasses.replace(logistic, bias=logistic.bias + shift)
    return dataclasses.replace(confidence, logistic=logistic)


def _in_gallery(asked, confidence, features, unseen, brought, per_kind):
    """The `InGallery`, of features with and without the own items put there."""
    probed, numbers, weights, wants, learning, held_out, seed = asked
    rng = np.random.default_rng(seed)
    inside, outside = features
    logits, correct = confidence.logistic.logit(inside), probed.correct
    counted = np.flatnonzero(~np.isnan(probed.ranks))
    alike = (weights / checks.weights(numbers))[counted]
    if np.ptp(alike) > 1e-9 * alike.max():
        # Quantiles of the weighted ranks, of as many probes as these are worth: what is drawn by
        # its weight would hang on their last digits.
        worth = min(KEPT, round(alike.sum() ** 2 / np.square(alike).sum()))
        order = np.argsort(probed.ranks[counted], kind="stable")
        shares = np.cumsum(alike[order]) / alike.sum()
        counted = counted[order[np.searchsorted(shares, (np.arange(worth) + 0.5) / worth)]]
    counted = np.sort(rng.permutation(counted)[:KEPT])
    # Elsewhere the gallery without the own items is not known.
    is_there = probed.is_there.any(axis=1)
    missing = ~is_there if is_there.mean() < 0.5 else np.zeros(len(numbers), bool)
    matcher, present, gone = None, np.empty(0), learning[missing[learning]]
    if len(gone) and len(held_out):  # without others the p-values would learn from themselves
        both = np.concatenate([inside[learning], outside[gone]])
        matcher = Logistic.fit(both, np.arange(len(both)) < len(learning), PENALTY)
        single = held_out[checks.one_of_each(numbers[held_out], rng)]
        present = np.sort(matcher.logit(inside[rng.permutation(single)[:KEPT]]))
    ranked = None
    is_known = ~np.isnan(probed.listed[:, 1:DEPTH])
    later = probed.is_own[:, 1:DEPTH][is_known]
    if later.any() and not later.all():
        table = rank_features(logits, probed.listed, probed.scores.mean, probed.scores.variance)
        of_each = np.repeat(weights[:, None], is_known.shape[1], axis=1)
        ranked = Logistic.fit(table[is_known], later, 1e-4, weights=of_each[is_known])
    different = probed.without.different.mean() / probed.without.top.shape[1]
    spread = deviation(unseen, correct, weights, wants, different * probed.size / per_kind)
    return InGallery(
        probed.size,
        probed.ranks[counted],
        np.unique(numbers[counted], return_inverse=True)[1],
        float(max(per_kind, brought)),
        ranked,
        matcher,
        present,
        spread,
        int(wants.max()) + 1,
        quality.ceiling(expit(logits), correct, wants),
    )


def calibrated_elsewhere(confidence, index, pairs, is_own, spread=ELSEWHERE[1], mean=ELSEWHERE[0]):
    """A `Confidence` by general probes, moved by those `is_own` that are of the user's photos."""
    # Of other photos all log odds are off by a shift δ, normal with this mean and deviation: the
    # most likely one after the own probes; its deviation widens the interval.
    variance, shift = spread**2, mean
    if is_own.any():
        groups = checks.numbered(pairs["groups"], len(is_own))[is_own]
        groups = np.unique(groups, return_inverse=True)[1]
        own = take(pairs["queries"], is_own), pairs["own"], pairs["matches"][is_own]
        probed = ask_probes(index, *own)[0]
        weights = checks.weights(groups)
        odds = confidence.logistic.logit(confidence.features(probed.scores))
        shift, variance = _most_likely(odds, probed.correct, weights, spread, mean)
    seen = confidence.in_gallery
    deviation = float(np.hypot(seen.deviation, np.sqrt(variance)))
    return dataclasses.replace(
        moved(confidence, shift), in_gallery=dataclasses.replace(seen, deviation=deviation)
    )


def _most_likely(logits, correct, weights, spread, mean):
    """`(δ, its variance)` of a logistic regression with one number, by Newton's method."""
    shift = mean
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-(logits + shift)))
        slope = (weights * (correct - said)).sum() - (shift - mean) / spread**2
        curve = (weights * said * (1 - said)).sum() + 1 / spread**2
        shift += slope / curve
        if abs(slope / curve) < 1e-9:
            break
    return float(shift), float(1 / curve)
