"""The answers of a model to the queries of a split, as far as confidence asks about them."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from zoo import metrics
from zoo.confidence import QueryScores
from zoo.embeddings import Embedding, has_uncertainty, kind, log_uncertainty
from zoo.embeddings.arrays import as_arrays, centres, length
from zoo.embeddings.spaces import SPACES, SearchSpace
from zoo.evaluation.retrieval import EncodedSplit
from zoo.metrics.blocks import row_blocks
from zoo.search import Index
from zoo.similarities import by_name

_IN_BLOCK = 2**22  # similarities; features are made of them in float64


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """A model's answers to the queries of one direction, those that have a match.

    ```python
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    answers = zoo.evaluation.Answers.of(encoded, model.similarity, "t2i")
    answers.correct.mean()  # Recall@1
    ```

    Attributes:
        scores: their `QueryScores` over the gallery.
        ranks: `(Q,)`, of each query's best match, 1 = first; ties count against the model.
        match_scores: `(Q,)`, of each query's best match.
        uncertainty: `(Q,)`, logarithm of the queries' measure, or None for points.
        num_items: of the gallery.
        labels: `(Q,)`, class of each query.
        vectors: `(Q, dim)`, what the queries ask for: their means, of sets those of the elements.
        rows: `(Q,)`, of the queries among their side of the split.
    """

    scores: QueryScores
    ranks: np.ndarray
    match_scores: np.ndarray
    uncertainty: np.ndarray | None
    num_items: int
    labels: np.ndarray
    vectors: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(
        cls,
        encoded: EncodedSplit,
        similarity: Callable,
        direction: Literal["i2t", "t2i"],
        most: int | None = None,
        seed: int = 0,
        pairs: Any = None,
        copies: float | None = None,
    ) -> "Answers":
        """The answers of an encoded split.

        Args:
            encoded: an `EncodedSplit`.
            similarity: the layer or function to rank by.
            direction: `"i2t"` or `"t2i"`.
            most: take so many queries at most, drawn at random.
            seed: of the draw.
            pairs: the similarities of all images and captions, if they exist already.
            copies: of `zoo.confidence.agreement`; a calibration knows its own.

        Raises:
            ValueError: if no query has a match, or a similarity is not finite.
        """
        records = encoded.records
        if pairs is None:
            # Of a few queries only their own rows are computed.
            pairs = (encoded.kept_pairs if most is None else encoded.pairs)(similarity)
        labels, others = records.image_labels, records.caption_labels
        queries, gallery, uncertainty = encoded.images, encoded.captions, None
        if direction == "t2i":
            labels, others, pairs = others, labels, pairs.transposed()
            queries, gallery = gallery, queries
        vectors = item_vectors(gallery, similarity)
        chosen = np.flatnonzero(np.isin(labels, others))
        if not len(chosen):
            raise ValueError("no query has a match")
        if most is not None and len(chosen) > most:
            rng = np.random.default_rng(seed)
            chosen = np.sort(rng.choice(chosen, most, replace=False))
        if len(chosen) < len(labels):
            pairs = pairs.take(chosen, np.arange(len(others)))
        queries = {name: np.asarray(values)[chosen] for name, values in queries.items()}
        if encoded.measure_name is not None and has_uncertainty(queries):
            uncertainty = np.asarray(log_uncertainty(queries, encoded.measure_name), float)
        pairs = pairs.kept()
        relevance = metrics.LabelRelevance(labels[chosen], others)
        ranks = metrics.rank_queries(pairs, relevance).best_rank
        blocks, best = [], []
        for start, rows in row_blocks(pairs, max(1, _IN_BLOCK // pairs.shape[1])):
            matches = labels[chosen][start : start + len(rows), None] == others
            blocks.append(QueryScores.of_matrix(rows, vectors=vectors, copies=copies))
            best.append(np.where(matches, rows, -np.inf).max(axis=1))
        return cls(
            QueryScores.concatenate(blocks),
            ranks,
            np.concatenate(best).astype(float),
            uncertainty,
            pairs.shape[1],
            labels[chosen],
            centres(queries),
            chosen,
        )

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def correct(self) -> np.ndarray:
        """`(Q,)`, whether the first answer is a match."""
        return self.ranks == 1

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """What tells without a calibration how sure an answer is, by name: `(Q,)` arrays."""
        best = self.scores.top[:, 0]
        uncertainty = {} if self.uncertainty is None else {"uncertainty": -self.uncertainty}
        return {
            **uncertainty,
            "best_score": best,
            "best_minus_mean": best - self.scores.mean,
        }

    def take(self, queries: ArrayLike) -> "Answers":
        """Some of the queries."""
        return Answers(
            self.scores.take(queries),
            self.ranks[queries],
            self.match_scores[queries],
            None if self.uncertainty is None else self.uncertainty[queries],
            self.num_items,
            self.labels[queries],
            self.vectors[queries],
            self.rows[queries],
        )

    def without(self, what: Literal["uncertainty", "agreement"]) -> "Answers":
        """The same where the queries' uncertainty, or the answers' agreement, is not known."""
        if what == "uncertainty":
            return dataclasses.replace(self, uncertainty=None)
        scores = dataclasses.replace(self.scores, agreement=None, is_copy=None)
        return dataclasses.replace(self, scores=scores)

    def halves(self, seed: int) -> tuple["Answers", "Answers"]:
        """The queries in two halves, drawn at random."""
        order = np.random.default_rng(seed).permutation(len(self))
        middle = (len(order) + 1) // 2
        return self.take(order[:middle]), self.take(order[middle:])


RANKED = 1000  # items that a similarity ranks itself, where no space does


def gallery_of(items: Embedding, similarity: Callable, side: str, hubs: Any = None) -> Index:
    """The `Index` of items of a split, which are `"images"` or `"captions"`; to be calibrated."""
    count = None if similarity_of(similarity).from_space else min(RANKED, length(items))
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
