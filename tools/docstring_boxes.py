"""Griffe's extension: `Reference: …` of a docstring is a box of that name on the site.

Docstrings have these parts in a line or as a paragraph that begins with the name. Griffe makes a
box of an indented block alone: of the others it takes the first line for the box's heading, or the
whole for text. What is named here is written as a block before it is parsed.
"""

import re

import griffe

LISTS = ("Call arguments", "Class attributes")  # of names, which would run together otherwise
BOXES = ("Reference", "Relations", "Released code differs", "Paper differs", "Assumptions")
BOXES += ("Output", *LISTS)
_BEGIN = re.compile(rf"^({'|'.join(BOXES)}):(?: +(\S.*))?$")
_ARGUMENT = re.compile(r"^([a-z][\w, *]*): (?=\S)")


class DocstringBoxes(griffe.Extension):
    """Rewrites the docstring of every object that is loaded."""

    def on_object(self, *, obj, loader, **kwargs):
        if obj.docstring:
            obj.docstring.value = boxed(obj.docstring.value)


def boxed(text):
    """A docstring whose named parts are indented blocks."""
    lines, box = [], None
    for line in text.splitlines():
        begin = _BEGIN.match(line)
        if begin:
            box = begin[1]
            lines += ["", f"{box}:"] if lines and lines[-1].strip() else [f"{box}:"]
            line = begin[2] or None
            inline = line is not None
            if not inline:
                continue
        elif not line.strip() or (box and not inline and not line.startswith("    ")):
            box = None
        if box:
            line = line.strip() if inline else line[4:]
            if box in LISTS and _ARGUMENT.match(line):
                line = _ARGUMENT.sub(r"- `\1`: ", line)
            line = f"    {line}"
        lines.append(line)
    return "\n".join(lines)
