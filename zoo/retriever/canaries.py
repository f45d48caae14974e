"""Five fixed questions, kept with an index: whether it is still asked by the same model."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.embeddings.arrays import coordinates
from zoo.errors import InputError
from zoo.files.array_files import read_arrays
from zoo.files.atomic import atomic

FILE = "canaries.npz"
TEXTS = (
    "a dog on a beach",
    "two people in front of a building",
    "a small bird with a red crown",
    "a plate of food on a table",
    "snow",
)
LEAST = 0.999  # cosine to the stored embedding
_FIRST = 10  # answers that are compared
_SIZE = 64  # of a picture


class Sung(NamedTuple):
    """How the canaries sing now.

    Attributes:
        cosines: `(5,)`, of each question's embedding now and when the index was built.
        same: `(5,)`, the share of its first ten answers that it had then.
    """

    cosines: np.ndarray
    same: np.ndarray

    @property
    def holds(self) -> bool:
        """Whether the model that asks is the one of the index."""
        return bool(self.cosines.min() >= LEAST)

    @property
    def sentence(self) -> str:
        """The same for a reader."""
        if self.holds:
            return f"the fixed questions are embedded as before (cosine {self.cosines.min():.4f})"
        share = 1 - self.same.mean()
        return (
            "the fixed questions are embedded otherwise than when the index was built: cosine "
            f"{self.cosines.min():.3f} in place of 1, and {share:.0%} of their first answers "
            "differ; the model or its engine is another. Build the index again"
        )


def questions_for(side: str) -> list[Any]:
    """The five questions to a gallery of a side: texts, or drawn pictures."""
    if side == "images":
        return list(TEXTS)
    rows, columns = np.mgrid[0:_SIZE, 0:_SIZE].astype(np.float64) / _SIZE
    waves = [np.sin((n + 1) * np.pi * (rows + n * columns)) for n in range(len(TEXTS))]
    colours = np.random.default_rng(0).uniform(40, 215, (len(TEXTS), 3))
    return [
        np.uint8(np.clip(colour + 60 * wave[..., None], 0, 255))
        for wave, colour in zip(waves, colours, strict=True)
    ]


def keep(folder: Path, retriever: Any) -> None:
    """Writes the embeddings and first answers of the questions; nothing for stored vectors."""
    try:
        embeddings, ids = _asked(retriever)
    except InputError:  # the model reads neither texts nor pictures
        return
    with atomic(folder / FILE) as temporary, open(temporary, "wb") as file:
        np.savez(file, embeddings=embeddings, ids=ids)


def sing(folder: Path, retriever: Any) -> Sung | None:
    """Asks the questions again; None of an index that keeps none.

    An InputError if the embeddings have another width, or the file is damaged.
    """
    if not (folder / FILE).is_file():
        return None
    kept = read_arrays(folder / FILE)
    if {"embeddings", "ids"} - kept.keys():
        raise InputError(f"{folder / FILE}: expected embeddings and ids; found {sorted(kept)}")
    now, ids = _asked(retriever, kept["embeddings"].shape[1], folder)
    then = kept["embeddings"].astype(np.float64)
    lengths = np.linalg.norm(now, axis=1) * np.linalg.norm(then, axis=1)
    cosines = (now * then).sum(axis=1) / np.maximum(lengths, 1e-12)
    same = [np.isin(old, new).mean() for old, new in zip(kept["ids"], ids, strict=True)]
    return Sung(cosines, np.array(same))


def warn(folder: Path, retriever: Any) -> None:
    """Warns where the questions are embedded otherwise than before; raises as `sing`."""
    sung = sing(folder, retriever)
    if sung is not None and not sung.holds:
        warnings.warn(f"{folder.parent}: {sung.sentence}", stacklevel=3)


def _asked(retriever, width=None, folder=None):
    asked = retriever.embed(questions_for(retriever.side))
    found = np.asarray(coordinates(asked), np.float64)
    if width is not None and found.shape[1] != width:
        raise InputError(
            f"{folder.parent}: was built with embeddings of {width} numbers; this model's have "
            f"{found.shape[1]}: open it with its own model, or build it again"
        )
    return found, retriever.index.search(asked, min(_FIRST, len(retriever.index)))[1]


def to_json(sung: Sung | None) -> dict[str, Any] | None:
    """JSON values of `sing`."""
    if sung is None:
        return None
    return {
        "holds": sung.holds,
        "cosines": sung.cosines.tolist(),
        "same_answers": sung.same.tolist(),
    }
