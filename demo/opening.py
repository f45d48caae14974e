"""What the page opens on, and examples: certain, vague, absent and nonsense, found by asking."""

from typing import NamedTuple

import numpy as np

from demo import narrowing

NONSENSE = "wibble frobnicated zorp with quux"
_FALLBACK = "a small bird with a red crown and black wings"
_ASKED, _LONGEST, _VAGUE, _MIXED, _TOGETHER = 400, 16, 6, 256, 4


class Example(NamedTuple):
    """A caption to try, and one word on what it shows."""

    label: str
    caption: str


def examples(service, seed=0):
    """Captions to try.

    Args:
        service: a `Service`.
        seed: of the captions that are drawn.

    Returns:
        `Example`s: of the gallery's own captions the one that is answered most surely, and rightly
        where that is known; the vaguest that is declined and has something to add; one of things
        that are not in the gallery together; and nonsense. Those that are not found are left out.
        Of stored vectors only the surest and the least sure: nothing else can be asked.
    """
    gallery = service.gallery
    if not gallery.captions:
        return [Example("Try", _FALLBACK), Example("Nonsense", NONSENSE)]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(gallery.captions))[:_ASKED]
    rows = [row for row in rows if len(gallery.captions[row].split()) <= _LONGEST] or list(rows)
    asked = gallery.take("captions", rows)
    texts = [gallery.captions[row] for row in rows]
    judged = service.judge(texts, asked)
    order = sorted(
        (i for i, one in enumerate(judged) if one.kind == "known" and one.probability is not None),
        key=lambda i: -judged[i].probability,
    )
    reads_words = gallery.encoders.reads_words
    nonsense = [Example("Nonsense", NONSENSE)] if reads_words else []
    if not order:
        return [Example("Try", texts[0]), *nonsense]
    right = [i for i in order if _is_right(gallery, rows[i], asked, i)] or order
    found = [Example("Sure", texts[right[0]])]
    if not reads_words:
        return [*found, Example("Vague", texts[order[-1]])]
    vague = _vague(service, [texts[i] for i in order[::-1]])
    found += [Example("Vague", vague)] if vague else []
    absent = _absent(service, texts, rng)
    found += [Example("Not here", absent)] if absent else []
    return [*found, *nonsense]


def _is_right(gallery, row, asked, place):
    records = gallery.records
    if records is None:
        return True
    query = {key: value[place : place + 1] for key, value in asked.items()}
    item = gallery.index("images", gallery.own_similarity).search(query, 1)[1][0, 0]
    return records.image_labels[item] == records.caption_labels[row]


def _vague(service, texts):
    """Of the least probable captions the declined one that an addition helps most."""
    best, gain = None, 0.0
    for text in dict.fromkeys(texts[:_VAGUE]):
        found = service.find_images(text, results=1)
        groups = found["narrow_it_down"]
        if found["answer"]["declined"] and groups:
            most = max(one["probability"] for group in groups for one in group["additions"])
            if most - found["answer"]["probability"] > gain:
                best, gain = text, most - found["answer"]["probability"]
    return best


def _absent(service, texts, rng):
    """A caption of phrases of several captions that nothing in the gallery looks like."""
    gallery = service.gallery
    common = narrowing.common(gallery)
    phrases = sorted({p for text in texts for p in narrowing.phrases(text, common) if " " in p})
    if len(phrases) < _TOGETHER:
        return None
    mixed = []
    for _ in range(_MIXED):
        chosen = [phrases[i] for i in rng.choice(len(phrases), _TOGETHER, replace=False)]
        if len({phrase.split()[-1] for phrase in chosen}) == _TOGETHER:
            said = f"{', '.join(chosen[:-1])} and {chosen[-1]}"
            mixed.append(f"a {gallery.noun} with {said}")
    judged = service.judge(mixed, gallery.encoders.captions(mixed)) if mixed else []
    absent = [text for text, one in zip(mixed, judged, strict=True) if one.kind == "absent"]
    return absent[0] if absent else None
