"""What the page opens on, and examples: certain, vague and nonsense, found by asking."""

from typing import NamedTuple

import numpy as np

NONSENSE = "wibble frobnicated zorp with quux"
# Of one's own photos nobody knows what they show: what many show, and what few do.
_OF_PHOTOS = ("people outdoors", "a giraffe", "a dog", "food on a table")
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
        `Example`s: the gallery's own questions if it has some. Else, of its own captions, the one
        that is answered most surely, and rightly where that is known; nonsense; and the least sure
        caption. Of stored vectors the surest and the least sure alone: nothing else can be asked.
    """
    gallery = service.gallery
    if gallery.questions:
        return [Example(*one) for one in gallery.questions]
    if not gallery.captions:
        return [*(Example("Try", text) for text in _OF_PHOTOS), Example("Nonsense", NONSENSE)]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(gallery.captions))[:_ASKED]
    rows = [row for row in rows if len(gallery.captions[row].split()) <= _LONGEST] or list(rows)
    asked = gallery.take("captions", rows)
    texts = [gallery.captions[row] for row in rows]
    judged = gallery.judge("captions", asked, texts)
    order = sorted(
        (i for i, one in enumerate(judged) if one.probability is not None),
        key=lambda i: -judged[i].probability,
    )
    reads_words = gallery.reads_words
    nonsense = [Example("Nonsense", NONSENSE)] if reads_words else []
    if not order:
        return [Example("Try", texts[0]), *nonsense]
    right = [i for i in order if _is_right(gallery, rows[i], asked, i)] or order
    found = [Example("Sure", texts[right[0]]), *nonsense]
    return [*found, Example("Vague", texts[order[-1]])]


def _is_right(gallery, row, asked, place):
    records = gallery.records
    if records is None:
        return True
    query = {key: value[place : place + 1] for key, value in asked.items()}
    item = gallery.index("images", gallery.own_similarity).search(query, 1)[1][0, 0]
    return records.image_labels[item] == records.caption_labels[row]
