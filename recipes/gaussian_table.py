"""The table of Gaussian VSE++ and VSRN and their points on Toy Scenes, from runs of the recipes.

    python recipes/gaussian_table.py --out runs/gaussian_table

Runs every row with every seed, each in a folder of its own, and asks Gaussian VSE++ about crops
(`recipes/crop_ambiguity.py`); what is finished is not run again. Prints the tables in Markdown,
mean ± standard deviation over the seeds, and writes them as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import crop_ambiguity
import gaussian_vsepp_coco
import gaussian_vsrn_flickr30k
import seed_table
import vse_coco
import vsrn_flickr30k
from seed_table import Column, Row
from zoo import cli
from zoo.cli import setting

ASKED = "Gaussian VSE++"
ROWS = {
    "VSE++": Row(vse_coco.main),
    ASKED: Row(gaussian_vsepp_coco.main),
    "VSRN": Row(vsrn_flickr30k.main),
    "Gaussian VSRN": Row(gaussian_vsrn_flickr30k.main),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/gaussian_table"), "folder of the runs, and of table.md")
    held_out: Literal["test", "val"] = setting("test", "the split to evaluate on")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    common = (f"--held-out={settings.held_out}",)

    def ask(flags):
        crop_ambiguity.main([*flags, model_of(settings, flags)])

    questions = {
        "crops stretched": Row(ask, ("--crops=stretched",)),
        "crops in place": Row(ask, ("--crops=in_place",)),
    }
    if settings.run:
        seed_table.run_rows(ROWS, settings, common)
        seed_table.run_rows(questions, settings, common)
    columns = [
        seed_table.retrieval("r_precision", "R-P"),
        true_matches("R-P of true matches i2t / t2i"),
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
    ]
    parts = [
        seed_table.markdown(ROWS, columns, settings),
        seed_table.markdown(questions, selection(), settings),
    ]
    seed_table.publish(settings, *parts)


def model_of(settings, flags):
    """The flag that names the Gaussian VSE++ of the same seed."""
    seed = next(flag.partition("=")[2] for flag in flags if flag.startswith("--seed="))
    return f"--model={seed_table.folder(settings.out, ASKED, seed)}"


def true_matches(title):
    """Retrieval where every scene that a caption is true of counts, not its own alone."""

    def value(direction):
        return lambda metrics: metrics["true_matches"][f"{direction}_r_precision"]

    return Column(title, tuple(value(direction) for direction in seed_table.DIRECTIONS))


def selection():
    """A column for each threshold of area: accuracy of crops and of captions."""
    defaults = cli.parse(crop_ambiguity.Settings, [])

    def value(number, side):
        return lambda metrics: 100 * metrics["selection_accuracy"][number][side]

    return [
        Column(
            f"≤ {100 * largest:g} %: crops / captions",
            (value(number, "images"), value(number, "captions")),
        )
        for number, largest in enumerate(defaults.thresholds)
    ]


if __name__ == "__main__":
    cli.run(main)
