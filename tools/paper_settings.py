"""Each setting of the papers' commands with the sentence that prints it: docs/models/settings.csv.

    python -m tools.paper_settings --out docs/models/settings.csv

`--help` of a recipe has all of its settings, with their sources.
"""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import halo_zoo
from tools import paper_sources
from zoo import cli
from zoo.cli import setting
from zoo.files.atomic import write_text

RECIPES = str(halo_zoo.applications_folder() / "recipes")
if RECIPES not in sys.path:
    sys.path.append(RECIPES)  # they are scripts beside each other


class System(NamedTuple):
    """A recipe's settings for some builders."""

    title: str  # of the row
    builders: tuple  # names in `zoo.models`
    recipe: str  # the script
    flags: str  # what makes the real data's command of it
    settings: str | None = None  # the module that has `Settings`, if another


COCO = "--data-dir coco"
CLIP = "--backbone vit_b_32 --weights clip.safetensors --bpe bpe_simple_vocab_16e6.txt.gz"
IMAGENET = "--image-weights imagenet"
GLOVE = "--glove glove.840B.300d.txt"
BENCHMARK = "--annotations-dir eccv_caption"
BERT = "--bert bert_base --bert-vocabulary vocab.txt"
SYSTEMS = (
    System("PCME, CUB", ("pcme",), "pcme_cub", f"--data-dir CUB_200_2011 {IMAGENET} {GLOVE}"),
    System("PCME, COCO", ("pcme",), "pcme_coco", f"{COCO} {IMAGENET} {GLOVE} {BENCHMARK}"),
    System(
        "PCME in the plane, CUB",
        ("pcme",),
        "pcme_2d",
        f"--data-dir CUB_200_2011 {IMAGENET} {GLOVE}",
    ),
    System(
        "PCME++ and its baselines, COCO",
        ("pcmepp", "infonce", "vse_infinity"),
        "pcmepp_coco",
        f"{COCO} {CLIP} {BENCHMARK} [--method infonce|vse_infinity|pcme|mean_only|wasserstein_2]",
        "pcmepp_settings",
    ),
    System(
        "PCME++ and InfoNCE, RedCaps",
        ("pcmepp", "infonce"),
        "pcmepp_redcaps",
        "--data-dir redcaps --classes-dir CUB_200_2011 --bpe bpe_simple_vocab_16e6.txt.gz "
        "[--method infonce]",
    ),
    System(
        "VSE0 and VSE++, COCO",
        ("vse0", "vsepp"),
        "vse_coco",
        f"{COCO} {IMAGENET} {BENCHMARK} [--mining sum]",
    ),
    System(
        "Gaussian VSE++, COCO",
        ("gaussian_vsepp", "gaussian"),
        "gaussian_vsepp_coco",
        f"{COCO} {IMAGENET} {BENCHMARK}",
    ),
    System(
        "Gaussian VSE++, Flickr30K",
        ("gaussian_vsepp",),
        "gaussian_vsepp_flickr30k",
        f"--data-dir flickr30k {IMAGENET}",
    ),
    System("VSRN, Flickr30K", ("vsrn",), "vsrn_flickr30k", "--data-dir f30k_precomp"),
    System(
        "Gaussian VSRN, Flickr30K",
        ("gaussian_vsrn",),
        "gaussian_vsrn_flickr30k",
        "--data-dir f30k_precomp",
    ),
    System(
        "DivE and PVSE, COCO",
        ("dive", "pvse"),
        "dive_coco",
        f"--data-dir coco_precomp --features regions {GLOVE} {BENCHMARK} [--method pvse]",
    ),
    System(
        "DivE on ResNet-152, COCO",
        ("dive",),
        "dive_coco",
        f"{COCO} {IMAGENET} {GLOVE} {BENCHMARK}",
    ),
    System(
        "DivE on ResNeXt-101 and BERT, COCO",
        ("dive",),
        "dive_coco",
        f"{COCO} --features resnext_bert --image-weights resnext101_32x8d.safetensors {BERT} "
        f"{BENCHMARK}",
    ),
    System(
        "DivE, Flickr30K",
        ("dive",),
        "dive_flickr30k",
        f"--data-dir f30k_precomp --features regions {GLOVE}",
    ),
    System("PVSE, CUB", ("pvse",), "pvse_cub", f"--data-dir CUB_200_2011 {IMAGENET}"),
    System(
        "PCME-BERT with DAA, CUB",
        ("pcme_bert",),
        "daa_cub",
        f"--data-dir CUB_200_2011 {IMAGENET} {BERT}",
    ),
    System(
        "PCME-BERT with DAA, COCO",
        ("pcme_bert",),
        "daa_coco",
        f"{COCO} {IMAGENET} {BERT} {BENCHMARK}",
    ),
    System(
        "SAF, SGR and SGRAF with DAA, Flickr30K",
        ("sgraf",),
        "daa_sgraf_flickr30k",
        "--data-dir f30k_precomp --module saf|sgr",
    ),
)
# Without a section of their own: another's settings but for one.
MORE = (
    System("PCME++, noisy COCO", (), "pcmepp_noisy_coco", f"{COCO} {CLIP} {BENCHMARK}"),
    System(
        "PCME on CLIP, COCO",
        (),
        "pcmepp_coco",
        f"{COCO} {CLIP} --method pcme {BENCHMARK}",
        "pcmepp_settings",
    ),
    System("VSE0 and VSE++, Flickr30K", (), "vse_flickr30k", f"--data-dir flickr30k {IMAGENET}"),
)
STUDIES = ("toy_2d", "similarity_flops", "ablations", "daa_figures", "plausible_matches")
STUDIES += ("crop_ambiguity",)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to write."""

    out: Path | None = setting(None, "CSV file to write; default: print it")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.out is None:
        print(table(), end="")
    else:
        write_text(settings.out, table())


def table():
    """What the papers say of each setting, and what differs, as CSV."""
    return paper_sources.table(commands_of_papers(), value)


def commands_of_papers():
    """`[(title, settings)]` of all commands of the papers, and of the studies' defaults."""
    of = [
        (system.title, of_paper(settings_of(system), system.flags)) for system in (*SYSTEMS, *MORE)
    ]
    return of + [(name, importlib.import_module(f"studies.{name}").Settings) for name in STUDIES]


def variants(system):
    """The flags of each command of a system, its own first."""
    start, _, optional = system.flags.partition(" [")
    if not optional and "|" not in start:
        return [start]
    flag, choices = (optional.rstrip("]") or start).split()[-2:]
    first, *others = choices.split("|")
    if optional:
        return [start, *(f"{start} {flag} {value}" for value in (first, *others))]
    start = start.rpartition(" ")[0]
    return [f"{start} {value}" for value in (first, *others)]


def settings_of(system):
    return importlib.import_module(system.settings or system.recipe).Settings


def of_paper(settings_class, flags):
    """The settings that a command of the page has, without what it leaves to choose."""
    return cli.parse(settings_class, first_of(flags).split())


def first_of(flags):
    """The flags without the optional ones, and with the first of several values."""
    return flags.partition(" [")[0].partition("|")[0]


def value(default):
    """A default as a cell."""
    if isinstance(default, bool) or default is None:
        return {True: "yes", False: "no", None: "none"}[default]
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


if __name__ == "__main__":
    cli.run(main)
