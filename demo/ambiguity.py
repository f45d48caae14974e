"""What makes a caption ambiguous: its words, one by one, and the words that would narrow it down.

PCME (Chun et al., CVPR 2021), figure 8, drops words at random and looks at σ; here each word of one
caption is dropped by itself.
"""

import functools
from collections import Counter
from typing import NamedTuple, TypedDict

from demo import answers
from zoo.data.captions import normalise

MAX_ADDITIONS = 32  # captions that are tried at once: a large model takes a second for them
_PHRASE = 3  # words
_SIMILAR = 48  # captions whose phrases are tried
# Words that join phrases.
_JOINING = frozenset(
    [
        *("a", "an", "and", "are", "as", "at", "by", "for", "from", "has", "have", "in", "is"),
        *("it", "its", "of", "on", "or", "over", "that", "the", "there", "these", "this", "to"),
        *("two", "very", "which", "while", "with", "around", "near", "next", "behind", "under"),
        *("beside", "between", "against", "into", "through", "front", "top", "off", "out", "up"),
    ]
)


class Change(TypedDict):
    """What becomes of the uncertainty when some words are left out, or added."""

    words: str
    caption: str
    uncertainty: float
    change: float


class Examination(NamedTuple):
    """A caption's embedding, a dict of `(1, …)` arrays, and the effect of its words."""

    embedding: dict
    removals: list[Change]
    additions: list[Change]


def examine(gallery, caption, most=5):
    """The effect of each word, and phrases that would make the caption more certain.

    Phrases are tried that the gallery's captions nearest to this one say and it does not, so that
    they fit what was asked. The encoder is called twice in all.

    Args:
        gallery: a `Gallery`; for phrases it needs captions.
        caption: a text.
        most: how many phrases to return.

    Returns:
        An `Examination`. `removals` has a `Change` for each word in order, positive where the
        caption is less certain without the word; none for fewer than two words. `additions` are
        noticeably negative, the best first, no word of their phrases twice. Both are empty for
        models without uncertainties.
    """
    words = caption.split()
    without = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
    reads_words = gallery.encoders.reads_words
    if len(words) < 2 or gallery.encoders.measure is None or not reads_words:
        words, without = [], []
    encoded = gallery.encoders.captions([caption, *without])
    embedding = {key: value[:1] for key, value in encoded.items()}
    if gallery.encoders.measure is None or not reads_words:
        return Examination(embedding, [], [])
    whole, *values = gallery.encoders.uncertainty(encoded)
    removals = _changes(words, without, values, whole)
    return Examination(embedding, removals, _additions(gallery, caption, embedding, whole)[:most])


def _additions(gallery, caption, embedding, whole):
    phrases = _fitting(gallery, caption, embedding)[:MAX_ADDITIONS]
    if not phrases:
        return []
    stem = caption.strip().rstrip(".!?,;")
    extended = [f"{stem} and {phrase}" for phrase in phrases]
    values = gallery.encoders.uncertainty(gallery.encoders.captions(extended))
    chosen, used, least = [], set(), gallery.references["captions"].noticeable
    changes = _changes(phrases, extended, values, whole)
    for change in sorted(changes, key=lambda change: change["change"]):
        own = set(change["words"].split())
        if change["change"] < -least and not own & used:  # not the same attribute in five wordings
            chosen.append(change)
            used |= own
    return chosen


def omissions(gallery, changes, most=2):
    """Of the removals, the words without which the caption is noticeably more certain.

    Words that join others, or that every third caption has, are left alone: what remained would
    be no caption.
    """
    if not changes or "captions" not in gallery.references:
        return []
    least = gallery.references["captions"].noticeable
    going = [
        change
        for change in changes
        if change["change"] < -least
        and not set(_words(change["words"])) & (_JOINING | _common(gallery))
    ]
    return sorted(going, key=lambda change: change["change"])[:most]


def keep_words(gallery, caption, kept, recall_bins=None):
    """The uncertainty of a caption of which only some words are left.

    Args:
        gallery: a `Gallery`.
        caption: a text.
        kept: positions of the words that stay.
        recall_bins: see `answers.search`.

    Returns:
        `(text, uncertainty, percentile, sentence)`; the first is empty when no word is left.
    """
    words = caption.split()
    text = " ".join(words[i] for i in sorted(set(kept)) if 0 <= i < len(words))
    if not text:
        return "", None, None, "No word is left."
    embedding = gallery.encoders.captions([text])
    return (text, *answers.certainty(gallery, embedding, "captions", recall_bins))


def caveats(gallery, caption):
    """Sentences on why the uncertainty of a text may mislead: words and lengths never seen."""
    notes = []
    unknown = gallery.encoders.unknown_words(caption)
    if unknown:
        listed = ", ".join(f"“{word}”" for word in unknown[:5])
        notes.append(
            f"The model does not know {listed}: it reads the rest, and its uncertainty is about "
            "the rest."
        )
    if gallery.captions and gallery.encoders.measure is not None:
        low, high = _lengths(gallery)
        count = len(_words(caption))
        if not low <= count <= high:
            notes.append(
                f"This text has {count} word{'' if count == 1 else 's'}, nearly all captions here "
                f"have {low} to {high}: of texts unlike those the uncertainty says little."
            )
    return notes


def _changes(names, texts, values, whole):
    return [
        Change(words=name, caption=text, uncertainty=float(value), change=float(value - whole))
        for name, text, value in zip(names, texts, values, strict=True)
    ]


def _fitting(gallery, caption, embedding):
    """Phrases of the gallery's captions that lie nearest to a text, without its own words."""
    if not gallery.captions:
        return []
    name = {"a Gaussian": "wasserstein_2", "a set": "chamfer"}.get(gallery.kind, "cosine")
    found = gallery.index("captions", name).search(embedding, min(_SIMILAR, len(gallery.captions)))
    counts, said = Counter(), set(_words(caption))
    for row in found[1][0]:
        if row >= 0:
            counts.update(set(_phrases(gallery.captions[row], _common(gallery))))
    return [phrase for phrase, _ in counts.most_common() if not said & set(phrase.split())]


def _phrases(caption, common):
    """Runs of at most three words between joining words, each a phrase that can stand alone."""
    run = []
    for word in [*_words(caption), "and"]:
        if word in _JOINING:
            if 0 < len(run) <= _PHRASE:
                yield " ".join(run)
            run = []
        elif word in common:  # "tiny" before "bird" is no phrase without it
            run = []
        else:
            run.append(word)


@functools.lru_cache(maxsize=1 << 16)
def _words(text):
    return tuple(normalise(text).numpy().decode("utf-8").split())


@functools.lru_cache(maxsize=4)
def _common(gallery):
    """Words of every third caption: what the whole gallery is about, such as "bird"."""
    counts = Counter(word for caption in gallery.captions for word in set(caption.lower().split()))
    return {word for word, n in counts.items() if 3 * n > len(gallery.captions)} - _JOINING


@functools.lru_cache(maxsize=4)
def _lengths(gallery):
    """The 1st and the 99th percentile of the captions' numbers of words."""
    counts = sorted(len(caption.split()) for caption in gallery.captions)
    return counts[len(counts) // 100], counts[-1 - len(counts) // 100]
