"""Every builder with the settings of its paper and its command, in Markdown, from the recipes.

    python recipes/paper_settings.py                              # on the terminal
    python recipes/paper_settings.py --out docs/models/settings.md

A setting is listed if the recipe names a source for its value; `--help` of the recipe has all.
"""

import dataclasses
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from zoo import cli
from zoo.cli import setting
from zoo.files.atomic import write_text


class System(NamedTuple):
    """A recipe's settings for some builders.

    Attributes:
        title: of the section.
        builders: names in `zoo.models`.
        recipe: the script.
        flags: what makes the real data's command of it.
        settings: the module that has `Settings`, if another.
    """

    title: str
    builders: tuple
    recipe: str
    flags: str
    settings: str | None = None


COCO = "--data-dir coco"
CLIP = "--backbone vit_b_32 --weights clip.safetensors --bpe bpe_simple_vocab_16e6.txt.gz"
IMAGENET = "--image-weights imagenet"
BERT = "--bert bert_base --bert-vocabulary vocab.txt"
SYSTEMS = (
    System("PCME, CUB", ("pcme",), "pcme_cub", f"--data-dir CUB_200_2011 {IMAGENET}"),
    System(
        "PCME++ and its baselines, COCO",
        ("pcmepp", "infonce", "vse_infinity"),
        "pcmepp_coco",
        f"{COCO} {CLIP} [--method infonce|vse_infinity|pcme|mean_only|wasserstein_2]",
        "pcmepp_settings",
    ),
    System(
        "VSE0 and VSE++, COCO",
        ("vse0", "vsepp"),
        "vse_coco",
        f"{COCO} {IMAGENET} [--mining sum]",
    ),
    System(
        "Gaussian VSE++, COCO",
        ("gaussian_vsepp", "gaussian"),
        "gaussian_vsepp_coco",
        f"{COCO} {IMAGENET}",
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
        "--data-dir coco_precomp --features regions [--method pvse]",
    ),
    System(
        "DivE, Flickr30K", ("dive",), "dive_flickr30k", "--data-dir f30k_precomp --features regions"
    ),
    System("PVSE, CUB", ("pvse",), "pvse_cub", f"--data-dir CUB_200_2011 {IMAGENET}"),
    System(
        "PCME-BERT with DAA, CUB",
        ("pcme_bert",),
        "daa_cub",
        f"--data-dir CUB_200_2011 {IMAGENET} {BERT}",
    ),
    System("PCME-BERT with DAA, COCO", ("pcme_bert",), "daa_coco", f"{COCO} {IMAGENET} {BERT}"),
    System(
        "SAF, SGR and SGRAF with DAA, Flickr30K",
        ("sgraf",),
        "daa_sgraf_flickr30k",
        "--data-dir f30k_precomp --module saf|sgr",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to."""

    out: Path | None = setting(None, "Markdown file to write; default: print it")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    text = page()
    if settings.out is None:
        print(text, end="")
    else:
        write_text(settings.out, text)


def page():
    """The whole page in Markdown."""
    head = (
        "# Every builder, its paper's settings and its command\n\n"
        "Written by `python recipes/paper_settings.py --out docs/models/settings.md` from the "
        "recipes' own\ndefaults; a test compares the two. *toy*: what a run without `--data-dir` "
        "takes instead. `--help` has\nevery other flag.\n"
    )
    return "\n".join([head, *map(section, SYSTEMS)])


def section(system):
    """One recipe: its command, and the settings whose source it names."""
    module = importlib.import_module(system.settings or system.recipe)
    builders = ", ".join(f"`zoo.models.{name}`" for name in system.builders)
    lines = [
        f"## {system.title}\n",
        f"{builders}\n",
        f"```\npython recipes/{system.recipe}.py {system.flags}\n```\n",
        "| setting | paper | toy | source |",
        "|---|---|---|---|",
    ]
    for field in dataclasses.fields(module.Settings):
        source = field.metadata.get("source", "")
        of_daa = source.startswith("DAA")  # every recipe has DAA's flags
        if source and (not of_daa or "DAA" in system.title):
            toy = value(field.metadata["toy"]) if "toy" in field.metadata else ""
            name = field.name.replace("_", "-")
            lines.append(f"| `--{name}` | {value(field.default)} | {toy} | {source} |")
    return "\n".join(lines) + "\n"


def value(default):
    """A default as a cell."""
    if isinstance(default, bool) or default is None:
        return {True: "yes", False: "no", None: "none"}[default]
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


if __name__ == "__main__":
    cli.run(main)
