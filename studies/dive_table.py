"""The table of DivE, PVSE and the ablations on Toy Scenes' regions, from runs of `dive_coco.py`.

    python -m studies.dive_table --out runs/dive_table
    python -m studies.dive_table --held-out val --rows DivE --seeds 0

Runs every row with every seed, each in a folder of its own, and averages the first two seeds of
DivE; what is finished is not run again. Prints the tables in Markdown, mean ± standard deviation
over the seeds, and writes them as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import dive_coco
from studies import seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting

FLAGS = {
    "DivE": (),
    "PVSE, K = 4": ("--method=pvse",),
    "PVSE, K = 1": ("--method=pvse", "--num-slots=1"),
    "DivE, K = 1": ("--num-slots=1",),
    "PIE-Net with smooth-Chamfer": ("--method=pvse", "--similarity=smooth_chamfer"),
    "slots with MIL": ("--similarity=maximum_pair",),
    "slots with MP": ("--similarity=set_match_probability",),
    "slots with Chamfer": ("--similarity=chamfer",),
    "DivE, K = 2": ("--num-slots=2",),
    "DivE, T = 1": ("--num-iterations=1",),
    "DivE, α = 4": ("--alpha=4",),
}
ROWS = {name: Row(dive_coco.main, flags) for name, flags in FLAGS.items()}
ENSEMBLE = "DivE, two seeds averaged"
SIDES = ("images", "captions")


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/dive_table"), "folder of the runs, and of table.md")
    held_out: Literal["test", "val"] = setting("test", "the split to evaluate on")
    rows: tuple[str, ...] = setting(tuple(ROWS), "rows of the table to run, by name")

    def __post_init__(self):
        seed_table.check_rows(self.rows, ROWS)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    common = (f"--held-out={settings.held_out}",)
    if settings.run:
        seed_table.run_rows({name: ROWS[name] for name in settings.rows}, settings, common)
        if "DivE" in settings.rows and len(settings.seeds) > 1:
            runs = [
                str(seed_table.folder(settings.out, "DivE", seed)) for seed in settings.seeds[:2]
            ]
            out = seed_table.folder(settings.out, ENSEMBLE, settings.seeds[0])
            dive_coco.main([*common, f"--out={out}", "--ensemble", *runs])
    retrieval = [
        Column("RSUM", (lambda metrics: own(metrics)["rsum"],)),
        Column("R@1 i2t / t2i", both("recall@1")),
        Column("R@10 i2t / t2i", both("recall@10")),
    ]
    of_sets = [
        Column("log circular variance", by_side("log_circular_variance"), "+.2f"),
        Column("attention divergence", by_side("attention_divergence"), ".2f"),
        Column("usage entropy", by_side("usage_entropy"), ".2f"),
        Column("RSUM of the best element", best_element(), ".1f"),
    ]
    several = [name for name in ROWS if "K = 1" not in name]
    parts = [
        seed_table.markdown([*ROWS, ENSEMBLE], retrieval, settings),
        "Images / captions:\n",
        seed_table.markdown(several, of_sets, settings),
    ]
    seed_table.publish(settings, *parts)


def own(metrics):
    """The results by the run's own similarity; of an ensemble those of the mean."""
    found = metrics["retrieval"]
    return found.get("ensemble") or next(iter(found.values()))


def both(metric):
    return tuple(lambda m, d=d: own(m)[f"{d}_{metric}"] for d in seed_table.DIRECTIONS)


def by_side(name):
    return tuple(lambda metrics, side=side: metrics["sets"][side][name] for side in SIDES)


def best_element():
    return tuple(
        lambda metrics, side=side: max(metrics["sets"][side]["element_rsum"]) for side in SIDES
    )


if __name__ == "__main__":
    cli.run(main)
