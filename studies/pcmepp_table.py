"""The table of PCME++, its baselines and its ablations, from runs of the recipes.

    python -m studies.pcmepp_table --out runs/pcmepp_table --seeds 0 1 2

Runs every row with every seed, one after the other, each in a folder of its own; what is finished
is not run again, so several commands with different seeds may share the work. Prints the table in
Markdown, mean ± standard deviation over the seeds, and writes it as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path

import pcmepp_coco
import pcmepp_noisy_coco
from studies import seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting

CLEAN, NOISY = pcmepp_coco.main, pcmepp_noisy_coco.main
HALF = "--noise=0.5"
ROWS = {
    "PCME++": Row(CLEAN),
    "μ only": Row(CLEAN, ("--method=mean_only",)),
    "W2 as training distance": Row(CLEAN, ("--method=wasserstein_2",)),
    "PCME": Row(CLEAN, ("--method=pcme",)),
    "CSD without pseudo-positives, mixed samples, SWA": Row(
        CLEAN, ("--pseudo-positive-weight=0", "--mixed-share=0", "--averaged-epochs=0")
    ),
    "InfoNCE": Row(CLEAN, ("--method=infonce",)),
    "VSE∞": Row(CLEAN, ("--method=vse_infinity",)),
    "PCME++ without VIB": Row(CLEAN, ("--kl-weight=0",)),
    "PCME++ without pseudo-positives": Row(CLEAN, ("--pseudo-positive-weight=0",)),
    "PCME++ without mixed samples": Row(CLEAN, ("--mixed-share=0",)),
    "PCME++ without SWA": Row(CLEAN, ("--averaged-epochs=0",)),
    "PCME++ without GPO (mean pooling)": Row(CLEAN, ("--pooling=mean",)),
    "50 % shuffled: PCME++": Row(NOISY, (HALF,)),
    "50 % shuffled: InfoNCE": Row(NOISY, (HALF, "--method=infonce")),
    "50 % shuffled: VSE∞, hardest negatives": Row(NOISY, (HALF, "--method=vse_infinity")),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/pcmepp_table"), "folder of the runs, and of table.md")
    rows: tuple[str, ...] = setting(tuple(ROWS), "names of rows, as in the table")

    def __post_init__(self):
        seed_table.check_rows(self.rows, ROWS)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        seed_table.run_rows({name: ROWS[name] for name in settings.rows}, settings, folder=folder)
    columns = [
        seed_table.retrieval("map@r", "mAP@R"),
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
    ]
    seed_table.publish(settings, seed_table.markdown(settings.rows, columns, settings, folder))


def folder(out, row, seed):
    """The run folder of a row and a seed, named by the row's flags."""
    words = [flag.lstrip("-").replace("=", "-") for flag in ROWS[row].flags]
    return out / f"{'-'.join(words) or 'pcmepp'}-seed-{seed}"


if __name__ == "__main__":
    cli.run(main)
