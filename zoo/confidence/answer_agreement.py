"""Whether the answers after the first are like the first."""

import functools

import numpy as np

RANKS = (5, 10, 20)
_BLOCK = 32  # queries at once, whose vectors stay in the processor's cache


def agreement(answers, centre, copies=None):
    """The mean cosine of each query's first answer and those that follow it.

    ```python
    gallery = np.random.default_rng(0).normal(size=(100, 8))
    zoo.confidence.agreement(gallery[None, :20], gallery.mean(axis=0))  # (1, 3)
    ```

    Where items of one kind lie together, the neighbours of a right answer are of its kind and a
    wrong one stands alone among them. No score of the query says that. The vectors are those of the
    search space (`zoo.search.SPACES`), seen from the gallery's mean, so that what all items have in
    common does not count.

    Args:
        answers: `(queries, R, dim)`, the vectors of the best R answers, best first.
        centre: `(dim,)`, the mean of the gallery's vectors, as of `GalleryMoments`; or
            `(queries, dim)`, where each query has a gallery of its own.
        copies: a cosine. Answers nearer than that to one before them are copies of it, and are
            passed over: a gallery that holds a picture five times does not agree with itself, and
            one that holds all of them twice is no fuller. None counts all answers.

    Returns:
        `(queries, ranks)` float64 in [−1, 1]: the mean over the answers 2 … r for r = 5, 10 and 20,
        as far as R reaches. Of copies the next r − 1 answers that are none take the place, as far
        as there are; `copies` itself where all are copies.

    Raises:
        ValueError: if shapes do not fit or a number is not finite.

    Relations: measured beside other signals in docs/confidence.md.
    """
    return beside_the_first(answers, centre, copies)[0]


def beside_the_first(answers, centre, copies=None):
    """How the other answers of each query lie to the first.

    Args:
        answers, centre, copies: of `agreement`.

    Returns:
        `(agreement, is_copy)`: what `agreement` gives, and `(queries, R)` booleans: the answer is a
        copy of one before it. The first is none.

    Raises:
        ValueError: as `agreement`.
    """
    answers, centre = np.asarray(answers), np.asarray(centre)
    fits = answers.ndim == 3 and centre.shape in (answers.shape[2:], answers[:, 0].shape)
    if not fits:
        raise ValueError(
            f"`answers` must be (queries, R, {centre.shape[-1] if centre.ndim else 'dim'}), of the "
            f"dimension of `centre`; received shape {answers.shape} and a centre of {centre.shape}"
        )
    if not np.isfinite(centre).all():
        raise ValueError("`centre` must be finite; received NaN or infinities")
    # Squares and differences of small whole numbers and of half precision do not fit in them.
    answers = answers.astype(np.result_type(answers.dtype, np.float32), copy=False)
    reached = reached_ranks(answers.shape[1])
    centre = centre.astype(answers.dtype, copy=False)
    before = _earlier(answers.shape[1])
    found = np.empty((len(answers), len(reached)))
    is_copy = np.zeros(answers.shape[:2], bool)
    for start in range(0, len(answers), _BLOCK):
        rows = slice(start, start + _BLOCK)
        about = centre if centre.ndim == 1 else centre[rows, None]
        vectors = answers[rows] - about
        beside = cosines(vectors[:, :1] if copies is None else vectors, vectors)
        if copies is not None:
            is_copy[rows] = ((beside > copies) & before).any(axis=2)
        found[rows] = _means(beside[:, 0, 1:], reached, is_copy[rows, 1:], copies)
    if not np.isfinite(found).all():
        raise ValueError("`answers` must be finite; received NaN or infinities")
    return found, is_copy


def _means(beside, reached, is_copy, copies):
    """The means over the first r − 1 of `(queries, R − 1)` cosines that are no copies."""
    if not reached:
        return np.empty((len(beside), 0))
    if not is_copy.any():
        ranks = np.array(reached)
        return beside.cumsum(axis=1, dtype=np.float64)[:, ranks - 2] / (ranks - 1)
    order = np.argsort(is_copy, axis=1, kind="stable")  # copies last
    sums = np.take_along_axis(np.where(is_copy, 0.0, beside), order, axis=1).cumsum(axis=1)
    some = np.maximum((~is_copy).sum(axis=1), 1)
    means = np.stack([sums[:, rank - 2] / np.minimum(some, rank - 1) for rank in reached], axis=1)
    means[is_copy.all(axis=1)] = copies
    return means


def cosines(first, second):
    """Of each of `(queries, n, dim)` and each of `(queries, R, dim)`: `(queries, n, R)`."""
    lengths = [np.sqrt(np.einsum("qrd,qrd->qr", one, one)) for one in (first, second)]
    products = np.matmul(first, second.transpose(0, 2, 1))
    found = products / np.maximum(lengths[0][..., None] * lengths[1][:, None], 1e-12)
    return np.minimum(np.maximum(found, -1.0), 1.0)  # rounding must not leave the range


def copy_threshold(vectors, share=0.999):
    """The cosine from which two items are copies of one another, about the vectors' mean.

    Args:
        vectors: `(items, dim)`, two at least, of items that are known to be different.
        share: of the items whose nearest neighbour is no copy.

    Returns:
        A float below 1: what the nearest neighbours of this share of the items do not exceed.
    """
    units = vectors - vectors.mean(axis=0)
    units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    nearest = np.empty(len(units))
    for start in range(0, len(units), 1024):
        block = units[start : start + 1024] @ units.T
        # An item itself, which may be given several times.
        nearest[start : start + 1024] = np.where(block < _SAME, block, -1.0).max(axis=1)
    return float(np.quantile(nearest, share))


_SAME = 1 - 1e-4  # cosine of an item and itself in half precision is above this


@functools.cache
def reached_ranks(depth):
    """Those of `RANKS` that the best `depth` answers reach."""
    return tuple(rank for rank in RANKS if rank <= depth)


@functools.cache
def _earlier(depth):
    """`(depth, depth)` booleans: the answer of the column comes before that of the row."""
    return np.tri(depth, k=-1, dtype=bool)
