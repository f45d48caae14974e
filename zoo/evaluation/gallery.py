"""Items of a split as a gallery: their index, and whether correcting hubs pays in it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from zoo import metrics
from zoo.confidence.insertion import own_rows
from zoo.confidence.probes import direction_of
from zoo.embeddings import Embedding, kind
from zoo.embeddings.arrays import as_arrays, length, take, thinned
from zoo.embeddings.checks import halves, numbered
from zoo.embeddings.csls import LEAST, CorrectedSpace, can_correct
from zoo.embeddings.spaces import SPACES, SearchSpace
from zoo.search import Index
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
    return pairs.kept().rows(0, length(queries)).astype(np.float64)


class OwnLeftOut(CorrectedSpace):
    """Questions of a photo do not count for its own items, known by their coordinates."""

    def __init__(self, hubs, items, left_out):
        super().__init__(hubs.base, hubs.bank, hubs.ceiling)
        rows = hubs.base.gallery(items)
        self._of_items = {row.tobytes(): own for row, own in zip(rows, left_out, strict=True)}

    def gallery(self, arrays, left_out=None):
        own = [self._of_items[row.tobytes()] for row in self.base.gallery(arrays)]
        return super().gallery(arrays, np.stack(own))


LEVEL_OF_GAIN = 0.1  # of the test
MOST_ITEMS = 5000  # that are looked at


class Gain(NamedTuple):
    """The shares of questions that find their own item first, hubs corrected and not, and whether
    that is more by a paired test at `LEVEL_OF_GAIN`."""

    corrected: float
    without: float
    pays: bool

    def __str__(self):
        what = "corrected" if self.pays else "not corrected"
        return (
            f"hubs {what}: {self.corrected:.1%} of probes find their own first with the "
            f"correction, {self.without:.1%} without"
        )

    @classmethod
    def of(cls, corrected, without, groups=None):
        """Of `(Q,)` booleans each, and the group of each question; a group counts once."""
        groups = numbered(groups, len(without))
        count = np.bincount(groups)
        shares = [np.bincount(groups, one) / count for one in (corrected, without)]
        gained = shares[0] - shares[1]
        error = gained.std(ddof=1) / np.sqrt(len(gained)) if len(gained) > 1 else 0.0
        is_more = error > 0 and gained.mean() > error * student.isf(LEVEL_OF_GAIN, len(gained) - 1)
        return cls(float(shares[0].mean()), float(shares[1].mean()), bool(is_more))


def hub_gain(items, similarity, side, probes):
    """The `Gain` of correcting hubs in a gallery, or a sample of it, by half of the probes; None
    where nothing can be corrected or tested."""
    items = thinned(as_arrays(items), MOST_ITEMS)
    space = space_of(items, similarity)
    bank = probes.questions(side)
    score = similarity.scorer()
    enough = length(bank) >= LEAST and length(items) > 1 and not probes.by_class
    if not enough or not can_correct(space, score):
        return None
    told = probes.pairs(direction_of(side))
    groups = numbered(told["groups"], length(told["queries"]))
    asked = halves(groups, 0)[0]
    matches = told["matches"][asked]
    wanted = np.flatnonzero(matches.any(axis=0))
    queries, own = take(told["queries"], asked), take(told["own"], wanted)
    rows = own_rows(matches[:, wanted], len(asked), len(wanted))
    hubs = CorrectedSpace.of(space, score, bank, items)
    galleries = [Index.build(items, similarity, side=side, hubs=one) for one in (hubs, None)]
    first = [one.probe(queries, own, rows).correct for one in galleries]
    return Gain.of(*first, groups[asked])
