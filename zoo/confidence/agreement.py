"""Whether the answers after the first are like the first."""

import numpy as np

from zoo.arrays import unit
from zoo.confidence import checks

RANKS = (5, 10, 20)


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
    directions = unit(answers - centre.astype(answers.dtype))
    cosines = np.einsum("qd,qrd->qr", directions[:, 0], directions[:, 1:])
    if not np.isfinite(cosines).all():
        raise ValueError("`answers` must be finite; received NaN or infinities")
    reached = reached_ranks(answers.shape[1])
    means = [cosines[:, : rank - 1].mean(axis=1) for rank in reached]
    return np.stack(means, axis=1) if means else np.empty((len(answers), 0))


def reached_ranks(depth):
    """Those of `RANKS` that the best `depth` answers reach."""
    return tuple(rank for rank in RANKS if rank <= depth)
