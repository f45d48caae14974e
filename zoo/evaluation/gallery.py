"""Items of a split as a gallery: their index, and whether correcting hubs pays in it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halo_search.embeddings.arrays import as_arrays, length
from halo_search.embeddings.csls import CorrectedSpace
from halo_search.embeddings.spaces import SPACES, SearchSpace
from halo_search.index import Index
from zoo import metrics
from zoo.embeddings import Embedding, kind
from zoo.similarities import by_name

RANKED = 1000  # items that a similarity ranks itself, where no space does


def gallery_of(items: Embedding, similarity: Callable, side: str, hubs: Any = None) -> Index:
    """The `Index` of items of a split, which are `"images"` or `"captions"`; to be calibrated."""
    owner = similarity_of(similarity)
    searched = owner is None or owner.from_space is not None
    count = None if searched else min(RANKED, length(items))
    return Index.build(items, similarity, side=side, candidates=count, hubs=hubs)


def item_vectors(gallery: Embedding, similarity: Callable) -> np.ndarray | None:
    """The vectors by which a similarity is searched, one an item; None if it is by no vector."""
    space = space_of(gallery, similarity)
    return None if space is None else space.item_vectors(as_arrays(gallery))


def space_of(gallery: Embedding, similarity: Callable) -> SearchSpace | None:
    """The space by which a similarity is searched, or None."""
    owner = similarity_of(similarity)
    name = None if owner is None else owner.space_for(kind(gallery))
    return None if name is None else SPACES[name]


def similarity_of(similarity: Callable) -> Any:
    """The layer, or the class of the function; None of another function."""
    return similarity if hasattr(similarity, "space_for") else by_name.owner_of(similarity)


def scores_over(items: Any, queries: Any, similarity: Any, side: str) -> np.ndarray:
    """All scores of queries over items, `(queries, items)` float64."""
    if side == "images":
        pairs = metrics.PairwiseSimilarity(items, queries, similarity).transposed()
    else:
        pairs = metrics.PairwiseSimilarity(queries, items, similarity)
    return pairs.in_memory().rows(0, length(queries)).astype(np.float64)


class OwnLeftOut(CorrectedSpace):
    """Questions of a photo do not count for its own items, known by their coordinates."""

    def __init__(self, hubs, items, left_out):
        super().__init__(hubs.base, hubs.bank, hubs.ceiling)
        rows = hubs.base.gallery(items)
        self._of_items = {
            row.tobytes(): own_items for row, own_items in zip(rows, left_out, strict=True)
        }

    def gallery(self, arrays, left_out=None):
        """Like `CorrectedSpace.gallery`, without an item's own questions in its correction."""
        own_items = [self._of_items[row.tobytes()] for row in self.base.gallery(arrays)]
        return super().gallery(arrays, np.stack(own_items))
