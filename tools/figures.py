"""Writes the figures that pages show, from the presets' cards.

    python -m tools.figures            # `make figures`
    python -m tools.figures --check    # exit code 2 where a page differs

A page has the lines `<!-- NAME: begin -->` and `<!-- NAME: end -->`; what lies between them is
replaced. So the README, the pages and the cards cannot differ.
"""

import csv
from pathlib import Path

from halo_search import presets
from halo_search.errors import InputError
from halo_search.files.atomic import write_text
from zoo.cli import OneLineParser, run
from zoo.models.preset_folder import model_card
from zoo.presets import list_presets

ROOT = Path(__file__).parent.parent
ON = {  # by how a preset's name begins
    "photos": "1,000 photos of Flickr8k",
    "birds": "33 unseen species of birds",
    "toy": "30 unseen classes of drawn birds",
}
EMBEDDING = {"pfe": "Gaussian", "pcme": "Gaussian", "points": "point", "infonce": "point"}
EMBEDDING |= {"dive": "set"}  # by how a preset's name ends
SPEED = ROOT / "docs" / "results" / "tables" / "preset_speed.csv"  # of `tools.preset_speed`


def presets_table() -> str:
    """R@1 of each preset on its own test split, with chance, as a table in Markdown."""
    lines = [
        "| Preset | Test data | R@1 image → text, % | R@1 text → image, % | Chance, % | In the |",
        "|---|---|---|---|---|---|",
    ]
    for name, card in list_presets().items():
        results, chance = card["metrics"], card["chance"]
        values = (results["i2t_recall@1"], results["t2i_recall@1"], chance["t2i_recall@1"])
        data = ON[name.partition("_")[0]]
        place = "package" if presets.towers_of(name) else "repository"
        cells = [f"`{name}`", data, *(f"{value:.1f}" for value in values), place]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def sizes_table() -> str:
    """Embedding, size and speed of each preset, as a table in Markdown."""
    with SPEED.open(encoding="utf-8", newline="") as file:
        speed = dict(list(csv.reader(file))[1:])
    lines = [
        "| Preset | Embedding | MB | Photos per CPU-second | R@1 i2t / t2i, % | Chance, % |",
        "|---|---|---|---|---|---|",
    ]
    for name, card in list_presets().items():
        size = sum(path.stat().st_size for path in presets.folder_of(name).rglob("*"))
        results, chance = card["metrics"], card["chance"]["t2i_recall@1"]
        recall = f"{results['i2t_recall@1']:.1f} / {results['t2i_recall@1']:.1f}"
        cells = [f"`{name}`", EMBEDDING[name.rpartition("_")[2]], f"{size / 1e6:.1f}"]
        lines.append(f"| {' | '.join([*cells, speed[name], recall, f'{chance:.1f}'])} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """What every generated page and card should hold."""
    readme, hosted = ROOT / "README.md", ROOT / "docs/models/hosted.md"
    blocks = {readme: between(readme, "presets", presets_table())}
    blocks[hosted] = between(hosted, "sizes", sizes_table())
    for name, card in list_presets().items():
        text = {key: value for key, value in card.items() if key != "installed"}
        blocks[presets.folder_of(name) / "README.md"] = model_card(text)
    return blocks


def between(path: Path, name: str, text: str) -> str:
    """A page with `text` between its two marks."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = path.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1:
        raise InputError(f"{path}: expected the lines {begin} and {end}, each once")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}{end}{rest.split(end)[1]}"


def main(argv=None):
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    options = parser.parse_args(argv)
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            if options.check:
                raise InputError(f"{path}: differs from the presets' cards; run `make figures`")
            write_text(path, text)
            print(path)


if __name__ == "__main__":
    run(main)
