"""The page of a report: one HTML file with everything in it."""

import base64
import html
import io
import itertools

import matplotlib

from zoo.report import style

DPI = 110
_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1rem;
  color: #1b1b1b; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
p { max-width: 46rem; } nav a { margin-right: 1rem; } a { color: #0058a3; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .92rem; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
"""


def page(title, runs, foot):
    """The HTML text of a report.

    Args:
        title: of the page.
        runs: by the name of each part, which is a run or the comparison, its `Section`s with their
            figures already as PNG: pairs `(section, {text: bytes})`.
        foot: sentences about how numbers were made.

    Returns:
        A string without any reference outside itself.
    """
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{_CSS}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
    ]
    links = []
    body = []
    for part, (name, sections) in enumerate(runs.items()):
        several = len(runs) > 1
        if several:
            body.append(f'<h1 id="part-{part}">{html.escape(name)}</h1>')
            links.append(f'<a href="#part-{part}">{html.escape(name)}</a>')
        for section, pictures in sections:
            place = f"{part}-{section.name}"
            if not several:
                links.append(f'<a href="#{place}">{html.escape(section.title)}</a>')
            body += _section(section, pictures, place)
    parts.append(f'<nav aria-label="Contents">{" ".join(links)}</nav>')
    parts += body
    parts.append(f"<hr><p>{html.escape(foot)}</p></body></html>")
    return "\n".join(parts) + "\n"


def png(figure):
    """A figure as PNG bytes."""
    stream = io.BytesIO()
    with matplotlib.rc_context(style.STYLE):
        figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()


def _section(section, pictures, place):
    yield f'<section id="{place}"><h2>{html.escape(section.title)}</h2>'
    yield f"<p>{html.escape(section.text)}</p>"
    for text, contents in pictures.items():
        words = html.escape(text)
        data = base64.b64encode(contents).decode("ascii")
        yield (
            f'<figure><img alt="{words}" src="data:image/png;base64,{data}">'
            f"<figcaption>{words}</figcaption></figure>"
        )
    if section.numbers:
        yield _table("", *_number_rows(section.numbers))
    for table in section.tables:
        yield _table(table.title, table.header, table.rows)
    yield "</section>"


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


def _table(title, header, rows):
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    lines = [f'<div class="wide"><table>{caption}']
    lines.append(f"<thead><tr>{head}</tr></thead><tbody>")
    for first, *rest in rows:
        cells = "".join(f'<td class="number">{html.escape(cell)}</td>' for cell in rest)
        lines.append(f"<tr><td>{html.escape(first)}</td>{cells}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)
