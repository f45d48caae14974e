"""PCME's tables 2, 3, D.1 to D.3, E.2 to E.5 and figures D.2, D.3 and E.2: rows and columns."""

import dive_coco
import pcme_coco
import pcme_cub
import pvse_cub
from studies import columns
from studies.seed_table import Curves, Sweep, rows_of, with_and_without

SETS = (1, 2, 4)  # the K of PVSE
MINING = {"sum": "all negatives", "hardest": "hardest negatives"}
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512, 1024)
SAMPLES = (1, 3, 7, 15)
R_PRECISION = (columns.whole_split("r_precision"),)

POINTS = rows_of(pvse_cub.main, {"VSE0": ["--method=vse0"]}) | rows_of(
    pvse_cub.main,
    {
        f"PVSE K = {count}, {name}": [f"--num-embeddings={count}", f"--mining={mining}"]
        for mining, name in MINING.items()
        for count in SETS
    },
)
GAUSSIANS = {"PCME μ only": ["--mean-only"], "PCME": []}
OF_COCO = {
    **{
        f"PVSE K = {count}": ["--method=pvse", f"--num-slots={count}", "--mining=hardest"]
        for count in SETS
    },
    **{
        f"PVSE K = {count} + SHM": ["--method=pvse", f"--num-slots={count}", "--mining=semi_hard"]
        for count in SETS[:2]
    },
}

SWEEPS = {
    "pcme_methods_cub": Sweep(  # tables 2 and E.2; E.3 with --also held-out=seen_test
        POINTS | rows_of(pcme_cub.main, GAUSSIANS),
        columns.CUB,
        Curves(  # figure E.2
            "K, embeddings of an item",
            {
                name: [(count, f"PVSE K = {count}, {name}") for count in SETS]
                for name in MINING.values()
            },
            columns.CUB,
        ),
    ),
    "pcme_methods_coco": Sweep(  # tables 3, E.4 and E.5
        rows_of(dive_coco.main, OF_COCO) | rows_of(pcme_coco.main, GAUSSIANS), columns.PCME_COCO
    ),
    "pcme_regularisers": Sweep(  # table D.1: KL and uniformity, with and without
        rows_of(
            pcme_cub.main,
            with_and_without({"KL": "--kl-weight=0", "uniformity": "--uniformity-weight=0"}),
        ),
        (columns.whole_split("map@r"), columns.log_sigma()),
    ),
    "pcme_covariance": Sweep(  # table D.2
        rows_of(
            pcme_cub.main,
            {
                "σ of each dimension": [],
                "one σ, mean of the variances": ["--covariance=spherical_mean"],
                "one σ, one value": ["--covariance=spherical_one"],
                "μ only": ["--mean-only"],
            },
        ),
        R_PRECISION,
    ),
    "pcme_heads": Sweep(  # table D.3
        rows_of(
            pcme_cub.main,
            {
                "attention in μ and σ": [],
                "attention in μ": ["--no-variance-attention"],
                "attention in σ": ["--no-mean-attention"],
                "no attention": ["--no-mean-attention", "--no-variance-attention"],
                "attention in μ and σ, σ squashed": ["--squash-variance"],
            },
        ),
        R_PRECISION,
    ),
    "pcme_samples": Sweep(  # figure D.2
        rows_of(
            pcme_cub.main,
            {
                **{f"J = {count}": [f"--num-samples={count}"] for count in SAMPLES},
                "without noise": ["--method=moment_matched"],
            },
        ),
        R_PRECISION,
        Curves("J, samples in training", {"PCME": [(c, f"J = {c}") for c in SAMPLES]}, R_PRECISION),
    ),
    "pcme_dimensions": Sweep(  # figure D.3
        rows_of(
            pcme_cub.main,
            {
                **{f"D = {dim}": [f"--dim={dim}"] for dim in DIMENSIONS},
                **{f"D = {dim}, μ only": [f"--dim={dim}", "--mean-only"] for dim in DIMENSIONS},
            },
        ),
        R_PRECISION,
        Curves(
            "D, dimensions of the embedding",
            {
                "PCME": [(dim, f"D = {dim}") for dim in DIMENSIONS],
                "PCME μ only": [(dim, f"D = {dim}, μ only") for dim in DIMENSIONS],
            },
            R_PRECISION,
        ),
    ),
}
