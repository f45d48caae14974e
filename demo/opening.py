"""What the page opens on, and examples: chosen from the opened gallery by the judge's verdict."""

from typing import NamedTuple

import numpy as np

from halo_search.confidence.judge import ABSENT, LIKELY, UNSURE, leading
from halo_search.retriever.questions import as_asked

NONSENSE = "wibble frobnicated zorp with quux"
# Of photos alone nobody knows what they show: everyday questions, which are all asked.
_OF_PHOTOS = (
    "two people riding horses on the beach",
    "a pizza on a table",
    "a bus on a city street",
    "a laptop on a desk",
    "a dog running on grass",
    "a cat on a couch",
    "people outdoors",
    "a penguin",
    "an elephant",
    "an airplane in the sky",
    "a train on the tracks",
    "a kitchen",
    "a bathroom",
    "a baseball player",
    "a person skiing",
    "a man on a skateboard",
    "children playing in water",
    "mountains with snow",
    "a bicycle",
    "a birthday cake",
    "flowers in a vase",
    "a bird on a branch",
    "food on a table",
    "a group of people",
    "a sunset over the sea",
    "a lighthouse",
    "a wedding",
    "a guitar",
    "a city at night",
)
_ASKED, _LONGEST = 400, 16


class Example(NamedTuple):
    """A caption to try, and one word that says why."""

    label: str
    caption: str


def examples(service, seed=0):
    """Captions to try; the page opens on the first two.

    Args:
        service: a `Service`.
        seed: of the captions that are drawn.

    Returns:
        `Example`s. Of a gallery with captions: the one that is answered most surely, and rightly
        where that is known; nonsense; and the least sure one. Of photos alone, of everyday
        questions: one that is surely there, one that is not, one that many photos fit, one that is
        unsure, and nonsense. Where no question has a verdict, it has no example.
    """
    gallery = service.gallery
    nonsense = [Example("Unknown words", NONSENSE)] if gallery.reads_words else []
    if not gallery.captions:
        return [*_of_photos(gallery), *nonsense]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(gallery.captions))[:_ASKED]
    rows = [row for row in rows if len(gallery.captions[row].split()) <= _LONGEST] or list(rows)
    asked = gallery.take("captions", rows)
    texts = [gallery.captions[row] for row in rows]
    judged = gallery.judge("captions", asked, texts)
    order = [i for i in _surest_first(judged) if judged[i].verdict in (LIKELY, UNSURE)]
    if not order:
        return [Example("Try", texts[0]), *nonsense]
    right = [i for i in order if _is_right(gallery, rows[i], asked, i)] or order
    first = Example("Sure" if judged[right[0]].verdict == LIKELY else "Try", texts[right[0]])
    last = [Example("Unsure", texts[order[-1]])] if order[-1] != right[0] else []
    return [first, *nonsense, *last]


def _of_photos(gallery):
    """Of everyday questions one a verdict."""
    texts = [as_asked(text) for text in _OF_PHOTOS]
    judged = gallery.judge("captions", gallery.of_words(texts), texts)
    order = _surest_first(judged)
    of = {one: [i for i in order if judged[i].verdict == one] for one in (LIKELY, UNSURE, ABSENT)}
    found = {}
    if of[LIKELY]:
        found["There"] = of[LIKELY][0]
    if of[ABSENT]:
        words = {i: len(_OF_PHOTOS[i].split()) for i in of[ABSENT]}
        found["Not there"] = min(reversed(of[ABSENT]), key=words.get)  # one thing that is missing
    many = [i for i in of[LIKELY] if i not in found.values() and _fitting(judged[i]) > 1]
    if many:
        found["Several"] = max(many, key=lambda i: _fitting(judged[i]))
    if of[UNSURE]:
        found["Unsure"] = of[UNSURE][0]
    if not found:
        return [Example("Try", text) for text in _OF_PHOTOS[:3]]
    return [Example(label, _OF_PHOTOS[i]) for label, i in found.items()]


def _surest_first(judged):
    """The places of judgements with a probability, by how likely the first result fits."""
    first = [one.wanted if one.fits is None else float(one.fits[0]) for one in judged]
    return sorted((i for i, one in enumerate(first) if one is not None), key=lambda i: -first[i])


def _fitting(judgement):
    return 0 if judgement.fits is None else leading(judgement.fits)


def _is_right(gallery, row, asked, place):
    records = gallery.records
    if records is None:
        return True
    query = {key: value[place : place + 1] for key, value in asked.items()}
    item = gallery.index("images", gallery.own_similarity).search(query, 1)[1][0, 0]
    return records.image_labels[item] == records.caption_labels[row]
