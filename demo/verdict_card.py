"""A verdict as HTML: how often such questions are answered rightly, words to press, and why.

What can be pressed carries what it asks for: `data-ask` a caption, `data-word` the place of a word
to leave out or put back, `data-anyway` the results of a declined query. `answer.js` hands it on.
"""

from pathlib import Path
from urllib.parse import quote

from demo import verdicts
from demo.cards import certainty, escape, numbers, results

PRESSES = (Path(__file__).parent / "answer.js").read_text(encoding="utf-8")  # of `gr.HTML`
_UNKNOWN_HELP = "Ask in words like those of the examples."


def answer(gallery, found, risk, kept=None, similarity=None):
    """What a caption finds, whole.

    Args:
        gallery: a `Gallery`.
        found: a `TextAnswer`.
        risk: by which it is declined, or None.
        kept: `(all words, places of those that were asked)`, or None for all.
        similarity: what ranked.
    """
    said = found["answer"]
    parts = [
        verdict(gallery, said, "captions", risk, similarity),
        _words(found, kept) if gallery.encoders.reads_words else "",
    ]
    if found["unknown_words"] and said["kind"] != "unknown":
        listed = ", ".join(f"“{word}”" for word in found["unknown_words"][:5])
        parts.append(f'<p class="halo-note">The model does not know {escape(listed)}.</p>')
    parts += [_results(gallery, said, "images"), _narrowing(found)]
    parts.append(_why(gallery, said, "captions", "images", similarity, found["caption"]))
    link = escape(f"?q={quote(found['caption'])}")
    return f'<section class="halo-answer" data-link="{link}">{"".join(parts)}</section>'


def image_answer(gallery, said, risk, similarity=None):
    """What an image finds, whole; arguments as of `answer`, `said` an `Answer`."""
    return "".join(
        [
            verdict(gallery, said, "images", risk, similarity),
            '<p class="halo-note">Another picture, in which more of it is seen, may help.</p>'
            if said["declined"]
            else "",
            _results(gallery, said, "captions"),
            _why(gallery, said, "images", "captions", similarity),
        ]
    )


def contrast(gallery, answers, risk):
    """Two or three answers side by side, short: what the page opens on."""
    parts = []
    for found in answers:
        said = found["answer"]
        parts.append(
            f"<article>{_question(found['caption'])}{verdict(gallery, said, 'captions', risk)}"
            f"{_narrowing(found) if said['declined'] else ''}{_results(gallery, said, 'images')}"
            "</article>"
        )
    return f'<section class="halo-contrast">{"".join(parts)}</section>'


def verdict(gallery, said, side, risk, similarity=None):
    """The sentence, large, the needle between never and always, and why there is no answer."""
    probability = said["probability"]
    if said["declined"]:
        word, kind = "No answer", "declined"
    elif probability is None:
        word, kind = "Not calibrated", "plain"
    else:
        word = verdicts.level(probability)
        kind = word.lower()
    parts = [
        f'<p class="halo-level">{word}</p>',
        f'<h2 class="halo-sentence">{escape(said["verdict"])}</h2>',
    ]
    if probability is not None:
        parts.append(_meter(probability, gallery.sureness(side, similarity).promise(risk)))
    if said["declined"]:
        parts.append(f"<p>{_declined(said)}</p>")
        if not said["results"]:
            parts.append(
                '<button type="button" class="halo-button" data-anyway="1" data-key="anyway">'
                "Show the results anyway</button>"
            )
    return f'<div class="halo-verdict halo-is-{kind}">{"".join(parts)}</div>'


def _declined(said):
    if said["kind"] == "known":
        return f"{escape(verdicts.DECLINED['unsure'])}: {escape(said['reason'])}."
    text = said["reason"][0].upper() + said["reason"][1:]
    return escape(f"{text}. {_UNKNOWN_HELP}" if said["kind"] == "unknown" else f"{text}.")


def _question(caption):
    text = escape(caption)
    return (
        f'<button type="button" class="halo-question" data-ask="{text}" data-key="q{text}">'
        f"“{text}”</button>"
    )


def _meter(probability, promise):
    at = 100 * probability
    said, mark = f"Probability {at:.0f} %", ""
    if promise is not None:
        least = 100 * promise.threshold
        how = "promised" if promise.certified else "estimated"
        said += f", answered from {least:.0f} % ({how})"
        mark = f'<u style="left:{least:.1f}%"></u>'
    return (
        f'<div class="halo-meter" role="img" aria-label="{escape(said)}">{mark}'
        f'<b style="left:{at:.1f}%"></b></div><p class="halo-scale" aria-hidden="true">'
        f"<span>never</span><span>{escape(said)}</span><span>always</span></p>"
    )


def _words(found, kept):
    """A caption's words as buttons; a word is left out by pressing it."""
    words, places = kept or (found["caption"].split(), None)
    if len(words) < 2:
        return ""
    without = iter(found["words"])
    now, chips = found["answer"]["probability"], []
    for place, word in enumerate(words):
        on = places is None or place in places
        effect = next(without, None) if on else None
        said = ""
        if effect is not None and effect["probability_without"] is not None and now is not None:
            change = round(100 * (effect["probability_without"] - now))
            if abs(change) > 1:
                said = f"<small>{change:+d} %</small>".replace("-", "−").replace(" %", "\u00a0%")
        chips.append(
            f'<button type="button" class="halo-chip" aria-pressed="{str(on).lower()}" '
            f'data-word="{place}" data-key="w{place}">{escape(word)}{said}</button>'
        )
    return (
        '<div class="halo-chips" role="group" aria-label="Words of the question: press one to '
        'leave it out or put it back; the number is what leaving it out changes">'
        f"{''.join(chips)}</div>"
    )


def _narrowing(found):
    """Additions that raise the probability, those about one thing together."""
    if not found["narrow_it_down"]:
        return ""
    lines = []
    for group in found["narrow_it_down"]:
        chips = "".join(
            f'<button type="button" class="halo-add" data-ask="{escape(one["caption"])}" '
            f'data-key="a{escape(one["words"])}">+ {escape(one["words"])} '
            f"<small>{escape(verdicts.frequency(one['probability']))}</small></button>"
            for one in group["additions"]
        )
        lines.append(chips)
    head = "What is missing" if found["answer"]["declined"] else "Make it surer"
    return (
        f'<div class="halo-narrow"><h3>{head}: press what is true of it</h3>'
        f"<div>{''.join(lines)}</div></div>"
    )


def _results(gallery, said, side):
    return results(gallery, said, side) if said["results"] else ""


def _why(gallery, said, asked, side, similarity, caption=None):
    source = gallery.sureness(asked, similarity).source
    link = (
        "" if caption is None else f'<p><a href="?q={quote(caption)}">Link to this question</a></p>'
    )
    return (
        f'<details class="halo-why"><summary>Why?</summary><p>{escape(source)}</p>'
        f"{certainty(gallery, said, asked)}{numbers(gallery, said, side)}{link}</details>"
    )
