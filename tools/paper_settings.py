"""Each setting of the papers' commands with the sentence that prints it: docs/models/settings.csv.

    python -m tools.paper_settings --out docs/models/settings.csv

`--help` of a recipe has all of its settings, with their sources.
"""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

import halo_zoo
from tools import paper_sources
from zoo import cli
from zoo.cli import setting
from zoo.files.atomic import write_text

RECIPES = str(halo_zoo.applications_folder() / "recipes")
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
    of = [(title, settings_of(*command.split())) for title, command in SYSTEMS.items()]
    return of + [(name, importlib.import_module(f"studies.{name}").Settings) for name in STUDIES]


def settings_of(recipe, *flags):
    """The settings of a recipe's command."""
    return cli.parse(importlib.import_module(recipe).Settings, flags)


def value(default):
    """A default as a cell."""
    if isinstance(default, bool) or default is None:
        return {True: "yes", False: "no", None: "none"}[default]
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


if __name__ == "__main__":
    cli.run(main)
