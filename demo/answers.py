"""A query and what the gallery answers: a verdict, and images or captions."""

import functools
from typing import TypedDict

import numpy as np

from halo_search.confidence.judge import ABSENT, NOT_UNDERSTOOD, leading

ERROR = 0.1  # of the list that is long enough
FEW, MANY = 0.9, 0.1  # probabilities of fitting, the ends of the list of all that fits
REFUSED = (ABSENT, NOT_UNDERSTOOD)
POINTS = "This model embeds every item as a point, so it cannot say how uncertain it is."
NO_REFERENCE = "There are no captions in this gallery to compare its uncertainty with."


class Result(TypedDict):
    """One item that was found. `fits` is the probability that it fits; percentiles are among the
    gallery's items of its side; `right` says whether it matches what was asked, where that is
    known."""

    rank: int
    item: int
    name: str
    similarity: float
    fits: float | None
    uncertainty: float | None
    uncertainty_percentile: float | None
    right: bool | None


class Everything(TypedDict):
    """All that fits a query.

    Attributes:
        total: results on all pages.
        unfit: the expected share of the list that does not fit, None of an empty one.
        least: the probability from which a result is on the list.
        few, many: that share of the shortest and of the longest list.
        results: of this page.
    """

    total: int
    unfit: float | None
    least: float
    few: float | None
    many: float | None
    results: list[Result]


class Answer(TypedDict):
    """What the gallery says to a query.

    `verdict`, `probability` that the first result fits, `reason`, `wanted`, `number` and `fitting`
    are those of `halo_search.retriever.Answer`; `first_k` is how many results hold the one wanted
    item 9 times in 10, where a question wants one. Of a refused question only `probability` is
    told.
    """

    verdict: str
    probability: float | None
    reason: str
    wanted: float | None
    number: float | None
    fitting: int | None
    first_k: int | None
    uncertainty: float | None
    uncertainty_percentile: float | None
    meaning: str
    results: list[Result]


def search(gallery, query, side, judgement, similarity=None, k=8, among=None):
    """The `Answer` of a side to one query, an embedding of `(1, …)` arrays, with its judgement."""
    asked = "captions" if side == "images" else "images"
    value, share, meaning = certainty(gallery, query, asked)
    told = judgement
    if judgement.verdict in REFUSED:
        told = judgement._replace(fits=None, wanted=None, number=None, length=None)
    enough = None if told.length is None or told.wanted is None else told.length(ERROR)
    is_known = enough is not None and enough <= len(gallery.names(side))
    fits = None if told.fits is None else told.fits.tolist()
    results = _found(gallery, query, side, similarity, k, among)
    for result, share_that_fits in zip(results, fits or (), strict=False):
        result["fits"] = share_that_fits
    return Answer(
        verdict=told.verdict,
        probability=None if judgement.fits is None else float(judgement.fits[0]),
        reason=told.reason,
        wanted=told.wanted,
        number=told.number,
        fitting=None if fits is None else leading(fits),
        first_k=enough if is_known else None,
        uncertainty=value,
        uncertainty_percentile=share,
        meaning=meaning,
        results=results,
    )


def everything(gallery, caption, side, least, similarity=None, offset=0, limit=24, among=None):
    """All that fits one caption with at least some probability, from `offset` on: an `Everything`.

    Raises ValueError if nothing says how likely items fit.
    """
    page = _all(gallery, caption, side, similarity, least, offset, limit, among)
    among = tuple(among) if isinstance(among, list) else among
    few, many = _ends(gallery, caption, side, similarity, among)
    found = page.answer
    results = _results(gallery, side, found.scores, found.ids)
    fits = [None] * len(results) if found.fits is None else np.asarray(found.fits).tolist()
    for result, fit in zip(results, fits, strict=True):
        result |= {"fits": fit, "rank": result["rank"] + offset}
    return Everything(
        total=page.total,
        unfit=page.unfit,
        least=least,
        few=few,
        many=many,
        results=results,
    )


def _all(gallery, caption, side, similarity, least, offset=0, limit=1, among=None):
    asked = "captions" if side == "images" else "images"
    question = caption if gallery.reads_words else gallery.of_words([caption])
    retriever = gallery.retriever(asked, similarity, among)
    return retriever.all(question, offset=offset, limit=limit, least=least)


@functools.lru_cache(1024)  # a slider that is moved asks one question again and again
def _ends(gallery, caption, side, similarity, among):
    ends = (_all(gallery, caption, side, similarity, end, among=among) for end in (FEW, MANY))
    return tuple(page.unfit for page in ends)


def certainty(gallery, query, side):
    """`(uncertainty, percentile, sentence)` of one query of a side; None where there is none."""
    values = gallery.uncertainty(query)
    if values is None:
        return None, None, POINTS
    value, reference = float(values[0]), gallery.references.get(side)
    if reference is None:
        return value, None, NO_REFERENCE
    return value, reference.percentile(value), reference.sentence(value)


def _found(gallery, query, side, similarity, k, among):
    name = similarity or gallery.own_similarity
    if name not in gallery.similarity_names:
        raise ValueError(
            f"`similarity` must be one of {', '.join(gallery.similarity_names)}; received {name!r}"
        )
    index = gallery.index(side, name)
    if among is not None:
        index = gallery.retriever("captions" if side == "images" else "images", name, among).index
    k = max(1, min(int(k), len(index)))
    scores, items = (row[0] for row in index.search(query, k))
    return _results(gallery, side, scores[items >= 0], items[items >= 0])


def _results(gallery, side, scores, items):
    names = gallery.names(side)
    reference = gallery.references.get(side)
    results = []
    for rank, (item, score) in enumerate(zip(gallery.rows(items), scores, strict=True)):
        value = None if reference is None else float(reference.values[item])
        results.append(
            Result(
                rank=rank + 1,
                item=int(item),
                name=names[item],
                similarity=float(score),
                fits=None,
                uncertainty=value,
                uncertainty_percentile=None if value is None else reference.percentile(value),
                right=None,
            )
        )
    return results
