"""Public models that open by name: what others have published of them, and what they cost."""

import csv
import json
from pathlib import Path

FILE = Path(__file__).with_name("public.csv")
COLUMNS = {
    "name": "Name",
    "parameters": "Parameters, million",
    "question": "A question, GFLOP",
    "coco": "COCO, t2i / i2t",
    "flickr": "Flickr30K, t2i / i2t",
    "source": "From",
    "licence": "Licence",
}


def add(commands):
    """The command with its flags."""
    command = commands.add_parser("models", help="public models: size, published R@1, licence")
    command.add_argument("--json", action="store_true", help="print one JSON array")
    command.set_defaults(run=show)


def show(options):
    """Prints the table."""
    print(json.dumps(public_models()) if options.json else table())


def public_models() -> list[dict[str, str]]:
    """The rows of `public.csv`. R@1 is in %, of COCO's 5,000 and Flickr30K's 1,000 test photos
    without training on them; empty is what nobody here has read. A question costs twice its tokens
    times the weights of its tower's blocks."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(in_markdown: bool = False) -> str:
    """The models, a line each, for a terminal or a page."""
    rows = []
    for row in public_models():
        for data in ("coco", "flickr"):
            row[data] = " / ".join(row[f"{data}_{way}"] for way in ("t2i", "i2t")).strip(" /")
        user, name = row["source"].split("/")[3:5] if row["source"] else ("", "")
        row["source"] = f"{user}/{name}".strip("/")
        if in_markdown:
            row["name"] = f"`{row['name']}`"
        rows.append([row[column] for column in COLUMNS])
    rows.insert(0, list(COLUMNS.values()))
    if in_markdown:
        rows.insert(1, ["---"] * len(COLUMNS))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sources = sorted({row["source"] for row in public_models()} - {""})
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, "R@1 in %, zero-shot, as read in", *sources])
