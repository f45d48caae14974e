"""The table of Gaussian VSE++ and VSRN and their points on Toy Scenes, from runs of the recipes.

    python -m studies.gaussian_table --out runs/gaussian_table

Runs every row with every seed, each in a folder of its own, and asks VSE++ and Gaussian VSE++
about crops (`studies/crop_ambiguity.py`); what is finished is not run again. Prints the tables in
Markdown, mean ± standard deviation over the seeds, and writes them as `table.md`, and the figures
of the crops over all seeds as `crops_….png`.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import gaussian_vsepp_coco
import gaussian_vsrn_flickr30k
import vse_coco
import vsrn_flickr30k
from studies import crop_ambiguity, seed_table
from studies.crop_figures import crop_figures
from studies.seed_table import Column, Row
from zoo import cli, plots
from zoo.cli import setting
from zoo.files import RunFolder

ROWS = {
    "VSE++": Row(vse_coco.main),
    "Gaussian VSE++": Row(gaussian_vsepp_coco.main),
    "VSRN": Row(vsrn_flickr30k.main),
    "Gaussian VSRN": Row(gaussian_vsrn_flickr30k.main),
}
ASKED = {  # about crops: the row of the model, and how they are shown
    "crops of points": ("VSE++", "stretched"),
    "crops": ("Gaussian VSE++", "stretched"),
    "crops in place": ("Gaussian VSE++", "in_place"),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/gaussian_table"), "folder of the runs, and of table.md")
    held_out: Literal["test", "val"] = setting("test", "the split to evaluate on")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    common = (f"--held-out={settings.held_out}",)
    if settings.run:
        seed_table.run_rows(ROWS, settings, common)
        here = dataclasses.replace(settings, jobs=1)
        seed_table.run_rows(questions(settings), here, common)
    columns = [
        seed_table.retrieval("r_precision", "R-P"),
        true_matches("R-P of true matches i2t / t2i"),
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
    ]
    queries = ("crop_a", "crop_c", "caption_a", "caption_c")
    parts = [
        seed_table.markdown(ROWS, columns, settings),
        "Selection accuracy: crop A / crop C / caption A / caption C as the query\n",
        seed_table.markdown(ASKED, by_area("selection", queries), settings),
        "More ambiguous and more uncertain: crops / captions\n",
        seed_table.markdown(ASKED, by_area("more_uncertain", ("crops", "captions")), settings),
    ]
    seed_table.publish(settings, *parts)
    for name in ASKED:
        draw_crops(settings, name)


def questions(settings):
    """The rows that ask each seed's model about crops."""

    def row(model, crops):
        def ask(flags):
            seed = next(flag.partition("=")[2] for flag in flags if flag.startswith("--seed="))
            folder = seed_table.folder(settings.out, model, seed)
            crop_ambiguity.main([*flags, f"--model={folder}"])

        return Row(ask, (f"--crops={crops}",))

    return {name: row(model, crops) for name, (model, crops) in ASKED.items()}


def draw_crops(settings, name):
    """The figures of a question over all seeds that are finished."""
    runs = [RunFolder(seed_table.folder(settings.out, name, seed)) for seed in settings.seeds]
    tables = [run.metrics["crop_triplets"] for run in runs if run.finished]
    if tables:
        place = settings.out / "_".join(name.split())
        for figure_name, figure in crop_figures(*tables).items():
            plots.save(figure, place.with_name(f"{place.name}_{figure_name}.png"))


def true_matches(title):
    """Retrieval where every scene that a caption is true of counts, not its own alone."""

    def value(direction):
        return lambda metrics: metrics["true_matches"][f"{direction}_r_precision"]

    return Column(title, tuple(value(direction) for direction in seed_table.DIRECTIONS))


def by_area(measure, keys):
    """A column for each largest area of a region, in percent."""
    defaults = cli.parse(crop_ambiguity.Settings, [])

    def value(number, key):
        return lambda metrics: 100 * metrics["crop_triplets"][number][measure][key]

    return [
        Column(f"≤ {100 * largest:g} %", tuple(value(number, key) for key in keys))
        for number, largest in enumerate(defaults.thresholds)
    ]


if __name__ == "__main__":
    cli.run(main)
