"""The table of all systems on real birds, from runs of `birds.py`.

    python -m studies.birds_table --data-dir CUB_200_2011 --image-weights mobilenetv2.weights.h5 \\
        --out runs/birds --jobs 2

Runs every row with every seed; what is finished is not run again, and a run that was stopped goes
on, so the command may be given as often as one likes. All runs read one file of features. Prints
two tables in Markdown, of retrieval and of confidence, mean ± standard deviation over the seeds,
best first, and writes them as `table.md`.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from studies import seed_table
from studies.seed_table import Column
from zoo import cli
from zoo.cli import setting
from zoo.errors import InputError
from zoo.files import RunFolder

RECIPE = Path(__file__).parents[1] / "recipes" / "birds.py"
# The flags of each row; those that were chosen on val1 are said in docs/results/birds.md.
ROWS = {
    "PCME": ("--system=pcme",),
    "PCME, moment-matched probability": ("--system=moment_matched",),
    "μ only (PCME)": ("--system=mean_only",),
    "PCME + DAA": ("--system=pcme", "--daa-weight=1"),
    "PCME++": ("--system=pcmepp",),
    "Gaussians, softmax over CSD": ("--system=csd_softmax",),
    "InfoNCE": ("--system=infonce",),
    "PFE over InfoNCE": ("--system=pfe", "--learning-rate=3e-3"),
    "VSE0": ("--system=vse0",),
    "VSE++": ("--system=vsepp", "--mining=semi_hard"),
    "VSE∞": ("--system=vse_infinity", "--mining=semi_hard"),
    "Gaussian VSE++": ("--system=gaussian_vsepp", "--mining=semi_hard"),
    "PVSE": ("--system=pvse", "--mining=semi_hard"),
    "DivE": ("--system=dive", "--mining=semi_hard"),
}
POINTS = {"PFE over InfoNCE": "InfoNCE"}  # rows that begin with the finished run of another
DIRECTIONS = seed_table.DIRECTIONS


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run, and on what."""

    out: Path = setting(Path("runs/birds_table"), "folder of the runs, and of table.md")
    data_dir: Path | None = setting(None, "CUB_200_2011; without it Toy Birds")
    image_weights: str | None = setting(None, "of the frozen network, for --data-dir")
    held_out: str = setting("test", "classes to evaluate on, see birds.py")
    rows: tuple[str, ...] = setting(tuple(ROWS), "names of rows, as in the table")
    jobs: int = setting(1, "runs at a time, which share the cores")
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        seed_table.check_rows(self.rows, ROWS)
        if self.jobs < 1:
            raise ValueError(f"--jobs must be at least 1; received {self.jobs}")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        run_rows(settings)
    rows = sorted(settings.rows, key=lambda row: -r_precision(settings, row))
    tables = [
        seed_table.markdown(rows, some, settings) for some in (columns(), confidence_columns())
    ]
    seed_table.publish(settings, *tables)


def run_rows(settings):
    """Runs what is not finished, some at a time, each in a process of its own.

    Raises:
        InputError: if a run failed, after the others have ended.
    """
    commands = {
        seed_table.folder(settings.out, row, seed): command(settings, row, seed)
        for seed in settings.seeds
        for row in settings.rows
    }
    waiting = {out: line for out, line in commands.items() if not RunFolder(out).finished}
    threads = str(max(1, (os.cpu_count() or 1) // settings.jobs))
    environment = {"TF_NUM_INTRAOP_THREADS": threads, **os.environ}

    def run(out):
        out.mkdir(parents=True, exist_ok=True)
        with open(out.with_suffix(".log"), "w") as log:
            return subprocess.run(
                waiting[out], stdout=log, stderr=subprocess.STDOUT, env=environment, check=False
            ).returncode

    later = [
        seed_table.folder(settings.out, row, seed) for row in POINTS for seed in settings.seeds
    ]
    codes = {}
    with ThreadPoolExecutor(settings.jobs) as pool:
        for stands_on_another in (False, True):
            ready = [out for out in waiting if (out in later) == stands_on_another]
            codes |= dict(zip(ready, pool.map(run, ready), strict=True))
    failed = [str(out.with_suffix(".log")) for out, code in codes.items() if code]
    if failed:
        raise InputError(f"{len(failed)} of {len(codes)} runs failed, see {', '.join(failed)}")


def command(settings, row, seed):
    """The command of one run."""
    flags = [*ROWS[row], "--asp", f"--seed={seed}", f"--held-out={settings.held_out}"]
    if settings.data_dir is not None:
        flags += [f"--data-dir={settings.data_dir}", f"--image-weights={settings.image_weights}"]
    if row in POINTS:
        flags.append(f"--points={seed_table.folder(settings.out, POINTS[row], seed)}")
    if settings.smoke:
        flags.append("--smoke")
    return [
        sys.executable,
        str(RECIPE),
        *flags,
        f"--out={seed_table.folder(settings.out, row, seed)}",
    ]


def columns():
    """Retrieval, and what it costs."""
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
