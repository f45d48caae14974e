"""The table of a base model, + Smooth-AP and + DAA, from runs of the recipes, and ASP's curves.

    python -m studies.daa_table --out runs/daa_table               # PCME-BERT on Toy Birds
    python -m studies.daa_table --base sgraf --out runs/daa_sgraf  # SGR on Toy Scenes' regions
    python -m studies.daa_table --base vse --out runs/daa_vse      # VSE0 there, seconds a run
    python -m studies.daa_table --no-run                           # only the table of what is there

Runs every row with every seed, one after the other, each in a folder of its own; what is finished
is not run again. Prints the table in Markdown, mean ± standard deviation over the seeds, and
writes it as `table.md`, with ASP over the epochs as `asp.png` where it was measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import daa_cub
import daa_sgraf_flickr30k
import vse_coco
from studies import seed_table
from studies.daa_plots import curves_over_seeds
from studies.seed_table import Row
from zoo import cli, plots, training
from zoo.cli import setting
from zoo.files import RunFolder

SHORT = (
    "--features=regions",
    "--mining=sum",
    "--batch-size=64",
    "--learning-rate=0.004",
    "--steps-per-epoch=50",
    "--warm-up-epochs=0",
    "--drop-epoch=6",
    "--epochs=8",
    "--max-words=20",
    "--asp",
)


class Base(NamedTuple):
    """A base model: its name, its recipe, and the flags of all rows and of each term."""

    name: str
    main: Callable
    common: tuple
    smooth_ap: tuple
    daa: tuple


BASES = {
    "pcme_bert": Base(
        "PCME-BERT", daa_cub.main, (), ("--daa-weight=0", "--smooth-ap-weight=300"), ()
    ),
    "sgraf": Base(
        "SGR", daa_sgraf_flickr30k.main, (), ("--daa-weight=0", "--smooth-ap-weight=10"), ()
    ),
    "vse": Base(
        "VSE0",
        vse_coco.main,
        SHORT,
        ("--smooth-ap-weight=500",),
        ("--daa-weight=8000", "--daa-temperature=0.03", "--semantic-temperature=0.01"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/daa_table"), "folder of the runs, and of table.md")
    base: Literal[tuple(BASES)] = setting("pcme_bert", "the base model")
    held_out: Literal["test", "val"] | None = setting(None, "the split to evaluate on")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    rows = rows_of(settings.base)
    common = () if settings.held_out is None else (f"--held-out={held_out(settings)}",)
    if settings.run:
        seed_table.run_rows(rows, settings, common)
    columns = [
        seed_table.asp(),
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("map@r", "mAP@R"),
    ]
    seed_table.publish(settings, seed_table.markdown(rows, columns, settings))
    curves = histories(rows, settings)
    if any("val_i2t_asp" in history for runs in curves.values() for history in runs):
        plots.save(curves_over_seeds(curves), settings.out / "asp.png")


def rows_of(base):
    base = BASES[base]
    return {
        base.name: Row(base.main, (*base.common, "--daa-weight=0")),
        f"{base.name} + Smooth-AP": Row(base.main, (*base.common, *base.smooth_ap)),
        f"{base.name} + DAA": Row(base.main, (*base.common, *base.daa)),
    }


def held_out(settings):
    """CUB has three validation splits."""
    by_class = settings.base == "pcme_bert" and settings.held_out == "val"
    return "val1" if by_class else settings.held_out


def histories(rows, settings):
    """The histories of the finished runs, by rows that have any."""
    found = {}
    for name in rows:
        runs = [RunFolder(seed_table.folder(settings.out, name, s)) for s in settings.seeds]
        if any(run.finished for run in runs):
            found[name] = [training.read_history(r.history_path) for r in runs if r.finished]
    return found


if __name__ == "__main__":
    cli.run(main)
