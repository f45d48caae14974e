"""Results as HTML. Every text that comes from outside is escaped here."""

import html

import numpy as np

from demo.reference import number

_BINS = 40


def escape(text):
    """Text for HTML, in elements and in attributes; a percent sign stays with its number."""
    return html.escape(str(text), quote=True).replace(" %", "\u00a0%")


def note(text, kind="plain"):
    """A sentence in a box; `kind` is plain, warning or error."""
    role = ' role="alert"' if kind == "error" else ""
    return f'<p class="halo-note halo-{kind}"{role}>{escape(text)}</p>'


def results(gallery, answer, side):
    """The items of an answer, images as a grid, captions as a list; pale from where none fits."""
    last = len(answer["results"]) if answer["fitting"] is None else answer["fitting"]
    items = [_result(gallery, result, side, result["rank"] > last) for result in answer["results"]]
    kind = "halo-images" if side == "images" else "halo-captions"
    return f'<ol class="halo-results {kind}">{"".join(items)}</ol>'


def _result(gallery, result, side, is_past):
    bar, mark, item = *_fits(result), '<li class="halo-past">' if is_past else "<li>"
    if result["right"] is not None:
        said, sign = ("right", "✓") if result["right"] else ("wrong", "✗")
        mark += f'<b class="halo-mark halo-{said}"><i aria-hidden="true">{sign}</i> {said}</b>'
    if side == "captions":
        return f"{item}{bar}<div><p>{escape(result['name'])}</p>{mark}</div></li>"
    said = f"Result {result['rank']}: {gallery.describe(result['item'])}"
    shown = picture(gallery.thumbnail(result["item"]), said, 'width="320" height="320"')
    name = f"<p>{escape(result['name'])}</p>"
    if gallery.credits is not None:
        name = _credit(gallery.credits[result["item"]])
    return f"{item}<figure>{shown}{bar}<figcaption>{name}{mark}</figcaption></figure></li>"


def _fits(result):
    """`(bar, number)` of how likely a result fits, each "" where that is not known."""
    if result["fits"] is None:
        return "", ""
    share = 100 * result["fits"]
    bar = f'<i class="halo-bar" aria-hidden="true"><b style="width:{share:.0f}%"></b></i>'
    return bar, f'<span class="halo-fits">fits {escape(f"{share:.0f} %")}</span>'


def _credit(credit):
    """Whose photo it is: on the card's lower edge, where hovering and touching find it."""
    said = f"Photo {credit.flickr_id} of Flickr, {credit.licence}"
    return (
        f'<a class="halo-credit" href="{escape(credit.page)}" title="{escape(said)}" '
        f'target="_blank" rel="noopener noreferrer">{escape(credit.licence)}</a>'
    )


def picture(source, said, attributes=""):
    """An `img` of a `Gallery.thumbnail`, or nothing where there is no picture."""
    if not source:
        return ""
    # An address of somebody else's is not told where it was asked from.
    return f'<img src="{source}" alt="{escape(said)}" referrerpolicy="no-referrer" {attributes}>'


def numbers(gallery, answer, side):
    """The figures of an answer's results as a table."""
    if not answer["results"]:
        return ""
    reference = gallery.references.get(side)
    heads = ["Result", "Similarity"]
    rows = [[str(one["rank"]), number(one["similarity"])] for one in answer["results"]]
    if reference is not None:
        heads.append(f"{reference.symbol}, less certain than")
        for row, one in zip(rows, answer["results"], strict=True):
            row.append(f"{number(one['uncertainty'])}, {one['uncertainty_percentile']:.0f} %")
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(v)}</td>' for v in row)}</tr>" for row in rows)
    return (
        f'<div class="halo-table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def certainty(gallery, answer, side):
    """A query's uncertainty: the sentence, and its place among those of the gallery's side."""
    sentence = f"<p>{escape(answer['meaning'])}</p>"
    reference, value = gallery.references.get(side), answer["uncertainty"]
    if reference is None or value is None:
        return f'<div class="halo-certainty">{sentence}</div>'
    return f'<div class="halo-certainty">{sentence}{_histogram(reference, value)}</div>'


def _histogram(reference, value):
    """The distribution of a side's uncertainties with one value in it."""
    low, high = reference.span()
    low, high = min(low, value), max(high, value)
    high = high if high > low else low + 1
    counts = np.histogram(reference.values, _BINS, (low, high))[0]

    def x(at):
        return 400 * float(np.clip((at - low) / (high - low), 0.005, 0.995))

    width = 400 / _BINS
    bars = "".join(
        f'<rect x="{i * width:.1f}" y="{100 - 96 * count / counts.max():.1f}" '
        f'width="{width - 1:.1f}" height="{96 * count / counts.max():.1f}"/>'
        for i, count in enumerate(counts)
        if count
    )
    mark = f'<line class="halo-query" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" y2="100"/>'
    said = f"Distribution of {reference.symbol} over the gallery's {reference.side}; "
    said += f"this one at {number(value)}"
    return (
        f'<figure class="halo-histogram"><svg viewBox="0 0 400 100" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(said)}">{bars}{mark}</svg>'
        f"<figcaption><span>{number(low)}</span>"
        f'<span class="halo-key">this one</span><span>{number(high)}</span></figcaption></figure>'
    )
