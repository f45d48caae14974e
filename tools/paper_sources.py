"""What the papers say of each setting: the tables at the end of docs/models/settings.md.

`tools/paper_sentences.toml` has the sentences; names, sources and values are of the recipes.
"""

import dataclasses
import tomllib
from pathlib import Path
from typing import NamedTuple

from zoo.training.settings import RankingSettings

SENTENCES = Path(__file__).with_name("paper_sentences.toml")
CODE = "released code"
NO_SETTINGS = {
    "jobs",
    "run",
    "skip_bad",
    "cache_features",
}  # how a machine works, not what it learns
HEAD = """## What the papers say of each setting

`tools/paper_sentences.toml` has the sentences, and a test finds each in its paper. Of released code
the table names the file and the option; on GitHub it is naver-ai/pcme and naver-ai/pcmepp,
VL-Group/2022-NeurIPS-DAA, kdwonn/DivE, fartashf/vsepp (VSE++), KunpengLi1994/VSRN, Paranioar/SGRAF,
kuanghuei/SCAN, yalesong/pvse and woodfrog/vse_infty (VSE∞). Values are those of the commands above
and of the studies' defaults.
"""
OURS = """### Ours

No paper and no released code prints these values. `--help` says what each does.
"""


class Sentence(NamedTuple):
    """One entry of the file.

    Attributes:
        source: paper and place, as settings name it.
        text: the words there; "…" stands for words left out.
        settings: names, or `name=value` for that value alone.
        note: what the words leave open.
    """

    source: str
    text: str
    settings: tuple
    note: str = ""


def sentences():
    """The entries of the file, in its order."""
    entries = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))["sentence"]
    return [Sentence(**{**entry, "settings": tuple(entry["settings"])}) for entry in entries]


def sources(source):
    """Each of the places that a setting's `source` names."""
    return [place for place in source.split("; ") if place]


def found(commands):
    """`{(source, name): {value: [title]}}` of the settings; the source of ours is "".

    Args:
        commands: `[(title, settings)]`, instances or classes of settings.
    """
    every_run = {field.name for field in dataclasses.fields(RankingSettings)} | NO_SETTINGS
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
    """`[(sentence, name, {value: [title]})]`, one for each setting that a sentence names.

    Raises:
        ValueError: if a source's setting has no sentence, or a sentence no setting.
    """
    of = []
    open_ones = {(*key, value) for key, by in values.items() if key[0] for value in by}
    for sentence in sentences():
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


def tables(commands, shown):
    """The tables in Markdown.

    Args:
        commands: as in `found`.
        shown: writes a value.
    """
    values = found(commands)
    lines, paper, before = [HEAD], None, None
    for sentence, name, by_value in sorted(rows(values), key=_paper):
        if sentence.source.partition(", ")[0] != paper:
            paper = sentence.source.partition(", ")[0]
            lines.append(f"\n### {paper}\n\n| where | what it says | setting | value |")
            lines.append("|---|---|---|---|")
        place = sentence.source.partition(", ")[2]
        quoted = paper in PAPERS and place != CODE
        words = f"“{sentence.text}”" if quoted else f"{sentence.text}."
        said = " ".join(filter(None, (words, sentence.note))).replace("|", "\\|")
        where = (place, said) if sentence != before else ("", "")
        lines.append(f"| {where[0]} | {where[1]} | `--{_flag(name)}` | {_cell(by_value, shown)} |")
        before = sentence
    lines.append(f"\n{OURS}\n| setting | value |\n|---|---|")
    for (place, name), by_value in sorted(values.items()):
        if not place:
            lines.append(f"| `--{_flag(name)}` | {_cell(by_value, shown, of_whom=True)} |")
    return "\n".join(lines) + "\n"


PAPERS = ("PCME", "Pishdad et al.", "DAA", "PCME++", "DivE")


def _paper(row):
    """The five papers first, each in the order of the file."""
    paper = row[0].source.partition(", ")[0]
    return (PAPERS.index(paper), "") if paper in PAPERS else (len(PAPERS), paper)


def _flag(name):
    return name.replace("_", "-")


def _cell(by_value, shown, of_whom=False):
    """A value, or each value with the commands that have it."""
    if len(by_value) == 1 and not of_whom:
        return f"`{shown(*by_value)}`"
    return "; ".join(f"`{shown(value)}`: {' · '.join(by_value[value])}" for value in by_value)
