"""Questions as they are given: texts, pictures or embeddings, embedded for the search."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.embeddings.arrays import as_arrays, as_rows, joined, length, take
from halo_search.files.decoding import SUFFIXES

TEXT, FILE, PICTURE, EMBEDDING = "text", "file", "picture", "embedding"


@dataclass(frozen=True)
class Questions:
    """Q questions of one kind."""

    embeddings: dict[str, np.ndarray]  # Q rows
    side: str  # what they are of, "images" or "captions"
    names: Sequence[str] = ()  # what an answer calls each: the text as typed, a path, or a word
    texts: list[str] | None = None  # what the model was asked; None of pictures and embeddings

    def __len__(self) -> int:
        return length(self.embeddings)

    def take(self, rows: np.ndarray) -> "Questions":
        """Some of the questions, by numbers, without their names."""
        texts = None if self.texts is None else [self.texts[row] for row in rows]
        return Questions(take(self.embeddings, rows), self.side, texts=texts)


def embed(
    questions: Sequence[Any], tower: Callable[[str], Any], side: str, wording: Callable[[str], str]
) -> Questions:
    """Embeds questions of one kind.

    Args:
        questions: texts, files, pictures or embeddings, each of one or several rows.
        tower: function from a side to its `Tower`.
        side: what embeddings are of.
        wording: function from a text as typed to what the model is asked.

    Raises:
        ValueError: if questions are of several kinds, a text is the name of a picture, or an
            embedding is none.
        InputError: if a picture cannot be read, or the model reads none or no texts.
    """
    kinds = {_kind_of(question) for question in questions}
    if len(kinds) > 1:
        raise ValueError(f"questions must be of one kind; received {' and '.join(kinds)}")
    (kind,) = kinds
    if kind == TEXT:
        return _embed_texts(questions, tower("captions"), wording)
    if kind == EMBEDDING:
        return _join_embeddings(questions, side)
    names = [str(question) if kind == FILE else "a picture" for question in questions]
    return Questions(tower("images").of_files(questions), "images", names)


def _kind_of(question):
    """What a question is: an array is a picture by its rank, or by its bytes where it is grey."""
    if isinstance(question, str):
        return TEXT
    if isinstance(question, os.PathLike):
        return FILE
    if isinstance(question, bytes) or hasattr(question, "convert"):
        return PICTURE
    rank, dtype = getattr(question, "ndim", 0), getattr(question, "dtype", None)
    if rank == 3 or (rank == 2 and dtype == np.uint8):  # grey; embeddings are floats
        return PICTURE
    return EMBEDDING


def _embed_texts(questions, tower, wording):
    """Embeds texts in the words that the model is asked; all are checked before the first is."""
    for question in questions:
        check_text(question)
    texts = [wording(question) for question in questions]
    return Questions(tower.of_texts(texts), "captions", questions, texts)


def check_text(question: str) -> None:
    """Raises ValueError for the name of a picture, which nobody means as a text."""
    name = question.strip()
    if len(name.split()) == 1 and Path(name).suffix.lower() in SUFFIXES:
        raise ValueError(
            f"{question!r} is the name of a picture, and a question is a text; ask with the "
            "picture itself: --image FILE, or pathlib.Path(FILE) in Python"
        )


def _join_embeddings(questions, side):
    """Joins embeddings of one or several rows each into one of Q rows."""
    arrays = [as_arrays(as_rows(question), "question") for question in questions]
    embeddings = joined(arrays)
    return Questions(embeddings, side, ["an embedding"] * length(embeddings))
