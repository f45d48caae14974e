"""A gallery in memory that calibrates as an index does: every pair is scored by the similarity."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from zoo import metrics
from zoo.confidence import GalleryMoments, QueryScores
from zoo.confidence.guarantees import halves, numbered
from zoo.confidence.insertion import own_rows, put_there
from zoo.confidence.probes import direction_of
from zoo.confidence.scores import best_first
from zoo.embeddings.arrays import as_arrays, length, take, thinned
from zoo.embeddings.csls import LEAST, CorrectedSpace, can_correct
from zoo.evaluation.answers import item_vectors, space_of
from zoo.metrics.blocks import row_blocks

_IN_BLOCK = 2**22  # similarities


class PairGallery:
    """Items of a split, for `zoo.confidence.calibrate_on`; needs no search engine.

    ```python
    gallery = PairGallery(encoded.images, model.similarity, "images")
    probes.calibrate(gallery)
    ```

    Args:
        items: embeddings, a dict of arrays.
        similarity: a layer, or without `hubs` a function of `zoo.similarities`.
        side: what the items are, `"images"` or `"captions"`.
        hubs: a `zoo.embeddings.csls.CorrectedSpace`, which corrects the scores; None for none.
        left_out: `(N, n)`, the rows of its bank that do not count for each item.
        own_left_out: likewise of the own items of probes; None: what these probes ask.

    Relations: `zoo.search.Index` of the same items says the same, up to rounding, and needs no pass
        over them.
    """

    def __init__(self, items, similarity, side, hubs=None, left_out=None, own_left_out=None):
        self.items, self.similarity = as_arrays(items), similarity
        self.description = {"side": side}
        self.own_space = space_of(self.items, similarity)
        self.vectors = item_vectors(self.items, similarity)
        self.hubs, self._own_left_out = hubs, own_left_out
        self._shifts = self._shifts_of(self.items, left_out)
        self.vector_moments = None if self.vectors is None else GalleryMoments.of(self.vectors)

    def __len__(self):
        return length(self.items)

    def vector_sample(self, count, seed=0):
        """The vectors of at most `count` items, drawn at random."""
        return self.vectors[np.random.default_rng(seed).permutation(len(self))[:count]]

    def query_scores(self, queries, copies=None):
        """The `QueryScores` of queries, a dict of arrays."""
        return self._scores(self._pairs(queries, self.items), copies)

    def scores(self, queries):
        """All scores of queries, a dict of arrays, `(queries, items)` float64."""
        pairs = self._pairs(queries, self.items).kept()
        return pairs.rows(0, length(queries)).astype(np.float64) + self._shifts

    def probe(self, queries, own, rows, copies=None, seed=0):
        """See `zoo.search.searchable.probe`; every rank is counted."""
        pairs = self._pairs(queries, self.items).kept()
        own_scores = self._pairs(queries, own).kept().rows(0, len(rows)).astype(np.float64)
        left_out = self._own_left_out
        if self.hubs is not None and left_out is None:
            left_out = self.hubs.left_out(queries, rows, length(own))
        own_scores = own_scores + self._shifts_of(own, left_out)
        own_scores = np.take_along_axis(own_scores, np.maximum(rows, 0), axis=1)
        own_scores[rows < 0] = np.nan
        without = self._scores(pairs, copies)
        if without.agreement is None:
            probed = put_there(without, own_scores)
        else:
            best = np.concatenate([best_first(block) for _, block in self._blocks(pairs)])
            items = self.own_space.item_vectors(own)
            probed = put_there(
                without,
                own_scores,
                lambda part: self.vectors[best[part]],
                lambda part: items[np.maximum(rows[part], 0)],
                self.vector_moments.mean[:-1],
                copies,
            )
        for start, block in self._blocks(pairs):
            part = slice(start, start + len(block))
            before = (block >= probed.match_scores[part, None]).sum(axis=1)
            known = ~np.isnan(probed.ranks[part])
            probed.ranks[part] = np.where(known, probed.ranks[part], 1.0 + before)
        return probed

    def _scores(self, pairs, copies):
        return QueryScores.concatenate(
            [
                QueryScores.of_matrix(block, vectors=self.vectors, copies=copies)
                for _, block in self._blocks(pairs)
            ]
        )

    def _pairs(self, queries, items):
        """`(queries, items)`, computed a block at a time."""
        if self.description["side"] == "images":
            return metrics.PairwiseSimilarity(items, queries, self.similarity).transposed()
        return metrics.PairwiseSimilarity(queries, items, self.similarity)

    def _blocks(self, pairs):
        for start, block in row_blocks(pairs, max(1, _IN_BLOCK // pairs.shape[1])):
            yield start, block if self.hubs is None else block + self._shifts

    def _shifts_of(self, items, left_out=None):
        """What correcting hubs adds to the scores of items, `(items,)`."""
        if self.hubs is None:
            return 0.0
        return self.hubs.shifts(as_arrays(items), self.similarity.scorer(), left_out)


LEVEL_OF_GAIN = 0.1  # of the test
MOST_ITEMS = 5000  # that are looked at


class Gain(NamedTuple):
    """What correcting hubs changes.

    Attributes:
        corrected, without: share of the questions that find their own item first.
        pays: whether that is more by a one-sided paired test at `LEVEL_OF_GAIN`.
    """

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


def hub_gain(items, similarity, side, probes, seed=0):
    """The `Gain` of correcting hubs in a gallery by the probes' questions, or None.

    Half of the probes' groups is asked, with and without; the probes' own questions do not count
    for their own items.

    Args:
        items: embeddings of the gallery, or of a sample of it.
        similarity: the layer to rank by.
        side: what the items are, `"images"` or `"captions"`.
        probes: the model's `zoo.confidence.Probes`.
        seed: of the halves.

    Returns None where nothing can be corrected or tested: without a search space, of classes, whose
    items have questions in common, and with too few probes.
    """
    items = thinned(as_arrays(items), MOST_ITEMS)
    plain = PairGallery(items, similarity, side)
    bank = probes.questions(side)
    score = similarity.scorer()
    enough = length(bank) >= LEAST and len(plain) > 1 and not probes.by_class
    if not enough or not can_correct(plain.own_space, score):
        return None
    told = probes.pairs(direction_of(side))
    groups = numbered(told["groups"], length(told["queries"]))
    asked = halves(groups, seed)[0]
    matches = told["matches"][asked]
    wanted = np.flatnonzero(matches.any(axis=0))
    queries, own = take(told["queries"], asked), take(told["own"], wanted)
    rows = own_rows(matches[:, wanted], len(asked), len(wanted))
    corrected = PairGallery(
        items, similarity, side, CorrectedSpace.of(plain.own_space, score, bank, items)
    )
    first = [one.probe(queries, own, rows).correct for one in (corrected, plain)]
    return Gain.of(*first, groups[asked])
