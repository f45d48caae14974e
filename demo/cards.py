"""Answers as HTML. Every text that comes from outside is escaped here."""

import html

import numpy as np

from demo.reference import number

_BINS = 40


def escape(text):
    """Text for HTML, in elements and in attributes; a percent sign stays with its number."""
    return html.escape(str(text), quote=True).replace(" %", "\u00a0%")


def note(text, kind="plain"):
    """A sentence in a box; `kind` is plain, warning or error."""
    return f'<p class="halo-note halo-{kind}">{escape(text)}</p>'


def results(gallery, answer, side):
    """The items of an answer, images as a grid, captions as a list."""
    items = [_result(gallery, result, side) for result in answer["results"]]
    kind = "halo-images" if side == "images" else "halo-captions"
    return f'<ol class="halo-results {kind}">{"".join(items)}</ol>'


def certainty(gallery, answer, side, decline_above=100.0):
    """A query's uncertainty: the sentence, and its place among those of the gallery.

    Args:
        gallery: a `Gallery`.
        answer: a dict with `uncertainty`, `uncertainty_percentile` and `meaning`.
        side: what the query is, `"captions"` or `"images"`.
        decline_above: percentile that is marked in the distribution; 100 marks none.
    """
    sentence = f"<p>{escape(answer['meaning'])}</p>"
    reference, value = gallery.references.get(side), answer["uncertainty"]
    if reference is None or value is None:
        return f'<div class="halo-certainty">{sentence}</div>'
    return (
        f'<div class="halo-certainty">{sentence}{_histogram(reference, value, decline_above)}</div>'
    )


def declined(answer, decline_above, reference, text_answer=None):
    """Why there is no answer, and what would narrow the question down."""
    share = answer["uncertainty_percentile"]
    parts = [
        "<h3>Too ambiguous to answer</h3>",
        f"<p>It is less certain than {share:.0f} % of the gallery; above {decline_above:.0f} % "
        "this demo declines. You can raise that limit under Settings.</p>",
    ]
    if text_answer is not None:
        parts.append("<p><strong>Here is what would narrow it down:</strong></p>")
        parts.append(suggestions(text_answer, reference))
    return f'<section class="halo-declined" aria-label="No answer">{"".join(parts)}</section>'


def suggestions(text_answer, reference):
    """Words whose addition or removal makes a caption most certain."""
    more, fewer = (text_answer[f"{how}_that_narrow_it_down"] for how in ("additions", "omissions"))
    lines = [(f"add “{change['words']}”", change) for change in more[:3]]
    lines += [(f"leave out “{change['words']}”", change) for change in fewer]
    if not lines:
        return note("No word that was tried makes it more certain.")
    items = "".join(
        f"<li>{escape(what)} <span>{escape(reference.change(change['change']))}</span>"
        f"<q>{escape(change['caption'])}</q></li>"
        for what, change in lines
    )
    return f'<ul class="halo-suggestions">{items}</ul>'


def words(text_answer, reference):
    """The words of a caption, each with what leaving it out does to the uncertainty."""
    changes = text_answer["without_each_word"]
    if not changes:
        return note("One word alone cannot be taken apart.")
    most = max(abs(change["change"]) for change in changes) or 1.0
    chips = []
    for change in changes:
        strength = abs(change["change"]) / most
        kind = "more" if change["change"] > 0 else "less"
        chips.append(
            f'<li class="halo-word halo-{kind}" style="--strength:{strength:.2f}">'
            f"<b>{escape(change['words'])}</b><span>{escape(reference.change(change['change']))}</span></li>"
        )
    return (
        f"<p>{escape(reference.symbol)} without each word. Where it <b>rises</b> (solid edge), the "
        "word made the caption more certain; where it falls (dashed edge), less.</p>"
        f'<ul class="halo-words">{"".join(chips)}</ul>'
    )


def _result(gallery, result, side):
    facts = [f"similarity {number(result['similarity'])}"]
    probability = result["match_probability"]
    if probability is not None:
        facts.append(f"match {100 * probability:.0f} %" if probability >= 0.005 else "match < 1 %")
    shown = f"<span>{escape(' · '.join(facts))}</span>"
    bar = _bar(gallery.references.get(side), result)
    if side == "captions":
        return f"<li><p>{escape(result['name'])}</p><div>{shown}{bar}</div></li>"
    said = f"Result {result['rank']}: {gallery.describe(result['item'])}"
    source = gallery.thumbnail(result["item"])
    return (
        f'<li><figure><img src="{source}" alt="{escape(said)}" loading="lazy">'
        f"<figcaption><p>{result['rank']}. {escape(result['name'])}</p>{shown}{bar}</figcaption>"
        "</figure></li>"
    )


def _bar(reference, result):
    """An item's uncertainty on the scale of its side: all, the middle half, the median, itself."""
    if reference is None:
        return ""
    value, share = result["uncertainty"], result["uncertainty_percentile"]
    low, high = reference.span()
    quarter, middle, upper = (reference.value_at(p) for p in (25, 50, 75))

    def place(x):
        return 100 * float(np.clip((x - low) / ((high - low) or 1.0), 0, 1))

    said = f"{reference.symbol} {number(value)}, less certain than {share:.0f} %"
    return (
        f'<div class="halo-bar" role="img" aria-label="{escape(said)}">'
        f'<i style="left:{place(quarter):.1f}%;right:{100 - place(upper):.1f}%"></i>'
        f'<u style="left:{place(middle):.1f}%"></u><b style="left:{place(value):.1f}%"></b></div>'
        f"<small>{escape(said)}</small>"
    )


def _histogram(reference, value, decline_above):
    """The gallery's uncertainties as an SVG, with the query and the limit marked."""
    low, high = reference.span()
    low, high = min(low, value), max(high, value)
    counts, edges = np.histogram(reference.values, _BINS, (low, high if high > low else low + 1))
    tall = 100 / max(counts.max(), 1)
    width = 400 / _BINS
    bars = "".join(
        f'<rect x="{i * width:.1f}" y="{100 - n * tall:.1f}" width="{width - 1:.1f}" '
        f'height="{n * tall:.1f}"/>'
        for i, n in enumerate(counts)
    )

    def x(v):
        return 400 * float(np.clip((v - edges[0]) / (edges[-1] - edges[0]), 0.005, 0.995))

    marks = f'<line class="halo-query" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" y2="100"/>'
    limit = ""
    if decline_above < 100:
        at = x(reference.value_at(decline_above))
        marks += f'<line class="halo-limit" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="100"/>'
        limit = f'<span class="halo-key halo-limit-key">declines above {decline_above:.0f} %</span>'
    said = f"Distribution of {reference.symbol} over the gallery's {reference.side}; "
    said += f"this one at {number(value)}"
    return (
        f'<figure class="halo-histogram"><svg viewBox="0 0 400 100" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(said)}">{bars}{marks}</svg>'
        f"<figcaption><span>{number(low)}</span>"
        f'<span class="halo-key halo-query-key">this one</span>{limit}'
        f"<span>{number(high)}</span></figcaption></figure>"
    )
