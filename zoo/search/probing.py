"""Probes in front of an index: its best answers, scores of items it does not hold, exact ranks."""

import numpy as np

from zoo.confidence.insertion import put_there
from zoo.confidence.scores import DEPTH
from zoo.embeddings.arrays import as_arrays, length, take
from zoo.search import plan

_BYTES = 2**28  # of answers' vectors that are kept
# Share of the probes whose rank is counted over the whole gallery, at most, which takes as long as
# searching two; of a large gallery half of that.
COUNTED, LARGE = 0.2, 50_000


def probe(index, queries, own, rows, copies=None, seed=0):
    """What an index says to probes, see `zoo.confidence.insertion`; it stays as it is.

    One search of the probes, and one more product with the gallery for those whose own item is
    not among the best 20. Where these are more than a quarter of the probes, a random part of the
    probes has its rank counted, so that the cost stays near that of the search.

    Args:
        index: an `Index` or a `ShardedIndex`.
        queries: Q embeddings.
        own: M embeddings, of items like the gallery's.
        rows: `(Q, n)`, the rows of `own` that each query wants; −1 where it wants fewer.
        copies: see `zoo.confidence.agreement`.
        seed: of the random part.

    Returns:
        A `zoo.confidence.insertion.Probed`. Ranks that were not counted are NaN: those of a random
        part of the probes.

    Raises:
        ValueError: if queries or items do not fit the index, or it is empty.
    """
    queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
    if not len(index):
        raise ValueError("the index is empty: there is nothing to calibrate on")
    plan.check_items(index.description, own, "own")
    scores, ids = index.search(queries, min(DEPTH, len(index)))
    items = None if index.own_space is None else index.own_space.item_vectors(own)
    answers = None if items is None else _answers(index, ids, items.shape[1])
    without = index.scores_of(queries, scores, ids, copies, answers)
    left_out = None
    if index.hubs is not None:
        left_out = index.hubs.left_out(queries, rows, length(own))
    own_scores = index.pair_scores(queries, own, rows, left_out)
    if without.agreement is None:
        probed = put_there(without, own_scores)
    else:
        probed = put_there(
            without,
            own_scores,
            answers,
            lambda part: items[np.maximum(rows[part], 0)],
            index.centre,
            copies,
        )
    _count(index, queries, probed, seed)
    return probed


def _answers(index, ids, dim):
    """A function of a slice of the probes to their answers' vectors, which are read three times.

    What is kept is kept a slice at a time: one large array is memory that the system may take
    longer to find than the vectors take to be copied.
    """
    kept, are_few = {}, 4 * ids.size * dim <= _BYTES

    def answers(part):
        bounds = part.start, part.stop
        if bounds in kept:
            return kept[bounds]
        found = index.answer_vectors(ids[part])
        if are_few:
            kept[bounds] = found
        return found

    return answers


def _count(index, queries, probed, seed):
    """Fills in the ranks beyond the answers, of all probes or of a random part of them."""
    beyond = np.isnan(probed.ranks)
    most = COUNTED if len(index) <= LARGE else COUNTED / 2
    if beyond.mean() > most:  # whether a probe is counted must not depend on its rank
        kept = np.random.default_rng(seed).random(len(beyond)) < most / beyond.mean()
        probed.ranks[~kept] = np.nan
        beyond &= kept
    chosen = np.flatnonzero(beyond)
    if len(chosen):
        least = probed.match_scores[chosen]
        probed.ranks[chosen] = 1.0 + index.count_at_least(take(queries, chosen), least)
