"""The report as HTML: light and dark, for any screen; all but what it opens with is folded."""

import base64
import html
import io
import itertools

import matplotlib
import numpy as np
from PIL import Image

from zoo.confidence.judge import FIT, LIKELY, UNSURE
from zoo.report import style
from zoo.report.style import darken

DPI = 110
PICTURE = 240  # pixels of a side of an example's pictures, at most
CSS = """
:root { color-scheme: light dark; --ink: #1b1b1b; --pale: #595959; --ground: #fff; --line: #ddd;
  --link: #0058a3; --good: #1a7f4b; --fair: #1d4ed8; --bad: #b45309; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e4e9; --pale: #a3a9b5; --ground: #1e2129;
  --line: #3a3e49; --link: #7db1ff; --good: #4ac27d; --fair: #7db1ff; --bad: #f0a35e; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1rem;
  color: var(--ink); background: var(--ground); overflow-wrap: break-word; }
h1 { font-size: 1.6rem; margin: .5rem 0; } h2 { font-size: 1.15rem; margin: 0; }
h3 { font-size: 1rem; margin: 1.2rem 0 .5rem; }
p { max-width: 46rem; margin: .6rem 0; } nav a { margin-right: 1rem; } a { color: var(--link); }
.verdict { font-size: 1.1rem; font-weight: 600; margin: .3rem 0; }
.pale, figcaption { color: var(--pale); font-size: .9rem; }
figure { margin: 1rem 0; min-width: 0; } img { max-width: 100%; height: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1rem; } .pair figure { margin: 0; } .pair img { width: 100%; max-width: 30rem; }
.wide { display: block; overflow-x: auto; } details .wide > img { min-width: 38rem; }
table { border-collapse: collapse; font-size: .92rem; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.short td { font-variant-numeric: tabular-nums; } .short th:first-child { min-width: 8rem; }
.examples { list-style: none; margin: 0; padding: 0; display: grid; gap: .9rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }
.examples li { border: 1px solid var(--line); border-left: 5px solid var(--bad); min-width: 0;
  border-radius: 6px; padding: .6rem .8rem; }
.examples li.likely { border-left-color: var(--good); }
.examples li.unsure { border-left-color: var(--fair); }
.examples p { margin: .15rem 0; } .examples q { font-weight: 600; }
.found { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .4rem;
  margin: .4rem 0; font-size: .85rem; } .found figure { margin: 0; }
.found img { width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: 4px; display: block; }
.faded img { opacity: .45; } .bar { display: block; height: 5px; background: var(--line); }
.bar b { display: block; height: 100%; background: var(--fair); }
.right { color: var(--good); } .wrong { color: var(--bad); }
details { border-top: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; } summary h2 { display: inline; } summary .pale { margin-left: .5rem; }
"""


def page(title, parts, foot):
    """The HTML text of a report, without any reference outside itself.

    Args:
        title: of the page.
        parts: by the name of each part, which is a run or the comparison, its `Section`s with their
            figures already drawn: pairs `(section, {text: (light PNG, dark PNG)})`. The first of
            each stands open, the others are folded.
        foot: sentences about how numbers were made.
    """
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{CSS}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
    ]
    several = len(parts) > 1
    if several:
        links = (
            f'<a href="#part-{number}">{html.escape(name)}</a>' for number, name in enumerate(parts)
        )
        lines.append(f'<nav aria-label="Contents">{" ".join(links)}</nav>')
    for number, (name, sections) in enumerate(parts.items()):
        if several:
            lines.append(f'<h1 id="part-{number}">{html.escape(name)}</h1>')
        (first, figures), *others = sections
        lines += _opened(first, figures, f"{number}-{first.name}")
        for section, figures in others:
            lines += _folded(section, figures, f"{number}-{section.name}")
    lines.append(f'<hr><p class="pale">{html.escape(foot)}</p></body></html>')
    return "\n".join(lines) + "\n"


def drawn(figure):
    """A figure as PNG bytes, on white and on a dark ground. It is dark afterwards."""
    light = _png(figure)
    darken(figure)
    return light, _png(figure)


def _png(figure):
    stream = io.BytesIO()
    with matplotlib.rc_context(style.STYLE):
        figure.savefig(stream, format="png", dpi=DPI, facecolor=figure.get_facecolor())
    return stream.getvalue()


