"""Whether the answers after the first are like the first."""

import numpy as np

from zoo.confidence import checks

RANKS = (5, 10, 20)
_BLOCK = 32  # queries at once, whose vectors stay in the processor's cache


def agreement(answers, centre):
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
        centre: `(dim,)`, the mean of the gallery's vectors, as of `GalleryMoments`.

    Returns:
        `(queries, ranks)` float64 in [−1, 1]: the mean over the answers 2 … r for r = 5, 10 and 20,
        as far as R reaches.

    Raises:
        ValueError: if shapes do not fit or a number is not finite.

    Relations: measured beside other signals in docs/confidence.md.
    """
    answers, centre = np.asarray(answers), checks.vector(centre, "centre")
    if answers.ndim != 3 or answers.shape[2] != len(centre):
        raise ValueError(
            f"`answers` must be (queries, R, {len(centre)}), of the dimension of `centre`; "
            f"received shape {answers.shape}"
        )
    # Squares and differences of small whole numbers and of half precision do not fit in them.
    dtype = np.result_type(answers.dtype, np.float32)
    reached, centre = reached_ranks(answers.shape[1]), centre.astype(dtype)
    found = np.empty((len(answers), len(reached)))
    for start in range(0, len(answers), _BLOCK):
        rows = slice(start, start + _BLOCK)
        cosines = _with_the_first(answers[rows] - centre)
        for place, rank in enumerate(reached):
            found[rows, place] = cosines[:, : rank - 1].mean(axis=1)
    if not np.isfinite(found).all():
        raise ValueError("`answers` must be finite; received NaN or infinities")
    return found


def _with_the_first(vectors):
    """The cosines of the first of `(queries, R, dim)` and the others, `(queries, R − 1)`."""
    first, others = vectors[:, :1], vectors[:, 1:]
    products = np.matmul(others, first.transpose(0, 2, 1))[:, :, 0]
    lengths = np.sqrt(np.einsum("qrd,qrd->qr", vectors, vectors))
    return products / np.maximum(lengths[:, :1] * lengths[:, 1:], 1e-12)


def reached_ranks(depth):
    """Those of `RANKS` that the best `depth` answers reach."""
    return tuple(rank for rank in RANKS if rank <= depth)
