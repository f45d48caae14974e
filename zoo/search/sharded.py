"""Several indexes that are searched as one, with one exact order."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from zoo.arrays import as_arrays
from zoo.confidence import Confidence, GalleryMoments, QueryScores, agreement
from zoo.confidence.insertion import Probed
from zoo.confidence.scores import DEPTH
from zoo.embeddings import EmbeddingLike
from zoo.errors import InputError
from zoo.search import rerank, units
from zoo.search.index import Index
from zoo.search.probing import probe
from zoo.similarities.spaces import SearchSpace

_PART = "part-*"


class ShardedIndex:
    """Parts of a gallery, each an `Index`, and together one.

    A part is searched by itself, and the best of all parts are ranked by their scores, which are in
    the similarity's own units: so of flat parts the order is that of one flat index of everything,
    ties by id included. Parts may be built on different machines. Those of a saved index are
    memory-mapped: what a search does not touch stays on the disk.

    ```python
    photos = {"mean": np.eye(4), "log_variance": np.zeros((4, 4))}
    halves = [{name: v[i::2] for name, v in photos.items()} for i in range(2)]
    similarity = zoo.similarities.ClosedFormSampledDistance()
    parts = [
        zoo.search.Index.build(half, similarity, ids=range(i, 4, 2))
        for i, half in enumerate(halves)
    ]
    scores, ids = zoo.search.ShardedIndex(parts).search(photos, k=3)
    ```

    Args:
        parts: `Index`es of one similarity and side, without common ids.

    Raises:
        ValueError: if there is none, or they are of several similarities, sides or kinds of
            embedding.
    """

    def __init__(self, parts: Sequence[Index]):
        if not parts:
            raise ValueError("`parts` must hold at least one index; received none")
        names = sorted({units.name_of(part.similarity) for part in parts})
        if len({units.identity(part.similarity) for part in parts}) > 1:
            raise ValueError(
                f"`parts` must have one similarity with the same scale; received {', '.join(names)}"
            )
        for key in ("side", "embedding", "dim"):
            found = {str(part.description[key]) for part in parts}
            if len(found) > 1:
                raise ValueError(f"`parts` must have one {key}; received {', '.join(found)}")
        self.parts = list(parts)
        self.similarity = parts[0].similarity

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def has_moments(self) -> bool:
        """As of `Index`."""
        return self.parts[0].has_moments

    @property
    def moments(self) -> GalleryMoments:
        """The moments of all parts: those of shards add up."""
        first, *others = (part.moments for part in self.parts)
        return sum(others, first)

    @property
    def effort(self) -> int | None:
        """The effort of every part, see `Index.effort`."""
        return self.parts[0].effort

    @effort.setter
    def effort(self, effort: int) -> None:
        for part in self.parts:
            part.effort = effort

    def search(
        self,
        queries: EmbeddingLike,
        k: int,
        max_uncertainty: float | None = None,
        candidates: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k items of all parts, as `Index.search`.

        Args:
            queries, max_uncertainty: as of `Index.search`.
            k: how many, at most `len(self)`.
            candidates: of every part.

        Raises:
            ValueError: as `Index.search`.
        """
        if k != int(k) or not 1 <= k <= len(self):
            raise ValueError(f"`k` must be from 1 to the index's size, {len(self)}; received {k}")
        found = [
            part.search(queries, min(int(k), len(part)), max_uncertainty, candidates)
            for part in self.parts
            if len(part)
        ]
        scores, ids = (np.concatenate(arrays, axis=1) for arrays in zip(*found, strict=True))
        return rerank.best(scores, ids, int(k), units.least_first(self.similarity))

    def query_scores(
        self,
        queries: EmbeddingLike,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        copies: float | None = None,
    ) -> QueryScores:
        """What the parts say of queries as a whole, as `Index.query_scores`.

        Mean and variance over the gallery are those of the parts put together, so no part is
        scanned whose moments suffice.
        """
        depth = min(DEPTH, len(self))
        if scores is None:
            scores, ids = self.search(queries, depth)
        top = units.sign(self.similarity) * np.asarray(scores, np.float64)[:, :depth]
        queries = as_arrays(queries, "queries")
        parts = [part for part in self.parts if len(part)]
        means, variances = np.stack([part.over_the_gallery(queries) for part in parts], axis=1)
        weights = self._weights(parts)
        mean = weights @ means
        variance = weights @ (variances + (means - mean) ** 2)
        found = QueryScores(top, mean, variance, len(self))  # refuses what a search has not found
        if ids is None or self.own_space is None:
            return found
        answers = self.answer_vectors(ids[:, :depth])
        return dataclasses.replace(found, agreement=agreement(answers, self.centre, copies))

    def _weights(self, parts):
        return np.array([len(part) for part in parts]) / len(self)

    @property
    def description(self) -> dict:
        """As of `Index`, of the first part."""
        return self.parts[0].description

    @property
    def own_space(self) -> SearchSpace | None:
        """As of `Index`."""
        return self.parts[0].own_space

    @property
    def vector_moments(self) -> GalleryMoments | None:
        """The moments of all parts' vectors, as of `Index`."""
        if self.own_space is None:
            return None
        first, *others = (part.vector_moments for part in self.parts if len(part))
        return sum(others, first)

    @property
    def centre(self) -> np.ndarray:
        """The mean of the items' vectors, as of `Index`."""
        parts = [part for part in self.parts if len(part)]
        return self._weights(parts) @ [part.centre for part in parts]

    def vector_sample(self, count: int, seed: int = 0) -> np.ndarray:
        """The vectors of about `count` items of all parts, as of `Index`."""
        parts = [part for part in self.parts if len(part)]
        shares = np.ceil(self._weights(parts) * count).astype(int)
        return np.concatenate(
            [part.vector_sample(share, seed) for part, share in zip(parts, shares, strict=True)]
        )

    def answer_vectors(self, ids: np.ndarray) -> np.ndarray:
        """The vectors of answers that several parts hold, as of `Index`.

        Raises:
            ValueError: if no part holds an id.
        """
        answers, missing = None, np.ones(ids.shape, bool)
        for part in self.parts:
            if not len(part):
                continue
            places = part.places(ids)
            held = places >= 0
            found = part.item_vectors(places[held])
            if answers is None:
                answers = np.empty((*ids.shape, found.shape[1]), np.float32)
            answers[held], missing[held] = found, False
        if missing.any():
            raise ValueError(f"`ids` must be in the index; it lacks {ids[missing][0]}")
        return answers

    def pair_scores(
        self, queries: EmbeddingLike, items: EmbeddingLike, rows: np.ndarray
    ) -> np.ndarray:
        """The scores of queries and single items, as if the first part held these."""
        return self.parts[0].pair_scores(queries, items, rows)

    def count_at_least(self, queries: EmbeddingLike, scores: np.ndarray) -> np.ndarray:
        """How many items of all parts score at least as high for each query."""
        return sum(part.count_at_least(queries, scores) for part in self.parts if len(part))

    def probe(
        self,
        queries: EmbeddingLike,
        own: EmbeddingLike,
        rows: np.ndarray,
        copies: float | None = None,
        seed: int = 0,
    ) -> Probed:
        """What the parts say to probes, see `zoo.search.probing.probe`."""
        return probe(self, queries, own, rows, copies, seed)

    def probability(
        self,
        queries: EmbeddingLike,
        confidence: Confidence,
        uncertainty: ArrayLike | None = None,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
    ) -> np.ndarray:
        """How likely the first answer to each query is right, as `Index.probability`."""
        confidence.check_size(len(self))
        found = self.query_scores(queries, scores, ids, confidence.copies)
        return confidence.probability(found, uncertainty)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the parts into `folder/part-000` and so on.

        Raises:
            InputError: as `Index.save`.
        """
        for number, part in enumerate(self.parts):
            part.save(part_folder(folder, number))

    @classmethod
    def load(cls, folder: str | os.PathLike, verify: bool = False) -> "ShardedIndex":
        """Maps a saved index into memory.

        Args:
            folder: what `save` wrote.
            verify: whether to compare the files' checksums, which reads all of them.

        Raises:
            InputError: if there is no part, or a number is missing; and as `Index.load`.
        """
        folders = sorted(Path(folder).glob(_PART))
        expected = [part_folder(folder, number) for number in range(len(folders))]
        if not folders or folders != expected:
            names = ", ".join(path.name for path in folders) or "none"
            raise InputError(f"{folder}: expected part-000, part-001 …; found {names}")
        return cls([Index.load(part, verify=verify, mapped=True) for part in folders])


def part_folder(folder: str | os.PathLike, number: int) -> Path:
    """The folder of one part."""
    return Path(folder) / f"part-{number:03d}"


def load(folder: str | os.PathLike) -> "Index | ShardedIndex":
    """The index in a folder, whole or in parts.

    Raises:
        InputError: as `Index.load` and `ShardedIndex.load`.
    """
    in_parts = any(Path(folder).glob(_PART))
    return ShardedIndex.load(folder) if in_parts else Index.load(folder)
