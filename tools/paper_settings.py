"""Each setting of the papers' commands with the sentence that prints it: docs/models/settings.csv.

    python -m tools.paper_settings > docs/models/settings.csv

`paper_sentences.toml` has the sentences; names, sources and values are of the recipes, whose
`--help` has all of them.
"""

import csv
import dataclasses
import importlib
import io
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import halo_search.cli.main
from zoo import cli
from zoo.training.settings import RunSettings

RECIPES = str(halo_search.cli.main.applications_folder() / "recipes")
if RECIPES not in sys.path:
    sys.path.append(RECIPES)  # they are scripts beside each other

CUB, COCO = "--data-dir CUB_200_2011", "--data-dir coco"
PHOTOS, REGIONS = "--data-dir flickr30k", "--data-dir f30k_precomp"
IMAGENET, GLOVE = "--image-weights imagenet", "--glove glove.840B.300d.txt"
BENCHMARK = "--annotations-dir eccv_caption"
BERT = "--bert bert_base --bert-vocabulary vocab.txt"
BPE = "--bpe bpe_simple_vocab_16e6.txt.gz"
CLIP = f"{COCO} --backbone vit_b_32 --weights clip.safetensors {BPE} {BENCHMARK}"
REDCAPS = f"--data-dir redcaps --classes-dir CUB_200_2011 {BPE}"
VECTORS = "--data-dir coco_precomp --features regions"
RESNEXT = "--features resnext_bert --image-weights resnext101_32x8d.safetensors"
SYSTEMS = {  # title: a recipe and its flags on the real data
    "PCME, CUB": f"pcme_cub {CUB} {IMAGENET} {GLOVE}",
    "PCME, COCO": f"pcme_coco {COCO} {IMAGENET} {GLOVE} {BENCHMARK}",
    "PCME in the plane, CUB": f"pcme_2d {CUB} {IMAGENET} {GLOVE}",
    "PCME++ and its baselines, COCO": f"pcmepp_coco {CLIP}",
    "PCME++ and InfoNCE, RedCaps": f"pcmepp_redcaps {REDCAPS}",
    "VSE0 and VSE++, COCO": f"vse_coco {COCO} {IMAGENET} {BENCHMARK}",
    "Gaussian VSE++, COCO": f"gaussian_vsepp_coco {COCO} {IMAGENET} {BENCHMARK}",
    "Gaussian VSE++, Flickr30K": f"gaussian_vsepp_flickr30k {PHOTOS} {IMAGENET}",
    "VSRN, Flickr30K": f"vsrn_flickr30k {REGIONS}",
    "Gaussian VSRN, Flickr30K": f"gaussian_vsrn_flickr30k {REGIONS}",
    "DivE and PVSE, COCO": f"dive_coco {VECTORS} {GLOVE} {BENCHMARK}",
    "DivE on ResNet-152, COCO": f"dive_coco {COCO} {IMAGENET} {GLOVE} {BENCHMARK}",
    "DivE on ResNeXt-101 and BERT, COCO": f"dive_coco {COCO} {RESNEXT} {BERT} {BENCHMARK}",
    "DivE, Flickr30K": f"dive_flickr30k {REGIONS} --features regions {GLOVE}",
    "PVSE, CUB": f"pvse_cub {CUB} {IMAGENET}",
    "PCME-BERT with DAA, CUB": f"daa_cub {CUB} {IMAGENET} {BERT}",
    "PCME-BERT with DAA, COCO": f"daa_coco {COCO} {IMAGENET} {BERT} {BENCHMARK}",
    "SAF, SGR and SGRAF with DAA, Flickr30K": f"daa_sgraf_flickr30k {REGIONS} --module saf",
    "PCME++, noisy COCO": f"pcmepp_noisy_coco {CLIP}",
    "PCME on CLIP, COCO": f"pcmepp_coco {CLIP} --method pcme",
    "VSE0 and VSE++, Flickr30K": f"vse_flickr30k {PHOTOS} {IMAGENET}",
}
STUDIES = ("toy_2d", "similarity_flops", "ablations", "daa_figures", "plausible_matches")
STUDIES += ("crop_ambiguity",)
PAPERS = ("PCME", "Pishdad et al.", "DAA", "PCME++", "DivE")
SENTENCES = Path(__file__).with_name("paper_sentences.toml")
# How a machine works, not what it learns.
NO_SETTINGS = {"run", "skip_bad", "cache_features"}
OF_DAA = {"daa_weight", "daa_temperature", "daa_samples", "semantics", "semantic_temperature"}
OF_DAA |= {"smooth_ap_weight", "asp"}  # flags of every retrieval model; the paper's where it is on
COLUMNS = ("paper", "place", "sentence", "note", "setting", "value", "commands")


def table():
    """The table as CSV: one line per value of a setting, with the place that prints it."""
    commands = commands_of_papers()
    values, text = settings_table(commands), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sentence, name, by_value in sorted(rows(values), key=_paper):
        paper, _, place = sentence.source.partition(", ")
        quoted = paper in PAPERS and place != "released code"
        sentence_cells = (sentence.text, sentence.note)
        if not quoted:
            sentence_cells = ("", " ".join(filter(None, (f"{sentence.text}.", sentence.note))))
        writer.writerows(
            (paper, place, *sentence_cells, f"--{_flag(name)}", *cells)
            for cells in _cells(by_value)
        )
    for (place, name), by_value in sorted(values.items()):
        if not place:
            writer.writerows(
                ("ours", "", "", "", f"--{_flag(name)}", *cells) for cells in _cells(by_value)
            )
    titles = {title for title, _ in commands}
    for difference in entries("difference"):
        unknown = set(difference.commands) - titles
        if unknown:
            raise ValueError(
                f"{SENTENCES.name}: {difference.part}: no command {', '.join(unknown)}"
            )
        paper, _, place = difference.source.partition(", ")
        sentence_cells = f"{difference.released}. {difference.reason}."
        of = " · ".join(difference.commands) or "all"
        writer.writerow(
            (paper, place, "", sentence_cells, f"differs: {difference.part}", difference.ours, of)
        )
    return text.getvalue()


def commands_of_papers():
    """`[(title, settings)]` of all commands of the papers, and of the studies' defaults."""
    of = [(title, settings_of(*command.split())) for title, command in SYSTEMS.items()]
    return of + [(name, importlib.import_module(f"studies.{name}").Settings) for name in STUDIES]


def settings_of(recipe, *flags):
    """The settings of a recipe's command."""
    return cli.parse(importlib.import_module(recipe).Settings, flags)


def _shown(default):
    """A default as a cell."""
    if isinstance(default, bool) or default is None:
        return {True: "yes", False: "no", None: "none"}[default]
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def entries(kind):
    """The `[[sentence]]`s or `[[difference]]`s of the file, in its order."""
    rows = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))[kind]
    return [SimpleNamespace(**{"note": "", **entry}) for entry in rows]


def sources(source):
    """Each of the places that a setting's `source` names."""
    return [place for place in source.split("; ") if place]


def settings_table(commands):
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


def _paper(row):
    """The five papers first, each in the order of the file."""
    paper = row[0].source.partition(", ")[0]
    return (PAPERS.index(paper), "") if paper in PAPERS else (len(PAPERS), paper)


def _flag(name):
    return name.replace("_", "-")


def _cells(by_value):
    """Each value with the commands that have it."""
    return [(_shown(value), " · ".join(titles)) for value, titles in by_value.items()]


if __name__ == "__main__":
    print(table(), end="")
