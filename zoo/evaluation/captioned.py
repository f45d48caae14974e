"""Photos with captions that a model has encoded, and labels of short questions: what `learn_fits`
learns from."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from halo_search.confidence.bank import Bank
from halo_search.confidence.words import is_short
from halo_search.embeddings.arrays import length
from zoo.evaluation.gallery import scores_over
from zoo.evaluation.relevance import relevance, score_scale, sentence_vectors


@dataclasses.dataclass(frozen=True)
class Captioned:
    """Photos with captions that a model has encoded, for `learn_fits`."""

    images: dict[str, np.ndarray]
    captions: dict[str, np.ndarray]
    owners: np.ndarray
    texts: Sequence[str]
    sentences: np.ndarray
    similarity: Any
    encode: Callable[[list[str]], dict[str, np.ndarray]] | None  # None: no short questions
    name: str = "captioned photos"
    reference: dict[str, dict[str, np.ndarray]] | None = None
    sentences_of: Callable[[list[str]], np.ndarray] = sentence_vectors
    near: Bank | None = None  # captioned photos behind the second opinion, such as of training
    relevance: np.ndarray | None = None  # (M, N) in [0, 1], what fits, where other captions tell


class Labelled(NamedTuple):
    """Short questions to photos, and of some pairs whether they fit, as people judged."""

    images: dict[str, np.ndarray]
    texts: list[str]
    questions: np.ndarray  # (P,), rows of texts
    photos: np.ndarray  # (P,), rows of images
    fit: np.ndarray  # (P,), 0 to 1
    weights: np.ndarray  # (P,), how many pairs each stands for

    def of_short(self) -> "Labelled":
        """The pairs of questions of up to three content words alone."""
        is_kept = np.array([is_short(text) for text in self.texts])[self.questions]
        return self._replace(
            **{
                name: getattr(self, name)[is_kept]
                for name in ("questions", "photos", "fit", "weights")
            }
        )


def matrices_of(captioned):
    """Scores, what fits and what belongs together, captions × images."""
    owners, count = captioned.owners, length(captioned.images)
    scores = scores_over(captioned.images, captioned.captions, captioned.similarity, "images")
    is_owner = owners[:, None] == np.arange(count)
    rows, scale = np.arange(len(owners)), score_scale(scores, is_owner)
    fit = captioned.relevance
    if fit is None:
        fit = relevance(captioned.sentences, rows, owners, count, scores, scale)
    return scores, fit, is_owner, scale
