"""What each method makes of the same stored vectors, over seeds.

    python recipes/birds.py --system infonce --data-dir CUB_200_2011 --out runs/birds
    python -m studies.own_vectors_table --vectors-of runs/birds
    python -m studies.own_vectors_table                            # vectors of Toy Birds

The vectors are those that a trained model gives to the images and captions of its data, written
as a user would bring them. Of several run folders each seed has its own. Every method then runs on
them with every seed, and what is finished is not run again. Prints in Markdown the table and what
each method changes beside `none`, paired by seed, and writes both as `table.md`.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import own_vectors
import own_vectors_files
from studies import seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting
from zoo.files import RunFolder

BASE, LEVEL, WORSE = "none", 0.05, 0.5  # points of R-Precision that a table may not be silent on
PAIRED = {
    "R-P i2t": lambda metrics: _retrieval(metrics, "i2t_r_precision"),
    "R-P t2i": lambda metrics: _retrieval(metrics, "t2i_r_precision"),
    "nAUC i2t": lambda metrics: 100 * metrics["confidence"]["i2t"]["nauc"],
    "nAUC t2i": lambda metrics: 100 * metrics["confidence"]["t2i"]["nauc"],
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/own_vectors_table"), "folder of the runs, and of table.md")
    vectors_of: tuple[str, ...] = setting((), "run folders: one, or one a seed")
    data_dir: Path | None = setting(None, "where the data of those runs are now, if moved")
    rows: tuple[str, ...] = setting(own_vectors.METHODS, "methods")

    def __post_init__(self):
        seed_table.check_rows(self.rows, own_vectors.METHODS)
        if len(self.vectors_of) not in (0, 1, len(self.seeds)):
            raise ValueError(
                f"--vectors-of must name one run, or one for each of the {len(self.seeds)} seeds; "
                f"received {len(self.vectors_of)}"
            )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    rows = {name: Row(own_vectors.main, (f"--method={name}",)) for name in settings.rows}
    if settings.run:
        for place, seed in enumerate(settings.seeds):
            own = dataclasses.replace(settings, seeds=(seed,), vectors_of=())
            seed_table.run_rows(rows, own, flags_of_vectors(settings, place))
    seed_table.publish(
        settings, seed_table.markdown(rows, columns(), settings), differences(rows, settings)
    )


def flags_of_vectors(settings, place):
    """Flags that name the files of a seed's vectors, which are made when they are not there."""
    if not settings.vectors_of:
        return ()
    several = len(settings.vectors_of) > 1
    run = settings.vectors_of[place if several else 0]
    folder = settings.out / (f"vectors-{settings.seeds[place]}" if several else "vectors")
    files = own_vectors_files.write(run, folder, settings.data_dir)
    return tuple(f"--{name}={path}" for name, path in files.items() if name != "loader")


def columns():
    """Retrieval, what tells right from wrong, and the time of the whole run."""
    both = seed_table.confidence
    return [
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("recall@1", "R@1"),
        Column(
            "nAUC of its uncertainty",
            both(lambda found: found["nauc_of"].get("uncertainty", np.nan)),
            "+.2f",
        ),
        Column("nAUC of the confidence", both(lambda found: found["nauc"]), "+.2f"),
        Column("calibration error", both(lambda found: found["calibration_error"]), ".2f"),
        Column("CPU seconds", (lambda metrics: metrics["cpu_seconds"],), ".0f"),
    ]


def differences(rows, settings):
    """What each method changes beside `none`, mean over seeds with the p of a paired t-test."""
    lines = [f"| minus {BASE} | {' | '.join(PAIRED)} |", f"|---|{'---|' * len(PAIRED)}"]
    for name in rows:
        pairs = [
            [RunFolder(seed_table.folder(settings.out, row, seed)) for row in (name, BASE)]
            for seed in settings.seeds
        ]
        found = [[run.metrics for run in pair] for pair in pairs if all(r.finished for r in pair)]
        if name == BASE or len(found) < 2:
            continue
        cells = []
        for title, value in PAIRED.items():
            try:
                changes = np.array([value(own) - value(base) for own, base in found])
            except KeyError:  # too few right or wrong answers to calibrate on
                cells.append("")
                continue
            p = stats.ttest_1samp(changes, 0).pvalue if changes.std() > 0 else np.nan
            chance = "p < 0.01" if p < 0.01 else f"p {p:.2f}"
            said = f"{changes.mean():+.1f}".replace("-", "−") + f" ({chance})"
            said = f"**{said}**" if p < LEVEL else said
            is_worse = title.startswith("R-P") and changes.mean() < -WORSE
            cells.append(f"{said}, worse" if is_worse else said)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _retrieval(metrics, name):
    return next(iter(metrics["retrieval"].values()))[name]


if __name__ == "__main__":
    cli.run(main)
