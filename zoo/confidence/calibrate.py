"""A calibration for the gallery that is asked, by held-out pairs put into it one at a time."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from zoo.arrays import as_arrays, centres, length
from zoo.confidence import checks
from zoo.confidence import groups as grouping
from zoo.confidence.answer_agreement import copy_threshold
from zoo.confidence.confidence import Confidence
from zoo.confidence.features import AGREEMENT_RANKS, AGREEMENTS, JUDGED, LOG_GAPS, feature_names
from zoo.confidence.gallery import GalleryIdentity
from zoo.confidence.insertion import Probed
from zoo.confidence.kind_size import kind_size, odds_by_number
from zoo.confidence.kind_spread import KindSpread, numbered_kinds
from zoo.confidence.promises import GalleryPromises
from zoo.confidence.scores import FOLLOWING, dense

LEAST = 20  # probes
SEEN = 2000  # items of the gallery that are looked at for the size of kinds
NEARLY = 0.8  # of a rank, that different answers must reach for its features to be read
RISK, FAILURE = 0.2, 0.1
# Of fewer, not even a tenth without an error would pass the test of `certified_threshold`.
LEAST_CERTIFYING = math.ceil(10 * math.log(FAILURE) / math.log(1 - RISK))


def calibrate_on(
    index,
    queries,
    own,
    matches=None,
    groups=None,
    uncertainty=None,
    *,
    matches_in_gallery=None,
    known=None,
    seed=0,
):
    """A `Confidence` that is true on the gallery of an index.

    ```python
    rng = np.random.default_rng(0)
    photos = rng.normal(size=(500, 16))
    asked = photos + rng.normal(size=photos.shape)  # held-out questions and what each wants
    index = zoo.search.Index.build(photos[:200], "cosine")
    confidence = zoo.confidence.calibrate_on(index, asked[200:], photos[200:])
    index.probability(asked[:3], confidence)  # that the first answer is right, here
    ```

    A calibration that is learnt over one gallery is false over another. So the calibration queries
    are asked in front of this one: for each of these probes its own item is put into the gallery,
    for this probe alone, and the answer is right if the own item comes first. Nothing is written
    into the index. Where it holds an own item already, or a copy, nothing is put there.

    Args:
        index: an `Index` or a `ShardedIndex` of any kind.
        queries: Q embeddings of held-out questions, a dict of arrays or what `encode_*` returned.
        own: embeddings of the items that they want, row by row; with `matches` M items.
        matches: `(Q, M)` booleans, dense or scipy sparse: where several items are right, as of a
            class. None: row i wants row i.
        groups: `(Q,)`, which questions belong together, such as the captions of one image; each
            group counts once.
        uncertainty: `(Q,)`, see `Confidence.fit`; then `Index.probability` takes it too.
        matches_in_gallery: with `matches`, how many items of a kind this gallery holds. A probe
            brings so many of its own; what more would add is told by what half of them add. None:
            as many as are seen, see `kind_size`.
        known: a `KnownQueries`, to travel with the calibration.
        seed: of all that is drawn.

    Returns:
        A `Confidence`. One half of the groups teaches it and the other certifies it, where there
        are enough. Its `first_k`, `score_threshold` and p-values of absence are of all probes.

    Raises:
        ValueError: if shapes or dimensions do not fit, a number is not finite, there are fewer than
            20 probes, the index is empty, or nothing can be learnt, since all probes are right
            here, or all are wrong.

    Assumptions: the probes are exchangeable with future pairs of a question and the item that it
        wants. That they are like the training pairs does not matter; that users ask like them does.
    """
    queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
    count = length(queries)
    if count < LEAST:
        raise ValueError(f"a calibration needs at least {LEAST} probes; received {count}")
    numbers = grouping.numbered(groups, count)
    if uncertainty is not None:
        uncertainty = checks.vector(uncertainty, "uncertainty", count)
    if matches is not None:
        matches = dense(matches, (count, length(own)), "matches", "(questions, own items)")
    is_said = matches_in_gallery is not None
    probed, rows, copies, matches_in_gallery, size_error = ask_probes(
        index, queries, own, matches, matches_in_gallery, seed
    )
    kinds = numbers if matches is None else numbered_kinds(matches)
    correct = probed.correct
    right = int(correct.sum())
    if min(right, count - right) < 3:
        raise ValueError(
            f"of {count:,} probes {right:,} find their own item first among {len(index):,} items: "
            "at least 3 right and 3 wrong ones are needed to tell them apart"
        )
    learning, certifying = grouping.halves(numbers, seed)
    if len(np.unique(numbers[certifying])) < LEAST_CERTIFYING:
        learning, certifying = np.arange(count), np.arange(0)
    confidence = _of_halves(probed, learning, certifying, uncertainty, numbers, queries, seed)
    inside = confidence.features(probed.scores, uncertainty)
    # Half of the probes taught the weights; how often answers are right, all of them tell.
    weights = grouping.weights(numbers)
    confidence = _moved(confidence, confidence.logistic.missing_bias(inside, correct, weights))
    different = probed.without.different.mean() / probed.without.top.shape[1]
    num_kinds = different * len(index) / (matches_in_gallery or 1)
    said = confidence.of_features(inside)
    spread = KindSpread.of(said, correct, numbers, kinds, num_kinds)
    slope = odds_by_number(probed)
    if spread is not None:
        spread = spread.with_size(slope, size_error)
    # The captions of an image are all brought, of a class only some.
    if matches_in_gallery is not None and (is_said or _is_sample(kinds)):
        brought = (rows >= 0).sum(axis=1).mean()
        more = slope * max(0.0, float(np.log(matches_in_gallery / brought)))
        confidence = _moved(confidence, more)
    outside = confidence.features(probed.without, uncertainty)
    logits = confidence.logistic.logit(inside)
    promises = GalleryPromises.of(probed, logits, inside, outside, numbers, learning, seed)
    return dataclasses.replace(
        confidence,
        gallery=GalleryIdentity.of_index(index),
        known=known,
        copies=copies,
        promises=promises,
        spread=spread,
    )


def _of_halves(probed, learning, certifying, uncertainty, numbers, queries, seed):
    """A confidence that some probes teach and the others, if there are any, certify."""

    def part(chosen):
        given = None if uncertainty is None else uncertainty[chosen]
        return probed.scores.take(chosen), probed.correct[chosen], given

    confidence = Confidence.fit(
        *part(learning),
        names=_names(probed.without, uncertainty),
        groups=numbers[learning],
        queries=centres(queries)[learning],
        seed=seed,
    )
    if not len(certifying):
        return confidence
    return confidence.certified(
        *part(certifying), risk=RISK, failure=FAILURE, groups=numbers[certifying], seed=seed
    )


def _moved(confidence, shift):
    """A confidence whose log odds are all greater by a shift.

    The certificate's threshold moves along, so the same questions are answered as before.
    """
    logistic, certificate = confidence.logistic, confidence.certificate
    logistic = dataclasses.replace(logistic, bias=logistic.bias + shift)
    if certificate is not None and certificate.threshold is not None:
        threshold = float(expit(logit(certificate.threshold) + shift))
        certificate = dataclasses.replace(certificate, threshold=threshold)
    return dataclasses.replace(confidence, logistic=logistic, certificate=certificate)


def _names(without, uncertainty):
    """The features to read: those of ranks that the gallery reaches.

    With its own item a small gallery reaches a rank that it does not reach without. Where it holds
    its items several times, few different ones are seen: fewer by a question, whose own item is
    there several times too, than by a probe.
    """
    there = set(feature_names(without, uncertainty))
    seen = np.median(without.different)
    for ranks, names in ((FOLLOWING, LOG_GAPS), (AGREEMENT_RANKS, AGREEMENTS)):
        there -= {name for rank, name in zip(ranks, names, strict=True) if seen < NEARLY * rank}
    return [name for name in JUDGED if name in there]


class Asked(NamedTuple):
    """Probes in front of an index, see `ask_probes`.

    Attributes:
        probed: the `zoo.confidence.insertion.Probed`.
        rows: of `own_rows`.
        copies: see `zoo.confidence.agreement`, or None.
        matches_in_gallery: how many items of a kind the gallery holds, or None.
        size_error: of that, in relation to it; 0 where it was given.
    """

    probed: Probed
    rows: np.ndarray
    copies: float | None
    matches_in_gallery: int | None
    size_error: float


def ask_probes(index, queries, own, matches=None, matches_in_gallery=None, seed=0):
    """Puts the own items of probes into the gallery of an index, each for its own question only.

    Args:
        index, queries, own, matches, matches_in_gallery, seed: as of `calibrate_on`; the
            embeddings dicts of arrays, the matches dense.

    Returns:
        An `Asked`.
    """
    space, copies, size_error = index.own_space, None, 0.0
    if space is not None and length(own) > 1:
        vectors = space.item_vectors(own)
        copies = copy_threshold(vectors)
        if matches is not None and matches_in_gallery is None:
            wanted, kinds = matches.astype(np.float32), numbered_kinds(matches)
            matches_in_gallery, size_error = kind_size(
                index.vector_sample(SEEN, seed),
                len(index),
                vectors,
                wanted.T @ wanted > 0,
                int(kinds.max()) + 1 if _is_sample(kinds) else None,
            )
    rows = own_rows(matches, length(queries), length(own), matches_in_gallery, seed)
    probed = index.probe(queries, own, rows, copies, seed)
    return Asked(probed, rows, copies, matches_in_gallery, size_error)


def _is_sample(kinds):
    """Whether several questions want the same, as of classes, which have more items than these."""
    return kinds.max() + 1 < len(kinds)


def own_rows(matches, count, num_items, most=None, seed=0):
    """The rows of the own items that each query wants, `(Q, n)`, −1 where it wants fewer.

    Args:
        matches: `(Q, M)` booleans or None, see `calibrate_on`.
        count, num_items: Q and M.
        most: how many a query brings, drawn at random; None for all.
        seed: of the draw.

    Raises:
        ValueError: if the shape differs or a query wants nothing.
    """
    if matches is None:
        if num_items != count:
            raise ValueError(
                f"`own` must hold one item a question, {count}; received {num_items}. Give "
                "`matches` where questions want several"
            )
        if most is not None:
            raise ValueError("`matches_in_gallery` needs `matches`, which say what is of a kind")
        return np.arange(count)[:, None]
    wanted = matches.sum(axis=1)
    if not wanted.all():
        raise ValueError(
            f"`matches` must name an own item of every question; row "
            f"{int(np.argmin(wanted))} has none"
        )
    width = int(wanted.max()) if most is None else checks.whole(most, "matches_in_gallery")
    # A random order of every row with its own items first.
    order = np.where(matches, np.random.default_rng(seed).random(matches.shape), 2.0)
    width = min(width, int(wanted.max()))
    rows = np.argsort(order, axis=1)[:, :width]
    return np.where(np.arange(width) < wanted[:, None], rows, -1)
