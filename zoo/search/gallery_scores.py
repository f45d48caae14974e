"""Mean and variance of a query's scores over a whole gallery: by its moments where they suffice."""

import numpy as np

from zoo.confidence import GalleryMoments
from zoo.embeddings.arrays import length, take
from zoo.embeddings.spaces import straight_line
from zoo.search import scoring

CHUNK = 65536  # vectors that are looked at at once
_BLOCK = 2**22  # scores at once that are a product of vectors
_PAIRS = 2**16  # that a similarity computes, which may take many numbers for each
_ITEMS, _BYTES = 4096, 2**26  # of a gallery at once, at most


def by_moments(space, queries, moments):
    """Mean and variance `(queries,)` of FAISS' value over the gallery, by its moments."""
    query_rows = space.queries(queries)
    if space.metric == "l2":
        mean, variance = moments.squared_distance_scores(query_rows)
        return -mean, variance
    return moments.inner_product_scores(query_rows)


def by_scan(score, parts, count, block=_BLOCK):
    """Mean and variance of `score(part, slice of the queries)` over a gallery, `(count,)` each,
    which comes as pairs of a part and its items, `block` scores at once."""
    total, mean, spread = 0, np.zeros(count), np.zeros(count)
    for part, size in parts:
        step = max(1, block // size)
        for start in range(0, count, step):
            chosen = slice(start, min(start + step, count))
            values = np.asarray(score(part, chosen), np.float64)
            own = values.mean(axis=1)
            shift = own - mean[chosen]
            # Chan et al. 1982, as `GalleryMoments` adds up shards.
            mean[chosen] += shift * size / (total + size)
            spread[chosen] += size * values.var(axis=1) + shift**2 * total * size / (total + size)
        total += size
    return mean, spread / total


def scan_of_vectors(space, score, queries, found):
    """`by_scan` of vectors of a space, which come in parts, by a function of FAISS' value."""
    query_rows = np.asarray(space.queries(queries), np.float64)
    offset = 0.0 if space.offset is None else np.asarray(space.offset(queries), np.float64)[:, None]

    def scores(part, chosen):
        part = part.astype(np.float64)
        values = query_rows[chosen] @ part.T
        if space.metric == "l2":
            norms = (query_rows[chosen] ** 2).sum(axis=1)[:, None] + (part**2).sum(axis=1)
            values = np.maximum(norms - 2 * values, 0.0)
        return score(values + (offset if np.isscalar(offset) else offset[chosen]))

    return by_scan(scores, ((part, len(part)) for part in found), len(query_rows))


def count_of_vectors(space, score, sign, queries, found, least):
    """How many vectors of a space score at least as high for each query, int64 `(queries,)`;
    `least` is in scores times `sign`, of which higher are better."""
    rows, count = space.queries(queries).astype(np.float32), np.zeros(len(least), np.int64)
    shift = 0.0 if space.offset is None else np.asarray(space.offset(queries), np.float64)
    line = straight_line(score)
    if space.metric == "l2":
        # −‖q − g‖² = [2q, −1]·[g, ‖g‖²] − ‖q‖²: one product, and no pass for the norms.
        norms = np.square(rows.astype(np.float64)).sum(axis=1)
        rows = np.concatenate([2 * rows, np.full((len(rows), 1), -1, np.float32)], axis=1)
    falls = line is not None and sign * line[0] < 0
    direct = line is not None and falls == (space.metric == "l2")
    if direct:  # the bound in units of the product, so that no score is made
        value = (sign * least - line[1]) / line[0] - shift
        bound = (norms - value if space.metric == "l2" else value).astype(np.float32)
    for part in found:
        if space.metric == "l2":
            part = np.concatenate([part, np.square(part).sum(axis=1, keepdims=True)], axis=1)
        step = max(1, 4 * _BLOCK // len(part))
        for start in range(0, len(rows), step):
            chosen = slice(start, start + step)
            products = rows[chosen] @ part.T
            if direct:
                count[chosen] += np.count_nonzero(products >= bound[chosen, None], axis=1)
                continue
            values = products.astype(np.float64)
            if space.metric == "l2":
                values = np.maximum(norms[chosen, None] - values, 0.0)
            offset = shift if np.isscalar(shift) else shift[chosen, None]
            better = sign * score(values + offset)
            count[chosen] += np.count_nonzero(better >= least[chosen, None], axis=1)
    return count


def count_of_embeddings(similarity, side, queries, gallery, least):
    """`count_of_vectors` of a gallery that is kept as embeddings, by the similarity itself."""
    scores, parts = _scores_of_embeddings(similarity, side, queries, gallery)
    count = np.zeros(len(least), np.int64)
    for part, size in parts:
        step = max(1, _PAIRS // size)
        for start in range(0, len(least), step):
            chosen = slice(start, min(start + step, len(least)))
            count[chosen] += (scores(part, chosen) >= least[chosen, None]).sum(axis=1)
    return count


def scan_of_embeddings(similarity, side, queries, gallery):
    """`by_scan` of a gallery that is kept as embeddings, by the similarity itself."""
    scores, parts = _scores_of_embeddings(similarity, side, queries, gallery)
    return by_scan(scores, parts, length(queries), _PAIRS)


def _scores_of_embeddings(similarity, side, queries, gallery):
    """`(function of a part and a slice of the queries, the parts with their sizes)`."""
    sign = scoring.sign(similarity)
    places = np.arange(length(gallery))
    item = sum(value[:1].nbytes for value in gallery.values())
    step = max(1, min(_ITEMS, _BYTES // max(1, item)))
    parts = (places[start : start + step] for start in range(0, len(places), step))

    def scores(part, chosen):
        some, items = take(queries, chosen), take(gallery, part)
        if side == "images":
            return sign * np.asarray(similarity(items, some)).T
        return sign * np.asarray(similarity(some, items))

    return scores, ((part, len(part)) for part in parts)


def moments_of(parts):
    """The `GalleryMoments` of vectors that come in parts."""
    total = None
    for part in parts:
        own = GalleryMoments.of(part)
        total = own if total is None else total + own
    return total
