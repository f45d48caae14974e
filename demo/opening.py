"""Questions to try, chosen from the opened gallery by what it answers."""

from typing import NamedTuple

import numpy as np

from halo_search.confidence.judge import ABSENT, LIKELY, UNSURE

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
_ASKED, _LONGEST, _RESULTS = 100, 12, 10


class Example(NamedTuple):
    """A caption to try, and one word that says why."""

    label: str
    caption: str


def examples(service, seed=0):
    """Captions to try: `Example`s.

    Args:
        service: a `Service`.
        seed: of the captions that are drawn.

    Returns:
        If the gallery has captions: the caption with the most confident answer (a right one, where
        that is known), and the one with the least confident answer. If it has photos alone, four
        everyday questions: one with a likely answer, one that several photos fit, one with an
        unsure answer, and one that nothing matches.
    """
    gallery = service.gallery
    if not gallery.image_names:
        return []
    if not gallery.captions:
        return _of_photos(gallery)
    rows = np.random.default_rng(seed).permutation(len(gallery.captions))[:_ASKED]
    rows = [row for row in rows if len(gallery.captions[row].split()) <= _LONGEST] or list(rows)
    texts = [gallery.captions[row] for row in rows]
    answers = _answers(gallery, texts)
    order = [i for i in _surest_first(answers) if answers[i].verdict in (LIKELY, UNSURE)]
    if not order:
        return [Example("Try", texts[0])]
    right = [i for i in order if _is_right(gallery, rows[i], answers[i])] or order
    first = Example("There", texts[right[0]])
    return [first, *([Example("Unsure", texts[order[-1]])] if order[-1] != right[0] else [])]


def _of_photos(gallery):
    """Picks everyday questions, one per kind of answer."""
    answers = _answers(gallery, _OF_PHOTOS)
    order = _surest_first(answers)
    of = {
        verdict: [i for i in order if answers[i].verdict == verdict]
        for verdict in (LIKELY, UNSURE, ABSENT)
    }
    chosen = {}
    if of[LIKELY]:
        chosen["There"] = of[LIKELY][0]
    many = [i for i in of[LIKELY] if i not in chosen.values() and answers[i].fitting > 1]
    if many:
        chosen["Several"] = max(many, key=lambda i: answers[i].fitting)
    if of[UNSURE]:
        chosen["Unsure"] = of[UNSURE][0]
    if of[ABSENT]:
        words = {i: len(_OF_PHOTOS[i].split()) for i in of[ABSENT]}
        chosen["Not there"] = min(reversed(of[ABSENT]), key=words.get)  # one missing thing
    if not chosen:
        return [Example("Try", text) for text in _OF_PHOTOS[:3]]
    return [Example(label, _OF_PHOTOS[i]) for label, i in chosen.items()]


def _answers(gallery, texts):
    """An `Answer` per text."""
    retriever = gallery.retriever("captions")
    if gallery.reads_words:
        return retriever.ask(list(texts), _RESULTS)
    return [retriever.ask(question, _RESULTS) for question in gallery.questions(texts)]


def _surest_first(answers):
    """The places of answers with a probability, by how likely the first result fits."""
    first = [one.wanted if one.probability is None else one.probability for one in answers]
    return sorted((i for i, one in enumerate(first) if one is not None), key=lambda i: -first[i])


def _is_right(gallery, row, answer):
    """Whether the first result of a caption of the gallery is of its class or image."""
    records = gallery.records
    if records is None:
        return True
    return records.image_labels[answer.ids[0]] == records.caption_labels[row]
