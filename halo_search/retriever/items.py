"""Items of a gallery as they are given: pictures, texts or embeddings, embedded and named."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from halo_search.embeddings.arrays import as_arrays, length
from halo_search.retriever.names import checked_names


class GalleryItems(NamedTuple):
    """N items, embedded."""

    embeddings: dict[str, np.ndarray]  # N rows
    names: list[str] | None = None  # paths of files, or the texts; None of arrays
    paths: Sequence[Any] = ()  # of files of pictures

    def named(self, names: Sequence[str] | None) -> list[str] | None:
        """The names that a user gives, else the source's; a ValueError unless there are N."""
        return checked_names(self.names if names is None else names, length(self.embeddings))


def embed_items(items: Any, side: str, tower: Callable[[str], Any]) -> GalleryItems:
    """Embeds items of a side; arguments and errors as of `Retriever.build`, `tower` a function from
    a side to its `Tower`."""
    is_list = isinstance(items, (list, tuple))
    if is_list and not items:
        raise ValueError("`items` must hold at least one item; received none")
    if is_list and all(isinstance(item, (str, os.PathLike)) for item in items):
        if side == "captions":
            texts = [str(item) for item in items]
            return GalleryItems(tower("captions").of_texts(items), texts)
        return _of_files(items, tower)
    if isinstance(items, (str, os.PathLike)):
        return _of_files(items, tower)
    if getattr(items, "ndim", 0) == 4:  # pixels
        return GalleryItems(tower("images").of_files(np.asarray(items)))
    return GalleryItems(as_arrays(items, "items"))


def _of_files(source, tower):
    """Embeds the pictures of a folder, or of a list of files."""
    from halo_search.collection import pictures  # here: a question needs no collection

    files = pictures(source)
    return GalleryItems(tower("images").of_files(files.values), files.names, files.values)
