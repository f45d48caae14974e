"""A query and what the gallery answers: a verdict, and images or captions."""

from typing import TypedDict

from zoo.confidence.judge import ABSENT, NOT_UNDERSTOOD

ERROR = 0.1  # of the list that is long enough
REFUSED = (ABSENT, NOT_UNDERSTOOD)
POINTS = "This model embeds every item as a point, so it cannot say how uncertain it is."
NO_REFERENCE = "There are no captions in this gallery to compare its uncertainty with."


class Result(TypedDict):
    """One item that was found. Percentiles are among the gallery's items of its side; `right`
    says whether it matches what was asked, where that is known."""

    rank: int
    item: int
    name: str
    similarity: float
    uncertainty: float | None
    uncertainty_percentile: float | None
    right: bool | None


class Answer(TypedDict):
    """What the gallery says to a query.

    `verdict`, `probability` and `reason` are those of `zoo.Retriever`; `first_k` is how many
    results hold the right one 9 times in 10, where that is known. The list ends there.
    """

    verdict: str
    probability: float | None
    reason: str
    first_k: int | None
    uncertainty: float | None
    uncertainty_percentile: float | None
    meaning: str
    results: list[Result]


def search(gallery, query, side, judgement, similarity=None, k=8):
    """Answers one query.

    Args:
        gallery: a `Gallery`.
        query: the embedding of one caption or one image, a dict of `(1, …)` arrays.
        side: what is searched, `"images"` for a caption, `"captions"` for an image.
        judgement: the query's `zoo.retriever.Judgement`.
        similarity: a name of `gallery.similarity_names`; None is the model's own.
        k: how many results at most.

    Returns:
        An `Answer`.

    Raises:
        ValueError: if the similarity is not one of this gallery's.
    """
    asked = "captions" if side == "images" else "images"
    value, share, meaning = certainty(gallery, query, asked)
    enough = None if judgement.length is None else judgement.length(ERROR)
    enough = enough if enough is not None and enough <= len(gallery.names(side)) else None
    is_refused = judgement.verdict in REFUSED
    shown = k if enough is None or is_refused else min(k, enough)
    return Answer(
        verdict=judgement.verdict,
        probability=judgement.probability,
        reason=judgement.reason,
        first_k=None if is_refused else enough,
        uncertainty=value,
        uncertainty_percentile=share,
        meaning=meaning,
        results=_found(gallery, query, side, similarity, shown),
    )


def certainty(gallery, query, side):
    """`(uncertainty, percentile, sentence)` of one query of a side; None where there is none."""
    values = gallery.uncertainty(query)
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
                uncertainty=value,
                uncertainty_percentile=None if value is None else reference.percentile(value),
                right=None,
            )
        )
    return results
