"""What would narrow a question down: phrases whose addition raises the probability of an answer.

They come from the gallery's captions nearest to the question, so that they fit it. Which of them is
true only the asker knows, so they are grouped by what they are about ("red crown" and "black crown"
about the crown), and a group is worth what is expected over its phrases.
"""

import functools
import re
from collections import Counter
from typing import TypedDict

from zoo.data.captions import normalise

MOST_TRIED = 32  # captions that are encoded at once
_PHRASE = 4  # words
_SIMILAR = 64  # captions whose phrases are tried
_GROUPS, _OPTIONS = 3, 4
_STOPS = re.compile(r"[,.;:!?]")
_LEAST = 0.02  # of probability that an addition has to bring
# Words that join phrases.
_JOINING = frozenset(
    [
        *("a", "an", "and", "are", "as", "at", "by", "for", "from", "has", "have", "in", "is"),
        *("it", "its", "of", "on", "or", "over", "that", "the", "there", "these", "this", "to"),
        *("two", "very", "which", "while", "with", "around", "near", "next", "behind", "under"),
        *("beside", "between", "against", "into", "through", "front", "top", "off", "out", "up"),
        *("shows", "also"),
    ]
)


class Addition(TypedDict):
    """A phrase, the caption with it, and the probability of a right answer then."""

    words: str
    caption: str
    probability: float


class Group(TypedDict):
    """Additions about one thing, best first, and the probability that is expected of asking it."""

    about: str
    expected: float
    additions: list[Addition]


def groups(gallery, caption, embedding, judge, now):
    """What to add to a caption.

    Args:
        gallery: a `Gallery` with captions.
        caption: a text.
        embedding: its embedding, a dict of `(1, …)` arrays.
        judge: function of a list of captions to their `Judgement`s.
        now: the probability of the caption itself.

    Returns:
        `Group`s, the greatest expectation first. Each addition raises the probability; the
        expectation counts those that do not, too.
    """
    counts = _fitting(gallery, caption, embedding)
    if not counts:
        return []
    stem = caption.strip().rstrip(".!?,;")
    phrases = [phrase for phrase, _ in counts.most_common(MOST_TRIED)]
    texts = [f"{stem} and {phrase}" for phrase in phrases]
    about = {}
    for phrase, text, judgement in zip(phrases, texts, judge(texts), strict=True):
        if judgement.kind == "known" and judgement.probability is not None:
            one = Addition(words=_bare(phrase), caption=text, probability=judgement.probability)
            about.setdefault(phrase.split()[-1], []).append((one, counts[phrase]))
    found = []
    for name, tried in about.items():
        expected = sum(one["probability"] * n for one, n in tried) / sum(n for _, n in tried)
        better = [one for one, _ in tried if one["probability"] > now + _LEAST]
        better.sort(key=lambda one: -one["probability"])
        if better and expected > now:
            found.append(Group(about=name, expected=expected, additions=better[:_OPTIONS]))
    return sorted(found, key=lambda group: -group["expected"])[:_GROUPS]


def _bare(phrase):
    return phrase.removeprefix("a ").removeprefix("an ")


def _fitting(gallery, caption, embedding):
    """Phrases of the captions nearest to a text, without its own words, with their numbers."""
    counts = Counter()
    if not gallery.captions:
        return counts
    name = {"a Gaussian": "wasserstein_2", "a set": "chamfer"}.get(gallery.kind, "cosine")
    found = gallery.index("captions", name).search(embedding, min(_SIMILAR, len(gallery.captions)))
    said = set(_words(caption))
    for row in found[1][0]:
        if row >= 0:
            counts.update(set(phrases(gallery.captions[row], common(gallery))))
    return Counter({p: n for p, n in counts.items() if not said & (set(p.split()) - _JOINING)})


def phrases(caption, common):
    """Runs of a few words between joining words, each a phrase that can stand alone.

    Args:
        caption: a text.
        common: words that say nothing by themselves.
    """
    run, article = [], ""
    for word in [*_words(_STOPS.sub(" and ", caption)), "and"]:
        if word in _JOINING:
            if 0 < len(run) <= _PHRASE:
                yield article + " ".join(run)
            run, article = [], f"{word} " if word in ("a", "an") else ""
        elif word in common:  # "tiny" before "bird" is no phrase without it
            run = []
        else:
            run.append(word)


@functools.lru_cache(maxsize=1 << 16)
def _words(text):
    return tuple(normalise(text).numpy().decode("utf-8").split())


@functools.lru_cache(maxsize=4)
def common(gallery):
    """Words of every third caption: what the whole gallery is about, such as "bird"."""
    counts = Counter(word for caption in gallery.captions for word in set(caption.lower().split()))
    return {word for word, n in counts.items() if 3 * n > len(gallery.captions)} - _JOINING
