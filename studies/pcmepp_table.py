"""The table of PCME++, its baselines and its ablations, from runs of the recipes.

    python -m studies.pcmepp_table --out runs/pcmepp_table --seeds 0 1 2
    python -m studies.pcmepp_table --data-dir coco --rows PCME++ InfoNCE "VSE∞" \\
        --also backbone=vit_b_16 weights=clip_b16.safetensors bpe=bpe_simple_vocab_16e6.txt.gz \\
        annotations-dir=eccv_caption

Runs every row with every seed, one after the other, each in a folder of its own; what is finished
is not run again, so several commands with different seeds may share the work. Prints the table in
Markdown, mean ± standard deviation over the seeds, and writes it as `table.md`. Runs with COCO's
benchmark have the columns of tables 1, 2 and C.9, and below them those of C.7 and C.8, both
directions, and of C.5 and C.6, R@5 and R@10.
"""

from dataclasses import dataclass
from pathlib import Path

import pcmepp_coco
import pcmepp_noisy_coco
from studies import columns, seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting

CLEAN, NOISY = pcmepp_coco.main, pcmepp_noisy_coco.main
FIFTH, HALF = "--noise=0.2", "--noise=0.5"
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
    "20 % shuffled: PCME++": Row(NOISY, (FIFTH,)),
    "20 % shuffled: PCME": Row(NOISY, (FIFTH, "--method=pcme")),
    "20 % shuffled: InfoNCE": Row(NOISY, (FIFTH, "--method=infonce")),
    "20 % shuffled: VSE∞, hardest negatives": Row(NOISY, (FIFTH, "--method=vse_infinity")),
    "50 % shuffled: PCME++": Row(NOISY, (HALF,)),
    "50 % shuffled: PCME": Row(NOISY, (HALF, "--method=pcme")),
    "50 % shuffled: InfoNCE": Row(NOISY, (HALF, "--method=infonce")),
    "50 % shuffled: VSE∞, hardest negatives": Row(NOISY, (HALF, "--method=vse_infinity")),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/pcmepp_table"), "folder of the runs, and of table.md")
    rows: tuple[str, ...] = setting(tuple(ROWS), "rows of the table to run, by name")
    data_dir: Path | None = setting(None, "real data instead of the toy's")
    also: tuple[str, ...] = setting(
        (), "further flags of all rows, without dashes: backbone=vit_b_32 weights=clip.safetensors"
    )
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        seed_table.check_rows(self.rows, ROWS)

    @property
    def chosen(self):
        """The rows to run."""
        return {name: ROWS[name] for name in self.rows}


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        common = seed_table.common(settings)
        seed_table.run_rows(settings.chosen, settings, common, folder=folder)
    missing = seed_table.missing(settings.rows, settings, folder)
    shown = [
        *columns.PCMEPP,
        columns.whole_split("map@r"),
        columns.whole_split("r_precision"),
        columns.whole_split("recall@1"),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
    ]
    parts = [shown]
    if has_benchmark(settings):
        parts += [columns.PCMEPP_SIDES, columns.PCMEPP_MORE]
    tables = [seed_table.markdown(settings.rows, part, settings, folder) for part in parts]
    seed_table.publish(settings, *tables[:-1], tables[-1] + missing)


def has_benchmark(settings):
    """Whether a finished run was ranked by COCO's truths."""
    found = [seed_table.finished(name, settings, folder) for name in settings.rows]
    return any("coco" in run for of_row in found for of_seed in of_row for run in of_seed)


def folder(out, row, seed):
    """The run folder of a row and a seed, named by the row's flags."""
    words = [flag.lstrip("-").replace("=", "-") for flag in ROWS[row].flags]
    return out / f"{'-'.join(words) or 'pcmepp'}-seed-{seed}"


if __name__ == "__main__":
    cli.run(main)