def _opened(section, figures, place):
    """A section that is read first: sentences, a table of words, figures beside each other."""
    yield f'<section id="{place}">'
    yield from (f'<p class="verdict">{html.escape(one)}</p>' for one in section.verdicts)
    if section.text:
        yield f'<p class="pale">{html.escape(section.text)}</p>'
    for table in section.tables:
        yield _table(table.title, table.header, table.rows, "short")
    yield '<div class="pair">' + "".join(_figure(*one) for one in figures.items()) + "</div>"
    if section.numbers and not section.examples:
        yield _table("", *_number_rows(section.numbers))
    if section.examples:
        yield "<h3>Six questions, from the surest answer to the least sure</h3>"
        yield f'<ul class="examples">{"".join(_example(one) for one in section.examples)}</ul>'
    yield "</section>"


def _folded(section, figures, place):
    yield f"<details><summary><h2>{html.escape(section.title)}</h2></summary>"
    yield f'<section id="{place}">'
    yield from (f"<p><strong>{html.escape(one)}</strong></p>" for one in section.verdicts)
    yield f"<p>{html.escape(section.text)}</p>"
    yield from (_figure(*one) for one in figures.items())
    if section.numbers:
        yield _table("", *_number_rows(section.numbers))
    yield from (_table(table.title, table.header, table.rows) for table in section.tables)
    yield "</section></details>"


def _figure(text, drawings):
    words = html.escape(text)
    light, dark = (base64.b64encode(one).decode("ascii") for one in drawings)
    return (
        '<figure><picture class="wide"><source media="(prefers-color-scheme: dark)" '
        f'srcset="data:image/png;base64,{dark}"><img alt="{words}" '
        f'src="data:image/png;base64,{light}"></picture><figcaption>{words}</figcaption></figure>'
    )


def _example(one):
    is_answer = one.verdict in (LIKELY, UNSURE)
    shown = "".join(_shown(found, is_answer) for found in one.found)
    kind = one.verdict.replace(" ", "-")
    rank = "" if one.rank == 1 else f'<p class="pale">A right one is number {one.rank:,}.</p>'
    return (
        f'<li class="{kind}"><p>{one.verdict.capitalize()}</p>'
        f'<p><q>{html.escape(one.question)}</q></p><div class="found">{shown}</div>'
        f"<p>{html.escape(one.reason)}</p>{rank}</li>"
    )


def _shown(found, is_answer):
    """An item with its bar; pale where it does not fit, or nothing was answered."""
    said = ("right", "match") if found.right else ("wrong", "no match")
    mark = f'<span class="{said[0]}">{style.mark(found.right)} {said[1]}</span>'
    if found.fits is not None and is_answer:
        share = f"{100 * found.fits:.0f}\u00a0%"
        mark = f'<i class="bar"><b style="width: {100 * found.fits:.0f}%"></b></i>{share} · {mark}'
    pale = "" if is_answer and (found.fits is None or found.fits >= FIT) else ' class="faded"'
    if found.picture is None:
        return f"<div{pale}>{html.escape(found.text)}<br>{mark}</div>"
    picture = Image.fromarray(np.clip(found.picture, 0, 255).astype(np.uint8))
    picture.thumbnail((PICTURE, PICTURE))
    stream = io.BytesIO()
    picture.convert("RGB").save(stream, "JPEG", quality=85)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<figure{pale}><img alt="" src="data:image/jpeg;base64,{data}">{mark}</figure>'


def _number_rows(numbers):
    """Header and rows of a table of `Number`s, with a column of chance where one knows it."""
    with_chance = any(number.chance is not None for number in numbers)
    rows = []
    for (is_zero, unit, of), group in itertools.groupby(numbers, _zero_unit_and_of):
        group = list(group)
        if is_zero:  # one row for all
            labels = "; ".join(number.label for number in group)
            group = [group[0]._replace(label=labels)]
        for number in group:
            chance = "" if number.chance is None else f"{number.chance:{number.form}} {unit}"
            count = f"{number.estimate.n:,} {of}"
            rows.append((number.label, number.text, *([chance] if with_chance else []), count))
    chance = ["chance"] if with_chance else []
    return ("number", "value [95 % interval]", *chance, "n"), rows


def _zero_unit_and_of(number):
    is_zero = number.chance is None and not any(number.estimate[:3])
    return is_zero, number.unit, number.of


def _table(title, header, rows, kind=""):
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    number = "" if kind else ' class="number"'
    lines = [f'<div class="wide"><table class="{kind}">{caption}']
    lines.append(f"<thead><tr>{head}</tr></thead><tbody>")
    for first, *rest in rows:
        cells = "".join(f"<td{number}>{html.escape(cell)}</td>" for cell in rest)
        lines.append(f"<tr><td>{html.escape(first)}</td>{cells}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)
