"""Scores of queries over a whole gallery, a block at a time: their mean, variance and ranks."""

import functools
import operator

import numpy as np

from zoo.confidence import GalleryMoments
from zoo.embeddings.arrays import length, take
from zoo.search import scoring

CHUNK = 65536  # vectors that are looked at at once
_BLOCK = 2**22  # scores at once that are a product of vectors
_PAIRS = 2**16  # that a similarity computes, which may take many numbers for each
_ITEMS, _BYTES = 4096, 2**26  # of a gallery at once, at most


def of_vectors(space, score, sign, queries, found, kind):
    """Yields `(slice of the queries, scores (some, items))`, higher is better, of vectors of a
    space that come in parts, by a function of FAISS' value from products in `kind`."""
    rows = np.asarray(space.queries(queries), kind)
    norms = np.square(rows, dtype=np.float64).sum(axis=1)[:, None]
    shift = np.zeros(len(rows)) if space.offset is None else space.offset(queries)
    shift = np.asarray(shift, np.float64)[:, None]
    for part in found:
        part = part.astype(kind, copy=False)
        own = np.square(part, dtype=np.float64).sum(axis=1)
        for chosen in _slices(len(rows), _BLOCK // len(part)):
            values = rows[chosen] @ part.T
            if space.metric == "l2":
                values = np.maximum(norms[chosen] + own - 2 * values, 0)
            yield chosen, sign * score(values + shift[chosen])


def of_embeddings(similarity, side, queries, gallery):
    """`of_vectors` of a gallery that is kept as embeddings, by the similarity itself."""
    sign, item = scoring.sign(similarity), sum(value[:1].nbytes for value in gallery.values())
    for part in _slices(length(gallery), min(_ITEMS, _BYTES // max(1, item))):
        items = take(gallery, part)
        for chosen in _slices(length(queries), _PAIRS // length(items)):
            some = take(queries, chosen)
            pair = (items, some) if side == "images" else (some, items)
            scores = sign * np.asarray(similarity(*pair), np.float64)
            yield chosen, scores.T if side == "images" else scores


def mean_and_variance(blocks, count):
    """Mean and variance of the scores of each of `count` queries, `(count,)` each."""
    total, mean, spread = np.zeros((3, count))
    for chosen, scores in blocks:
        size, before = scores.shape[1], total[chosen]
        own = scores.mean(axis=1)
        shift = own - mean[chosen]
        # Chan et al. 1982, as `GalleryMoments` adds up shards.
        mean[chosen] += shift * size / (before + size)
        spread[chosen] += size * scores.var(axis=1) + shift**2 * before * size / (before + size)
        total[chosen] += size
    return mean, spread / total


def count_at_least(blocks, least):
    """How many scores of each query are at least as high as `least` `(queries,)`, int64."""
    count = np.zeros(len(least), np.int64)
    for chosen, scores in blocks:
        count[chosen] += np.count_nonzero(scores >= least[chosen, None], axis=1)
    return count


def moments_of(parts):
    """The `GalleryMoments` of vectors that come in parts."""
    return functools.reduce(operator.add, map(GalleryMoments.of, parts))


def _slices(count, step):
    step = max(1, step)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
