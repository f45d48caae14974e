"""A query and what the gallery answers: similarity, match probability, uncertainty; or nothing."""

from typing import TypedDict

import keras
import numpy as np


class Result(TypedDict):
    """One item that was found. Percentiles are among the gallery's items of its side."""

    rank: int
    item: int
    name: str
    similarity: float
    match_probability: float | None
    uncertainty: float | None
    uncertainty_percentile: float | None


class Answer(TypedDict):
    """What the gallery says to a query; without results when the query was too uncertain."""

    uncertainty: float | None
    uncertainty_percentile: float | None
    meaning: str
    declined: bool
    results: list[Result]


POINTS = "This model embeds every item as a point, so it cannot say how uncertain it is."
NO_REFERENCE = "There are no captions in this gallery to compare its uncertainty with."


def search(gallery, query, side, similarity=None, k=8, decline_above=100.0, recall_bins=None):
    """Answers one query.

    Args:
        gallery: a `Gallery`.
        query: the embedding of one caption or one image, a dict of `(1, …)` arrays.
        side: what is searched, `"images"` for a caption, `"captions"` for an image.
        similarity: a name of `gallery.similarity_names`; None is the model's own.
        k: how many results.
        decline_above: percentile of the query's uncertainty from which nothing is answered; 100
            always answers.
        recall_bins: `recall_by_uncertainty` of such queries, for the sentence, or None.

    Returns:
        An `Answer`.

    Raises:
        ValueError: if the similarity is not one of this gallery's.
    """
    own_side = "captions" if side == "images" else "images"
    value, share, meaning = certainty(gallery, query, own_side, recall_bins)
    declined = share is not None and decline_above < 100.0 and share > decline_above
    found = [] if declined else _found(gallery, query, side, similarity, k)
    return Answer(
        uncertainty=value,
        uncertainty_percentile=share,
        meaning=meaning,
        declined=declined,
        results=found,
    )


def certainty(gallery, query, side, recall_bins=None):
    """`(uncertainty, percentile, sentence)` of one query of a side; None where there is none."""
    values = gallery.encoders.uncertainty(query)
    if values is None:
        return None, None, POINTS
    value, reference = float(values[0]), gallery.references.get(side)
    if reference is None:
        return value, None, NO_REFERENCE
    return value, reference.percentile(value), reference.sentence(value, recall_bins)


def _found(gallery, query, side, similarity, k):
    name = similarity or gallery.own_similarity
    if name not in gallery.similarity_names:
        raise ValueError(
            f"`similarity` must be one of {', '.join(gallery.similarity_names)}; received {name!r}"
        )
    index = gallery.index(side, name)
    k = max(1, min(int(k), len(index)))
    scores, items = (row[0] for row in index.search(query, k))
    scores, items = scores[items >= 0], items[items >= 0]
    names = gallery.image_names if side == "images" else gallery.captions
    probability = None
    if gallery.model.gives_match_probability:
        logits = scores if name == gallery.own_similarity else _logits(gallery, query, side, items)
        probability = np.asarray(keras.ops.sigmoid(logits))
    reference = gallery.references.get(side)
    results = []
    for rank, (item, score) in enumerate(zip(items, scores, strict=True)):
        value = None if reference is None else float(reference.values[item])
        results.append(
            Result(
                rank=rank + 1,
                item=int(item),
                name=names[item],
                similarity=float(score),
                match_probability=None if probability is None else float(probability[rank]),
                uncertainty=value,
                uncertainty_percentile=None if value is None else reference.percentile(value),
            )
        )
    return results


def _logits(gallery, query, side, items):
    """The model's own logits of what another similarity has found."""
    theirs = gallery.take(side, items)
    pair = (theirs, query) if side == "images" else (query, theirs)
    return np.asarray(gallery.model.similarity(*pair)).reshape(-1)
