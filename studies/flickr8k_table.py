"""The table of the systems on Flickr8k, from runs of `flickr8k_run.py`.

    python -m studies.flickr8k_table --data-dir flickr8k --image-weights mobilenetv2.h5 \\
        --text-weights all-MiniLM-L6-v2 --out runs/flickr8k

Runs every row with every seed, all rows with the first seed before the second; what is finished is
not run again. Prints two tables in Markdown, of retrieval and of confidence, best first, and writes
them as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path

from studies import flickr8k_run, seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting
from zoo.files import RunFolder

SYSTEMS = {
    "InfoNCE": "infonce",
    "PFE over InfoNCE": "pfe",
    "PCME++": "pcmepp",
    "PCME++ after InfoNCE": "pcmepp_after_infonce",
    "VSE∞": "vse_infinity",
    "PVSE": "pvse",
    "DivE": "dive",
    "Gaussian VSE++": "gaussian_vsepp",
    "PCME": "pcme",
    "PCME + DAA": "daa",
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run, and on what."""

    out: Path = setting(Path("runs/flickr8k_table"), "folder of the runs, and of table.md")
    data_dir: Path | None = setting(None, "Flickr8k: pairs.csv and its photos")
    image_weights: str = setting("imagenet", "weights of MobileNetV2, see flickr8k_run.py")
    text_weights: str = setting("all-MiniLM-L6-v2", "of MiniLM, likewise")
    rows: tuple[str, ...] = setting(tuple(SYSTEMS), "rows of the table to run, by name")
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        seed_table.check_rows(self.rows, SYSTEMS)
        if self.run and self.data_dir is None:
            raise ValueError("--data-dir must be given; received nothing")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        common = [
            f"--data-dir={settings.data_dir}",
            f"--image-weights={settings.image_weights}",
            f"--text-weights={settings.text_weights}",
            *(["--smoke"] if settings.smoke else []),
        ]
        rows = {
            name: Row(flickr8k_run.main, (f"--system={SYSTEMS[name]}",)) for name in settings.rows
        }
        seed_table.run_rows(rows, settings, common)
    rows = sorted(settings.rows, key=lambda row: -rsum(settings, row))
    tables = [
        seed_table.markdown(rows, some, settings) for some in (columns(), confidence_columns())
    ]
    seed_table.publish(settings, *tables)


def columns():
    """Retrieval, and its cost."""

    def total(metrics):
        return next(iter(metrics["retrieval"].values()))["rsum"]

    def seconds(metrics):
        return metrics["cpu_seconds_training"]

    return [
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.retrieval("recall@5", "R@5"),
        seed_table.retrieval("recall@10", "R@10"),
        Column("RSUM", (total,)),
        seed_table.asp(),
        Column("CPU seconds of training", (seconds,), ".0f"),
    ]


def confidence_columns():
    """What σ is worth, and a confidence that the validation photos calibrate."""
    both = seed_table.confidence
    return [
        Column("nAUC of σ", both(lambda found: found["nauc_of"]["uncertainty"]), "+.2f"),
        Column("nAUC of the judge", both(lambda found: found["nauc"]), "+.2f"),
        Column("calibration error", both(lambda found: found["calibration_error"]), ".3f"),
        seed_table.bins(),
    ]


def rsum(settings, row):
    """The mean over seeds, to sort by; below 0 where nothing is finished."""
    runs = [RunFolder(seed_table.folder(settings.out, row, seed)) for seed in settings.seeds]
    found = [next(iter(run.metrics["retrieval"].values()))["rsum"] for run in runs if run.finished]
    return sum(found) / len(found) if found else -1.0


if __name__ == "__main__":
    cli.run(main)
