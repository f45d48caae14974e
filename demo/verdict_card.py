"""A verdict as HTML: what `zoo.Retriever` says, the words of the question to press, and why.

What can be pressed carries what it asks for: `data-ask` a caption, `data-word` the place of a word
to leave out or put back. `answer.js` hands it on.
"""

from pathlib import Path
from urllib.parse import quote

from demo.answers import REFUSED
from demo.cards import certainty, escape, numbers, results
from halo_search.confidence.judge import list_sentence

PRESSES = (Path(__file__).parent / "answer.js").read_text(encoding="utf-8")  # of `gr.HTML`
_WORDS = {
    "likely": "Likely",
    "unsure": "Unsure",
    "nothing matches": "Nothing here looks like that",
    "not understood": "Not understood",
}


def answer(gallery, found, kept=None, similarity=None):
    """What a caption finds; `kept` is `(all words, places of those that were asked)`, or None."""
    said = found["answer"]
    parts = [
        verdict(said),
        _words(found, kept) if gallery.reads_words else "",
    ]
    if found["unknown_words"] and said["verdict"] not in REFUSED:
        listed = ", ".join(f"“{word}”" for word in found["unknown_words"][:5])
        parts.append(f'<p class="halo-note">The model does not know {escape(listed)}.</p>')
    if found["asked"] != found["caption"]:
        parts.append(f'<p class="halo-note">Asked: “{escape(found["asked"])}”</p>')
    parts.append(_results(gallery, said, "images"))
    parts.append(_why(gallery, said, "captions", "images", similarity, found["caption"]))
    link = escape(f"?q={quote(found['caption'])}")
    return f'<section class="halo-answer" data-link="{link}">{"".join(parts)}</section>'


def image_answer(gallery, said, similarity=None):
    """What an image finds: an `Answer`."""
    found = _results(gallery, said, "captions")
    return verdict(said) + found + _why(gallery, said, "images", "captions", similarity)


def everything(gallery, found):
    """All that fits: what to expect of the list and of its ends, then its pictures."""
    ends = [_end("Many", found["many"]), _end("Few", found["few"])]
    facts = (found[name] for name in ("total", "unfit", "least"))
    said = list_sentence(gallery.noun, *facts)
    left = found["total"] - len(found["results"])
    more = f'<p class="halo-note">{left:,} more are not shown yet.</p>' if left else ""
    grid = results(gallery, {**found, "fitting": None}, "images") if found["results"] else ""
    return (
        f'<div class="halo-ends">{"".join(ends)}</div><p class="halo-total">{escape(said)}</p>'
        f"{grid}{more}"
    )


def _end(name, unfit):
    said = "nothing is as likely" if unfit is None else f"{100 * unfit:.0f} % do not fit"
    return f"<span><b>{name}</b>: {escape(said)}</span>"


def contrast(gallery, answers):
    """Two or three answers side by side, short: what the page opens on."""
    parts = [
        f"<article>{_question(found['caption'])}{verdict(found['answer'])}"
        f"{_results(gallery, found['answer'], 'images')}</article>"
        for found in answers
    ]
    return f'<section class="halo-contrast">{"".join(parts)}</section>'


def verdict(said):
    """The word and the sentence."""
    kind = "declined" if said["verdict"] in REFUSED else said["verdict"]
    number = said["wanted"] if said["probability"] is None else said["probability"]
    level = _WORDS[said["verdict"]] + ("" if number is None else f" · {100 * number:.0f} %")
    level, reason = escape(level), escape(said["reason"])
    return (
        f'<div class="halo-verdict halo-is-{kind}"><p class="halo-level">{level}</p>'
        f'<h2 class="halo-sentence">{reason}</h2></div>'
    )


def _question(caption):
    text = escape(caption)
    return (
        f'<button type="button" class="halo-question" data-ask="{text}" data-key="q{text}">'
        f"“{text}”</button>"
    )


def _words(found, kept):
    """A caption's words as buttons; a word is left out by pressing it."""
    words, places = kept or (found["caption"].split(), None)
    if len(words) < 2:
        return ""
    chips = [
        f'<button type="button" class="halo-chip" '
        f'aria-pressed="{str(places is None or place in places).lower()}" '
        f'data-word="{place}" data-key="w{place}">{escape(word)}</button>'
        for place, word in enumerate(words)
    ]
    return (
        '<div class="halo-chips" role="group" aria-label="Words of the question: press one to '
        f'leave it out or put it back">{"".join(chips)}</div>'
    )


def _results(gallery, said, side):
    """The results; those of a refused question are grey."""
    if not said["results"]:
        return ""
    html = results(gallery, said, side)
    return f'<div class="halo-refused">{html}</div>' if said["verdict"] in REFUSED else html


def _enough(said):
    """How many results hold the one wanted item, of a question that wants one."""
    if said["first_k"] is None:
        return ""
    count = (
        "The first result holds" if said["first_k"] == 1 else f"{said['first_k']:,} results hold"
    )
    return f"<p>{escape(count)} the one wanted item 9 times in 10.</p>"


def _why(gallery, said, asked, side, similarity, caption=None):
    link = (
        "" if caption is None else f'<p><a href="?q={quote(caption)}">Link to this question</a></p>'
    )
    return (
        f'<details class="halo-why"><summary>Why?</summary>'
        f"<p>{escape(_source(gallery.retriever(asked, similarity)))}</p>{_enough(said)}"
        f"{certainty(gallery, said, asked)}{numbers(gallery, said, side)}{link}</details>"
    )


def _source(retriever):
    """What the verdict rests on, in a sentence."""
    confidence = retriever.confidence
    if confidence is None:
        why_not = retriever.judge.why_not
        return f"There is no probability: {why_not.rstrip('.')}."
    learnt = (
        f"Learnt from {confidence.num_queries:,} held-out questions whose answers are known, each "
        f"asked among these {len(retriever):,} items with its own answer put there"
    )
    fits = retriever.judge.fits
    return f"{learnt}." if fits is None else f"{learnt}, and from {fits.source} for what else fits."
