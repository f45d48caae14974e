"""The table of PCME++, its baselines and its ablations, from runs of the recipes.

    python recipes/pcmepp_table.py --out runs/pcmepp_table --seeds 0 1 2

Runs every row with every seed, one after the other, each in a folder of its own; what is finished
is not run again, so several commands with different seeds may share the work. Prints the table in
Markdown, mean ± standard deviation over the seeds, and writes it as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from zoo import training
from zoo.training import setting
from zoo.training.atomic import write_text

try:
    from recipes import pcmepp_coco, pcmepp_noisy_coco
except ModuleNotFoundError:  # a script sees its own folder, not the one above
    import pcmepp_coco
    import pcmepp_noisy_coco

CLEAN, NOISY = pcmepp_coco, pcmepp_noisy_coco
HALF = "--noise=0.5"
ROWS = {
    "PCME++": (CLEAN,),
    "μ only": (CLEAN, "--method=mean_only"),
    "W2 as training distance": (CLEAN, "--method=wasserstein_2"),
    "PCME": (CLEAN, "--method=pcme"),
    "InfoNCE": (CLEAN, "--method=infonce"),
    "VSE∞": (CLEAN, "--method=vse_infinity"),
    "PCME++ without VIB": (CLEAN, "--kl-weight=0"),
    "PCME++ without pseudo-positives": (CLEAN, "--pseudo-positive-weight=0"),
    "PCME++ without mixed samples": (CLEAN, "--mixed-share=0"),
    "PCME++ without SWA": (CLEAN, "--averaged-epochs=0"),
    "PCME++ without GPO (mean pooling)": (CLEAN, "--pooling=mean"),
    "50 % shuffled: PCME++": (NOISY, HALF),
    "50 % shuffled: InfoNCE": (NOISY, HALF, "--method=infonce"),
    "50 % shuffled: VSE∞, hardest negatives": (NOISY, HALF, "--method=vse_infinity"),
}
COLUMNS = ("map@r", "r_precision", "recall@1")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which part of the table to run."""

    out: Path = setting(Path("runs/pcmepp_table"), "folder of the runs, and of table.md")
    seeds: tuple[int, ...] = setting((0, 1, 2), "of the runs")
    rows: tuple[str, ...] = setting(tuple(ROWS), "names of rows, as in the table")
    run: bool = setting(True, "train what is not there yet; without it, only the table")

    def __post_init__(self):
        unknown = set(self.rows) - set(ROWS)
        if unknown:
            raise ValueError(f"--rows: unknown {sorted(unknown)}; known {list(ROWS)}")


def main(argv=None):
    settings = training.parse(Settings, argv, description=__doc__)
    if settings.run:
        for seed in settings.seeds:
            for row in settings.rows:
                run_row(row, seed, settings.out)
    text = table(settings.out, settings.rows, settings.seeds)
    write_text(settings.out / "table.md", text)
    print(text)


def run_row(row, seed, out):
    recipe, *flags = ROWS[row]
    recipe.main([*flags, f"--seed={seed}", f"--out={folder(out, row, seed)}"])
    keras.backend.clear_session()  # graphs of finished runs are of no use to the next


def folder(out, row, seed):
    """The run folder of a row and a seed, named by the row's flags."""
    flags = ROWS[row][1:]
    name = "-".join(flag.lstrip("-").replace("=", "-") for flag in flags) or "pcmepp"
    return out / f"{name}-seed-{seed}"


def table(out, rows, seeds):
    """Markdown: a line a row, means over the seeds that are finished."""
    titles = [f"{title} i2t / t2i" for title in ("mAP@R", "R-P", "R@1")]
    lines = [
        f"| | {' | '.join(titles)} | bins i2t / t2i | ambiguity | seeds |",
        f"|---|{'---|' * (len(titles) + 3)}",
    ]
    for row in rows:
        runs = [training.RunFolder(folder(out, row, seed)) for seed in seeds]
        found = [run.metrics for run in runs if run.finished]
        if found:
            lines.append(f"| {row} | {' | '.join(cells(found))} | {len(found)} |")
    return "\n".join(lines) + "\n"


def cells(found):
    """Retrieval by the row's own similarity, and what its uncertainties are worth."""
    own = [next(iter(metrics["retrieval"].values())) for metrics in found]
    yield from (both(own, lambda m, side, c=c: m[f"{side}_{c}"]) for c in COLUMNS)
    if "uncertainty" not in found[0]:
        yield from ("", "")
        return
    yield both(found, lambda m, side: m["uncertainty"][side]["spearman_of_bins"], "+.2f")
    yield spread([m["ambiguity_spearman"] for m in found], "+.2f")


def both(found, value, form=".1f"):
    return " / ".join(spread([value(m, side) for m in found], form) for side in ("i2t", "t2i"))


def spread(values, form):
    """Mean ± standard deviation, of one value only itself."""
    text = f"{np.mean(values):{form}}"
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):{form.lstrip('+')}}"


if __name__ == "__main__":
    training.run(main)
