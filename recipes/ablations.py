"""The papers' ablations on the toy data: one sweep a command, resumed where it was, and its table.

    python recipes/ablations.py --sweep pcme_regularisers      # PCME, table D.1
    python recipes/ablations.py --sweep dive_sets --seeds 0    # DivE, one seed
    python recipes/ablations.py --sweep pcmepp_loss --no-run   # only the table of what is there
    python recipes/ablations.py --sweep pcme_covariance --data-dir CUB_200_2011 \\
        --also image-weights=imagenet glove=glove.840B.300d.txt held-out=val1

Every row is a recipe with some flags, run with every seed in a folder of its own below --out; what
is finished is not run again, and what was stopped goes on. The table, mean ± standard deviation
over the seeds, is printed and written as `table.md`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import dive_coco
import pcme_cub
import pcmepp_coco
import seed_table
from seed_table import Column, Row
from zoo import cli
from zoo.cli import setting


def rows_of(main, variants):
    """`{name: Row}` of a recipe's variants, `{name: flags}`."""
    return {name: Row(main, tuple(flags)) for name, flags in variants.items()}


def with_and_without(flags):
    """All combinations of some parts: `{"VIB, PP": [flags that switch off the others]}`."""
    variants = {}
    for chosen in range(2 ** len(flags) - 1, -1, -1):
        kept = [name for place, name in enumerate(flags) if chosen >> place & 1]
        off = [flag for name, flag in flags.items() if name not in kept]
        variants[", ".join(kept) or "none of them"] = off
    return variants


SWEEPS = {
    "pcme_regularisers": rows_of(  # table D.1: KL and uniformity, with and without
        pcme_cub.main,
        with_and_without({"KL": "--kl-weight=0", "uniformity": "--uniformity-weight=0"}),
    ),
    "pcme_covariance": rows_of(  # table D.2
        pcme_cub.main,
        {
            "σ of each dimension": [],
            "one σ, mean of the variances": ["--covariance=spherical_mean"],
            "one σ, one value": ["--covariance=spherical_one"],
            "μ only": ["--mean-only"],
        },
    ),
    "pcme_heads": rows_of(  # table D.3
        pcme_cub.main,
        {
            "attention in μ and σ": [],
            "attention in μ": ["--no-variance-attention"],
            "attention in σ": ["--no-mean-attention"],
            "no attention": ["--no-mean-attention", "--no-variance-attention"],
            "attention in μ and σ, σ squashed": ["--squash-variance"],
        },
    ),
    "pcme_samples": rows_of(  # figure D.2
        pcme_cub.main,
        {
            **{f"J = {count}": [f"--num-samples={count}"] for count in (1, 3, 7, 15)},
            "without noise": ["--method=moment_matched"],
        },
    ),
    "pcme_dimensions": rows_of(  # figure D.3
        pcme_cub.main, {f"D = {dim}": [f"--dim={dim}"] for dim in (8, 16, 32, 64, 128)}
    ),
    "dive_sets": rows_of(  # table 4
        dive_coco.main,
        {
            "K = 4, T = 4, smooth-Chamfer, α = 16": [],
            "MIL": ["--similarity=maximum_pair"],
            "MP": ["--similarity=set_match_probability"],
            "Chamfer": ["--similarity=chamfer"],
            **{f"K = {count}": [f"--num-slots={count}"] for count in (1, 2, 8)},
            **{f"T = {count}": [f"--num-iterations={count}"] for count in (1, 2, 6)},
            **{f"α = {alpha}": [f"--alpha={alpha}"] for alpha in (1, 4, 64)},
        },
    ),
    "pcmepp_distance": rows_of(  # table 4: of the new techniques VIB alone
        pcmepp_coco.main,
        {
            "W2": ["--method=wasserstein_2"],
            "match probability (PCME)": ["--method=pcme"],
            "CSD": ["--pseudo-positive-weight=0", "--mixed-share=0", "--averaged-epochs=0"],
        },
    ),
    "pcmepp_architecture": rows_of(  # table 5, without SWA; blocks are those of CLIP's backbones
        pcmepp_coco.main,
        {
            name: ["--backbone=vit_b_32", "--averaged-epochs=0", *flags]
            for name, flags in {
                "1 block for σ, mean pooling": ["--pooling=mean"],
                "2 blocks for σ, GPO": ["--variance-blocks=2"],
                "1 block for σ, GPO": [],
            }.items()
        },
    ),
    "pcmepp_loss": rows_of(  # table 3
        pcmepp_coco.main,
        with_and_without(
            {
                "VIB": "--kl-weight=0",
                "pseudo-positives": "--pseudo-positive-weight=0",
                "mixed samples": "--mixed-share=0",
            }
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which sweep, and which part of it."""

    sweep: Literal[tuple(SWEEPS)]
    out: Path | None = setting(None, "folder of the runs and table.md; default: runs/SWEEP")
    rows: tuple[str, ...] = setting((), "names of rows, as in the table; default: all")
    data_dir: Path | None = setting(None, "real data instead of the toy's")
    also: tuple[str, ...] = setting(
        (), "further flags of all rows, without dashes: image-weights=imagenet held-out=val1"
    )
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        seed_table.check_rows(self.rows, SWEEPS[self.sweep])
        if self.out is None:
            object.__setattr__(self, "out", Path("runs") / self.sweep)

    @property
    def chosen(self):
        """The rows to run."""
        known = SWEEPS[self.sweep]
        return {name: known[name] for name in self.rows or known}


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    common = [f"--data-dir={settings.data_dir}"] if settings.data_dir else []
    if settings.smoke:
        common.append("--smoke")
    common += [f"--{flag}" for flag in settings.also]
    if settings.run:
        seed_table.run_rows(settings.chosen, settings, tuple(common))
    columns = [
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("recall@1", "R@1"),
        Column("RSUM", (lambda metrics: next(iter(metrics["retrieval"].values()))["rsum"],)),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
        Column("minutes", (lambda metrics: metrics["seconds"] / 60,)),
    ]
    seed_table.publish(settings, seed_table.markdown(settings.chosen, columns, settings))


if __name__ == "__main__":
    cli.run(main)
