"""Several indexes that are searched as one, with one exact order."""

import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo.confidence import GalleryMoments
from zoo.embeddings import EmbeddingLike
from zoo.embeddings.spaces import SearchSpace
from zoo.errors import InputError
from zoo.files.atomic import in_turn, remove_leftovers, write_text
from zoo.files.json_files import read_object
from zoo.search import rerank, scoring, storage
from zoo.search.columns import refuse_missing
from zoo.search.index import Index
from zoo.search.searchable import Searchable
from zoo.search.sharing import reads

PARTS = "parts.json"
_PART = re.compile(r"part-(\d{3,})")


class ShardedIndex(Searchable):
    """Parts of a gallery, each an `Index`, and together one.

    A part is searched by itself, and the best of all parts are ranked by their scores, which are in
    the similarity's own units: so of flat parts the order is that of one flat index of everything,
    by score, then by id. (Where candidates are ranked, a score's last digit may depend on which are
    ranked together.) Parts may be built on different machines. Those of a saved index are
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
        ValueError: if there is none, they are of several similarities, sides or kinds of
            embedding, or have an id in common.
    """

    def __init__(self, parts: Sequence[Index]):
        if not parts:
            raise ValueError("`parts` must hold at least one index; received none")
        names = sorted({scoring.name_of(part.similarity) for part in parts})
        if len({scoring.identity(part.similarity) for part in parts}) > 1:
            raise ValueError(
                f"`parts` must have one similarity with the same scale; received {', '.join(names)}"
            )
        for key in ("side", "embedding", "dim"):
            found = {str(part.description[key]) for part in parts}
            if len(found) > 1:
                raise ValueError(f"`parts` must have one {key}; received {', '.join(found)}")
        banks = [None if part.hubs is None else part.hubs.bank.tobytes() for part in parts]
        ceilings = {part.description.get("hubs", {}).get("ceiling") for part in parts}
        if len(set(banks)) > 1 or len(ceilings) > 1:
            raise ValueError("`parts` must be corrected by the same questions, or all by none")
        _refuse_common_ids(parts)
        self.parts = list(parts)
        self.similarity = parts[0].similarity

    @contextlib.contextmanager
    def reading(self):
        """Keeps changes of any part out while the block runs, see `SharedLock.reading`."""
        with contextlib.ExitStack() as held:
            for part in self.parts:
                held.enter_context(part.reading())
            yield

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

    @reads
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
        return rerank.best(scores, ids, int(k), scoring.least_first(self.similarity))

    @reads
    def over_the_gallery(self, queries: EmbeddingLike) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the queries' scores over all parts.

        They are those of the parts put together, so no part is scanned whose moments suffice.
        """
        parts = [part for part in self.parts if len(part)]
        means, variances = np.stack([part.over_the_gallery(queries) for part in parts], axis=1)
        weights = self._weights(parts)
        mean = weights @ means
        return mean, weights @ (variances + (means - mean) ** 2)

    def _weights(self, parts):
        return np.array([len(part) for part in parts]) / len(self)

    @property
    def description(self) -> dict:
        """As of `Index`, of the first part."""
        return self.parts[0].description

    @property
    def hubs(self) -> Any:
        """As of `Index`."""
        return self.parts[0].hubs

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

    @reads
    def vector_sample(self, count: int, seed: int = 0) -> np.ndarray:
        """The vectors of about `count` items of all parts, as of `Index`."""
        parts = [part for part in self.parts if len(part)]
        shares = np.ceil(self._weights(parts) * count).astype(int)
        return np.concatenate(
            [part.vector_sample(share, seed) for part, share in zip(parts, shares, strict=True)]
        )

    @reads
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
        refuse_missing(ids[missing])
        return answers

    def pair_scores(
        self,
        queries: EmbeddingLike,
        items: EmbeddingLike,
        rows: np.ndarray,
        left_out: np.ndarray | None = None,
    ) -> np.ndarray:
        """The scores of queries and single items, as if the first part held these."""
        return self.parts[0].pair_scores(queries, items, rows, left_out)

    def count_at_least(self, queries: EmbeddingLike, scores: np.ndarray) -> np.ndarray:
        """How many items of all parts score at least as high for each query."""
        return sum(part.count_at_least(queries, scores) for part in self.parts if len(part))

    @reads
    def save(self, folder: str | os.PathLike) -> None:
        """Writes the parts in place of whatever parts the folder holds, all or none of them.

        Each goes into a folder of its own, `folder/part-000` and so on; `parts.json` says which
        are the index. What was there before is deleted when the new parts are whole.

        Raises:
            InputError: as `Index.save`.
        """
        with replaced_parts(folder) as new_part:
            for part in self.parts:
                part.save(new_part())

    @classmethod
    def load(
        cls, folder: str | os.PathLike, verify: bool = False, similarity: Any = None
    ) -> "ShardedIndex":
        """Maps a saved index into memory.

        Args:
            folder: what `save` wrote.
            verify: whether to compare the files' checksums, which reads all of them.
            similarity: as of `Index.load`.

        Raises:
            InputError: if there is no part, or a number is missing; and as `Index.load`.
        """
        path = Path(folder) / PARTS
        while True:
            names, found = _listed(path), _parts_in(path.parent)
            try:
                if not set(names) <= set(found):
                    there = ", ".join(found) or "none"
                    raise InputError(f"{folder}: expected {', '.join(names)}; found {there}")
                parts = [Path(folder) / name for name in names]
                return cls([Index.load(part, similarity, verify, mapped=True) for part in parts])
            except InputError:
                if _listed(path) == names:
                    raise  # else the parts were replaced while they were opened


@contextlib.contextmanager
def replaced_parts(folder: str | os.PathLike):
    """Gives a function that says where the next new part goes; they are the index when it ends.

    ```python
    with zoo.search.sharded.replaced_parts("index") as new_part:
        zoo.search.Index.build({"mean": np.eye(3)}, "cosine").save(new_part())
    ```

    Raises:
        InputError: if the folder holds other things, or cannot be written.
    """
    folder, new = Path(folder), []
    if (folder / storage.MANIFEST).exists():
        raise InputError(f"{folder}: holds an index of one part; choose another folder")
    try:
        with in_turn(folder):
            there = _parts_in(folder)
            first = max((int(name.removeprefix("part-")) for name in there), default=-1) + 1

            def new_part():
                new.append(f"part-{first + len(new):03d}")
                return folder / new[-1]

            try:
                yield new_part
                write_text(folder / PARTS, json.dumps({"parts": new}, indent=2) + "\n")
            finally:
                is_named = (folder / PARTS).exists() and _listed(folder / PARTS) == new
                for name in there if is_named else new:
                    shutil.rmtree(folder / name, ignore_errors=True)
            remove_leftovers(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the index: {error.strerror or error}") from error


def _parts_in(folder):
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if _PART.fullmatch(path.name))


def _listed(path):
    """The names of the parts of an index."""
    if not path.is_file():
        there = ", ".join(_parts_in(path.parent)) or "no part"
        raise InputError(
            f"{path.parent}: lacks {PARTS}, which a save writes last; found {there}: build the "
            "index again"
        )
    names = read_object(path).get("parts")
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or not names or not all(map(_PART.fullmatch, names)):
        raise InputError(f"{path}: expected the names of parts, found {names!r}")
    return names


def _refuse_common_ids(parts):
    """Raises ValueError if two parts hold one id. Parts of separate ranges are not sorted."""
    parts = [part for part in parts if len(part)]
    ranges = sorted((part.ids.min(), part.ids.max()) for part in parts)
    if all(one[1] < other[0] for one, other in itertools.pairwise(ranges)):
        return
    ordered = np.sort(np.concatenate([part.ids for part in parts]))
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise ValueError(f"`parts` must have no id in common; received {twice[0]} more than once")


def remove(folder: str | os.PathLike, ids: Sequence[int]) -> None:
    """Removes items from a saved index, of which one part is in memory at a time.

    Raises:
        InputError: as `Index.load` and `Index.save`.
    """
    folder = Path(folder)
    if not (folder / PARTS).exists():
        return _without(folder, ids).save(folder)
    names = _listed(folder / PARTS)
    with replaced_parts(folder) as new_part:
        for name in names:
            _without(folder / name, ids).save(new_part())


def _without(folder, ids):
    index = Index.load(folder)
    there = np.intersect1d(index.ids, ids)
    if len(there):
        index.remove(there)
    _ = index.has_moments and index.moments  # to be saved with it
    return index


def load(folder: str | os.PathLike, similarity: Any = None) -> "Index | ShardedIndex":
    """The index in a folder, whole or in parts.

    Args:
        folder: what `save` wrote.
        similarity: as of `Index.load`.

    Raises:
        InputError: as `Index.load` and `ShardedIndex.load`.
    """
    in_parts = (Path(folder) / PARTS).exists() or _parts_in(Path(folder))
    if in_parts:
        return ShardedIndex.load(folder, similarity=similarity)
    return Index.load(folder, similarity)
