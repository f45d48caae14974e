"""The search of a question: the best items by score, enough of them for a judge."""

from typing import Any, NamedTuple

import numpy as np

from halo_search.confidence.scores import DEPTH
from halo_search.embeddings.arrays import length
from halo_search.index import plan


class Results(NamedTuple):
    """The best items of Q questions, or `(depth,)` of one alone, best first; NaN and −1 where an
    index on the disk has fewer."""

    scores: np.ndarray  # (Q, depth) float32, in units of the similarity
    ids: np.ndarray  # (Q, depth) int64

    def take(self, rows: np.ndarray | slice) -> "Results":
        """The results of some questions, or some of one question's."""
        return Results(self.scores[rows], self.ids[rows])


def search(index: Any, queries: dict[str, np.ndarray], k: int) -> Results:
    """The best k items of each question, and 20 at least, which a judge reads, where the gallery
    has as many; a ValueError if the queries do not fit the index."""
    if not len(index):
        plan.check_queries(index.description, index.similarity, queries)
        count = length(queries)
        return Results(np.empty((count, 0), np.float32), np.empty((count, 0), np.int64))
    return Results(*index.search(queries, max(k, min(DEPTH, len(index)))))
