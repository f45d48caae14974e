"""What the papers say of each setting: docs/models/settings.csv.

`tools/paper_sentences.toml` has the sentences; names, sources and values are of the recipes.
"""

import csv
import dataclasses
import io
import tomllib
from pathlib import Path
from types import SimpleNamespace

from zoo.training.settings import RunSettings

SENTENCES = Path(__file__).with_name("paper_sentences.toml")
CODE = "released code"
# How a machine works, not what it learns.
NO_SETTINGS = {"run", "skip_bad", "cache_features"}
OF_DAA = {  # flags of every retrieval model; the paper's where DAA is on
    "daa_weight",
    "smooth_ap_weight",
    "daa_temperature",
    "semantic_temperature",
    "daa_samples",
    "semantics",
    "asp",
}
COLUMNS = ("paper", "place", "sentence", "note", "setting", "value", "commands")


def entries(kind):
    """The `[[sentence]]`s or `[[difference]]`s of the file, in its order."""
    found = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))[kind]
    return [SimpleNamespace(**{"note": "", **entry}) for entry in found]


def sources(source):
    """Each of the places that a setting's `source` names."""
    return [place for place in source.split("; ") if place]


def found(commands):
    """`{(source, name): {value: [title]}}` of the settings; the source of ours is ""."""
    every_run = {field.name for field in dataclasses.fields(RunSettings)} | OF_DAA | NO_SETTINGS
    values = {}
    for title, settings in commands:
        without_daa = not getattr(settings, "daa_weight", 0)
        for field in dataclasses.fields(settings):
            value = field.default if isinstance(settings, type) else getattr(settings, field.name)
            places = sources(field.metadata.get("source", ""))
            if field.name in every_run and (without_daa or not places):
                continue
            if not places and not isinstance(value, bool | int | float):
                continue
            if value is None or value == ():
                value = field.metadata["help"]
            for place in places or [""]:
                titles = values.setdefault((place, field.name), {}).setdefault(value, [])
                if title not in titles:
                    titles.append(title)
    return values


def rows(values):
    """`[(sentence, name, {value: [title]})]`, one for each setting that a sentence names."""
    of = []
    open_ones = {(*key, value) for key, by in values.items() if key[0] for value in by}
    for sentence in entries("sentence"):
        for entry in sentence.settings:
            name, _, only = entry.partition("=")
            by_value = values.get((sentence.source, name), {})
            if only:
                by_value = {value: at for value, at in by_value.items() if str(value) == only}
            if not by_value:
                raise ValueError(f"{SENTENCES.name}: no setting {entry} has {sentence.source}")
            of.append((sentence, name, by_value))
            open_ones -= {(sentence.source, name, value) for value in by_value}
    # Of a setting with several sources each value has one of them.
    several = {
        (name, value)
        for sentence, name, by_value in of
        for value in by_value
        if any("=" in entry and entry.split("=")[0] == name for entry in sentence.settings)
    }
    missing = sorted(str(key) for key in open_ones if key[1:] not in several)
    if missing:
        raise ValueError(f"{SENTENCES.name} has no sentence for {', '.join(missing)}")
    return of


def table(commands, shown):
    """The table as CSV: one line per value of a setting, with the place that prints it."""
    values, text = found(commands), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sentence, name, by_value in sorted(rows(values), key=_paper):
        paper, _, place = sentence.source.partition(", ")
        quoted = paper in PAPERS and place != CODE
        said = (sentence.text, sentence.note)
        if not quoted:
            said = ("", " ".join(filter(None, (f"{sentence.text}.", sentence.note))))
        writer.writerows(
            (paper, place, *said, f"--{_flag(name)}", *cells) for cells in _cells(by_value, shown)
        )
    for (place, name), by_value in sorted(values.items()):
        if not place:
            writer.writerows(
                ("ours", "", "", "", f"--{_flag(name)}", *cells)
                for cells in _cells(by_value, shown)
            )
    titles = {title for title, _ in commands}
    for one in entries("difference"):
        unknown = set(one.commands) - titles
        if unknown:
            raise ValueError(f"{SENTENCES.name}: {one.part}: no command {', '.join(unknown)}")
        paper, _, place = one.source.partition(", ")
        said = f"{one.released}. {one.reason}."
        of = " · ".join(one.commands) or "all"
        writer.writerow((paper, place, "", said, f"differs: {one.part}", one.ours, of))
    return text.getvalue()


PAPERS = ("PCME", "Pishdad et al.", "DAA", "PCME++", "DivE")


def _paper(row):
    """The five papers first, each in the order of the file."""
    paper = row[0].source.partition(", ")[0]
    return (PAPERS.index(paper), "") if paper in PAPERS else (len(PAPERS), paper)


def _flag(name):
    return name.replace("_", "-")


def _cells(by_value, shown):
    """Each value with the commands that have it."""
    return [(shown(value), " · ".join(titles)) for value, titles in by_value.items()]
