"""The table of all systems on real birds, from runs of `birds.py`.

    python -m studies.birds_table --data-dir CUB_200_2011 --image-weights mobilenetv2.weights.h5 \\
        --out runs/birds --jobs 2

Runs every row with every seed; what is finished is not run again, and a run that was stopped goes
on, so the command may be given as often as one likes. All runs read one file of features. Prints
two tables in Markdown, of retrieval and of confidence, mean ± standard deviation over the seeds,
best first, and writes them as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path

import birds
from studies import seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting
from zoo.files import RunFolder

# The flags of each row; those that were chosen on val1 are said in docs/results/birds.md.
ROWS = {
    "PCME": Row(birds.main, ("--system=pcme",)),
    "PCME, moment-matched probability": Row(birds.main, ("--system=moment_matched",)),
    "μ only (PCME)": Row(birds.main, ("--system=mean_only",)),
    "PCME + DAA": Row(birds.main, ("--system=pcme", "--daa-weight=1")),
    "PCME++": Row(birds.main, ("--system=pcmepp",)),
    "Gaussians, softmax over CSD": Row(birds.main, ("--system=csd_softmax",)),
    "InfoNCE": Row(birds.main, ("--system=infonce",)),
    "PFE over InfoNCE": Row(
        birds.main, ("--system=pfe", "--learning-rate=3e-3"), ("--points", "InfoNCE")
    ),
    "VSE0": Row(birds.main, ("--system=vse0",)),
    "VSE++": Row(birds.main, ("--system=vsepp", "--mining=semi_hard")),
    "VSE∞": Row(birds.main, ("--system=vse_infinity", "--mining=semi_hard")),
    "Gaussian VSE++": Row(birds.main, ("--system=gaussian_vsepp", "--mining=semi_hard")),
    "PVSE": Row(birds.main, ("--system=pvse", "--mining=semi_hard")),
    "DivE": Row(birds.main, ("--system=dive", "--mining=semi_hard")),
}
DIRECTIONS = seed_table.DIRECTIONS


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run, and on what."""

    out: Path = setting(Path("runs/birds_table"), "folder of the runs, and of table.md")
    data_dir: Path | None = setting(None, "CUB_200_2011; without it Toy Birds")
    image_weights: str | None = setting(None, "weights of the frozen network, for --data-dir")
    held_out: str = setting("test", "classes to evaluate on, see birds.py")
    rows: tuple[str, ...] = setting(tuple(ROWS), "rows of the table to run, by name")
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        seed_table.check_rows(self.rows, ROWS)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        # A process each: the table has the time and the memory of every run.
        rows = {name: ROWS[name] for name in settings.rows}
        seed_table.run_rows(rows, settings, common(settings), apart=True)
    rows = sorted(settings.rows, key=lambda row: -r_precision(settings, row))
    tables = [
        seed_table.markdown(rows, some, settings) for some in (columns(), confidence_columns())
    ]
    seed_table.publish(settings, *tables)


def common(settings):
    """The flags of all rows."""
    flags = ["--asp", f"--held-out={settings.held_out}"]
    if settings.data_dir is not None:
        flags += [f"--data-dir={settings.data_dir}", f"--image-weights={settings.image_weights}"]
    return (*flags, "--smoke") if settings.smoke else tuple(flags)


def columns():
    """Retrieval, and its cost."""
    return [
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.retrieval("map@r", "mAP@R"),
        seed_table.asp(),
        Column("CPU seconds", (lambda metrics: metrics["cpu_seconds"],), ".0f"),
        Column("MiB", (lambda metrics: metrics["peak_memory_mib"],), ".0f"),
    ]


def confidence_columns():
    """What uncertainty is worth, and a confidence calibrated on validation or on half of test."""
    both = seed_table.confidence

    def alone(name):
        return both(lambda found: found["nauc_of"][name])

    def half(name):
        return both(lambda found: found["half_of_test"][name])

    return [
        Column("nAUC of σ", alone("uncertainty"), "+.2f"),
        Column("best − mean", alone("best_minus_mean"), "+.2f"),
        Column("calibrated: nAUC", both(lambda found: found["nauc"]), "+.2f"),
        Column("AURC", both(lambda found: found["aurc"]), ".2f"),
        Column("ρ", both(lambda found: found["spearman_of_bins"]), "+.2f"),
        Column("error", both(lambda found: found["calibration_error"]), ".2f"),
        Column("half of test: nAUC", half("nauc"), "+.2f"),
        Column("half: ρ", half("spearman_of_bins"), "+.2f"),
        Column("half: error", half("calibration_error"), ".2f"),
    ]


def r_precision(settings, row):
    """The mean over seeds and directions, to sort by; below 0 where nothing is finished."""
    runs = [RunFolder(seed_table.folder(settings.out, row, seed)) for seed in settings.seeds]
    found = [next(iter(run.metrics["retrieval"].values())) for run in runs if run.finished]
    values = [results[f"{side}_r_precision"] for results in found for side in DIRECTIONS]
    return sum(values) / len(values) if values else -1.0


if __name__ == "__main__":
    cli.run(main)
