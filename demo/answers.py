"""A query and what the gallery answers: how likely it is right, and images or captions, or none."""

from typing import TypedDict

import keras
import numpy as np

from demo import verdicts

POINTS = "This model embeds every item as a point, so it cannot say how uncertain it is."
NO_REFERENCE = "There are no captions in this gallery to compare its uncertainty with."


class Result(TypedDict):
    """One item that was found. Percentiles are among the gallery's items of its side; `right`
    says whether it matches what was asked, where that is known."""

    rank: int
    item: int
    name: str
    similarity: float
    match_probability: float | None
    uncertainty: float | None
    uncertainty_percentile: float | None
    right: bool | None


class Answer(TypedDict):
    """What the gallery says to a query.

    `verdict` is the sentence that stands first, `probability` that the first result is right, and
    `kind` "known", "unknown" (such questions the model does not know) or "absent" (nothing here
    looks like that). A declined query has a `reason` and no results.
    """

    verdict: str
    probability: float | None
    kind: str
    declined: bool
    reason: str | None
    uncertainty: float | None
    uncertainty_percentile: float | None
    meaning: str
    results: list[Result]


def search(gallery, query, side, judgement, risk=None, similarity=None, k=8, anyway=False):
    """Answers one query.

    Args:
        gallery: a `Gallery`.
        query: the embedding of one caption or one image, a dict of `(1, …)` arrays.
        side: what is searched, `"images"` for a caption, `"captions"` for an image.
        judgement: the query's `Judgement`.
        risk: of the `Promise` by which it is declined; None answers everything.
        similarity: a name of `gallery.similarity_names`; None is the model's own.
        k: how many results.
        anyway: whether a declined query has results too.

    Returns:
        An `Answer`.

    Raises:
        ValueError: if the similarity is not one of this gallery's.
    """
    asked = "captions" if side == "images" else "images"
    value, share, meaning = certainty(gallery, query, asked)
    reason = declined(gallery, asked, judgement, risk, similarity)
    found = _found(gallery, query, side, similarity, k) if reason is None or anyway else []
    return Answer(
        verdict=verdicts.sentence(judgement, asked, gallery.noun),
        probability=judgement.probability if judgement.kind == "known" else None,
        kind=judgement.kind,
        declined=reason is not None,
        reason=reason,
        uncertainty=value,
        uncertainty_percentile=share,
        meaning=meaning,
        results=found,
    )


def declined(gallery, asked, judgement, risk, similarity=None):
    """Why a query is not answered, in words; None if it is."""
    promise = gallery.sureness(asked, similarity).promise(risk)
    if risk is None:
        return None
    if judgement.kind != "known":
        return judgement.reason
    if promise is None or judgement.probability is None:
        return None
    if judgement.probability >= promise.threshold:
        return None
    how = "break the promise" if promise.certified else "not keep"
    return (
        f"to answer below {100 * promise.threshold:.0f} % would {how} that at most "
        f"{verdicts.share(promise.risk)} answers are wrong"
    )


def certainty(gallery, query, side):
    """`(uncertainty, percentile, sentence)` of one query of a side; None where there is none."""
    values = gallery.encoders.uncertainty(query)
    if values is None:
        return None, None, POINTS
    value, reference = float(values[0]), gallery.references.get(side)
    if reference is None:
        return value, None, NO_REFERENCE
    return value, reference.percentile(value), reference.sentence(value)


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
    names = gallery.names(side)
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
                right=None,
            )
        )
    return results


def _logits(gallery, query, side, items):
    """The model's own logits of what another similarity has found."""
    theirs = gallery.take(side, items)
    pair = (theirs, query) if side == "images" else (query, theirs)
    return np.asarray(gallery.model.similarity(*pair)).reshape(-1)
